// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Communicators from a bootstrap, by two exchanges. In the first each rank describes itself and its
 * node; from that all ranks draw the same conclusions and create the communicator. In the second
 * each rank says how that went, so that no rank starts before all are ready, and all fail if one
 * does. A rank with an error says so in the exchange, because the others would wait for a rank that
 * stays away.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/bootstrap/bootstrap.h"
#include "src/files.h"
#include "src/priv.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

/* How the creation went on one rank. */
struct outcome {
	int32_t error;
	uint32_t resv;
	char text[SWC_BOOT_TEXT];
};

static int gather(const struct swingcoll_bootstrap *boot, const void *mine, void *all, size_t bytes)
{
	int ret;

	swingcoll_bootstrap_fail(0, "%s", "");
	ret = boot->allgather(boot->arg, mine, all, bytes);
	if (ret > 0)
		ret = -EPROTO;
	if (ret && !*swingcoll_bootstrap_error())
		swingcoll_bootstrap_fail(ret, "the bootstrap's exchange failed: %s",
					 strerror(-ret));
	return ret;
}

/* ---- the description of this rank ---- */

/* Containers on one kernel share the device, so the id of the kernel's boot identifies the node. */
static int find_node(uint64_t *node, char *why, size_t why_bytes)
{
	char text[64] = "";
	FILE *f = fopen(BOOT_ID, "re");

	if (f) {
		if (!fgets(text, sizeof(text), f))
			*text = 0;
		fclose(f);
	}
	text[strcspn(text, "\n")] = 0;
	*node = swc_hash_text(SWC_HASH_START, text);
	if (*text)
		return 0;
	snprintf(why, why_bytes, "%s cannot be read: mount /proc", BOOT_ID);
	return -ENODEV;
}

static int hash_options(struct swc_boot_record *r, const struct swingcoll_comm_opts *o,
			const char *topo)
{
	char text[64];
	int ret = swc_comm_check_opts(o, r->text, sizeof(r->text));

	if (ret)
		return ret;
	if (o) {
		snprintf(text, sizeof(text), "/%u/%lld", o->flags, (long long)o->slot_max);
		if (o->op_timeout_ms)
			snprintf(text, sizeof(text), "/%u/%lld/%u", o->flags,
				 (long long)o->slot_max, o->op_timeout_ms);
		r->options = swc_hash_text(SWC_HASH_START, o->algo ? o->algo : "auto");
		r->options = swc_hash_text(r->options, text);
	} else {
		r->options = swc_hash_text(SWC_HASH_START, "auto/0/0");
	}
	/*
	 * The hashes of what the files hold, not of the options, as files may have different names on
	 * different nodes.
	 */
	if (o && o->tuning) {
		ret = swc_file_tuning_hash(&r->options, o->tuning, r->text, sizeof(r->text));
		if (ret)
			return ret;
	}
	if (topo) {
		struct swc_topo t;
		char *shape;
		int len;

		ret = swc_file_topo(&t, topo, r->text, sizeof(r->text));
		if (ret)
			return ret;
		len = swc_topo_format(&t, NULL, 0);
		shape = len < 0 ? NULL : malloc((size_t)len + 1);
		if (shape) {
			swc_topo_format(&t, shape, (size_t)len + 1);
			r->topo = swc_hash_text(SWC_HASH_START, shape);
		}
		free(shape);
		swc_topo_free(&t);
		return shape ? 0 : -ENOMEM;
	}
	return 0;
}

/* Transports and addresses. No addresses are an error only if there are several nodes. */
static int describe_network(struct swc_boot_record *r, const struct swc_info *info)
{
	int allowed = swc_transports_allowed(r->text, sizeof(r->text)), n;

	if (allowed < 0)
		return allowed;
	if (allowed & 1 << SWC_TRANSPORT_RDMA && swc_addr_has_rdma())
		r->port[SWC_TRANSPORT_RDMA] = info->rdma_port;
	if (allowed & 1 << SWC_TRANSPORT_TCP)
		r->port[SWC_TRANSPORT_TCP] = info->tcp_port;
	if (allowed & 1 << SWC_TRANSPORT_TLS)
		r->port[SWC_TRANSPORT_TLS] = info->tls_port;
	n = swc_addr_find(r->addr, r->port[SWC_TRANSPORT_RDMA], r->text, sizeof(r->text));
	/* Devices without an address are of no use. */
	if (!n && r->port[SWC_TRANSPORT_RDMA] && r->port[SWC_TRANSPORT_TCP]) {
		r->port[SWC_TRANSPORT_RDMA] = 0;
		n = swc_addr_find(r->addr, false, r->text, sizeof(r->text));
	}
	r->naddrs = n > 0 ? (uint32_t)n : 0;
	r->addr_error = n < 0 ? n : 0;
	return 0;
}

static void describe(struct swc_boot_record *r, const struct swingcoll_bootstrap *boot,
		     const struct swingcoll_comm_opts *opts, const char *topo,
		     struct swc_context **ctx, struct swc_secret *secret, struct swc_endpoint **ep)
{
	*r = (struct swc_boot_record){
		.magic = SWC_BOOT_MAGIC,
		.version = SWC_BOOT_VERSION,
		.rank = (uint32_t)boot->rank,
		.nranks = (uint32_t)boot->nranks,
		.pid = getpid(),
	};
	if (gethostname(r->host, sizeof(r->host) - 1))
		snprintf(r->host, sizeof(r->host), "?");
	r->timeout_ms = opts && opts->timeout_ms ? opts->timeout_ms : SWC_DEFAULT_TIMEOUT_MS;
	r->error = hash_options(r, opts, topo);
	if (!r->error)
		r->error = swc_secret_read(secret, r->text, sizeof(r->text));
	if (!r->error) {
		r->secret = swc_secret_fingerprint(secret);
		r->error = find_node(&r->node, r->text, sizeof(r->text));
	}
	if (!r->error && !boot->rank)
		r->error = swingcoll_unique_id(&r->id);
	if (!r->error)
		r->error = swc_context_get(ctx);
	if (!r->error) {
		r->abi = (*ctx)->info.abi_version;
		r->conns = swc_context_conns(*ctx);
		r->error = describe_network(r, &(*ctx)->info);
	}
	if (!r->error) {
		r->error = swc_endpoint_open(ep);
		/* What is there may say why a search for addresses found none, which is no error here. */
		if (r->error)
			*r->text = 0;
	}
	if (!r->error)
		r->agree_port = swc_endpoint_port(*ep);
	if (r->error && !*r->text)
		snprintf(r->text, sizeof(r->text), "%s", swingcoll_strerror(r->error));
}

/* ---- creation ---- */

/* How this rank and the others reach each other for agreements. Takes over the endpoint. */
static int find_peers(struct swc_peers *peers, const struct swc_world *w, uint32_t rank,
		      struct swc_endpoint **ep)
{
	uint16_t *port = malloc(w->nranks * sizeof(*port));
	int ret;

	if (!port)
		return -ENOMEM;
	for (uint32_t r = 0; r < w->nranks; r++)
		port[r] = (uint16_t)w->rec[r].agree_port;
	ret = swc_peers_init(peers, w->rec->id.bytes, w->nranks, rank, ep,
			     w->nnodes > 1 ? port : NULL);
	free(port);
	return ret;
}

static int create_on_nodes(struct swingcoll_comm **comm, const struct swc_world *w,
			   const struct swingcoll_bootstrap *boot,
			   const struct swingcoll_comm_opts *opts, const char *topo,
			   struct swc_peers *peers, char *why, size_t why_bytes)
{
	struct swingcoll_comm_opts o = opts ? *opts : (struct swingcoll_comm_opts){ 0 };
	uint32_t me = w->rank_node[boot->rank], npaths;
	char(*host)[SWC_HOST_BYTES] = calloc(w->nnodes, sizeof(*host));
	int32_t *pid = calloc(w->nranks, sizeof(*pid));
	struct swc_node_path *paths = NULL;
	char *shape = NULL;
	struct swc_topo t;
	int ret, len;

	ret = host && pid ? swc_world_topo(w, topo, &t, why, why_bytes) : -ENOMEM;
	if (ret) {
		free(host);
		free(pid);
		return ret;
	}
	_Static_assert(sizeof(w->rec->host) == SWC_HOST_BYTES, "names of hosts");
	for (uint32_t n = 0; n < w->nnodes; n++)
		memcpy(host[n], w->rec[w->leader[n]].host, sizeof(*host));
	for (uint32_t r = 0; r < w->nranks; r++)
		pid[r] = w->rec[r].pid;
	ret = swc_world_paths(w, &t, (uint32_t)boot->rank, &paths, &npaths, why, why_bytes);
	len = swc_topo_format(&t, NULL, 0);
	if (!ret) {
		shape = len < 0 ? NULL : malloc((size_t)len + 1);
		ret = shape ? 0 : -ENOMEM;
	}
	if (!ret) {
		struct swc_place place = {
			.nnodes = w->nnodes,
			.nlocal = w->nlocal[me],
			.rank_node = w->rank_node,
			.paths = paths,
			.npaths = npaths,
			.conns = w->conns,
			.host = host,
			.pid = pid,
		};

		swc_topo_format(&t, shape, (size_t)len + 1);
		o.topo = shape;
		ret = swc_comm_create(comm, &w->rec->id, boot->nranks, boot->rank, &o, 0, &place,
				      peers, why, why_bytes);
	}
	free(shape);
	free(paths);
	free(host);
	free(pid);
	swc_topo_free(&t);
	return ret;
}

/* Errors that follow from another rank's failure, and do not name it. */
static bool is_echo(int error)
{
	return error == -ETIMEDOUT || error == -ECONNRESET || error == -ECONNABORTED;
}

/* Exchange how it went. The result is the first failure that did not follow from another one. */
static int agree(const struct swingcoll_bootstrap *boot, const struct swc_boot_record *rec,
		 const struct outcome *mine)
{
	struct outcome *all = calloc((size_t)boot->nranks, sizeof(*all));
	int ret, at = -1;

	if (!all)
		return -ENOMEM;
	ret = gather(boot, mine, all, sizeof(*mine));
	for (int i = 0; !ret && i < boot->nranks; i++)
		if (all[i].error && (at < 0 || (is_echo(all[at].error) && !is_echo(all[i].error))))
			at = i;
	if (at >= 0) {
		all[at].text[SWC_BOOT_TEXT - 1] = 0;
		ret = all[at].error;
		if (at == boot->rank || !strcmp(all[at].text, mine->text))
			swingcoll_bootstrap_fail(ret, "%s", all[at].text);
		else
			swingcoll_bootstrap_fail(ret, "rank %d (%.63s, pid %d): %s", at,
						 rec[at].host, rec[at].pid, all[at].text);
	}
	free(all);
	return ret;
}

static int create(struct swingcoll_comm **comm, const struct swingcoll_bootstrap *boot,
		  const struct swingcoll_comm_opts *opts, const char *topo,
		  const struct swc_secret *secret, struct swc_endpoint **ep,
		  const struct swc_boot_record *mine, struct swc_boot_record *all)
{
	struct swc_peers peers = { 0 };
	struct outcome out = { 0 };
	struct swc_world w;
	int ret = gather(boot, mine, all, sizeof(*mine));

	if (ret)
		return ret;
	for (int i = 0; i < boot->nranks; i++) {
		all[i].host[sizeof(all[i].host) - 1] = 0;
		all[i].text[sizeof(all[i].text) - 1] = 0;
	}
	out.error = swc_world_init(&w, all, (uint32_t)boot->nranks, out.text, sizeof(out.text));
	swc_secret_derive_id(secret, &all->id);
	if (!out.error)
		out.error = find_peers(&peers, &w, (uint32_t)boot->rank, ep);
	/* On one node the shape of the network has no meaning. */
	if (!out.error && w.nnodes == 1)
		out.error = swc_comm_create(comm, &all->id, boot->nranks, boot->rank, opts, 0, NULL,
					    &peers, out.text, sizeof(out.text));
	else if (!out.error)
		out.error = create_on_nodes(comm, &w, boot, opts, topo, &peers, out.text,
					    sizeof(out.text));
	swc_peers_free(&peers);
	swc_world_free(&w);
	if (out.error && !*out.text)
		snprintf(out.text, sizeof(out.text), "creating the communicator: %s",
			 swingcoll_strerror(out.error));
	ret = agree(boot, all, &out);
	if (ret && !out.error)
		swingcoll_comm_destroy(*comm);
	return ret;
}

SWC_PUBLIC int swingcoll_comm_create_from(struct swingcoll_comm **comm,
					  const struct swingcoll_bootstrap *boot,
					  const struct swingcoll_comm_opts *opts)
{
	const char *topo = opts && opts->topo ? opts->topo : getenv("SWINGCOLL_TOPO");
	struct swc_boot_record *mine, *all;
	struct swc_secret secret = { 0 };
	struct swc_endpoint *ep = NULL;
	struct swc_context *ctx = NULL;
	int saved = errno, ret = -ENOMEM;

	if (!comm || !boot || !boot->allgather)
		return swingcoll_bootstrap_fail(-EINVAL, "%s is NULL",
						!comm	? "comm"
						: !boot ? "boot"
							: "boot->allgather");
	*comm = NULL;
	if (boot->nranks < 1 || boot->nranks > SWC_MAX_RANKS)
		return swingcoll_bootstrap_fail(-EINVAL, "%d ranks: a communicator has 1 to %d",
						boot->nranks, SWC_MAX_RANKS);
	if (boot->rank < 0 || boot->rank >= boot->nranks)
		return swingcoll_bootstrap_fail(-EINVAL, "boot->rank %d: give 0 to %d", boot->rank,
						boot->nranks - 1);
	swingcoll_bootstrap_fail(ret, "out of memory");
	mine = calloc(1, sizeof(*mine));
	all = calloc((size_t)boot->nranks, sizeof(*all));
	if (mine && all) {
		describe(mine, boot, opts, topo && *topo ? topo : NULL, &ctx, &secret, &ep);
		ret = create(comm, boot, opts, topo && *topo ? topo : NULL, &secret, &ep, mine,
			     all);
		if (ret)
			*comm = NULL;
		if (ctx)
			swc_context_put(ctx);
		swc_endpoint_put(ep);
	}
	explicit_bzero(&secret, sizeof(secret));
	free(mine);
	free(all);
	errno = saved;
	if (!ret)
		swingcoll_bootstrap_fail(0, "%s", "");
	return ret;
}
