// SPDX-License-Identifier: GPL-2.0-only
/*
 * Users: each has work queues of its own for its operations and connections, so that no user keeps another
 * one waiting. They live as long as the user owns a communicator.
 */
#include <linux/cpumask.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "comm/user.h"
#include "swingcoll.h"

static DEFINE_MUTEX(users_mutex);
static LIST_HEAD(users);

static struct workqueue_struct *make_queue(enum swc_user_queue which, kuid_t uid)
{
	u32 id = from_kuid(&init_user_ns, uid), cpus = num_online_cpus();

	switch (which) {
	case SWC_QUEUE_OPS:
		return alloc_workqueue("swingcoll-%u", WQ_UNBOUND, cpus, id);
	case SWC_QUEUE_URGENT:
		return alloc_workqueue("swingcoll-u-%u", WQ_UNBOUND | WQ_HIGHPRI, cpus, id);
	case SWC_QUEUE_NET:
		/* Making and closing connections sleeps, for seconds if a device has lost its link. */
		return alloc_workqueue("swingcoll-n-%u", WQ_UNBOUND, 0, id);
	case SWC_QUEUE_ABORT:
		return alloc_workqueue("swingcoll-a-%u", WQ_UNBOUND, 0, id);
	default:
		return NULL;
	}
}

static void user_free(struct swc_user *user)
{
	u32 i;

	for (i = 0; i < SWC_QUEUE_NR; i++)
		if (user->wq[i])
			destroy_workqueue(user->wq[i]);
	kfree(user);
}

static struct swc_user *user_make(kuid_t uid)
{
	struct swc_user *user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
	u32 i;

	if (!user)
		return NULL;
	user->uid = uid;
	for (i = 0; i < SWC_QUEUE_NR; i++) {
		user->wq[i] = make_queue(i, uid);
		if (user->wq[i])
			continue;
		user_free(user);
		return NULL;
	}
	return user;
}

/* The user, with one more communicator: the one in the list, or @fresh, which may be NULL. */
static struct swc_user *count_comm(kuid_t uid, struct swc_user *fresh)
{
	struct swc_user *user, *found = fresh;

	mutex_lock(&users_mutex);
	list_for_each_entry(user, &users, node)
		if (uid_eq(user->uid, uid))
			found = user;
	if (found)
		found->ncomms++;
	if (found && found == fresh)
		list_add_tail(&found->node, &users);
	mutex_unlock(&users_mutex);
	return found;
}

/**
 * swc_user_get() - the user's queues, for one more communicator; made if this is the user's first one
 *
 * May sleep. Making them takes long where the caller gets little CPU or memory: no other user waits for that.
 *
 * Return: the user, until swc_user_put(); NULL: out of memory.
 */
struct swc_user *swc_user_get(kuid_t uid)
{
	struct swc_user *fresh, *user = count_comm(uid, NULL);

	if (user)
		return user;
	fresh = user_make(uid);
	if (!fresh)
		return NULL;
	user = count_comm(uid, fresh);
	if (user != fresh)
		user_free(fresh);
	return user;
}

/**
 * swc_user_put() - a communicator is gone
 *
 * Waits for work items that are just returning. Not to be called by one of them.
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
