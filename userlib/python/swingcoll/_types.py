# SPDX-License-Identifier: LGPL-2.1-or-later
"""Element types, reductions and errors."""

import enum
import errno as _errno

from ._lib import ffi, lib


class Datatype(enum.IntEnum):
    """An element type of the library; names are also attributes of the package, as ``swingcoll.F32``."""

    I8 = lib.SWINGCOLL_I8
    U8 = lib.SWINGCOLL_U8
    I16 = lib.SWINGCOLL_I16
    U16 = lib.SWINGCOLL_U16
    I32 = lib.SWINGCOLL_I32
    U32 = lib.SWINGCOLL_U32
    I64 = lib.SWINGCOLL_I64
    U64 = lib.SWINGCOLL_U64
    F16 = lib.SWINGCOLL_F16
    BF16 = lib.SWINGCOLL_BF16
    F32 = lib.SWINGCOLL_F32
    F64 = lib.SWINGCOLL_F64

    @property
    def size(self) -> int:
        """Bytes of one element.

        >>> Datatype.BF16.size
        2
        """
        return lib.swingcoll_dtype_size(self.value)


class Op(enum.IntEnum):
    """A reduction. AVG is SUM divided by the number of ranks; the bitwise ones are for integers and bool."""

    SUM = lib.SWINGCOLL_SUM
    PROD = lib.SWINGCOLL_PROD
    MIN = lib.SWINGCOLL_MIN
    MAX = lib.SWINGCOLL_MAX
    AVG = lib.SWINGCOLL_AVG
    BAND = lib.SWINGCOLL_BAND
    BOR = lib.SWINGCOLL_BOR
    BXOR = lib.SWINGCOLL_BXOR


class Error(OSError):
    """A call of the library failed.

    errno
        the positive error number, such as ``errno.ECONNRESET``
    rank
        the rank at fault, or None if none is known
    failed
        True if the communicator can only be shrunk or freed
    flag
        of ``Comm.Agree``, if only other ranks' failures were the reason, else None

    >>> Error(-_errno.ECONNRESET, "rank 3 (pid 9) died", 3)
    Error(104, 'rank 3 (pid 9) died')
    >>> issubclass(DeadlineError, TimeoutError)
    True
    """

    def __init__(self, error: int, text: str, rank: "int | None" = None):
        super().__init__(-error, text)
        self.rank = rank
        self.flag: "int | None" = None
        self.failed = bool(lib.swingcoll_comm_failed(error))


class DeadlineError(Error, TimeoutError):
    """A rank did not come before the deadline."""


def text_of(chars) -> str:
    """A C string."""
    return ffi.string(chars).decode(errors="replace")


def failure(error: int, text: str = "", rank: int = -1) -> Error:
    """The exception for a negative errno."""
    kind = DeadlineError if error == -_errno.ETIMEDOUT else Error
    return kind(error, text or text_of(lib.swingcoll_strerror(error)), rank if rank >= 0 else None)


def check(error: int) -> None:
    """Raise if a call without a communicator failed."""
    if error < 0:
        raise failure(error, text_of(lib.swingcoll_bootstrap_error()))
