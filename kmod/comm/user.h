/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_USER_H
#define SWC_USER_H

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/list.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>

/**
 * struct swc_user - a user who owns communicators, and the work queues on which their operations run
 *
 * A queue runs as many work items at a time as there are CPUs. So all operations of a user together have as
 * many kernel threads as one large operation has, and take turns on them. No user waits behind the operations
 * of another one: the scheduler shares the CPUs among the threads of all users.
 *
 * @node: in the list of users; users_mutex
 * @uid: the user
 * @ncomms: communicators that use it; users_mutex
 * @wq, @urgent_wq: for operations of ordinary and of urgent communicators
 */
struct swc_user {
	struct list_head node;
	kuid_t uid;
	u32 ncomms;
	struct workqueue_struct *wq;
	struct workqueue_struct *urgent_wq;
};

/* May the caller query communicators of this user? */
static inline bool swc_user_visible(kuid_t owner)
{
	return uid_eq(owner, current_euid()) || capable(CAP_SYS_ADMIN);
}

struct swc_user *swc_user_get(kuid_t uid);
void swc_user_put(struct swc_user *user);

#endif /* SWC_USER_H */
