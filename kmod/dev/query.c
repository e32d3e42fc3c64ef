// SPDX-License-Identifier: GPL-2.0-only
/*
 * Introspection: communicators, their last events, and counters for swingctl; the state of all operations in
 * debugfs.
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
#include "comm/recorder.h"
#include "core/text.h"
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
	swc_text_read(q->text, comm->text, swc_reader_pid_ns());
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
	info->submitted = member->next_seq;
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

/* The recorder that is asked for, with a reference, or NULL. */
static struct swc_recorder *find_recorder(struct swc_ctx *ctx, const struct swc_trace_query *q)
{
	struct swc_recorder *recorder;
	struct swc_member *member;

	if (!q->comm)
		return swc_recorder_from(q->number);
	member = swc_member_get(ctx, q->comm);
	if (!member)
		return NULL;
	recorder = member->comm->recorder;
	if (recorder && swc_recorder_visible(recorder))
		kref_get(&recorder->ref);
	else
		recorder = NULL;
	swc_member_put(member);
	return recorder;
}

static void snapshot_recorder(struct swc_recorder *recorder, struct swc_trace_query *q)
{
	q->number = recorder->number;
	/* Before the number of records: of a communicator that has ended, it is final. */
	q->ended_ns = swc_recorder_ended_ns(recorder);
	if (q->ended_ns)
		q->flags |= SWC_TRACE_ENDED;
	q->written = atomic64_read(&recorder->written);
	q->now_ns = ktime_get_ns();
	q->capacity = recorder->mask + 1;
	q->nranks = recorder->nranks;
	q->uid = from_kuid_munged(current_user_ns(), recorder->owner);
	q->culprit = -1;
	/* Pairs with swc_recorder_fail(). */
	if (!smp_load_acquire(&recorder->failed))
		return;
	q->flags |= SWC_TRACE_FAILED | (recorder->aborted ? SWC_TRACE_ABORTED : 0);
	q->error = recorder->error;
	q->culprit = recorder->culprit;
	swc_text_read(q->text, recorder->text, swc_reader_pid_ns());
}

/* Instead of the number of a pid namespace: is it another one than the reader's? */
static void translate_pid(struct swc_trace_record *r)
{
	if (r->type == SWC_TRACE_JOIN)
		r->arg = (u32)r->arg | (u64)(r->arg >> 32 != swc_reader_pid_ns()) << 32;
}

/* Copy records from q->first on; moves that behind the last one looked at. */
static int copy_records(const struct swc_recorder *recorder, struct swc_trace_query *q)
{
	struct swc_trace_record __user *to = u64_to_user_ptr(q->records);
	struct swc_trace_record r;

	if (q->written > q->capacity)
		q->first = max(q->first, q->written - q->capacity);
	q->first = min(q->first, q->written);
	for (; q->first < q->written && q->count < q->max_records; q->first++) {
		cond_resched();
		if (!swc_recorder_read(recorder, q->first, &r))
			continue;
		translate_pid(&r);
		if (copy_to_user(&to[q->count], &r, sizeof(r)))
			return -EFAULT;
		q->count++;
	}
	return 0;
}

/* The last events of a communicator; see struct swc_trace_query. */
int swc_query_trace(struct swc_ctx *ctx, struct swc_trace_query *q)
{
	struct swc_recorder *recorder;
	int ret;

	if (q->resv || (q->comm && q->number) || !q->max_records != !q->records)
		return -EINVAL;
	recorder = find_recorder(ctx, q);
	if (!recorder)
		return -ENOENT;
	*q = (struct swc_trace_query){ .comm = q->comm, .max_records = q->max_records, .first = q->first,
				       .records = q->records };
	snapshot_recorder(recorder, q);
	ret = copy_records(recorder, q);
	swc_recorder_put(recorder);
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
			if (!op->req[i])
				seq_printf(m, ", missing rank %u (pid %d)", comm->local[i],
					   pid_vnr(comm->member[comm->local[i]].pid));
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
		char text[SWC_TEXT_BYTES];

		seq_printf(m, "comm %llu: id %4phN.., %u ranks, %u on this node, %s, %llu completed, %llu failed\n",
			   comm->number, comm->id, comm->nranks, comm->nlocal,
			   status_names[READ_ONCE(comm->status)], comm->completed, comm->failed);
		if (comm->error) {
			swc_text_read(text, comm->text, swc_reader_pid_ns());
			seq_printf(m, "  last error %d: %s\n", comm->error, text);
		}
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
