// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which bootstrap: what the environment says, or what the launcher offers. PMIx comes with a library of
 * its own that is looked for when it is needed, so that this one depends on nothing.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/bootstrap.h"
#include "priv.h"

#define PMIX_LIBRARY "libswingcoll_pmix.so.0"

typedef int bootstrap_fn(struct swingcoll_bootstrap **boot);

static int from_env(struct swingcoll_bootstrap **boot, const struct swc_boot_env *env)
{
	int ret;

	if (!env->nranks)
		return swingcoll_bootstrap_fail(
			-EINVAL,
			"SWINGCOLL_ROOT needs SWINGCOLL_RANK and SWINGCOLL_NRANKS, or those "
			"of a launcher");
	if (!*env->host && env->nranks > 1)
		return swingcoll_bootstrap_fail(
			-EINVAL,
			"rank %d of %d by %s, but SWINGCOLL_ROOT=HOST:PORT is not set: an address of rank 0 and a free port there (a launcher with PMIx needs none: srun --mpi=pmix)",
			env->rank, env->nranks, env->from);
	swingcoll_bootstrap_fail(0, "%s", "");
	ret = swc_boot_tcp(boot, env);
	if (ret && !*swingcoll_bootstrap_error())
		swingcoll_bootstrap_fail(ret, "%s", strerror(-ret));
	return ret;
}

/* From next to this library, as it need not be where the loader looks; else from there. */
static void *open_library(void)
{
	char path[4096];
	Dl_info info;
	void *lib = NULL;
	char *slash;

	if (dladdr((void *)open_library, &info) && info.dli_fname) {
		snprintf(path, sizeof(path), "%s", info.dli_fname);
		slash = strrchr(path, '/');
		if (slash && (size_t)(slash - path) + sizeof(PMIX_LIBRARY) + 1 < sizeof(path)) {
			memcpy(slash + 1, PMIX_LIBRARY, sizeof(PMIX_LIBRARY));
			lib = dlopen(path, RTLD_NOW);
		}
	}
	return lib ? lib : dlopen(PMIX_LIBRARY, RTLD_NOW);
}

/* The library stays: PMIx does not like to go. */
static int from_pmix(struct swingcoll_bootstrap **boot)
{
	void *lib = open_library();
	bootstrap_fn *fn = lib ? (bootstrap_fn *)dlsym(lib, "swingcoll_bootstrap_pmix") : NULL;
	const char *why = fn ? NULL : dlerror();

	if (fn)
		return fn(boot);
	return swingcoll_bootstrap_fail(-ENOENT,
					"started by PMIx, but %s cannot be used (%.120s): set "
					"SWINGCOLL_ROOT=HOST:PORT to go without",
					PMIX_LIBRARY, why ? why : "?");
}

SWC_PUBLIC int swingcoll_bootstrap_env(struct swingcoll_bootstrap **boot)
{
	struct swc_boot_env env;
	int saved = errno, ret;

	*boot = NULL;
	ret = swc_boot_env_read(&env);
	if (!ret)
		ret = from_env(boot, &env);
	errno = saved;
	return ret;
}

SWC_PUBLIC int swingcoll_bootstrap_auto(struct swingcoll_bootstrap **boot)
{
	struct swc_boot_env env;
	int saved = errno, ret;

	*boot = NULL;
	ret = swc_boot_env_read(&env);
	if (!ret && !*env.host && getenv("PMIX_NAMESPACE")) {
		ret = from_pmix(boot);
	} else if (!ret) {
		/* No launcher: a job of one. */
		if (!env.nranks && !*env.host)
			env.nranks = 1;
		ret = from_env(boot, &env);
	}
	errno = saved;
	return ret;
}

SWC_PUBLIC void swingcoll_bootstrap_free(struct swingcoll_bootstrap *boot)
{
	int saved = errno;

	if (boot && boot->release)
		boot->release(boot);
	errno = saved;
}

static int create_by(bootstrap_fn *make, struct swingcoll_comm **comm,
		     const struct swingcoll_comm_opts *opts)
{
	uint32_t timeout_ms = opts && opts->timeout_ms ? opts->timeout_ms : SWC_DEFAULT_TIMEOUT_MS;
	struct swingcoll_bootstrap *boot;
	int ret;

	if (!comm)
		return swingcoll_bootstrap_fail(-EINVAL, "an argument is wrong");
	*comm = NULL;
	ret = make(&boot);
	if (ret)
		return ret;
	/* Joining may take so long on one rank, and the others wait for it in the last exchange. */
	swc_boot_tcp_patience(boot, timeout_ms + 5000);
	ret = swingcoll_comm_create_from(comm, boot, opts);
	swingcoll_bootstrap_free(boot);
	return ret;
}

SWC_PUBLIC int swingcoll_comm_create_env(struct swingcoll_comm **comm,
					 const struct swingcoll_comm_opts *opts)
{
	return create_by(swingcoll_bootstrap_env, comm, opts);
}

SWC_PUBLIC int swingcoll_comm_create_auto(struct swingcoll_comm **comm,
					  const struct swingcoll_comm_opts *opts)
{
	return create_by(swingcoll_bootstrap_auto, comm, opts);
}
