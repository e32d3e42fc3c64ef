// SPDX-License-Identifier: LGPL-2.1-or-later
/* Works: who waits, who copies the results, and what becomes of the future. */
#include <algorithm>
#include <cerrno>
#include <string>
#include <thread>

#include <pthread.h>

#include "work.h"

namespace swingcoll_torch
{

std::string renumbered(std::string text, const std::vector<int> &ranks)
{
	static const std::string word = "rank ";

	for (size_t at = 0; !ranks.empty() && (at = text.find(word, at)) != std::string::npos;) {
		size_t end = text.find_first_not_of("0123456789", at += word.size());
		size_t digits = std::min(end, text.size()) - at;
		size_t rank = digits == 1 ? static_cast<size_t>(text[at] - '0') : ranks.size();

		if (rank < ranks.size())
			text.replace(at, digits, std::to_string(ranks[rank]));
	}
	return text;
}

/* ---- engine ---- */

/* Forks since the process that has loaded this. */
static unsigned int forks;
static const int watch_forks = pthread_atfork(nullptr, nullptr, [] { forks++; });

Engine::Engine(struct swingcoll_comm *comm, std::vector<int> ranks)
	: comm(comm), ranks(std::move(ranks)), generation(forks)
{
}

bool Engine::is_inherited() const
{
	return generation != forks;
}

void Engine::check_process(const char *name)
{
	if (is_inherited())
		throw failure(name, -EBADF);
}

Engine::~Engine()
{
	swingcoll_comm_destroy(comm);
}

std::runtime_error Engine::failure(const char *name, int error)
{
	char text[512] = "";
	int known = 0;
	std::string what = std::string("swingcoll: ") + name + ": ";

	/* A rank that calls after the failure gets another error, with the same reason. */
	if (comm)
		known = swingcoll_comm_error(comm, text, sizeof(text), nullptr);
	if (*text && (known == error || swingcoll_comm_failed(error)))
		return std::runtime_error(what + renumbered(text, ranks));
	return std::runtime_error(what + swingcoll_strerror(error));
}

/* Of those that are sent, which come first. */
WorkPtr Engine::oldest()
{
	std::lock_guard<std::mutex> guard(lock);

	return pending.empty() || !pending.front()->sent ? WorkPtr() : pending.front();
}

void Engine::collect()
{
	for (WorkPtr work = oldest(); work && work->test(); work = oldest())
		drop(work.get());
}

void Engine::begin(const char *name, const std::function<int()> &call)
{
	for (;;) {
		int error = call();

		if (!error)
			return;
		WorkPtr work = error == -EAGAIN ? oldest() : WorkPtr();
		if (!work)
			throw failure(name, error);
		work->complete();
	}
}

void Engine::add(WorkPtr work)
{
	std::lock_guard<std::mutex> guard(lock);

	pending.push_back(std::move(work));
}

void Engine::add_unsent(WorkPtr work, std::function<void()> send)
{
	std::lock_guard<std::mutex> guard(lock);

	if (!send_running)
		make_thread(&Engine::send_loop, "all_to_all and first messages");
	send_running = true;
	work->sent = false;
	pending.push_back(work);
	unsent.push_back({ std::move(work), std::move(send) });
	more.notify_all();
}

bool Engine::has_unsent()
{
	std::lock_guard<std::mutex> guard(lock);

	return !unsent.empty();
}

size_t Engine::in_flight()
{
	std::lock_guard<std::mutex> guard(lock);

	return pending.size();
}

bool Engine::is_closed()
{
	std::lock_guard<std::mutex> guard(lock);

	return closed;
}

bool Engine::is_sent(const Work *work)
{
	std::lock_guard<std::mutex> guard(lock);

	return work->sent;
}

void Engine::send_until(const Work *work)
{
	at::NoGradGuard no_grad;
	std::unique_lock<std::mutex> guard(lock);
	auto enough = [&] { return work ? work->sent : unsent.empty(); };

	for (;;) {
		sent.wait(guard, [&] { return enough() || !sending; });
		if (enough())
			return;
		std::exception_ptr exception;
		Unsent &first = unsent.front(); /* stays where it is while others are added */
		sending = true;
		guard.unlock();
		try {
			first.send();
		} catch (...) {
			exception = std::current_exception();
		}
		guard.lock();
		Unsent last = std::move(first); /* let go of outside the lock */
		unsent.pop_front();
		last.work->unsendable = exception;
		last.work->sent = true;
		sending = false;
		sent.notify_all();
		guard.unlock();
		last = {};
		guard.lock();
	}
}

void Engine::send_loop()
{
	for (;;) {
		send_until(nullptr);
		std::unique_lock<std::mutex> guard(lock);
		more.wait(guard, [this] { return closed || !unsent.empty(); });
		if (unsent.empty()) {
			send_running = false;
			return;
		}
	}
}

void Engine::drop(const Work *work)
{
	WorkPtr last; /* let go of outside the lock */
	std::lock_guard<std::mutex> guard(lock);

	for (auto it = pending.begin(); it != pending.end(); ++it)
		if (it->get() == work) {
			last = std::move(*it);
			pending.erase(it);
			return;
		}
}

/* Throws a line that says what to do. purpose: what needs it. */
void Engine::make_thread(void (Engine::*loop)(), const char *purpose)
{
	try {
		std::thread([self = shared_from_this(), loop] { (self.get()->*loop)(); }).detach();
	} catch (const std::exception &e) {
		throw std::runtime_error(
			std::string("swingcoll: no thread for ") + purpose + ": " + e.what() +
			": raise the limit of processes (ulimit -u, pids.max of the control group)");
	}
}

/* Under lock: somebody takes the works that are to be finished. Throws if that takes a thread that cannot be made. */
void Engine::have_finisher()
{
	if (!later.empty() && !finishers && !completing) {
		make_thread(&Engine::finish_loop, "futures and waits with a timeout");
		finishers++;
		threads++;
	}
	more.notify_all();
}

/* Begins as one of the finishers, which wait for works. At most one goes on to wait for them. */
void Engine::finish_loop()
{
	std::unique_lock<std::mutex> guard(lock);

	for (;;) {
		more.wait(guard, [this] { return !completing && (closed || !later.empty()); });
		finishers--;
		if (later.empty())
			break;
		WorkPtr work = std::move(later.front());
		later.pop_front();
		completing = true;
		guard.unlock();
		work->complete();
		guard.lock();
		completing = false;
		try {
			have_finisher();
		} catch (const std::exception &) {
			/* This one takes the others after its callbacks. */
		}
		guard.unlock();
		work->settle();
		work.reset();
		guard.lock();
		if (finishers)
			break;
		finishers++;
	}
	threads--;
}

void Engine::finish_later(WorkPtr work)
{
	std::lock_guard<std::mutex> guard(lock);

	later.push_back(std::move(work));
	try {
		have_finisher();
	} catch (const std::exception &) {
		later.pop_back();
		throw;
	}
}

void Engine::close()
{
	std::lock_guard<std::mutex> guard(lock);

	/* Works hold the engine, and the engine them: the finisher ends that. */
	later.insert(later.end(), pending.begin(), pending.end());
	closed = true;
	try {
		have_finisher();
	} catch (const std::exception &) {
		/* A finisher in callbacks takes them. Without one, those that wait for them do: what nobody waits for stays. */
		if (!threads)
			later.clear();
	}
}

/* ---- work ---- */

Work::Work(std::shared_ptr<Engine> engine, int rank, c10d::OpType type, const char *title,
	   const std::vector<at::Tensor> &inputs, Job job)
	: c10d::Work(rank, type, title, inputs), engine(std::move(engine)), job(std::move(job)),
	  outputs(this->job.outputs)
{
}

bool Work::done()
{
	std::lock_guard<std::mutex> guard(mutex_);

	return completed_;
}

/* Under turn. */
void Work::conclude(int error)
{
	/* As other backends, which write to the memory alone; also to tensors of inference_mode(). */
	at::NoGradGuard no_grad;
	at::AutoDispatchBelowADInplaceOrView below;
	std::exception_ptr exception = unsendable;

	if (error)
		exception = std::make_exception_ptr(engine->failure(job.name, error));
	else if (!exception && job.then)
		try {
			job.then();
		} catch (...) {
			exception = std::current_exception();
		}
	job = Job();
	c10d::Work::finish(exception);
}

void Work::complete()
{
	{
		std::lock_guard<std::mutex> guard(turn);

		if (!done()) {
			engine->send_until(this);
			conclude(unsendable ? 0 : job.wait());
		}
	}
	engine->drop(this);
}

void Work::finish()
{
	complete();
	settle();
}

bool Work::test()
{
	std::unique_lock<std::mutex> guard(turn, std::try_to_lock);

	if (done())
		return true;
	if (!guard || !job.test || !engine->is_sent(this))
		return false;
	int error = unsendable ? 0 : job.test();
	if (error == -EINPROGRESS)
		return false;
	conclude(error);
	return true;
}

bool Work::isCompleted()
{
	engine->check_process("is_completed");
	if (!test())
		return false;
	settle();
	return true;
}

/* Complete the future, if there is one. Its callbacks may use this work: no lock is held. */
void Work::settle()
{
	c10::intrusive_ptr<c10::ivalue::Future> ready;
	std::exception_ptr exception;

	{
		std::lock_guard<std::mutex> guard(mutex_);

		if (!future || !completed_ || settled)
			return;
		settled = true;
		ready = future;
		exception = exception_;
	}
	if (exception)
		ready->setError(exception);
	else
		ready->markCompleted(c10::IValue(outputs));
}

bool Work::wait(std::chrono::milliseconds timeout)
{
	WorkPtr self = WorkPtr::unsafe_reclaim_from_nonowning(this);

	engine->check_process("wait");
	if (timeout == kNoTimeout) {
		finish();
	} else if (!isCompleted()) {
		engine->finish_later(self);
		std::unique_lock<std::mutex> guard(mutex_);
		if (!cv_.wait_for(guard, timeout, [this] { return completed_; }))
			throw std::runtime_error(
				"swingcoll: not done after " + std::to_string(timeout.count()) +
				" ms: swingctl status shows which ranks have not come");
	}
	std::lock_guard<std::mutex> guard(mutex_);
	if (exception_)
		std::rethrow_exception(exception_);
	return true;
}

std::vector<at::Tensor> Work::result()
{
	return outputs;
}

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture()
{
	c10::intrusive_ptr<c10::ivalue::Future> mine;

	engine->check_process("get_future");
	{
		std::lock_guard<std::mutex> guard(mutex_);

		if (future)
			return future;
		mine = c10::make_intrusive<c10::ivalue::Future>(
			c10::ListType::create(c10::TensorType::get()));
		/* Before anybody has it: if no thread can be made, it may be asked for again. */
		if (!completed_)
			engine->finish_later(WorkPtr::unsafe_reclaim_from_nonowning(this));
		future = mine;
		if (!completed_)
			return mine;
	}
	settle();
	return mine;
}

} // namespace swingcoll_torch
