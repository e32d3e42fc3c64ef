#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Random calls of MPI's collectives by mpi4py; each rank writes digests of all that it has received.

random_calls.py SEED CALLS. All results are exact, so with and without the preload library the digests must be the same.
Blocking and nonblocking calls on several communicators, beside messages; requests are completed in all of MPI's ways.
For programs.sh.
"""

import hashlib
import random
import sys

import numpy as np
from mpi4py import MPI

SIZES = [0, 1, 2, 3, 5, 8, 16, 33, 100, 255, 1000, 1024, 4097, 16384, 70000]  # elements
BATCH = 50  # calls between two digests

world = MPI.COMM_WORLD
rank = world.Get_rank()
common = random.Random(int(sys.argv[1]))  # the same numbers on all ranks
digest = hashlib.sha256()
pending = []  # request, results, and buffers that have to remain


def tripled(a, b, _):
    """b = 3 a + b, which does not commute."""
    y = np.frombuffer(b, "i4")
    y[:] = 3 * np.frombuffer(a, "i4") + y


UNORDERED = MPI.Op.Create(tripled, commute=False)
BITWISE = [MPI.BAND, MPI.BOR, MPI.BXOR, MPI.LAND, MPI.LOR, MPI.LXOR]
OPS = [MPI.SUM, MPI.PROD, MPI.MAX, MPI.MIN, *BITWISE, UNORDERED]


def vector(n, dtype, call):
    """n small integers, which are exact in all types, others on each rank."""
    own = np.random.RandomState((call * 1000003 + rank * 7919) & 0x7FFFFFFF)
    return own.randint(0, 4, n).astype(dtype)


def shares(n, p):
    """Counts of about n / p and more for each of p ranks, some of them 0, and displacements with gaps."""
    counts = [n * (r + 1) // p if common.random() < 0.8 else 0 for r in range(p)]
    displs = [sum(counts[:r]) + r for r in range(p)]
    return counts, displs


class Call:
    """A call: its arguments, drawn alike on all ranks, and what it receives."""

    def __init__(self, number, comm):
        self.number, self.comm = number, comm
        self.size, self.me = comm.Get_size(), comm.Get_rank()
        self.root = common.randrange(64) % self.size
        self.op = common.choice(OPS)
        self.dtype = common.choice(["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "F", "D"])
        if self.op in BITWISE or self.op == UNORDERED:
            self.dtype = "i4"
        elif self.op in (MPI.MAX, MPI.MIN) and self.dtype in "FD":
            self.dtype = "f8"
        self.type = MPI._typedict[np.dtype(self.dtype).char]
        self.n = common.choice(SIZES)
        self.waits = common.random() < 0.65
        self.in_place = common.random() < 0.25

    def send(self, n):
        return vector(n, self.dtype, self.number)

    def empty(self, n):
        return np.zeros(n, self.dtype)

    def run(self, name, args, results, *buffers):
        """By the blocking function, or by the nonblocking one."""
        if self.waits:
            getattr(self.comm, name)(*args)
            note(results)
        else:
            pending.append((getattr(self.comm, "I" + name.lower())(*args), results, (args, buffers)))

    def reduction(self, name):
        a = self.send(self.n)
        b = a.copy() if self.in_place else self.empty(self.n)
        rooted = name == "Reduce"
        in_place = self.in_place and (not rooted or self.me == self.root) and name != "Exscan"
        args = [MPI.IN_PLACE if in_place else [a, self.type], [b, self.type], self.op]
        if rooted:
            args.append(self.root)
        has = (not rooted or self.me == self.root) and (name != "Exscan" or self.me)
        self.run(name, args, [b] if has else [], a)

    def bcast(self):
        a, n, kind = self.send(self.n), self.n, self.type
        shape = common.choice(["plain", "contiguous", "vector"])
        if shape != "plain" and n and n % 2 == 0:
            kind = kind.Create_contiguous(2) if shape == "contiguous" else kind.Create_vector(n // 2, 1, 2)
            n = n // 2 if shape == "contiguous" else 1
            kind.Commit()
        self.run("Bcast", ([a, n, kind], self.root), [a])
        if kind != self.type:
            kind.Free()

    def allgather(self):
        a, b = self.send(self.n), self.empty(self.n * self.size)
        if self.in_place:
            b[self.me * self.n : (self.me + 1) * self.n] = a
        self.run("Allgather", (MPI.IN_PLACE if self.in_place else [a, self.type], [b, self.n, self.type]), [b])

    def allgatherv(self):
        counts, displs = shares(self.n, self.size)
        a, b = self.send(counts[self.me]), self.empty(displs[-1] + counts[-1])
        if self.in_place:
            b[displs[self.me] : displs[self.me] + counts[self.me]] = a
        args = (MPI.IN_PLACE if self.in_place else [a, self.type], [b, counts, displs, self.type])
        self.run("Allgatherv", args, [b])

    def gather(self):
        a, b, here = self.send(self.n), self.empty(self.n * self.size), self.me == self.root
        self.run("Gather", ([a, self.type], [b, self.n, self.type] if here else None, self.root), [b] if here else [])

    def gatherv(self):
        counts, displs = shares(self.n, self.size)
        a, b, here = self.send(counts[self.me]), self.empty(displs[-1] + counts[-1]), self.me == self.root
        args = ([a, self.type], [b, counts, displs, self.type] if here else None, self.root)
        self.run("Gatherv", args, [b] if here else [])

    def scatter(self):
        a, b, here = self.send(self.n * self.size), self.empty(self.n), self.me == self.root
        self.run("Scatter", ([a, self.n, self.type] if here else None, [b, self.type], self.root), [b])

    def scatterv(self):
        counts, displs = shares(self.n, self.size)
        a, b, here = self.send(displs[-1] + counts[-1]), self.empty(counts[self.me]), self.me == self.root
        self.run("Scatterv", ([a, counts, displs, self.type] if here else None, [b, self.type], self.root), [b])

    def reduce_scatter_block(self):
        a, b = self.send(self.n * self.size), self.empty(self.n)
        self.run("Reduce_scatter_block", ([a, self.type], [b, self.type], self.op), [b])

    def reduce_scatter(self):
        counts, _ = shares(self.n, self.size)
        a, b = self.send(sum(counts)), self.empty(counts[self.me])
        self.run("Reduce_scatter", ([a, self.type], [b, self.type], counts, self.op), [b])

    def alltoall(self):
        n = min(self.n, 20000)
        a, b = self.send(n * self.size), self.empty(n * self.size)
        self.run("Alltoall", ([a, n, self.type], [b, n, self.type]), [b])

    def alltoallv(self, types=False):
        most, p = min(self.n, 5000), self.size
        counts = [[common.randrange(most + 1) for _ in range(p)] for _ in range(p)]
        gives, gets = counts[self.me], [counts[r][self.me] for r in range(p)]
        a, b = self.send(sum(gives)), self.empty(sum(gets))
        unit = self.type.Get_size() if types else 1
        starts, ends = ([unit * sum(c[:r]) for r in range(p)] for c in (gives, gets))
        kind = [self.type] * p if types else self.type
        self.run("Alltoallw" if types else "Alltoallv", ([a, gives, starts, kind], [b, gets, ends, kind]), [b])

    def messages(self):
        a, b = self.send(self.n), self.empty(self.n)
        for request in (
            self.comm.Irecv([b, self.type], source=(self.me - 1) % self.size, tag=5),
            self.comm.Isend([a, self.type], dest=(self.me + 1) % self.size, tag=5),
        ):
            pending.append((request, [b], a))

    def objects(self):
        """mpi4py's calls for objects, which pickles and sends bytes."""
        note(
            [
                self.comm.allreduce(rank + self.number),
                self.comm.bcast({"call": self.number} if self.me == self.root else None, root=self.root),
                self.comm.allgather((self.me, self.number)),
                self.comm.alltoall([10 * self.me + r for r in range(self.size)]),
            ]
        )

    CALLS = [
        *(lambda self, name=name: self.reduction(name) for name in ("Allreduce", "Reduce", "Scan", "Exscan")),
        bcast,
        allgather,
        allgatherv,
        gather,
        gatherv,
        scatter,
        scatterv,
        reduce_scatter_block,
        reduce_scatter,
        alltoall,
        alltoallv,
        lambda self: self.alltoallv(types=True),
        lambda self: self.run("Barrier", (), []),
        messages,
        objects,
    ]


def note(results):
    for r in results:
        digest.update(r.tobytes() if isinstance(r, np.ndarray) else repr(r).encode())


def complete():
    """All pending requests, in one of the ways that MPI has."""
    requests = [p[0] for p in pending]
    way = common.choice(["Waitall", "Waitany", "Waitsome", "Testall", "wait", "test"])
    if way == "Waitall":
        MPI.Request.Waitall(requests)
    elif way == "Waitany":
        for _ in requests:
            MPI.Request.Waitany(requests)
    elif way == "Waitsome":
        while MPI.Request.Waitsome(requests):
            pass
    elif way == "Testall":
        while not MPI.Request.Testall(requests):
            pass
    else:
        for r in requests:
            while way == "test" and not r.Test():
                pass
            r.Wait()
    for _, results, _ in pending:
        note(results)
    pending.clear()


def main():
    # Ranks of the halves draw the same numbers: there must be as many in each.
    halves = world.Split(rank % 2 if world.Get_size() % 2 == 0 else 0, -rank)
    comms = [world, world, world.Dup(), halves, world.Split(0, -rank), MPI.COMM_SELF]
    with open(f"digests.{rank}", "w") as out:
        for number in range(int(sys.argv[2])):
            common.choice(Call.CALLS)(Call(number, common.choice(comms)))
            if common.random() < 0.25 or len(pending) > 12 or number % BATCH == BATCH - 1:
                complete()
            if number % BATCH == BATCH - 1:
                out.write(f"{number + 1} {digest.hexdigest()}\n")
            if number % (4 * BATCH) == 4 * BATCH - 1:  # communicators come and go
                comms[2].Free()
                comms[2] = world.Dup()
        complete()
        out.write(f"all {digest.hexdigest()}\n")


main()
