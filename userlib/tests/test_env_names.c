// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Variables that are misspelt are found, with what was meant, and the list of those that exist is
 * the one in swingcoll.7. Runs in the folder of the library. TAP on stdout.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/env_names.h"
#include "tap.h"

#define MANUAL "man/swingcoll.7"
#define MOST 64

static bool is_known(const char *name)
{
	for (size_t i = 0; swc_env_names[i]; i++)
		if (!strcmp(swc_env_names[i], name))
			return true;
	return false;
}

/* The variables in the first column of the manual's table; their number. */
static int read_manual(char names[MOST][64])
{
	FILE *f = fopen(MANUAL, "r");
	bool table = false;
	char *line = NULL;
	size_t size = 0;
	int n = 0;

	while (f && getline(&line, &size, f) > 0) {
		if (!strcmp(line, ".TS\n"))
			table = true;
		else if (!strcmp(line, ".TE\n"))
			table = false;
		else if (table && n < MOST && sscanf(line, "SWINGCOLL_%53[A-Z_]|", names[n]) == 1)
			n++;
	}
	free(line);
	if (f)
		fclose(f);
	return n;
}

static void test_manual(void)
{
	static char names[MOST][64];
	int n = read_manual(names), known = 0;
	bool good = n > 0;

	for (int i = 0; i < n; i++) {
		char whole[80];

		snprintf(whole, sizeof(whole), "SWINGCOLL_%s", names[i]);
		if (!is_known(whole))
			printf("# only in %s: %s\n", MANUAL, whole);
		good &= is_known(whole);
	}
	for (size_t i = 0; swc_env_names[i]; i++, known++) {
		bool found = false;

		for (int k = 0; k < n; k++)
			found |= !strcmp(names[k], swc_env_names[i] + strlen("SWINGCOLL_"));
		if (!found)
			printf("# not in %s: %s\n", MANUAL, swc_env_names[i]);
		good &= found;
	}
	ok(good && known == n, "the list of variables is that of swingcoll(7)");
}

/* A line of an environment gets a warning that names this variable; none if @meant is NULL. */
static bool warned(const char *line, const char *meant)
{
	char *environment[] = { "HOME=/", (char *)line, "SWINGCOLL_TOPO=ring:4", NULL };
	char text[256] = "", tail[80];
	int n = swc_env_unknown(environment, text, sizeof(text));
	bool good;

	snprintf(tail, sizeof(tail), "nearest one is %s (", meant ? meant : "");
	good = meant ? n == 1 && strstr(text, tail) && !strncmp(text, line, strcspn(line, "="))
		     : !n && !*text;
	if (!good)
		printf("# %s: %d \"%s\"\n", line, n, text);
	return good;
}

int main(void)
{
	char *two[] = { "SWINGCOLL_ROTO=a", "SWINGCOLL_TOPOLOGY=b", NULL }, text[256];
	bool good = true;

	printf("TAP version 13\n");
	test_manual();
	for (size_t i = 0; swc_env_names[i]; i++) {
		char line[80];

		snprintf(line, sizeof(line), "%s=1", swc_env_names[i]);
		good &= warned(line, NULL);
	}
	ok(good, "no variable that exists is warned of");
	ok(warned("SWINGCOLL_ROTO=node0:29400", "SWINGCOLL_ROOT") &&
		   warned("SWINGCOLL_ADDR=10.0.0.1", "SWINGCOLL_ADDRS") &&
		   warned("SWINGCOLL_TOPOLOGY=ring:4", "SWINGCOLL_TOPO") &&
		   warned("SWINGCOLL_BOOT_TIMEOUT_S=4", "SWINGCOLL_BOOT_TIMEOUT") &&
		   warned("SWINGCOLL_IFACE=eth0", "SWINGCOLL_IFACES"),
	   "misspelt ones are, with what was meant");
	ok(warned("SWINGCOLL=1", NULL) && warned("SWINGCOLLECTION=1", NULL) &&
		   warned("XSWINGCOLL_ROTO=1", NULL) && warned("SWINGCOLL_ROTO=", NULL) &&
		   warned("SWINGCOLL_ROTO", NULL),
	   "other variables, empty ones and lines without a value are not");
	ok(swc_env_unknown(two, text, sizeof(text)) == 2 && strstr(text, "SWINGCOLL_ROTO "),
	   "two are counted, and the first is named");
	return done();
}
