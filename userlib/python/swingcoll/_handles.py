# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the library must get back before a communicator ends, apart from the objects that users hold.

A communicator keeps its handles, and knows the users' objects only weakly: if all die at once, in a cycle of
objects, any may be finalized first. A handle is known to the communicator before the library fills it in, and
the calls that change it record that themselves (calls.h): a signal's handler that raises between two
instructions loses nothing.
"""

import errno
from typing import Any

from ._lib import ffi, lib
from ._types import failure


def new_comm():
    """struct swingcoll_comm **, NULL at first; destroyed if it is dropped before a Comm has it."""
    return ffi.gc(ffi.new("struct swingcoll_comm **"), lib.swc_py_destroy)


class Operation:
    """A collective in flight, and what keeps its buffers until it is done."""

    __slots__ = ("c", "owners", "error")

    def __init__(self, owners: Any, move):
        self.c = ffi.new("struct swc_py_request *", {"generation": lib.swc_py_generation()})
        if move:
            self.c.move_to, self.c.move_from, self.c.move_bytes = move
        self.owners = owners
        self.error: "Exception | None" = None

    def wait(self, comm) -> None:
        """Until it is done; its error is kept in ``error``."""
        try:
            lib.swc_py_wait(self.c)
        finally:  # also if a signal's handler raises
            self._settle(comm)

    def test(self, comm) -> bool:
        """Whether it is done."""
        done = lib.swc_py_test(self.c) != -errno.EINPROGRESS
        if done:
            self._settle(comm)
        return done

    end = wait

    def _settle(self, comm) -> None:
        c = self.c
        if c.req:
            return
        if c.error and self.error is None:
            self.error = comm._failure(c.error, c.culprit)
        comm._inside.pop(self, None)
        self.owners = None

    def abort_incomplete(self, comm) -> None:
        """Nothing: it ends by its deadline."""


class Rounds:
    """A partitioned collective, and what keeps its buffers until it is freed."""

    __slots__ = ("c", "owners")

    def __init__(self, owners: Any, partitions: int):
        c = {"generation": lib.swc_py_generation(), "partitions": partitions, "lacks": partitions}
        self.c = ffi.new("struct swc_py_partitioned *", c)
        self.owners = owners

    def abort_incomplete(self, comm) -> None:
        """Abort the communicator if this rank has not marked all partitions of a round.

        A partition has a deadline only from the first rank that marks it: without this, the wait for a round
        that all ranks have left alike would never end.
        """
        if self.c.unmarked:
            # After a fork it cannot be aborted, and need not be.
            lib.swingcoll_comm_abort(comm._handle())

    def free(self, comm) -> None:
        """Free it, or raise Error with EBUSY."""
        ret = lib.swc_py_pfree(self.c)
        if ret == -errno.EBUSY:
            raise failure(ret)
        comm._inside.pop(self, None)
        self.owners = None

    def end(self, comm) -> None:
        """Wait for the round, which is aborted if it is not complete, and free it."""
        if self.c.p:
            self.abort_incomplete(comm)
            lib.swingcoll_pwait(self.c.p, lib.SWINGCOLL_ALL_PARTITIONS)
        self.free(comm)
