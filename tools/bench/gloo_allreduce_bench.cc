// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gloo's allreduce (TCP on the loopback, its only transport within a node) timed by the loop that
 * swingperf uses. Forks its ranks; prints one JSON object per size as mpi_allreduce_bench does.
 *
 *	gloo_allreduce_bench RANKS DTYPE BUFFERS TIME_MS BYTES...
 */
extern "C" {
#include "common/perfloop.h"
}

#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

static const unsigned int max_buffers = 64;

struct bench {
	std::shared_ptr<gloo::rendezvous::Context> context;
	void *send[max_buffers];
	void *recv[max_buffers];
	size_t count;
	bool is_float;
};

template <typename T>
static void allreduce(bench *b, T *in, T *out, size_t n,
		      void (*fn)(void *, const void *, const void *, size_t))
{
	gloo::AllreduceOptions opts(b->context);

	opts.setInput(in, n);
	opts.setOutput(out, n);
	opts.setReduceFunction(fn);
	gloo::allreduce(opts);
}

static int start(void *arg, unsigned int buf)
{
	bench *b = static_cast<bench *>(arg);

	if (b->is_float)
		allreduce(b, static_cast<float *>(b->send[buf]), static_cast<float *>(b->recv[buf]),
			  b->count, &gloo::sum<float>);
	else
		allreduce(b, static_cast<int32_t *>(b->send[buf]),
			  static_cast<int32_t *>(b->recv[buf]), b->count, &gloo::sum<int32_t>);
	return 0;
}

static int sync_ranks(void *arg)
{
	gloo::BarrierOptions opts(static_cast<bench *>(arg)->context);

	gloo::barrier(opts);
	return 0;
}

static int max_ranks(void *arg, double *v)
{
	double mine = *v;

	allreduce(static_cast<bench *>(arg), &mine, v, 1, &gloo::max<double>);
	return 0;
}

static unsigned long check(bench *b, int rank, int ranks)
{
	unsigned long wrong = 0;

	for (size_t i = 0; i < b->count; i++) {
		if (b->is_float)
			static_cast<float *>(b->send[0])[i] = static_cast<float>(i % 1021 + rank);
		else
			static_cast<int32_t *>(b->send[0])[i] = static_cast<int32_t>(i % 1021 +
										     rank);
	}
	start(b, 0);
	for (size_t i = 0; i < b->count; i++) {
		int want = static_cast<int>(i % 1021) * ranks + ranks * (ranks - 1) / 2;

		wrong += b->is_float
				 ? static_cast<float *>(b->recv[0])[i] != static_cast<float>(want)
				 : static_cast<int32_t *>(b->recv[0])[i] != want;
	}
	return wrong;
}

static int run_rank(int rank, int ranks, const char *store_dir, int argc, char **argv)
{
	perf_rule rule = {};
	perf_ops ops = {};
	bench b = {};
	size_t max = 0;
	double wrong = 0;

	rule.warmup = 3;
	rule.repeats = 5;
	rule.buffers = static_cast<unsigned int>(atoi(argv[3]));
	rule.budget_s = atof(argv[4]) * 1e-3;
	ops.start = start;
	ops.sync = sync_ranks;
	ops.max = max_ranks;
	b.is_float = !strcmp(argv[2], "f32");

	gloo::transport::tcp::attr attr;
	attr.iface = "lo";
	auto device = gloo::transport::tcp::CreateDevice(attr);
	gloo::rendezvous::FileStore store(store_dir);
	b.context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
	b.context->connectFullMesh(store, device);

	for (int i = 5; i < argc; i++)
		max = std::max(max, static_cast<size_t>(strtoull(argv[i], nullptr, 10)));
	for (unsigned int i = 0; i < rule.buffers; i++) {
		b.send[i] = perf_alloc(max, 2 * rank);
		b.recv[i] = perf_alloc(max, 2 * rank + 1);
		if (!b.send[i] || !b.recv[i])
			return 2;
	}
	for (int i = 5; i < argc; i++) {
		perf_time t;
		size_t bytes = strtoull(argv[i], nullptr, 10);

		b.count = bytes / 4;
		memset(b.send[0], 0, bytes);
		if (perf_measure(&ops, &b, &rule, &t))
			return 2;
		wrong = static_cast<double>(check(&b, rank, ranks));
		max_ranks(&b, &wrong);
		if (rank)
			continue;
		printf("{\"op\":\"allreduce\",\"bytes\":%zu,\"count\":%zu,\"dtype\":\"%s\",\"redop\":\"sum\","
		       "\"ranks\":%d,\"inplace\":false,\"time_us\":%.4f,\"iqr_us\":%.4f,\"min_us\":%.4f,"
		       "\"median_us\":%.4f,\"p99_us\":%.4f,\"cpu_us\":%.4f,\"iters\":%lu,\"repeats\":%u,"
		       "\"errors\":%.0f}\n",
		       bytes, b.count, argv[2], ranks, t.time_us, t.iqr_us, t.min_us, t.median_us,
		       t.p99_us, t.cpu_us, t.iters, t.repeats, wrong);
		fflush(stdout);
	}
	sync_ranks(&b);
	return wrong > 0;
}

static int guarded(int rank, int ranks, const char *store_dir, int argc, char **argv)
{
	try {
		return run_rank(rank, ranks, store_dir, argc, argv);
	} catch (const std::exception &e) {
		fprintf(stderr, "gloo_allreduce_bench: rank %d: %s\n", rank, e.what());
		return 2;
	}
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/gloo-bench-XXXXXX";
	int ranks = argc > 1 ? atoi(argv[1]) : 0, status, bad = 0;

	if (argc < 6 || ranks < 2 || ranks > 64 ||
	    (strcmp(argv[2], "f32") && strcmp(argv[2], "i32")) || atoi(argv[3]) < 1 ||
	    atoi(argv[3]) > static_cast<int>(max_buffers) || atof(argv[4]) <= 0) {
		fprintf(stderr,
			"Usage: gloo_allreduce_bench RANKS f32|i32 BUFFERS TIME_MS BYTES...\n");
		return 2;
	}
	if (!mkdtemp(dir)) {
		perror(dir);
		return 2;
	}
	for (int rank = 0; rank < ranks; rank++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("fork");
			return 2;
		}
		if (!pid)
			_exit(guarded(rank, ranks, dir, argc, argv));
	}
	/* Gloo's own deadline ends the others if one of them fails. */
	while (wait(&status) > 0)
		bad |= !WIFEXITED(status) ? 2 : WEXITSTATUS(status);
	if (system((std::string("rm -rf ") + dir).c_str()))
		fprintf(stderr, "gloo_allreduce_bench: %s was not removed\n", dir);
	return bad;
}
