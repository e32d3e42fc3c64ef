/* SPDX-License-Identifier: GPL-2.0-only */
/* Topologies of tests. */
#ifndef SWC_TESTS_TOPOS_H
#define SWC_TESTS_TOPOS_H

#include <stdio.h>
#include <stdlib.h>

#include "plan/topo.h"

/* The topology of a text that must be valid. */
static inline struct swc_topo topo_of(const char *text)
{
	char why[200];
	struct swc_topo t;

	if (swc_topo_parse(&t, text, why, sizeof(why))) {
		printf("Bail out! %s: %s\n", text, why);
		exit(1);
	}
	return t;
}

#endif /* SWC_TESTS_TOPOS_H */
