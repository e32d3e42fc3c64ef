// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The process's open file of /dev/swingcoll: one for all communicators and registrations, opened on
 * first use and closed with the last user. The kernel ties an open file to one address space, so a
 * forked child drops what it inherited and opens its own. The lock guards the pointer to the
 * context and its list; it is a leaf, and held across fork.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/descriptors.h"
#include "src/priv.h"

/* Kernel memory of a connection, when long messages have come; see swingcoll(4). */
#define CONN_BYTES (1200u << 10)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct swc_context *current;

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/*
 * Close the file descriptors, or the parent's death would not close its context. The communicators
 * stay allocated, for the child to free, and are marked, so that no call touches memory that was
 * not inherited.
 */
static void in_child(void)
{
	if (current) {
		for (struct swingcoll_comm *c = current->comms; c; c = c->next) {
			c->forked = true;
			c->submit->forked(c);
			swc_endpoint_forked(c->peers.ep);
		}
		close(current->fd);
		current->fd = -1;
		current = NULL;
	}
	pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

static int open_context(struct swc_context **out)
{
	struct swc_context *ctx = calloc(1, sizeof(*ctx));
	int ret;

	if (!ctx)
		return -ENOMEM;
	ctx->fd = swc_descriptor_move(open(SWC_DEVICE_PATH, O_RDWR | O_CLOEXEC));
	if (ctx->fd < 0) {
		/* ENXIO: the device node exists, but the module is not loaded. */
		ret = errno == ENOENT || errno == ENXIO ? -ENODEV : -errno;
		goto err_free;
	}
	ret = swc_context_ioctl(ctx, SWC_IOC_INFO, &ctx->info);
	if (!ret && (ctx->info.abi_version != SWC_ABI_VERSION ||
		     ctx->info.desc_bytes != sizeof(struct swc_desc)))
		ret = -ENODEV;
	if (ret)
		goto err_close;
	ctx->refs = 1;
	*out = ctx;
	return 0;

err_close:
	close(ctx->fd);
err_free:
	free(ctx);
	return ret;
}

int swc_context_get(struct swc_context **ctx)
{
	int saved = errno, ret = 0;

	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&lock);
	if (current)
		current->refs++;
	else
		ret = open_context(&current);
	*ctx = current;
	pthread_mutex_unlock(&lock);
	errno = saved;
	return ret;
}

void swc_context_put(struct swc_context *ctx)
{
	pthread_mutex_lock(&lock);
	if (!--ctx->refs) {
		if (ctx == current)
			current = NULL;
		if (ctx->fd >= 0)
			close(ctx->fd);
		free(ctx);
	}
	pthread_mutex_unlock(&lock);
}

uint32_t swc_context_conns(const struct swc_context *ctx)
{
	struct swc_user_query q = { 0 };
	uint64_t conns, by_memory;

	/* The limits are the same for all users. */
	if (swc_context_ioctl(ctx, SWC_IOC_USER_QUERY, &q))
		return SWC_CHOICES_CONNECTIONS;
	conns = q.quota[SWC_QUOTA_CONNS].limit;
	by_memory = q.quota[SWC_QUOTA_MEMORY].limit / CONN_BYTES;
	conns = by_memory < conns ? by_memory : conns;
	return conns < UINT32_MAX ? (uint32_t)conns : UINT32_MAX;
}

void swc_context_link(struct swingcoll_comm *comm)
{
	pthread_mutex_lock(&lock);
	comm->next = comm->ctx->comms;
	comm->prev = &comm->ctx->comms;
	if (comm->next)
		comm->next->prev = &comm->next;
	*comm->prev = comm;
	pthread_mutex_unlock(&lock);
}

void swc_context_unlink(struct swingcoll_comm *comm)
{
	pthread_mutex_lock(&lock);
	*comm->prev = comm->next;
	if (comm->next)
		comm->next->prev = comm->prev;
	pthread_mutex_unlock(&lock);
}

int swc_context_ioctl(const struct swc_context *ctx, unsigned long cmd, void *arg)
{
	int saved = errno, ret = ioctl(ctx->fd, cmd, arg);

	if (ret < 0)
		ret = -errno;
	errno = saved;
	return ret;
}

/* NULL on failure. Children do not inherit the mapping, as they cannot use it. */
void *swc_context_mmap(const struct swc_context *ctx, uint64_t offset, size_t bytes, bool write)
{
	int saved = errno;
	void *p = mmap(NULL, bytes, write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, ctx->fd,
		       (off_t)offset);

	if (p == MAP_FAILED)
		p = NULL;
	else
		madvise(p, bytes, MADV_DONTFORK);
	errno = saved;
	return p;
}

void swc_context_munmap(void *p, size_t bytes)
{
	int saved = errno;

	if (p)
		munmap(p, bytes);
	errno = saved;
}
