#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Write the C source of swingcoll._lib, the binding of the Python package to libswingcoll.

usage: make_binding.py SWINGCOLL_H CALLS_H OUTPUT_C

The binding is made by cffi, in API mode, because cffi reads the declarations from swingcoll.h itself, so that there is
no second copy of them, the C compiler checks every type, one binary serves all versions of Python 3, and every call
releases the interpreter's lock. ctypes would need the copy, and the limited C API a wrapper for each call.
Calls whose outcome must not be lost to a signal's handler are in calls.c.
"""

import re
import subprocess
import sys

import cffi

# The head of a DLPack tensor: the interchange format of array libraries, https://dmlc.github.io/dlpack.
DLPACK = """
struct swc_py_dltensor {
	void *data;
	int32_t device_type; /* 1: host memory, 3 and 11: host memory known to a device */
	int32_t device_id;
	int32_t ndim;
	uint8_t code;
	uint8_t bits;
	uint16_t lanes;
	int64_t *shape;   /* elements per dimension */
	int64_t *strides; /* in elements; NULL: without gaps, in C order */
	uint64_t byte_offset;
};
"""


def declarations(header):
    """The declarations of a header without what it includes, and the names of its constants."""
    with open(header, encoding="utf-8") as file:
        text = file.read()
    source = re.sub(r"^#\s*include.*$", "", text, flags=re.MULTILINE)
    done = subprocess.run(
        ["cc", "-E", "-P", "-undef", "-x", "c", "-"], input=source, stdout=subprocess.PIPE, text=True, check=True
    )
    constants = re.findall(r"^#\s*define\s+(SWINGCOLL_\w+)[ \t]+\S", text, flags=re.MULTILINE)
    return done.stdout, constants


def main():
    header, calls, output = sys.argv[1:]
    text, constants = declarations(header)
    ffi = cffi.FFI()
    ffi.cdef(text)
    ffi.cdef("typedef struct { ...; } pthread_mutex_t; typedef struct { ...; } pthread_cond_t;")
    ffi.cdef(declarations(calls)[0])
    ffi.cdef("".join(f"#define {name} ...\n" for name in constants))
    ffi.cdef(DLPACK)
    # The exchange of a bootstrap whose function is Python's.
    ffi.cdef('extern "Python" int swc_py_allgather(void *, const void *, void *, size_t);')
    ffi.set_source("swingcoll._lib", "#include <calls.h>\n" + DLPACK)
    ffi.emit_c_code(output)


main()
