// SPDX-License-Identifier: GPL-2.0-only
/*
 * Accounts: how many contexts, communicators and connections, and how much kernel memory each user has, and
 * the limits of that (module parameters user_*). Memory also counts in the memory cgroup that allocates it;
 * this limit holds where no cgroup has one.
 *
 * All processes of a user have one account, and the users of a user namespace that it made have the same one:
 * nobody gets more by subordinate user ids. Root has a limit, too: it protects the machine from a wrong plan,
 * and root can raise it. Charging takes no lock and may be done in any context.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>
#include <linux/xarray.h>

#include "mem/account.h"

/* By user id. Its lock orders the last put and the next get of an account. */
static DEFINE_XARRAY(accounts);

/* ------------------------------------------------------------------ life */

/**
 * swc_account_uid() - the user whose account the calling process has
 *
 * In a user namespace that is who made it, or the outermost around it; its own users if root made that.
 */
kuid_t swc_account_uid(void)
{
	const struct user_namespace *ns = current_user_ns();

	if (ns == &init_user_ns)
		return current_euid();
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	return uid_eq(ns->owner, GLOBAL_ROOT_UID) ? current_euid() : ns->owner;
}

/**
 * swc_account_get() - the account of a user, made if there is none
 *
 * May sleep. Return: the account, until swc_account_put(); NULL: out of memory.
 */
struct swc_account *swc_account_get(kuid_t uid)
{
	unsigned long index = __kuid_val(uid);
	struct swc_account *account, *fresh = NULL;

	xa_lock(&accounts);
	account = xa_load(&accounts, index);
	if (account)
		refcount_inc(&account->ref);
	xa_unlock(&accounts);
	if (account)
		return account;
	fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	if (!fresh)
		return NULL;
	refcount_set(&fresh->ref, 1);
	fresh->uid = uid;
	xa_lock(&accounts);
	account = __xa_cmpxchg(&accounts, index, NULL, fresh, GFP_KERNEL_ACCOUNT);
	if (account && !xa_is_err(account))
		refcount_inc(&account->ref);
	xa_unlock(&accounts);
	if (!account)
		return fresh;
	kfree(fresh);
	return xa_is_err(account) ? NULL : account;
}

/* One more reference. @account may be NULL. */
struct swc_account *swc_account_hold(struct swc_account *account)
{
	if (account)
		refcount_inc(&account->ref);
	return account;
}

/* May be NULL. Does not sleep. */
void swc_account_put(struct swc_account *account)
{
	bool last;
	int i;

	if (!account)
		return;
	xa_lock(&accounts);
	last = refcount_dec_and_test(&account->ref);
	if (last)
		__xa_erase(&accounts, __kuid_val(account->uid));
	xa_unlock(&accounts);
	if (!last)
		return;
	for (i = 0; i < SWC_QUOTA_NR; i++)
		WARN_ON_ONCE(atomic64_read(&account->used[i]));
	kfree(account);
}

/* ------------------------------------------------------------------ charging */

static u64 limit_of(enum swc_quota which)
{
	u64 limit = READ_ONCE(swc_user_limit[which]);

	if (which != SWC_QUOTA_MEMORY)
		return limit;
	return limit ? limit << 20 : (u64)totalram_pages() << PAGE_SHIFT >> 1;
}

static int refuse(struct swc_account *account, enum swc_quota which)
{
	atomic64_inc(&account->refused[which]);
	WRITE_ONCE(account->last, which);
	return -EDQUOT;
}

/**
 * swc_account_try_charge() - as swc_account_charge(), for a caller that can release something and try again
 *
 * Return: whether it is charged. What is not charged does not count as refused.
 */
bool swc_account_try_charge(struct swc_account *account, enum swc_quota which, u64 n)
{
	u64 limit = limit_of(which);
	s64 used, most;

	if (!account)
		return true;
	if (n > limit)
		return false;
	used = atomic64_add_return(n, &account->used[which]);
	if ((u64)used > limit) {
		atomic64_sub(n, &account->used[which]);
		return false;
	}
	most = atomic64_read(&account->most[which]);
	while (used > most && !atomic64_try_cmpxchg(&account->most[which], &most, used))
		;
	return true;
}

/**
 * swc_account_charge() - charge @n contexts, communicators, connections, or bytes of memory
 * @account: account, or NULL: nothing is counted
 *
 * Return: 0, to be undone by swc_account_uncharge(); -EDQUOT: that would exceed the limit.
 */
int swc_account_charge(struct swc_account *account, enum swc_quota which, u64 n)
{
	return swc_account_try_charge(account, which, n) ? 0 : refuse(account, which);
}

void swc_account_uncharge(struct swc_account *account, enum swc_quota which, u64 n)
{
	if (account)
		WARN_ON_ONCE(atomic64_sub_return(n, &account->used[which]) < 0);
}

/**
 * swc_account_check() - could a user that had nothing else be charged @n?
 *
 * For what is going to be needed later, in one piece. Return: 0 or -EDQUOT.
 */
int swc_account_check(struct swc_account *account, enum swc_quota which, u64 n)
{
	return account && n > limit_of(which) ? refuse(account, which) : 0;
}

static const struct {
	const char *what;
	const char *parameter;
	u32 unit;
} quotas[] = {
	[SWC_QUOTA_CONTEXTS] = { "open files", "user_contexts", 1 },
	[SWC_QUOTA_COMMS] = { "communicators", "user_comms", 1 },
	[SWC_QUOTA_CONNS] = { "connections", "user_conns", 1 },
	[SWC_QUOTA_MEMORY] = { "MiB of kernel memory", "user_memory_mib", 1 << 20 },
};

/* One line for people about the last charge that was refused: which limit, and how to raise it. */
void swc_account_explain(const struct swc_account *account, char *text, size_t bytes)
{
	int which = READ_ONCE(account->last);

	static_assert(ARRAY_SIZE(quotas) == SWC_QUOTA_NR);
	scnprintf(text, bytes,
		  "uid %u may have %llu %s: root can raise /sys/module/swingcoll/parameters/%s, swingctl status shows what is used",
		  from_kuid_munged(&init_user_ns, account->uid), div_u64(limit_of(which), quotas[which].unit),
		  quotas[which].what, quotas[which].parameter);
}

/* ------------------------------------------------------------------ introspection */

/* The next account that the caller may see; see struct swc_user_query. */
int swc_account_query(struct swc_user_query *q)
{
	unsigned long index = q->cursor, own = __kuid_val(swc_account_uid());
	bool all = ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN);
	struct swc_account *account;
	kuid_t uid = INVALID_UID;
	int i;

	if (q->resv)
		return -EINVAL;
	if (q->cursor > U32_MAX || (!all && q->cursor > own))
		return -ENOENT;
	*q = (struct swc_user_query){};
	xa_lock(&accounts);
	if (all) {
		XA_STATE(xas, &accounts, index);

		account = xas_find(&xas, U32_MAX);
	} else {
		account = xa_load(&accounts, own);
	}
	for (i = 0; i < SWC_QUOTA_NR && account; i++) {
		uid = account->uid;
		q->quota[i] = (struct swc_quota_use){
			.used = atomic64_read(&account->used[i]),
			.most = atomic64_read(&account->most[i]),
			.limit = limit_of(i),
			.refused = atomic64_read(&account->refused[i]),
		};
	}
	xa_unlock(&accounts);
	if (!account)
		return -ENOENT;
	q->cursor = __kuid_val(uid) + 1ull;
	q->uid = from_kuid_munged(current_user_ns(), uid);
	return 0;
}
