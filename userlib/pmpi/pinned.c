// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory that the kernel does not pin, although it can be read and written: files that are mapped, on file systems that
 * track what is written (Linux 6.5 and later), and devices. A blocking call on one node whose buffer is refused turns to
 * MPI. The others could not, and swingcoll gets copies of such buffers, whatever layout.c has made of the call.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "pmpi/pmpi.h"

/* ---- mappings ---- */

#define MAPS "/proc/self/maps"

/* <linux/fs.h> of Linux 6.11 and later. */
struct query {
	__u64 size, flags, addr;
	__u64 vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
	__u32 dev_major, dev_minor, name_size, build_id_size;
	__u64 name_addr, build_id_addr;
};

#define QUERY _IOWR('f', 17, struct query)
#define QUERY_SHARED 0x08
#define QUERY_THIS_OR_NEXT 0x10
#define QUERY_FILE 0x20

/* Files that are memory and nothing else: these are pinned. */
static bool is_memory(const char *name)
{
	static const char *const names[] = { "/dev/shm/", "/dev/zero", "/memfd:", "/SYSV" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Is there a shared mapping of a file in these bytes? -1: this kernel does not answer. */
static int query_files(int maps, uint64_t start, uint64_t end)
{
	char name[64];
	struct query q;

	while (start < end) {
		q = (struct query){ .size = sizeof(q),
				    .flags = QUERY_SHARED | QUERY_THIS_OR_NEXT | QUERY_FILE,
				    .addr = start,
				    .name_size = sizeof(name),
				    .name_addr = (uintptr_t)name };
		*name = 0;
		if (ioctl(maps, QUERY, &q)) {
			if (errno == ENOENT)
				return 0;
			/* The name is too long to be one of those. */
			if (errno != ENAMETOOLONG)
				return -1;
			q.name_size = 0;
			q.name_addr = 0;
			if (ioctl(maps, QUERY, &q))
				return errno == ENOENT ? 0 : -1;
		}
		if (q.vma_start >= end)
			return 0;
		if (!is_memory(name))
			return 1;
		start = q.vma_end;
	}
	return 0;
}

/* Likewise from the text, which takes longer. */
static bool read_files(uint64_t start, uint64_t end)
{
	FILE *f = fopen(MAPS, "re");
	unsigned long long first, last, inode;
	char *line = NULL, kind;
	bool found = false;
	size_t room = 0;
	int name;

	while (f && !found && getline(&line, &room, f) > 0) {
		name = 0;
		if (sscanf(line, "%llx-%llx %*3c%c %*s %*s %llu %n", &first, &last, &kind, &inode,
			   &name) < 4)
			continue;
		found = kind == 's' && inode && first < end && last > start &&
			!is_memory(line + name);
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

/* Before 6.5 the kernel pinned files, too. */
static bool pins_files(void)
{
	static int pins = -1; /* atomic */
	int known = __atomic_load_n(&pins, __ATOMIC_RELAXED), major, minor;
	struct utsname u;

	if (known >= 0)
		return known;
	known = !uname(&u) && sscanf(u.release, "%d.%d", &major, &minor) == 2 &&
		(major < 6 || (major == 6 && minor < 5));
	__atomic_store_n(&pins, known, __ATOMIC_RELAXED);
	return known;
}

static bool is_file(const void *p, size_t bytes)
{
	uint64_t start = (uintptr_t)p;
	int maps, found;

	if (pins_files())
		return false;
	maps = open(MAPS, O_RDONLY | O_CLOEXEC);
	if (maps < 0)
		return false;
	found = query_files(maps, start, start + bytes);
	if (found < 0)
		found = read_files(start, start + bytes);
	close(maps);
	return found;
}

bool pmpi_must_keep(const struct pmpi_call *c, const void *p, size_t bytes)
{
	return c->keep && bytes && (bytes <= PMPI_SMALL || is_file(p, bytes));
}

/* ---- buffers ---- */

/* Bytes that swingcoll reads and writes. */
static void count_bytes(const struct pmpi_call *c, size_t *send, size_t *recv)
{
	size_t one = c->count * swingcoll_dtype_size(c->dtype), all = one * (size_t)c->comm->size;
	bool root = c->comm->rank == c->root;

	*send = *recv = one;
	switch (c->coll) {
	case SWINGCOLL_REDUCE:
		*recv = root ? one : 0;
		break;
	case SWINGCOLL_REDUCE_SCATTER:
		*send = all;
		break;
	case SWINGCOLL_ALLGATHER:
		*recv = all;
		break;
	case SWINGCOLL_ALLTOALL:
		*send = *recv = all;
		break;
	case SWINGCOLL_GATHER:
		*recv = root ? all : 0;
		break;
	case SWINGCOLL_SCATTER:
		*send = root ? all : 0;
		break;
	case SWINGCOLL_BARRIER:
		*send = *recv = 0;
		break;
	default:
		break;
	}
}

static bool is_part(const void *p, size_t bytes, const void *buf, size_t all)
{
	uintptr_t place = (uintptr_t)p - (uintptr_t)buf;

	return place <= all && bytes <= all - place;
}

static void *copy_of(const void *buf, size_t bytes)
{
	void *copy = malloc(bytes);

	return copy ? memcpy(copy, buf, bytes) : NULL;
}

/* In place, the one buffer is part of the other, and remains it. What layout.c has copied is no file. */
static int copy_buffers(struct pmpi_stage *st, const struct pmpi_call *c)
{
	const char *send = st->send;
	char *recv = st->recv;
	size_t send_bytes, recv_bytes;

	count_bytes(c, &send_bytes, &recv_bytes);
	if (!st->recv_copy && pmpi_must_keep(c, recv, recv_bytes)) {
		st->recv_kept = copy_of(recv, recv_bytes);
		if (!st->recv_kept)
			return MPI_ERR_NO_MEM;
		st->recv_file = recv;
		st->recv_bytes = recv_bytes;
		st->recv = st->recv_kept;
		if (is_part(send, send_bytes, recv, recv_bytes))
			st->send = (char *)st->recv_kept + (send - recv);
	}
	if (st->send == send && !st->send_copy && !is_part(send, send_bytes, recv, recv_bytes) &&
	    pmpi_must_keep(c, send, send_bytes)) {
		st->send = st->send_kept = copy_of(send, send_bytes);
		if (!st->send_kept)
			return MPI_ERR_NO_MEM;
		if (st->recv == recv && is_part(recv, recv_bytes, send, send_bytes))
			st->recv = (char *)st->send_kept + (recv - send);
	}
	return MPI_SUCCESS;
}

int pmpi_buffers_begin(struct pmpi_stage *st, const struct pmpi_call *c)
{
	int ret = pmpi_stage_begin(st, c);

	return ret == MPI_SUCCESS && c->keep && c->coll != SWINGCOLL_BARRIER ? copy_buffers(st, c)
									     : ret;
}

int pmpi_buffers_end(struct pmpi_stage *st, const struct pmpi_call *c, bool good)
{
	if (good && st->recv_file)
		memcpy(st->recv_file, st->recv_kept, st->recv_bytes);
	free(st->send_kept);
	free(st->recv_kept);
	return pmpi_stage_end(st, c, good);
}
