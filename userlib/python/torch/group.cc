// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reductions, broadcasts, allgathers and barriers. */
#include <string>

#include "group.h"

namespace swingcoll_torch
{

using c10d::OpType;

Group::Group(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
	     std::chrono::milliseconds timeout)
	: Backend(rank, size), store(std::move(store)),
	  engine(std::make_shared<Engine>(create_comm(this->store, rank, size, timeout))),
	  timeout(timeout)
{
}

Group::~Group()
{
	/* The works are the parent's, which ends them. */
	if (engine->is_inherited())
		return;
	engine->close();
	for (auto &channel : channels)
		channel.second->close();
}

/* Start a collective. used: tensors whose memory must stay; outputs: what the future has. */
AnyWork Group::start(const Call &call, const Start &start, const Tensors &used,
		     const Tensors &outputs, std::function<void()> then)
{
	auto req = std::make_shared<struct swingcoll_req *>(nullptr);
	auto send = [=, engine = engine.get()] {
		engine->begin(call.name, [&] { return start(engine->comm, req.get()); });
	};

	sequence++;
	return send_work(engine, call, req, send, false, used, outputs, std::move(then));
}

AnyWork Group::send_work(const std::shared_ptr<Engine> &engine, const Call &call,
			 const Request &req, std::function<void()> send, bool waits,
			 const Tensors &used, const Tensors &outputs, std::function<void()> then)
{
	engine->check_process(call.name);
	engine->collect();
	bool later = waits || engine->has_unsent();
	if (!later)
		send();
	Job job = { call.name,
		    [req] { return swingcoll_wait(*req, nullptr); },
		    [req] { return swingcoll_test(*req, nullptr); },
		    std::move(then),
		    used,
		    outputs };
	WorkPtr work = c10::make_intrusive<Work>(engine, rank_, call.type, call.title, call.inputs,
						 std::move(job));
	if (later)
		engine->add_unsent(work, std::move(send));
	else
		engine->add(work);
	return work;
}

void Group::check_root(const char *name, int64_t root) const
{
	if (root < 0 || root >= size_)
		throw std::invalid_argument(
			"swingcoll: " + std::string(name) + ": rank " + std::to_string(root) +
			" does not exist: they are 0 to " + std::to_string(size_ - 1));
}

/* ---- reductions ---- */

AnyWork Group::allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts)
{
	at::NoGradGuard no_grad;
	at::Tensor tensor = only(tensors, "allreduce"), tight = tensor.contiguous();
	Reduction r = reduction_of(tensor, opts.reduceOp, "allreduce");
	void *data = tight.data_ptr();
	std::function<void()> then;

	if (!tight.is_same(tensor))
		then = [tensor, tight] { tensor.copy_(tight); };
	return start(
		{ "allreduce", "swingcoll:all_reduce", OpType::ALLREDUCE, { tensor } },
		[=](auto comm, auto req) {
			return swingcoll_iallreduce(data, data, r.count, r.dtype, r.op, comm, req);
		},
		{ tensor, tight }, { tensor }, then);
}

/* One allreduce of all tensors, one after the other in memory. */
AnyWork Group::allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &opts)
{
	at::NoGradGuard no_grad;
	auto all = std::make_shared<Joined>(tensors, "allreduce_coalesced");
	Reduction r = reduction_of(tensors[0], opts.reduceOp, "allreduce_coalesced");
	void *data = all->data();

	for (const at::Tensor &tensor : tensors)
		if (tensor.scalar_type() != tensors[0].scalar_type())
			throw std::invalid_argument(
				"swingcoll: allreduce_coalesced: all tensors must have the same type");
	r.count = all->bytes / swingcoll_dtype_size(r.dtype);
	all->load();
	return start(
		{ "allreduce_coalesced", "swingcoll:all_reduce", OpType::ALLREDUCE_COALESCED,
		  tensors },
		[=](auto comm, auto req) {
			return swingcoll_iallreduce(data, data, r.count, r.dtype, r.op, comm, req);
		},
		tensors, tensors, [all] { all->store(); });
}

AnyWork Group::reduce(Tensors &tensors, const c10d::ReduceOptions &opts)
{
	at::NoGradGuard no_grad;
	at::Tensor tensor = only(tensors, "reduce"), tight = tensor.contiguous();
	Reduction r = reduction_of(tensor, opts.reduceOp, "reduce");
	bool here = rank_ == opts.rootRank;
	void *data = tight.data_ptr();
	std::function<void()> then;

	check_root("reduce", opts.rootRank);
	if (here && !tight.is_same(tensor))
		then = [tensor, tight] { tensor.copy_(tight); };
	return start(
		{ "reduce", "swingcoll:reduce", OpType::REDUCE, { tensor } },
		[=](auto comm, auto req) {
			return swingcoll_ireduce(data, here ? data : nullptr, r.count, r.dtype,
						 r.op, static_cast<int>(opts.rootRank), comm, req);
		},
		{ tensor, tight }, { tensor }, then);
}

AnyWork Group::reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
			      const c10d::ReduceScatterOptions &opts)
{
	at::NoGradGuard no_grad;
	at::Tensor output = only(outputs, "reduce_scatter");

	if (inputs.size() != 1 || inputs[0].size() != static_cast<size_t>(size_))
		throw std::invalid_argument(
			"swingcoll: reduce_scatter: needs one tensor for each rank");
	for (const at::Tensor &input : inputs[0])
		if (input.numel() != output.numel() || input.scalar_type() != output.scalar_type())
			throw std::invalid_argument(
				"swingcoll: reduce_scatter: all tensors must have the size and type of the output");
	auto all = std::make_shared<Joined>(inputs[0], "reduce_scatter");
	all->load();
	at::Tensor tight = output.is_contiguous() ? output
						  : at::empty(output.sizes(), output.options());
	Reduction r = reduction_of(output, opts.reduceOp, "reduce_scatter");
	Tensors used = inputs[0];
	void *recv = tight.data_ptr();

	used.push_back(tight);
	return start(
		{ "reduce_scatter", "swingcoll:reduce_scatter", OpType::REDUCE_SCATTER, inputs[0] },
		[=](auto comm, auto req) {
			return swingcoll_ireduce_scatter(all->data(), recv, r.count, r.dtype, r.op,
							 comm, req);
		},
		used, { output },
		[all, output, tight] {
			if (!tight.is_same(output))
				output.copy_(tight);
		});
}

AnyWork Group::_reduce_scatter_base(at::Tensor &output, at::Tensor &input,
				    const c10d::ReduceScatterOptions &opts)
{
	check_tensor(input, "reduce_scatter_tensor");
	if (input.numel() != output.numel() * size_)
		throw std::invalid_argument(
			"swingcoll: reduce_scatter_tensor: the input must have " +
			std::to_string(size_) + " times the elements of the output");
	at::NoGradGuard no_grad;
	Tensors outputs{ output };
	std::vector<Tensors> inputs{ input.contiguous().view({ size_, output.numel() }).unbind() };

	return reduce_scatter(outputs, inputs, opts);
}

/* ---- several tensors in one collective, each with a part for each rank ---- */

/* All parts of rank 0, then all of rank 1. */
static Tensors parts_by_rank(const Tensors &wholes, const Tensors &shares, int size,
			     const char *name)
{
	bool good = wholes.size() == shares.size();
	Tensors parts;

	if (wholes.empty())
		throw std::invalid_argument("swingcoll: " + std::string(name) + ": no tensors");
	for (size_t i = 0; good && i < wholes.size(); i++)
		good = wholes[i].numel() == shares[i].numel() * size &&
		       wholes[i].scalar_type() == shares[i].scalar_type();
	if (!good)
		throw std::invalid_argument("swingcoll: " + std::string(name) +
					    ": each tensor must be " + std::to_string(size) +
					    " times its part, and of the same type");
	for (int rank = 0; rank < size; rank++)
		for (const at::Tensor &whole : wholes)
			parts.push_back(whole.view({ size, whole.numel() / size })[rank]);
	return parts;
}

AnyWork Group::allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
					       const c10d::AllgatherOptions &)
{
	static const char name[] = "all_gather_into_tensor_coalesced";
	at::NoGradGuard no_grad;

	for (const at::Tensor &output : outputs) {
		check_tensor(output, name);
		if (!output.is_contiguous())
			throw std::invalid_argument(
				"swingcoll: all_gather_into_tensor_coalesced: the outputs must be contiguous");
	}
	return gather_into({ name, "swingcoll:all_gather", OpType::ALLGATHER_COALESCED, inputs },
			   inputs, parts_by_rank(outputs, inputs, size_, name));
}

AnyWork Group::reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
					       const c10d::ReduceScatterOptions &opts)
{
	static const char name[] = "reduce_scatter_tensor_coalesced";
	at::NoGradGuard no_grad;
	Tensors tight, used = outputs;

	for (const at::Tensor &input : inputs) {
		check_tensor(input, name);
		if (input.scalar_type() != inputs[0].scalar_type())
			throw std::invalid_argument(
				"swingcoll: reduce_scatter_tensor_coalesced: all tensors must have the same type");
		tight.push_back(input.contiguous());
	}
	auto all = std::make_shared<Joined>(parts_by_rank(tight, outputs, size_, name), name);
	auto mine = std::make_shared<Joined>(outputs, name);
	Reduction r = reduction_of(outputs[0], opts.reduceOp, name);

	r.count = mine->bytes / swingcoll_dtype_size(r.dtype);
	all->load();
	used.insert(used.end(), tight.begin(), tight.end());
	return start(
		{ name, "swingcoll:reduce_scatter", OpType::REDUCE_SCATTER, inputs },
		[=](auto comm, auto req) {
			return swingcoll_ireduce_scatter(all->data(), mine->data(), r.count,
							 r.dtype, r.op, comm, req);
		},
		used, outputs, [all, mine] { mine->store(); });
}

/* ---- data that is only moved ---- */

AnyWork Group::broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts)
{
	at::NoGradGuard no_grad;
	at::Tensor tensor = only(tensors, "broadcast"), tight = tensor.contiguous();
	void *data = tight.data_ptr();
	std::function<void()> then;

	check_root("broadcast", opts.rootRank);
	if (!tight.is_same(tensor) && rank_ != opts.rootRank)
		then = [tensor, tight] { tensor.copy_(tight); };
	return start(
		{ "broadcast", "swingcoll:broadcast", OpType::BROADCAST, { tensor } },
		[=](auto comm, auto req) {
			return swingcoll_ibroadcast(data, data, tight.nbytes(), SWINGCOLL_U8,
						    static_cast<int>(opts.rootRank), comm, req);
		},
		{ tensor, tight }, { tensor }, then);
}

/* An allgather of one rank's inputs, one after the other, into the outputs, one after the other. */
AnyWork Group::gather_into(const Call &call, const Tensors &inputs, const Tensors &outputs)
{
	auto send = std::make_shared<Joined>(inputs, call.name);
	auto recv = std::make_shared<Joined>(outputs, call.name);
	Tensors used = inputs;

	if (recv->bytes != send->bytes * size_)
		throw std::invalid_argument(
			"swingcoll: " + std::string(call.name) + ": the output has " +
			std::to_string(recv->bytes) + " bytes: it needs " + std::to_string(size_) +
			" times the " + std::to_string(send->bytes) + " of the input");
	send->load();
	used.insert(used.end(), outputs.begin(), outputs.end());
	return start(
		call,
		[=](auto comm, auto req) {
			return swingcoll_iallgather(send->data(), recv->data(), send->bytes,
						    SWINGCOLL_U8, comm, req);
		},
		used, outputs, [send, recv] { recv->store(); });
}

AnyWork Group::allgather(std::vector<Tensors> &outputs, Tensors &inputs,
			 const c10d::AllgatherOptions &)
{
	at::NoGradGuard no_grad;

	only(inputs, "allgather");
	if (outputs.size() != 1 || outputs[0].size() != static_cast<size_t>(size_))
		throw std::invalid_argument(
			"swingcoll: allgather: needs one output tensor for each rank");
	check_alike(outputs[0], inputs[0], "allgather");
	return gather_into({ "allgather", "swingcoll:all_gather", OpType::ALLGATHER, inputs },
			   inputs, outputs[0]);
}

AnyWork Group::_allgather_base(at::Tensor &output, at::Tensor &input,
			       const c10d::AllgatherOptions &)
{
	at::NoGradGuard no_grad;

	if (output.scalar_type() != input.scalar_type())
		throw std::invalid_argument(
			"swingcoll: all_gather_into_tensor: both tensors must have the same type");
	return gather_into({ "all_gather_into_tensor",
			     "swingcoll:_all_gather_base",
			     OpType::_ALLGATHER_BASE,
			     { input } },
			   { input }, { output });
}

AnyWork Group::allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs,
				   const c10d::AllgatherOptions &)
{
	at::NoGradGuard no_grad;
	Tensors all;

	for (const Tensors &of_rank : outputs) {
		for (size_t i = 0; i < of_rank.size() && i < inputs.size(); i++)
			check_alike({ of_rank[i] }, inputs[i], "allgather_coalesced");
		all.insert(all.end(), of_rank.begin(), of_rank.end());
	}
	return gather_into({ "allgather_coalesced", "swingcoll:all_gather",
			     OpType::ALLGATHER_COALESCED, inputs },
			   inputs, all);
}

AnyWork Group::barrier(const c10d::BarrierOptions &)
{
	return start({ "barrier", "swingcoll:barrier", OpType::BARRIER, {} },
		     [](auto comm, auto req) { return swingcoll_ibarrier(comm, req); }, {}, {});
}

/* ---- sequence numbers ---- */

void Group::setSequenceNumberForGroup()
{
}

uint64_t Group::getSequenceNumberForGroup()
{
	return sequence;
}

} // namespace swingcoll_torch
