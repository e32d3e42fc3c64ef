// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Gather and scatter; an alltoall of parts of unequal size, which the library does not have as such.
 */
#include <algorithm>
#include <cstring>
#include <string>

#include "group.h"

namespace swingcoll_torch
{

using c10d::OpType;

AnyWork Group::gather(std::vector<Tensors> &outputs, Tensors &inputs,
		      const c10d::GatherOptions &opts)
{
	at::NoGradGuard no_grad;
	int root = static_cast<int>(opts.rootRank);
	bool here = rank_ == root;

	only(inputs, "gather");
	check_root("gather", opts.rootRank);
	if (here && (outputs.size() != 1 || outputs[0].size() != static_cast<size_t>(size_)))
		throw std::invalid_argument(
			"swingcoll: gather: root needs one output tensor for each rank");
	Tensors to = here ? outputs[0] : Tensors{}, used = inputs;
	check_alike(to, inputs[0], "gather");
	auto part = std::make_shared<Joined>(inputs, "gather");
	auto all = here ? std::make_shared<Joined>(to, "gather") : nullptr;
	part->load();
	used.insert(used.end(), to.begin(), to.end());
	return start(
		{ "gather", "swingcoll:gather", OpType::GATHER, inputs },
		[=](auto comm, auto req) {
			return swingcoll_igather(part->data(), all ? all->data() : nullptr,
						 part->bytes, SWINGCOLL_U8, root, comm, req);
		},
		used, to,
		[part, all] {
			if (all)
				all->store();
		});
}

AnyWork Group::scatter(Tensors &outputs, std::vector<Tensors> &inputs,
		       const c10d::ScatterOptions &opts)
{
	at::NoGradGuard no_grad;
	int root = static_cast<int>(opts.rootRank);
	bool here = rank_ == root;

	only(outputs, "scatter");
	check_root("scatter", opts.rootRank);
	if (here && (inputs.size() != 1 || inputs[0].size() != static_cast<size_t>(size_)))
		throw std::invalid_argument(
			"swingcoll: scatter: root needs one input tensor for each rank");
	Tensors used = here ? inputs[0] : Tensors{};
	check_alike(used, outputs[0], "scatter");
	auto part = std::make_shared<Joined>(outputs, "scatter");
	auto all = here ? std::make_shared<Joined>(used, "scatter") : nullptr;
	if (all)
		all->load();
	used.insert(used.end(), outputs.begin(), outputs.end());
	return start(
		{ "scatter", "swingcoll:scatter", OpType::SCATTER, here ? inputs[0] : Tensors{} },
		[=](auto comm, auto req) {
			return swingcoll_iscatter(all ? all->data() : nullptr, part->data(),
						  part->bytes, SWINGCOLL_U8, root, comm, req);
		},
		used, outputs, [part, all] { part->store(); });
}

/* ---- alltoall ---- */

/* Bytes of parts. */
struct Range {
	uint64_t least, most;

	void add(const Tensors &parts)
	{
		for (const at::Tensor &part : parts) {
			least = std::min<uint64_t>(least, part.nbytes());
			most = std::max<uint64_t>(most, part.nbytes());
		}
	}
};

/* Of all ranks. Not by the blocking call, which may hold up other threads' calls meanwhile. */
static Range range_on_all(Engine *engine, const char *name, Range mine)
{
	uint64_t values[2] = { ~mine.least, mine.most };
	struct swingcoll_req *req = nullptr;

	engine->begin(name, [&] {
		return swingcoll_iallreduce(values, values, 2, SWINGCOLL_U64, SWINGCOLL_MAX,
					    engine->comm, &req);
	});
	int error = swingcoll_wait(req, nullptr);
	if (error)
		throw engine->failure(name, error);
	return { ~values[0], values[1] };
}

/* In front of each part: its bytes. */
using Header = uint64_t;

/* Parts, each at a multiple of stride bytes, to memory that is zero. */
static void spread(const Tensors &parts, char *to, size_t stride)
{
	for (const at::Tensor &part : parts) {
		at::Tensor tight = part.contiguous();
		Header bytes = tight.nbytes();

		memcpy(to, &bytes, sizeof(bytes));
		memcpy(to + sizeof(bytes), tight.data_ptr(), bytes);
		to += stride;
	}
}

static void unspread(const char *name, const Tensors &parts, const char *from, size_t stride)
{
	for (size_t rank = 0; rank < parts.size(); rank++, from += stride) {
		const at::Tensor &part = parts[rank];
		at::Tensor tight = part.is_contiguous() ? part
							: at::empty(part.sizes(), part.options());
		Header bytes;

		memcpy(&bytes, from, sizeof(bytes));
		if (bytes != tight.nbytes())
			throw std::runtime_error(
				std::string("swingcoll: ") + name + ": rank " +
				std::to_string(rank) + " sends " + std::to_string(bytes) +
				" bytes, this rank expects " + std::to_string(tight.nbytes()));
		memcpy(tight.data_ptr(), from + sizeof(bytes), bytes);
		if (!tight.is_same(part))
			part.copy_(tight);
	}
}

/* Memory of an exchange, when the ranks have agreed on the range: where its parts lie, and how they come there and back. */
struct Parts {
	void load(const char *name, const Tensors &inputs, const Tensors &outputs, Range range);

	size_t stride;
	void *send, *recv;
	Tensors copies;
	std::function<void()> store;
};

/* Where all parts of all ranks are as large, there are neither copies nor headers. */
void Parts::load(const char *name, const Tensors &inputs, const Tensors &outputs, Range range)
{
	stride = range.most;
	if (range.least == range.most) {
		auto from = std::make_shared<Joined>(inputs, name);
		auto to = std::make_shared<Joined>(outputs, name);

		from->load();
		send = from->data();
		recv = to->data();
		store = [from, to] { to->store(); };
		return;
	}
	stride += sizeof(Header);
	int64_t whole = static_cast<int64_t>(stride * inputs.size());
	at::Tensor from = at::zeros({ whole }, at::kByte), to = at::empty({ whole }, at::kByte);

	send = from.data_ptr();
	recv = to.data_ptr();
	spread(inputs, static_cast<char *>(send), stride);
	store = [=, bytes = stride] {
		unspread(name, outputs, static_cast<const char *>(to.data_ptr()), bytes);
	};
	copies = { from, to };
}

/*
 * inputs[r] goes to rank r, outputs[r] comes from it. The library's parts all have one size, and no argument says that the
 * ranks' do: the ranks first agree on the least and the largest. The caller does not wait for that.
 */
AnyWork Group::exchange(const Call &call, const Tensors &inputs, const Tensors &outputs)
{
	auto req = std::make_shared<struct swingcoll_req *>(nullptr);
	auto parts = std::make_shared<Parts>();
	Tensors used = inputs;
	auto send = [=, engine = engine.get()] {
		Range mine = { UINT64_MAX, 0 };

		mine.add(inputs);
		mine.add(outputs);
		parts->load(call.name, inputs, outputs, range_on_all(engine, call.name, mine));
		engine->begin(call.name, [&] {
			return swingcoll_ialltoall(parts->send, parts->recv, parts->stride,
						   SWINGCOLL_U8, engine->comm, req.get());
		});
	};

	used.insert(used.end(), outputs.begin(), outputs.end());
	sequence++;
	return send_work(engine, call, req, send, true, used, outputs, [parts] { parts->store(); });
}

/* A tensor cut along its first dimension: into equal parts, or as splits says. */
static Tensors cut(const at::Tensor &tensor, const std::vector<int64_t> &splits, int size)
{
	check_tensor(tensor, "all_to_all_single");
	if (splits.empty()) {
		if (!tensor.dim() || tensor.size(0) % size)
			throw std::invalid_argument(
				"swingcoll: all_to_all_single: the number of ranks does not divide the first dimension: pass the sizes of the parts");
		return tensor.split(std::max<int64_t>(tensor.size(0) / size, 1));
	}
	int64_t sum = 0;
	for (int64_t part : splits)
		sum += part;
	if (splits.size() != static_cast<size_t>(size) || !tensor.dim() || sum != tensor.size(0))
		throw std::invalid_argument(
			"swingcoll: all_to_all_single: the sizes of the parts must be one for each rank, and add up to the first dimension");
	return tensor.split_with_sizes(splits);
}

AnyWork Group::alltoall_base(at::Tensor &output, at::Tensor &input,
			     std::vector<int64_t> &output_splits,
			     std::vector<int64_t> &input_splits, const c10d::AllToAllOptions &)
{
	at::NoGradGuard no_grad;
	std::vector<int64_t> zeros(static_cast<size_t>(size_), 0);
	auto parts = [&](const at::Tensor &tensor, const std::vector<int64_t> &splits) {
		return cut(tensor,
			   splits.empty() && tensor.dim() && !tensor.size(0) ? zeros : splits,
			   size_);
	};

	return exchange(
		{ "all_to_all_single", "swingcoll:all_to_all", OpType::ALLTOALL_BASE, { input } },
		parts(input, input_splits), parts(output, output_splits));
}

AnyWork Group::alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &)
{
	at::NoGradGuard no_grad;

	if (outputs.size() != static_cast<size_t>(size_) || inputs.size() != outputs.size())
		throw std::invalid_argument(
			"swingcoll: all_to_all: needs one tensor for each rank, in both lists");
	for (const Tensors *list : { &inputs, &outputs })
		for (const at::Tensor &tensor : *list)
			check_tensor(tensor, "all_to_all");
	return exchange({ "all_to_all", "swingcoll:all_to_all", OpType::ALLTOALL, inputs }, inputs,
			outputs);
}

} // namespace swingcoll_torch
