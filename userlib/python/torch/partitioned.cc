// SPDX-License-Identifier: LGPL-2.1-or-later
/* Partitioned allreduces, for communication hooks. */
#include <cerrno>

#include "partitioned.h"

namespace swingcoll_torch
{

std::shared_ptr<Partitioned> Group::partitioned(at::Tensor tensor, int partitions,
						const c10d::ReduceOp &op)
{
	return std::make_shared<Partitioned>(engine, rank_, std::move(tensor), partitions, op);
}

static const char name[] = "partitioned allreduce";

Partitioned::Partitioned(std::shared_ptr<Engine> engine, int rank, at::Tensor tensor,
			 int partitions, const c10d::ReduceOp &op)
	: tensor(std::move(tensor)), partitions(partitions), engine(std::move(engine)), rank(rank)
{
	check_tensor(this->tensor, name);
	if (!this->tensor.is_contiguous() || partitions < 1 || this->tensor.numel() % partitions)
		throw std::invalid_argument(
			"swingcoll: partitioned allreduce: the tensor must be contiguous, and its partitions equal");
	Reduction r = reduction_of(this->tensor, op, name);
	void *data = this->tensor.data_ptr();
	int error = swingcoll_pallreduce_init(data, data, partitions,
					      r.count / static_cast<size_t>(partitions), r.dtype,
					      r.op, this->engine->comm, &p);
	if (error)
		throw this->engine->failure(name, error);
}

Partitioned::~Partitioned()
{
	/* A partition has a deadline only from the first rank that marks it. */
	abort_incomplete();
	if (swingcoll_pfree(p) == -EBUSY) {
		swingcoll_pwait(p, SWINGCOLL_ALL_PARTITIONS);
		swingcoll_pfree(p);
	}
}

void Partitioned::start()
{
	engine->check_process(name);
	engine->collect();
	engine->send_until(nullptr);
	engine->begin(name, [this] { return swingcoll_pstart(p); });
	unmarked = partitions;
}

void Partitioned::ready(int partition)
{
	int error = swingcoll_pready(p, partition);

	if (error)
		throw engine->failure(name, error);
	unmarked--;
}

void Partitioned::abort_incomplete()
{
	if (unmarked > 0)
		swingcoll_comm_abort(engine->comm);
}

AnyWork Partitioned::work()
{
	Job job = { name,
		    [self = shared_from_this()] {
			    return swingcoll_pwait(self->p, SWINGCOLL_ALL_PARTITIONS);
		    },
		    {},
		    {},
		    { tensor },
		    { tensor } };
	WorkPtr work = c10::make_intrusive<Work>(engine, rank, c10d::OpType::ALLREDUCE,
						 "swingcoll:all_reduce", Tensors{ tensor },
						 std::move(job));
	engine->add(work);
	return work;
}

} // namespace swingcoll_torch
