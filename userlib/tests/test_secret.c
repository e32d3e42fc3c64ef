// SPDX-License-Identifier: GPL-2.0-only
/*
 * The secret of a job: the keyed hash by known values, reading it from the environment and from files
 * with right and wrong owners and modes, and what is derived from it. TAP on stdout.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/blake2s.h"
#include "src/bootstrap/secret.h"
#include "tap.h"

#define GOOD "correct horse battery staple"

static char dir[] = "/tmp/swingcoll-secret-XXXXXX", path[64];

/* ---- the keyed hash ---- */

static bool is_hash(const uint8_t *hash, const char *hex)
{
	char text[2 * SWC_BLAKE2S_MAX + 1] = "";

	for (size_t i = 0; i < strlen(hex) / 2; i++)
		snprintf(text + 2 * i, 3, "%02x", hash[i]);
	if (!strcmp(text, hex))
		return true;
	printf("# %s\n", text);
	return false;
}

/* The hash of the hashes of the first 0 to 255 bytes of 0, 1, 2, ..., in pieces of @piece bytes. */
static bool all_lengths(size_t piece)
{
	uint8_t in[256], hash[SWC_BLAKE2S_MAX];
	struct swc_blake2s s, sum;

	for (int i = 0; i < 256; i++)
		in[i] = (uint8_t)i;
	swc_blake2s_init(&sum, 32, NULL, 0);
	for (size_t n = 0; n < 256; n++) {
		swc_blake2s_init(&s, 32, in, 32);
		for (size_t at = 0; at < n; at += piece)
			swc_blake2s_update(&s, in + at, n - at < piece ? n - at : piece);
		swc_blake2s_final(&s, hash);
		swc_blake2s_update(&sum, hash, 32);
	}
	swc_blake2s_final(&sum, hash);
	return is_hash(hash, "2582f7b18a91f66ef22aa9455384ada69b2590306a6470ee8588df75ee982f02");
}

static bool all_keys(void)
{
	uint8_t in[100], hash[SWC_BLAKE2S_MAX];
	struct swc_blake2s s, sum;

	for (int i = 0; i < 100; i++)
		in[i] = (uint8_t)i;
	swc_blake2s_init(&sum, 32, NULL, 0);
	for (size_t n = 1; n <= 32; n++) {
		swc_blake2s_init(&s, n, in, n);
		swc_blake2s_update(&s, in, sizeof(in));
		swc_blake2s_final(&s, hash);
		swc_blake2s_update(&sum, hash, n);
	}
	swc_blake2s_final(&sum, hash);
	return is_hash(hash, "15fff013b4e5a199e42e6eb99fe8b25ec884aa94818f69f476bf52a79dbf0dab");
}

static void test_hash(void)
{
	uint8_t hash[SWC_BLAKE2S_MAX];
	struct swc_blake2s s;

	swc_blake2s_init(&s, 32, NULL, 0);
	swc_blake2s_update(&s, "abc", 3);
	swc_blake2s_final(&s, hash);
	ok(is_hash(hash, "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982"),
	   "BLAKE2s: the example of RFC 7693, appendix B");
	ok(all_lengths(256), "BLAKE2s: keyed, of 0 to 255 bytes");
	ok(all_lengths(1) && all_lengths(63) && all_lengths(64) && all_lengths(65),
	   "BLAKE2s: the same in pieces");
	ok(all_keys(), "BLAKE2s: keys and hashes of 1 to 32 bytes");
}

/* ---- reading ---- */

static void clear(void)
{
	unsetenv("SWINGCOLL_SECRET");
	unsetenv("SWINGCOLL_SECRET_FILE");
}

static bool write_file(const char *text, mode_t mode)
{
	int fd;
	bool good;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) &&
	       !fchmod(fd, mode);
	close(fd);
	setenv("SWINGCOLL_SECRET_FILE", path, 1);
	return good;
}

static bool fails(int error, const char *word)
{
	struct swc_secret s;
	char why[256] = "";
	int ret = swc_secret_read(&s, why, sizeof(why));

	if (ret == error && strstr(why, word) && !s.given)
		return true;
	printf("# %d, %s\n", ret, why);
	return false;
}

/* The fingerprint; 0 if it cannot be read, or there is none. */
static uint64_t reads(void)
{
	struct swc_secret s;
	char why[256] = "";
	int ret = swc_secret_read(&s, why, sizeof(why));

	if (ret)
		printf("# %d, %s\n", ret, why);
	return ret || !s.given ? 0 : swc_secret_fingerprint(&s);
}

static void test_reading(void)
{
	struct swc_secret s;
	uint64_t print;
	char why[256], longest[SWC_SECRET_MAX + 2];

	clear();
	ok(!swc_secret_read(&s, why, sizeof(why)) && !s.given && !swc_secret_fingerprint(&s),
	   "no secret");
	setenv("SWINGCOLL_SECRET", "", 1);
	ok(!swc_secret_read(&s, why, sizeof(why)) && !s.given, "an empty variable is no secret");
	setenv("SWINGCOLL_SECRET", GOOD, 1);
	print = reads();
	ok(print != 0, "a secret in the environment");
	setenv("SWINGCOLL_SECRET", "0123456789abcde", 1);
	ok(fails(-EINVAL, "less than 16 characters"), "15 characters are too few");
	memset(longest, 'x', sizeof(longest));
	longest[SWC_SECRET_MAX + 1] = 0;
	setenv("SWINGCOLL_SECRET", longest, 1);
	ok(fails(-EINVAL, "more than 1024 characters"), "1025 characters are too many");
	longest[SWC_SECRET_MAX] = 0;
	setenv("SWINGCOLL_SECRET", longest, 1);
	ok(reads() && reads() != print, "another secret has another fingerprint");

	clear();
	ok(write_file(GOOD "\n", 0600) && reads() == print, "the same secret in a file");
	ok(write_file(GOOD, 0400) && reads() == print, "a file of mode 0400, without a newline");
	setenv("SWINGCOLL_SECRET", GOOD, 1);
	ok(fails(-EINVAL, "set one"), "both variables are set");
	clear();
	ok(write_file(GOOD, 0640) && fails(-EACCES, "has mode 0640") && fails(-EACCES, "chmod 600"),
	   "a file that a group may read is refused");
	ok(write_file(GOOD, 0604) && fails(-EACCES, "chmod 600"),
	   "a file that all may read is refused");
	ok(write_file(GOOD, 0620) && fails(-EACCES, "chmod 600"),
	   "a file that a group may write is refused");
	ok(write_file("short\n", 0600) &&
		   fails(-EINVAL, "SWINGCOLL_SECRET_FILE: the secret has less"),
	   "a file with too few characters");
	if (!geteuid()) {
		ok(write_file(GOOD, 0600) && !chown(path, 12345, 0) &&
			   fails(-EACCES, "belongs to user 12345"),
		   "a file of another user is refused");
	} else {
		setenv("SWINGCOLL_SECRET_FILE", "/etc/passwd", 1);
		ok(fails(-EACCES, "belongs to user 0"), "a file of another user is refused");
	}
	unlink(path);
	ok(fails(-ENOENT, path), "there is no file");
	setenv("SWINGCOLL_SECRET_FILE", dir, 1);
	ok(fails(-EINVAL, "not a regular file"), "a folder");
	ok(!mkfifo(path, 0600) && !setenv("SWINGCOLL_SECRET_FILE", path, 1) &&
		   fails(-EINVAL, "not a regular file"),
	   "a pipe is not waited for");
	unlink(path);
	clear();
}

/* ---- what is derived ---- */

static void test_derived(void)
{
	struct swingcoll_id clear_id = { { 1, 2, 3 } }, a = clear_id, b = clear_id, c = clear_id;
	struct swc_secret one = { .given = true, .key = { 1 } },
			  two = { .given = true, .key = { 2 } }, none = { 0 };
	uint8_t mac[3][SWC_SECRET_MAC];

	swc_secret_derive_id(&none, &a);
	ok(!memcmp(&a, &clear_id, sizeof(a)), "without a secret the id stays");
	swc_secret_derive_id(&one, &a);
	swc_secret_derive_id(&one, &b);
	swc_secret_derive_id(&two, &c);
	ok(!memcmp(&a, &b, sizeof(a)) && memcmp(&a, &c, sizeof(a)) &&
		   memcmp(&a, &clear_id, sizeof(a)),
	   "the id depends on the secret, and is not the one that was sent");
	clear_id.bytes[15]++;
	swc_secret_derive_id(&one, &clear_id);
	ok(memcmp(&a, &clear_id, sizeof(a)) != 0, "and on the one that was sent");
	swc_secret_mac(&one, "a", "bc", 2, mac[0]);
	swc_secret_mac(&one, "ab", "c", 1, mac[1]);
	swc_secret_mac(&one, "a", "bc", 2, mac[2]);
	ok(swc_secret_equal(mac[0], mac[2]) && !swc_secret_equal(mac[0], mac[1]),
	   "labels and data are apart");
}

int main(void)
{
	printf("TAP version 13\n");
	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/secret", dir);
	test_hash();
	test_reading();
	test_derived();
	rmdir(dir);
	return done();
}
