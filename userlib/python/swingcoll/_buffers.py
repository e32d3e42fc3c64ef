# SPDX-License-Identifier: LGPL-2.1-or-later
"""From the arguments of collectives to memory: anything with the buffer protocol or ``__dlpack__``.

A buffer is an object, or a list in the way of mpi4py: ``[object, datatype]``, ``[object, count]`` or ``[object, count,
datatype]``, where count is in elements.
"""

import ctypes
import sys
from typing import Any, NamedTuple

from ._lib import ffi, lib
from ._types import Datatype, Op


class InPlace:
    """The type of IN_PLACE, which stands for the send buffer if the data is in the receive buffer."""

    def __repr__(self):
        return "swingcoll.IN_PLACE"


IN_PLACE = InPlace()

_NUMBERS = {
    **{("int", t.size): t for t in (Datatype.I8, Datatype.I16, Datatype.I32, Datatype.I64)},
    **{("uint", t.size): t for t in (Datatype.U8, Datatype.U16, Datatype.U32, Datatype.U64)},
    **{("float", t.size): t for t in (Datatype.F16, Datatype.F32, Datatype.F64)},
    ("bfloat", 2): Datatype.BF16,
}
# Formats of the buffer protocol, as in the module struct.
_KINDS = {**dict.fromkeys("bhilqn", "int"), **dict.fromkeys("BHILQN", "uint"), **dict.fromkeys("efd", "float")}
_KINDS.update({"?": "bool", "Zf": "complex", "Zd": "complex"})
_NATIVE = "@=<" if sys.byteorder == "little" else "@=>"  # prefixes of a format: byte orders that are this machine's
_DLPACK_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}
# bool has the values 0 and 1, so that sums and products are those of logic.
_BOOL_OPS = {Op.SUM: Op.BOR, Op.MAX: Op.BOR, Op.PROD: Op.BAND, Op.MIN: Op.BAND}


class Buffer(NamedTuple):
    """Memory of whole elements without gaps. owner keeps it valid."""

    pointer: Any
    count: int  # elements
    size: int  # bytes of one
    kind: str  # int, uint, float, bfloat, bool, complex; anything else cannot be reduced
    owner: Any
    named: bool = False  # the caller has named the type

    @property
    def bytes(self) -> int:
        """Of all elements."""
        return self.count * self.size

    def at(self, nbytes: int):
        """The address so many bytes from the start."""
        return ffi.cast("char *", self.pointer) + nbytes

    def reduction(self, op: Op) -> "tuple[Datatype, Op, int]":
        """As what the library reduces this: type, operation and number of elements."""
        op = Op(op)
        if self.kind == "bool" and self.size == 1 and op != Op.AVG:
            return Datatype.U8, _BOOL_OPS.get(op, op), self.count
        if self.kind == "complex" and op in (Op.SUM, Op.AVG):
            return _NUMBERS["float", self.size // 2], op, 2 * self.count
        dtype = _NUMBERS.get((self.kind, self.size))
        if dtype is None or not lib.swingcoll_supported(dtype, op):
            raise TypeError(f"no {op.name} of elements of type {self.kind}, {self.size} bytes: pass [buffer, datatype]")
        return dtype, op, self.count

    def reduced_into(self, recv: "Buffer", op: Op) -> "tuple[Datatype, Op, int]":
        """The same, with the result in another buffer, whose elements must be of the same type.

        If the caller has named the type of one of them, that is the type of both.

        >>> import array
        >>> parse(array.array("i", [1])).reduced_into(parse(array.array("f", [0])), Op.SUM)
        Traceback (most recent call last):
        ...
        ValueError: send has int elements of 4 bytes, recv float of 4: they must be equal: convert one
        >>> dtype, _, count = parse(bytes(8)).reduced_into(parse([bytearray(8), Datatype.I32]), Op.SUM)
        >>> dtype.name, count
        ('I32', 2)
        >>> parse([bytes(8), Datatype.I32]).reduced_into(parse([bytearray(8), Datatype.F32]), Op.SUM)
        Traceback (most recent call last):
        ...
        ValueError: send has int elements of 4 bytes, recv float of 4: they must be equal: convert one
        """
        if (self.kind, self.size) == (recv.kind, recv.size) or (self.named and not recv.named):
            return self.reduction(op)
        if self.named == recv.named:
            types = f"send has {self.kind} elements of {self.size} bytes, recv {recv.kind} of {recv.size}"
            raise ValueError(types + ": they must be equal: convert one")
        if self.bytes % recv.size:
            raise ValueError(f"send's {self.bytes} bytes are no whole elements of recv's {recv.size} bytes")
        return self._replace(kind=recv.kind, size=recv.size, count=self.bytes // recv.size).reduction(op)


def _from_memory(obj, view, writable) -> Buffer:
    kind = _KINDS.get(view.format.lstrip(_NATIVE), view.format)
    if not view.c_contiguous:
        raise ValueError("the buffer has gaps, or is not in C order: pass a contiguous copy")
    if writable and view.readonly:
        raise ValueError(f"the receive buffer ({type(obj).__name__}) is read-only")
    # The address alone, since view keeps the memory: the garbage collector of CPython fails on a memoryview that has an
    # export of its own, as from_buffer() makes, once both are in a cycle of objects.
    with ffi.from_buffer(view) as export:
        pointer = ffi.cast("char *", export)
    return Buffer(pointer, view.nbytes // (view.itemsize or 1), view.itemsize, kind, view)


def _from_dlpack(obj) -> Buffer:
    # The tensor belongs to the capsule as long as nobody renames that, so the capsule is the owner.
    capsule = obj.__dlpack__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    t = ffi.cast("struct swc_py_dltensor *", get(capsule, b"dltensor"))
    if t.device_type not in (1, 3, 11):
        raise TypeError("the tensor is in a device's memory: copy it to the host first")
    count, tight = 1, True
    for i in reversed(range(t.ndim)):
        tight = tight and (t.strides == ffi.NULL or t.shape[i] == 1 or t.strides[i] == count)
        count *= t.shape[i]
    if count and not tight:
        raise ValueError("the tensor has gaps, or is not in C order: pass a contiguous copy")
    size = (t.bits * t.lanes + 7) // 8
    kind = _DLPACK_KINDS.get(t.code, f"DLPack {t.code}") if t.lanes == 1 else "vector"
    return Buffer(ffi.cast("char *", t.data) + t.byte_offset, count, size, kind, (obj, capsule))


def _whole(obj, writable) -> Buffer:
    if isinstance(obj, Buffer):
        if writable and getattr(obj.owner, "readonly", False):
            raise ValueError("the receive buffer is read-only")
        return obj
    try:
        view = memoryview(obj)
    except TypeError:
        if not hasattr(obj, "__dlpack__"):
            raise TypeError(f"{type(obj).__name__} has neither the buffer protocol nor __dlpack__") from None
        return _from_dlpack(obj)
    return _from_memory(obj, view, writable)


def parse(spec, writable: bool = False) -> Buffer:
    """The memory that an argument of a collective names.

    >>> import array
    >>> b = parse([array.array("d", [1, 2, 3]), 2])
    >>> b.count, b.size, b.kind, b.bytes
    (2, 8, 'float', 16)
    >>> parse([bytearray(8), Datatype.BF16]).count
    4
    >>> parse(b"abc", writable=True)
    Traceback (most recent call last):
    ...
    ValueError: the receive buffer (bytes) is read-only
    >>> parse(parse(b"abc"), writable=True)
    Traceback (most recent call last):
    ...
    ValueError: the receive buffer is read-only
    """
    if not isinstance(spec, (list, tuple)) or isinstance(spec, Buffer):
        return _whole(spec, writable)
    buf, rest = _whole(spec[0], writable), list(spec[1:])
    if rest and isinstance(rest[-1], Datatype):
        dtype = rest.pop()
        if buf.bytes % dtype.size:
            raise ValueError(f"the buffer's {buf.bytes} bytes are no whole elements of {dtype.name}")
        kind = next(kind for (kind, _), t in _NUMBERS.items() if t == dtype)
        buf = buf._replace(count=buf.bytes // dtype.size, size=dtype.size, kind=kind, named=True)
    if rest:
        count = rest.pop()
        if not 0 <= count <= buf.count:
            raise ValueError(f"count {count}: the buffer has {buf.count} elements")
        buf = buf._replace(count=count)
    if rest:
        raise TypeError("a buffer is an object, [object, datatype], [object, count] or [object, count, datatype]")
    return buf
