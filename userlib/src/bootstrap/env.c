// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Rank, number of ranks and the address of rank 0 from the environment: the library's own
 * variables, and those that launchers set.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/number.h"
#include "src/bootstrap/bootstrap.h"
#include "src/priv.h"

#define DEFAULT_TIMEOUT_S 120

/*
 * In this order: the first pair that is set counts. SLURM's come last: they are also set in a batch
 * script, in which another launcher may number the processes. OMPI's and PMI's are set by mpirun.
 */
static const char *const pairs[][2] = {
	{ "SWINGCOLL_RANK", "SWINGCOLL_NRANKS" },
	{ "SWINGCOLL_NODE", "SWINGCOLL_NNODES" },
	{ "RANK", "WORLD_SIZE" },
	{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
	{ "PMI_RANK", "PMI_SIZE" },
	{ "SLURM_PROCID", "SLURM_NTASKS" },
};

static const char *get(const char *name)
{
	const char *s = getenv(name);

	return s && *s ? s : NULL;
}

/* Read a variable; *v is unchanged if it is not set. */
static int number(const char *name, long min, long max, long *v)
{
	const char *s = get(name);
	uint64_t n;

	if (!s)
		return 0;
	if (!swc_number_parse(s, (uint64_t)min, (uint64_t)max, &n))
		return swingcoll_bootstrap_fail(
			-EINVAL, "%s=%.40s: set it to a number from %ld to %ld", name, s, min, max);
	*v = (long)n;
	return 0;
}

static int read_rank(struct swc_boot_env *env)
{
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		const char *const *name = pairs[i];
		long rank = -1, n = 0;
		int ret;

		/*
		 * Half of the library's own pairs is a mistake; half of a launcher's only says that
		 * it is not that launcher.
		 */
		if (i < 2 && !get(name[0]) != !get(name[1]))
			return swingcoll_bootstrap_fail(
				-EINVAL, "%s is set, but %s is not: set both or none",
				name[!get(name[0])], name[!!get(name[0])]);
		if (!get(name[0]) || !get(name[1]))
			continue;
		ret = number(name[1], 1, SWC_MAX_RANKS, &n);
		if (!ret)
			ret = number(name[0], 0, n - 1, &rank);
		if (ret)
			return ret;
		env->rank = (int)rank;
		env->nranks = (int)n;
		env->from = name[0];
		return 0;
	}
	return 0;
}

/* Split HOST:PORT, in which an IPv6 address is in brackets. */
int swc_boot_env_root(struct swc_boot_env *env, const char *root)
{
	const char *colon = strrchr(root, ':'), *host = root;
	size_t len = colon ? (size_t)(colon - root) : 0;
	uint64_t port;

	if (len > 1 && *root == '[' && root[len - 1] == ']') {
		host++;
		len -= 2;
	} else if (memchr(root, ':', len)) {
		len = 0;
	}
	if (!len || len >= sizeof(env->host) || !swc_number_parse(colon + 1, 1, 65535, &port))
		return swingcoll_bootstrap_fail(
			-EINVAL,
			"SWINGCOLL_ROOT=%.80s: set it to HOST:PORT, such as 10.0.0.1:29400 or "
			"[fd00::1]:29400",
			root);
	memcpy(env->host, host, len);
	snprintf(env->port, sizeof(env->port), "%u", (unsigned int)port);
	snprintf(env->root, sizeof(env->root), "%.*s", (int)sizeof(env->root) - 1, root);
	return 0;
}

/* PyTorch listens at MASTER_PORT itself, so take the next port. */
static int read_root(struct swc_boot_env *env)
{
	const char *root = get("SWINGCOLL_ROOT"), *host = get("MASTER_ADDR");
	long port = 0;
	int ret;

	if (root)
		return swc_boot_env_root(env, root);
	if (!env->from || strcmp(env->from, "RANK") || !host || !get("MASTER_PORT"))
		return 0;
	ret = number("MASTER_PORT", 1, 65535, &port);
	if (ret)
		return ret;
	port += port < 65535 ? 1 : -1;
	snprintf(env->host, sizeof(env->host), "%s", host);
	snprintf(env->port, sizeof(env->port), "%ld", port);
	snprintf(env->root, sizeof(env->root), "%s:%ld", env->host, port);
	return 0;
}

SWC_PUBLIC int swingcoll_bootstrap_timeout(uint32_t *timeout_ms)
{
	long timeout_s = DEFAULT_TIMEOUT_S;
	int ret = number("SWINGCOLL_BOOT_TIMEOUT", 1, 86400, &timeout_s);

	*timeout_ms = (uint32_t)timeout_s * 1000;
	return ret;
}

int swc_boot_env_read(struct swc_boot_env *env)
{
	const char *job = get("SWINGCOLL_JOB");
	char why[SWC_BOOT_TEXT];
	int ret;

	memset(env, 0, sizeof(*env));
	env->job = swc_hash_text(SWC_HASH_START, job ? job : "");
	ret = read_rank(env);
	if (!ret)
		ret = read_root(env);
	if (!ret)
		ret = swingcoll_bootstrap_timeout(&env->timeout_ms);
	if (ret)
		return ret;
	ret = swc_secret_read(&env->secret, why, sizeof(why));
	return ret ? swingcoll_bootstrap_fail(ret, "%s", why) : 0;
}
