// SPDX-License-Identifier: LGPL-2.1-or-later
/* What goes through PyTorch's store: the creation of a communicator, and the monitored barrier. */
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <thread>

#include "group.h"

namespace swingcoll_torch
{

/*
 * A bootstrap by the store: each rank sets a key, and gets those of all others. The keys stay: PyTorch prefixes them for
 * each group, and cannot begin twice with one store itself.
 */
class ByStore
{
      public:
	ByStore(c10d::Store &store, int rank, int size, std::chrono::milliseconds timeout,
		Engine *channel)
		: store(store), timeout(timeout), channel(channel)
	{
		boot.rank = rank;
		boot.nranks = size;
		boot.allgather = run;
		boot.arg = this;
	}

	struct swingcoll_bootstrap boot = {};

      private:
	std::string key(int rank) const
	{
		return "swingcoll/" + std::to_string(round) + "/" + std::to_string(rank);
	}

	static int run(void *arg, const void *mine, void *all, size_t bytes)
	{
		return static_cast<ByStore *>(arg)->exchange(static_cast<const uint8_t *>(mine),
							     static_cast<uint8_t *>(all), bytes);
	}

	/* Stores hold a lock while they wait. */
	void await(const std::string &key)
	{
		auto until = std::chrono::steady_clock::now() + timeout;

		if (!channel) {
			store.wait({ key }, timeout);
			return;
		}
		while (!store.check({ key })) {
			if (channel->is_closed() || std::chrono::steady_clock::now() >= until)
				throw std::runtime_error("it has not called recv or send");
			std::this_thread::sleep_for(std::chrono::milliseconds(1));
		}
	}

	int exchange(const uint8_t *mine, uint8_t *all, size_t bytes)
	{
		int rank = boot.rank;

		round++;
		try {
			store.set(key(rank), std::vector<uint8_t>(mine, mine + bytes));
			for (rank = 0; rank < boot.nranks; rank++) {
				await(key(rank));
				std::vector<uint8_t> theirs = store.get(key(rank));

				if (theirs.size() != bytes)
					return swingcoll_bootstrap_fail(
						-EPROTO,
						"rank %d sent data of another size: use the same version on all ranks, and a new store",
						rank);
				memcpy(all + static_cast<size_t>(rank) * bytes, theirs.data(),
				       bytes);
			}
		} catch (const std::exception &e) {
			std::string text = e.what();

			return swingcoll_bootstrap_fail(
				-ETIMEDOUT, "rank %d has not come within %lld s: %.160s", rank,
				static_cast<long long>(timeout.count() / 1000),
				text.substr(0, text.find('\n')).c_str());
		}
		return 0;
	}

	c10d::Store &store;
	const std::chrono::milliseconds timeout;
	Engine *const channel;
	unsigned int round = 0;
};

struct swingcoll_comm *create_comm(const StorePtr &store, int rank, int size,
				   std::chrono::milliseconds timeout, Engine *channel)
{
	struct swingcoll_comm_opts opts = {};
	struct swingcoll_comm *comm;
	const int64_t most = std::numeric_limits<int32_t>::max();
	int error;

	if (!store)
		throw std::invalid_argument(
			"swingcoll: no store: call init_process_group with an init_method or a store");
	ByStore exchange(*store, rank, size, timeout, channel);
	opts.timeout_ms = static_cast<uint32_t>(
		std::min<int64_t>(std::max<int64_t>(timeout.count(), 1), most));
	error = swingcoll_comm_create_from(&comm, &exchange.boot, &opts);
	if (error) {
		std::string text = swingcoll_bootstrap_error();

		if (text.empty())
			text = swingcoll_strerror(error);
		throw std::runtime_error(
			"swingcoll: no communicator: " +
			renumbered(text, channel ? channel->ranks : std::vector<int>()));
	}
	return comm;
}

/* Rank 0 says that all ranks are there, or which are not. It may have begun later. */
static void await_verdict(c10d::Store &store, const std::string &key,
			  std::chrono::milliseconds limit)
{
	try {
		store.wait({ key }, limit + std::chrono::seconds(1));
	} catch (const std::exception &) {
		throw std::runtime_error(
			"swingcoll: monitored_barrier: rank 0 has not said within " +
			std::to_string(limit.count()) + " ms who is there");
	}
	std::vector<uint8_t> missing = store.get(key);
	if (missing.size() > 1)
		throw std::runtime_error(std::string(missing.begin(), missing.end()));
}

/* By the store, since the kernel names one of the missing ranks only. */
void Group::monitoredBarrier(const c10d::BarrierOptions &opts, bool wait_all_ranks)
{
	std::string prefix = "swingcoll/barrier/" + std::to_string(++barriers) + "/", missing;
	std::chrono::milliseconds limit = opts.timeout.count() > 0 ? opts.timeout : timeout;
	auto until = std::chrono::steady_clock::now() + limit;

	engine->check_process("monitored_barrier");
	if (rank_) {
		store->set(prefix + std::to_string(rank_), std::vector<uint8_t>{ 1 });
		await_verdict(*store, prefix + "0", limit);
		return;
	}
	for (int rank = 1; rank < size_ && (missing.empty() || wait_all_ranks); rank++) {
		auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
			until - std::chrono::steady_clock::now());
		try {
			store->wait({ prefix + std::to_string(rank) },
				    std::max(left, std::chrono::milliseconds(1)));
		} catch (const std::exception &) {
			missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
		}
	}
	if (!missing.empty())
		missing = "swingcoll: monitored_barrier: not reached within " +
			  std::to_string(limit.count()) + " ms by rank " + missing;
	/* Not all stores keep values without bytes. */
	std::string verdict = missing.empty() ? "-" : missing;
	store->set(prefix + "0", std::vector<uint8_t>(verdict.begin(), verdict.end()));
	if (!missing.empty())
		throw std::runtime_error(missing);
}

} // namespace swingcoll_torch
