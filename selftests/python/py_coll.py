#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The Python package: doctests, every collective on every kind of buffer, requests, and failures."""

import array
import asyncio
import ctypes
import doctest
import errno
import faulthandler
import gc
import os
import random
import signal
import sys
import tempfile
import threading
import time

from py_testlib import die, finish, need_device, need_modules, plan, result, run_ranks, skip

need_device()
need_modules("apt-get install python3-cffi python3-dev, make lib", "_cffi_backend", "swingcoll")
import swingcoll

try:
    import numpy
except ImportError:
    numpy = None

# The short form leaves some out.
SHORT = bool(os.environ.get("SWC_TEST_SHORT"))
SIZES = (1, 3) if SHORT else (1, 2, 3, 4)


def comm_of(rank, size, ident, **options):
    return swingcoll.Comm.create(ident, size, rank, **options)


def on_ranks(name, function, sizes=SIZES, killed=(), **options):
    """One result: function(comm) on ranks of each size."""

    def run(rank, size, ident):
        with comm_of(rank, size, ident, **options) as comm:
            function(comm)

    good = [run_ranks(size, run, swingcoll.unique_id(), killed=killed) for size in sizes]
    result(all(good), f"{name}, {', '.join(map(str, sizes))} ranks")


def values(rank, count):
    """Small whole numbers: exact in every type."""
    return [(rank + 2 * i) % 3 + 1 for i in range(count)]


def equal(have, want):
    have = list(have)
    assert have == list(want), f"{have[:8]} and not {list(want)[:8]}"


# ---- collectives ----


def reductions(comm):
    """Every type of array, every operation."""
    for code in "bBhHiIlLqQfd":
        for count in (1, 7, 5000):
            everyone = [values(r, count) for r in range(comm.size)]
            mine, out = array.array(code, everyone[comm.rank]), array.array(code, [0] * count)
            for op, function in (
                (swingcoll.SUM, sum),
                (swingcoll.MIN, min),
                (swingcoll.MAX, max),
            ):
                comm.Allreduce(mine, out, op=op)
                equal(out, [function(column) for column in zip(*everyone)])
    both = array.array("d", values(comm.rank, 10))
    comm.Allreduce(swingcoll.IN_PLACE, both, op=swingcoll.AVG)
    equal(both, [sum(c) / comm.size for c in zip(*(values(r, 10) for r in range(comm.size)))])


def special_types(comm):
    """bool as truth, bfloat16 by name."""
    truth = (ctypes.c_bool * 3)(comm.rank == 0, True, False)
    out = (ctypes.c_bool * 3)()
    comm.Allreduce(truth, out)
    equal(out, [True, True, False])
    comm.Allreduce(truth, out, op=swingcoll.PROD)
    equal(out, [comm.size == 1, True, False])
    ones = array.array("H", [0x3F80] * 4)  # 1.0
    comm.Allreduce(swingcoll.IN_PLACE, [ones, swingcoll.BF16])
    equal(ones, [{1: 0x3F80, 2: 0x4000, 3: 0x4040, 4: 0x4080}[comm.size]] * 4)


def moving(comm):
    """Collectives with a root, and those that only move data; also in place."""
    rank, size = comm.rank, comm.size
    for count in (1, 5, 3000):
        mine = array.array("i", values(rank, count))
        everyone = [v for r in range(size) for v in values(r, count)]
        out = array.array("i", [0] * size * count)
        comm.Allgather(mine, out)
        equal(out, everyone)
        out = array.array("i", [0] * size * count)
        out[rank * count : (rank + 1) * count] = mine
        comm.Allgather(swingcoll.IN_PLACE, out)
        equal(out, everyone)
        for root in range(size):
            copy = array.array("i", mine)
            comm.Bcast(copy, root)
            equal(copy, values(root, count))
            out = array.array("i", [0] * size * count) if rank == root else None
            comm.Gather(mine, out, root)
            assert rank != root or out.tolist() == everyone
            copy = array.array("i", [0] * count)
            comm.Scatter(array.array("i", everyone) if rank == root else None, copy, root)
            equal(copy, mine)
            out = array.array("i", [0] * size * count)
            out[rank * count : (rank + 1) * count] = mine
            comm.Gather(swingcoll.IN_PLACE if rank == root else mine, out if rank == root else None, root)
            assert rank != root or out.tolist() == everyone
            comm.Scatter(out if rank == root else None, swingcoll.IN_PLACE if rank == root else copy, root)
            equal(copy, mine)
            assert rank != root or out.tolist() == everyone
            counts = [count + r for r in range(size)]
            longer = array.array("i", values(rank, counts[rank]))
            out = array.array("i", [0] * sum(counts)) if rank == root else None
            comm.Gatherv(longer, out, counts, root)
            assert rank != root or out.tolist() == [v for r in range(size) for v in values(r, counts[r])]
            copy = array.array("i", [0] * counts[rank])
            comm.Iscatterv(out, swingcoll.IN_PLACE if rank == root else copy, counts, root).Wait()
            assert rank == root or copy == longer
            copy = array.array("i", [0] * count)
            comm.Reduce(mine, copy if rank == root else None, root=root)
            want = [sum(c) for c in zip(*(values(r, count) for r in range(size)))]
            assert rank != root or copy.tolist() == want
        parts = array.array("i", [v + 10 * r for r in range(size) for v in values(rank, count)])
        out = array.array("i", [0] * size * count)
        comm.Alltoall(parts, out)
        equal(out, [v + 10 * rank for r in range(size) for v in values(r, count)])
        copy = array.array("i", [0] * count)
        comm.Reduce_scatter_block(parts, copy)
        want = [sum(c) + 10 * rank * size for c in zip(*(values(r, count) for r in range(size)))]
        equal(copy, want)
        comm.Reduce_scatter_block(swingcoll.IN_PLACE, parts)
        equal(parts[:count], want)
    comm.Barrier()


def requests(comm):
    """Many at once, in any order; awaited; dropped."""
    pending, outs = [], []
    for i in range(40):
        mine, out = array.array("q", [i, comm.rank]), array.array("q", [0, 0])
        pending.append(comm.Iallreduce(mine, out))
        outs.append(out)
    swingcoll.Request.Waitall(reversed(pending))
    for i, out in enumerate(outs):
        equal(out, [i * comm.size, sum(range(comm.size))])

    async def many():
        bufs = [bytearray([i] if comm.rank == i % comm.size else [0]) for i in range(20)]
        await asyncio.gather(*[comm.Ibcast(b, root=i % comm.size) for i, b in enumerate(bufs)])
        equal(bufs, [bytearray([i]) for i in range(20)])
        part = bytearray(2)
        await comm.Iscatter(bytes(range(2 * comm.size)) if comm.rank == 0 else None, part)
        equal(part, [2 * comm.rank, 2 * comm.rank + 1])

    asyncio.run(many())
    for _ in range(100):
        comm.Iallreduce(array.array("d", [1]), array.array("d", [0]))
    request = comm.Ibarrier()
    while not request.Test():
        pass
    late = comm.Ibarrier()
    comm.Free()
    assert late.Test()


def partitioned(comm):
    data = array.array("f", [0] * 600)
    p = comm.Pallreduce_init(swingcoll.IN_PLACE, data, 6)
    for turn in range(3):
        data[:] = array.array("f", [comm.rank + turn + i for i in range(600)])
        p.Start()
        for i in reversed(range(6)):
            p.Pready(i)
        p.Wait(3)
        assert p.Parrived(3)
        p.Wait()
        equal(data, [sum(r + turn + i for r in range(comm.size)) for i in range(600)])
    p.Free()


def left_rounds(rank, size, ident, marked):
    """An exception between Start and the last Pready is seen: leaving ends the round, and the communicator with it."""
    try:
        with comm_of(rank, size, ident) as comm:
            data = array.array("f", [0] * 600)
            done = comm.Pallreduce_init(swingcoll.IN_PLACE, array.array("i", [1, 1]), 2)
            never = comm.Pallreduce_init(swingcoll.IN_PLACE, array.array("i", [1, 1]), 2)
            left = comm.Pallreduce_init(swingcoll.IN_PLACE, data, 6)
            done.Start()
            for i in range(2):
                done.Pready(i)
            done.Wait()
            left.Start()
            for i in range(marked):
                left.Pready(i)
            # All have begun it: what a rank leaves aborts the calls of the others.
            assert comm.Agree(1) == 1
            raise KeyError("between")
    except KeyError:
        pass
    for p in (done, never, left):
        p.Free()


def dropped_rounds(comm):
    """A round that is dropped without an end aborts; one that is complete does not."""
    p = comm.Pallreduce_init(swingcoll.IN_PLACE, array.array("i", [1, 1]), 2)
    p.Start()
    for i in range(2):
        p.Pready(i)
    del p
    comm.Barrier()
    p = comm.Pallreduce_init(swingcoll.IN_PLACE, array.array("i", [1, 1]), 2)
    p.Start()
    assert comm.Agree(1) == 1
    del p
    try:
        comm.Barrier()
        raise AssertionError("no error")
    except swingcoll.Error as error:
        assert error.errno == errno.ECONNABORTED, error


def interrupted_wait(comm):
    """Ctrl-C ends the wait for a round that nobody marks, on rank 0, and the communicator with it, for the others."""
    main = threading.main_thread().ident

    def press():
        # Until the main thread is in a function that Wait calls.
        callers = []
        while swingcoll.Partitioned.Wait.__code__ not in callers:
            time.sleep(0.01)
            frame, callers = sys._current_frames()[main], []
            while frame := frame.f_back:
                callers.append(frame.f_code)
        os.kill(os.getpid(), signal.SIGINT)

    data = array.array("i", [1, 1])
    p = comm.Pallreduce_init(swingcoll.IN_PLACE, data, 2)
    p.Start()
    # Another thread may mark them while one waits.
    marks = threading.Thread(target=lambda: [p.Pready(i) for i in range(2)])
    marks.start()
    p.Wait()
    marks.join()
    equal(data, [comm.size] * 2)
    p.Start()
    assert comm.Agree(1) == 1
    if comm.rank == 0:
        # A shell that runs the test in the background has it ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Thread(target=press, daemon=True).start()
    try:
        p.Wait()
        raise AssertionError("no exception")
    except KeyboardInterrupt:
        assert comm.rank == 0
    except swingcoll.Error as error:
        assert comm.rank and error.errno == errno.ECONNABORTED, error


# ---- handlers of signals that raise ----


class Struck(Exception):
    """Raised by the handler of a signal."""


class Striker:
    """Calls functions under a timer whose handler raises, at a random moment of about half of the calls."""

    def __init__(self):
        def strike(*_):
            # The interpreter may call this some time after the signal.
            if self.armed:
                raise Struck

        # The timer is that of the alarm which ends a rank that hangs.
        faulthandler.dump_traceback_later(110, exit=True)
        signal.signal(signal.SIGALRM, strike)
        sys.unraisablehook = lambda _: None  # it may also come while an object is finalized
        self.spread, self.hits, self.armed = 1e-3, 0, False

    def __call__(self, function, *args):
        """What the function returns, or None if it was struck."""
        try:
            self.armed = True
            signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, self.spread))
            value = function(*args)
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.armed = False
        except Struck:
            self.armed = False
            self.spread *= 1.05
            self.hits += 1
            return None
        self.spread *= 0.95
        return value


def strike_blocked(function):
    """A call that rank 0 strikes by strike_reader() while it blocks."""

    def strike(*_):
        raise Struck

    signal.signal(signal.SIGUSR1, strike)
    try:
        os.write(GATE[1], os.getpid().to_bytes(4, "little"))
        function()
        time.sleep(60)
    except Struck:
        return
    raise AssertionError("not struck")


def strike_reader():
    """Strike the rank that is in strike_blocked()."""
    pid = int.from_bytes(os.read(GATE[0], 4), "little")
    time.sleep(0.1)
    os.kill(pid, signal.SIGUSR1)


def struck_wait(comm):
    """The request of a wait that is struck is done, and not taken for the next one, which has its place."""
    one = array.array("q", [1])
    for _ in range(5):
        outs = [array.array("q", [0]), array.array("q", [0])]
        if comm.rank:
            first = comm.Iallreduce(one, outs[0])
            strike_blocked(first.Wait)
            second = comm.Iallreduce(one, outs[1])
            first.Wait()
            os.write(GATE[1], b"x")
        else:
            strike_reader()
            comm.Allreduce(one, outs[0])
            os.read(GATE[0], 1)
            second = comm.Iallreduce(one, outs[1])
        second.Wait()
        equal(outs, [array.array("q", [2])] * 2)


def struck_test(comm):
    """The same of a Test() that is struck."""
    strike, one = Striker(), array.array("q", [1])
    for _ in range(200 if SHORT else 1000):
        outs = [array.array("q", [0]), array.array("q", [0])]
        first = comm.Iallreduce(one, outs[0])
        if comm.rank:
            os.read(BACK[0], 1)
            strike(first.Test)
            second = comm.Iallreduce(one, outs[1])
            first.Wait()
            os.write(GATE[1], b"x")
        else:
            first.Wait()
            os.write(BACK[1], b"x")
            os.read(GATE[0], 1)
            second = comm.Iallreduce(one, outs[1])
        second.Wait()
        equal(outs, [array.array("q", [2])] * 2)
    assert not comm.rank or strike.hits > 10, strike.hits


def struck_calls(comm):
    """Collectives that are struck anywhere leave none behind: as many as ever can be in flight."""
    strike, ones = Striker(), array.array("q", [1] * 50)

    def whole():
        comm.Iallreduce(ones, array.array("q", [0] * 50)).Wait()

    def polled():
        request = comm.Ireduce_scatter_block(swingcoll.IN_PLACE, array.array("q", [0] * 50))
        while not request.Test():
            pass

    for i in range(1000 if SHORT else 5000):
        strike(polled if i % 2 else whole)
        out = array.array("q", [0] * 50)
        request = comm.Iallreduce(ones, out)
        while not request.Test() and not strike(request.Test):
            pass
        request.Wait()
        equal(out, ones)
    assert strike.hits > 10, strike.hits
    outs = [array.array("q", [0] * 50) for _ in range(64)]
    swingcoll.Request.Waitall([comm.Iallreduce(ones, out) for out in outs])
    equal(outs, [ones] * 64)


def struck_partitioned(comm):
    """A partitioned collective that is struck can be used as if the call had, or had not, been made."""
    strike, data = Striker(), array.array("i", [7, 8])
    for _ in range(200 if SHORT else 1000):
        strike(comm.Pallreduce_init, swingcoll.IN_PLACE, array.array("i", [1, 1]), 2)
        p = comm.Pallreduce_init(swingcoll.IN_PLACE, data, 2)
        strike(p.Start)
        try:
            p.Start()
        except swingcoll.Error as error:
            assert error.errno == errno.EBUSY, error
        p.Pready(0)
        p.Pready(1)
        p.Wait()
        strike(p.Free)
        p.Free()
    assert strike.hits > 10, strike.hits
    comm.Barrier()


def struck_rounds(rank, size, ident):
    """A round whose Start() is struck is aborted when it is dropped, and not waited for."""
    strike = Striker()
    for _ in range(50 if SHORT else 200):
        with comm_of(rank, size, swingcoll.unique_id()) as comm:
            p = comm.Pallreduce_init(swingcoll.IN_PLACE, array.array("i", [1, 1]), 2)
            strike(p.Start)
            del p
    assert strike.hits > 5, strike.hits


def struck_creation(rank, size, ident):
    """A communicator whose creation is struck is left: the other rank sees that before the deadline."""
    if rank:
        strike_blocked(lambda: comm_of(rank, size, ident))
        os.read(BACK[0], 1)
        return
    strike_reader()
    try:
        with comm_of(rank, size, ident, timeout=20) as comm:
            comm.Barrier()
        raise AssertionError("no error")
    except swingcoll.Error as error:
        assert error.errno == errno.ECONNRESET, error
    finally:
        os.write(BACK[1], b"x")


def marked_at_once(comm):
    """Marks of a thread that come as soon as the round has begun count."""
    for _ in range(100 if SHORT else 500):
        p = comm.Pallreduce_init(swingcoll.IN_PLACE, array.array("i", [1, 1]), 2)

        def mark(p=p):
            for i in range(2):
                while True:
                    try:
                        p.Pready(i)
                        break
                    except swingcoll.Error as error:
                        assert error.errno == errno.EINVAL, error

        thread = threading.Thread(target=mark)
        thread.start()
        p.Start()
        thread.join()
        p.Wait()
        del p, mark, thread  # a round that were not complete would abort
        comm.Barrier()


def cycles(rank, size, ident):
    """A communicator that dies in a cycle of objects with what is in flight."""
    # Memory that is freed is overwritten: M_PERTURB of mallopt(3).
    ctypes.CDLL(None).mallopt(-6, 0xAA)
    gc.disable()

    class Holder:
        pass

    holder = Holder()
    holder.comm, holder.itself = comm_of(rank, size, ident), holder
    holder.request = holder.comm.Iallreduce(array.array("q", [1] * 1000), array.array("q", [0] * 1000))
    holder.partitioned = holder.comm.Pallreduce_init(swingcoll.IN_PLACE, array.array("q", [1] * 1000), 4)
    holder.partitioned.Start()
    for i in range(4):
        holder.partitioned.Pready(i)
    del holder
    assert gc.collect() > 0


def arrays(comm):
    """NumPy: shapes, complex, half, and the protocol of DLPack alone."""

    class OnlyDLPack:
        def __init__(self, of):
            self.__dlpack__, self.__dlpack_device__ = of.__dlpack__, of.__dlpack_device__

    for kind in ("float16", "float32", "complex64", "complex128", "int8", "uint64"):
        mine = numpy.arange(24).reshape(2, 3, 4).astype(kind)
        out = numpy.zeros_like(mine)
        comm.Allreduce(mine, out)
        assert (out == comm.size * mine).all(), kind
        if kind[0] != "c":
            out = numpy.zeros_like(mine)
            comm.Allreduce(OnlyDLPack(mine), OnlyDLPack(out))
            assert (out == comm.size * mine).all(), kind
    counts = numpy.ones(comm.size, "uint64")
    out = numpy.zeros(comm.size, "int32")
    comm.Gatherv(numpy.array([comm.rank], "int32"), out if not comm.rank else None, counts)
    assert comm.rank or out.tolist() == list(range(comm.size)), out
    empty = numpy.zeros((0, 3))
    comm.Allreduce(empty, empty.copy())
    gaps = numpy.zeros((4, 4))[:, ::2]
    for bad in (gaps, OnlyDLPack(gaps)):
        try:
            comm.Bcast(bad)
            raise AssertionError("a buffer with gaps was taken")
        except ValueError as error:
            assert "contiguous" in str(error), error


def garbage():
    """A buffer that a cycle of objects holds is collected with it."""
    for _ in range(10):
        buffer = swingcoll.parse(array.array("f", [1] * 100))
        error = ValueError(buffer)
        error.itself = error
        del buffer, error
        gc.collect()
    return True


def refused(comm):
    """Arguments that are wrong on every rank alike raise in one line, and change nothing."""
    f, g = array.array("f", [1]), array.array("f", [1, 2])
    # As many elements as root has, of twice the size.
    d, all_f, ones = array.array("d", [1]), array.array("f", [1] * comm.size), [1] * comm.size
    cases = [
        (ValueError, "equal", lambda: comm.Allreduce(f, g)),
        (ValueError, "recv float", lambda: comm.Allreduce(array.array("i", [1]), f)),
        (ValueError, "recv int", lambda: comm.Reduce(f, array.array("i", [1]), root=comm.rank)),
        (ValueError, "recv uint", lambda: comm.Reduce_scatter_block(all_f, array.array("I", [1]))),
        (ValueError, "recv bool", lambda: comm.Iallreduce(bytearray(1), (ctypes.c_bool * 1)())),
        (ValueError, "recv float", lambda: comm.Pallreduce_init(array.array("q", [1]), d, 1)),
        (ValueError, "0 partitions", lambda: comm.Pallreduce_init(d, d, 0)),
        (ValueError, "read-only", lambda: comm.Bcast(swingcoll.parse(b"1"), root=comm.size)),
        (ValueError, "read-only", lambda: comm.Allreduce(f, b"1234")),
        (TypeError, "buffer protocol", lambda: comm.Bcast(3)),
        (TypeError, "BAND", lambda: comm.Allreduce(f, f, op=swingcoll.BAND)),
        (swingcoll.Error, "root 9", lambda: comm.Bcast(f, root=9)),
        (ValueError, "elements", lambda: comm.Bcast([f, 2])),
        (ValueError, "bytes of counts", lambda: comm.Gatherv(d, all_f, ones, comm.rank)),
        (ValueError, "bytes of counts", lambda: comm.Scatterv(all_f, d, ones, comm.rank)),
    ]
    for kind, text, call in cases:
        try:
            call()
            raise AssertionError(f"no {kind.__name__}: {text}")
        except kind as error:
            assert text in str(error), error
    comm.Allreduce(f, array.array("f", [0]))


# ---- failures ----


def death(comm):
    """Rank 1 dies: the others' exceptions name it, and the rest goes on without it."""
    # All have the communicator; after a barrier some might still be in it.
    assert comm.Agree(3) == 3
    if comm.rank == 1:
        die()
    out = array.array("d", [0])
    try:
        comm.Allreduce(array.array("d", [1]), out)
        raise AssertionError("no error")
    except swingcoll.Error as error:
        assert error.failed and error.rank == 1 and "rank 1" in str(error), (error, error.rank)
    try:
        comm.Agree(6 | comm.rank)
        raise AssertionError("no error")
    except swingcoll.Error as error:
        assert error.errno == errno.ECONNRESET and error.flag == 6, (error, error.flag)
    assert comm.Get_failed() == [1] and comm.Agree(5) == 5
    rest = comm.Shrink()
    rest.Allreduce(array.array("d", [1]), out)
    equal(out, [comm.size - 1])
    rest.Free()


def deadline(comm):
    """Rank 0 does not come: the others get TimeoutError, which names it."""
    if comm.rank == 0:
        os.read(GATE[0], 1)
        return
    try:
        comm.Iallreduce(array.array("d", [1]), array.array("d", [0])).Wait()
        raise AssertionError("no error")
    except TimeoutError as error:
        assert error.errno == errno.ETIMEDOUT and error.rank == 0 and "rank 0" in str(error), (error, error.rank)
    finally:
        os.write(GATE[1], b"x")


def threads_run(comm):
    """Another thread runs while a rank waits. It gets the interpreter's lock only from the waiting call."""
    if comm.rank == 1:
        os.read(GATE[0], 1)
        comm.Barrier()
        return
    held = threading.Lock()
    held.acquire()

    def other():
        with held:
            os.write(GATE[1], b"x")

    thread = threading.Thread(target=other)
    thread.start()
    sys.setswitchinterval(1000)
    held.release()
    comm.Barrier()
    thread.join()


def forked(comm):
    """A child of a fork frees what its parent has made, though a thread of the parent's waits for it."""
    if comm.rank == 1:
        os.read(GATE[0], 1)
        comm.Iallreduce(swingcoll.IN_PLACE, array.array("d", [2])).Wait()
        return
    sums = array.array("d", [1])
    request = comm.Iallreduce(swingcoll.IN_PLACE, sums)
    waiter = threading.Thread(target=request.Wait)
    waiter.start()
    # It sleeps in the kernel, or is about to.
    while os.path.exists(f"/proc/self/task/{waiter.native_id}/stat") and " S " not in open(
        f"/proc/self/task/{waiter.native_id}/stat", encoding="ascii"
    ).read():
        pass
    for k in range(4):
        pid = os.fork()
        if not pid:
            wrong = 1
            try:
                if k % 2:
                    comm.Free()
                    wrong = 0
                else:
                    request.Wait()
            except swingcoll.Error as error:
                wrong = error.errno != errno.EBADF
            finally:
                os._exit(wrong)
        assert os.waitpid(pid, 0)[1] == 0
    os.write(GATE[1], b"x")
    waiter.join()
    equal(sums, [3])


def by_files(rank, size, folder):
    """Ranks that find each other by a function of Python's."""
    turn = 0

    def allgather(mine):
        nonlocal turn
        turn += 1
        name = os.path.join(folder, f"{turn}.")
        with open(f"{name}{rank}.new", "wb") as file:
            file.write(mine)
        os.rename(f"{name}{rank}.new", f"{name}{rank}")
        parts = []
        for r in range(size):
            while not os.path.exists(f"{name}{r}"):
                time.sleep(0.01)
            with open(f"{name}{r}", "rb") as file:
                parts.append(file.read())
        return parts

    with swingcoll.Comm.from_allgather(allgather, rank, size) as comm:
        moving(comm)


def by_environment(rank, size):
    os.environ.update(SWINGCOLL_ROOT="127.0.0.1:29555", SWINGCOLL_RANK=str(rank), SWINGCOLL_NRANKS=str(size))
    with swingcoll.Comm.auto(timeout=60) as comm:
        assert (comm.rank, comm.size, comm.nodes) == (rank, size, 1)
        assert comm.rank_node(size - 1) == 0
        moving(comm)


def no_exchange(kind):
    def bad(_):
        raise kind("no exchange")

    try:
        swingcoll.Comm.from_allgather(bad, 0, 2)
    except kind:
        return True
    except swingcoll.Error as error:
        print(f"# {error}")
    return False


def doctests():
    names = ("", "._types", "._buffers", "._create", "._requests", "._comm")
    modules = [sys.modules["swingcoll" + name] for name in names]
    tests = [doctest.testmod(module) for module in modules]
    return sum(t.attempted for t in tests) >= 10 and not sum(t.failed for t in tests)


plan(31)
result(doctests(), "doctests")
result(garbage(), "buffers in cycles of objects")
on_ranks("reductions of all types", reductions)
on_ranks("bool and bfloat16", special_types)
on_ranks("all collectives, also in place", moving)
on_ranks("requests, waited for and awaited", requests)
on_ranks("partitioned", partitioned)
for count in (0, 3):
    good = [run_ranks(n, left_rounds, swingcoll.unique_id(), count) for n in (1, 2)]
    result(all(good), f"an exception in a round with {count} of 6 partitions marked, 1, 2 ranks")
on_ranks("rounds that are dropped", dropped_rounds, (1, 2))
on_ranks("Ctrl-C while waiting for a round", interrupted_wait, (1, 2))
GATE = os.pipe()
on_ranks("a wait that a signal's handler ends by an exception", struck_wait, (2,), timeout=10)
GATE, BACK = os.pipe(), os.pipe()
on_ranks("tests that handlers end", struck_test, (2,), timeout=10)
on_ranks("collectives that handlers end", struck_calls, (1,))
on_ranks("partitioned collectives that handlers end", struck_partitioned, (1,))
result(run_ranks(1, struck_rounds, None), "rounds that handlers end, 1 rank")
GATE, BACK = os.pipe(), os.pipe()
result(run_ranks(2, struck_creation, swingcoll.unique_id()), "a creation that a handler ends, 2 ranks")
on_ranks("a thread that marks as a round begins", marked_at_once, (1,))
for count in (1, 2):
    result(run_ranks(count, cycles, swingcoll.unique_id()), f"a communicator in a cycle, {count} ranks")
if numpy:
    on_ranks("arrays of NumPy", arrays)
else:
    skip("arrays of NumPy", "no numpy: apt-get install python3-numpy")
on_ranks("wrong arguments", refused, (1, 3))
on_ranks("a rank that dies", death, (3,), killed=(1,))
GATE = os.pipe()
on_ranks("a rank that does not come", deadline, (2,), timeout=5)
GATE = os.pipe()
on_ranks("other threads run", threads_run, (2,))
GATE = os.pipe()
on_ranks("forks while a thread waits", forked, (2,))
with tempfile.TemporaryDirectory() as tmp:
    result(run_ranks(3, by_files, tmp), "ranks that exchange bytes by a function, 3 ranks")
result(run_ranks(2, by_environment), "ranks of a launcher, 2 ranks")
result(no_exchange(KeyError), "an exchange that raises")
result(no_exchange(KeyboardInterrupt), "an exchange that Ctrl-C ends")
try:
    swingcoll.Comm.create(b"short", 1, 0)
    result(False, "an id that is too short")
except ValueError:
    result(True, "an id that is too short")
finish()
