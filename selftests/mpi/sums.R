#!/usr/bin/Rscript
# SPDX-License-Identifier: GPL-2.0-only
# Collectives of R's package Rmpi, whose results are exact. For programs.sh.
library(Rmpi)

# Communicator 0 is all ranks; types 1 and 2 are integers and doubles.
rank <- mpi.comm.rank(0)
n <- mpi.comm.size(0)
sum <- mpi.allreduce(as.double(1:10000) * (rank + 1), type = 2, op = "sum", comm = 0)
most <- mpi.allreduce(1:100 + rank, type = 1, op = "max", comm = 0)
told <- mpi.bcast(if (rank == 0) as.double(1:1000) else double(1000), type = 2, rank = 0, comm = 0)
all <- mpi.allgather(as.double(rank + 1:10), type = 2, rdata = double(10 * n), comm = 0)
object <- list(a = 1:3, b = "text")
if (rank == 0) mpi.bcast.Robj(object, comm = 0) else object <- mpi.bcast.Robj(comm = 0)
objects <- mpi.gather.Robj(list(object$b, rank), root = 0, comm = 0)
if (rank == 0)
	cat("sums", sum(sum), sum(most), sum(told), sum(all), unlist(objects), "\n")
invisible(mpi.barrier(0))
mpi.quit()
