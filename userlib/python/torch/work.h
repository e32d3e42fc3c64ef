// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Collectives in flight. An Engine has a communicator and the works on it, and holds each work until it is done, so that
 * the memory of its tensors outlives the collective even if the caller drops the work.
 *
 * A work is finished by the thread that waits for it. Only a future, or a wait with a timeout, needs a thread of the
 * engine's, a finisher, which is made for the first of them. Callbacks of a future may wait for works behind theirs, so
 * another finisher takes those meanwhile. Nothing ever joins these threads: the last holder of a process group may be
 * DDP's reducer, which goes away with the interpreter's lock held, and a callback of a future needs that lock. So the
 * threads share the engine, and whoever lets go of the engine last destroys the communicator.
 *
 * A collective that has to hear from the other ranks before it can be called is sent later, and so are all that come
 * behind it: their order stays the same on all ranks. A further thread sends them, unless a thread that
 * waits for one of them comes first. It never runs callbacks: they may wait for what it has to send.
 *
 * The child of a fork has copies of engines and works, but neither their threads nor their communicator, and threads of
 * the parent may have held their locks. Every call looks for that before it takes a lock.
 */
#ifndef SWINGCOLL_TORCH_WORK_H
#define SWINGCOLL_TORCH_WORK_H

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <swingcoll.h>

#include "compat.h"

namespace swingcoll_torch
{

class Work;
using WorkPtr = c10::intrusive_ptr<Work>;

/* A line of the library on ranks of a communicator, with the numbers that they have in the group. None: the same. */
std::string renumbered(std::string text, const std::vector<int> &ranks);

class Engine : public std::enable_shared_from_this<Engine>
{
      public:
	explicit Engine(struct swingcoll_comm *comm, std::vector<int> ranks = {});
	~Engine();

	/* "swingcoll: allreduce: rank 2 ...", for a negative errno. */
	std::runtime_error failure(const char *name, int error);
	/* Is this the child of a fork, and the engine its parent's? */
	bool is_inherited() const;
	/* Throws if it is. */
	void check_process(const char *name);
	/* Return the requests of works that are done and that nobody waits for. */
	void collect();
	/* Call it, and again when an older work is done if too many are in flight. Throws. */
	void begin(const char *name, const std::function<int()> &call);
	void add(WorkPtr work);
	/* A work that is sent by this call, after those that were added so before it. Throws if no thread can be made. */
	void add_unsent(WorkPtr work, std::function<void()> send);
	/* Send works until there are none, or, unless it is NULL, this one is sent. */
	void send_until(const Work *work);
	bool has_unsent();
	size_t in_flight();
	bool is_closed();
	bool is_sent(const Work *work);
	void drop(const Work *work);
	/* Have a finisher finish it. Throws if none can be made. */
	void finish_later(WorkPtr work);
	/* No more works come: the threads end after those that they have. */
	void close();

	struct swingcoll_comm *comm;  /* NULL until it is made by what sends the first work */
	const std::vector<int> ranks; /* the numbers of its ranks in the group; none: the same */

      private:
	struct Unsent {
		WorkPtr work;
		std::function<void()> send;
	};

	const unsigned int generation; /* of the process that made it */

	WorkPtr oldest();
	void make_thread(void (Engine::*loop)(), const char *purpose);
	void have_finisher();
	void finish_loop();
	void send_loop();

	std::mutex lock; /* of all below; a leaf */
	std::condition_variable more;
	std::condition_variable sent;
	std::deque<WorkPtr> pending;
	std::deque<WorkPtr> later;
	std::deque<Unsent> unsent; /* the first stays until it is sent */
	bool sending = false;	   /* a thread sends the first */
	int threads = 0;	   /* in finish_loop() */
	int finishers = 0;	   /* those of them that have no work */
	bool completing = false;   /* one of them waits for a collective */
	bool send_running = false; /* send_loop() */
	bool closed = false;
};

/*
 * What a collective needs beside its tensors.
 *
 * wait		sleeps until it is done, and returns 0 or a negative errno
 * test		does not sleep, and returns -EINPROGRESS; may be empty
 * then		runs after success: copies results to where they belong; may be empty
 * tensors	whose memory the collective uses
 * outputs	value of the future
 */
struct Job {
	const char *name;
	std::function<int()> wait;
	std::function<int()> test;
	std::function<void()> then;
	std::vector<at::Tensor> tensors;
	std::vector<at::Tensor> outputs;
};

class Work : public c10d::Work
{
      public:
	Work(std::shared_ptr<Engine> engine, int rank, c10d::OpType type, const char *title,
	     const std::vector<at::Tensor> &inputs, Job job);

	bool isCompleted() override;
	bool wait(std::chrono::milliseconds timeout) override;
	std::vector<at::Tensor> result() override;
	c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

	/* Sleep until it is done. Does not throw. The caller holds the work. */
	void finish();
	/* The same without callbacks of its future, which another thread runs. */
	void complete();
	/* Is it done? Likewise without callbacks: the caller may hold locks that they need. */
	bool test();

      private:
	friend class Engine;

	bool done();
	void conclude(int error);
	void settle();

	const std::shared_ptr<Engine> engine;
	std::mutex turn; /* held by the thread that waits for the collective or tests it */
	Job job;	 /* under turn until done() */
	const std::vector<at::Tensor> outputs;
	/* Under mutex_ of the base, which also has completed_ and exception_. */
	c10::intrusive_ptr<c10::ivalue::Future> future;
	bool settled = false;
	/* Under the engine's lock until it is sent. */
	bool sent = true;
	std::exception_ptr unsendable; /* why it could not be sent */
};

} // namespace swingcoll_torch

#endif /* SWINGCOLL_TORCH_WORK_H */
