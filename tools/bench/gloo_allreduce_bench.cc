// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gloo's allreduce in the frame of bench/peer.h: gloo_allreduce_bench RANKS i32|f32 BUFFERS TIME_MS BYTES...
 * Ranks are forked here and connected by TCP over the loopback, Gloo's only transport within a node.
 */
#include "bench/peer.h"

#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

/* Of this process, which is one rank. */
static std::shared_ptr<gloo::rendezvous::Context> context;

template <typename T>
static void allreduce(void *in, void *out, size_t n,
		      void (*fn)(void *, const void *, const void *, size_t))
{
	gloo::AllreduceOptions opts(context);

	opts.setInput(static_cast<T *>(in), n);
	opts.setOutput(static_cast<T *>(out), n);
	opts.setReduceFunction(fn);
	gloo::allreduce(opts);
}

static int start(void *arg, unsigned int buf)
{
	struct peer *p = static_cast<struct peer *>(arg);

	if (p->opt->is_float)
		allreduce<float>(p->send[buf], p->recv[buf], p->count, &gloo::sum<float>);
	else
		allreduce<int32_t>(p->send[buf], p->recv[buf], p->count, &gloo::sum<int32_t>);
	return 0;
}

static int sync_ranks(void *arg)
{
	gloo::BarrierOptions opts(context);

	(void)arg;
	gloo::barrier(opts);
	return 0;
}

static int max_ranks(void *arg, double *v)
{
	double mine = *v;

	(void)arg;
	allreduce<double>(&mine, v, 1, &gloo::max<double>);
	return 0;
}

static int run_rank(const struct peer_options *opt, int rank, int nranks, const char *store_dir)
{
	struct perf_ops ops = {};
	struct peer p = {};
	int status;

	ops.start = start;
	ops.sync = sync_ranks;
	ops.max = max_ranks;
	p.opt = opt;
	p.rank = rank;
	p.nranks = nranks;

	gloo::transport::tcp::attr attr;
	attr.iface = "lo";
	auto device = gloo::transport::tcp::CreateDevice(attr);
	gloo::rendezvous::FileStore store(store_dir);
	context = std::make_shared<gloo::rendezvous::Context>(rank, nranks);
	context->connectFullMesh(store, device);
	status = peer_run(&p, &ops);
	sync_ranks(&p);
	return status;
}

static int guarded(const struct peer_options *opt, int rank, int nranks, const char *store_dir)
{
	try {
		return run_rank(opt, rank, nranks, store_dir);
	} catch (const std::exception &e) {
		fprintf(stderr, "gloo_allreduce_bench: rank %d: %s\n", rank, e.what());
		return 2;
	}
}

int main(int argc, char **argv)
{
	static struct peer_options opt;
	char dir[] = "/tmp/gloo-bench-XXXXXX";
	int nranks, status, bad = 0;

	peer_parse(&opt, "gloo_allreduce_bench", &nranks, argc, argv);
	if (!mkdtemp(dir)) {
		perror(dir);
		return 2;
	}
	for (int rank = 0; rank < nranks; rank++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("fork");
			return 2;
		}
		if (!pid)
			_exit(guarded(&opt, rank, nranks, dir));
	}
	/* If a rank fails, Gloo's own deadline ends the others. */
	while (wait(&status) > 0)
		bad |= !WIFEXITED(status) ? 2 : WEXITSTATUS(status);
	if (system((std::string("rm -rf ") + dir).c_str()))
		fprintf(stderr, "gloo_allreduce_bench: %s was not removed\n", dir);
	return bad;
}
