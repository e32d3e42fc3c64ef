# SPDX-License-Identifier: LGPL-2.1-or-later
"""Collectives in flight: requests, and partitioned collectives."""

import asyncio
from typing import Any

from ._handles import Operation, Rounds
from ._lib import lib

ALL_PARTITIONS = lib.SWINGCOLL_ALL_PARTITIONS
SLICE_MS = 50  # between looks at signals and the communicator


class Request:
    """A collective in flight, of one rank.

    ``Wait()`` blocks and ``Test()`` does not; ``await request`` waits without blocking the event loop. The buffers
    belong to the collective until then. A request that is dropped is waited for. If a signal's handler raises
    during a call, the call can be made again.
    """

    _op: Any = None  # until it is made

    def __init__(self, comm, op: Operation):
        self._comm, self._op = comm, op

    def Wait(self) -> None:
        """Block until the collective is done; raise Error if it failed. Other threads run meanwhile."""
        self._op.wait(self._comm)
        if self._op.error:
            raise self._op.error

    def Test(self) -> bool:
        """Whether the collective is done; raise Error if it failed."""
        done = self._op.test(self._comm)
        if done and self._op.error:
            raise self._op.error
        return done

    wait, test = Wait, Test

    async def _await(self) -> None:
        if not self.Test():
            await asyncio.get_running_loop().run_in_executor(None, self.Wait)

    def __await__(self):
        return self._await().__await__()

    def __del__(self):
        if self._op:
            self._op.end(self._comm)

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

    _rounds: Any = None  # until it is made

    def __init__(self, comm, rounds: Rounds):
        self._comm, self._rounds = comm, rounds

    def _p(self):
        p = self._rounds.c.p
        if not p:
            raise ValueError("the partitioned collective has been freed")
        return p

    def _check(self, ret: int) -> int:
        if ret < 0:
            self._p()
            raise self._comm._failure(ret)
        return ret

    def Start(self) -> None:
        """Begin a round; it has one place in the order of the collectives."""
        self._check(lib.swc_py_pstart(self._rounds.c))

    def Pready(self, partition: int) -> None:
        """The data of a partition is complete. From any thread, in any order, once per round."""
        self._check(lib.swc_py_pready(self._rounds.c, partition))

    def Parrived(self, partition: int) -> bool:
        """Whether a partition is done."""
        return bool(self._check(lib.swingcoll_parrived(self._p(), partition)))

    def Wait(self, partition: int = ALL_PARTITIONS) -> None:
        """Block until a partition, or all of them, are done.

        An exception of a signal's handler, such as KeyboardInterrupt, ends a wait for what this rank has not marked,
        and aborts the communicator. What it has marked ends by the deadline, and cannot be interrupted.
        """
        try:
            self._wait_marked(partition)
        except BaseException:
            self._rounds.abort_incomplete(self._comm)
            raise
        self._check(lib.swingcoll_pwait(self._p(), partition))

    def _wait_marked(self, partition: int) -> None:
        # Partitions that this rank has not marked are not done, and may have no deadline; Python's handlers of signals
        # do not run inside the library. Another thread may mark them, or the communicator fail: only that is looked at.
        while not lib.swc_py_pmarked(self._rounds.c, partition, SLICE_MS):
            pass

    def Free(self) -> None:
        """Free it, before the communicator. Error with EBUSY, and nothing is freed, while a round is not done."""
        self._rounds.free(self._comm)

    def __del__(self):
        if self._rounds:
            self._rounds.end(self._comm)
