// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Messages between two ranks, which the library does not have as such. All of one tag from one rank to another are
 * broadcasts on a communicator of the two, whose rank 0 sends. The first message makes it, by the store, and its caller
 * does not wait for that.
 */
#include <string>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "group.h"

namespace swingcoll_torch
{

using c10d::OpType;

/* Fewer than a communicator has places for. Further ones are sent by the engine's thread. */
static const size_t most_in_flight = 32;

static struct swingcoll_comm *create_channel(const StorePtr &store, bool receives, int tag,
					     std::chrono::milliseconds timeout, Engine *channel)
{
	std::string prefix = "swingcoll/messages";

	for (int number : { channel->ranks[0], channel->ranks[1], tag })
		prefix += "/" + std::to_string(number);
	return create_comm(c10::make_intrusive<c10d::PrefixStore>(prefix, store), receives, 2,
			   timeout, channel);
}

AnyWork Group::message(const Call &call, Tensors &tensors, int from, int to, int tag)
{
	at::NoGradGuard no_grad;
	at::Tensor tensor = only(tensors, call.name), tight = tensor.contiguous();
	auto req = std::make_shared<struct swingcoll_req *>(nullptr);
	bool receives = to == rank_;
	void *data = tight.data_ptr();
	std::function<void()> then;

	check_root(call.name, receives ? from : to);
	if (from == to)
		throw std::invalid_argument("swingcoll: " + std::string(call.name) +
					    ": a rank cannot send to itself: copy the tensor");
	engine->check_process(call.name);
	std::lock_guard<std::mutex> guard(channels_lock);
	std::shared_ptr<Engine> &channel = channels[{ from, to, tag }];
	bool first = !channel;
	if (first)
		channel = std::make_shared<Engine>(nullptr, std::vector<int>{ from, to });
	auto send = [=, store = store, timeout = timeout, engine = channel.get()] {
		if (first)
			engine->comm = create_channel(store, receives, tag, timeout, engine);
		if (!engine->comm)
			throw std::runtime_error("swingcoll: " + std::string(call.name) +
						 ": no communicator since the first message");
		engine->begin(call.name, [&] {
			return swingcoll_ibroadcast(data, data, tight.nbytes(), SWINGCOLL_U8, 0,
						    engine->comm, req.get());
		});
	};
	if (receives && !tight.is_same(tensor))
		then = [tensor, tight] { tensor.copy_(tight); };
	try {
		return send_work(channel, call, req, send,
				 first || channel->in_flight() >= most_in_flight, { tensor, tight },
				 { tensor }, then);
	} catch (...) {
		/* The next message is the first one. */
		if (first)
			channels.erase({ from, to, tag });
		throw;
	}
}

AnyWork Group::send(Tensors &tensors, int to, int tag)
{
	return message({ "send", "swingcoll:send", OpType::SEND, tensors }, tensors, rank_, to,
		       tag);
}

AnyWork Group::recv(Tensors &tensors, int from, int tag)
{
	return message({ "recv", "swingcoll:recv", OpType::RECV, tensors }, tensors, from, rank_,
		       tag);
}

/* Who sends next is not known before all others have been asked. */
AnyWork Group::recvAnysource(Tensors &, int)
{
	throw std::invalid_argument(
		"swingcoll: recv from any source is not supported: name the source, or make a group of backend gloo for it, dist.new_group(backend=\"gloo\")");
}

} // namespace swingcoll_torch
