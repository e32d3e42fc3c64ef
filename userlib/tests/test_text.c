// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kept texts and their readers: pids of the reader's pid namespace and of others, texts that were cut off anywhere,
 * texts that grow beyond the end, and random bytes, in memory of exactly their size. TAP on stdout.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "kmod/core/text.h"
#include "random.h"
#include "tap.h"

#define NS 0xf0000ffcu
#define ROUNDS 100000

static const char kept[] = "rank 1 (pid 7\x01"
			   "f0000ffc\x02, train) and rank 2 (pid 9\x01"
			   "f0000ffd\x02, load)";

static const struct reader {
	const char *name;
	u32 ns;
	const char *want;
} readers[] = {
	{ "a reader of the first pid namespace", NS,
	  "rank 1 (pid 7, train) and rank 2 (pid 9 in another pid namespace, load)" },
	{ "a reader of the second one", NS + 1,
	  "rank 1 (pid 7 in another pid namespace, train) and rank 2 (pid 9, load)" },
	{ "a reader of a third one", 17,
	  "rank 1 (pid 7 in another pid namespace, train) and rank 2 (pid 9 in another pid namespace, load)" },
	{ "a reader on another node", 0, "rank 1 (pid 7, train) and rank 2 (pid 9, load)" },
};

/* Read a text of so many bytes and its NUL, both in memory of their own. Returns whether the result is sound. */
static bool reads(const char *text, size_t bytes, u32 ns, char to[SWC_TEXT_BYTES])
{
	char *from = malloc(bytes + 1), *out = malloc(SWC_TEXT_BYTES);
	size_t n;
	bool sound;

	if (!from || !out)
		abort();
	memcpy(from, text, bytes);
	from[bytes] = '\0';
	memset(out, 'x', SWC_TEXT_BYTES);
	swc_text_read(out, from, ns);
	n = strnlen(out, SWC_TEXT_BYTES);
	sound = n < SWC_TEXT_BYTES && !memchr(out, SWC_TEXT_NS, n);
	for (; n < SWC_TEXT_BYTES; n++)
		sound &= !out[n];
	memcpy(to, out, SWC_TEXT_BYTES);
	free(from);
	free(out);
	return sound;
}

static void test_readers(void)
{
	char got[SWC_TEXT_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
		const struct reader *r = &readers[i];
		bool sound = reads(kept, sizeof(kept) - 1, r->ns, got);

		if (!ok(sound && !strcmp(got, r->want), r->name))
			printf("# got \"%s\"\n", got);
	}
}

static void test_cut(void)
{
	char got[SWC_TEXT_BYTES];
	bool good = true;

	for (size_t n = 0; n < sizeof(kept); n++)
		good &= reads(kept, n, NS, got) && !memchr(got, SWC_TEXT_NS_END, strlen(got));
	ok(good, "texts that were cut off");
}

static void test_growing(void)
{
	char text[SWC_TEXT_BYTES], got[SWC_TEXT_BYTES];
	size_t n = 0;

	while (n + 16 < sizeof(text))
		n += (size_t)snprintf(text + n, sizeof(text) - n, SWC_TEXT_PID, 1, NS + 1);
	ok(reads(text, n, NS, got) && strlen(got) == SWC_TEXT_BYTES - 1,
	   "a text that becomes too long");
}

static void test_random(void)
{
	static const char bytes[] = "a1f\x01\x02\xff";
	bool good = true;

	for (int k = 0; k < ROUNDS; k++) {
		char text[SWC_TEXT_BYTES], got[SWC_TEXT_BYTES];
		size_t n = rnd(SWC_TEXT_BYTES);

		for (size_t i = 0; i < n; i++)
			text[i] = bytes[rnd(sizeof(bytes) - 1)];
		good &= reads(text, n, k & 1 ? NS : 0, got);
	}
	ok(good, "random bytes");
}

int main(void)
{
	seed_rnd();
	test_readers();
	test_cut();
	test_growing();
	test_random();
	return done();
}
