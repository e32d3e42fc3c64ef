# SPDX-License-Identifier: LGPL-2.1-or-later
"""A backend of torch.distributed: importing this module registers it as "swingcoll".

::

    import torch.distributed as dist
    import swingcoll.torch

    dist.init_process_group("swingcoll")         # env://, file://, tcp:// or store=..., as any backend

CPU tensors. A tensor that is not contiguous goes through a copy. bool reduces as truth values. send waits until its
message is received; recv without a source is refused: make a group of backend "gloo" for it. The timeout of a group is
the deadline of each of its collectives and messages; the exception names the rank that did not come. The child of a
fork, such as a worker of a DataLoader, cannot use the groups of its parent, and may make its own.
"""

import inspect
from typing import Any

import torch
import torch.distributed as dist

try:
    from . import _torch
except ImportError as error:
    raise ImportError(
        f"swingcoll was built without its backend for PyTorch ({error}): install python3-torch, libtorch-dev and "
        "pybind11-dev, and build it again"
    ) from error

__all__ = ["monitored_barrier", "partitioned_hook", "PartitionedHook"]


def _register() -> None:
    # PyTorch 2 asks for which devices a backend is.
    register = dist.Backend.register_backend
    devices = {"devices": ["cpu"]} if "devices" in inspect.signature(register).parameters else {}
    register("swingcoll", _torch.create, **devices)


_register()


def _backend_of(group) -> Any:
    """The backend object of a process group, which PyTorch 1.13 does not tell from the group."""
    group = group if group is not None else dist.distributed_c10d._get_default_group()
    return group._get_backend(torch.device("cpu")) if hasattr(group, "_get_backend") else group


def monitored_barrier(group=None, timeout=None, wait_all_ranks: bool = False) -> None:
    """As torch.distributed.monitored_barrier, which takes gloo's groups only.

    Rank 0 raises an error that names a rank that did not come within timeout (a timedelta), or all of them.
    """
    args = {} if timeout is None else {"timeout": timeout}
    _backend_of(group).monitored_barrier(wait_all_ranks=wait_all_ranks, **args)


class PartitionedHook:
    """State of partitioned_hook: the partitioned collectives of a model's buckets, made at the first step.

    bytes is the least size of a partition.
    """

    def __init__(self, group=None, bytes: int = 1 << 18):
        self.group, self.bytes, self.known = _backend_of(group), bytes, {}

    def collective(self, bucket: dist.GradBucket) -> Any:
        """That of a bucket. DDP rebuilds its buckets after the first step: then a new one is made."""
        buffer, index = bucket.buffer(), bucket.index()
        known = self.known.get(index)
        if known is None or known.tensor.data_ptr() != buffer.data_ptr() or known.tensor.numel() != buffer.numel():
            most = max(1, min(64, buffer.numel() * buffer.element_size() // self.bytes))
            partitions = next(n for n in range(most, 0, -1) if buffer.numel() % n == 0)
            known = _torch.partitioned(self.group, buffer, partitions, dist.ReduceOp.AVG)
            self.known[index] = known
        return known


def partitioned_hook(state: PartitionedHook, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """A communication hook for DDP: averages gradients by partitioned allreduces.

    The collective of each bucket is made once, so that a step pins no memory and makes no plan, and the parts of a
    bucket are on their way one after the other::

        model.register_comm_hook(swingcoll.torch.PartitionedHook(), swingcoll.torch.partitioned_hook)

    An exception before all parts are on their way aborts the group: its other ranks would wait for the rest.
    """
    collective = state.collective(bucket)
    try:
        collective.start()
        for partition in range(collective.partitions):
            collective.ready(partition)
    except BaseException:
        collective.abort_incomplete()
        raise
    return collective.work().get_future().then(lambda done: done.value()[0])
