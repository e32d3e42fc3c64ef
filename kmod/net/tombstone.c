// SPDX-License-Identifier: GPL-2.0-only
/*
 * Communicators that have ended. Without a record of them, a peer that connects late would be told that the
 * communicator does not exist yet, and retry until its deadline.
 */
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <net/net_namespace.h>

#include "mem/account.h"
#include "net/conn.h"
#include "net/tombstone.h"

#define RECORDS	256
/* A user who has as many displaces no other user's. */
#define RECORDS_OF_USER	(RECORDS / 4)

/**
 * struct record - a communicator that has ended
 * @ns: cookie of its network namespace
 * @added: records before it, and itself; 0: unused
 */
struct record {
	u8 name[SWC_WIRE_NAME];
	u32 node;
	kuid_t owner;
	u64 ns;
	u64 added;
	struct swc_tombstone end;
};

static DEFINE_SPINLOCK(lock);
static struct record records[RECORDS];
static u64 nadded;

/**
 * swc_tombstone_of() - was the communicator aborted?
 * @net: its net
 * @end: gets how; as if all ranks had left in order if it was not
 */
bool swc_tombstone_of(const struct swc_net *net, struct swc_tombstone *end)
{
	*end = (struct swc_tombstone){ .culprit = -1 };
	memcpy(end->refusal_key, net->refusal_key, sizeof(end->refusal_key));
	/* Pairs with the release in swc_net_abort(). */
	if (!smp_load_acquire(&net->aborted))
		return false;
	end->error = net->abort.error;
	end->culprit = net->abort.culprit;
	return true;
}

/* An unused record; else the oldest, or the user's oldest if they have many. */
static struct record *replaceable(kuid_t owner)
{
	struct record *oldest = &records[0], *own = NULL;
	u32 i, count = 0;

	lockdep_assert_held(&lock);
	for (i = 0; i < RECORDS; i++) {
		struct record *r = &records[i];

		if (r->added < oldest->added)
			oldest = r;
		if (!r->added || !uid_eq(r->owner, owner))
			continue;
		count++;
		if (!own || r->added < own->added)
			own = r;
	}
	return oldest->added && count >= RECORDS_OF_USER ? own : oldest;
}

/**
 * swc_tombstone_add() - the communicator is being freed on this node
 */
void swc_tombstone_add(const struct swc_net *net)
{
	kuid_t owner = net->params.account->uid;
	struct record *r;

	spin_lock(&lock);
	r = replaceable(owner);
	r->added = ++nadded;
	r->owner = owner;
	memcpy(r->name, net->name, sizeof(r->name));
	r->node = net->params.here;
	r->ns = net->ns->net_cookie;
	swc_tombstone_of(net, &r->end);
	spin_unlock(&lock);
}

/**
 * swc_tombstone_find() - was there a communicator of this name?
 * @ns: network namespace that it must have been in
 * @name: name
 * @net: the communicator's net on another node in this kernel, or NULL
 * @rank: with @net, only a record of the node of this rank counts
 * @end: gets how it ended
 */
bool swc_tombstone_find(const struct net *ns, const u8 *name, const struct swc_net *net, u32 rank,
			struct swc_tombstone *end)
{
	bool found = false;
	u32 i;

	spin_lock(&lock);
	for (i = 0; i < RECORDS && !found; i++) {
		const struct record *r = &records[i];

		found = r->added && r->ns == ns->net_cookie && !memcmp(r->name, name, sizeof(r->name)) &&
			(!net || net->params.rank_node[rank] == r->node);
		if (found)
			*end = r->end;
	}
	spin_unlock(&lock);
	return found;
}
