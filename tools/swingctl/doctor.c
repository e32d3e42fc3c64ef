// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingctl doctor: checks everything that can keep this user from using swingcoll on this machine, and says
 * what to do about each fault. What concerns MPI is in doctor_mpi.c.
 */
#include "swingctl.h"
#include "doctor_mpi.h"
#include "report.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <liburing.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/device.h"
#include "common/json.h"
#include "common/number.h"
#include "swingcoll.h"

/* Value of "Name:" in /proc/self/status. */
static bool self_status(const char *name, char *value, size_t size)
{
	FILE *f = fopen("/proc/self/status", "re");
	size_t len = strlen(name);
	char line[256];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		if (strncmp(line, name, len) || line[len] != ':')
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(value, size, "%s", line + len + 1 + strspn(line + len + 1, " \t"));
		found = true;
	}
	if (f)
		fclose(f);
	return found;
}

static bool has_cap_ipc_lock(void)
{
	char text[64];

	return self_status("CapEff", text, sizeof(text)) && strtoull(text, NULL, 16) >> 14 & 1;
}

/* ------------------------------------------------------------------ module */

static void check_module(struct report *r)
{
	char version[64] = "", taint[64] = "", enforce[16] = "";
	struct utsname u;

	uname(&u);
	if (access(DEVICE_MODULE_DIR, F_OK)) {
		if (!access(SWC_DEVICE_PATH, F_OK)) {
			result(r, WARN, "module", NULL,
			       "not in /sys/module, but the device exists (a container without /sys?)");
			return;
		}
		device_read_line("/sys/module/module/parameters/sig_enforce", enforce,
				 sizeof(enforce));
		result(r, FAIL, "module",
		       *enforce == 'Y'
			       ? "modprobe swingcoll; this kernel accepts signed modules only: if it refuses the module, "
				 "sign that with a key of the machine (mokutil --import)"
			       : "modprobe swingcoll (as root; if the module is not found, install it for this "
				 "kernel: dkms status)",
		       "not loaded (kernel %s)", u.release);
		return;
	}
	device_read_line(DEVICE_MODULE_DIR "/version", version, sizeof(version));
	device_read_line(DEVICE_MODULE_DIR "/taint", taint, sizeof(taint));
	result(r, OK, "module", NULL, "loaded, version %s, kernel %s, taint \"%s\"%s",
	       *version ? version : "not given", u.release, taint,
	       strchr(taint, 'E') ? " (not signed, accepted by this kernel)" : "");
	if (*version && strcmp(version, swingcoll_version()))
		result(r, WARN, "module",
		       "install module and tools of one release; then, as root and with no program using it: "
		       "rmmod swingcoll; modprobe swingcoll",
		       "is of version %s, these tools are of %s", version, swingcoll_version());
}

/* ------------------------------------------------------------------ library */

/* The library that programs load, which need not be of the version that is linked into this one. */
static void check_library(struct report *r)
{
	static const char name[] = "libswingcoll.so.1";
	const char *(*version)(void) = NULL;
	char path[PATH_MAX] = "";
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	ssize_t n;

	/* In a build tree it is beside the folder of this program. */
	n = library ? -1 : readlink("/proc/self/exe", path, sizeof(path) - 64);
	for (int up = 0; n > 0 && up < 2; up++) {
		path[n] = 0;
		n = strrchr(path, '/') ? strrchr(path, '/') - path : 0;
	}
	if (n > 0) {
		snprintf(path + n, sizeof(path) - (size_t)n, "/lib/%s", name);
		library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	if (!library) {
		result(r, WARN, "library",
		       "install it and run ldconfig (as root), or put its folder into LD_LIBRARY_PATH",
		       "%s is not found: programs linked with it do not start", name);
		return;
	}
	*(void **)&version = dlsym(library, "swingcoll_version");
	if (version && !strcmp(version(), swingcoll_version()))
		result(r, OK, "library", NULL, "%s, version %s", name, version());
	else
		result(r, WARN, "library",
		       "remove the older one: ldconfig -p | grep libswingcoll; echo $LD_LIBRARY_PATH",
		       "%s that programs load is of version %s, these tools are of %s", name,
		       version ? version() : "none", swingcoll_version());
	dlclose(library);
}

/* ------------------------------------------------------------------ device */

static void device_rights(struct report *r)
{
	static char next[256];
	struct passwd *pw;
	struct group *gr;
	struct stat st;

	if (stat(SWC_DEVICE_PATH, &st)) {
		result(r, FAIL, "device", "pass the device into the container", "%s: %s",
		       SWC_DEVICE_PATH, strerror(errno));
		return;
	}
	gr = getgrgid(st.st_gid);
	pw = getpwuid(geteuid());
	if (gr && st.st_gid && st.st_mode & S_IWGRP)
		snprintf(next, sizeof(next), "usermod -aG %s %s (as root), then log in again",
			 gr->gr_name, pw ? pw->pw_name : "USER");
	else
		snprintf(
			next, sizeof(next),
			"as root: chgrp rdma %s; chmod 660 %s; and a udev rule to make it permanent",
			SWC_DEVICE_PATH, SWC_DEVICE_PATH);
	result(r, FAIL, "device", next, "%s: no permission to open it (mode %o, group %s)",
	       SWC_DEVICE_PATH, (unsigned int)(st.st_mode & 0777), gr ? gr->gr_name : "unknown");
}

static void check_reduce(struct report *r, const struct swc_info *info)
{
	bool scalar = !strncmp(info->reduce, "scalar", 6), vectors = true;

#if defined(__x86_64__)
	vectors = __builtin_cpu_supports("avx2");
#endif
	if (scalar && vectors)
		result(r, WARN, "reduction", "rebuild the module: this one has no vector kernels",
		       "scalar kernels on a CPU with vector units");
	else
		result(r, OK, "reduction", NULL, "%.*s kernels", SWC_NAME_BYTES, info->reduce);
}

static void check_device(struct report *r)
{
	struct swc_info info = { 0 };
	int fd = device_open(), ret;

	if (fd == -ENOENT || fd == -ENXIO || fd == -ENODEV) {
		result(r, FAIL, "device", "load the module; if it is loaded: udevadm trigger",
		       "%s: %s", SWC_DEVICE_PATH, strerror(-fd));
		return;
	}
	if (fd == -EACCES || fd == -EPERM) {
		device_rights(r);
		return;
	}
	if (fd < 0) {
		result(r, FAIL, "device", "see the kernel log: dmesg | grep swingcoll", "%s: %s",
		       SWC_DEVICE_PATH, strerror(-fd));
		return;
	}
	ret = device_ioctl(fd, SWC_IOC_INFO, &info);
	close(fd);
	if (ret) {
		result(r, FAIL, "device",
		       "find the driver that provides this device: ls -l /sys/class/misc/swingcoll",
		       "%s opens, but does not answer SWC_IOC_INFO: %s", SWC_DEVICE_PATH,
		       strerror(-ret));
		return;
	}
	result(r, OK, "device", NULL, "%s opens", SWC_DEVICE_PATH);
	if (info.abi_version != SWC_ABI_VERSION)
		result(r, FAIL, "interface", "install module and library of the same release",
		       "the module has version %u, this program version %u", info.abi_version,
		       SWC_ABI_VERSION);
	else
		result(r, OK, "interface", NULL, "version %u, up to %u ranks on this node",
		       info.abi_version, info.max_local_ranks);
	check_reduce(r, &info);
}

/* ------------------------------------------------------------------ io_uring */

static void uring_refused(struct report *r, int err)
{
	static const char fallback[] = "; swingcoll uses ioctl instead, which is a little slower";
	char text[64] = "", sysctl[16] = "";

	if (device_read_line("/proc/sys/kernel/io_uring_disabled", sysctl, sizeof(sysctl)) &&
	    *sysctl == '2') {
		result(r, WARN, "io_uring", "sysctl kernel.io_uring_disabled=0 (as root)",
		       "disabled by kernel.io_uring_disabled=2%s", fallback);
		return;
	}
	if (*sysctl == '1' && err == -EPERM) {
		result(r, WARN, "io_uring",
		       "add this user to the group of kernel.io_uring_group, or sysctl kernel.io_uring_disabled=0",
		       "for privileged users only: kernel.io_uring_disabled=1%s", fallback);
		return;
	}
	if (self_status("Seccomp", text, sizeof(text)) && *text == '2') {
		result(r, WARN, "io_uring",
		       "run the container with a seccomp profile that allows io_uring_setup, "
		       "io_uring_enter and io_uring_register",
		       "%s, and a seccomp filter is active%s", strerror(-err), fallback);
		return;
	}
	if (err == -ENOMEM) {
		result(r, WARN, "io_uring", "raise the locked-memory limit (ulimit -l)", "%s%s",
		       strerror(-err), fallback);
		return;
	}
	result(r, WARN, "io_uring",
	       err == -EINVAL ? "128-byte entries need Linux 5.19 or later"
			      : "check CONFIG_IO_URING of this kernel and its security modules",
	       "%s%s", strerror(-err), fallback);
}

static void check_io_uring(struct report *r)
{
	struct io_uring ring;
	int ret = io_uring_queue_init(4, &ring, IORING_SETUP_SQE128 | IORING_SETUP_CQE32);

	if (ret) {
		uring_refused(r, ret);
		return;
	}
	io_uring_queue_exit(&ring);
	result(r, OK, "io_uring", NULL,
	       "allowed, with 128-byte submissions and 32-byte completions");
}

/* ------------------------------------------------------------------ memory */

static void check_memlock(struct report *r, unsigned long long need)
{
	char next[256], now[NUMBER_TEXT], want[NUMBER_TEXT];
	struct rlimit rl;

	if (getrlimit(RLIMIT_MEMLOCK, &rl))
		return;
	if (rl.rlim_cur == RLIM_INFINITY || has_cap_ipc_lock()) {
		result(r, OK, "memlock", NULL, "no limit on locked memory%s",
		       rl.rlim_cur == RLIM_INFINITY ? "" : " (CAP_IPC_LOCK)");
		return;
	}
	number_bytes((double)rl.rlim_cur, now);
	number_bytes((double)need, want);
	if (rl.rlim_cur >= need) {
		result(r, OK, "memlock", NULL, "%s may be locked; %s needed (--need)", now, want);
		return;
	}
	snprintf(
		next, sizeof(next),
		"%s`ulimit -l %llu`%s; permanently: memlock in /etc/security/limits.d, LimitMEMLOCK= for "
		"services",
		rl.rlim_max >= need ? "" : "as root ", need >> 10,
		rl.rlim_max >= need ? "" : " (the hard limit is too low, too)");
	result(r, WARN, "memlock", next,
	       "RLIMIT_MEMLOCK is %s, %s needed (--need: the buffers of all operations of a user together)",
	       now, want);
}

static void check_huge_pages(struct report *r)
{
	char text[128];

	if (!device_read_line("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof(text)))
		result(r, OK, "huge pages", NULL, "this kernel has no transparent huge pages");
	else if (strstr(text, "[never]"))
		result(r, WARN, "huge pages",
		       "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root)",
		       "transparent huge pages are off: pinning large buffers takes longer");
	else
		result(r, OK, "huge pages", NULL, "transparent huge pages: %s", text);
}

/* ------------------------------------------------------------------ engines and links */

/* Count the entries of a directory; names: as many of them as fit. */
static int count_entries(const char *dir, char *names, size_t size)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	*names = 0;
	while (d && (e = readdir(d))) {
		size_t len = strlen(names);

		if (*e->d_name == '.')
			continue;
		n++;
		if (len + strlen(e->d_name) + 8 < size)
			snprintf(names + len, size - len, "%s%s", len ? " " : "", e->d_name);
		else if (len + 5 < size && names[len - 1] != '.')
			snprintf(names + len, size - len, " ...");
	}
	if (d)
		closedir(d);
	return n;
}

static void check_dma(struct report *r)
{
	char names[128];
	int n = count_entries("/sys/class/dma", names, sizeof(names));

	if (n)
		result(r, OK, "dma", NULL, "%d DMA channels: %s", n, names);
	else
		result(r, OK, "dma", NULL, "no DMA engine: CPUs copy");
}

static bool rdma_has(const char *device, const char *file, const char *text)
{
	char path[256], line[64];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/%s", device, file);
	return device_read_line(path, line, sizeof(line)) && strstr(line, text);
}

static void check_rdma(struct report *r)
{
	int n, up = 0, iwarp = 0, other = 0;
	char names[128];
	char *name, *save = NULL, copy[128];

	n = count_entries("/sys/class/infiniband", names, sizeof(names));
	if (!n) {
		result(r, OK, "rdma", NULL, "no RDMA device: other nodes are reached by TCP");
		return;
	}
	snprintf(copy, sizeof(copy), "%s", names);
	for (name = strtok_r(copy, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
		if (!rdma_has(name, "ports/1/state", "ACTIVE"))
			continue;
		up++;
		if (rdma_has(name, "node_type", "RNIC"))
			iwarp++;
		else
			other++;
	}
	if (iwarp && other)
		result(r, WARN, "rdma",
		       "select those of one kind, the same on all nodes, by SWINGCOLL_IFACES",
		       "%d RDMA devices, %d of them iWARP, which connect only with their kind: %s",
		       n, iwarp, names);
	else if (up)
		result(r, OK, "rdma", NULL, "%d RDMA devices, %d with port 1 active: %s", n, up,
		       names);
	else
		result(r, WARN, "rdma",
		       "check the cable and the interface: ip link; rdma link show",
		       "%d RDMA devices, none with an active port: %s", n, names);
}

/* Encryption between nodes, if it is asked for. */
static void check_tls(struct report *r)
{
	const char *transport = getenv("SWINGCOLL_TRANSPORT");
	char line[128];

	if (!transport || strcmp(transport, "tls"))
		return;
	if (!device_read_line("/proc/sys/net/ipv4/tcp_available_ulp", line, sizeof(line)) ||
	    !strstr(line, "tls"))
		result(r, FAIL, "tls", "load it: modprobe tls",
		       "SWINGCOLL_TRANSPORT=tls, but the kernel's module tls is not loaded");
	else if (!cli_is_set("SWINGCOLL_SECRET_FILE") && !cli_is_set("SWINGCOLL_SECRET"))
		result(r, FAIL, "tls",
		       "give all hosts a secret: SWINGCOLL_SECRET_FILE, see swingcoll(7)",
		       "SWINGCOLL_TRANSPORT=tls needs a secret, and there is none");
	else
		result(r, OK, "tls", NULL, "data between nodes is encrypted");
}

int ctl_doctor(const struct ctl *ctl)
{
	struct report r = { .json = ctl->json };
	cJSON *o;

	if (r.json)
		r.checks = cJSON_CreateArray();
	check_module(&r);
	check_library(&r);
	check_device(&r);
	check_io_uring(&r);
	check_memlock(&r, ctl->need_memlock);
	check_huge_pages(&r);
	check_dma(&r);
	check_rdma(&r);
	check_tls(&r);
	doctor_check_mpi(&r, ctl->program);
	if (!r.json)
		return r.worst == FAIL;
	o = cJSON_CreateObject();
	cJSON_AddBoolToObject(o, "ok", r.worst != FAIL);
	cJSON_AddItemToObject(o, "checks", r.checks);
	json_document(stdout, o);
	return r.worst == FAIL;
}
