// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The secret of a job: reading it, and what is computed from it. Its keyed hash is BLAKE2s.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/blake2s.h"
#include "src/bootstrap/secret.h"

#define HOW_TO "(umask 077; head -c 32 /dev/urandom | base64 > FILE)"

/* ---- reading ---- */

/* May only its owner, who is this user, read the file? */
static int check_file(int fd, const char *path, char *why, size_t why_bytes)
{
	struct stat st;

	if (fstat(fd, &st)) {
		snprintf(why, why_bytes, "SWINGCOLL_SECRET_FILE=%.120s: %s", path, strerror(errno));
		return -errno;
	}
	if (!S_ISREG(st.st_mode)) {
		snprintf(why, why_bytes, "SWINGCOLL_SECRET_FILE=%.120s is not a regular file",
			 path);
		return -EINVAL;
	}
	if (st.st_uid != geteuid()) {
		snprintf(
			why, why_bytes,
			"SWINGCOLL_SECRET_FILE=%.120s belongs to user %u, not to %u, who runs this: "
			"give each user a file of their own",
			path, st.st_uid, geteuid());
		return -EACCES;
	}
	if (st.st_mode & 077) {
		snprintf(
			why, why_bytes,
			"SWINGCOLL_SECRET_FILE=%.120s has mode %04o, so that others may use it: chmod 600 it",
			path, st.st_mode & 07777);
		return -EACCES;
	}
	return 0;
}

/* Its bytes without the line's end, up to @bytes; their number, or a negative errno. */
static int read_file(const char *path, char *text, size_t bytes, char *why, size_t why_bytes)
{
	/* Not to wait for the writer of a pipe. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), ret;
	size_t have = 0;
	ssize_t got;

	if (fd < 0) {
		ret = -errno;
		snprintf(why, why_bytes, "SWINGCOLL_SECRET_FILE=%.120s: %s", path, strerror(-ret));
		return ret;
	}
	ret = check_file(fd, path, why, why_bytes);
	while (!ret && have < bytes) {
		got = read(fd, text + have, bytes - have);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			ret = -errno;
			snprintf(why, why_bytes, "SWINGCOLL_SECRET_FILE=%.120s: %s", path,
				 strerror(-ret));
		}
		if (got <= 0)
			break;
		have += (size_t)got;
	}
	close(fd);
	if (ret)
		return ret;
	while (have && (text[have - 1] == '\n' || text[have - 1] == '\r'))
		have--;
	return (int)have;
}

static void make_key(struct swc_secret *s, const char *text, size_t bytes)
{
	struct swc_blake2s hash;

	swc_blake2s_init(&hash, sizeof(s->key), NULL, 0);
	swc_blake2s_update(&hash, "swingcoll secret", 16);
	swc_blake2s_update(&hash, text, bytes);
	swc_blake2s_final(&hash, s->key);
	s->given = true;
}

int swc_secret_read(struct swc_secret *s, char *why, size_t why_bytes)
{
	const char *value = getenv("SWINGCOLL_SECRET"), *path = getenv("SWINGCOLL_SECRET_FILE");
	const char *from = "SWINGCOLL_SECRET", *bytes = value;
	char text[SWC_SECRET_MAX + 3];
	int n;

	*s = (struct swc_secret){ 0 };
	value = value && *value ? value : NULL;
	path = path && *path ? path : NULL;
	if (!value && !path)
		return 0;
	if (value && path) {
		snprintf(why, why_bytes,
			 "SWINGCOLL_SECRET and SWINGCOLL_SECRET_FILE are set: set one");
		return -EINVAL;
	}
	if (value) {
		n = (int)strnlen(value, sizeof(text));
	} else {
		from = "SWINGCOLL_SECRET_FILE";
		bytes = text;
		n = read_file(path, text, sizeof(text), why, why_bytes);
		if (n < 0)
			return n;
	}
	if (n < SWC_SECRET_MIN || n > SWC_SECRET_MAX) {
		snprintf(why, why_bytes,
			 "%s: the secret has %s than %d characters: make one by " HOW_TO, from,
			 n < SWC_SECRET_MIN ? "less" : "more",
			 n < SWC_SECRET_MIN ? SWC_SECRET_MIN : SWC_SECRET_MAX);
		return -EINVAL;
	}
	make_key(s, bytes, (size_t)n);
	explicit_bzero(text, sizeof(text));
	return 0;
}

/* ---- what is computed from it ---- */

void swc_secret_mac(const struct swc_secret *s, const char *label, const void *data, size_t bytes,
		    uint8_t *mac)
{
	struct swc_blake2s hash;

	swc_blake2s_init(&hash, SWC_SECRET_MAC, s->key, sizeof(s->key));
	/* With its end, so that no label is the beginning of another. */
	swc_blake2s_update(&hash, label, strlen(label) + 1);
	swc_blake2s_update(&hash, data, bytes);
	swc_blake2s_final(&hash, mac);
}

bool swc_secret_equal(const uint8_t *a, const uint8_t *b)
{
	volatile uint8_t differ = 0;

	for (int i = 0; i < SWC_SECRET_MAC; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}

uint64_t swc_secret_fingerprint(const struct swc_secret *s)
{
	uint8_t mac[SWC_SECRET_MAC];
	uint64_t v;

	if (!s->given)
		return 0;
	swc_secret_mac(s, "fingerprint", NULL, 0, mac);
	memcpy(&v, mac, sizeof(v));
	return v ? v : 1;
}

void swc_secret_derive_id(const struct swc_secret *s, struct swingcoll_id *id)
{
	uint8_t mac[SWC_SECRET_MAC];

	_Static_assert(sizeof(*id) == sizeof(mac), "an id is a MAC");
	if (!s->given)
		return;
	swc_secret_mac(s, "id", id, sizeof(*id), mac);
	memcpy(id, mac, sizeof(*id));
}
