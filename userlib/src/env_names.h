/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The variables of the environment whose names begin with SWINGCOLL_. */
#ifndef SWC_ENV_NAMES_H
#define SWC_ENV_NAMES_H

#include <stddef.h>

/* All that there are, as swingcoll(7) lists them; NULL after the last. */
extern const char *const swc_env_names[];

/*
 * Look through an environment for variables that begin with SWINGCOLL_ and do not exist. Returns
 * how many there are, with a line about the first of them, which names the nearest one that exists,
 * in @text.
 */
int swc_env_unknown(char *const *environment, char *text, size_t bytes);

/* Warn on standard error of such variables of this process. Only the first call does. */
void swc_env_warn(void);

#endif /* SWC_ENV_NAMES_H */
