#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Sums of sparse vectors, by plain arithmetic on whole vectors, as a reference for the sparse allreduce.

    sparse_reference.py RANKS COUNT DENSITY OVERLAP DTYPE SEED

prints the size of the union and the FNV-1a hash of the sum's little-endian bytes. OVERLAP: independent, identical,
disjoint, rows:W, mixed:SHARE. DTYPE: i32, f32.
"""
import struct
import sys

MASK = 2**64 - 1


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & MASK
    return x ^ x >> 31


class Input:
    def __init__(self, density, overlap, seed):
        self.kind, _, number = overlap.partition(":")
        self.number = float(number or 0)
        self.density, self.seed = density, seed

    def h(self, tag, rank, i):
        return mix((mix((mix((self.seed + tag) & MASK) + rank) & MASK) + i) & MASK)

    def is_set(self, rank, i):
        d = self.density
        if self.kind == "independent":
            return self.h(1, rank, i) < d * 2**64
        if self.kind == "identical":
            return self.h(1, 0, i) < d * 2**64
        if self.kind == "disjoint":
            return (self.h(1, 0, i) - rank * int(d * 2**64)) & MASK < d * 2**64
        if self.kind == "rows":
            return self.h(1, rank, i // int(self.number)) < d * 2**64
        if self.kind == "mixed":
            common = d * self.number
            rest = (d - common) / (1 - common)
            return self.h(1, 2**32 - 1, i) < common * 2**64 or self.h(2, rank, i) < rest * 2**64
        raise ValueError(self.kind)


def main(ranks, count, density, overlap, dtype, seed):
    given = Input(float(density), overlap, int(seed))
    union, fnv = 0, 0xCBF29CE484222325
    for i in range(int(count)):
        total, seen = 0, False
        for rank in range(int(ranks)):
            if given.is_set(rank, i):
                seen = True
                v = given.h(3, rank, i)
                total += (v & 0xFFFFFFFF or 1) if dtype == "i32" else ((v & 2047) - 1024) / 8 or 1
        union += seen
        for byte in struct.pack("<I", total & 0xFFFFFFFF) if dtype == "i32" else struct.pack("<f", total):
            fnv = ((fnv ^ byte) * 0x100000001B3) & MASK
    print(union, f"{fnv:016x}")


if __name__ == "__main__":
    main(*sys.argv[1:])
