/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which ranks of a node share a last-level cache, by what the kernel tells about CPUs and members.
 */
#ifndef SWC_SHM_CACHES_H
#define SWC_SHM_CACHES_H

#include <stdint.h>

#include <linux/swingcoll.h>

/* With fewer ranks, groups do not pay. */
#define SWC_CACHES_MIN_RANKS 10

/*
 * Groups of consecutive ranks, of equal size, of which each is bound to CPUs with a last-level cache of their
 * own (in a NUMA node of their own, if caches are not told). 1 if ranks do not form such groups: not bound,
 * placed in another order, or all together. All ranks find the same. @sys: "/sys", other roots are for tests
 */
uint32_t swc_caches_groups(const char *sys, const struct swc_member_cpus *cpus, uint32_t nranks);

#endif /* SWC_SHM_CACHES_H */
