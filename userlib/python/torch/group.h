// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The backend: each collective of PyTorch as one of the library's. It holds no logic beyond translation: where the library
 * lacks a call (parts of unequal size, messages) it uses a collective that has the data, and says so there.
 */
#ifndef SWINGCOLL_TORCH_GROUP_H
#define SWINGCOLL_TORCH_GROUP_H

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "compat.h"
#include "tensors.h"
#include "work.h"

namespace swingcoll_torch
{

using AnyWork = c10::intrusive_ptr<c10d::Work>;

using StorePtr = c10::intrusive_ptr<c10d::Store>;

/*
 * A communicator of the ranks that share the store. Throws a line that names what is missing. With channel, it is one of
 * some ranks of a group, and this thread is not the one that uses the store: the store stays free while this one waits,
 * and it gives up when the channel is closed.
 */
struct swingcoll_comm *create_comm(const StorePtr &store, int rank, int size,
				   std::chrono::milliseconds timeout, Engine *channel = nullptr);

class Partitioned;

class Group : public Backend
{
      public:
	Group(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
	      std::chrono::milliseconds timeout);
	~Group() override;

	const std::string getBackendName() const override
	{
		return "swingcoll";
	}

	AnyWork allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts) override;
	AnyWork allreduce_coalesced(Tensors &tensors,
				    const c10d::AllreduceCoalescedOptions &opts) override;
	AnyWork reduce(Tensors &tensors, const c10d::ReduceOptions &opts) override;
	AnyWork broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts) override;
	AnyWork allgather(std::vector<Tensors> &outputs, Tensors &inputs,
			  const c10d::AllgatherOptions &opts) override;
	AnyWork _allgather_base(at::Tensor &output, at::Tensor &input,
				const c10d::AllgatherOptions &opts) override;
	/* These two are PyTorch 2's, and what its functional collectives call. 1.13 has none to override. */
	AnyWork allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
						const c10d::AllgatherOptions &opts);
	AnyWork reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
						const c10d::ReduceScatterOptions &opts);
	AnyWork allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs,
				    const c10d::AllgatherOptions &opts) override;
	AnyWork gather(std::vector<Tensors> &outputs, Tensors &inputs,
		       const c10d::GatherOptions &opts) override;
	AnyWork scatter(Tensors &outputs, std::vector<Tensors> &inputs,
			const c10d::ScatterOptions &opts) override;
	AnyWork reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
			       const c10d::ReduceScatterOptions &opts) override;
	AnyWork _reduce_scatter_base(at::Tensor &output, at::Tensor &input,
				     const c10d::ReduceScatterOptions &opts) override;
	AnyWork alltoall_base(at::Tensor &output, at::Tensor &input,
			      std::vector<int64_t> &output_splits,
			      std::vector<int64_t> &input_splits,
			      const c10d::AllToAllOptions &opts) override;
	AnyWork alltoall(Tensors &outputs, Tensors &inputs,
			 const c10d::AllToAllOptions &opts) override;
	AnyWork barrier(const c10d::BarrierOptions &opts) override;
	void monitoredBarrier(const c10d::BarrierOptions &opts, bool wait_all_ranks) override;

	AnyWork send(Tensors &tensors, int to, int tag) override;
	AnyWork recv(Tensors &tensors, int from, int tag) override;
	AnyWork recvAnysource(Tensors &tensors, int tag) override;

	void setSequenceNumberForGroup() override;
	uint64_t getSequenceNumberForGroup() override;

	/* All ranks alike. Does not wait for the others. */
	std::shared_ptr<Partitioned> partitioned(at::Tensor tensor, int partitions,
						 const c10d::ReduceOp &op);

      private:
	/* A collective of the library without its last argument, the place for the request. */
	using Start = std::function<int(struct swingcoll_comm *, struct swingcoll_req **)>;
	struct Call {
		const char *name;  /* in errors */
		const char *title; /* in profiles */
		c10d::OpType type;
		Tensors inputs; /* whose shapes profiles show */
	};

	using Request = std::shared_ptr<struct swingcoll_req *>;

	AnyWork start(const Call &call, const Start &start, const Tensors &used,
		      const Tensors &outputs, std::function<void()> then = {});
	/* The work of a request that send makes, now, or later if it is to wait for other ranks or others do. */
	AnyWork send_work(const std::shared_ptr<Engine> &engine, const Call &call,
			  const Request &req, std::function<void()> send, bool waits,
			  const Tensors &used, const Tensors &outputs, std::function<void()> then);
	AnyWork gather_into(const Call &call, const Tensors &inputs, const Tensors &outputs);
	AnyWork exchange(const Call &call, const Tensors &inputs, const Tensors &outputs);
	AnyWork message(const Call &call, Tensors &tensors, int from, int to, int tag);
	void check_root(const char *name, int64_t root) const;

	const StorePtr store;
	const std::shared_ptr<Engine> engine;
	const std::chrono::milliseconds timeout;
	std::atomic<uint64_t> sequence{ 0 };
	unsigned int barriers = 0; /* monitored ones so far */

	struct Channel {
		int from, to, tag;

		bool operator<(const Channel &other) const
		{
			return std::tie(from, to, tag) < std::tie(other.from, other.to, other.tag);
		}
	};
	std::mutex channels_lock;
	std::map<Channel, std::shared_ptr<Engine>> channels; /* under channels_lock */
};

} // namespace swingcoll_torch

#endif /* SWINGCOLL_TORCH_GROUP_H */
