// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The choice of a bootstrap: what the environment says, or what the launcher offers. PMIx has a
 * library of its own, which is loaded when it is needed, so that this one does not depend on PMIx.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/bootstrap/bootstrap.h"
#include "src/env_names.h"
#include "src/priv.h"

#define PMIX_LIBRARY "libswingcoll_pmix.so.1"

/* Does the launcher offer PMIx? An empty variable counts as not set. */
static bool launcher_has_pmix(void)
{
	const char *space = getenv("PMIX_NAMESPACE");

	return space && *space;
}

typedef int bootstrap_fn(struct swingcoll_bootstrap **boot);
typedef void min_timeout_fn(struct swingcoll_bootstrap *boot, uint32_t timeout_ms);

static int from_env(struct swingcoll_bootstrap **boot, const struct swc_boot_env *env)
{
	int ret;

	if (!env->nranks)
		return swingcoll_bootstrap_fail(
			-EINVAL,
			"SWINGCOLL_ROOT is set, but no rank: set SWINGCOLL_RANK and SWINGCOLL_NRANKS, "
			"or use a launcher");
	if (!*env->host && env->nranks > 1)
		return swingcoll_bootstrap_fail(
			-EINVAL,
			"rank %d of %d by %s, but SWINGCOLL_ROOT=HOST:PORT is not set: set it to an address of rank 0 and a free port there, or use a launcher with PMIx (srun --mpi=pmix)",
			env->rank, env->nranks, env->from);
	swingcoll_bootstrap_fail(0, "%s", "");
	ret = swc_boot_tcp(boot, env);
	if (ret && !*swingcoll_bootstrap_error())
		swingcoll_bootstrap_fail(ret, "%s", strerror(-ret));
	return ret;
}

/*
 * Load it from the folder of this library, which the loader may not search; else from where the
 * loader searches.
 */
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

/* The library stays loaded: PMIx cannot be unloaded safely. */
static int from_pmix(struct swingcoll_bootstrap **boot)
{
	void *lib = open_library();
	bootstrap_fn *fn = lib ? (bootstrap_fn *)dlsym(lib, "swingcoll_bootstrap_pmix") : NULL;
	const char *why = fn ? NULL : dlerror();

	if (fn)
		return fn(boot);
	return swingcoll_bootstrap_fail(
		-ENOENT,
		"the launcher offers PMIx, but %s cannot be loaded (%.120s): install "
		"it, or set SWINGCOLL_ROOT=HOST:PORT",
		PMIX_LIBRARY, why ? why : "?");
}

/* Make the timeout of exchanges at least @timeout_ms, if it is by PMIx, whose library is loaded then. */
static void pmix_min_timeout(struct swingcoll_bootstrap *boot, uint32_t timeout_ms)
{
	void *lib = dlopen(PMIX_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
	min_timeout_fn *fn = lib ? (min_timeout_fn *)dlsym(lib,
							   "swingcoll_bootstrap_pmix_min_timeout")
				 : NULL;

	if (fn)
		fn(boot, timeout_ms);
	if (lib)
		dlclose(lib);
}

SWC_PUBLIC int swingcoll_bootstrap_env(struct swingcoll_bootstrap **boot)
{
	struct swc_boot_env env;
	int saved = errno, ret;

	*boot = NULL;
	ret = swc_boot_env_read(&env);
	if (!ret)
		ret = from_env(boot, &env);
	/* What is missing may be there under a wrong name. */
	if (ret)
		swc_env_warn();
	errno = saved;
	return ret;
}

SWC_PUBLIC int swingcoll_bootstrap_auto(struct swingcoll_bootstrap **boot)
{
	struct swc_boot_env env;
	int saved = errno, ret;

	*boot = NULL;
	ret = swc_boot_env_read(&env);
	if (!ret && !*env.host && launcher_has_pmix()) {
		ret = from_pmix(boot);
	} else if (!ret) {
		/* Without a launcher: a job of one rank. */
		if (!env.nranks && !*env.host)
			env.nranks = 1;
		ret = from_env(boot, &env);
	}
	if (ret)
		swc_env_warn();
	errno = saved;
	return ret;
}

SWC_PUBLIC int swingcoll_bootstrap_launcher(const char **from, int *rank, int *nranks)
{
	struct swc_boot_env env;
	int saved = errno, ret;

	ret = swc_boot_env_read(&env);
	errno = saved;
	if (ret)
		return ret;
	*from = env.nranks	      ? env.from
		: *env.host	      ? "SWINGCOLL_ROOT"
		: launcher_has_pmix() ? "PMIX_NAMESPACE"
				      : NULL;
	*rank = env.nranks ? env.rank : -1;
	*nranks = env.nranks;
	return *from != NULL;
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
	int saved = errno, ret;

	if (!comm)
		return swingcoll_bootstrap_fail(-EINVAL, "comm is NULL");
	*comm = NULL;
	ret = make(&boot);
	if (ret)
		return ret;
	/*
	 * Creation may take so long on one rank, and the others wait for it in the last exchange.
	 */
	swc_boot_tcp_min_timeout(boot, timeout_ms + 5000);
	pmix_min_timeout(boot, timeout_ms + 5000);
	errno = saved;
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
