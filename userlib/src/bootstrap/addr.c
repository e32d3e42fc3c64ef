// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The addresses by which other nodes reach this one, in the order of its rails or ports: those that
 * the environment lists, or those of the network devices that have an RDMA device, or of all that
 * lead out of this host. And the transports that the environment allows.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <glob.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/bootstrap/bootstrap.h"

#define DEVICES "/sys/class/infiniband/*"
#define PORTS DEVICES "/ports/*"
#define NDEVS PORTS "/gid_attrs/ndevs/*"

/* ---- a list ---- */

static bool parse_one(struct swc_boot_addr *a, char *text)
{
	char *zone = strchr(text, '%');

	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, text, a->bytes) == 1) {
		a->family = AF_INET;
		return true;
	}
	if (zone) {
		*zone = 0;
		a->scope = if_nametoindex(zone + 1);
		*zone = '%';
		if (!a->scope)
			return false;
		*zone = 0;
	}
	a->family = AF_INET6;
	return inet_pton(AF_INET6, text, a->bytes) == 1;
}

int swc_addr_parse(struct swc_boot_addr *addr, const char *list, char *why, size_t why_bytes)
{
	const char *end;
	int n = 0;

	do {
		char one[80];

		end = strchrnul(list, ',');
		if (n == SWC_MAX_PATHS) {
			snprintf(why, why_bytes, "SWINGCOLL_ADDRS: list at most %d addresses",
				 SWC_MAX_PATHS);
			return -EINVAL;
		}
		snprintf(one, sizeof(one), "%.*s", (int)(end - list), list);
		if (!parse_one(&addr[n++], one)) {
			snprintf(
				why, why_bytes,
				"SWINGCOLL_ADDRS: \"%.*s\" is not an address such as 10.0.0.1, fd00::1 or "
				"fe80::1%%eth0",
				(int)(end - list), list);
			return -EINVAL;
		}
		list = end + 1;
	} while (*end);
	return n;
}

/* ---- interfaces ---- */

bool swc_addr_selected(const char *list, const char *name)
{
	bool not = *list == '^', whole = not, found = false;
	const char *end;

	list += not ;
	whole = *list == '=';
	list += whole;
	do {
		size_t len;

		end = strchrnul(list, ',');
		len = (size_t)(end - list);
		if (len && !strncmp(list, name, len) && (!whole || !name[len]))
			found = true;
		list = end + 1;
	} while (*end);
	return found != not ;
}

/* By kind, then by name with numbers in their order (eth2 before eth10). */
static int by_name(const void *a, const void *b)
{
	const struct swc_boot_iface *x = a, *y = b;
	int order = strverscmp(x->name, y->name);

	if (x->addr.family != y->addr.family)
		return x->addr.family == AF_INET ? -1 : 1;
	return order ? order : memcmp(x->addr.bytes, y->addr.bytes, sizeof(x->addr.bytes));
}

static bool has_ipv4(const struct swc_boot_iface *iface, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (iface[i].addr.family == AF_INET && !strcmp(iface[i].name, name))
			return true;
	return false;
}

int swc_addr_choose(struct swc_boot_addr *addr, struct swc_boot_iface *iface, size_t n,
		    const char *list, bool (*usable)(const char *name, void *arg), void *arg)
{
	bool named = list && *list != '^';
	int found = 0;

	qsort(iface, n, sizeof(*iface), by_name);
	for (size_t i = 0; i < n && found < SWC_MAX_PATHS; i++) {
		const char *name = iface[i].name;

		if (list && !swc_addr_selected(list, name))
			continue;
		if (!named && !usable(name, arg))
			continue;
		if (iface[i].addr.family == AF_INET6 && has_ipv4(iface, n, name))
			continue;
		/* Another address of it is not another link. */
		if (i && !strcmp(iface[i - 1].name, name))
			continue;
		addr[found++] = iface[i].addr;
	}
	return found;
}

/* ---- this node ---- */

/* Virtual interfaces have none. */
static uint16_t speed_of(const char *name)
{
	char path[64];
	FILE *f;
	int mbps = 0;

	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", name);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%d", &mbps) != 1 || mbps < 0)
		mbps = 0;
	fclose(f);
	return (uint16_t)(mbps / 100 < UINT16_MAX ? mbps / 100 : UINT16_MAX);
}

/* Take an address that other nodes can use: not of the loopback, and not link-local. */
static bool take(struct swc_boot_iface *to, const struct ifaddrs *from)
{
	memset(to, 0, sizeof(*to));
	if (!from->ifa_addr || from->ifa_flags & IFF_LOOPBACK || !(from->ifa_flags & IFF_UP))
		return false;
	snprintf(to->name, sizeof(to->name), "%s", from->ifa_name);
	to->addr.family = (uint8_t)from->ifa_addr->sa_family;
	to->addr.speed = speed_of(to->name);
	if (to->addr.family == AF_INET) {
		const struct sockaddr_in *in = (const void *)from->ifa_addr;

		memcpy(to->addr.bytes, &in->sin_addr, sizeof(in->sin_addr));
		return (ntohl(in->sin_addr.s_addr) & 0xffff0000) != 0xa9fe0000;
	}
	if (to->addr.family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const void *)from->ifa_addr;

		memcpy(to->addr.bytes, &in6->sin6_addr, sizeof(in6->sin6_addr));
		return !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr);
	}
	return false;
}

/* The first line of a sysfs file; empty if it cannot be read. */
static void read_line(char *line, int bytes, const char *path)
{
	FILE *f = fopen(path, "re");

	line[0] = 0;
	if (!f)
		return;
	if (!fgets(line, bytes, f))
		line[0] = 0;
	line[strcspn(line, "\n")] = 0;
	fclose(f);
}

/*
 * There is a file for each GID: it has the name of the network device, or cannot be read. That of
 * the interface; NULL: there is none.
 */
static const char *find_ndev(const glob_t *files, const char *name)
{
	for (size_t i = 0; i < files->gl_pathc; i++) {
		char line[64];

		read_line(line, sizeof(line), files->gl_pathv[i]);
		if (line[0] && !strcmp(line, name))
			return files->gl_pathv[i];
	}
	return NULL;
}

static bool has_rdma_device(const char *name, void *arg)
{
	return find_ndev(arg, name);
}

bool swc_addr_has_rdma(void)
{
	glob_t devices = { 0 };
	bool found = !glob(DEVICES, GLOB_NOSORT, NULL, &devices);

	globfree(&devices);
	return found;
}

enum swc_rdma_kind swc_rdma_kind_of(const char *node_type, const char *link_layer)
{
	if (strstr(node_type, "RNIC"))
		return SWC_RDMA_IWARP;
	if (!strstr(node_type, "CA"))
		return SWC_RDMA_ANY;
	return strcmp(link_layer, "Ethernet") ? SWC_RDMA_INFINIBAND : SWC_RDMA_ROCE;
}

/* The kind of the device that has the port to which this path belongs: DEVICES/ports/PORT... */
static enum swc_rdma_kind kind_by_path(const char *path)
{
	const char *ports = strstr(path, "/ports/"), *end;
	char name[256], node_type[64], link_layer[64];

	if (!ports)
		return SWC_RDMA_ANY;
	snprintf(name, sizeof(name), "%.*s/node_type", (int)(ports - path), path);
	read_line(node_type, sizeof(node_type), name);
	end = strchrnul(ports + strlen("/ports/"), '/');
	snprintf(name, sizeof(name), "%.*s/link_layer", (int)(end - path), path);
	read_line(link_layer, sizeof(link_layer), name);
	return swc_rdma_kind_of(node_type, link_layer);
}

/* The kind that all devices of this node have; ANY: there are several, or none. */
static enum swc_rdma_kind kind_of_all(void)
{
	enum swc_rdma_kind kind = SWC_RDMA_ANY;
	glob_t ports = { 0 };

	if (!glob(PORTS, GLOB_NOSORT, NULL, &ports))
		kind = kind_by_path(ports.gl_pathv[0]);
	for (size_t i = 1; i < ports.gl_pathc; i++)
		if (kind_by_path(ports.gl_pathv[i]) != kind)
			kind = SWC_RDMA_ANY;
	globfree(&ports);
	return kind;
}

/* The interface that has this address; NULL: none of this node has it. */
static const char *interface_of(const struct swc_boot_addr *a, const struct swc_boot_iface *iface,
				size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (iface[i].addr.family == a->family &&
		    !memcmp(iface[i].addr.bytes, a->bytes, sizeof(a->bytes)))
			return iface[i].name;
	return NULL;
}

/*
 * The kind that all devices have; if they differ, that of the device of each address. Kernels do not
 * tell the network devices of all RDMA devices: such an address stays without a kind.
 */
static void find_kinds(struct swc_boot_addr *addr, int naddrs, const struct swc_boot_iface *iface,
		       size_t n, glob_t *ndevs)
{
	enum swc_rdma_kind common = kind_of_all();

	for (int k = 0; k < naddrs; k++)
		addr[k].rdma = (uint8_t)common;
	if (common != SWC_RDMA_ANY)
		return;
	/* There may be thousands of these files. */
	if (!ndevs->gl_pathc)
		glob(NDEVS, GLOB_NOSORT, NULL, ndevs);
	for (int k = 0; k < naddrs; k++) {
		const char *name = interface_of(&addr[k], iface, n);
		const char *at = name ? find_ndev(ndevs, name) : NULL;

		if (at)
			addr[k].rdma = (uint8_t)kind_by_path(at);
	}
}

bool swc_addr_is_outward(const char *name)
{
	return !swc_addr_selected("docker,br-,veth,virbr,vnet,tap,cni,cali,flannel,podman,lxc",
				  name);
}

static bool is_outward(const char *name, void *arg)
{
	(void)arg;
	return swc_addr_is_outward(name);
}

static void say_none(const char *ifaces, bool rdma, char *why, size_t why_bytes)
{
	if (ifaces)
		snprintf(why, why_bytes,
			 "SWINGCOLL_IFACES=%.64s selects no interface with an address: see ip addr",
			 ifaces);
	else
		snprintf(why, why_bytes,
			 "no network device%s has an address: see %s, or set "
			 "SWINGCOLL_IFACES or SWINGCOLL_ADDRS",
			 rdma ? " with an RDMA device" : "", rdma ? "rdma link" : "ip addr");
}

int swc_addr_find(struct swc_boot_addr *addr, bool rdma, char *why, size_t why_bytes)
{
	const char *addrs = getenv("SWINGCOLL_ADDRS"), *ifaces = getenv("SWINGCOLL_IFACES");
	struct swc_boot_iface *iface;
	struct ifaddrs *all;
	glob_t files = { 0 };
	size_t n = 0;
	int ret;

	if (ifaces && !*ifaces)
		ifaces = NULL;
	if (getifaddrs(&all)) {
		ret = -errno;
		snprintf(why, why_bytes, "cannot list the addresses of this node: %s",
			 strerror(-ret));
		return ret;
	}
	for (const struct ifaddrs *i = all; i; i = i->ifa_next)
		n++;
	iface = calloc(n + 1, sizeof(*iface));
	n = 0;
	for (const struct ifaddrs *i = all; iface && i; i = i->ifa_next)
		n += take(&iface[n], i);
	freeifaddrs(all);
	if (!iface)
		return -ENOMEM;
	if (addrs && *addrs) {
		ret = swc_addr_parse(addr, addrs, why, why_bytes);
	} else {
		if (rdma)
			glob(NDEVS, GLOB_NOSORT, NULL, &files);
		ret = swc_addr_choose(addr, iface, n, ifaces, rdma ? has_rdma_device : is_outward,
				      &files);
	}
	if (rdma)
		find_kinds(addr, ret, iface, n, &files);
	globfree(&files);
	free(iface);
	if (!ret)
		say_none(ifaces, rdma, why, why_bytes);
	return ret;
}

/* ---- transports ---- */

int swc_transports_allowed(char *why, size_t why_bytes)
{
	const char *text = getenv("SWINGCOLL_TRANSPORT");

	if (!text || !*text)
		return 1 << SWC_TRANSPORT_RDMA | 1 << SWC_TRANSPORT_TCP;
	if (!strcmp(text, "rdma"))
		return 1 << SWC_TRANSPORT_RDMA;
	if (!strcmp(text, "tcp"))
		return 1 << SWC_TRANSPORT_TCP;
	if (!strcmp(text, "tls"))
		return 1 << SWC_TRANSPORT_TLS;
	snprintf(why, why_bytes, "SWINGCOLL_TRANSPORT=%.32s: give rdma, tcp or tls, or unset it",
		 text);
	return -EINVAL;
}
