// SPDX-License-Identifier: GPL-2.0-only
/* Paths between nodes, by which transport, and addresses of a node. TAP on stdout. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "src/bootstrap/bootstrap.h"
#include "tap.h"

#define MAX_NODES 64

static struct swc_boot_addr addrs[MAX_NODES][SWC_MAX_PATHS];
static struct swc_paths_node nodes[MAX_NODES];

/* Node i's address k is 10.0.i.k, its port 1000 + i. */
static void make_nodes(uint32_t n, uint32_t naddrs)
{
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < naddrs; k++)
			addrs[i][k] = (struct swc_boot_addr){
				.family = AF_INET, .bytes = { 10, 0, (uint8_t)i, (uint8_t)k }
			};
		nodes[i] = (struct swc_paths_node){
			addrs[i], naddrs, { 1000 + i, 2000 + i }, "node"
		};
	}
}

static const struct sockaddr_in *in(const uint8_t *sa)
{
	return (const void *)sa;
}

static uint32_t last_byte(const uint8_t *sa)
{
	return ntohl(in(sa)->sin_addr.s_addr) & 0xff;
}

static const struct swc_node_path *find(const struct swc_node_path *p, uint32_t n, uint32_t node,
					uint32_t path)
{
	for (uint32_t i = 0; i < n; i++)
		if (p[i].node == node && p[i].path == path)
			return &p[i];
	return NULL;
}

static bool well_formed(const struct swc_node_path *p, uint32_t n, uint32_t nnodes, uint32_t me)
{
	bool good = true;
	uint32_t at = 0;

	/* Ordered by node and path, without gaps, and with all other nodes. */
	for (uint32_t node = 0; node < nnodes; node++) {
		uint32_t path = 0;

		for (; at < n && p[at].node == node; at++, path++) {
			good &= p[at].path == path && !in(p[at].local)->sin_port &&
				ntohs(in(p[at].remote)->sin_port) == 1000 + node;
			good &= (ntohl(in(p[at].local)->sin_addr.s_addr) >> 8 & 0xff) == me;
			good &= (ntohl(in(p[at].remote)->sin_addr.s_addr) >> 8 & 0xff) == node;
		}
		good &= node == me ? !path : path > 0;
	}
	return good && at == n;
}

/* Is the local address of each path at one end the remote address at the other? */
static bool ends_agree(const char *shape, uint32_t naddrs)
{
	struct swc_node_path *p[MAX_NODES];
	uint32_t n[MAX_NODES];
	struct swc_topo t;
	bool good = true;
	char why[256];

	if (swc_topo_parse(&t, shape, why, sizeof(why)))
		return false;
	make_nodes(t.nnodes, naddrs);
	for (uint32_t i = 0; i < t.nnodes; i++) {
		if (swc_paths_make(&t, nodes, t.nnodes, i, &p[i], &n[i], why, sizeof(why)))
			return false;
		good &= well_formed(p[i], n[i], t.nnodes, i);
	}
	for (uint32_t i = 0; i < t.nnodes; i++)
		for (uint32_t k = 0; k < n[i]; k++) {
			const struct swc_node_path *a = &p[i][k];
			const struct swc_node_path *b = find(p[a->node], n[a->node], i, a->path);

			good &= b &&
				in(a->local)->sin_addr.s_addr == in(b->remote)->sin_addr.s_addr &&
				in(a->remote)->sin_addr.s_addr == in(b->local)->sin_addr.s_addr;
		}
	for (uint32_t i = 0; i < t.nnodes; i++)
		free(p[i]);
	swc_topo_free(&t);
	return good;
}

/* Does a path have these ports at its ends? -1: there is no such path. */
static bool ports_are(const char *shape, uint32_t naddrs, uint32_t from, uint32_t to, uint32_t path,
		      int local, int remote)
{
	struct swc_node_path *p;
	const struct swc_node_path *it;
	struct swc_topo t;
	char why[256];
	uint32_t n;
	bool good;

	if (swc_topo_parse(&t, shape, why, sizeof(why)))
		return false;
	make_nodes(t.nnodes, naddrs);
	if (swc_paths_make(&t, nodes, t.nnodes, from, &p, &n, why, sizeof(why)))
		return false;
	it = find(p, n, to, path);
	good = local < 0 ? !it
			 : it && last_byte(it->local) == (uint32_t)local &&
				   last_byte(it->remote) == (uint32_t)remote;
	free(p);
	swc_topo_free(&t);
	return good;
}

static void test_paths(void)
{
	static const struct {
		const char *shape;
		uint32_t naddrs;
	} all[] = { { "torus:2x2", 4 }, { "torus:4x4", 4 },   { "torus:3x5", 4 },
		    { "ring:4", 2 },	{ "ring:4", 1 },      { "ring:2", 2 },
		    { "switch:3", 2 },	{ "torus:1x4", 2 },   { "torus:2x3x4", 6 },
		    { "torus:4x4", 1 }, { "torus:2x2*3", 4 }, { "mesh:2x2", 4 } };
	char name[80];

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		snprintf(name, sizeof(name), "%s with %u addresses: both ends agree", all[i].shape,
			 all[i].naddrs);
		ok(ends_agree(all[i].shape, all[i].naddrs), name);
	}
	ok(ports_are("ring:4", 2, 0, 1, 0, 0, 1) && ports_are("ring:4", 2, 1, 0, 0, 1, 0) &&
		   ports_are("ring:4", 2, 0, 3, 0, 1, 0) && ports_are("ring:4", 2, 0, 1, 1, -1, -1),
	   "neighbours on a ring: one path, from plus port to minus port");
	ok(ports_are("ring:4", 2, 0, 2, 0, 0, 1) && ports_are("ring:4", 2, 0, 2, 1, 1, 0) &&
		   ports_are("ring:4", 2, 3, 1, 0, 1, 0) && ports_are("ring:4", 2, 3, 1, 1, 0, 1),
	   "opposite nodes on a ring: path 0 by plus of the lower node, path 1 by minus");
	ok(ports_are("ring:2", 2, 0, 1, 0, 0, 1) && ports_are("ring:2", 2, 0, 1, 1, 1, 0),
	   "ring of two nodes: two paths");
	/* 0 = (0,0), 1 = (0,1), 2 = (1,0), 3 = (1,1) */
	ok(ports_are("torus:2x2", 4, 0, 1, 0, 2, 3) && ports_are("torus:2x2", 4, 0, 1, 1, 3, 2) &&
		   ports_are("torus:2x2", 4, 0, 2, 0, 0, 1) &&
		   ports_are("torus:2x2", 4, 0, 3, 0, 0, 3) &&
		   ports_are("torus:2x2", 4, 0, 3, 1, 3, 0) &&
		   ports_are("torus:2x2", 4, 0, 3, 2, 1, 2) &&
		   ports_are("torus:2x2", 4, 0, 3, 3, 2, 1) &&
		   ports_are("torus:2x2", 4, 0, 3, 4, -1, -1) &&
		   ports_are("torus:2x2", 4, 3, 0, 0, 3, 0),
	   "torus:2x2: leave by a port of the first dimension, arrive at one of the last");
	/* (0,0) to (2,4): x minus, y minus; to (1,2): x plus, y plus */
	ok(ports_are("torus:3x5", 4, 0, 14, 0, 1, 2) && ports_are("torus:3x5", 4, 0, 7, 0, 0, 3) &&
		   ports_are("torus:3x5", 4, 7, 0, 0, 3, 0) &&
		   ports_are("torus:3x5", 4, 7, 0, 1, 1, 2) &&
		   ports_are("torus:3x5", 4, 7, 0, 2, -1, -1),
	   "torus:3x5: the shorter way round in each dimension");
	ok(ports_are("torus:1x4", 2, 0, 1, 0, 0, 1), "a dimension of length 1 has no ports");
	ok(ports_are("switch:3", 2, 0, 2, 1, 1, 1) && ports_are("switch:3", 2, 0, 2, 2, -1, -1),
	   "rails: address k connects to address k");
}

/*
 * The node that a packet goes to next, on its way to a port of another node: as networks forward
 * that know addresses only. It crosses the other dimensions first, in their order and each the
 * shorter way round, up where both are equally long, and comes by the link of that port in the end.
 * Returns the link.
 */
static uint32_t forward(const struct swc_topo *t, uint32_t *node, uint32_t goal, uint32_t port)
{
	uint32_t at[SWC_TOPO_DIMS], end[SWC_TOPO_DIMS], link, dim = port / 2;
	bool down = !(port % 2);

	swc_topo_coords(t, *node, at);
	swc_topo_coords(t, goal, end);
	for (uint32_t i = 0; i < t->ndims; i++) {
		uint32_t up = (end[i] + t->dim[i] - at[i]) % t->dim[i];

		if (i == port / 2 || !up)
			continue;
		dim = i;
		down = t->kind == SWC_TOPO_MESH ? end[i] < at[i] : 2 * up > t->dim[i];
		break;
	}
	link = (*node * t->ndims + dim) * 2 + down;
	at[dim] = (at[dim] + (down ? t->dim[dim] - 1 : 1)) % t->dim[dim];
	*node = swc_topo_node_at(t, at);
	return link;
}

/* Does a packet take the links of the route, from the port that the library sends it by? */
static bool takes_route(const struct swc_topo *t, uint32_t from, uint32_t to, uint32_t path,
			uint32_t local, uint32_t remote)
{
	struct swc_topo_leg leg[SWC_TOPO_DIMS];
	uint32_t n = swc_topo_route(t, path, from, to, leg), node = from, at[SWC_TOPO_DIMS];
	bool good = true, first = true;

	for (uint32_t i = 0; i < n && good; i++)
		for (uint32_t k = 0; k < leg[i].hops && good; k++, first = false) {
			uint32_t link = (node * t->ndims + leg[i].dim) * 2 + leg[i].down, d;

			if (!first) {
				good = forward(t, &node, to, remote) == link;
				continue;
			}
			/* The network card of the sender's address. */
			good = (from * t->ndims * 2 + local) == link;
			swc_topo_coords(t, node, at);
			d = t->dim[local / 2];
			at[local / 2] = (at[local / 2] + (local % 2 ? d - 1 : 1)) % d;
			node = swc_topo_node_at(t, at);
		}
	return good && node == to;
}

/* Leave out the addresses of ports without a link, at the ends of a mesh. */
static void drop_ends(const struct swc_topo *t)
{
	for (uint32_t i = 0; i < t->nnodes; i++) {
		uint32_t coord[SWC_TOPO_DIMS], n = 0;

		swc_topo_coords(t, i, coord);
		for (uint32_t port = 0; port < 2 * t->ndims; port++)
			if (coord[port / 2] != (port % 2 ? 0 : t->dim[port / 2] - 1))
				addrs[i][n++] = addrs[i][port];
		nodes[i].naddrs = n;
	}
}

/* The ports that the library pairs, the way of a packet between them, and the model's route. */
static void test_ways(const char *shape)
{
	struct swc_node_path *p;
	uint32_t n, wrong = 0;
	struct swc_topo t;
	char why[256], name[80];

	if (swc_topo_parse(&t, shape, why, sizeof(why)))
		abort();
	make_nodes(t.nnodes, 2 * t.ndims);
	if (t.kind == SWC_TOPO_MESH)
		drop_ends(&t);
	for (uint32_t me = 0; me < t.nnodes; me++) {
		if (swc_paths_make(&t, nodes, t.nnodes, me, &p, &n, why, sizeof(why)))
			abort();
		/* What a rank sends takes a path of its own end; see test_messages.c. */
		for (uint32_t chan = 0; chan < 2 * t.ndims; chan++)
			for (uint32_t to = 0; to < t.nnodes; to++) {
				uint32_t path = swc_topo_path(&t, chan, me, to);
				const struct swc_node_path *it = find(p, n, to, path);

				wrong += me != to && (!it || !takes_route(&t, me, to, path,
									  last_byte(it->local),
									  last_byte(it->remote)));
			}
		free(p);
	}
	swc_topo_free(&t);
	snprintf(name, sizeof(name), "%s: packets take the model's routes", shape);
	ok(!wrong, name);
}

static void test_families(void)
{
	struct swc_node_path *p;
	char why[256] = "";
	uint32_t n;

	make_nodes(2, 3);
	addrs[1][0].family = AF_INET6;
	ok(!swc_paths_make(NULL, nodes, 2, 0, &p, &n, why, sizeof(why)) && n == 2 &&
		   p[0].path == 0 && last_byte(p[0].local) == 1 && last_byte(p[1].remote) == 2,
	   "rails with addresses of different kinds are skipped");
	free(p);
	addrs[0][2].speed = addrs[1][2].speed = 100;
	addrs[0][1].speed = 10;
	ok(!swc_paths_make(NULL, nodes, 2, 0, &p, &n, why, sizeof(why)) && n == 2 &&
		   p[0].path == 0 && last_byte(p[0].local) == 2 && last_byte(p[1].remote) == 1,
	   "the fastest rail comes first");
	free(p);
	nodes[1].naddrs = 1;
	ok(swc_paths_make(NULL, nodes, 2, 0, &p, &n, why, sizeof(why)) == -EINVAL &&
		   strstr(why, "SWINGCOLL_ADDRS"),
	   "no usable rail is an error");
	addrs[0][0].family = AF_INET6;
	addrs[0][0].scope = 7;
	ok(!swc_paths_make(NULL, nodes, 2, 0, &p, &n, why, sizeof(why)) && n == 1 &&
		   ((struct sockaddr_in6 *)p->remote)->sin6_scope_id == 7 &&
		   ((struct sockaddr_in6 *)p->remote)->sin6_port == htons(1001),
	   "IPv6: the remote address has the local scope");
	free(p);
}

/* ---- transports ---- */

/* Does node 0 reach node 1 by this transport, at this port? */
static bool reached_by(uint32_t transport, uint32_t port)
{
	struct swc_node_path *p;
	char why[256] = "";
	uint32_t n;
	bool good;

	if (swc_paths_make(NULL, nodes, 2, 0, &p, &n, why, sizeof(why)))
		return transport == SWC_TRANSPORT_NR && strstr(why, "transport in common");
	good = n == 1 && p->transport == transport && ntohs(in(p->remote)->sin_port) == port;
	free(p);
	return good;
}

static void set_kinds(uint32_t node, enum swc_rdma_kind a, enum swc_rdma_kind b)
{
	addrs[node][0].rdma = (uint8_t)a;
	addrs[node][1].rdma = (uint8_t)b;
}

/* Has node @me only this path to the other, by RDMA, from and to addresses @k? */
static bool has_one_rail(uint32_t me, uint32_t k)
{
	struct swc_node_path *p;
	char why[256] = "";
	uint32_t n;
	bool good;

	if (swc_paths_make(NULL, nodes, 2, me, &p, &n, why, sizeof(why)))
		return false;
	good = n == 1 && p->transport == SWC_TRANSPORT_RDMA && last_byte(p->local) == k &&
	       last_byte(p->remote) == k;
	free(p);
	return good;
}

/* A ring of two nodes: what transport do all of its paths have? SWC_TRANSPORT_NR: several. */
static uint32_t ring_transport(void)
{
	uint32_t n = 0, transport = SWC_TRANSPORT_NR;
	struct swc_node_path *p;
	char why[256] = "";
	struct swc_topo t;

	if (swc_topo_parse(&t, "ring:2", why, sizeof(why)))
		return transport;
	if (!swc_paths_make(&t, nodes, 2, 0, &p, &n, why, sizeof(why))) {
		transport = n ? p->transport : transport;
		for (uint32_t i = 0; i < n; i++)
			if (p[i].transport != transport)
				transport = SWC_TRANSPORT_NR;
		free(p);
	}
	swc_topo_free(&t);
	return transport;
}

static void test_rdma_kinds(void)
{
	struct swc_node_path *p;
	char why[256] = "";
	uint32_t n;

	make_nodes(2, 1);
	addrs[0][0].rdma = SWC_RDMA_ROCE;
	ok(reached_by(SWC_TRANSPORT_RDMA, 1001), "a device of an unknown kind is tried");
	addrs[1][0].rdma = SWC_RDMA_ROCE;
	ok(reached_by(SWC_TRANSPORT_RDMA, 1001), "devices of one kind connect");
	addrs[1][0].rdma = SWC_RDMA_IWARP;
	ok(reached_by(SWC_TRANSPORT_TCP, 2001), "RoCE and iWARP: TCP");
	nodes[0].port[SWC_TRANSPORT_TCP] = 0;
	ok(swc_paths_make(NULL, nodes, 2, 0, &p, &n, why, sizeof(why)) == -EOPNOTSUPP &&
		   strstr(why, "RoCE") && strstr(why, "iWARP") &&
		   strstr(why, "SWINGCOLL_TRANSPORT"),
	   "RoCE and iWARP without TCP: refused, and the line names the kinds");

	make_nodes(2, 2);
	set_kinds(0, SWC_RDMA_ROCE, SWC_RDMA_ROCE);
	set_kinds(1, SWC_RDMA_IWARP, SWC_RDMA_ROCE);
	ok(has_one_rail(0, 1) && has_one_rail(1, 1), "of two rails, that of one kind is used");
	set_kinds(1, SWC_RDMA_ROCE, SWC_RDMA_ROCE);
	ok(ring_transport() == SWC_TRANSPORT_RDMA, "a ring of devices of one kind");
	set_kinds(1, SWC_RDMA_INFINIBAND, SWC_RDMA_ROCE);
	ok(ring_transport() == SWC_TRANSPORT_TCP, "a ring of several kinds: all paths by TCP");

	ok(swc_rdma_kind_of("4: RNIC", "Ethernet") == SWC_RDMA_IWARP &&
		   swc_rdma_kind_of("1: CA", "Ethernet") == SWC_RDMA_ROCE &&
		   swc_rdma_kind_of("1: CA", "InfiniBand") == SWC_RDMA_INFINIBAND &&
		   swc_rdma_kind_of("", "") == SWC_RDMA_ANY,
	   "the kind of a device by its sysfs files");
}

static void test_transports(void)
{
	char why[256] = "";

	make_nodes(2, 1);
	ok(reached_by(SWC_TRANSPORT_RDMA, 1001), "two nodes with RDMA use RDMA");
	nodes[1].port[SWC_TRANSPORT_RDMA] = 0;
	ok(reached_by(SWC_TRANSPORT_TCP, 2001), "a node without RDMA is reached by TCP");
	nodes[0].port[SWC_TRANSPORT_TCP] = 0;
	nodes[0].port[SWC_TRANSPORT_TLS] = nodes[1].port[SWC_TRANSPORT_TLS] = 3001;
	ok(reached_by(SWC_TRANSPORT_TLS, 3001), "two nodes that only encrypt use TLS");
	nodes[0].port[SWC_TRANSPORT_TLS] = 0;
	ok(reached_by(SWC_TRANSPORT_NR, 0), "nodes without a common transport are refused");
	test_rdma_kinds();

	setenv("SWINGCOLL_TRANSPORT", "tcp", 1);
	ok(swc_transports_allowed(why, sizeof(why)) == 1 << SWC_TRANSPORT_TCP,
	   "SWINGCOLL_TRANSPORT=tcp excludes RDMA");
	setenv("SWINGCOLL_TRANSPORT", "tls", 1);
	ok(swc_transports_allowed(why, sizeof(why)) == 1 << SWC_TRANSPORT_TLS,
	   "SWINGCOLL_TRANSPORT=tls excludes all that is not encrypted");
	setenv("SWINGCOLL_TRANSPORT", "udp", 1);
	ok(swc_transports_allowed(why, sizeof(why)) == -EINVAL && strstr(why, "rdma, tcp or tls"),
	   "another SWINGCOLL_TRANSPORT is refused, and the line says what there is");
	unsetenv("SWINGCOLL_TRANSPORT");
	ok(swc_transports_allowed(why, sizeof(why)) ==
		   (1 << SWC_TRANSPORT_RDMA | 1 << SWC_TRANSPORT_TCP),
	   "without SWINGCOLL_TRANSPORT both are allowed");
	ok(swc_addr_is_outward("eth0") && swc_addr_is_outward("bond0") &&
		   !swc_addr_is_outward("docker0") && !swc_addr_is_outward("veth12ab"),
	   "interfaces of containers do not lead out of the host");
}

/* ---- addresses ---- */

static bool has_rdma(const char *name, void *arg)
{
	(void)arg;
	return !strncmp(name, "mlx", 3);
}

static bool chosen(const char *list, const char *want)
{
	struct swc_boot_iface iface[] = {
		{ "mlx10", { .family = AF_INET, .bytes = { 10 } } },
		{ "mlx2", { .family = AF_INET6, .bytes = { 2 } } },
		{ "mlx2", { .family = AF_INET, .bytes = { 2 } } },
		{ "mlx2", { .family = AF_INET, .bytes = { 22 } } },
		{ "mlx3", { .family = AF_INET6, .bytes = { 33 } } },
		{ "mlx3", { .family = AF_INET6, .bytes = { 3 } } },
		{ "eth0", { .family = AF_INET, .bytes = { 1 } } },
	};
	struct swc_boot_addr addr[SWC_MAX_PATHS];
	int n = swc_addr_choose(addr, iface, 7, list, has_rdma, NULL);
	char got[64] = "";

	for (int i = 0; i < n; i++)
		sprintf(got + strlen(got), "%s%d%s", i ? " " : "", addr[i].bytes[0],
			addr[i].family == AF_INET6 ? "v6" : "");
	return !strcmp(got, want);
}

static void test_addrs(void)
{
	struct swc_boot_addr a[SWC_MAX_PATHS];
	char why[256];

	ok(swc_addr_parse(a, "10.0.0.1,fd00::1,fe80::1%lo", why, sizeof(why)) == 3 &&
		   a[0].family == AF_INET && a[0].bytes[0] == 10 && a[1].family == AF_INET6 &&
		   a[1].bytes[0] == 0xfd && a[2].scope == 1,
	   "SWINGCOLL_ADDRS: a list of addresses");
	ok(swc_addr_parse(a, "10.0.0.1,,10.0.0.2", why, sizeof(why)) == -EINVAL &&
		   swc_addr_parse(a, "", why, sizeof(why)) == -EINVAL &&
		   swc_addr_parse(a, "node1", why, sizeof(why)) == -EINVAL &&
		   strstr(why, "node1") &&
		   swc_addr_parse(a, "fe80::1%nosuch", why, sizeof(why)) == -EINVAL &&
		   swc_addr_parse(a,
				  "1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,"
				  "1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,"
				  "1.1.1.1,1.1.1.1,1.1.1.1",
				  why, sizeof(why)) == -EINVAL,
	   "SWINGCOLL_ADDRS: wrong lists are refused");
	ok(swc_addr_selected("eth,ib", "ib0") && !swc_addr_selected("eth,ib", "xib") &&
		   swc_addr_selected("=ib0", "ib0") && !swc_addr_selected("=ib", "ib0") &&
		   !swc_addr_selected("^ib", "ib0") && swc_addr_selected("^ib", "eth0") &&
		   swc_addr_selected("^=ib", "ib0") && !swc_addr_selected(",", "eth0"),
	   "SWINGCOLL_IFACES: names, beginnings, exclusions");
	ok(chosen(NULL, "2 10 3v6"),
	   "interfaces with an RDMA device: IPv4 first, numbers in names in order");
	ok(chosen("eth", "1") && chosen("^mlx1", "2 3v6") && chosen("=mlx3", "3v6") &&
		   chosen("nosuch", ""),
	   "interfaces that SWINGCOLL_IFACES names");
}

int main(void)
{
	static const char *const ways[] = { "torus:2x2",   "torus:4x4",	  "torus:3x5",
					    "torus:2x3x4", "torus:4x2x4", "torus:3x4x2x2",
					    "torus:6x8",   "ring:6",	  "ring:7",
					    "mesh:4x4",	   "mesh:3x5",	  "mesh:2x3x4" };

	printf("TAP version 13\n");
	test_paths();
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		test_ways(ways[i]);
	test_families();
	test_transports();
	test_addrs();
	return done();
}
