// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Names of variables that are misspelt. A variable that nobody reads is no error, since another
 * version of the library may read it, but the user should know.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/env_names.h"

#define PREFIX "SWINGCOLL_"
/* No name is as long. The rest of a longer one is not compared. */
#define MAX_NAME 40

const char *const swc_env_names[] = {
	"SWINGCOLL_ROOT", "SWINGCOLL_RANK", "SWINGCOLL_NRANKS", "SWINGCOLL_NODE",
	"SWINGCOLL_NNODES", "SWINGCOLL_JOB", "SWINGCOLL_BOOT_TIMEOUT", "SWINGCOLL_ADDRS",
	"SWINGCOLL_IFACES", "SWINGCOLL_TRANSPORT", "SWINGCOLL_TOPO", "SWINGCOLL_SECRET",
	"SWINGCOLL_SECRET_FILE", "SWINGCOLL_DEBUG", "SWINGCOLL_PMPI", "SWINGCOLL_PMPI_MIN",
	"SWINGCOLL_PMPI_STATS",
	/* Not read by the library, but by tools and scripts that run with it. */
	"SWINGCOLL_ID", "SWINGCOLL_CACHE", "SWINGCOLL_CHECK_TIER", "SWINGCOLL_KO", NULL
};

static size_t least(size_t a, size_t b, size_t c)
{
	size_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* Letters to insert, delete or replace to make one of the other (Levenshtein), row by row. */
static size_t distance(const char *a, size_t na, const char *b)
{
	size_t nb = strlen(b), row[MAX_NAME + 1];

	if (na > MAX_NAME)
		na = MAX_NAME;
	for (size_t k = 0; k <= nb; k++)
		row[k] = k;
	for (size_t i = 1; i <= na; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t k = 1; k <= nb; k++) {
			size_t above = row[k];

			row[k] = least(above + 1, row[k - 1] + 1,
				       diagonal + (a[i - 1] != b[k - 1]));
			diagonal = above;
		}
	}
	return row[nb];
}

/* The existing name that is nearest; the first of several. *away: its distance. */
static const char *nearest(const char *name, size_t length, size_t *away)
{
	const char *best = swc_env_names[0];

	*away = distance(name, length, best);
	for (size_t i = 1; swc_env_names[i]; i++) {
		size_t d = distance(name, length, swc_env_names[i]);

		if (d >= *away)
			continue;
		*away = d;
		best = swc_env_names[i];
	}
	return best;
}

int swc_env_unknown(char *const *environment, char *text, size_t bytes)
{
	int n = 0;

	for (; environment && *environment; environment++) {
		const char *name = *environment, *best;
		size_t length = strcspn(name, "="), away;

		/* An empty variable counts as not set. */
		if (strncmp(name, PREFIX, strlen(PREFIX)) || !name[length] || !name[length + 1])
			continue;
		best = nearest(name, length, &away);
		if (!away || n++)
			continue;
		snprintf(text, bytes,
			 "%.*s is not a variable of swingcoll and has no effect: the nearest one "
			 "is %s (man 7 swingcoll)",
			 (int)(length < 64 ? length : 64), name, best);
	}
	return n;
}

static void warn(void)
{
	char text[256];
	int n = swc_env_unknown(environ, text, sizeof(text));

	if (n == 1)
		fprintf(stderr, "swingcoll: %s\n", text);
	else if (n)
		fprintf(stderr, "swingcoll: %s; and %d more\n", text, n - 1);
}

void swc_env_warn(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, warn);
}
