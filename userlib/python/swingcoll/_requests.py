# SPDX-License-Identifier: LGPL-2.1-or-later
"""Collectives in flight: requests, and partitioned collectives."""

import asyncio
import errno
import threading
from typing import Any, Callable, Optional, Set

from ._lib import ffi, lib
from ._types import failure

ALL_PARTITIONS = lib.SWINGCOLL_ALL_PARTITIONS
SLICE = 0.05  # seconds between looks at the communicator


class Request:
    """A collective in flight, of one rank.

    ``Wait()`` blocks and ``Test()`` does not; ``await request`` waits without blocking the event loop. The buffers
    belong to the collective until then. A request that is dropped is waited for.
    """

    def __init__(self, comm, req, owners: Any, then: Optional[Callable[[], None]]):
        self._comm, self._req, self._owners, self._then = comm, req, owners, then
        self._lock = threading.Lock()  # held by the thread that waits
        self._error: "Exception | None" = None

    def _finish(self, error: int, culprit: int) -> None:
        self._req = None
        if error:
            self._error = self._comm._failure(error, culprit)
        elif self._then:
            self._then()
        self._owners = self._then = None

    def Wait(self) -> None:
        """Block until the collective is done; raise Error if it failed. Other threads run meanwhile."""
        with self._lock:
            if self._req is not None:
                result = ffi.new("struct swingcoll_result *")
                self._finish(lib.swingcoll_wait(self._req, result), result.culprit)
        if self._error:
            raise self._error

    def Test(self) -> bool:
        """Whether the collective is done; raise Error if it failed."""
        if not self._lock.acquire(blocking=False):
            return False  # another thread waits for it
        try:
            if self._req is not None:
                result = ffi.new("struct swingcoll_result *")
                error = lib.swingcoll_test(self._req, result)
                if error == -errno.EINPROGRESS:
                    return False
                self._finish(error, result.culprit)
        finally:
            self._lock.release()
        if self._error:
            raise self._error
        return True

    wait, test = Wait, Test

    async def _await(self) -> None:
        if not self.Test():
            await asyncio.get_running_loop().run_in_executor(None, self.Wait)

    def __await__(self):
        return self._await().__await__()

    def _end(self) -> None:
        try:
            self.Wait()
        except OSError:
            pass  # kept for Wait() and Test()

    __del__ = _end

    @staticmethod
    def Waitall(requests) -> None:
        """Wait for all of them; raise the first Error after all are done."""
        errors = []
        for request in requests:
            try:
                request.Wait()
            except OSError as error:
                errors.append(error)
        if errors:
            raise errors[0]


class Partitioned:
    """A partitioned collective: made once, run as often as wanted. See swingcoll_pallreduce_init(3).

    A round is ``Start()``, ``Pready(i)`` for each partition as soon as its data is complete, and ``Wait()``.
    If it is dropped, or its communicator freed, while this rank has not marked all partitions of a round, the
    communicator is aborted, as by ``Comm.Abort()``: the round can never be complete.
    """

    def __init__(self, comm, p, partitions: int, owners: Any):
        self._comm, self._p, self._partitions, self._owners = comm, p, partitions, owners
        self._unmarked: Set[int] = set()  # partitions of the round that this rank has not marked
        self._marked = threading.Condition()  # notified when one has left _unmarked

    def _check(self, ret: int) -> int:
        if ret < 0:
            raise self._comm._failure(ret)
        return ret

    def Start(self) -> None:
        """Begin a round; it has one place in the order of the collectives."""
        self._check(lib.swingcoll_pstart(self._p))
        self._unmarked = set(range(self._partitions))

    def Pready(self, partition: int) -> None:
        """The data of a partition is complete. From any thread, in any order, once per round."""
        self._check(lib.swingcoll_pready(self._p, partition))
        with self._marked:
            self._unmarked.discard(partition)
            self._marked.notify_all()

    def Parrived(self, partition: int) -> bool:
        """Whether a partition is done."""
        return bool(self._check(lib.swingcoll_parrived(self._p, partition)))

    def Wait(self, partition: int = ALL_PARTITIONS) -> None:
        """Block until a partition, or all of them, are done.

        An exception of a signal's handler, such as KeyboardInterrupt, ends a wait for what this rank has not marked,
        and aborts the communicator. What it has marked ends by the deadline, and cannot be interrupted.
        """
        try:
            self._wait_marked(partition)
        except BaseException:
            self._abort_incomplete()
            raise
        self._check(lib.swingcoll_pwait(self._p, partition))

    def _wait_marked(self, partition: int) -> None:
        # Partitions that this rank has not marked are not done, and may have no deadline; Python's handlers of signals
        # do not run inside the library. Another thread may mark them, or the communicator fail: only that is looked at.
        while True:
            with self._marked:
                lacking = self._unmarked if partition == ALL_PARTITIONS else self._unmarked & {partition}
                if not lacking or lib.swingcoll_parrived(self._p, next(iter(lacking))):
                    return
                self._marked.wait(SLICE)

    def Free(self) -> None:
        """Free it, before the communicator. Error with EBUSY, and nothing is freed, while a round is not done."""
        if self._p is not None:
            ret = lib.swingcoll_pfree(self._p)
            if ret == -errno.EBUSY:
                raise failure(ret)
            self._p = self._owners = None

    def _abort_incomplete(self) -> None:
        # A partition has a deadline only from the first rank that marks it: without this, the wait for a round that
        # all ranks have left alike would never end.
        if self._p is not None and self._unmarked:
            # After a fork it cannot be aborted, and need not be.
            lib.swingcoll_comm_abort(self._comm._handle())

    def _end(self) -> None:
        if self._p is not None:
            self._abort_incomplete()
            lib.swingcoll_pwait(self._p, ALL_PARTITIONS)
            self.Free()

    __del__ = _end
