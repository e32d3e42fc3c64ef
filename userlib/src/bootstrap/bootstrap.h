/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bootstrap: what the ranks of a job tell each other before there is a communicator, and what each
 * derives from it. create.c runs the exchange, world.c numbers nodes and checks that records fit
 * together, paths.c finds the paths between nodes, addr.c this node's addresses; grow.c adds ranks to a
 * communicator; env.c reads the
 * environment, tcp.c connects the ranks, secret.c has what they know in common, auto.c chooses a
 * bootstrap. All but create.c work without the kernel module.
 */
#ifndef SWC_BOOTSTRAP_BOOTSTRAP_H
#define SWC_BOOTSTRAP_BOOTSTRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/swingcoll.h>
#include <swingcoll.h>

#include "plan/hash.h"
#include "plan/topo.h"
#include "src/bootstrap/secret.h"

#define SWC_BOOT_TEXT 248

/* ---- addresses: addr.c ---- */

/* Kinds of RDMA devices: each connects only with its own. ANY: not known. */
enum swc_rdma_kind {
	SWC_RDMA_ANY,
	SWC_RDMA_INFINIBAND,
	SWC_RDMA_ROCE,
	SWC_RDMA_IWARP,
	SWC_RDMA_NR
};

/*
 * An IP address. @rdma: enum swc_rdma_kind of its interface's device, if this node uses RDMA. @scope:
 * for a link-local address, the index of its interface on this node; else 0.
 */
struct swc_boot_addr {
	uint8_t family; /* AF_INET or AF_INET6 */
	uint8_t rdma;
	uint16_t speed; /* of its interface in units of 100 Mbit/s, 0: not known */
	uint32_t scope;
	uint8_t bytes[16];
};

/* An address of an interface of this node. */
struct swc_boot_iface {
	char name[16];
	struct swc_boot_addr addr;
};

/*
 * Read a list of addresses with commas between them, up to SWC_MAX_PATHS. Their number, or -EINVAL
 * and a line in @why.
 */
int swc_addr_parse(struct swc_boot_addr *addr, const char *list, char *why, size_t why_bytes);

/*
 * Does a list select an interface? The list has beginnings of names with commas between them, or
 * whole names after =. ^ in front of all that selects all other interfaces.
 */
bool swc_addr_selected(const char *list, const char *name);

/*
 * Choose this node's addresses from those of its interfaces, which get sorted: the interfaces that
 * @list selects, or all that are @usable if @list is NULL or only excludes. One of each interface, IPv4
 * before IPv6; those with IPv4 first. Returns their number.
 */
int swc_addr_choose(struct swc_boot_addr *addr, struct swc_boot_iface *iface, size_t n,
		    const char *list, bool (*usable)(const char *name, void *arg), void *arg);

/* Is it an interface of a host, not one that connects containers or virtual machines on it? */
bool swc_addr_is_outward(const char *name);

/*
 * The transports that SWINGCOLL_TRANSPORT allows: bits by enum swc_transport_kind; or -EINVAL and a
 * line in @why.
 */
int swc_transports_allowed(char *why, size_t why_bytes);

/*
 * The addresses by which other nodes reach this one: SWINGCOLL_ADDRS, or those of its interfaces
 * (SWINGCOLL_IFACES). Without either, those of interfaces with RDMA devices if @rdma, or else of
 * outward ones. With the kinds of their devices if @rdma. Their number, which may be 0, or a negative
 * errno; a line in @why if there are none.
 */
int swc_addr_find(struct swc_boot_addr *addr, bool rdma, char *why, size_t why_bytes);

/* Has this node an RDMA device? */
bool swc_addr_has_rdma(void);

/* The kind of a device, by the sysfs files node_type of it and link_layer of its port. */
enum swc_rdma_kind swc_rdma_kind_of(const char *node_type, const char *link_layer);

/* ---- paths.c ---- */

/*
 * A node as others reach it. @port: at which its module listens, by enum swc_transport_kind, 0: it
 * does not. @name: for messages.
 */
struct swc_paths_node {
	const struct swc_boot_addr *addr;
	uint32_t naddrs;
	uint32_t port[SWC_TRANSPORT_NR];
	const char *name;
};

/**
 * swc_paths_make() - the paths from one node to all others
 * @topo: torus whose nodes are those of @nodes; NULL, or another shape: rails
 * @nodes: by number
 * @nnodes: how many
 * @me: number of this node
 * @paths: out: the paths, ordered by node and number; the caller's, to be freed with free()
 * @npaths: out: how many
 *
 * A torus is used as such if every node has two addresses for each dimension longer than 1, in the
 * order plus, minus of the first such dimension, plus, minus of the next. Otherwise address k of
 * one node is connected with address k of the other. All paths of a pair have the first transport
 * that both nodes have; RDMA only between devices of one kind: rails whose ends have other kinds are
 * left out, and if none is left, or the nodes of a torus have several kinds, the pair has the next
 * transport.
 *
 * Return: 0, -ENOMEM, or -EINVAL and a line in @why.
 */
int swc_paths_make(const struct swc_topo *topo, const struct swc_paths_node *nodes, uint32_t nnodes,
		   uint32_t me, struct swc_node_path **paths, uint32_t *npaths, char *why,
		   size_t why_bytes);

/* Does TCP connect node 0 with another one? To the planner, all nodes are connected alike. */
bool swc_paths_by_tcp(const struct swc_topo *topo, const struct swc_paths_node *nodes,
		      uint32_t nnodes);

/* ---- world.c ---- */

/**
 * struct swc_boot_record - what a rank tells the others; of fixed size, in the machine's byte order
 * @magic, @version: of this layout
 * @abi: version of the kernel module's ABI
 * @rank, @nranks: as the bootstrap has told the rank
 * @port: at which its module listens, by enum swc_transport_kind; 0: not by that transport
 * @agree_port: at which this rank listens for agreements
 * @conns: connections that its user may have on its node
 * @node: hash of what identifies the running kernel
 * @topo: hash of the topology asked for; not valid if @error
 * @options: hash of the other options that must be equal; not valid if @error
 * @timeout_ms: deadline asked for, which must be equal; not valid if @error
 * @secret: its fingerprint, which must be equal; not valid if @error
 * @pid, @host: for messages
 * @error, @text: why this rank cannot create the communicator, 0 if it can
 * @id: rank 0's is the communicator's; with a secret, what that is derived from
 * @addr_error: why there are no addresses; an error only on several nodes
 */
struct swc_boot_record {
	uint32_t magic;
	uint32_t version;
	uint32_t abi;
	uint32_t rank;
	uint32_t nranks;
	uint32_t port[SWC_TRANSPORT_NR];
	uint32_t agree_port;
	uint32_t conns;
	uint64_t node;
	uint64_t topo;
	uint64_t options;
	uint64_t secret;
	int32_t pid;
	int32_t error;
	int32_t addr_error;
	uint32_t naddrs;
	uint32_t timeout_ms;
	struct swc_boot_addr addr[SWC_MAX_PATHS];
	struct swingcoll_id id;
	char host[64];
	char text[SWC_BOOT_TEXT];
};

#define SWC_BOOT_MAGIC 0x42435753u /* "SWCB" */
#define SWC_BOOT_VERSION 9

/**
 * struct swc_world - all ranks and where they are
 * @rec: their records, not owned
 * @nranks: their number
 * @nnodes: nodes, numbered in the order of their lowest ranks
 * @rank_node: by rank: the node
 * @leader: by node: the lowest rank; its record speaks for the node
 * @nlocal: by node: ranks
 * @conns: connections that the users of all ranks may have on their nodes: the least number
 * @in_order: ranks are numbered node by node
 */
struct swc_world {
	const struct swc_boot_record *rec;
	uint32_t nranks;
	uint32_t nnodes;
	uint32_t *rank_node;
	uint32_t *leader;
	uint32_t *nlocal;
	uint32_t conns;
	bool in_order;
};

/*
 * Check that the records fit together, and number the nodes. 0, or a negative errno and one line in
 * @why, the same on all ranks. Free with swc_world_free() in any case.
 */
int swc_world_init(struct swc_world *w, const struct swc_boot_record *rec, uint32_t nranks,
		   char *why, size_t why_bytes);
void swc_world_free(struct swc_world *w);

/*
 * The topology for plans over several nodes, from the text asked for (or "@FILE"; NULL: a switch).
 * A topology with one rank per node gets the real number of ranks of each node. Free with
 * swc_topo_free().
 */
int swc_world_topo(const struct swc_world *w, const char *text, struct swc_topo *topo, char *why,
		   size_t why_bytes);

/* The paths from the node of @rank to the others. */
int swc_world_paths(const struct swc_world *w, const struct swc_topo *topo, uint32_t rank,
		    struct swc_node_path **paths, uint32_t *npaths, char *why, size_t why_bytes);

/* ---- env.c ---- */

/**
 * struct swc_boot_env - what the environment says about the job
 * @rank, @nranks: of this process; @nranks 0: it says nothing
 * @from: name of the variable that gave the rank
 * @host, @port: where rank 0 listens; empty: it does not say
 * @root: both, as given, for messages
 * @job: hash of SWINGCOLL_JOB
 * @timeout_ms: for the ranks to find each other
 * @secret: of the job, if there is one
 * @star: all ranks stay connected to rank 0 only, however many they are
 * @grows: the others are newcomers: rank 1 is the one of number 0, and so on
 * @stop: rank 0 gives up when another thread makes this true; NULL: it does not
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
	struct swc_secret secret;
	bool star;
	bool grows;
	const bool *stop;
};

/* Read the environment. 0, or -EINVAL; then swingcoll_bootstrap_error() has a line. */
int swc_boot_env_read(struct swc_boot_env *env);

/* Take HOST:PORT of rank 0. Likewise. */
int swc_boot_env_root(struct swc_boot_env *env, const char *root);

/* ---- tcp.c ---- */

/* Connect the ranks. 0, or a negative errno; then swingcoll_bootstrap_error() has a line. */
int swc_boot_tcp(struct swingcoll_bootstrap **boot, const struct swc_boot_env *env);

/* Make the timeout of exchanges at least @timeout_ms, if the bootstrap is by TCP. */
void swc_boot_tcp_min_timeout(struct swingcoll_bootstrap *boot, uint32_t timeout_ms);

#endif /* SWC_BOOTSTRAP_BOOTSTRAP_H */
