// SPDX-License-Identifier: GPL-2.0-only
/*
 * The checks of connection requests and replies: each field at and beyond its limits, every length, and
 * random damage. SWC_TEST_SEED is the seed. TAP on stdout.
 */
#include "kmod/core/blocks.h"
#include "random.h"
#include "tap.h"
#include "wire_fields.h"
#include "kmod/core/wire.h"

#define HELLO(field) FIELD(swc_wire_hello, field)
#define ACCEPT(field) FIELD(swc_wire_accept, field)

typedef int (*checker)(const void *data, u32 bytes);

static int check(checker fn, const void *data, size_t bytes)
{
	void *copy = exactly(data, bytes);
	int ret = fn(copy, (u32)bytes);

	free(copy);
	return ret;
}

static void test_trials(checker fn, const char *name, const void *good, size_t bytes,
			const struct trial *t, size_t n)
{
	char text[100];

	for (size_t i = 0; i < n; i++) {
		uint8_t bad[ROOM];
		int got;

		memcpy(bad, good, bytes);
		put(bad, &t[i]);
		got = check(fn, bad, bytes);
		snprintf(text, sizeof(text), "%s: %s", name, t[i].what);
		if (!ok(got == t[i].want, text))
			printf("# got %d, not %d\n", got, t[i].want);
	}
}

static struct swc_wire_hello good_hello(void)
{
	return (struct swc_wire_hello){
		.magic = cpu_to_le32(SWC_WIRE_MAGIC),
		.version = cpu_to_le16(SWC_WIRE_VERSION),
		.channel = 3,
		.path = 1,
		.src = cpu_to_le16(5),
		.dst = cpu_to_le16(7),
		.attempt = cpu_to_le32(1),
		.rx_bufs = cpu_to_le16(16),
		.rx_buf_kib = cpu_to_le16(32),
	};
}

static void test_hello(void)
{
	static const struct trial trials[] = {
		{ "no magic", HELLO(magic), 0, SWC_WIRE_BAD },
		{ "a magic that is off by one", HELLO(magic), SWC_WIRE_MAGIC + 1, SWC_WIRE_BAD },
		{ "the magic of a plan", HELLO(magic), SWC_PLAN_MAGIC, SWC_WIRE_BAD },
		{ "version 0", HELLO(version), 0, SWC_WIRE_VERSION_DIFFERS },
		{ "the next version", HELLO(version), SWC_WIRE_VERSION + 1,
		  SWC_WIRE_VERSION_DIFFERS },
		{ "version 0xffff", HELLO(version), 0xffff, SWC_WIRE_VERSION_DIFFERS },
		{ "the last channel", HELLO(channel), SWC_MAX_CHANNELS - 1, 0 },
		{ "a channel too many", HELLO(channel), SWC_MAX_CHANNELS, SWC_WIRE_BAD },
		{ "channel 255", HELLO(channel), 255, SWC_WIRE_BAD },
		{ "the last path", HELLO(path), SWC_MAX_PATHS - 1, 0 },
		{ "a path too many", HELLO(path), SWC_MAX_PATHS, SWC_WIRE_BAD },
		{ "path 255", HELLO(path), 255, SWC_WIRE_BAD },
		{ "rank 0 connects", HELLO(src), 0, 0 },
		{ "the rank below connects", HELLO(src), 6, 0 },
		{ "a rank connects to itself", HELLO(src), 7, SWC_WIRE_BAD },
		{ "the higher rank asks to be connected to", HELLO(src), 8, 0 },
		{ "the last rank asks for that", HELLO(src), SWC_MAX_RANKS - 1, 0 },
		{ "to the last rank", HELLO(dst), SWC_MAX_RANKS - 1, 0 },
		{ "request number 0", HELLO(attempt), 0, SWC_WIRE_BAD },
		{ "the last request number", HELLO(attempt), 0xffffffff, 0 },
		{ "the fewest receive buffers", HELLO(rx_bufs), SWC_WIRE_MIN_RX_BUFS, 0 },
		{ "too few receive buffers", HELLO(rx_bufs), SWC_WIRE_MIN_RX_BUFS - 1,
		  SWC_WIRE_BAD },
		{ "no receive buffers", HELLO(rx_bufs), 0, SWC_WIRE_BAD },
		{ "the most receive buffers", HELLO(rx_bufs), SWC_WIRE_MAX_RX_BUFS, 0 },
		{ "too many receive buffers", HELLO(rx_bufs), SWC_WIRE_MAX_RX_BUFS + 1,
		  SWC_WIRE_BAD },
		{ "the smallest receive buffers", HELLO(rx_buf_kib), SWC_WIRE_MIN_RX_BUF >> 10, 0 },
		{ "too small receive buffers", HELLO(rx_buf_kib), (SWC_WIRE_MIN_RX_BUF >> 10) - 1,
		  SWC_WIRE_BAD },
		{ "the largest receive buffers", HELLO(rx_buf_kib), SWC_WIRE_MAX_RX_BUF >> 10, 0 },
		{ "too large receive buffers", HELLO(rx_buf_kib), (SWC_WIRE_MAX_RX_BUF >> 10) + 1,
		  SWC_WIRE_BAD },
	};
	struct swc_wire_hello h = good_hello();
	uint8_t padded[sizeof(h) + 200] = { 0 };
	bool fine = true;

	ok(sizeof(h) == 56, "hello: 56 bytes, the private data limit of a connection request");
	ok(!check(swc_wire_hello_check, &h, sizeof(h)), "hello: valid");
	test_trials(swc_wire_hello_check, "hello", &h, sizeof(h), trials,
		    sizeof(trials) / sizeof(trials[0]));

	memcpy(padded, &h, sizeof(h));
	for (size_t i = sizeof(h); i <= sizeof(padded); i++)
		fine &= !check(swc_wire_hello_check, padded, i);
	ok(fine, "hello: padding of any length is ignored");
	fine = true;
	for (size_t i = 0; i < sizeof(h); i++)
		fine &= check(swc_wire_hello_check, &h, i) == SWC_WIRE_BAD;
	ok(fine, "hello: truncated at any byte");

	/* Another version may have another size: only magic and version stay in place. */
	fine = true;
	h.version = cpu_to_le16(SWC_WIRE_VERSION + 1);
	for (size_t i = 0; i < sizeof(h); i++)
		fine &= check(swc_wire_hello_check, &h, i) ==
			(i < 8 ? SWC_WIRE_BAD : SWC_WIRE_VERSION_DIFFERS);
	ok(fine, "hello: another version, truncated at any byte, is recognized");
}

static void test_accept(void)
{
	static const struct trial trials[] = {
		{ "no magic", ACCEPT(magic), 0, SWC_WIRE_BAD },
		{ "version 0", ACCEPT(version), 0, SWC_WIRE_VERSION_DIFFERS },
		{ "the next version", ACCEPT(version), SWC_WIRE_VERSION + 1,
		  SWC_WIRE_VERSION_DIFFERS },
		{ "a reserved bit", ACCEPT(resv), 1, SWC_WIRE_BAD },
		{ "another reserved bit", ACCEPT(resv), 0x8000, SWC_WIRE_BAD },
		{ "RESUMABLE", ACCEPT(flags), 1, 0 },
		{ "a flag that there is not", ACCEPT(flags), 2, SWC_WIRE_BAD },
		{ "the fewest receive buffers", ACCEPT(rx_bufs), SWC_WIRE_MIN_RX_BUFS, 0 },
		{ "too few receive buffers", ACCEPT(rx_bufs), SWC_WIRE_MIN_RX_BUFS - 1,
		  SWC_WIRE_BAD },
		{ "the most receive buffers", ACCEPT(rx_bufs), SWC_WIRE_MAX_RX_BUFS, 0 },
		{ "too many receive buffers", ACCEPT(rx_bufs), SWC_WIRE_MAX_RX_BUFS + 1,
		  SWC_WIRE_BAD },
		{ "the smallest receive buffers", ACCEPT(rx_buf_kib), SWC_WIRE_MIN_RX_BUF >> 10,
		  0 },
		{ "too small receive buffers", ACCEPT(rx_buf_kib), (SWC_WIRE_MIN_RX_BUF >> 10) - 1,
		  SWC_WIRE_BAD },
		{ "the largest receive buffers", ACCEPT(rx_buf_kib), SWC_WIRE_MAX_RX_BUF >> 10, 0 },
		{ "too large receive buffers", ACCEPT(rx_buf_kib), (SWC_WIRE_MAX_RX_BUF >> 10) + 1,
		  SWC_WIRE_BAD },
		{ "receive buffers of 0xffff KiB", ACCEPT(rx_buf_kib), 0xffff, SWC_WIRE_BAD },
	};
	struct swc_wire_accept a = {
		.magic = cpu_to_le32(SWC_WIRE_MAGIC),
		.version = cpu_to_le16(SWC_WIRE_VERSION),
		.rx_bufs = cpu_to_le16(16),
		.rx_buf_kib = cpu_to_le16(32),
	};
	uint8_t padded[sizeof(a) + 200] = { 0 };
	bool fine = true;

	ok(!check(swc_wire_accept_check, &a, sizeof(a)), "accept: valid");
	test_trials(swc_wire_accept_check, "accept", &a, sizeof(a), trials,
		    sizeof(trials) / sizeof(trials[0]));
	memcpy(padded, &a, sizeof(a));
	for (size_t i = sizeof(a); i <= sizeof(padded); i++)
		fine &= !check(swc_wire_accept_check, padded, i);
	ok(fine, "accept: padding of any length is ignored");
	fine = true;
	for (size_t i = 0; i < sizeof(a); i++)
		fine &= check(swc_wire_accept_check, &a, i) == SWC_WIRE_BAD;
	ok(fine, "accept: truncated at any byte");
}

/* Any host that can reach the port can send requests. */
static void test_damaged_hello(void)
{
	unsigned long good = 0, mad = 0;
	const unsigned long n = 300000;
	char text[100];

	for (unsigned long i = 0; i < n; i++) {
		struct swc_wire_hello h = good_hello();
		size_t bytes = rnd(8) ? sizeof(h) : rnd(sizeof(h) + 1);
		int ret;

		for (uint32_t k = rnd(4); k; k--)
			damage((uint8_t *)&h, sizeof(h));
		ret = check(swc_wire_hello_check, &h, bytes);
		good += !ret;
		if (ret)
			mad += ret != SWC_WIRE_BAD && ret != SWC_WIRE_VERSION_DIFFERS;
		else
			mad += bytes < sizeof(h) || h.src == h.dst ||
			       (!h.attempt && le16_to_cpu(h.src) < le16_to_cpu(h.dst)) ||
			       h.channel >= SWC_MAX_CHANNELS || h.path >= SWC_MAX_PATHS ||
			       le16_to_cpu(h.rx_bufs) < SWC_WIRE_MIN_RX_BUFS ||
			       le16_to_cpu(h.rx_bufs) > SWC_WIRE_MAX_RX_BUFS ||
			       le16_to_cpu(h.rx_buf_kib) < SWC_WIRE_MIN_RX_BUF >> 10 ||
			       le16_to_cpu(h.rx_buf_kib) > SWC_WIRE_MAX_RX_BUF >> 10;
	}
	snprintf(text, sizeof(text), "damage: %lu requests, %lu accepted, all of them consistent",
		 n, good);
	ok(!mad && good && good < n, text);
}

int main(void)
{
	printf("TAP version 13\n");
	seed_rnd();
	test_hello();
	test_accept();
	test_damaged_hello();
	return done();
}
