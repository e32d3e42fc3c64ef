#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Solves Poisson's equation on a square by PETSc's conjugate gradients, and prints iterations and error.

The work of each rank is a block of rows; dot products and norms are MPI_Allreduce of 8 to 24 bytes. For programs.sh.
"""

import ctypes
import math
import sys

import petsc4py

# PETSc would ask for threads, with which Open MPI needs an instruction, cmpxchg16b, that emulated processors may lack.
ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
mpi = ctypes.CDLL(None)  # by the names that are found first
mpi.MPI_Init(None, None)
petsc4py.init(sys.argv)
from petsc4py import PETSc  # noqa: E402

N = 120  # points in each direction
h = 1.0 / (N + 1)

matrix = PETSc.Mat().createAIJ((N * N, N * N), nnz=(5, 2))
first, last = matrix.getOwnershipRange()
exact, right = matrix.createVecs()
for row in range(first, last):
    y, x = divmod(row, N)
    matrix[row, row] = 4.0
    if x > 0:
        matrix[row, row - 1] = -1.0
    if x < N - 1:
        matrix[row, row + 1] = -1.0
    if y > 0:
        matrix[row, row - N] = -1.0
    if y < N - 1:
        matrix[row, row + N] = -1.0
    # The first term is an eigenvector, for which conjugate gradients need one step.
    exact[row] = math.sin(math.pi * (x + 1) * h) * math.sin(math.pi * (y + 1) * h) + x * (N - x) * y * 1e-6
matrix.assemble()
exact.assemble()
matrix.mult(exact, right)

solver = PETSc.KSP().create()
solver.setOperators(matrix)
solver.setType("cg")
solver.getPC().setType("jacobi")
solver.setTolerances(rtol=1e-10)
found = right.duplicate()
solver.solve(right, found)
found.axpy(-1.0, exact)
error = found.norm(PETSc.NormType.INFINITY)
if PETSc.COMM_WORLD.getRank() == 0:
    print(f"ranks {PETSc.COMM_WORLD.getSize()} iterations {solver.getIterationNumber()} error {error:.1e}")
good = solver.getConvergedReason() > 0 and error < 1e-7
del matrix, exact, right, solver, found
PETSc._finalize()
mpi.MPI_Finalize()
sys.exit(not good)
