// SPDX-License-Identifier: GPL-2.0-only
/*
 * Making connections. The lower rank connects, the higher one listens; both prove that they know the
 * communicator's id (see core/wire.h). A connection that cannot be made yet is tried again until the
 * communicator's deadline, because nodes start at different times.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <crypto/algapi.h>
#include <crypto/blake2s.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ib_cm.h>

#include "../compat.h"
#include "rdma.h"

#define RESOLVE_MS	2000
#define RETRY_MS	50
#define PROOF_LEAST_MS	5000
#define NEWS_MS		100
/* Of 0 to 7; but to rxe, 7 is for ever. */
#define RETRIES		6
#define BACKLOG		128

/*
 * One per network namespace that has communicators with a network. The mutex is outside of all that the
 * handler takes: ending a listener waits for its handler.
 */
struct swc_listener {
	struct list_head node;
	struct net *ns;
	u32 users;
	struct rdma_cm_id *id4;
	struct rdma_cm_id *id6;
};

static LIST_HEAD(listeners);
static DEFINE_MUTEX(listeners_mutex);

static unsigned int port = 18574;
module_param_named(rdma_port, port, uint, 0444);
MODULE_PARM_DESC(rdma_port, "port that other nodes connect to (default 18574)");

/* With six more attempts: some eight seconds until a silent peer is given up. */
static unsigned int ack_timeout = 18;
module_param_named(rdma_ack_timeout, ack_timeout, uint, 0444);
MODULE_PARM_DESC(rdma_ack_timeout, "let 4.096 us << this pass without an answer, seven times; 8 to 31 (default 18)");

/* A peer that has been accepted must prove itself by then: in the time of some five attempts. */
static u32 proof_ms(void)
{
	return max_t(u64, div_u64(5 * (4096ull << ack_timeout), NSEC_PER_MSEC), PROOF_LEAST_MS);
}

/**
 * swc_conn_probe_s() - for how long a connection may be silent while operations wait, in seconds
 *
 * A quarter of the time that a device takes to give a peer up: more often would be of little use.
 */
u32 swc_conn_probe_s(void)
{
	return DIV_ROUND_UP_ULL(7 * (4096ull << ack_timeout) / 4, NSEC_PER_SEC);
}

int swc_conn_check_parameters(void)
{
	if (!port || port > U16_MAX) {
		pr_err("rdma_port=%u: give 1 to %u\n", port, U16_MAX);
		return -EINVAL;
	}
	if (ack_timeout < 8 || ack_timeout > 31) {
		pr_err("rdma_ack_timeout=%u: give 8 to 31\n", ack_timeout);
		return -EINVAL;
	}
	return 0;
}

u32 swc_rdma_port(void)
{
	return port;
}

/* ------------------------------------------------------------------ the handshake */

struct mac_part {
	const void *data;
	size_t bytes;
};

static void mac(const u8 *id, const struct mac_part *part, u32 n, void *out, size_t bytes)
{
	struct swc_compat_blake2s state;
	u8 hash[SWC_WIRE_MAC];
	u32 i;

	blake2s_init_key(&state, sizeof(hash), id, SWC_ID_BYTES);
	for (i = 0; i < n; i++)
		blake2s_update(&state, part[i].data, part[i].bytes);
	blake2s_final(&state, hash);
	memcpy(out, hash, bytes);
	memzero_explicit(hash, sizeof(hash));
}

/* What other nodes know a communicator by. */
void swc_conn_name(struct swc_comm *comm)
{
	const struct mac_part part = { "swingcoll name", 14 };
	struct swc_compat_blake2s state;
	u8 hash[SWC_WIRE_MAC];
	u32 i;

	mac(comm->id, &part, 1, comm->name, SWC_WIRE_NAME);
	blake2s_init_key(&state, sizeof(hash), comm->id, SWC_ID_BYTES);
	for (i = 0; i < comm->nranks; i++) {
		__le32 node = cpu_to_le32(comm->rank_node[i]);

		blake2s_update(&state, (const u8 *)&node, sizeof(node));
	}
	blake2s_final(&state, hash);
	memcpy(&comm->places, hash, sizeof(comm->places));
}

static void hello_mac(const u8 *id, const struct swc_wire_hello *hello, void *out)
{
	const struct mac_part part = { hello, offsetof(struct swc_wire_hello, mac) };

	mac(id, &part, 1, out, SWC_WIRE_MAC);
}

static void accept_mac(const struct swc_conn *conn, const struct swc_wire_accept *accept, void *out)
{
	const struct mac_part part[] = {
		{ &conn->hello, sizeof(conn->hello) },
		{ accept, offsetof(struct swc_wire_accept, mac) },
	};

	mac(conn->comm->id, part, ARRAY_SIZE(part), out, SWC_WIRE_MAC);
}

void swc_conn_proof(struct swc_conn *conn, void *out)
{
	const struct mac_part part[] = {
		{ &conn->hello, sizeof(conn->hello) },
		{ &conn->accept, sizeof(conn->accept) },
		{ "swingcoll proof", 15 },
	};

	mac(conn->comm->id, part, ARRAY_SIZE(part), out, SWC_WIRE_MAC);
}

bool swc_conn_proof_ok(struct swc_conn *conn, const void *theirs)
{
	u8 ours[SWC_WIRE_MAC];

	swc_conn_proof(conn, ours);
	return !crypto_memneq(ours, theirs, sizeof(ours));
}

/* What both sides keep of the other's slots. */
static void learn_slots(struct swc_conn *conn, __le16 slots, __le16 slot_kib)
{
	conn->peer_slots = le16_to_cpu(slots);
	conn->peer_slot_bytes = le16_to_cpu(slot_kib) << 10;
	conn->credits = conn->peer_slots;
}

/* ------------------------------------------------------------------ taking apart */

/**
 * swc_conn_take_apart() - end what there is of a connection; its memory stays
 *
 * The state is such that nothing is posted any more. Sleeps.
 */
void swc_conn_take_apart(struct swc_conn *conn)
{
	struct rdma_cm_id *id = conn->id;

	if (!id)
		return;
	/* From now on its handler looks away. */
	rdma_lock_handler(id);
	id->context = NULL;
	rdma_unlock_handler(id);
	if (id->qp) {
		rdma_disconnect(id);
		ib_drain_qp(id->qp);
	}
	if (conn->dev)
		swc_conn_unmap(conn);
	if (id->qp) {
		swc_land_take_apart(conn);
		rdma_destroy_qp(id);
	}
	if (conn->cq)
		ib_free_cq(conn->cq);
	conn->cq = NULL;
	if (conn->pd)
		ib_dealloc_pd(conn->pd);
	conn->pd = NULL;
	conn->id = NULL;
	rdma_destroy_id(id);
	if (conn->proven)
		swc_stat_inc(SWC_STAT_CONNS_CLOSED);
	conn->proven = false;
	swc_dev_drop(conn);
	spin_lock(&conn->lock);
	conn->sq_head = 0;
	conn->sq_tail = 0;
	conn->asked = 0;
	conn->quiet = 0;
	conn->to_return = 0;
	memset(conn->offer, 0, sizeof(conn->offer));
	spin_unlock(&conn->lock);
}

/* ------------------------------------------------------------------ connecting */

/*
 * Try again in a moment, or give up. A connection that was live is given up in a moment: the peer may have
 * said why it would end, and that may still be on its way through the completion queue.
 */
void swc_conn_retry(struct swc_conn *conn, const char *why, int detail)
{
	bool late = conn->me < conn->peer && time_after(jiffies, conn->give_up);

	/*
	 * Queued under the lock: who closes the connection cancels the work, and then it must not come again.
	 */
	spin_lock(&conn->lock);
	conn->why = why;
	if (conn->state == SWC_CONN_LIVE) {
		conn->dropped = true;
		mod_delayed_work(swc_net_wq, &conn->connect_work, msecs_to_jiffies(NEWS_MS));
	}
	if (conn->state != SWC_CONN_CONNECTING)
		late = false;
	else if (!late)
		mod_delayed_work(swc_net_wq, &conn->connect_work, msecs_to_jiffies(RETRY_MS));
	spin_unlock(&conn->lock);
	if (late)
		swc_conn_fail(conn, -ETIMEDOUT, "%s (%d)", why, detail);
}

static int handler(struct rdma_cm_id *id, struct rdma_cm_event *event);

/*
 * Work item. At the lower rank: connect, from the beginning. At the other: the peer has not proven itself;
 * make ready for its next try.
 */
void swc_conn_connect(struct work_struct *work)
{
	struct swc_conn *conn = container_of(work, struct swc_conn, connect_work.work);
	const struct swc_node_path *path;
	struct rdma_cm_id *id;
	bool active = conn->me < conn->peer, again, dropped;
	const char *why;
	int ret;

	spin_lock(&conn->lock);
	why = conn->why;
	dropped = conn->state == SWC_CONN_LIVE && conn->dropped;
	again = conn->state == SWC_CONN_CONNECTING;
	if (again)
		conn->state = SWC_CONN_RESETTING;
	spin_unlock(&conn->lock);
	if (dropped)
		swc_conn_fail(conn, -ECONNRESET, "it has disconnected (%s)", why);
	if (!again)
		return;
	swc_conn_take_apart(conn);
	spin_lock(&conn->lock);
	again = conn->state == SWC_CONN_RESETTING;
	if (again)
		conn->state = active ? SWC_CONN_CONNECTING : SWC_CONN_IDLE;
	spin_unlock(&conn->lock);
	if (!again || !active) {
		/* There is nobody to be told by it any more. */
		wake_up_all(&conn->net->told);
		return;
	}
	path = swc_net_path(conn->net, conn->comm->rank_node[conn->peer], conn->path);
	id = rdma_create_id(swc_listener_ns(conn->net->listener), handler, conn, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id)) {
		swc_conn_retry(conn, "no connection identifier", PTR_ERR(id));
		return;
	}
	conn->id = id;
	ret = rdma_resolve_addr(id, (struct sockaddr *)path->local, (const struct sockaddr *)path->remote,
				RESOLVE_MS);
	WRITE_ONCE(conn->card, id->route.addr.dev_addr.bound_dev_if);
	if (ret)
		swc_conn_retry(conn, ret == -ENODEV ? "no RDMA device has the address to it: rdma link" :
				     "its address cannot be resolved from here", ret);
}

static int connect_now(struct swc_conn *conn, struct rdma_cm_id *id)
{
	struct swc_wire_hello *h = &conn->hello;
	struct rdma_conn_param param = {
		.private_data = h, .private_data_len = sizeof(*h),
		.responder_resources = 1, .initiator_depth = 1,
		.retry_count = RETRIES, .rnr_retry_count = 7,
	};
	int ret = swc_conn_set_up(conn, id);

	if (ret)
		return ret;
	*h = (struct swc_wire_hello){
		.magic = cpu_to_le32(SWC_WIRE_MAGIC),
		.version = cpu_to_le16(SWC_WIRE_VERSION),
		.channel = conn->channel,
		.path = conn->path,
		.places = conn->comm->places,
		.src = cpu_to_le32(conn->me),
		.dst = cpu_to_le32(conn->peer),
		.slots = cpu_to_le16(swc_slots),
		.slot_kib = cpu_to_le16(swc_slot_kib),
	};
	memcpy(h->name, conn->comm->name, SWC_WIRE_NAME);
	get_random_bytes(h->nonce, sizeof(h->nonce));
	hello_mac(conn->comm->id, h, h->mac);
	return rdma_connect_locked(id, &param);
}

/* The peer has accepted. */
static void established(struct swc_conn *conn, const struct rdma_conn_param *param)
{
	const struct swc_wire_accept *a = param->private_data;
	u8 ours[SWC_WIRE_MAC];
	int reason;

	if (conn->me > conn->peer)
		return;		/* its PROOF makes it live */
	reason = swc_wire_accept_check(a, param->private_data_len);
	if (!reason) {
		accept_mac(conn, a, ours);
		reason = crypto_memneq(ours, a->mac, sizeof(ours)) ? SWC_WIRE_DENIED : 0;
	}
	if (reason) {
		swc_conn_fail(conn, -EPROTO, "its answer cannot be believed (%d)", reason);
		return;
	}
	conn->accept = *a;
	learn_slots(conn, a->slots, a->slot_kib);
	spin_lock(&conn->lock);
	conn->pending |= SWC_PEND_PROOF;
	spin_unlock(&conn->lock);
	swc_conn_go_live(conn);
}

static const char * const reasons[SWC_WIRE_REASON_NR] = {
	[SWC_WIRE_UNKNOWN] = "there is no such communicator there, or not any more",
	[SWC_WIRE_BUSY] = "it is busy",
	[SWC_WIRE_VERSION_DIFFERS] = "it speaks another version",
	[SWC_WIRE_BAD] = "it found the request senseless: do all ranks say the same of who is where?",
	[SWC_WIRE_DENIED] = "it does not believe that we know the communicator's id",
	[SWC_WIRE_ENDED] = "the communicator has ended there",
};

/* Who was at fault there is at fault here, too. */
static void peer_ended(struct swc_conn *conn, const struct swc_wire_reject *r)
{
	u32 error = le32_to_cpu(r->error), culprit = le32_to_cpu(r->culprit);
	char text[SWC_TEXT_BYTES];

	if (!error || error >= 512 || !culprit || culprit > conn->comm->nranks) {
		swc_conn_fail(conn, -ECONNRESET, "%s", reasons[SWC_WIRE_ENDED]);
		return;
	}
	scnprintf(text, sizeof(text), "rank %u: connection with rank %u: %s; rank %u was at fault", conn->me,
		  conn->peer, reasons[SWC_WIRE_ENDED], culprit - 1);
	swc_net_ops->lost(conn->comm, -(int)error, culprit - 1, READ_ONCE(conn->comm->oldest), text);
	swc_conn_fail(conn, -ECONNRESET, "%s", reasons[SWC_WIRE_ENDED]);
}

static void rejected(struct swc_conn *conn, struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	u8 len = 0;
	const struct swc_wire_reject *r = rdma_consumer_reject_data(id, event, &len);
	u32 reason = 0;

	if (r && len >= sizeof(*r) && le32_to_cpu(r->magic) == SWC_WIRE_MAGIC)
		reason = le16_to_cpu(r->reason);
	if (!reason || reason == SWC_WIRE_UNKNOWN || reason == SWC_WIRE_BUSY)
		swc_conn_retry(conn, reason ? reasons[reason] : rdma_reject_msg(id, event->status),
			       event->status);
	else if (reason == SWC_WIRE_VERSION_DIFFERS)
		swc_conn_fail(conn, -EPROTONOSUPPORT, "it speaks version %u of the protocol, this node %u",
			      le16_to_cpu(r->version), SWC_WIRE_VERSION);
	else if (reason == SWC_WIRE_ENDED)
		peer_ended(conn, r);
	else
		swc_conn_fail(conn, -EPROTO, "%s", reason < SWC_WIRE_REASON_NR ? reasons[reason] : "refused");
}

/* ------------------------------------------------------------------ being connected to */

struct refusal {
	int reason;
	struct swc_ending ending;	/* of SWC_WIRE_ENDED */
};

/* The connection that is asked for, if it makes sense; NULL and a reason otherwise. */
static struct swc_conn *wanted(const struct swc_wire_hello *h, struct swc_comm *comm, struct refusal *no)
{
	u32 src = le32_to_cpu(h->src), dst = le32_to_cpu(h->dst);
	struct swc_conn *conn;
	u8 ours[SWC_WIRE_MAC];

	hello_mac(comm->id, h, ours);
	no->reason = SWC_WIRE_DENIED;
	if (crypto_memneq(ours, h->mac, sizeof(ours)))
		return NULL;
	/* Also if it has ended: that may be why. */
	no->reason = SWC_WIRE_BAD;
	if (h->places != comm->places || dst >= comm->nranks)
		return NULL;
	no->reason = SWC_WIRE_ENDED;
	spin_lock(&comm->lock);
	no->ending = (struct swc_ending){ .error = comm->error, .culprit = comm->culprit };
	spin_unlock(&comm->lock);
	if (READ_ONCE(comm->status) == SWC_COMM_ABORTED)
		return NULL;
	/* Right, but not here (yet, or any more): one kernel may have several nodes of a communicator. */
	if (!swc_comm_is_local(comm, dst)) {
		if (!swc_ended_find(h->name, comm, dst, &no->ending))
			no->reason = SWC_WIRE_UNKNOWN;
		return NULL;
	}
	/* In order, but it will answer nobody any more. */
	if (READ_ONCE(comm->member[dst].state) > SWC_MEMBER_JOINED)
		return NULL;
	no->reason = SWC_WIRE_BAD;
	if (swc_comm_is_local(comm, src) || h->path >= swc_net_npaths(comm->net, comm->rank_node[src]))
		return NULL;
	no->reason = SWC_WIRE_BUSY;
	conn = swc_conn_find(comm->net, dst, src, h->channel, h->path);
	return IS_ERR(conn) ? NULL : conn;
}

static int accept_now(struct swc_conn *conn, struct rdma_cm_id *id, const struct swc_wire_hello *h)
{
	struct swc_wire_accept *a = &conn->accept;
	struct rdma_conn_param param = {
		.private_data = a, .private_data_len = sizeof(*a),
		.responder_resources = 1, .initiator_depth = 1,
		.rnr_retry_count = 7,
	};
	int ret;

	conn->hello = *h;
	*a = (struct swc_wire_accept){
		.magic = cpu_to_le32(SWC_WIRE_MAGIC),
		.version = cpu_to_le16(SWC_WIRE_VERSION),
		.slots = cpu_to_le16(swc_slots),
		.slot_kib = cpu_to_le16(swc_slot_kib),
	};
	get_random_bytes(a->nonce, sizeof(a->nonce));
	accept_mac(conn, a, a->mac);
	learn_slots(conn, h->slots, h->slot_kib);
	ret = rdma_set_ack_timeout(id, ack_timeout);
	if (!ret)
		ret = swc_conn_set_up(conn, id);
	return ret ?: rdma_accept(id, &param);
}

static int refuse(struct rdma_cm_id *id, const struct refusal *no)
{
	struct swc_wire_reject r = {
		.magic = cpu_to_le32(SWC_WIRE_MAGIC),
		.version = cpu_to_le16(SWC_WIRE_VERSION),
		.reason = cpu_to_le16(no->reason),
	};

	if (no->reason == SWC_WIRE_ENDED) {
		r.error = cpu_to_le32(-no->ending.error);
		r.culprit = cpu_to_le32(no->ending.culprit + 1);
	}
	swc_stat_inc(SWC_STAT_CONNS_REFUSED);
	rdma_reject(id, &r, sizeof(r), IB_CM_REJ_CONSUMER_DEFINED);
	return -ECONNREFUSED;	/* the id is destroyed by who called */
}

/* Who has heard a hello can repeat it, but prove nothing: it must not keep the place for long. */
static void expect_proof(struct swc_conn *conn)
{
	spin_lock(&conn->lock);
	if (conn->state == SWC_CONN_CONNECTING)
		queue_delayed_work(swc_net_wq, &conn->connect_work, msecs_to_jiffies(proof_ms()));
	spin_unlock(&conn->lock);
}

static int requested(struct rdma_cm_id *id, const struct rdma_conn_param *param)
{
	const struct swc_wire_hello *h = param->private_data;
	struct swc_conn *conn;
	struct swc_comm *comm;
	struct refusal no = {};
	bool mine;
	int ret;

	no.reason = h ? swc_wire_hello_check(h, param->private_data_len) : SWC_WIRE_BAD;
	if (no.reason)
		return refuse(id, &no);
	comm = swc_net_ops->comm_by_name(h->name, le32_to_cpu(h->dst));
	/* One of another network namespace is not to be had here. */
	if (comm && swc_listener_ns(comm->net->listener) != id->route.addr.dev_addr.net) {
		swc_comm_put(comm);
		comm = NULL;
	}
	if (!comm) {
		no.reason = swc_ended_find(h->name, NULL, 0, &no.ending) ? SWC_WIRE_ENDED : SWC_WIRE_UNKNOWN;
		return refuse(id, &no);
	}
	conn = wanted(h, comm, &no);
	swc_comm_put(comm);
	if (!conn)
		return refuse(id, &no);
	spin_lock(&conn->lock);
	mine = conn->state == SWC_CONN_IDLE;
	if (mine) {
		conn->state = SWC_CONN_CONNECTING;
		/* The id is the connection's, which destroys it: whoever closes that must find it. */
		id->context = conn;
		conn->id = id;
	}
	spin_unlock(&conn->lock);
	if (!mine) {
		swc_conn_put(conn);
		no.reason = SWC_WIRE_BUSY;
		return refuse(id, &no);
	}
	ret = accept_now(conn, id, h);
	if (ret) {
		pr_debug("rank %u cannot accept rank %u: %d\n", conn->me, conn->peer, ret);
		rdma_reject(id, NULL, 0, IB_CM_REJ_CONSUMER_DEFINED);
		swc_conn_retry(conn, "cannot accept", ret);
	} else {
		expect_proof(conn);
	}
	swc_conn_put(conn);
	return 0;
}

/* ------------------------------------------------------------------ events */

static int handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct swc_conn *conn = id->context;
	int ret;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return requested(id, &event->param.conn);
	/* A listener, or a connection that is being taken apart. */
	if (!conn)
		return 0;
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		rdma_set_ack_timeout(id, ack_timeout);
		ret = rdma_resolve_route(id, RESOLVE_MS);
		if (ret)
			swc_conn_retry(conn, "no route to it", ret);
		return 0;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ret = connect_now(conn, id);
		if (ret)
			swc_conn_retry(conn, ret == -ENODEV ? "the RDMA device cannot be used: see dmesg" :
					     "cannot connect to it", ret);
		return 0;
	case RDMA_CM_EVENT_ESTABLISHED:
		established(conn, &event->param.conn);
		return 0;
	case RDMA_CM_EVENT_REJECTED:
		rejected(conn, id, event);
		return 0;
	case RDMA_CM_EVENT_UNREACHABLE:
		/*
		 * Of a live connection it only says that the neighbour is asked for its address again. If
		 * that is another one now, or there is no answer, the device runs out of attempts; and who
		 * has been called waits for the proof.
		 */
		if (conn->me > conn->peer || READ_ONCE(conn->state) == SWC_CONN_LIVE)
			return 0;
		fallthrough;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		swc_conn_retry(conn, rdma_event_msg(event->event), event->status);
		return 0;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		swc_conn_retry(conn, rdma_event_msg(event->event), event->status);
		return 0;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		swc_conn_fail(conn, -ENODEV, "%s", rdma_event_msg(event->event));
		return 0;
	default:
		return 0;
	}
}

/* ------------------------------------------------------------------ listening */

static struct rdma_cm_id *listen_on(struct net *ns, struct sockaddr *addr)
{
	struct rdma_cm_id *id = rdma_create_id(ns, handler, NULL, RDMA_PS_TCP, IB_QPT_RC);
	int ret;

	if (IS_ERR(id))
		return id;
	ret = addr->sa_family == AF_INET6 ? rdma_set_afonly(id, 1) : 0;
	if (!ret)
		ret = rdma_bind_addr(id, addr);
	if (!ret)
		ret = rdma_listen(id, BACKLOG);
	if (!ret)
		return id;
	rdma_destroy_id(id);
	return ERR_PTR(ret);
}

static struct swc_listener *listener_new(struct net *ns)
{
	struct sockaddr_in in4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct swc_listener *l = kzalloc(sizeof(*l), GFP_KERNEL);
	int ret;

	if (!l)
		return ERR_PTR(-ENOMEM);
	l->id4 = listen_on(ns, (struct sockaddr *)&in4);
	if (IS_ERR(l->id4)) {
		ret = PTR_ERR(l->id4);
		pr_err("cannot listen on port %u (%d): is it in use? Load the module with rdma_port=\n",
		       port, ret);
		kfree(l);
		return ERR_PTR(ret);
	}
	/* Kernels without IPv6 have the other only. */
	l->id6 = listen_on(ns, (struct sockaddr *)&in6);
	if (IS_ERR(l->id6))
		l->id6 = NULL;
	l->ns = get_net(ns);
	l->users = 1;
	list_add(&l->node, &listeners);
	return l;
}

/**
 * swc_net_listen() - hear the other nodes in the caller's network namespace
 *
 * Return: to be given back by swc_net_deafen(); -EADDRINUSE if the port is taken; -ENOMEM.
 */
struct swc_listener *swc_net_listen(void)
{
	struct net *ns = current->nsproxy->net_ns;
	struct swc_listener *l;

	mutex_lock(&listeners_mutex);
	list_for_each_entry(l, &listeners, node) {
		if (net_eq(l->ns, ns)) {
			l->users++;
			goto out;
		}
	}
	l = listener_new(ns);
out:
	mutex_unlock(&listeners_mutex);
	return l;
}

void swc_net_deafen(struct swc_listener *l)
{
	mutex_lock(&listeners_mutex);
	if (!--l->users) {
		list_del(&l->node);
		if (l->id6)
			rdma_destroy_id(l->id6);
		rdma_destroy_id(l->id4);
		put_net(l->ns);
		kfree(l);
	}
	mutex_unlock(&listeners_mutex);
}

struct net *swc_listener_ns(const struct swc_listener *l)
{
	return l->ns;
}
