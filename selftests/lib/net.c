// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <glob.h>

#include "net.h"

int net_node, net_nodes;
static struct swingcoll_bootstrap *boot;
static char root[128];

/* ------------------------------------------------------------------ layouts */

void net_layout(struct net_layout *l, int even, int odd)
{
	memset(l, 0, sizeof(*l));
	for (int n = 0; n < net_nodes; n++)
		l->first[n + 1] = l->first[n] + (n & 1 ? odd : even);
	l->nranks = l->first[net_nodes];
}

int net_layout_local(const struct net_layout *l)
{
	return l->first[net_node + 1] - l->first[net_node];
}

int net_layout_rank(const struct net_layout *l, int i)
{
	return l->in_turn ? i * net_nodes + net_node : l->first[net_node] + i;
}

int net_layout_node(const struct net_layout *l, int rank)
{
	int n = 0;

	if (l->in_turn)
		return rank % net_nodes;
	while (rank >= l->first[n + 1])
		n++;
	return n;
}

/* ------------------------------------------------------------------ nodes */

static void set_number(const char *name, long v)
{
	char text[24];

	snprintf(text, sizeof(text), "%ld", v);
	setenv(name, text, 1);
}

void net_set_root_offset(int by)
{
	char *colon = strrchr(root, ':'), text[sizeof(root) + 8];

	snprintf(text, sizeof(text), "%.*s:%d", (int)(colon - root), root, atoi(colon + 1) + by);
	setenv("SWINGCOLL_ROOT", text, 1);
}

const char *net_root_address(void)
{
	static char text[sizeof(root)];

	snprintf(text, sizeof(text), "%.*s", (int)(strrchr(root, ':') - root), root);
	return text;
}

void net_rejoin(void)
{
	int ret;

	swingcoll_bootstrap_free(boot);
	/* Node processes use the port after that of the ranks. */
	net_set_root_offset(1);
	ret = swingcoll_bootstrap_env(&boot);
	if (ret)
		ksft_exit_fail_msg("node %d cannot connect to the others: %s\n", net_node,
				   swingcoll_bootstrap_error());
	net_set_root_offset(0);
}

void net_init(void)
{
	const char *node = getenv("SWINGCOLL_NODE"), *nodes = getenv("SWINGCOLL_NNODES");
	const char *at = getenv("SWINGCOLL_ROOT");

	if (!node || !nodes || !at || !strchr(at, ':')) {
		ksft_print_header();
		ksft_exit_skip("needs a cluster: tools/vm/run --nodes 2 -- ...\n");
	}
	net_node = atoi(node);
	net_nodes = atoi(nodes);
	if (net_nodes < 2 || net_nodes > NET_MAX_NODES)
		ksft_exit_skip("needs 2 to %d nodes\n", NET_MAX_NODES);
	testlib_require_device();
	snprintf(root, sizeof(root), "%s", at);
	setvbuf(stdout, NULL, _IOLBF, 0);
	setenv("SWINGCOLL_SECRET", NET_SECRET, 1);
	net_rejoin();
	if (!net_node)
		ksft_print_header();
}

void net_allgather(const void *mine, void *all, size_t bytes)
{
	int ret = boot->allgather(boot->arg, mine, all, bytes);

	if (ret)
		ksft_exit_fail_msg("node %d has lost the connection to the others: %s\n", net_node,
				   swingcoll_bootstrap_error());
}

bool net_any(bool bad)
{
	unsigned char mine = bad, all[NET_MAX_NODES];

	net_allgather(&mine, all, 1);
	for (int n = 0; n < net_nodes; n++)
		bad |= all[n];
	return bad;
}

/* ------------------------------------------------------------------ transports */

int net_transport(void)
{
	const char *text = getenv("SWINGCOLL_TRANSPORT");

	if (text && !strcmp(text, "tls"))
		return SWC_TRANSPORT_TLS;
	return text && !strcmp(text, "tcp") ? SWC_TRANSPORT_TCP : SWC_TRANSPORT_RDMA;
}

uint32_t net_port(void)
{
	struct swc_info info = testlib_info();

	switch (net_transport()) {
	case SWC_TRANSPORT_TCP:
		return info.tcp_port;
	case SWC_TRANSPORT_TLS:
		return info.tls_port;
	default:
		return info.rdma_port;
	}
}

/* Its packets are those of TCP, to the port of RDMA. A cluster has devices of one kind only. */
bool net_is_iwarp(void)
{
	glob_t files = { 0 };
	char line[64] = "";
	FILE *f = NULL;

	if (net_transport() == SWC_TRANSPORT_RDMA &&
	    !glob("/sys/class/infiniband/*/node_type", 0, NULL, &files))
		f = fopen(files.gl_pathv[0], "re");
	if (f && !fgets(line, sizeof(line), f))
		line[0] = 0;
	if (f)
		fclose(f);
	globfree(&files);
	return strstr(line, "RNIC");
}

/* ------------------------------------------------------------------ ranks */

void net_set_rank_env(const struct net_layout *l, int rank, unsigned int step)
{
	set_number("SWINGCOLL_RANK", rank);
	set_number("SWINGCOLL_NRANKS", l->nranks);
	set_number("SWINGCOLL_JOB", step);
	/* In a topology ranks are numbered node by node. */
	if (l->in_turn)
		unsetenv("SWINGCOLL_TOPO");
}
