# SPDX-License-Identifier: LGPL-2.1-or-later
"""Collective communication carried out by the Linux kernel.

::

    import numpy, swingcoll

    comm = swingcoll.Comm.auto()                 # under torchrun, mpirun or srun
    gradient = numpy.ones(1000, numpy.float32)
    comm.Allreduce(swingcoll.IN_PLACE, gradient, op=swingcoll.AVG)

    request = comm.Iallgather(x, y)              # request.Wait(), or await request

Names and arguments are those of the upper-case methods of mpi4py. Buffers are anything with the buffer protocol or
``__dlpack__``, such as arrays of NumPy and CPU tensors of PyTorch; ``[buffer, swingcoll.BF16]`` names the type of
elements that the buffer does not know. Other threads run while a call waits. A failure raises ``swingcoll.Error``,
whose ``rank`` is the one at fault; a missed deadline raises ``swingcoll.DeadlineError``, which is a TimeoutError.

``swingcoll.torch`` is a backend of torch.distributed.
"""

from ._buffers import IN_PLACE, Buffer, parse
from ._comm import Comm
from ._create import unique_id, version
from ._requests import ALL_PARTITIONS, Partitioned, Request
from ._types import Datatype, DeadlineError, Error, Op

__version__ = version()
__all__ = [
    "ALL_PARTITIONS",
    "Buffer",
    "Comm",
    "Datatype",
    "DeadlineError",
    "Error",
    "IN_PLACE",
    "Op",
    "Partitioned",
    "Request",
    "parse",
    "unique_id",
    "version",
]

# SUM, F32 ...: as mpi4py has them in its module MPI.
I8, U8, I16, U16, I32, U32 = (Datatype.I8, Datatype.U8, Datatype.I16, Datatype.U16, Datatype.I32, Datatype.U32)
I64, U64, F16, BF16, F32, F64 = (Datatype.I64, Datatype.U64, Datatype.F16, Datatype.BF16, Datatype.F32, Datatype.F64)
SUM, PROD, MIN, MAX, AVG = Op.SUM, Op.PROD, Op.MIN, Op.MAX, Op.AVG
BAND, BOR, BXOR = Op.BAND, Op.BOR, Op.BXOR
__all__ += [*Datatype.__members__, *Op.__members__]
