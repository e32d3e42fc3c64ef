// SPDX-License-Identifier: GPL-2.0-only
/*
 * Users: each has work queues of its own for the execution of its operations, so that no user keeps another
 * one waiting. They live as long as the user owns a communicator.
 */
#include <linux/cpumask.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "comm/user.h"
#include "swingcoll.h"

static DEFINE_MUTEX(users_mutex);
static LIST_HEAD(users);

static struct workqueue_struct *make_queue(const char *format, unsigned int flags, kuid_t uid)
{
	return alloc_workqueue(format, WQ_UNBOUND | flags, num_online_cpus(),
			       from_kuid(&init_user_ns, uid));
}

static void user_free(struct swc_user *user)
{
	if (user->wq)
		destroy_workqueue(user->wq);
	if (user->urgent_wq)
		destroy_workqueue(user->urgent_wq);
	kfree(user);
}

static struct swc_user *user_make(kuid_t uid)
{
	struct swc_user *user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);

	if (!user)
		return NULL;
	user->uid = uid;
	user->wq = make_queue("swingcoll-%u", 0, uid);
	user->urgent_wq = make_queue("swingcoll-u-%u", WQ_HIGHPRI, uid);
	if (!user->wq || !user->urgent_wq) {
		user_free(user);
		return NULL;
	}
	return user;
}

/**
 * swc_user_get() - the user's queues, for one more communicator; made if this is the user's first one
 *
 * May sleep. Return: the user, until swc_user_put(); NULL: out of memory.
 */
struct swc_user *swc_user_get(kuid_t uid)
{
	struct swc_user *user, *found = NULL;

	mutex_lock(&users_mutex);
	list_for_each_entry(user, &users, node)
		if (uid_eq(user->uid, uid))
			found = user;
	if (!found) {
		found = user_make(uid);
		if (found)
			list_add_tail(&found->node, &users);
	}
	if (found)
		found->ncomms++;
	mutex_unlock(&users_mutex);
	return found;
}

/**
 * swc_user_put() - a communicator is gone
 *
 * Waits for work items of its operations that are just returning. Not to be called by one of them.
 */
void swc_user_put(struct swc_user *user)
{
	bool last;

	mutex_lock(&users_mutex);
	last = !--user->ncomms;
	if (last)
		list_del(&user->node);
	mutex_unlock(&users_mutex);
	if (last)
		user_free(user);
}
