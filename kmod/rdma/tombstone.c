// SPDX-License-Identifier: GPL-2.0-only
/*
 * Communicators that are no more. A peer that asks for one late would otherwise take it for one that is not
 * there yet, and wait for its deadline.
 */
#include "rdma.h"

#define MEMORY	256

struct ended {
	u8 name[SWC_WIRE_NAME];
	u32 node;
	struct swc_ending ending;
};

/* A ring: the oldest gives way. */
static DEFINE_SPINLOCK(ended_lock);
static struct ended ended[MEMORY];
static u32 nended;

/**
 * swc_ended_note() - a communicator is gone from this node
 */
void swc_ended_note(const struct swc_comm *comm)
{
	struct ended *e;

	spin_lock(&ended_lock);
	e = &ended[nended++ % MEMORY];
	memcpy(e->name, comm->name, sizeof(e->name));
	e->node = comm->here;
	e->ending = (struct swc_ending){ .culprit = -1 };
	if (comm->status == SWC_COMM_ABORTED)
		e->ending = (struct swc_ending){ .error = comm->error, .culprit = comm->culprit };
	spin_unlock(&ended_lock);
}

/**
 * swc_ended_find() - was there a communicator of this name?
 * @name: name
 * @comm: another node of it that is in this kernel, or NULL
 * @rank: whom the peer wants, whose node it was
 * @ending: gets how it ended
 */
bool swc_ended_find(const u8 *name, const struct swc_comm *comm, u32 rank, struct swc_ending *ending)
{
	bool found = false;
	u32 i;

	spin_lock(&ended_lock);
	for (i = 0; i < min_t(u32, nended, MEMORY) && !found; i++) {
		const struct ended *e = &ended[i];

		found = !memcmp(e->name, name, sizeof(e->name)) &&
			(!comm || comm->rank_node[rank] == e->node);
		if (found)
			*ending = e->ending;
	}
	spin_unlock(&ended_lock);
	return found;
}
