// SPDX-License-Identifier: GPL-2.0-only
/* swingplan's messages and its progress bar. */
#include "swingplan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "swingcoll.h"

#define BAR 30

const char *plan_prog = "swingplan";

static bool bar_shown;
static double bar_last; /* when it was drawn; 0: not since the last end */

void plan_progress(void *progress, double done)
{
	const struct progress *p = progress;
	int filled;

	/* At most ten times a second. */
	if (!isatty(STDERR_FILENO) || clock_now() - bar_last < 0.1)
		return;
	bar_last = clock_now();
	done = p->base + p->span * done;
	filled = (int)(done * BAR);
	fprintf(stderr, "\r[%.*s%*s] %3.0f%% %-24.24s", filled, "##############################",
		BAR - filled, "", done * 100, p->label);
	bar_shown = true;
}

void plan_progress_end(void)
{
	if (bar_shown)
		fprintf(stderr, "\r%*s\r", BAR + 34, "");
	bar_shown = false;
	bar_last = 0;
}

void plan_bad(const char *fmt, ...)
{
	char text[1024];
	va_list args;

	plan_progress_end();
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	/* What it quotes may hold anything: it stays one line. */
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = '?';
	fprintf(stderr, "%s: %s\n", plan_prog, text);
	exit(2);
}

void plan_no_memory(void)
{
	plan_bad("out of memory");
}

const char *plan_coll_name(enum swc_coll coll)
{
	return swingcoll_coll_name((enum swingcoll_coll)coll);
}
