// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * From the records of all ranks to nodes, topology and paths. Nothing here depends on the calling
 * rank, except the paths, so all ranks reach the same result, errors included.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/bootstrap/bootstrap.h"
#include "src/files.h"

/* ---- checks of the records ---- */

/* "rank 3 (host, pid 17): ..." */
static int __attribute__((format(printf, 5, 6)))
refuse(int error, const struct swc_boot_record *r, char *why, size_t why_bytes, const char *fmt,
       ...)
{
	char text[SWC_BOOT_TEXT];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	snprintf(why, why_bytes, "rank %u (%.63s, pid %d): %s", r->rank, r->host, r->pid, text);
	return error;
}

static int check_records(const struct swc_boot_record *rec, uint32_t nranks, char *why,
			 size_t why_bytes)
{
	for (uint32_t i = 0; i < nranks; i++) {
		const struct swc_boot_record *r = &rec[i];

		if (r->magic != SWC_BOOT_MAGIC || r->version != SWC_BOOT_VERSION) {
			snprintf(
				why, why_bytes,
				"rank %u uses another version of the library, or another byte order: install the same on all nodes",
				i);
			return -EPROTO;
		}
		if (r->rank != i || r->nranks != nranks) {
			snprintf(why, why_bytes,
				 "rank %u of %u sent the record of rank %u of %u: the bootstrap's "
				 "allgather must be in the order of the ranks",
				 i, nranks, r->rank, r->nranks);
			return -EPROTO;
		}
	}
	for (uint32_t i = 0; i < nranks; i++)
		if (rec[i].error)
			return refuse(rec[i].error, &rec[i], why, why_bytes, "%.*s",
				      SWC_BOOT_TEXT - 1, rec[i].text);
	for (uint32_t i = 1; i < nranks; i++) {
		const struct swc_boot_record *r = &rec[i];

		if (r->secret != rec->secret)
			return refuse(
				-EACCES, r, why, why_bytes,
				"its secret is not that of rank 0: give all hosts the same SWINGCOLL_SECRET_FILE or SWINGCOLL_SECRET");
		if (r->abi != rec->abi)
			return refuse(
				-EPROTO, r, why, why_bytes,
				"its module has ABI version %u, that of rank 0 version %u: load the same module on all nodes",
				r->abi, rec->abi);
		if (r->topo != rec->topo)
			return refuse(
				-EPROTO, r, why, why_bytes,
				"its topology (option, or SWINGCOLL_TOPO) differs from that of rank 0");
		if (r->timeout_ms != rec->timeout_ms)
			return refuse(
				-EPROTO, r, why, why_bytes,
				"its timeout_ms is %u, that of rank 0 is %u: give all ranks the same",
				r->timeout_ms, rec->timeout_ms);
		if (r->options != rec->options)
			return refuse(
				-EPROTO, r, why, why_bytes,
				"its options (algorithm, flags, slot_max, contents of the tuning file) differ from those of rank 0");
	}
	return 0;
}

static bool has_transport(const struct swc_boot_record *r)
{
	for (uint32_t i = 0; i < SWC_TRANSPORT_NR; i++)
		if (r->port[i])
			return true;
	return false;
}

static int check_nodes(const struct swc_world *w, char *why, size_t why_bytes)
{
	for (uint32_t i = 0; i < w->nnodes; i++) {
		const struct swc_boot_record *r = &w->rec[w->leader[i]];

		if (w->nlocal[i] > SWC_MAX_LOCAL_RANKS)
			return refuse(-EINVAL, r, why, why_bytes,
				      "%u ranks on its node, at most %d", w->nlocal[i],
				      SWC_MAX_LOCAL_RANKS);
		if (w->nnodes == 1)
			continue;
		/* The key of a connection is as secret as the communicator's id. */
		if (r->port[SWC_TRANSPORT_TLS] && !r->secret)
			return refuse(
				-EPERM, r, why, why_bytes,
				"SWINGCOLL_TRANSPORT=tls needs a secret: set SWINGCOLL_SECRET_FILE on all hosts");
		if (!has_transport(r))
			return refuse(
				-EOPNOTSUPP, r, why, why_bytes,
				"ranks are on %u nodes, but its module cannot reach other nodes: "
				"SWINGCOLL_TRANSPORT excludes what it has, see swingctl doctor there",
				w->nnodes);
		if (!r->naddrs)
			return refuse(r->addr_error ? r->addr_error : -EADDRNOTAVAIL, r, why,
				      why_bytes,
				      "ranks are on %u nodes, but this node has no address: "
				      "%.*s",
				      w->nnodes, SWC_BOOT_TEXT - 1, r->text);
	}
	return 0;
}

/* ---- nodes ---- */

/*
 * The node of a rank, or the next one if it is the first of its node. @table: 1 + the number of each node
 * found so far, at a place that its hash gives or the next free one; @mask: places less 1.
 */
static uint32_t node_of(const struct swc_world *w, uint32_t rank, uint32_t *table, uint32_t mask)
{
	uint64_t node = w->rec[rank].node;
	uint32_t at = (uint32_t)(node ^ node >> 32) & mask;

	while (table[at] && w->rec[w->leader[table[at] - 1]].node != node)
		at = (at + 1) & mask;
	if (!table[at])
		table[at] = w->nnodes + 1;
	return table[at] - 1;
}

static int number_nodes(struct swc_world *w)
{
	uint32_t places = 2, *table;

	while (places < 2 * w->nranks)
		places *= 2;
	table = calloc(places, sizeof(*table));
	if (!table)
		return -ENOMEM;
	w->in_order = true;
	for (uint32_t i = 0; i < w->nranks; i++) {
		uint32_t n = node_of(w, i, table, places - 1);

		if (n == w->nnodes)
			w->leader[w->nnodes++] = i;
		w->rank_node[i] = n;
		w->nlocal[n]++;
		w->in_order &= !i || n >= w->rank_node[i - 1];
	}
	free(table);
	return 0;
}

int swc_world_init(struct swc_world *w, const struct swc_boot_record *rec, uint32_t nranks,
		   char *why, size_t why_bytes)
{
	int ret;

	*w = (struct swc_world){ .rec = rec, .nranks = nranks, .conns = rec->conns };
	ret = check_records(rec, nranks, why, why_bytes);
	if (ret)
		return ret;
	w->rank_node = calloc(nranks, sizeof(*w->rank_node));
	w->leader = calloc(nranks, sizeof(*w->leader));
	w->nlocal = calloc(nranks, sizeof(*w->nlocal));
	if (!w->rank_node || !w->leader || !w->nlocal)
		return -ENOMEM;
	for (uint32_t i = 1; i < nranks; i++)
		w->conns = rec[i].conns < w->conns ? rec[i].conns : w->conns;
	ret = number_nodes(w);
	return ret ? ret : check_nodes(w, why, why_bytes);
}

void swc_world_free(struct swc_world *w)
{
	free(w->rank_node);
	free(w->leader);
	free(w->nlocal);
	*w = (struct swc_world){ 0 };
}

/* ---- topology ---- */

/* Set the topology's ranks per node to the real ones. */
static int populate(const struct swc_world *w, struct swc_topo *t)
{
	bool differ = false;

	for (uint32_t i = 1; i < w->nnodes; i++)
		differ |= w->nlocal[i] != w->nlocal[0];
	t->nranks = w->nranks;
	t->nlocal = differ ? 0 : w->nlocal[0];
	if (!differ)
		return 0;
	t->first = calloc(w->nnodes + 1, sizeof(*t->first));
	if (!t->first)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->nnodes; i++)
		t->first[i + 1] = t->first[i] + w->nlocal[i];
	return 0;
}

static int out_of_order(const struct swc_world *w, const char *text, char *why, size_t why_bytes)
{
	uint32_t i = 1;

	while (w->rank_node[i] >= w->rank_node[i - 1])
		i++;
	snprintf(
		why, why_bytes,
		"topology %s with several ranks per node needs ranks that are numbered node by node, but "
		"rank %u is on the node of rank %u: start them with mpirun --map-by slot, srun -m block",
		text, i, w->leader[w->rank_node[i]]);
	return -EINVAL;
}

/*
 * Are the topology's nodes the real ones? They must be if they have several ranks, which share
 * memory.
 */
static bool matches_nodes(const struct swc_world *w, const struct swc_topo *t)
{
	if (t->nnodes != w->nnodes)
		return false;
	for (uint32_t i = 0; i < w->nranks; i++)
		if (swc_topo_node_of(t, i) != w->rank_node[i])
			return false;
	return true;
}

static int fit(const struct swc_world *w, const char *text, struct swc_topo *t, char *why,
	       size_t why_bytes)
{
	bool single = t->nnodes == t->nranks;

	if (t->nranks == w->nranks && (single || matches_nodes(w, t)))
		return 0;
	if (single && t->nnodes == w->nnodes) {
		if (!w->in_order)
			return out_of_order(w, text, why, why_bytes);
		return populate(w, t);
	}
	if (t->nnodes == w->nnodes && t->nranks == w->nranks && !w->in_order)
		return out_of_order(w, text, why, why_bytes);
	snprintf(
		why, why_bytes,
		"topology %s has %u nodes and %u ranks, but there are %u ranks on %u nodes, or other numbers "
		"of ranks per node",
		text, t->nnodes, t->nranks, w->nranks, w->nnodes);
	return -EINVAL;
}

/* For swc_paths_*(), to be freed with free(); NULL: no memory. */
static struct swc_paths_node *path_nodes(const struct swc_world *w)
{
	struct swc_paths_node *nodes = calloc(w->nnodes, sizeof(*nodes));

	for (uint32_t i = 0; nodes && i < w->nnodes; i++) {
		const struct swc_boot_record *r = &w->rec[w->leader[i]];

		nodes[i] = (struct swc_paths_node){
			.addr = r->addr,
			.naddrs = r->naddrs < SWC_MAX_PATHS ? r->naddrs : SWC_MAX_PATHS,
			.name = r->host,
		};
		memcpy(nodes[i].port, r->port, sizeof(r->port));
	}
	return nodes;
}

/* Speed of the fastest of the first @n addresses of a node. */
static uint16_t fastest(const struct swc_boot_addr *addr, uint32_t n)
{
	uint16_t most = 0;

	for (uint32_t k = 0; k < n; k++)
		most = addr[k].speed > most ? addr[k].speed : most;
	return most;
}

/* How many of them are as fast as that? */
static uint32_t count_fast(const struct swc_boot_addr *addr, uint32_t n)
{
	uint16_t most = fastest(addr, n);
	uint32_t fast = 0;

	for (uint32_t k = 0; k < n; k++)
		fast += addr[k].speed == most;
	return fast;
}

/* Addresses that every node has. */
static uint32_t least_addresses(const struct swc_world *w)
{
	uint32_t least = SWC_TOPO_RAILS;

	for (uint32_t i = 0; i < w->nnodes; i++)
		if (w->rec[w->leader[i]].naddrs < least)
			least = w->rec[w->leader[i]].naddrs;
	return least;
}

/* Rails of all nodes, which share vectors evenly, so they are equally fast; 0 if there is no choice. */
static uint32_t count_rails(const struct swc_world *w)
{
	uint32_t least = least_addresses(w), fast = least;

	if (least < 2)
		return 0;
	for (uint32_t i = 0; i < w->nnodes; i++) {
		uint32_t n = count_fast(w->rec[w->leader[i]].addr, least);

		fast = n < fast ? n : fast;
	}
	return fast;
}

/* Gbit/s of a rail of the slowest node; 0: an interface does not tell, as those of virtual machines. */
static double rate_of_rails(const struct swc_world *w)
{
	uint32_t least = least_addresses(w), rate = UINT16_MAX;

	for (uint32_t i = 0; i < w->nnodes; i++) {
		uint32_t most = fastest(w->rec[w->leader[i]].addr, least);

		rate = most < rate ? most : rate;
	}
	return rate / 10.0;
}

/* What is known of the links of a topology without figures. */
static int find_figures(const struct swc_world *w, struct swc_topo *topo)
{
	struct swc_paths_node *nodes = path_nodes(w);
	double rate;

	if (!nodes)
		return -ENOMEM;
	topo->tcp |= swc_paths_by_tcp(matches_nodes(w, topo) ? topo : NULL, nodes, w->nnodes);
	free(nodes);
	if (topo->kind != SWC_TOPO_SWITCH || w->nnodes < 2)
		return 0;
	if (!topo->rails)
		topo->rails = count_rails(w);
	rate = rate_of_rails(w);
	if (!(topo->gbps > 0) && !(topo->tcp && rate > SWC_TOPO_TCP_GBPS))
		topo->gbps = rate;
	return 0;
}

static int find_topo(const struct swc_world *w, const char *text, struct swc_topo *topo, char *why,
		     size_t why_bytes)
{
	int ret;

	/* If ranks are not numbered node by node, each is a node of its own to the plans. */
	if (!text) {
		*topo = swc_topo_flat(w->in_order ? w->nnodes : w->nranks);
		return w->in_order ? populate(w, topo) : 0;
	}
	ret = swc_file_topo(topo, text, why, why_bytes);
	if (ret)
		return ret;
	ret = fit(w, text, topo, why, why_bytes);
	if (ret)
		swc_topo_free(topo);
	return ret;
}

int swc_world_topo(const struct swc_world *w, const char *text, struct swc_topo *topo, char *why,
		   size_t why_bytes)
{
	int ret = find_topo(w, text, topo, why, why_bytes);

	if (ret)
		return ret;
	ret = find_figures(w, topo);
	if (ret)
		swc_topo_free(topo);
	return ret;
}

int swc_world_paths(const struct swc_world *w, const struct swc_topo *topo, uint32_t rank,
		    struct swc_node_path **paths, uint32_t *npaths, char *why, size_t why_bytes)
{
	struct swc_paths_node *nodes = path_nodes(w);
	int ret;

	if (!nodes)
		return -ENOMEM;
	/*
	 * A torus with one rank per node need not have the real nodes; its links can be used only
	 * if it has.
	 */
	ret = swc_paths_make(matches_nodes(w, topo) ? topo : NULL, nodes, w->nnodes,
			     w->rank_node[rank], paths, npaths, why, why_bytes);
	free(nodes);
	return ret;
}
