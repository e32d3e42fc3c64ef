// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A partitioned allreduce of one tensor, in place: made once, run as often as wanted. It holds the tensor, since the kernel
 * keeps its memory pinned.
 */
#ifndef SWINGCOLL_TORCH_PARTITIONED_H
#define SWINGCOLL_TORCH_PARTITIONED_H

#include "group.h"

namespace swingcoll_torch
{

class Partitioned : public std::enable_shared_from_this<Partitioned>
{
      public:
	Partitioned(std::shared_ptr<Engine> engine, int rank, at::Tensor tensor, int partitions,
		    const c10d::ReduceOp &op);
	~Partitioned();

	/*
	 * Begin a round; the last one is done. Waits for the other ranks if an all_to_all does that was started before.
	 * Partitions run as soon as all ranks have marked them ready.
	 */
	void start();
	void ready(int partition);
	/* Abort the communicator if this rank has not marked all partitions: the round can never be complete. */
	void abort_incomplete();
	/* The rest of the round as a work. */
	AnyWork work();

	const at::Tensor tensor;
	const int partitions;

      private:
	const std::shared_ptr<Engine> engine;
	const int rank;
	struct swingcoll_partitioned *p = nullptr;
	std::atomic<int> unmarked{ 0 }; /* partitions of the round that this rank has not marked */
};

} // namespace swingcoll_torch

#endif /* SWINGCOLL_TORCH_PARTITIONED_H */
