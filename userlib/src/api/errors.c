// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Errors as text. The kernel's line about a failed operation comes from the kernel. Failures before
 * the kernel has an operation are kept here, per communicator, under its text lock (a leaf).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/priv.h"

static const struct {
	int error;
	const char *text;
} texts[] = {
	{ 0, "success" },
	{ -EINVAL, "an argument is out of range, or buffers overlap" },
	{ -ENODEV, "no usable /dev/swingcoll: load the module of this version (swingctl doctor)" },
	{ -EACCES, "no permission to use /dev/swingcoll or this communicator (swingctl doctor)" },
	{ -EPERM,
	  "not permitted: SWINGCOLL_URGENT needs CAP_SYS_NICE or ulimit -e 40, io_uring may be disabled" },
	{ -ENOMEM,
	  "out of memory, or the locked-memory limit is reached (raise RLIMIT_MEMLOCK: ulimit -l)" },
	{ -EFAULT, "a buffer is not memory of this process, or not writable" },
	{ -EAGAIN, "too many collectives in flight: wait for one first" },
	{ -EINPROGRESS, "not finished yet" },
	{ -EEXIST, "another process has this rank" },
	{ -ENOSPC,
	  "a limit of the module is reached: root can raise max_comms, max_plans or max_regions, see swingcoll(4)" },
	{ -EDQUOT,
	  "this user may have no more: swingctl status shows which limit is reached, and root can raise "
	  "it (module parameters user_*)" },
	{ -EPROTO, "the ranks called different collectives, or with different arguments" },
	{ -ETIMEDOUT, "a rank did not come before the deadline" },
	{ -ECONNRESET, "a rank has died or left" },
	{ -ECONNABORTED, "the communicator was aborted" },
	{ -ECANCELED, "cancelled: another rank's buffers were refused" },
	{ -EOPNOTSUPP,
	  "not supported by this kernel or algorithm: swingcoll_comm_error() or dmesg says what" },
	{ -EBADF, "the communicator belongs to the parent process: create one after fork()" },
	{ -EOVERFLOW, "the vector is larger than 64 TiB" },
	{ -EBUSY,
	  "the round of a partitioned collective, or a sparse allreduce, is not complete: wait for it first" },
	{ -ENODATA,
	  "no data: no product function was given, or it is for another type; or no sparse allreduce has run yet" },
	{ -ENOENT,
	  "a file, or the library of a launcher (libswingcoll_pmix.so.1), does not exist" },
	{ -EADDRINUSE,
	  "a port is in use: that of the root (SWINGCOLL_ROOT), or one of the module's (rdma_port, tcp_port, tls_port; dmesg names it)" },
	{ -EADDRNOTAVAIL,
	  "no address of a node is known: set SWINGCOLL_ADDRS or SWINGCOLL_IFACES there" },
	{ -EIO, "a device or a file has failed" },
	{ -EFBIG,
	  "too large: a buffer of more than 2^27 pages, or a file that is not of the expected kind" },
	{ -EMFILE, "too many open files: raise ulimit -n" },
	{ -ENFILE, "too many open files on this machine: raise fs.file-max" },
	{ -ENOSYS, "this kernel has no io_uring, which the option use_io_uring requires" },
	{ -EHOSTUNREACH, "a rank cannot be reached" },
};

SWC_PUBLIC const char *swingcoll_strerror(int error)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].error == error)
			return texts[i].text;
	return "unexpected error: see dmesg, and report this";
}

/*
 * Which of these a rank gets depends on where it was: in the operation that failed, the reason; in
 * a later call, ECONNABORTED. The last two come from connections between nodes, which take the
 * communicator with them.
 */
SWC_PUBLIC bool swingcoll_comm_failed(int error)
{
	switch (error) {
	case -ECONNRESET:
	case -ECONNABORTED:
	case -ETIMEDOUT:
	case -EIO:
	case -ENODEV:
		return true;
	}
	return false;
}

int swc_comm_fail(struct swingcoll_comm *comm, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	pthread_mutex_lock(&comm->text_lock);
	comm->local_error = error;
	vsnprintf(comm->local_text, sizeof(comm->local_text), fmt, ap);
	pthread_mutex_unlock(&comm->text_lock);
	va_end(ap);
	return error;
}

SWC_PUBLIC int swingcoll_comm_error(struct swingcoll_comm *comm, char *text, size_t size,
				    int *culprit)
{
	struct swc_comm_error e = { .culprit = -1 };
	char later[SWC_TEXT_BYTES + 2] = "";
	int ret;

	if (text && size)
		text[0] = 0;
	if (culprit)
		*culprit = -1;
	if (!comm || comm->forked)
		return comm ? -EBADF : -EINVAL;
	e.comm = comm->handle;
	ret = swc_context_ioctl(comm->ctx, SWC_IOC_COMM_ERROR, &e);
	if (ret)
		return ret;
	pthread_mutex_lock(&comm->text_lock);
	if (!e.error) {
		e.error = comm->local_error;
		e.culprit = -1;
		memcpy(e.text, comm->local_text, sizeof(e.text));
	} else if (comm->agreement_failed) {
		snprintf(later, sizeof(later), "; %s", comm->local_text);
	}
	pthread_mutex_unlock(&comm->text_lock);
	if (text && size) {
		snprintf(text, size, "%.*s%s", (int)sizeof(e.text), e.text, later);
		swc_hosts_append(&comm->place, comm->nranks, text, size);
	}
	if (culprit)
		*culprit = e.culprit;
	return e.error;
}

/* ---- of creation, per thread ---- */

static __thread char last_error[2 * SWC_TEXT_BYTES];

SWC_PUBLIC const char *swingcoll_bootstrap_error(void)
{
	return last_error;
}

SWC_PUBLIC int swingcoll_bootstrap_fail(int error, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(last_error, sizeof(last_error), fmt, args);
	va_end(args);
	return error;
}
