// SPDX-License-Identifier: GPL-2.0-only
/*
 * Introspection: communicators and counters for swingctl, and the state of all operations in debugfs.
 *
 * Each communicator is copied under its lock, one at a time. Nothing here changes any state.
 */
#include <linux/debugfs.h>
#include <linux/ktime.h>
#include <linux/pid.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "exec/operation.h"
#include "comm/comm.h"
#include "dev/query.h"

static struct dentry *debugfs_dir;

/* ------------------------------------------------------------------ snapshots */

static void snapshot_comm(struct swc_comm *comm, struct swc_comm_query *q)
{
	const struct swc_op *op, *oldest = NULL;
	u64 now = ktime_get_ns(), since;

	q->nranks = comm->nranks;
	q->nlocal = comm->nlocal;
	q->uid = from_kuid_munged(current_user_ns(), comm->owner);
	memcpy(q->id_prefix, comm->id, sizeof(q->id_prefix));
	spin_lock(&comm->lock);
	q->status = comm->status;
	list_for_each_entry(op, &comm->ops, node) {
		/* Skip operations with no arrivals: their numbers are only reserved. */
		if (!op->narrived)
			continue;
		q->inflight++;
		/* The list is in the order of first arrivals, and so of sequence numbers. */
		if (!oldest)
			oldest = op;
	}
	if (oldest) {
		q->oldest_seq = oldest->seq;
		since = oldest->opened_at;
		q->oldest_ns = now > since ? now - since : 0;
	}
	q->completed = comm->completed;
	q->failed = comm->failed;
	q->bytes = comm->bytes;
	q->error = comm->error;
	q->culprit = comm->culprit;
	memcpy(q->text, comm->text, sizeof(q->text));
	memcpy(q->algo, oldest ? oldest->algo : comm->algo, sizeof(q->algo));
	spin_unlock(&comm->lock);
}

static void snapshot_member(struct swc_comm *comm, u32 rank, struct swc_member_info *info)
{
	const struct swc_member *member = &comm->member[rank];
	u64 now = ktime_get_ns();

	memset(info, 0, sizeof(*info));
	spin_lock(&comm->lock);
	info->rank = rank;
	info->pid = pid_vnr(member->pid);
	info->state = member->state;
	info->inflight = member->inflight;
	info->submitted = member->submitted;
	if (member->last_submit && now > member->last_submit)
		info->idle_ns = now - member->last_submit;
	memcpy(info->comm, member->name, sizeof(info->comm));
	spin_unlock(&comm->lock);
}

/* ------------------------------------------------------------------ ioctls */

static int copy_members(struct swc_comm *comm, const struct swc_comm_query *q)
{
	struct swc_member_info __user *to = u64_to_user_ptr(q->members);
	u32 i, n = min(q->max_members, comm->nlocal);

	for (i = 0; i < n; i++) {
		struct swc_member_info info;

		snapshot_member(comm, comm->local[i], &info);
		if (copy_to_user(&to[i], &info, sizeof(info)))
			return -EFAULT;
	}
	return 0;
}

/* The next communicator that the caller may see, and its members; see struct swc_comm_query. */
int swc_query_comm(struct swc_comm_query *q)
{
	u64 cursor = q->cursor, members = q->members;
	u32 max_members = q->max_members;
	struct swc_comm *comm;
	int ret;

	if (q->resv0)
		return -EINVAL;
	comm = swc_comm_after(&cursor);
	if (!comm)
		return -ENOENT;
	*q = (struct swc_comm_query){ .cursor = cursor, .max_members = max_members, .members = members };
	snapshot_comm(comm, q);
	ret = copy_members(comm, q);
	swc_comm_put(comm);
	return ret;
}

/* The counters, as many as the caller has room for. */
int swc_query_stats(struct swc_stats *s)
{
	u64 __user *values = u64_to_user_ptr(s->values);
	u32 i;

	for (i = 0; i < min_t(u32, s->max, SWC_STAT_NR); i++)
		if (put_user(swc_stat_read(i), values + i))
			return -EFAULT;
	s->count = SWC_STAT_NR;
	return 0;
}

/* ------------------------------------------------------------------ debugfs */

static const char * const status_names[] = { "forming", "live", "aborted" };
static const char * const member_names[] = { "empty", "joined", "left", "dead" };

static void dump_ops(struct seq_file *m, struct swc_comm *comm)
{
	struct swc_op *op;
	u32 i;

	spin_lock(&comm->lock);
	list_for_each_entry(op, &comm->ops, node) {
		spin_lock(&op->lock);
		seq_printf(m, "  op %llu: %llu bytes, %u of %u arrived, status %d, %u tasks left, %u workers",
			   op->seq, op->bytes, op->narrived, comm->nlocal, op->status,
			   op->tasks_left, op->nactive);
		for (i = 0; i < comm->nlocal && !op->finished; i++)
			if (!op->req[comm->local[i]])
				seq_printf(m, ", missing rank %u (pid %d)", comm->local[i],
					   pid_nr(comm->member[comm->local[i]].pid));
		seq_putc(m, '\n');
		spin_unlock(&op->lock);
	}
	spin_unlock(&comm->lock);
}

static int state_show(struct seq_file *m, void *unused)
{
	struct swc_comm *comm;
	u64 cursor = 0;
	u32 i;

	while ((comm = swc_comm_after(&cursor))) {
		struct swc_member_info info;

		seq_printf(m, "comm %llu: id %4phN.., %u ranks, %u on this node, %s, %llu completed, %llu failed\n",
			   comm->number, comm->id, comm->nranks, comm->nlocal,
			   status_names[READ_ONCE(comm->status)], comm->completed, comm->failed);
		if (comm->error)
			seq_printf(m, "  last error %d: %s\n", comm->error, comm->text);
		for (i = 0; i < comm->nlocal; i++) {
			snapshot_member(comm, comm->local[i], &info);
			seq_printf(m, "  rank %u: pid %u (%s), %s, %llu submitted, %u in flight, idle %llu ms\n",
				   info.rank, info.pid, info.comm, member_names[info.state], info.submitted,
				   info.inflight, info.idle_ns / NSEC_PER_MSEC);
		}
		dump_ops(m, comm);
		swc_comm_put(comm);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);

void swc_debugfs_init(void)
{
	debugfs_dir = debugfs_create_dir("swingcoll", NULL);
	debugfs_create_file("state", 0400, debugfs_dir, NULL, &state_fops);
}

void swc_debugfs_exit(void)
{
	debugfs_remove_recursive(debugfs_dir);
}
