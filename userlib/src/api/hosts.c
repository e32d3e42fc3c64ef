// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which host and process a rank is that an error text names: the kernel knows processes of its own node only, and of
 * no host its name.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/priv.h"

/* A text names few ranks, or goes on with "and others". */
#define MOST_NAMED 4

/* The next rank that is named from *s on, which moves behind it; -1: none. */
static long next_rank(const char *text, const char **s)
{
	static const char word[] = "rank ";
	const char *at;

	while ((at = strstr(*s, word))) {
		*s = at + strlen(word);
		if ((at == text || !isalnum((unsigned char)at[-1])) && isdigit((unsigned char)**s))
			return strtol(*s, (char **)s, 10);
	}
	return -1;
}

void swc_hosts_append(const struct swc_place *place, uint32_t nranks, char *text, size_t size)
{
	size_t length = strnlen(text, size);
	const char *s = text, *end = text + length, *separator = " [";
	char hosts[MOST_NAMED * (SWC_HOST_BYTES + 64)];
	long seen[MOST_NAMED], rank;
	size_t used = 0, n = 0, i;

	if (!place->host || length + 1 >= size)
		return;
	while (n < MOST_NAMED && (rank = next_rank(text, &s)) >= 0 && s <= end) {
		for (i = 0; i < n && seen[i] != rank; i++)
			;
		if (i < n || rank >= (long)nranks)
			continue;
		seen[n++] = rank;
		used += (size_t)snprintf(hosts + used, sizeof(hosts) - used,
					 "%srank %ld: %.*s (pid %d)", separator, rank,
					 SWC_HOST_BYTES - 1, place->host[place->rank_node[rank]],
					 place->pid[rank]);
		separator = ", ";
	}
	if (n)
		snprintf(text + length, size - length, "%s]", hosts);
}
