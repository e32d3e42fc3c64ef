/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * swingcoll.h for C++11 and later: communicators and requests that end with their scope, elements by
 * their C++ type, and errors as exceptions. Header only; link with libswingcoll. What the calls do is
 * described there; get() gives the C handle for what is not wrapped here.
 */
#ifndef SWINGCOLL_HPP
#define SWINGCOLL_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>
#include <utility>

#include <swingcoll.h>

namespace swingcoll
{

/**
 * A call that has failed. code() is its errno, in std::generic_category(), and what() says what was
 * wrong, with the rank at fault.
 */
class error : public std::system_error
{
      public:
	error(int ret, const char *text, int culprit = -1)
		: std::system_error(-ret, std::generic_category(), text), culprit_(culprit)
	{
	}

	/** The rank at fault, or -1. */
	int culprit() const noexcept
	{
		return culprit_;
	}

	/** Whether the communicator can only be shrunk or destroyed. */
	bool failed() const noexcept
	{
		return swingcoll_comm_failed(-code().value());
	}

      private:
	int culprit_;
};

/** The element type of C++ types; specialize value_of for types of the program's own, such as bf16. */
template <class T> struct value_of;

#define SWINGCOLL_VALUE_OF(type, dtype)                                                            \
	template <> struct value_of<type> {                                                        \
		static constexpr swingcoll_dtype value = dtype;                                    \
	}
SWINGCOLL_VALUE_OF(std::int8_t, SWINGCOLL_I8);
SWINGCOLL_VALUE_OF(std::uint8_t, SWINGCOLL_U8);
SWINGCOLL_VALUE_OF(std::int16_t, SWINGCOLL_I16);
SWINGCOLL_VALUE_OF(std::uint16_t, SWINGCOLL_U16);
SWINGCOLL_VALUE_OF(std::int32_t, SWINGCOLL_I32);
SWINGCOLL_VALUE_OF(std::uint32_t, SWINGCOLL_U32);
SWINGCOLL_VALUE_OF(std::int64_t, SWINGCOLL_I64);
SWINGCOLL_VALUE_OF(std::uint64_t, SWINGCOLL_U64);
SWINGCOLL_VALUE_OF(float, SWINGCOLL_F32);
SWINGCOLL_VALUE_OF(double, SWINGCOLL_F64);
#undef SWINGCOLL_VALUE_OF

namespace detail
{

/* culprit: what the call itself has told, or -1. */
inline void check(swingcoll_comm *comm, int ret, int culprit = -1)
{
	char text[512] = "";
	int rank = -1, known;

	if (!ret)
		return;
	known = comm ? swingcoll_comm_error(comm, text, sizeof(text), &rank) : 0;
	/* A call after the failure gets another error, with the same reason. */
	if (!*text || (known != ret && !swingcoll_comm_failed(ret)))
		throw error(ret, swingcoll_strerror(ret), culprit);
	throw error(ret, text, rank >= 0 ? rank : culprit);
}

struct destroyer {
	void operator()(swingcoll_comm *comm) const noexcept
	{
		swingcoll_comm_destroy(comm);
	}
};

} /* namespace detail */

/**
 * A nonblocking operation. Must end before its communicator; the destructor waits, and says nothing
 * of errors, as the buffers belong to the operation until then.
 */
class request
{
      public:
	request() = default;

	request(swingcoll_req *req, swingcoll_comm *comm) noexcept : req_(req), comm_(comm)
	{
	}

	request(request &&other) noexcept : req_(other.release()), comm_(other.comm_)
	{
	}

	request &operator=(request &&other) noexcept
	{
		request old(std::move(*this));

		comm_ = other.comm_;
		req_ = other.release();
		return *this;
	}

	~request()
	{
		if (req_)
			swingcoll_wait(req_, nullptr);
	}

	/** Sleep until the operation is done. */
	swingcoll_result wait()
	{
		swingcoll_result result{};
		int ret;

		result.culprit = -1;
		ret = req_ ? swingcoll_wait(release(), &result) : 0;
		detail::check(comm_, ret, result.culprit);
		return result;
	}

	/** Whether it is done; does not block. */
	bool test()
	{
		swingcoll_result result{};
		int ret;

		result.culprit = -1;
		ret = req_ ? swingcoll_test(req_, &result) : 0;
		if (ret == -EINPROGRESS)
			return false;
		release();
		detail::check(comm_, ret, result.culprit);
		return true;
	}

	/** The request as C has it, which the caller now has to wait for. */
	swingcoll_req *release() noexcept
	{
		swingcoll_req *req = req_;

		req_ = nullptr;
		return req;
	}

      private:
	swingcoll_req *req_ = nullptr;
	swingcoll_comm *comm_ = nullptr;
};

/** The ranks that call collectives together; movable, and destroyed with its scope. */
class communicator
{
      public:
	/** Of ranks on one node, which call it with the same id. */
	communicator(const swingcoll_id &id, int nranks, int rank,
		     const swingcoll_comm_opts &opts = swingcoll_comm_opts())
	{
		swingcoll_comm *comm = nullptr;
		int ret = swingcoll_comm_create(&comm, &id, nranks, rank, &opts);

		created(ret, comm);
	}

	/** Of all ranks of a bootstrap. */
	explicit communicator(const swingcoll_bootstrap &boot,
			      const swingcoll_comm_opts &opts = swingcoll_comm_opts())
	{
		swingcoll_comm *comm = nullptr;
		int ret = swingcoll_comm_create_from(&comm, &boot, &opts);

		created(ret, comm);
	}

	/** One that C has made, which belongs to this object from now on. */
	explicit communicator(swingcoll_comm *comm) noexcept : comm_(comm)
	{
	}

	/** Of all ranks that a launcher has started. */
	static communicator create_auto(const swingcoll_comm_opts &opts = swingcoll_comm_opts())
	{
		swingcoll_comm *comm = nullptr;
		communicator made(nullptr);
		int ret = swingcoll_comm_create_auto(&comm, &opts);

		made.created(ret, comm);
		return made;
	}

	/** Without these ranks, or without the one at fault. */
	communicator shrink(const int *exclude = nullptr, int nexclude = 0) const
	{
		swingcoll_comm *comm = nullptr;

		detail::check(get(), swingcoll_comm_shrink(get(), exclude, nexclude, &comm));
		return communicator(comm);
	}

	swingcoll_comm *get() const noexcept
	{
		return comm_.get();
	}

	int rank() const noexcept
	{
		return swingcoll_comm_rank(get());
	}

	int size() const noexcept
	{
		return swingcoll_comm_size(get());
	}

	int nodes() const noexcept
	{
		return swingcoll_comm_nodes(get());
	}

	void abort()
	{
		detail::check(get(), swingcoll_comm_abort(get()));
	}

	/* Counts are in elements, as in swingcoll.h. */

	template <class T>
	void allreduce(const T *send, T *recv, std::size_t count,
		       swingcoll_redop op = SWINGCOLL_SUM) const
	{
		check(swingcoll_allreduce(send, recv, count, value_of<T>::value, op, get()));
	}

	template <class T>
	void reduce_scatter(const T *send, T *recv, std::size_t count,
			    swingcoll_redop op = SWINGCOLL_SUM) const
	{
		check(swingcoll_reduce_scatter(send, recv, count, value_of<T>::value, op, get()));
	}

	template <class T> void allgather(const T *send, T *recv, std::size_t count) const
	{
		check(swingcoll_allgather(send, recv, count, value_of<T>::value, get()));
	}

	template <class T> void broadcast(T *buffer, std::size_t count, int root) const
	{
		check(swingcoll_broadcast(buffer, buffer, count, value_of<T>::value, root, get()));
	}

	template <class T>
	void reduce(const T *send, T *recv, std::size_t count, int root,
		    swingcoll_redop op = SWINGCOLL_SUM) const
	{
		check(swingcoll_reduce(send, recv, count, value_of<T>::value, op, root, get()));
	}

	template <class T> void alltoall(const T *send, T *recv, std::size_t count) const
	{
		check(swingcoll_alltoall(send, recv, count, value_of<T>::value, get()));
	}

	template <class T> void gather(const T *send, T *recv, std::size_t count, int root) const
	{
		check(swingcoll_gather(send, recv, count, value_of<T>::value, root, get()));
	}

	template <class T> void scatter(const T *send, T *recv, std::size_t count, int root) const
	{
		check(swingcoll_scatter(send, recv, count, value_of<T>::value, root, get()));
	}

	void barrier() const
	{
		check(swingcoll_barrier(get()));
	}

	template <class T>
	request iallreduce(const T *send, T *recv, std::size_t count,
			   swingcoll_redop op = SWINGCOLL_SUM) const
	{
		swingcoll_req *req = nullptr;
		int ret = swingcoll_iallreduce(send, recv, count, value_of<T>::value, op, get(),
					       &req);

		return started(ret, req);
	}

	template <class T>
	request ireduce_scatter(const T *send, T *recv, std::size_t count,
				swingcoll_redop op = SWINGCOLL_SUM) const
	{
		swingcoll_req *req = nullptr;
		int ret = swingcoll_ireduce_scatter(send, recv, count, value_of<T>::value, op,
						    get(), &req);

		return started(ret, req);
	}

	template <class T> request iallgather(const T *send, T *recv, std::size_t count) const
	{
		swingcoll_req *req = nullptr;
		int ret = swingcoll_iallgather(send, recv, count, value_of<T>::value, get(), &req);

		return started(ret, req);
	}

	template <class T> request ibroadcast(T *buffer, std::size_t count, int root) const
	{
		swingcoll_req *req = nullptr;
		int ret = swingcoll_ibroadcast(buffer, buffer, count, value_of<T>::value, root,
					       get(), &req);

		return started(ret, req);
	}

	/** What another call of the library has returned: throws if that is an error. */
	void check(int ret) const
	{
		detail::check(get(), ret);
	}

	/** Likewise of one that has started an operation. */
	request started(int ret, swingcoll_req *req) const
	{
		check(ret);
		return request(req, get());
	}

      private:
	void created(int ret, swingcoll_comm *comm)
	{
		const char *text = swingcoll_bootstrap_error();

		if (ret)
			throw error(ret, *text ? text : swingcoll_strerror(ret));
		comm_.reset(comm);
	}

	std::unique_ptr<swingcoll_comm, detail::destroyer> comm_;
};

} /* namespace swingcoll */

#endif /* SWINGCOLL_HPP */
