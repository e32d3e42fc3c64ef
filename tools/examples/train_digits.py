#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Data-parallel training of a small network with PyTorch, once for each backend of torch.distributed.

Starts its ranks itself, trains on the handwritten digits of Debian's python3-sklearn, and compares the backends:
weights and time per step.

    PYTHONPATH=build/python tools/examples/train_digits.py
    PYTHONPATH=build/python tools/examples/train_digits.py --hook      # gradients by partitioned allreduces
"""

import argparse
import datetime
import glob
import gzip
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

import swingcoll.torch

DATA = "/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz"
BATCH = 24  # images of one rank per step


def load(path):
    """Images and labels to train on, and those held out: every fifth."""
    with gzip.open(path, "rt") as file:
        rows = torch.tensor([[float(x) for x in line.split(",")] for line in file])
    x, y = rows[:, :64] / 16, rows[:, 64].long()
    held = torch.arange(len(rows)) % 5 == 4
    return (x[~held], y[~held]), (x[held], y[held])


def train(backend, args, rank, folder):
    """One training. Weights, seconds per step, and how many of those held out are right."""
    dist.init_process_group(
        backend,
        init_method=f"file://{folder}/{backend}",
        rank=rank,
        world_size=args.ranks,
        timeout=datetime.timedelta(seconds=120),
    )
    (x, y), held = load(args.data)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(64, args.width), torch.nn.ReLU(), torch.nn.Linear(args.width, 10))
    model = DistributedDataParallel(net, bucket_cap_mb=0.25)
    if args.hook and backend == "swingcoll":
        model.register_comm_hook(swingcoll.torch.PartitionedHook(), swingcoll.torch.partitioned_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    loss = torch.nn.CrossEntropyLoss()
    whole = BATCH * args.ranks
    times = []
    for epoch in range(args.epochs):
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
        for first in range(0, len(x) - whole + 1, whole):
            mine = order[first + rank * BATCH : first + (rank + 1) * BATCH]
            began = time.perf_counter()
            optimizer.zero_grad()
            loss(model(x[mine]), y[mine]).backward()
            optimizer.step()
            times.append(time.perf_counter() - began)
    weights = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    everyone = [torch.zeros_like(weights) for _ in range(args.ranks)]
    dist.all_gather(everyone, weights)
    same = all(torch.equal(weights, other) for other in everyone)
    right = (net(held[0]).argmax(1) == held[1]).float().mean().item()
    del model
    dist.destroy_process_group()
    times.sort()
    return weights, times[len(times) // 2], right, same


def run(rank, args, folder):
    """A rank: trains with each backend; rank 0 prints."""
    torch.set_num_threads(1)
    first, bad = None, False
    for backend in args.backends.split(","):
        weights, step, right, same = train(backend, args, rank, folder)
        first = weights if first is None else first
        apart = ((weights - first).abs().max() / first.abs().max()).item()
        bad = bad or not same or right < 0.9
        if rank == 0:
            print(
                f"{backend:10} {args.ranks} ranks  step {1e3 * step:8.2f} ms (median)  "
                f"held out {100 * right:.2f} % right  apart from the first backend {apart:.1e}  "
                f"{'same bits on all ranks' if same else 'RANKS DIFFER'}",
                flush=True,
            )
    sys.exit(bad)


def main():
    """Start the ranks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", "--ranks", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--width", type=int, default=256, help="of the hidden layer")
    parser.add_argument("--backends", default="swingcoll,gloo")
    parser.add_argument("--hook", action="store_true", help="swingcoll: average gradients by partitioned_hook")
    parser.add_argument("--data", default=DATA, help="the digits; in Debian's python3-sklearn")
    args = parser.parse_args()
    if not glob.glob(args.data):
        sys.exit(f"no {args.data}: apt-get install python3-sklearn, or --data FILE")
    # Forked, so that PyTorch is imported once.
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(run, args=(args, folder), nprocs=args.ranks, start_method="fork")
    print("OK")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
