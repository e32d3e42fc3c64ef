/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bootstrap: what the ranks of a job tell each other before there is a communicator, and what follows
 * from it. boot.c runs the exchange, boot_world.c draws the conclusions, paths.c finds the ways between
 * nodes, boot_addr.c this node's addresses; boot_env.c reads the environment, boot_tcp.c connects the
 * ranks, boot_auto.c chooses among the bootstraps. All but boot.c work without the kernel module.
 */
#ifndef SWC_BOOT_H
#define SWC_BOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/swingcoll.h>
#include <swingcoll.h>

#include "topo.h"

#define SWC_BOOT_TEXT 248

/* FNV-1a over a string, going on from @hash. */
#define SWC_HASH_START 0xcbf29ce484222325ull

static inline uint64_t swc_boot_hash(uint64_t hash, const char *s)
{
	for (; *s; s++)
		hash = (hash ^ (unsigned char)*s) * 0x100000001b3ull;
	return hash;
}

/* ---- addresses: boot_addr.c ---- */

/* An IP address. @scope: index of the interface of a link-local one, meant for this node only. */
struct swc_boot_addr {
	uint16_t family; /* AF_INET or AF_INET6 */
	uint16_t resv;
	uint32_t scope;
	uint8_t bytes[16];
};

/* An address of an interface, as found on this node. */
struct swc_boot_iface {
	char name[16];
	struct swc_boot_addr addr;
};

/*
 * Addresses from a list with commas, up to SWC_MAX_PATHS. Their number, or -EINVAL and a line in @why.
 */
int swc_addr_parse(struct swc_boot_addr *addr, const char *list, char *why, size_t why_bytes);

/*
 * Whether an interface is selected: by beginnings of names with commas between them; with = in front of
 * the list by whole names, with ^ all but those.
 */
bool swc_addr_selected(const char *list, const char *name);

/*
 * This node's addresses from those of its interfaces (which get sorted): those in @list, or all of
 * devices with an RDMA device if that is NULL or only excludes. IPv4 first; IPv6 of an interface only
 * if it has no IPv4. Returns their number.
 */
int swc_addr_choose(struct swc_boot_addr *addr, struct swc_boot_iface *iface, size_t n,
		    const char *list, bool (*has_rdma)(const char *name, void *arg), void *arg);

/*
 * The addresses by which other nodes reach this one: SWINGCOLL_ADDRS, or of the interfaces, see
 * SWINGCOLL_IFACES. Their number, which may be 0, or a negative errno and a line in @why.
 */
int swc_addr_find(struct swc_boot_addr *addr, char *why, size_t why_bytes);

/* ---- paths.c ---- */

/* A node as others reach it. @port: its module's. @name: for messages. */
struct swc_paths_node {
	const struct swc_boot_addr *addr;
	uint32_t naddrs;
	uint32_t port;
	const char *name;
};

/**
 * swc_paths_make() - the ways from one node to all others
 * @topo: torus whose nodes are those of @nodes; NULL, or another shape: rails
 * @nodes: by number
 * @nnodes: how many
 * @me: this one
 * @paths: out: the ways, by node and number; the caller's, to be freed
 * @npaths: out: how many
 *
 * A torus is used as one if every node has two addresses for each dimension longer than 1, in the
 * order plus, minus of the first such dimension, plus, minus of the next. Otherwise address k of one
 * node is connected with address k of the other.
 *
 * Return: 0, -ENOMEM, or -EINVAL and a line in @why.
 */
int swc_paths_make(const struct swc_topo *topo, const struct swc_paths_node *nodes, uint32_t nnodes,
		   uint32_t me, struct swc_node_path **paths, uint32_t *npaths, char *why,
		   size_t why_bytes);

/* ---- boot_world.c ---- */

/**
 * struct swc_boot_record - what a rank tells the others; of fixed size, in the machine's byte order
 * @magic, @version: of this layout
 * @abi: of the kernel module
 * @rank, @nranks: as the rank believes
 * @rdma_port: at which its module listens, 0 if it cannot reach other nodes
 * @node: hash of what identifies the running kernel
 * @topo: hash of the topology asked for, @options of the other options that must be equal; of no
 *	meaning if @error
 * @pid, @host: for people
 * @error, @text: what keeps this rank from joining, 0 if nothing
 * @id: rank 0's is the communicator's
 * @addr_error: why there are no addresses; matters on several nodes only
 */
struct swc_boot_record {
	uint32_t magic;
	uint32_t version;
	uint32_t abi;
	uint32_t rank;
	uint32_t nranks;
	uint32_t rdma_port;
	uint64_t node;
	uint64_t topo;
	uint64_t options;
	int32_t pid;
	int32_t error;
	int32_t addr_error;
	uint32_t naddrs;
	struct swc_boot_addr addr[SWC_MAX_PATHS];
	struct swingcoll_id id;
	char host[64];
	char text[SWC_BOOT_TEXT];
};

#define SWC_BOOT_MAGIC 0x42435753u /* "SWCB" */
#define SWC_BOOT_VERSION 1

/**
 * struct swc_world - all ranks and where they are
 * @rec: their records, not owned
 * @nranks: their number
 * @nnodes: nodes, numbered in the order of their lowest ranks
 * @rank_node: by rank: the node
 * @leader: by node: the lowest rank; its record speaks for the node
 * @nlocal: by node: ranks
 * @in_order: ranks are numbered node by node
 */
struct swc_world {
	const struct swc_boot_record *rec;
	uint32_t nranks;
	uint32_t nnodes;
	uint32_t *rank_node;
	uint32_t *leader;
	uint32_t *nlocal;
	bool in_order;
};

/*
 * Check that the records fit together, and number the nodes. Otherwise one line in @why, the same on
 * all ranks. Free with swc_world_free() in any case.
 */
int swc_world_init(struct swc_world *w, const struct swc_boot_record *rec, uint32_t nranks,
		   char *why, size_t why_bytes);
void swc_world_free(struct swc_world *w);

/*
 * The topology for plans over several nodes, from the text asked for (or "@FILE"; NULL: a switch). Where
 * it has one rank per node and the nodes have more, it gets them. Free with swc_topo_free().
 */
int swc_world_topo(const struct swc_world *w, const char *text, struct swc_topo *topo, char *why,
		   size_t why_bytes);

/* The ways from the node of @rank to the others. */
int swc_world_paths(const struct swc_world *w, const struct swc_topo *topo, uint32_t rank,
		    struct swc_node_path **paths, uint32_t *npaths, char *why, size_t why_bytes);

/* ---- boot_env.c ---- */

/**
 * struct swc_boot_env - what a launcher says in the environment
 * @rank, @nranks: this process and all; nranks 0: nothing is said
 * @from: name of the variable that gave the rank
 * @host, @port: of rank 0; empty: not said
 * @root: both, as given, for messages
 * @job: hash of SWINGCOLL_JOB
 * @timeout_ms: for the ranks to find each other
 */
struct swc_boot_env {
	int rank;
	int nranks;
	const char *from;
	char host[256];
	char port[8];
	char root[272];
	uint64_t job;
	uint32_t timeout_ms;
};

/* 0, or -EINVAL and a line for swingcoll_bootstrap_error(). */
int swc_boot_env_read(struct swc_boot_env *env);

/* ---- boot_tcp.c ---- */

/* Connect the ranks. 0, or a negative errno and a line for swingcoll_bootstrap_error(). */
int swc_boot_tcp(struct swingcoll_bootstrap **boot, const struct swc_boot_env *env);

/* Wait at least so long for others in an exchange of a bootstrap that may be by TCP. */
void swc_boot_tcp_patience(struct swingcoll_bootstrap *boot, uint32_t timeout_ms);

#endif /* SWC_BOOT_H */
