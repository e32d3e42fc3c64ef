#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The backend of torch.distributed: every collective, messages, works and futures, groups and stores,
DDP, training in shards, and failures.

PyTorch is imported once, and the ranks are forked. The long form, without SWC_TEST_SHORT, adds 4 ranks, and torchrun.
"""

import contextlib
import ctypes
import datetime
import functools
import os
import resource
import subprocess
import sys
import tempfile
import threading
import warnings

from py_testlib import (
    die,
    finish,
    need_device,
    need_modules,
    plan,
    result,
    run_ranks,
    skip,
    start_ranks,
    wait_ranks,
)

if sys.argv[1:] != ["--rank"]:
    need_device()
need_modules("tools/setup torch, make lib", "torch", "_cffi_backend", "swingcoll", "swingcoll._torch")
import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer

import swingcoll.torch

try:
    import torch.distributed._functional_collectives as funcol
except ImportError:
    funcol = None

warnings.simplefilter("ignore")  # PyTorch's, about what it may drop
torch.set_num_threads(1)
SHORT = os.environ.get("SWC_TEST_SHORT")
TMP = tempfile.mkdtemp()


def begin(rank, size, name, seconds=60):
    """A group of all ranks, by a file."""
    limit = datetime.timedelta(seconds=seconds)
    dist.init_process_group("swingcoll", init_method=f"file://{TMP}/{name}", rank=rank, world_size=size, timeout=limit)


def on_ranks(name, function, sizes=(2, 4), killed=(), **options):
    """One result: function(rank, size) on ranks of each size, in a group."""

    def run(rank, size):
        begin(rank, size, f"{function.__name__}.{size}", **options)
        function(rank, size)
        dist.destroy_process_group()

    sizes = sizes[:1] if SHORT else sizes
    good = [run_ranks(size, run, killed=killed) for size in sizes]
    result(all(good), f"{name}, {', '.join(map(str, sizes))} ranks")


def same(have, want):
    assert have.dtype == want.dtype and have.shape == want.shape and torch.equal(have, want), f"{have} and not {want}"


def raises(kind, text, call):
    """The call fails with one line that has the text."""
    try:
        call()
    except kind as error:
        assert text in str(error) and "\n" not in str(error).strip(), error
        return
    raise AssertionError(f"no {kind.__name__}: {text}")


KINDS = (
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.half,
    torch.bfloat16,
    torch.float,
    torch.double,
)
MOVED = KINDS + (torch.bool, torch.complex64)


def numbers(rank, count, kind=torch.float):
    """Small whole numbers: exact in every type."""
    return ((torch.arange(count) * 2 + rank) % 3).to(kind)


def reductions(rank, size):
    everyone = torch.stack([numbers(r, 1000, torch.int64) for r in range(size)])
    for kind in KINDS:
        for op, want in (
            (dist.ReduceOp.SUM, everyone.sum(0)),
            (dist.ReduceOp.PRODUCT, everyone.prod(0)),
            (dist.ReduceOp.MIN, everyone.min(0).values),
            (dist.ReduceOp.MAX, everyone.max(0).values),
        ):
            mine = numbers(rank, 1000, kind)
            dist.all_reduce(mine, op)
            same(mine, want.to(kind))
            mine = numbers(rank, 1000, kind)
            dist.reduce(mine, size - 1, op)
            same(mine, want.to(kind) if rank == size - 1 else numbers(rank, 1000, kind))
    truth = torch.tensor([rank == 0, True, False])
    dist.all_reduce(truth)
    same(truth, torch.tensor([True, True, False]))
    whole = torch.tensor([1 << rank, 3])
    dist.all_reduce(whole, dist.ReduceOp.BOR)
    same(whole, torch.tensor([(1 << size) - 1, 3]))
    pair = torch.tensor([complex(rank, 1)])
    dist.all_reduce(pair)
    same(pair, torch.tensor([complex(sum(range(size)), size)]))
    # Gaps, and no elements.
    square = numbers(rank, 16).view(4, 4)
    dist.all_reduce(square[:, 1])
    want = numbers(rank, 16).view(4, 4)
    want[:, 1] = sum(numbers(r, 16).view(4, 4)[:, 1] for r in range(size))
    same(square, want)
    dist.all_reduce(torch.empty(0))
    both = [numbers(rank, 5), numbers(rank, 7).view(7, 1)]
    dist.all_reduce_coalesced(both)
    same(both[1], sum(numbers(r, 7).view(7, 1) for r in range(size)))


def moving(rank, size):
    for kind in MOVED:
        mine = numbers(rank, 6, kind).view(2, 3)
        everyone = [numbers(r, 6, kind).view(2, 3) for r in range(size)]
        out = [torch.zeros_like(mine) for _ in range(size)]
        dist.all_gather(out, mine)
        same(torch.stack(out), torch.stack(everyone))
        out = torch.zeros((2 * size, 3), dtype=kind)
        dist.all_gather_into_tensor(out, mine)
        same(out, torch.cat(everyone))
        copy = mine.clone()
        dist.broadcast(copy, size - 1)
        same(copy, everyone[-1])
        out = [torch.zeros_like(mine) for _ in range(size)] if rank == 1 else None
        dist.gather(mine, out, dst=1)
        assert rank != 1 or torch.equal(torch.stack(out), torch.stack(everyone))
        copy = torch.zeros_like(mine)
        dist.scatter(copy, everyone if rank == 1 else None, src=1)
        same(copy, mine)
    gaps = torch.zeros(size, 4)[:, ::2]
    dist.all_gather(list(gaps.unbind()), torch.tensor([rank, 7.0]))
    same(gaps, torch.tensor([[r, 7.0] for r in range(size)]))
    gaps = torch.zeros(size, 4)[:, ::2]
    dist.gather(torch.tensor([rank, 7.0]), list(gaps.unbind()) if rank == 0 else None)
    assert rank or torch.equal(gaps, torch.tensor([[r, 7.0] for r in range(size)]))
    part = torch.zeros(4)[::2]
    dist.scatter(part, list(gaps.unbind()) if rank == 0 else None)
    same(part, torch.tensor([rank, 7.0]))
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * rank})
    assert objects == [{"rank": r, "text": "x" * r} for r in range(size)]


def scattering(rank, size):
    """reduce_scatter, all_to_all: lists, tensors, unequal parts, parts without elements."""
    for kind in (torch.float, torch.bfloat16, torch.int64):
        parts = [numbers(rank + r, 5, kind) for r in range(size)]
        want = sum(numbers(r + rank, 5, torch.int64) for r in range(size)).to(kind)
        out = torch.zeros(5, dtype=kind)
        dist.reduce_scatter(out, parts)
        same(out, want)
        out = torch.zeros(5, dtype=kind)
        dist.reduce_scatter_tensor(out, torch.cat(parts))
        same(out, want)
        out = torch.zeros(5 * size, dtype=kind)
        dist.all_to_all_single(out, torch.cat(parts))
        same(out, torch.cat([numbers(r + rank, 5, kind) for r in range(size)]))
        out = [torch.zeros(5, dtype=kind) for _ in range(size)]
        dist.all_to_all(out, parts)
        same(torch.cat(out), torch.cat([numbers(r + rank, 5, kind) for r in range(size)]))
    # Rank r sends r * s rows to rank s.
    send = torch.full((rank * sum(range(size)), 2), float(rank))
    out = torch.zeros((rank * sum(range(size)), 2))
    dist.all_to_all_single(out, send, [rank * r for r in range(size)], [rank * s for s in range(size)])
    same(out, torch.cat([torch.full((rank * r, 2), float(r)) for r in range(size)]))
    # Gradients in parts, as optimizers that shard their state do.
    shard, whole = torch.zeros(100), torch.zeros(100 * size)
    dist.reduce_scatter_tensor(shard, numbers(rank, 100 * size))
    dist.all_gather_into_tensor(whole, shard)
    same(whole, sum(numbers(r, 100 * size) for r in range(size)))


def functional(rank, size):
    """The functional collectives of PyTorch 2, by which its DTensor works."""
    mine, both = numbers(rank, 6).view(2, 3), [numbers(rank, 6).view(2, 3), numbers(rank, 4)]
    everyone = [[numbers(r, 6).view(2, 3) for r in range(size)], [numbers(r, 4) for r in range(size)]]
    same(funcol.all_gather_tensor(mine, 0, dist.group.WORLD).wait(), torch.cat(everyone[0]))
    for have, want in zip(funcol.all_gather_into_tensor_coalesced(both, dist.group.WORLD), everyone):
        same(have.wait(), torch.cat(want))
    for have, want in zip(funcol.all_reduce_coalesced(both, "sum", dist.group.WORLD), everyone):
        same(have.wait(), sum(want))
    wholes = [torch.cat([part + r for r in range(size)]) for part in both]
    wants = [sum(part + rank for part in parts) for parts in everyone]
    same(funcol.reduce_scatter_tensor(wholes[0], "sum", 0, dist.group.WORLD).wait(), wants[0])
    sums = funcol.reduce_scatter_tensor_coalesced(wholes, "sum", [0, 0], dist.group.WORLD)
    averages = funcol.reduce_scatter_tensor_coalesced(wholes, "avg", [0, 0], dist.group.WORLD)
    for have, average, want in zip(sums, averages, wants):
        same(have.wait(), want)
        same(average.wait(), want / size)
    rows = funcol.all_to_all_single(torch.full((size, 2), float(rank)), None, None, dist.group.WORLD)
    same(rows.wait(), torch.arange(float(size)).view(size, 1).expand(size, 2).contiguous())
    mixed = [wholes[0], wholes[1].double()]
    raises(
        ValueError,
        "the same type",
        lambda: funcol.reduce_scatter_tensor_coalesced(mixed, "sum", [0, 0], dist.group.WORLD),
    )


def exchange(rank, size, each, kind=dist.all_to_all_single):
    """An all_to_all in flight of so many elements per rank, more from higher ranks, and its check."""
    parts = [torch.full((each * (rank + 1),), float(rank + r)) for r in range(size)]
    out = [torch.zeros(each * (r + 1)) for r in range(size)]
    want = torch.cat([torch.full((each * (r + 1),), float(rank + r)) for r in range(size)])
    if kind is dist.all_to_all:
        work = kind(out, parts, async_op=True)
        return work, lambda: same(torch.cat(out), want)
    whole = torch.zeros(len(want))
    counts = [len(o) for o in out], [len(p) for p in parts]
    work = kind(whole, torch.cat(parts), *counts, async_op=True)
    return work, lambda: same(whole, want)


def unsent(rank, size):
    """An all_to_all does not wait for the other ranks, nor does what comes behind it; it goes on by itself.

    The deadline of the group is behind that of the test.
    """
    messages, byte = dist.new_group(backend="gloo"), torch.zeros(1)
    for i in range(20):
        # The message comes before the other ranks call it.
        if rank:
            dist.recv(byte, 0, group=messages)
        flight = [exchange(rank, size, 3), exchange(rank, size, i, dist.all_to_all)]
        whole = torch.full((10,), float(rank))
        reduced = dist.all_reduce(whole, async_op=True)
        flight.append(exchange(rank, size, 500))
        doubled = reduced.get_future().then(lambda done: done.value()[0] * 2)
        if rank == 0:
            assert not any(work.is_completed() for work in [reduced] + [work for work, _ in flight])
            for r in range(1, size):
                dist.send(byte, r, group=messages)
        for work, check in flight if i % 2 else reversed(flight):
            work.wait()
            check()
        same(doubled.wait(), torch.full((10,), 2.0 * sum(range(size))))
    for r in range(1, size):
        # Rank 0 waits for none of its own until the others have theirs.
        work, check = exchange(rank, size, 7)
        if rank == r:
            work.wait()
            dist.send(byte, 0, group=messages)
        if rank == 0:
            dist.recv(byte, r, group=messages)
        work.wait()
        check()
    # More than the library has places for, and a callback that needs others.
    flight = []
    for i in range(100):
        flight += [exchange(rank, size, i), (dist.all_reduce(torch.ones(1000), async_op=True), lambda: None)]
    for work, check in reversed(flight):
        work.wait()
        check()
    work, check = exchange(rank, size, 7)

    def again(_):
        inner, done = exchange(rank, size, 9)
        inner.wait()
        done()
        return whole

    same(work.get_future().then(again).wait(), whole)
    check()


def works(rank, size):
    """Many in flight, dropped, by future; the profiler sees them."""
    tensors = [torch.full((100,), float(i + rank)) for i in range(200)]
    pending = [dist.all_reduce(t, async_op=True) for t in tensors]
    for work in reversed(pending):
        work.wait()
        assert work.is_completed()
    for i, t in enumerate(tensors):
        same(t, torch.full((100,), float(size * i + sum(range(size)))))
    seen = []
    work = dist.all_reduce(torch.ones(10), async_op=True)
    chained = work.get_future().then(lambda f: seen.append(f.value()[0].sum().item()) or f.value()[0] * 2)
    same(chained.wait(), torch.full((10,), 2.0 * size))
    assert seen == [10.0 * size]
    work.wait()
    assert work.get_future().done()

    def nested(depth):
        """Callbacks wait for futures of later works, as those of PyTorch's PowerSGD do."""
        future = dist.all_reduce(torch.full((10,), depth + 1.0), async_op=True).get_future()
        return future.then(lambda f: nested(depth - 1) if depth else f.value()[0]).wait()

    same(nested(4), torch.full((10,), 1.0 * size))
    dist.all_reduce(torch.ones(10), async_op=True).wait(datetime.timedelta(seconds=50))
    # A thread copies the result to a tensor of inference_mode().
    with torch.inference_mode():
        spread = torch.ones(4, 6).t()
        dist.all_reduce(spread, async_op=True).get_future().wait()
        same(spread, torch.full((6, 4), 1.0 * size))
    for _ in range(100):
        dist.all_reduce(torch.ones(100000), async_op=True)
    with torch.profiler.profile() as seen:
        dist.all_reduce(torch.ones(10))
    assert any("swingcoll:all_reduce" in e.key for e in seen.key_averages()), [e.key for e in seen.key_averages()]
    dist.barrier()


@contextlib.contextmanager
def no_threads():
    """No thread can be made. The limit does not concern root."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (0, hard))
    try:
        raises(RuntimeError, "can't start new thread", threading.Thread(target=int).start)
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))


def threadless(rank, size):
    """A thread that cannot be made is an exception, and no work is lost: its waiter or a thread that is there ends it.

    Rank 0 asks for its futures before rank 1 comes.
    """
    os.chmod(TMP, 0o755)
    os.chmod(f"{TMP}/threadless.{size}", 0o666)
    other, third = dist.new_group(range(size)), dist.new_group(range(size))
    if not os.getuid():
        os.setresuid(65534, 65534, 65534)

    def come():
        os.write(COME[1], b"x") if rank == 0 else os.read(COME[0], 1)

    same_all = functools.partial(same, torch.full((4,), float(size)))
    more = []

    def again(done):
        """Runs in the only finisher, while the second work waits for one."""
        more.append(dist.all_reduce(torch.ones(4), async_op=True))
        if rank == 0:
            raises(RuntimeError, "no thread for futures", more[0].get_future)
        more[0].wait()
        return done.value()[0]

    if rank:
        come()
    works = [dist.all_reduce(torch.ones(4), async_op=True) for _ in range(2)]
    if rank == 0:
        chained, second = works[0].get_future().then(again), works[1].get_future()
        with no_threads():
            come()
            same_all(chained.wait())
            same_all(second.wait()[0])
        same_all(more[0].get_future().wait()[0])
    else:
        same_all(works[0].get_future().then(again).wait())
    # No finisher is there at all.
    if rank:
        come()
    work = dist.all_reduce(torch.ones(4), group=other, async_op=True)
    if rank == 0:
        with no_threads():
            for _ in range(2):
                raises(RuntimeError, "no thread for futures", work.get_future)
            raises(RuntimeError, "no thread for futures", lambda: work.wait(datetime.timedelta(seconds=50)))
            come()
            work.wait()
            same_all(work.get_future().wait()[0])
    work.wait()
    word, rows = torch.tensor([float(rank)]), torch.arange(float(size))
    with no_threads():
        raises(RuntimeError, "no thread for all_to_all", lambda: dist.all_to_all_single(rows, rows, group=other))
        raises(RuntimeError, "no thread for all_to_all", lambda: (dist.recv if rank else dist.send)(word, 1 - rank))
        dist.all_reduce(torch.ones(4), group=third, async_op=True)
        dist.destroy_process_group(third)
        del third
    dist.all_to_all_single(torch.zeros(size), rows, group=other)
    (dist.recv if rank else dist.send)(word, 1 - rank)
    same(word, torch.tensor([0.0]))
    dist.barrier()


def of_parent(rank, size, works, last):
    """In a child of a fork: every call says whose the group is. A new group works. Ends as a program does."""
    for call in (
        lambda: dist.all_reduce(torch.ones(4)),
        lambda: dist.all_to_all_single(torch.ones(size), torch.ones(size)),
        lambda: dist.send(torch.ones(4), 1 - rank),
        lambda: dist.send(torch.ones(4), 1 - rank, tag=9),
        swingcoll.torch.monitored_barrier,
    ):
        raises(RuntimeError, "parent process", call)
    for work in works:
        for call in (work.wait, work.is_completed, work.get_future, lambda: work.wait(datetime.timedelta(seconds=1))):
            raises(RuntimeError, "parent process", call)
    del works, work, call
    dist.destroy_process_group()
    begin(0, 1, f"child.{os.getpid()}")
    one = torch.ones(4)
    dist.all_reduce(one, async_op=True).get_future().wait()
    same(one, torch.ones(4))
    if last:
        ctypes.pythonapi.Py_Exit(0)


def forked(rank, size):
    """A child of a fork neither hangs nor harms its parent, whatever the parent's threads do at the fork.

    Rank 1 comes when the children of rank 0 have ended.
    """
    tensors = [torch.full((50000,), float(rank + i)) for i in range(4)]
    rows, word = torch.full((size,), float(rank)), torch.zeros(1)
    if rank:
        os.read(COME[0], 1)
    # One waits for the kernel, one for its turn, one for its sender, and one for what is behind that.
    works = [dist.all_reduce(tensors[i], async_op=True) for i in range(2)]
    works.append((dist.isend if rank == 0 else dist.irecv)(word, 1 - rank, tag=9))
    out = torch.zeros(size)
    works += [dist.all_to_all_single(out, rows, async_op=True), dist.all_reduce(tensors[2], async_op=True)]
    futures = [work.get_future() for work in works if work is not works[1]]
    if rank == 0:
        waiter = threading.Thread(target=works[1].wait)
        waiter.start()
        for i in range(4):
            pids = start_ranks(1, lambda *_: of_parent(rank, size, works, i % 2))
            assert wait_ranks(pids)
        os.write(COME[1], b"x")
        waiter.join()
    for work in works:
        work.wait()
    for future in futures:
        future.wait()
    for i in range(3):
        same(tensors[i], torch.full((50000,), float(sum(r + i for r in range(size)))))
    same(out, torch.arange(float(size)))
    dist.barrier()


def answers(rank, size):
    """Callbacks of messages send messages, while this thread posts further ones."""
    count, acks = 300, []
    if rank == 0:
        sent = [dist.isend(torch.full((1,), float(i)), 1) for i in range(count)]
        sent += [dist.irecv(torch.zeros(1), 1, tag=1) for _ in range(count)]
        for work in sent:
            work.wait()
    else:

        def answer(future):
            acks.append(dist.isend(torch.ones(1), 0, tag=1))
            return future.value()

        futures = [dist.irecv(torch.zeros(1), 0).get_future().then(answer) for _ in range(count)]
        for future in futures:
            future.wait()
        for ack in acks:
            ack.wait()
    dist.barrier()


def refused(rank, size):
    raises(ValueError, "to_dense", lambda: dist.all_reduce(torch.eye(3).to_sparse()))
    raises(ValueError, "gloo", lambda: dist.recv(torch.ones(1)))
    world = swingcoll.torch._backend_of(None)
    # By its other functions, PyTorch gives a copy of such a view to every backend, and drops the result.
    if not torch.__version__.startswith("1."):
        negated = torch.tensor([1 + 2j]).conj().imag
        raises(ValueError, "resolve_neg", lambda: world.allreduce([negated]))
        raises(ValueError, "resolve_neg", lambda: world.allgather([[torch.ones(1) for _ in range(size)]], [negated]))
    raises(ValueError, "itself", lambda: world.send([torch.ones(1)], rank, 0))
    raises(ValueError, "rank 9", lambda: world.recv([torch.ones(1)], 9, 0))
    raises(ValueError, "not defined", lambda: dist.all_reduce(torch.ones(1), dist.ReduceOp.BAND))
    uneven = [torch.ones(1), torch.ones(3)]
    if rank == 0:
        raises(ValueError, "size and type", lambda: dist.scatter(torch.ones(2), uneven))
        raises(ValueError, "size and type", lambda: dist.gather(torch.ones(2), uneven))
    whole = torch.ones(size, dtype=torch.int32)
    raises(ValueError, "same type", lambda: dist.all_gather_into_tensor(whole, torch.ones(1)))
    # Rank 1 expects more of rank 0 than that sends.
    send, recv = [2] * size, [4 if rank == 1 else 2, *[2] * (size - 1)]
    try:
        dist.all_to_all_single(torch.zeros(sum(recv)), torch.ones(sum(send)), recv, send)
        assert rank != 1
    except RuntimeError as error:
        assert rank == 1 and "rank 0 sends 8 bytes, this rank expects 16" in str(error), error
    dist.barrier()


def messages(rank, size):
    """Sends and receives: all types, with gaps, by tag, both ways at once, many in flight, and unlike ones."""
    right, left = (rank + 1) % size, (rank - 1) % size
    for kind in MOVED:
        mine, theirs = numbers(rank, 6, kind).view(2, 3), torch.zeros(2, 6, dtype=kind)[:, ::2]
        if rank:
            dist.recv(theirs, left)
            dist.send(mine, right)
        else:
            dist.send(mine, right)
            dist.recv(theirs, left)
        same(theirs.contiguous(), numbers(left, 6, kind).view(2, 3))
    # All send first, more than the library has places for; what was sent last is received first, by its tag.
    many = [(tag, i) for tag in (0, 7) for i in range(70)]
    sent = [dist.isend(torch.full((3,), float(i + rank)), right, tag=tag) for tag, i in many]
    here = [torch.zeros(3) for _ in many]
    works = [dist.irecv(here[k], left, tag=many[k][0]) for k in [*range(70, 140), *range(70)]]
    for work in reversed(works):
        work.wait()
    for work in sent:
        work.wait()
    for (_, i), t in zip(many, here):
        same(t, torch.full((3,), float(i + left)))
    # Neither a message that nobody has received nor one that nobody has sent holds up a collective or the store.
    both = [torch.full((10000,), float(rank)), torch.zeros(10000), torch.zeros(0), torch.zeros(0)]
    calls = [(dist.isend, both[0], right), (dist.irecv, both[1], left)]
    if rank:
        calls.reverse()
    calls += [(dist.isend, both[2], right), (dist.irecv, both[3], left)]
    early = dist.irecv(torch.zeros(1), left, tag=9)
    other = dist.new_group(range(size))
    dist.all_reduce(torch.ones(5), group=other)
    for work in dist.batch_isend_irecv([dist.P2POp(*call) for call in calls]):
        work.wait()
    same(both[1], torch.full((10000,), float(left)))
    assert not early.is_completed()
    doubled = early.get_future().then(lambda done: done.value()[0] * 2)
    dist.send(torch.ones(1), right, group=None, tag=9)
    same(doubled.wait(), torch.tensor([2.0]))
    # In a group of the last two, whose rank 0 is rank size - 2.
    last = dist.new_group([size - 2, size - 1])
    word = torch.tensor([rank])
    if rank == size - 2:
        dist.send(word, size - 1, group=last)
        raises(RuntimeError, "rank 1", lambda: dist.send(torch.ones(4), size - 1, group=last))
    if rank == size - 1:
        dist.recv(word, size - 2, group=last)
        same(word, torch.tensor([size - 2]))
        raises(RuntimeError, "rank", lambda: dist.recv(torch.ones(5), size - 2, group=last))


def groups(rank, size):
    """Groups of some ranks, one with a backend of its own, and two at once."""
    even, odd = dist.new_group(range(0, size, 2)), dist.new_group(range(1, size, 2))
    other, messages = dist.new_group(range(size)), dist.new_group(backend="gloo")
    members = range(rank % 2, size, 2)
    a, b = torch.ones(3) * rank, torch.ones(3)
    works = [dist.all_reduce(a, group=odd if rank % 2 else even, async_op=True)]
    works.append(dist.all_reduce(b, group=other, async_op=True))
    for work in works:
        work.wait()
    same(a, torch.full((3,), float(sum(members))))
    same(b, torch.full((3,), float(size)))
    if rank < 2:
        (dist.recv if rank else dist.send)(b, 1 - rank, group=messages)
    dist.destroy_process_group(other)


def stores(rank, size, folder):
    """Every way to begin; and again, after the end. Without any, one line says what is missing."""
    second = datetime.timedelta(seconds=1)
    raises(ValueError, "no store", lambda: swingcoll.torch._torch.create(None, rank, size, second))
    raises(ValueError, "environment variable RANK", lambda: dist.init_process_group("swingcoll"))
    shared = dist.FileStore(f"{folder}/shared", size)
    for i in range(2):
        store = dist.PrefixStore(str(i), shared)
        dist.init_process_group("swingcoll", store=store, rank=rank, world_size=size)
        mine = torch.ones(2) * (rank + i)
        dist.all_reduce(mine)
        same(mine, torch.full((2,), float(sum(range(size)) + i * size)))
        dist.destroy_process_group()
    dist.init_process_group("swingcoll", init_method="tcp://127.0.0.1:29671", rank=rank, world_size=size)
    dist.barrier()
    dist.destroy_process_group()
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29672", RANK=str(rank), WORLD_SIZE=str(size))
    dist.init_process_group("swingcoll")
    dist.barrier()
    dist.destroy_process_group()


def model_of():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(20, 300), torch.nn.ReLU(), torch.nn.Linear(300, 1))


def train(model, batches, optimizer=torch.optim.SGD, loss=torch.nn.MSELoss()):
    optimizer = optimizer(model.parameters(), lr=0.05)
    for x, y in batches:
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def batches_of(rank, size):
    """What one process trains with, the rank's part of it, and the weights that the one process gets."""
    generator = torch.Generator().manual_seed(2)
    data = torch.randn(4, 8 * size, 21, generator=generator)
    batches = [(batch[:, :20], batch[:, 20:]) for batch in data]
    mine = [(x[rank * 8 : rank * 8 + 8], y[rank * 8 : rank * 8 + 8]) for x, y in batches]
    return mine, train(model_of(), batches)


def ddp(rank, size):
    """DDP with several buckets trains as one process with all data does, to the same bits on all ranks; with a hook."""
    mine, alone = batches_of(rank, size)
    for hook in (False, True):
        model = torch.nn.parallel.DistributedDataParallel(model_of(), bucket_cap_mb=0.001)
        if hook:
            state = swingcoll.torch.PartitionedHook(bytes=256)
            model.register_comm_hook(state, swingcoll.torch.partitioned_hook)
        weights = train(model, mine)
        assert torch.allclose(weights, alone, rtol=1e-4, atol=1e-6), (weights - alone).abs().max()
        everyone = [torch.zeros_like(weights) for _ in range(size)]
        dist.all_gather(everyone, weights)
        assert all(torch.equal(weights, other) for other in everyone)


def workers(rank, size):
    """Data from processes that a DataLoader forks between collectives and beside them: the same weights as without."""
    rows = torch.randn(16 * size, 21, generator=torch.Generator().manual_seed(2))
    weights, pending = [], torch.ones(1000)
    for count in (0, 2):
        sampler = torch.utils.data.distributed.DistributedSampler(rows, size, rank, seed=5)
        loader = torch.utils.data.DataLoader(rows, batch_size=4, sampler=sampler, num_workers=count)
        model = torch.nn.parallel.DistributedDataParallel(model_of(), bucket_cap_mb=0.001)
        for epoch in range(2):
            sampler.set_epoch(epoch)
            future = dist.all_reduce(pending, async_op=True).get_future()
            weights.append(train(model, ((row[:, :20], row[:, 20:]) for row in loader)))
            future.wait()
    same(pending, torch.full((1000,), float(size) ** 4))
    same(torch.stack(weights[:2]), torch.stack(weights[2:]))


class LeftHook(swingcoll.torch.PartitionedHook):
    """Its rounds are left by an exception after the first partition."""

    def collective(self, bucket):
        class Left:
            def __getattr__(self, name):
                return getattr(known, name)

            def ready(self, partition):
                if partition:
                    raise KeyError("between")
                known.ready(partition)

        known = super().collective(bucket)
        return Left()


class Bucket:
    """What the hook asks of a bucket of DDP."""

    def __init__(self, tensor):
        self.buffer, self.index = lambda: tensor, lambda: 0


def left_rounds(rank, size):
    """A partitioned round that rank 0 leaves, by an exception in the hook, or by dropping it, ends for the others.

    The deadline of the group is behind that of the test.
    """
    bucket, other = Bucket(torch.ones(1024)), dist.new_group(range(size))
    backend = swingcoll.torch._backend_of(other)
    dropped = swingcoll.torch._torch.partitioned(backend, torch.ones(8), 4, dist.ReduceOp.SUM)
    kind = swingcoll.torch.PartitionedHook if rank else LeftHook
    state = kind(bytes=1024)
    if rank == 0:
        raises(KeyError, "between", lambda: swingcoll.torch.partitioned_hook(state, bucket))
        dropped.start()
        del dropped
        os.read(LEFT[0], 1)
        return
    try:
        # Rank 0 may have aborted before this one starts. Of an exception in then(), PyTorch adds lines.
        try:
            swingcoll.torch.partitioned_hook(state, bucket).wait()
            raise AssertionError("no error")
        except RuntimeError as error:
            assert "abort" in str(error), error
        raises(RuntimeError, "abort", lambda: dist.barrier(group=other))
    finally:
        os.write(LEFT[1], b"x")


def sharded(rank, size):
    """The state of the optimizer in parts (ZeRO); parameters and gradients in parts, in the way of FSDP.

    FSDP of PyTorch 1.13 itself needs CUDA, and Python 3.11 refuses to import it.
    """
    mine, alone = batches_of(rank, size)
    zero = functools.partial(ZeroRedundancyOptimizer, optimizer_class=torch.optim.SGD)
    weights = train(torch.nn.parallel.DistributedDataParallel(model_of()), mine, zero)
    assert torch.allclose(weights, alone, rtol=1e-4, atol=1e-6), (weights - alone).abs().max()

    model = model_of()
    params = list(model.parameters())
    flat = torch.nn.utils.parameters_to_vector(params).detach()
    part = -(-len(flat) // size)
    whole = torch.nn.functional.pad(flat, (0, part * size - len(flat)))
    shard = whole[rank * part : (rank + 1) * part].clone()
    for x, y in mine:
        dist.all_gather_into_tensor(whole, shard)
        torch.nn.utils.vector_to_parameters(whole[: len(flat)].clone(), params)
        grads = torch.autograd.grad(torch.nn.functional.mse_loss(model(x), y), params)
        sums = torch.zeros_like(whole)
        sums[: len(flat)] = torch.cat([g.reshape(-1) for g in grads])
        mine_sum = torch.zeros(part)
        dist.reduce_scatter_tensor(mine_sum, sums)
        shard -= 0.05 * mine_sum / size
    dist.all_gather_into_tensor(whole, shard)
    assert torch.allclose(whole[: len(flat)], alone, rtol=1e-4, atol=1e-6), (whole[: len(flat)] - alone).abs().max()


def missing(rank, size):
    """A rank that does not come is named, by the deadline of the group and by the monitored barrier."""
    if rank != 1:
        second = datetime.timedelta(seconds=1)
        raises(RuntimeError, "by rank 1", lambda: swingcoll.torch.monitored_barrier(timeout=second))
        os.read(GATE[0], 1)
        return
    try:
        raises(RuntimeError, "rank 0", lambda: dist.all_reduce(torch.ones(1)))
    finally:
        os.write(GATE[1], b"xx")


def death(rank, size):
    """Rank 1 dies: whoever waits is told, by exception and by future."""
    if rank == 1:
        die()
    work = dist.all_reduce(torch.ones(1), async_op=True)
    raises(RuntimeError, "rank 1", lambda: work.get_future().wait())
    raises(RuntimeError, "rank 1", work.wait)
    raises(RuntimeError, "rank 1", lambda: dist.all_to_all_single(torch.zeros(size), torch.ones(size)))


def silence(rank, size):
    """A message that nobody receives ends by the deadline of the group; the error names its receiver."""
    if rank == 2:
        raises(RuntimeError, "rank 1", lambda: dist.send(torch.ones(1), 1))
        os.write(GATE[1], b"x")
    if rank == 1:
        os.read(GATE[0], 1)


def torchrun():
    """This file, by torchrun; env:// is its way to begin. Its own store is a file: that of PyTorch 2 wants libuv."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--rdzv_backend=c10d"]
    command += ["--rdzv_conf=store_type=file", f"--rdzv_endpoint={TMP}/rendezvous"]
    # Under Python 3.11, torchrun of PyTorch 1.13 fails with its default, which is to redirect nothing.
    command += ["--redirects=2", "--tee=2", f"--log_dir={TMP}/log", __file__, "--rank"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        print("".join(f"# {line}\n" for line in done.stdout.splitlines()))
    result(done.returncode == 0, "torchrun, 2 ranks")


if sys.argv[1:] == ["--rank"]:
    dist.init_process_group("swingcoll")
    moving(dist.get_rank(), dist.get_world_size())
    # The group ends with the interpreter, and DDP is its last holder.
    last = torch.nn.parallel.DistributedDataParallel(model_of())
    train(last, [(torch.ones(8, 20), torch.ones(8, 1))])
    dist.all_reduce(torch.ones(1), async_op=True)
    sys.exit()

plan(21)
on_ranks("reductions of all types", reductions)
on_ranks("data that is moved", moving)
on_ranks("reduce_scatter, all_to_all", scattering)
if funcol:
    on_ranks("functional collectives", functional)
else:
    skip("functional collectives", "PyTorch 1.13 has none")
on_ranks("all_to_all before the other ranks", unsent, seconds=300)
on_ranks("works and futures", works)
COME = os.pipe()
on_ranks("no thread can be made", threadless, (2,))
on_ranks("forks beside collectives", forked, (2,))
on_ranks("what is refused", refused, (2,))
on_ranks("messages", messages)
on_ranks("messages from callbacks", answers, (2,))
on_ranks("groups of some ranks", groups, (4,))
result(run_ranks(2, stores, TMP), "file, tcp, environment, a store handed in, 2 ranks")
on_ranks("DDP", ddp)
on_ranks("DDP with data from other processes", workers, (2,))
LEFT = os.pipe()
on_ranks("partitioned rounds that a rank leaves", left_rounds, (2,), seconds=300)
on_ranks("training in shards", sharded)
GATE = os.pipe()
on_ranks("a rank that does not come", missing, (3,), seconds=10)
on_ranks("a message that nobody receives", silence, (3,), seconds=5)
on_ranks("a rank that dies", death, (3,), killed=(1,))
if SHORT:
    skip("torchrun, 2 ranks", "the short form")
else:
    torchrun()
finish()
