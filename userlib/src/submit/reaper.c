// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Collecting completions: many threads may wait, one at a time reads. See struct swc_reaper in
 * priv.h. The lock is not held while sleeping or collecting.
 */
#include <errno.h>

#include "src/priv.h"

void swc_reaper_init(struct swc_reaper *r)
{
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->cond, NULL);
}

void swc_reaper_destroy(struct swc_reaper *r)
{
	pthread_mutex_destroy(&r->lock);
	pthread_cond_destroy(&r->cond);
}

static bool is_done(const struct swingcoll_req *req)
{
	/* Pairs with the release in swc_req_complete(). */
	return __atomic_load_n(&req->done, __ATOMIC_ACQUIRE);
}

static void wake_waiters(struct swc_reaper *r)
{
	pthread_mutex_lock(&r->lock);
	if (r->waiters)
		pthread_cond_broadcast(&r->cond);
	pthread_mutex_unlock(&r->lock);
}

/*
 * Give up the role, under the lock. The waiters look again: one takes the role, or finds its own
 * request done.
 */
static void resign(struct swc_reaper *r)
{
	r->busy = false;
	if (r->waiters)
		pthread_cond_broadcast(&r->cond);
}

int swc_reaper_wait(struct swc_reaper *r, struct swingcoll_req *req,
		    const struct swc_wait_hook *hook)
{
	bool hooked = hook && hook->call;
	bool pushed = false;
	int ret = 0;

	pthread_mutex_lock(&r->lock);
	while (!is_done(req) && !r->error) {
		if (r->busy && !pushed) {
			/* The reaper may have gone to sleep before this operation was queued. */
			pushed = true;
			pthread_mutex_unlock(&r->lock);
			ret = swc_reaper_push(r);
			pthread_mutex_lock(&r->lock);
			if (ret)
				r->error = ret;
			continue;
		}
		if (r->busy) {
			r->waiters++;
			pthread_cond_wait(&r->cond, &r->lock);
			r->waiters--;
			continue;
		}
		r->busy = true;
		pthread_mutex_unlock(&r->lock);
		for (;;) {
			bool some = r->collect(r);

			if (is_done(req))
				break;
			/*
			 * This request may depend on what the threads of the completed ones do
			 * next.
			 */
			if (some)
				wake_waiters(r);
			if (hooked)
				hook->call(hook->arg);
			ret = r->sleep(r, hooked ? 1 : 0);
			if (ret && ret != -EINTR)
				break;
		}
		pthread_mutex_lock(&r->lock);
		if (ret && ret != -EINTR)
			r->error = ret;
		resign(r);
	}
	ret = is_done(req) ? 0 : r->error;
	pthread_mutex_unlock(&r->lock);
	return ret;
}

int swc_reaper_push(struct swc_reaper *r)
{
	return r->push ? r->push(r) : 0;
}

void swc_reaper_poll(struct swc_reaper *r)
{
	pthread_mutex_lock(&r->lock);
	if (!r->busy && !r->error) {
		r->busy = true;
		pthread_mutex_unlock(&r->lock);
		r->collect(r);
		pthread_mutex_lock(&r->lock);
		resign(r);
	}
	pthread_mutex_unlock(&r->lock);
}

void swc_req_complete(struct swingcoll_req *req, int error, int culprit, uint64_t time_ns)
{
	req->error = error;
	req->culprit = culprit;
	req->time_ns = time_ns;
	/* Pairs with the acquire in is_done(): the outcome is visible. */
	__atomic_store_n(&req->done, 1, __ATOMIC_RELEASE);
}
