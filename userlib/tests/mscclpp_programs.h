/* SPDX-License-Identifier: GPL-2.0-only */
/* Execution plans of MSCCL++, for tests. */
#ifndef SWC_TESTS_MSCCLPP_PROGRAMS_H
#define SWC_TESTS_MSCCLPP_PROGRAMS_H

#include "plan/format/mscclpp.h"
#include "plan_texts.h"

/*
 * Text of JSON; lists are written with a comma before each element but the first. @more_channels: between two
 * GPUs, besides the one that is used
 */
struct json {
	struct swc_text t;
	bool more;
	uint32_t more_channels;
};

#define put_json(j, ...) swc_text_printf(&(j)->t, __VA_ARGS__)

static inline void json_item(struct json *j)
{
	put_json(j, j->more ? ",\n" : "\n");
	j->more = true;
}

static inline void json_begin(struct json *j, const char *coll, bool in_place)
{
	*j = (struct json){ .more_channels = j->more_channels };
	put_json(
		j,
		"{ \"name\": \"my %s\", \"collective\": \"%s\", \"protocol\": \"Simple\", \"inplace\": %s,\n\"gpus\": [",
		coll, coll, in_place ? "true" : "false");
}

static inline void json_end(struct json *j)
{
	put_json(j, "\n] }\n");
}

/* The numbers from 0 to @n. */
static inline void json_ids(struct json *j, const char *name, uint32_t n)
{
	put_json(j, "\"%s\": [", name);
	for (uint32_t i = 0; i < n; i++)
		put_json(j, "%s%u", i ? ", " : "", i);
	put_json(j, "]");
}

/* A GPU with a channel to each other one, whose @buf it may access. */
static inline void json_gpu(struct json *j, uint32_t r, uint32_t n, const char *buf, uint32_t in,
			    uint32_t out, uint32_t scratch, const char *semaphores)
{
	json_item(j);
	put_json(
		j,
		"{ \"id\": %u, \"input_chunks\": %u, \"output_chunks\": %u, \"scratch_chunks\": %u,\n\"channels\": [{ \"channel_type\": \"memory\", \"connected_to\": [",
		r, in, out, scratch);
	for (uint32_t i = 0, k = 0; i < n * (1 + j->more_channels); i++)
		if (i % n != r)
			put_json(j, "%s%u", k++ ? ", " : "", i % n);
	put_json(j, "] }],\n\"remote_buffers\": [");
	for (uint32_t i = 0, k = 0; i < n; i++)
		if (i != r)
			put_json(
				j,
				"%s\n{ \"rank\": %u, \"type\": \"%s\", \"access_channel_types\": [\"memory\"] }",
				k++ ? "," : "", i, buf);
	put_json(j, "],\n\"semaphores\": [%s],\n\"threadblocks\": [", semaphores);
	j->more = false;
}

static inline void json_gpu_end(struct json *j)
{
	put_json(j, "] }");
	j->more = true;
}

/* A thread block that uses all of that. */
static inline void json_tb(struct json *j, uint32_t id, uint32_t n)
{
	json_item(j);
	put_json(j, "{ \"id\": %u, \"channels\": [{ \"channel_type\": \"memory\", ", id);
	json_ids(j, "channel_ids", n - 1);
	put_json(j, " }],\n\"remote_buffer_refs\": [{ \"access_channel_type\": \"memory\", ");
	json_ids(j, "remote_buffer_ids", n - 1);
	put_json(j, " }],\n\"ops\": [");
	j->more = false;
}

static inline void json_tb_end(struct json *j)
{
	put_json(j, "] }");
	j->more = true;
}

/* signal or wait, on all channels */
static inline void json_all(struct json *j, const char *name, uint32_t n)
{
	json_item(j);
	put_json(j, "{ \"name\": \"%s\", \"channel_type\": \"memory\", ", name);
	json_ids(j, "channel_ids", n - 1);
	put_json(j, " }");
}

static inline void json_op(struct json *j, const char *name)
{
	json_item(j);
	put_json(j, "{ \"name\": \"%s\", \"channel_type\": \"memory\", \"src_buff\": [", name);
	j->more = false;
}

static inline void json_to(struct json *j)
{
	put_json(j, "],\n\"dst_buff\": [");
	j->more = false;
}

static inline void json_op_end(struct json *j)
{
	put_json(j, "] }");
	j->more = true;
}

static inline void json_own(struct json *j, char buf, uint32_t index)
{
	json_item(j);
	put_json(j, "{ \"type\": \"%c\", \"index\": %u, \"size\": 1 }", buf, index);
}

static inline void json_remote(struct json *j, uint32_t id, uint32_t index)
{
	json_item(j);
	put_json(j, "{ \"buffer_id\": %u, \"index\": %u, \"size\": 1 }", id, index);
}

/* Each GPU writes its chunk to all others. */
static inline void puts_allgather(struct json *j, uint32_t n)
{
	json_begin(j, "allgather", true);
	for (uint32_t r = 0; r < n; r++) {
		json_gpu(j, r, n, "o", 1, n, 0, "");
		json_tb(j, 0, n);
		json_all(j, "signal", n);
		json_all(j, "wait", n);
		json_op(j, "put");
		json_own(j, 'i', 0);
		json_to(j);
		for (uint32_t k = 0; k + 1 < n; k++)
			json_remote(j, k, r);
		json_op_end(j);
		json_all(j, "rlxsignal", n);
		json_all(j, "rlxwait", n);
		json_tb_end(j);
		json_gpu_end(j);
	}
	json_end(j);
}

static inline void json_barrier(struct json *j)
{
	json_item(j);
	put_json(j, "{ \"name\": \"barrier\", \"barrier_id\": 7, \"num_threadblocks\": 2 }");
}

/*
 * Each GPU reads a chunk of all others, adds them up in a pipeline, and writes the sum to all. @spoil: 1: one
 * leaves out its contribution; 2: nobody signals at the end.
 */
static inline void reads_allreduce(struct json *j, uint32_t n, int spoil)
{
	json_begin(j, "allreduce", true);
	for (uint32_t r = 0; r < n; r++) {
		json_gpu(j, r, n, "i", n, 0, 0, "");
		json_tb(j, 0, n);
		json_all(j, "signal", n);
		json_barrier(j);
		json_barrier(j);
		json_tb_end(j);
		json_tb(j, 5, n);
		json_barrier(j);
		json_all(j, "wait", n);
		json_item(j);
		put_json(
			j,
			"{ \"name\": \"pipeline\", \"iter_context\": { \"unit_size\": 65536, \"num_chunks\": 1 }, \"ops\": [");
		j->more = false;
		json_op(j, n % 2 ? "rre" : "rres");
		json_own(j, 'i', r);
		for (uint32_t k = 0; k + 1 < n; k++)
			if (spoil != 1 || r || k)
				json_remote(j, k, r);
		json_to(j);
		json_own(j, 'i', r);
		for (uint32_t k = 0; k + 1 < n && !(n % 2); k++)
			json_remote(j, k, r);
		json_op_end(j);
		if (n % 2) {
			json_op(j, "put");
			json_own(j, 'i', r);
			json_to(j);
			for (uint32_t k = 0; k + 1 < n; k++)
				json_remote(j, k, r);
			json_op_end(j);
		}
		put_json(j, "] }");
		if (spoil != 2)
			json_all(j, "signal", n);
		json_all(j, "wait", n);
		json_barrier(j);
		json_tb_end(j);
		json_gpu_end(j);
	}
	json_end(j);
}

static inline void json_semaphore(struct json *j, const char *name)
{
	json_item(j);
	put_json(j, "{ \"name\": \"%s\", \"semaphore_ids\": [0] }", name);
}

/* By packets through scratch, which nobody signals: chunks to their owners, and sums back. */
static inline void packets_allreduce(struct json *j, uint32_t n)
{
	json_begin(j, "allreduce", false);
	for (uint32_t r = 0; r < n; r++) {
		json_gpu(j, r, n, "s", n, n, 2 * n, "{ \"init_value\": 0 }");
		json_tb(j, 0, n);
		json_semaphore(j, "sem_acquire");
		for (uint32_t p = 0; p < n; p++) {
			if (p == r)
				continue;
			json_op(j, "upkt");
			json_own(j, 's', n + p);
			json_to(j);
			json_own(j, 'o', p);
			json_op_end(j);
		}
		json_tb_end(j);
		json_tb(j, 1, n);
		for (uint32_t p = 0, k = 0; p < n; p++) {
			if (p == r)
				continue;
			json_op(j, "ppkt");
			json_own(j, 'i', p);
			json_to(j);
			json_remote(j, k++, r);
			json_op_end(j);
		}
		json_op(j, "respkt");
		json_own(j, 'i', r);
		for (uint32_t p = 0; p < n; p++)
			if (p != r)
				json_own(j, 's', p);
		json_to(j);
		json_own(j, 'o', r);
		for (uint32_t k = 0; k + 1 < n; k++)
			json_remote(j, k, n + r);
		json_op_end(j);
		json_semaphore(j, "sem_release");
		json_tb_end(j);
		json_gpu_end(j);
	}
	json_end(j);
}

#endif /* SWC_TESTS_MSCCLPP_PROGRAMS_H */
