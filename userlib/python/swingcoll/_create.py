# SPDX-License-Identifier: LGPL-2.1-or-later
"""How ranks find each other: options, ids and bootstraps."""

from typing import Callable, List, Optional

from ._handles import new_comm
from ._lib import ffi, lib
from ._types import check, text_of


def version() -> str:
    """The version of the library.

    >>> version().count(".")
    2
    """
    return text_of(lib.swingcoll_version())


def unique_id() -> bytes:
    """A new random id of a communicator, 16 bytes: rank 0 makes it, and all ranks must have it.

    >>> len(unique_id())
    16
    """
    unique = ffi.new("struct swingcoll_id *")
    check(lib.swingcoll_unique_id(unique))
    return bytes(ffi.buffer(unique))


def make_options(
    timeout: Optional[float] = None,
    algo: Optional[str] = None,
    topo: Optional[str] = None,
    tuning: Optional[str] = None,
    slot_max: int = 0,
    io_uring: Optional[bool] = None,
    any_user: bool = False,
    allow_reorder: bool = False,
    urgent: bool = False,
    sparse_auto: bool = False,
    eager: bool = False,
):
    """struct swingcoll_comm_opts, and what it points to.

    timeout is in seconds (default 30), slot_max in bytes (0: as the library chooses, -1: none); the others are those of
    swingcoll_comm_create(3).

    >>> make_options(timeout=-1)
    Traceback (most recent call last):
    ...
    ValueError: timeout -1: pass seconds, from 0 to 4000000
    """
    named = {"algo": algo, "topo": topo, "tuning": tuning}
    texts = {name: ffi.new("char[]", text.encode()) for name, text in named.items() if text}
    opts = ffi.new("struct swingcoll_comm_opts *", texts)
    if timeout is not None:
        if not 0 <= timeout <= 4e6:
            raise ValueError(f"timeout {timeout}: pass seconds, from 0 to 4000000")
        opts.timeout_ms = max(1, round(timeout * 1000))
    opts.slot_max = slot_max
    opts.use_io_uring = 0 if io_uring is None else 1 if io_uring else -1
    opts.flags = (
        any_user * lib.SWINGCOLL_ANY_USER
        | allow_reorder * lib.SWINGCOLL_ALLOW_REORDER
        | urgent * lib.SWINGCOLL_URGENT
        | sparse_auto * lib.SWINGCOLL_SPARSE_AUTO
        | eager * lib.SWINGCOLL_EAGER
    )
    return opts, texts


def create(ident: bytes, size: int, rank: int, opts):
    """struct swingcoll_comm ** of ranks on one node."""
    if len(ident) != lib.SWINGCOLL_ID_BYTES:
        raise ValueError(f"an id has {lib.SWINGCOLL_ID_BYTES} bytes, not {len(ident)}: make it with unique_id()")
    comm = new_comm()
    check(lib.swingcoll_comm_create(comm, ffi.new("struct swingcoll_id *", [ident]), size, rank, opts[0]))
    return comm


def create_auto(opts):
    """struct swingcoll_comm ** of all ranks that a launcher has started."""
    comm = new_comm()
    check(lib.swingcoll_comm_create_auto(comm, opts[0]))
    return comm


class _Exchange:
    """A bootstrap by a function of Python's. Its exception is kept, and raised once the library has returned."""

    def __init__(self, allgather, size):
        self.allgather, self.size, self.error = allgather, size, None

    def run(self, mine, everyone, nbytes):
        """One exchange; 0, or a negative errno."""
        joined = b"".join(self.allgather(bytes(ffi.buffer(mine, nbytes))))
        if len(joined) != nbytes * self.size:
            raise ValueError(f"allgather returned {len(joined)} bytes, not {self.size} times {nbytes}")
        ffi.memmove(everyone, joined, len(joined))
        return 0


def _exchange_failed(_, error, trace):
    # Whatever it is, also KeyboardInterrupt, and wherever in _allgather: it cannot pass through C.
    ffi.from_handle(trace.tb_frame.f_locals["arg"]).error = error
    return lib.swingcoll_bootstrap_fail(-5, ffi.new("char[]", b"the exchange between the ranks failed"))


@ffi.def_extern(name="swc_py_allgather", error=-5, onerror=_exchange_failed)
def _allgather(arg, mine, everyone, nbytes):
    return ffi.from_handle(arg).run(mine, everyone, nbytes)


def create_from(allgather: Callable[[bytes], List[bytes]], rank: int, size: int, opts):
    """struct swingcoll_comm ** of ranks that can exchange bytes."""
    exchange = _Exchange(allgather, size)
    handle = ffi.new_handle(exchange)
    boot = ffi.new("struct swingcoll_bootstrap *", {"rank": rank, "nranks": size, "arg": handle})
    boot.allgather = lib.swc_py_allgather
    comm = new_comm()
    error = lib.swingcoll_comm_create_from(comm, boot, opts[0])
    if error and exchange.error:
        raise exchange.error
    check(error)
    return comm


def grow(handle, root: Optional[str], count: int, opts):
    """struct swingcoll_comm ** of the ranks of another one and newcomers."""
    comm = new_comm()
    at = ffi.new("char[]", root.encode()) if root else ffi.NULL
    check(lib.swingcoll_comm_grow(handle, at, count, opts[0], comm))
    return comm


def join(root: Optional[str], count: int, which: int, opts):
    """struct swingcoll_comm ** that grows by this process."""
    comm = new_comm()
    at = ffi.new("char[]", root.encode()) if root else ffi.NULL
    check(lib.swingcoll_comm_join(at, count, which, opts[0], comm))
    return comm
