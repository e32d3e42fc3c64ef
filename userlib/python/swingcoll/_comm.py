# SPDX-License-Identifier: LGPL-2.1-or-later
"""Communicators and their collectives, named and called as in the upper-case interface of mpi4py."""

import errno
from operator import index
from typing import Any, Callable, Iterable, List, NamedTuple, Optional, Sequence
from weakref import ref

from . import _create
from ._buffers import IN_PLACE, Buffer, parse
from ._handles import Operation, Rounds, new_comm
from ._lib import ffi, lib
from ._requests import Partitioned, Request
from ._types import Datatype, Op, failure, text_of

SUM = Op.SUM


class _Call(NamedTuple):
    """A call of the library: its name without prefix, its arguments, what keeps them.

    move: to, from and bytes of what is to be moved after a success.
    """

    name: str
    args: tuple
    owners: Any
    move: Optional[tuple] = None


class Comm:
    """One rank's handle of a communicator.

    All ranks call the same collectives in the same order. Counts of elements and types agree between the ranks. Buffers
    are whole elements without gaps; see ``swingcoll.parse``. Every failure raises ``swingcoll.Error``.

    >>> from array import array
    >>> import swingcoll
    >>> with swingcoll.Comm.create(swingcoll.unique_id(), size=1, rank=0) as comm:
    ...     x, y = array("f", [1, 2, 3]), array("f", [0, 0, 0])
    ...     comm.Allreduce(x, y, op=swingcoll.SUM)
    ...     y.tolist()
    [1.0, 2.0, 3.0]
    """

    _comm: Any = None  # struct swingcoll_comm **, NULL after Free()

    def __init__(self, comm):
        # _inside: what has to end before the communicator, with the user's object of it, weakly. Both are set
        # at once, since a signal's handler may raise between two statements. From then on __del__ ends it: in
        # a cycle of objects, what new_comm() does might come before.
        self._comm, self._inside = comm, {}
        ffi.gc(comm, None)

    # ---- creation ----

    @classmethod
    def create(cls, ident: bytes, size: int, rank: int, **options) -> "Comm":
        """A communicator of ranks on one node. Blocks until all have called this with the same id.

        ident: 16 bytes, from ``unique_id()`` on one rank. options: ``timeout`` in seconds, the deadline of the creation
        and of each collective (default 30), ``algo``, ``topo``, ``tuning``, ``slot_max`` in bytes, ``io_uring``,
        ``any_user``, ``allow_reorder``, ``urgent``, ``sparse_auto``, ``eager``: see swingcoll_comm_create(3).
        """
        return cls(_create.create(ident, size, rank, _create.make_options(**options)))

    @classmethod
    def auto(cls, **options) -> "Comm":
        """A communicator of all ranks that a launcher has started: torchrun, mpirun, srun, or SWINGCOLL_ROOT."""
        return cls(_create.create_auto(_create.make_options(**options)))

    @classmethod
    def from_allgather(cls, allgather: Callable[[bytes], List[bytes]], rank: int, size: int, **options) -> "Comm":
        """A communicator of ranks that can exchange bytes, on one node or many.

        allgather gets this rank's bytes and returns the list of all ranks', such as the method of mpi4py:
        ``Comm.from_allgather(MPI.COMM_WORLD.allgather, MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size)``.
        """
        return cls(_create.create_from(allgather, rank, size, _create.make_options(**options)))

    def Agree(self, flag: int) -> int:
        """The bitwise AND of the flags of all ranks that live, also when the communicator has failed.

        Raises ``swingcoll.Error`` with ECONNRESET if ranks took no part that did before, which acknowledges that: the
        exception's ``flag`` is the AND then, and ``Get_failed()`` names them.
        """
        value = ffi.new("int *", flag)
        ret = lib.swingcoll_comm_agree(self._handle(), value)
        if ret:
            error = self._failure(ret)
            error.flag = value[0] if ret == -errno.ECONNRESET else None
            raise error
        return value[0]

    def Get_failed(self) -> List[int]:
        """The ranks that took no part in the agreements so far, shrinks included."""
        ranks = ffi.new("int[]", self.size)
        count = lib.swingcoll_comm_get_failed(self._handle(), ranks, self.size)
        self._check(min(count, 0))
        return list(ranks[0:count])

    def Shrink(self, exclude: Iterable[int] = ()) -> "Comm":
        """A communicator of the ranks that live, without those that any rank lists or, without a list, blames."""
        ranks, out = list(exclude), new_comm()
        self._check(lib.swingcoll_comm_shrink(self._handle(), ranks, len(ranks), out))
        return Comm(out)

    def Grow(self, count: int, root: Optional[str] = None, **options) -> "Comm":
        """A communicator of these ranks, with the same numbers, and of as many newcomers, which call ``Comm.join``.

        root: HOST:PORT, an address of rank 0 and a free port there; without it, SWINGCOLL_ROOT. All give the same
        options. This communicator stays usable.
        """
        return Comm(_create.grow(self._handle(), root, count, _create.make_options(**options)))

    @classmethod
    def join(cls, root: Optional[str] = None, count: int = 0, which: int = 0, **options) -> "Comm":
        """Join a communicator whose ranks call ``Grow``, as newcomer ``which`` of ``count``.

        Without count, the environment tells both: SWINGCOLL_RANK and SWINGCOLL_NRANKS, or a launcher.
        """
        return cls(_create.join(root, count, which, _create.make_options(**options)))

    def Free(self) -> None:
        """Leave the communicator, after this rank's collectives in flight. Not collective.

        A partitioned round of which this rank has not marked all partitions aborts the communicator.
        """
        if self._comm is not None and self._comm[0]:
            inside = list(self._inside)
            for handle in inside:
                handle.abort_incomplete(self)
            for handle in inside:
                handle.end(self)
            lib.swc_py_destroy(self._comm)

    def Abort(self) -> None:
        """End all collectives of all ranks, those in flight and all later ones, with ECONNABORTED."""
        self._check(lib.swingcoll_comm_abort(self._handle()))

    def __enter__(self) -> "Comm":
        return self

    def __exit__(self, *_) -> None:
        self.Free()

    def __del__(self):
        try:
            self.Free()
        except BaseException:
            self.Free()  # a signal's handler has raised, and nobody can call it again
            raise

    # ---- about it ----

    @property
    def rank(self) -> int:
        """This rank, from 0."""
        return lib.swingcoll_comm_rank(self._handle())

    @property
    def size(self) -> int:
        """Number of ranks."""
        return lib.swingcoll_comm_size(self._handle())

    @property
    def nodes(self) -> int:
        """Number of nodes that the ranks are on."""
        return lib.swingcoll_comm_nodes(self._handle())

    def rank_node(self, rank: int) -> int:
        """The node of a rank, from 0."""
        node = lib.swingcoll_comm_rank_node(self._handle(), rank)
        if node < 0:
            raise ValueError(f"no rank {rank}")
        return node

    @property
    def algo(self) -> str:
        """Algorithm of the last collective that succeeded; "slots" for small messages, "?" before the first."""
        return text_of(lib.swingcoll_comm_algo(self._handle()))

    def Get_rank(self) -> int:
        """This rank, from 0."""
        return self.rank

    def Get_size(self) -> int:
        """Number of ranks."""
        return self.size

    def _handle(self):
        comm = self._comm[0]
        if not comm:
            raise ValueError("the communicator has been freed")
        return comm

    def _failure(self, error: int, culprit: int = -1):
        text, rank, known = ffi.new("char[]", 512), ffi.new("int *", -1), 0
        if self._comm[0]:
            known = lib.swingcoll_comm_error(self._comm[0], text, 512, rank)
        # A rank that calls after the failure gets another error, with the same reason.
        if known and (known == error or lib.swingcoll_comm_failed(error)):
            return failure(error, text_of(text), rank[0] if rank[0] >= 0 else culprit)
        return failure(error, "", culprit)

    def _check(self, ret: int) -> None:
        if ret:
            raise self._failure(ret)

    # ---- the calls of the library that the collectives become ----

    def _run(self, call: _Call) -> None:
        self._check(getattr(lib, "swingcoll_" + call.name)(*call.args, self._handle()))
        if call.move:
            ffi.memmove(*call.move)

    def _start(self, call: _Call) -> Request:
        start, args = getattr(lib, "swingcoll_i" + call.name), (*call.args, self._handle())
        op = Operation(call.owners, call.move)
        request, req = Request(self, op), ffi.addressof(op.c, "req")
        self._inside[op] = ref(request)
        ret = start(*args, req)
        if ret == -errno.EAGAIN and self._end_dropped():
            ret = start(*args, req)
        self._check(ret)
        return request

    def _end_dropped(self) -> bool:
        """End what was dropped, but not ended since a signal's handler raised. Whether there was any."""
        dropped = [handle for handle, user in list(self._inside.items()) if user() is None]
        for handle in dropped:
            handle.end(self)
        return bool(dropped)

    def _allreduce(self, sendbuf, recvbuf, op) -> _Call:
        recv = parse(recvbuf, writable=True)
        send = recv if sendbuf is IN_PLACE else parse(sendbuf)
        _expect(send.bytes == recv.bytes, f"send has {send.bytes} bytes, recv {recv.bytes}: they must be equal")
        dtype, op, count = send.reduced_into(recv, op)
        return _Call("allreduce", (send.pointer, recv.pointer, count, dtype, op), (send, recv))

    def _reduce(self, sendbuf, recvbuf, op, root) -> _Call:
        here = self.rank == root
        recv = parse(recvbuf, writable=True) if here else None
        send = recv if sendbuf is IN_PLACE and here else parse(sendbuf)
        _expect(not recv or send.bytes == recv.bytes, "send and recv must have equal sizes on root")
        dtype, op, count = send.reduced_into(recv or send, op)
        pointer = recv.pointer if recv else ffi.NULL
        return _Call("reduce", (send.pointer, pointer, count, dtype, op, root), (send, recv))

    def _reduce_scatter(self, sendbuf, recvbuf, op) -> _Call:
        recv, move = parse(recvbuf, writable=True), None
        send = recv if sendbuf is IN_PLACE else parse(sendbuf)
        shard = self._shard(send, "send")
        dtype, op, count = send.reduced_into(recv, op)
        pointer = recv.pointer
        if sendbuf is IN_PLACE:
            # The library leaves the result at this rank's shard, MPI wants it at the start.
            pointer = send.at(self.rank * shard)
            move = (recv.pointer, pointer, shard)
        else:
            _expect(recv.bytes == shard, f"recv has {recv.bytes} bytes, and send {send.bytes} for {self.size} ranks")
        args = (send.pointer, pointer, count // self.size, dtype, op)
        return _Call("reduce_scatter", args, (send, recv), move)

    def _allgather(self, sendbuf, recvbuf) -> _Call:
        recv = parse(recvbuf, writable=True)
        shard = self._shard(recv, "recv")
        if sendbuf is IN_PLACE:
            return _moves("allgather", recv.at(self.rank * shard), recv.pointer, shard, recv)
        send = parse(sendbuf)
        _expect(send.bytes == shard, f"recv has {recv.bytes} bytes: it needs {self.size} times send's {send.bytes}")
        return _moves("allgather", send.pointer, recv.pointer, shard, (send, recv))

    def _gather(self, sendbuf, recvbuf, root) -> _Call:
        if self.rank != root:
            send = parse(sendbuf)
            return _moves("gather", send.pointer, ffi.NULL, send.bytes, send, root)
        recv = parse(recvbuf, writable=True)
        shard = self._shard(recv, "recv")
        if sendbuf is IN_PLACE:
            return _moves("gather", recv.at(root * shard), recv.pointer, shard, recv, root)
        send = parse(sendbuf)
        _expect(send.bytes == shard, f"recv has {recv.bytes} bytes: it needs {self.size} times send's {send.bytes}")
        return _moves("gather", send.pointer, recv.pointer, shard, (send, recv), root)

    def _scatter(self, sendbuf, recvbuf, root) -> _Call:
        if self.rank != root:
            recv = parse(recvbuf, writable=True)
            return _moves("scatter", ffi.NULL, recv.pointer, recv.bytes, recv, root)
        send = parse(sendbuf)
        shard = self._shard(send, "send")
        if recvbuf is IN_PLACE:
            return _moves("scatter", send.pointer, send.at(root * shard), shard, send, root)
        recv = parse(recvbuf, writable=True)
        _expect(recv.bytes == shard, f"recv has not the {shard} bytes of a rank's part")
        return _moves("scatter", send.pointer, recv.pointer, shard, (send, recv), root)

    def _gatherv(self, sendbuf, recvbuf, counts, root) -> _Call:
        return self._uneven("gatherv", sendbuf, recvbuf, counts, root)

    def _scatterv(self, sendbuf, recvbuf, counts, root) -> _Call:
        return self._uneven("scatterv", sendbuf, recvbuf, counts, root)

    def _uneven(self, name, sendbuf, recvbuf, counts, root) -> _Call:
        here, gather = self.rank == root, name == "gatherv"
        part, whole = (sendbuf, recvbuf) if gather else (recvbuf, sendbuf)
        counts = [index(n) for n in counts]  # sums of NumPy's may overflow, or become floats
        _expect(len(counts) == self.size, f"there are {len(counts)} counts: pass one for each of {self.size} ranks")
        whole = parse(whole, writable=gather) if here else None
        in_place = here and part is IN_PLACE
        part = whole if in_place else parse(part, writable=not gather)
        total = sum(counts) * part.size
        _expect(not here or whole.bytes == total, f"root's buffer has not the {total} bytes of counts")
        own, before = counts[self.rank] * part.size, sum(counts[: self.rank]) * part.size
        _expect(in_place or part.bytes == own, f"the buffer of rank {self.rank} has not its {own} bytes")
        at = whole.at(before) if in_place else part.pointer
        everything = whole.pointer if here else ffi.NULL
        send, recv = (at, everything) if gather else (everything, at)
        sizes = ffi.new("uint64_t[]", [n * part.size for n in counts])
        return _Call(name, (send, recv, sizes, Datatype.U8, root), (part, whole, sizes))

    def _bcast(self, buf, root) -> _Call:
        buffer = parse(buf, writable=self.rank != root)
        return _moves("broadcast", buffer.pointer, buffer.pointer, buffer.bytes, buffer, root)

    def _alltoall(self, sendbuf, recvbuf) -> _Call:
        recv = parse(recvbuf, writable=True)
        send = recv if sendbuf is IN_PLACE else parse(sendbuf)
        _expect(send.bytes == recv.bytes, f"send has {send.bytes} bytes, recv {recv.bytes}: they must be equal")
        return _moves("alltoall", send.pointer, recv.pointer, self._shard(send, "send"), (send, recv))

    def _shard(self, buffer: Buffer, name: str) -> int:
        """Bytes of a rank's part."""
        _expect(not buffer.count % self.size, f"{name} has {buffer.count} elements, which {self.size} does not divide")
        return buffer.bytes // self.size

    # ---- blocking collectives ----

    def Allreduce(self, sendbuf, recvbuf, op: Op = SUM) -> None:
        """recv = reduction of all ranks' send, element by element, on every rank. Both have n elements."""
        self._run(self._allreduce(sendbuf, recvbuf, op))

    def Reduce(self, sendbuf, recvbuf, op: Op = SUM, root: int = 0) -> None:
        """The same on root only; elsewhere recvbuf is not used, and may be None."""
        self._run(self._reduce(sendbuf, recvbuf, op, root))

    def Reduce_scatter_block(self, sendbuf, recvbuf, op: Op = SUM) -> None:
        """recv (n elements) = this rank's part of the reduction of send (size * n elements).

        In place: the data is in recvbuf (size * n elements), and the result at its start.
        """
        self._run(self._reduce_scatter(sendbuf, recvbuf, op))

    def Allgather(self, sendbuf, recvbuf) -> None:
        """recv (size * n elements) = all ranks' send (n elements), in the order of the ranks.

        In place: this rank's data is at its part of recvbuf.
        """
        self._run(self._allgather(sendbuf, recvbuf))

    def Gather(self, sendbuf, recvbuf, root: int = 0) -> None:
        """The same on root only; elsewhere recvbuf may be None. IN_PLACE as sendbuf on root only."""
        self._run(self._gather(sendbuf, recvbuf, root))

    def Scatter(self, sendbuf, recvbuf, root: int = 0) -> None:
        """recv (n elements) = this rank's part of root's send (size * n elements).

        Elsewhere sendbuf may be None. IN_PLACE as recvbuf on root leaves its part where it is.
        """
        self._run(self._scatter(sendbuf, recvbuf, root))

    def Gatherv(self, sendbuf, recvbuf, counts: Sequence[int], root: int = 0) -> None:
        """Gather counts[r] elements of rank r, one rank's behind the other's. counts is the same on all ranks."""
        self._run(self._gatherv(sendbuf, recvbuf, counts, root))

    def Scatterv(self, sendbuf, recvbuf, counts: Sequence[int], root: int = 0) -> None:
        """Scatter counts[r] elements to rank r, one rank's behind the other's. counts is the same on all ranks."""
        self._run(self._scatterv(sendbuf, recvbuf, counts, root))

    def Bcast(self, buf, root: int = 0) -> None:
        """buf = buf of root."""
        self._run(self._bcast(buf, root))

    def Alltoall(self, sendbuf, recvbuf) -> None:
        """Part r of recv = part rank of send of rank r. Both have size * n elements."""
        self._run(self._alltoall(sendbuf, recvbuf))

    def Barrier(self) -> None:
        """Return when every rank has called it."""
        self._run(_Call("barrier", (), None))

    # ---- the same, without waiting ----

    def Iallreduce(self, sendbuf, recvbuf, op: Op = SUM) -> Request:
        """Start an Allreduce. At most 64 collectives are in flight."""
        return self._start(self._allreduce(sendbuf, recvbuf, op))

    def Ireduce(self, sendbuf, recvbuf, op: Op = SUM, root: int = 0) -> Request:
        """Start a Reduce."""
        return self._start(self._reduce(sendbuf, recvbuf, op, root))

    def Ireduce_scatter_block(self, sendbuf, recvbuf, op: Op = SUM) -> Request:
        """Start a Reduce_scatter_block."""
        return self._start(self._reduce_scatter(sendbuf, recvbuf, op))

    def Iallgather(self, sendbuf, recvbuf) -> Request:
        """Start an Allgather."""
        return self._start(self._allgather(sendbuf, recvbuf))

    def Igather(self, sendbuf, recvbuf, root: int = 0) -> Request:
        """Start a Gather."""
        return self._start(self._gather(sendbuf, recvbuf, root))

    def Iscatter(self, sendbuf, recvbuf, root: int = 0) -> Request:
        """Start a Scatter."""
        return self._start(self._scatter(sendbuf, recvbuf, root))

    def Igatherv(self, sendbuf, recvbuf, counts: Sequence[int], root: int = 0) -> Request:
        """Start a Gatherv."""
        return self._start(self._gatherv(sendbuf, recvbuf, counts, root))

    def Iscatterv(self, sendbuf, recvbuf, counts: Sequence[int], root: int = 0) -> Request:
        """Start a Scatterv."""
        return self._start(self._scatterv(sendbuf, recvbuf, counts, root))

    def Ibcast(self, buf, root: int = 0) -> Request:
        """Start a Bcast."""
        return self._start(self._bcast(buf, root))

    def Ialltoall(self, sendbuf, recvbuf) -> Request:
        """Start an Alltoall."""
        return self._start(self._alltoall(sendbuf, recvbuf))

    def Ibarrier(self) -> Request:
        """Start a Barrier."""
        return self._start(_Call("barrier", (), None))

    # ---- partitioned ----

    def Pallreduce_init(self, sendbuf, recvbuf, partitions: int, op: Op = SUM) -> Partitioned:
        """An Allreduce whose data comes in equal parts, one after the other in the buffers. Does not wait."""
        recv = parse(recvbuf, writable=True)
        send = recv if sendbuf is IN_PLACE else parse(sendbuf)
        _expect(send.bytes == recv.bytes, f"send has {send.bytes} bytes, recv {recv.bytes}: they must be equal")
        dtype, op, count = send.reduced_into(recv, op)
        _expect(partitions > 0 and not count % partitions, f"{partitions} partitions do not divide {count} elements")
        rounds = Rounds((send, recv), partitions)
        partitioned, p = Partitioned(self, rounds), ffi.addressof(rounds.c, "p")
        args = (send.pointer, recv.pointer, partitions, count // partitions, dtype, op, self._handle(), p)
        self._inside[rounds] = ref(partitioned)
        self._check(lib.swingcoll_pallreduce_init(*args))
        return partitioned


def _expect(good, text: str) -> None:
    if not good:
        raise ValueError(text)


def _moves(name, send, recv, nbytes, owners, *root) -> _Call:
    """Data that is only moved goes as bytes, whatever its type."""
    return _Call(name, (send, recv, nbytes, Datatype.U8, *root), owners)
