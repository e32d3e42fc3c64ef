/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_USER_H
#define SWC_USER_H

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/list.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>

/**
 * enum swc_user_queue - the work queues of a user
 * @SWC_QUEUE_OPS: operations of ordinary communicators
 * @SWC_QUEUE_URGENT: operations of urgent communicators
 * @SWC_QUEUE_NET: connections
 * @SWC_QUEUE_ABORT: aborts that wait until other nodes are notified, which is done by work of SWC_QUEUE_NET
 */
enum swc_user_queue {
	SWC_QUEUE_OPS, SWC_QUEUE_URGENT, SWC_QUEUE_NET, SWC_QUEUE_ABORT,
	SWC_QUEUE_NR
};

/**
 * struct swc_user - a user who owns communicators, and the work queues on which their work is done
 *
 * The queues of operations run as many work items at a time as there are CPUs. So all operations of a user
 * together have as many kernel threads as one large operation has, and take turns on them. No user waits
 * behind the work of another one: the scheduler shares the CPUs among the threads of all users.
 *
 * @node: in the list of users; users_mutex
 * @uid: the user
 * @ncomms: communicators that use it; users_mutex
 * @wq: work queues
 */
struct swc_user {
	struct list_head node;
	kuid_t uid;
	u32 ncomms;
	struct workqueue_struct *wq[SWC_QUEUE_NR];
};

/* May the caller query communicators of this user? */
static inline bool swc_user_visible(kuid_t owner)
{
	/* A filter, not a request for a right: nothing for the audit log. */
	return uid_eq(owner, current_euid()) || ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN);
}

struct swc_user *swc_user_get(kuid_t uid);
void swc_user_put(struct swc_user *user);

#endif /* SWC_USER_H */
