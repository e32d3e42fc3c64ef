/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_ACCOUNT_H
#define SWC_ACCOUNT_H

#include <linux/atomic.h>
#include <linux/refcount.h>
#include <linux/uidgid.h>

#include "swingcoll.h"

/**
 * struct swc_account - what one user has of the module's resources
 *
 * References: each context, communicator, connection, plan and piece of shared memory that is charged to it.
 * Freed with the last one, when nothing is charged any more.
 *
 * @ref: references; the last put takes the lock of the table of accounts
 * @uid: the user
 * @used: by enum swc_quota: charged now
 * @most: the most that was charged at a time
 * @refused: charges that were refused
 * @last: enum swc_quota that refused the last one, for swc_account_explain()
 * @copied: bytes that copies of segments take, which have a limit of their own (net/seg_copy.c)
 */
struct swc_account {
	refcount_t ref;
	kuid_t uid;
	atomic64_t used[SWC_QUOTA_NR];
	atomic64_t most[SWC_QUOTA_NR];
	atomic64_t refused[SWC_QUOTA_NR];
	int last;
	atomic_long_t copied;
};

kuid_t swc_account_uid(void);
struct swc_account *swc_account_get(kuid_t uid);
struct swc_account *swc_account_hold(struct swc_account *account);
void swc_account_put(struct swc_account *account);
bool swc_account_try_charge(struct swc_account *account, enum swc_quota which, u64 n);
int swc_account_charge(struct swc_account *account, enum swc_quota which, u64 n);
void swc_account_uncharge(struct swc_account *account, enum swc_quota which, u64 n);
int swc_account_check(struct swc_account *account, enum swc_quota which, u64 n);
void swc_account_explain(const struct swc_account *account, char *text, size_t bytes);
int swc_account_query(struct swc_user_query *q);

#endif /* SWC_ACCOUNT_H */
