// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plan files: plans are printed and parsed, and the faults of spoilt files are found. TAP on
 * stdout.
 */
#include <errno.h>
#include <unistd.h>

#include "plan_texts.h"
#include "src/files.h"

/* ---- printing and parsing ---- */

static bool round_trip(enum swc_algo algo, enum swc_coll coll, const char *shape, uint32_t channels)
{
	struct swc_plan_set set, again = { 0 };
	struct swc_text first = { 0 }, second = { 0 };
	struct swc_topo topo;
	struct swc_verdict v;
	char why[200] = "";
	bool good = false, one_node = swc_algo_info(algo)->one_node;

	if (swc_topo_parse(&topo, shape, why, sizeof(why)))
		abort();
	if (build(&set, algo, coll, one_node ? NULL : &topo, topo.nranks, channels) ||
	    write_text(&set, &first, why, sizeof(why)) ||
	    read_text(first.at, &again, why, sizeof(why)))
		goto out;
	good = equal(&set, &again) && !verify(&again, true, one_node ? NULL : &topo, &v) &&
	       !write_text(&again, &second, why, sizeof(why)) && !strcmp(first.at, second.at);
out:
	if (!good)
		printf("# %s %d on %s: \"%s\"\n", swc_algo_name(algo), coll, shape, why);
	swc_plan_set_free(&set);
	swc_plan_set_free(&again);
	swc_topo_free(&topo);
	free(first.at);
	free(second.at);
	return good;
}

static void test_round_trips(void)
{
	ok(round_trip(SWC_ALGO_RING, SWC_ALLREDUCE, "switch:5", 3),
	   "printed and parsed: several channels");
	ok(round_trip(SWC_ALGO_RING, SWC_REDUCE_SCATTER, "switch:4", 1),
	   "printed and parsed: shards, scratch");
	ok(round_trip(SWC_ALGO_RECDOUB, SWC_ALLREDUCE, "switch:6", 1),
	   "printed and parsed: flags that differ by rank");
	ok(round_trip(SWC_ALGO_DIRECT1, SWC_ALLREDUCE, "switch:3", 1),
	   "printed and parsed: local steps");
	ok(round_trip(SWC_ALGO_DIRECT2, SWC_BARRIER, "switch:3", 1),
	   "printed and parsed: barriers");
	ok(round_trip(SWC_ALGO_DIRECT2, SWC_BROADCAST, "switch:3", 1),
	   "printed and parsed: buffers of the root only");
	ok(round_trip(SWC_ALGO_RING, SWC_ALLREDUCE, "switch:3*2,1,4", 1),
	   "printed and parsed: nodes with several ranks");
	ok(round_trip(SWC_ALGO_SWING_B, SWC_ALLREDUCE, "torus:2x4*2", 0),
	   "printed and parsed: paths");
	ok(round_trip(SWC_ALGO_BRUCK, SWC_ALLTOALL, "switch:7", 0),
	   "printed and parsed: copy steps");
	ok(round_trip(SWC_ALGO_ROTATE, SWC_BARRIER, "torus:4x4", 0),
	   "printed and parsed: empty messages");
}

/* Broadcast to one rank; lines are replaced below. */
static const char *const small[] = {
	"# a comment",
	"swingcoll-plans 1",
	"name tiny",
	"collective broadcast",
	"ranks 2",
	"root 1",
	"shards 1",
	"blocks 3",
	"rank 0",
	"window recv 0+3",
	"channel",
	"net",
	"recv 1 recv 0+3 final # behind it, too",
	"rank 1",
	"window send 0+3",
	"window recv 0+3",
	"channel",
	"local",
	"from 1 send 0+3",
	"to 1 recv 0+3",
	"net",
	"send 0 send 0+3 stored",
	"end",
};

#define NSMALL (sizeof(small) / sizeof(small[0]))

/* The text with line number n (from 1) replaced; NULL: without it and all that follow. */
static char *spoilt(uint32_t n, const char *with)
{
	struct swc_text t = { 0 };

	for (uint32_t i = 0; i < NSMALL; i++) {
		if (i + 1 == n && !with)
			break;
		swc_text_printf(&t, "%s\n", i + 1 == n ? with : small[i]);
	}
	return t.at;
}

static const struct {
	uint32_t line;
	const char *with;
	const char *text;
} wrong[] = {
	{ 2, NULL, "line 1: the file ends, but swingcoll-plans VERSION must follow" },
	{ 2, "swingcoll-plans 2", "line 2: expected version 1" },
	{ 2, "ELF", "line 2: expected swingcoll-plans VERSION, not 'ELF'" },
	{ 3, "name 1234567890123456", "line 3: expected a name of at most 15" },
	{ 3, "name", "line 3: expected name NAME" },
	{ 3, "name a b", "line 3: expected name NAME" },
	{ 4, "collective allsum", "line 4: expected allreduce," },
	{ 5, "ranks 0", "line 5: expected ranks N, a number from 1 to" },
	{ 5, "ranks 1000000000", "line 5: expected ranks N, a number from 1 to" },
	{ 5, "ranks -1", "line 5: expected ranks N, a number from 1 to" },
	{ 5, "ranks 0x2", "line 5: expected ranks N, a number from 1 to" },
	{ 5, "ranks 18446744073709551618", "line 5: expected ranks N, a number from 1 to" },
	{ 5, "ranks 1000000", "line 23: expected rank 2, not 'end'" },
	{ 5, "ranks 3", "line 23: expected rank 2, not 'end'" },
	{ 6, "root 2", "line 6: expected root N, a number from 0 to 1" },
	{ 7, "shards 2", "line 7: expected shards N, a number from 1 to 1" },
	{ 8, "blocks 1000000000", "line 8: expected blocks N, a number from 1 to 16777216" },
	{ 9, "rank 1", "line 9: expected rank 0, not 'rank 1'" },
	{ 9, "rank 0 fast", "line 9: expected not-in-place or order-varies, not 'fast'" },
	{ 10, "window recv 0+4", "line 10: expected FIRST+COUNT within 3 blocks, not '0+4'" },
	{ 10, "window recv 4294967295+1", "line 10: expected FIRST+COUNT" },
	{ 10, "window recv 2+4294967295", "line 10: expected FIRST+COUNT" },
	{ 10, "window recv 1+", "line 10: expected FIRST+COUNT" },
	{ 10, "window heap 0+3", "line 10: expected send, recv or scratch, not 'heap'" },
	{ 10, "window recv 0+2",
	  "line 13: expected blocks within the window 0+2 of recv, not 0+3" },
	{ 10, "window send 0+3", "line 13: expected blocks within the window 0+0 of recv" },
	{ 11, "chanel", "line 11: expected window or channel, not 'chanel'" },
	{ 11, "channel 1", "line 11: expected the end of the line, not '1'" },
	{ 12, "net 2", "line 12: expected the end of the line" },
	{ 12, "sync",
	  "line 13: expected net, local, copy, sync, channel, rank or end, not 'recv 1'" },
	{ 12, "nett", "line 12: expected net, local, copy, sync" },
	{ 13, "recv 2 recv 0+3", "line 13: expected a rank, a number from 0 to 1, not '2'" },
	{ 13, "recv 1 recv", "line 13: expected send or recv RANK BUFFER" },
	{ 13, "recv 1 recv 0+3 finally", "line 13: expected the end of the line, not 'finally'" },
	{ 13, "recv 1 recv 0+3 reduce x", "line 13: expected send, recv or scratch, not 'x'" },
	{ 13, "recv 1 recv 0+3 reduce recv",
	  "channel 0, step 0, transfer 0: this collective does not" },
	{ 13, "recv 0 recv 0+3", "a rank cannot be its own peer" },
	{ 13, "# nothing", "line 14: in the plan of rank 0, which ends here: channel 0, step 0" },
	{ 13, "recv 1 recv 0+3\001", "line 13: expected printable" },
	{ 14, "channel\nrank 1", "line 24: expected 2 channels of rank 1, as many as rank 0 has" },
	{ 14, "rank 0", "line 14: expected rank 1, not 'rank 0'" },
	{ 14, "channel\nchannel\nrank 1", "of rank 1, as many as rank 0 has" },
	{ 15, "window send 0+3\nwindow send 0+3", "line 16: expected one window of send" },
	{ 18, "local", "" },
	{ 18, "copy", "" },
	{ 18, "copy\nfrom 1 send 0+3", "step 0: a copy step needs a destination for each source" },
	{ 18, "copy\nfrom 0 send 0+3\nto 1 recv 0+3\nlocal",
	  "transfer 0: a copy step names another rank" },
	{ 19, "to 1 recv 0+3\nfrom 1 send 0+3", "line 20: expected sources before destinations" },
	{ 22, "send 0 send 0+3 final", "line 22: expected the end of the line, not 'final'" },
	{ 22, "send 0 send 0+3 stored final",
	  "line 22: expected the end of the line, not 'final'" },
	{ 22, "send 0 send 0+3 path 1 stored",
	  "line 22: expected the end of the line, not 'stored'" },
	{ 22, "send 0 send 0+3 stored path 255", "" },
	{ 22, "send 0 send 0+3 stored path 256",
	  "line 22: expected a path, a number from 0 to 255" },
	{ 22, "send 0 send 0+3 path x", "line 22: expected a path, a number from 0 to 255" },
	{ 22, "send 0 send 0+3 path", "line 22: expected a number behind path" },
	{ 13, "recv 1 recv 0+3 stored", "line 13: expected the end of the line, not 'stored'" },
	{ 13, "recv 1 recv 0+3 final path 7", "" },
	{ 19, "from 1 send 0+3 stored", "line 19: expected the end of the line, not 'stored'" },
	{ 20, "to 1 recv 0+3 path 1", "line 20: expected the end of the line, not 'path'" },
	{ 22, NULL, "line 21: the file ends, but" },
	{ 23, NULL, "line 22: the file ends, but" },
	{ 23, "end\nrank 2", "line 24: expected nothing behind the end" },
	{ 23, "end 3", "line 23: expected end" },
	{ 23, "rank 2\nend", "line 23: expected end, not 'rank 2'" },
	{ 1, "a b c d e f g h i j", "line 1: expected at most 9 words" },
};

static void test_wrong_files(void)
{
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char *text = spoilt(wrong[i].line, wrong[i].with), name[120], why[250];
		struct swc_plan_set set;
		int ret = read_text(text, &set, why, sizeof(why));
		bool good = *wrong[i].text ? ret == -EINVAL && !set.nranks : !ret;

		snprintf(name, sizeof(name), "plan file: %.90s",
			 *wrong[i].text ? wrong[i].text : "valid");
		if (!ok(good && strstr(why, wrong[i].text), name))
			printf("# %d, \"%s\"\n", ret, why);
		swc_plan_set_free(&set);
		free(text);
	}
}

/* Valid files in which the two ends of the message do not agree. */
static void test_wrong_ends(void)
{
	static const struct {
		uint32_t line;
		const char *with, *text;
	} ends[] = {
		{ 22, "send 0 send 0+3",
		  "rank 1 sends without the stored mark what rank 0 stores" },
		{ 22, "send 0 send 0+3 stored path 2",
		  "rank 1 sends by path 2 what rank 0 receives by path 0" },
		{ 13, "recv 1 recv 0+3 final path 1",
		  "rank 1 sends by path 0 what rank 0 receives by path 1" },
		{ 1, "", "" },
	};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		char *text = spoilt(ends[i].line, ends[i].with), name[120], why[250];
		struct swc_verdict v = { 0 };
		struct swc_plan_set set;
		int ret = read_text(text, &set, why, sizeof(why));

		if (!ret)
			ret = verify(&set, false, NULL, &v);
		snprintf(name, sizeof(name), "plan file: %.90s",
			 *ends[i].text ? ends[i].text : "both ends agree");
		if (!ok(ret == (*ends[i].text ? -EINVAL : 0) && strstr(v.text, ends[i].text), name))
			printf("# %d, \"%s\", \"%s\"\n", ret, why, v.text);
		swc_plan_set_free(&set);
		free(text);
	}
}

/* Lines without an end, bytes that are no text, steps without end. */
static void test_large_files(void)
{
	struct swc_plan_set set;
	struct swc_text t = { 0 };
	char why[250];

	for (int i = 0; i < 100000; i++)
		swc_text_printf(&t, "x");
	ok(read_text(t.at, &set, why, sizeof(why)) == -EINVAL && strstr(why, "at most 200 bytes"),
	   "plan file: a line that is too long");
	free(t.at);
	ok(swc_plan_text_parse("swingcoll-plans\0 1\n", 19, &set, why, sizeof(why)) == -EINVAL,
	   "plan file: a zero byte");
	ok(swc_plan_text_parse("", 0, &set, why, sizeof(why)) == -EINVAL, "plan file: empty");
	t = (struct swc_text){ 0 };
	for (uint32_t i = 0; i < 11; i++)
		swc_text_printf(&t, "%s\n", small[i]);
	for (int i = 0; i < 1000000; i++)
		swc_text_printf(&t, "sync\n");
	if (!ok(read_text(t.at, &set, why, sizeof(why)) == -EINVAL && strstr(why, "is larger than"),
		"plan file: more steps than a plan can have"))
		printf("# \"%s\"\n", why);
	free(t.at);
}

static uint64_t family_of(const char *text)
{
	struct swc_plan_set set;
	uint64_t family = 0;
	char why[250];

	if (!read_text(text, &set, why, sizeof(why)))
		family = ((struct swc_plan_header *)set.plan[1])->family;
	swc_plan_set_free(&set);
	return family;
}

static void test_family(void)
{
	char *plain = spoilt(0, NULL), *comment = spoilt(1, ""), *other = spoilt(3, "name tony");
	char *blank = spoilt(13, "\t recv  1 recv 0+3\tfinal");
	uint64_t family = family_of(plain);

	ok(family && family == family_of(comment) && family == family_of(blank) &&
		   family != family_of(other),
	   "the family is a hash of the words of the file");
	free(plain);
	free(comment);
	free(other);
	free(blank);
}

static void test_one_rank(void)
{
	char path[] = "/tmp/planfile.XXXXXX", why[250], *text = spoilt(0, NULL);
	struct swc_plan_set set;
	size_t bytes = 0;
	void *plan = NULL;
	int fd = mkstemp(path);
	bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	ok(written && !read_text(text, &set, why, sizeof(why)) &&
		   !swc_file_plan(path, 2, 1, false, &plan, &bytes, why, sizeof(why)) &&
		   bytes == set.bytes[1] && !memcmp(plan, set.plan[1], bytes),
	   "one rank's plan is read from a file");
	free(plan);
	swc_plan_set_free(&set);
	ok(swc_file_plan(path, 3, 1, false, &plan, &bytes, why, sizeof(why)) == -EINVAL &&
		   strstr(why, "for 2 ranks, not 3"),
	   "a file for another number of ranks is refused");
	ok(swc_file_plan(path, 2, 2, false, &plan, &bytes, why, sizeof(why)) == -EINVAL,
	   "a rank that the file does not have is refused");
	if (ftruncate(fd, (off_t)strlen(text) - 10))
		abort();
	ok(swc_file_plan(path, 2, 0, false, &plan, &bytes, why, sizeof(why)) == -EINVAL &&
		   strstr(why, path),
	   "a file in which another rank's plan is cut short is refused");
	close(fd);
	unlink(path);
	ok(swc_file_plan(path, 2, 0, false, &plan, &bytes, why, sizeof(why)) == -ENOENT,
	   "a file that does not exist is an error");
	free(text);
}

/* Of a plan file of an algorithm: the last rank's plan for shards of different sizes. */
static int read_uneven(enum swc_algo algo, char *why, size_t why_bytes)
{
	struct swc_topo topo = swc_topo_flat(6);
	char path[] = "/tmp/planfile.XXXXXX";
	struct swc_text t = { 0 };
	struct swc_plan_set set;
	int fd = mkstemp(path), ret;
	void *plan = NULL;
	size_t bytes;

	if (fd < 0 || build(&set, algo, SWC_GATHER, &topo, 6, 0) ||
	    write_text(&set, &t, why, why_bytes) || write(fd, t.at, t.used) != (ssize_t)t.used)
		abort();
	ret = swc_file_plan(path, 6, 5, false, &plan, &bytes, why, why_bytes);
	free(plan);
	plan = NULL;
	if (!ret)
		ret = swc_file_plan(path, 6, 5, true, &plan, &bytes, why, why_bytes);
	free(plan);
	close(fd);
	unlink(path);
	free(t.at);
	swc_plan_set_free(&set);
	return ret;
}

static void test_uneven(void)
{
	char why[250] = "";

	ok(!read_uneven(SWC_ALGO_LINEAR, why, sizeof(why)),
	   "a file of plans for shards of different sizes");
	if (!ok(read_uneven(SWC_ALGO_TREE, why, sizeof(why)) == -EOPNOTSUPP &&
			strstr(why, "in the place of block") && strstr(why, "must have one size"),
		"a file of plans that need equal shards"))
		printf("# %s\n", why);
}

static void test_writing(void)
{
	struct swc_plan_set set;
	struct swc_text t;
	char why[250];

	build(&set, SWC_ALGO_RING, SWC_ALLREDUCE, NULL, 4, 1);
	((struct swc_plan_header *)set.plan[2])->family++;
	ok(write_text(&set, &t, why, sizeof(why)) == -EINVAL && strstr(why, "rank 2"),
	   "plans of two families are not printed");
	free(t.at);
	((struct swc_plan_header *)set.plan[2])->family--;
	ok(!write_text(&set, &t, why, sizeof(why)) &&
		   swc_file_write("/dev/full", t.at, t.used, why, sizeof(why)) == -ENOSPC &&
		   strstr(why, "/dev/full"),
	   "a full disk is an error");
	free(t.at);
	swc_plan_set_free(&set);
}

/* ---- alltoall, which the verifier checks by shards ---- */

static void alltoall_plan(struct swc_text *t, uint32_t n, uint32_t wrong_rank)
{
	*t = (struct swc_text){ 0 };
	swc_text_printf(
		t,
		"swingcoll-plans 1\nname all\ncollective alltoall\nranks %u\nroot 0\nshards %u\nblocks 2\n",
		n, n);
	for (uint32_t r = 0; r < n; r++) {
		swc_text_printf(t, "rank %u\nwindow send 0+%u\nwindow recv 0+%u\nchannel\nnet\n", r,
				2 * n, 2 * n);
		for (uint32_t i = 1; i < n; i++)
			swc_text_printf(t, "send %u send %u+2 stored\n", (r + i) % n,
					2 * ((r + i + (r == wrong_rank)) % n));
		for (uint32_t i = 1; i < n; i++)
			swc_text_printf(t, "recv %u recv %u+2\n", (r + n - i) % n,
					2 * ((r + n - i) % n));
		swc_text_printf(t, "local\nfrom %u send %u+2\nto %u recv %u+2\n", r, 2 * r, r,
				2 * r);
	}
	swc_text_printf(t, "end\n");
}

static void test_alltoall(void)
{
	for (uint32_t bad = 0; bad < 2; bad++) {
		struct swc_plan_set set;
		struct swc_verdict v = { 0 };
		struct swc_text t;
		char why[250];
		int ret;

		alltoall_plan(&t, 4, bad ? 2 : 4);
		ret = read_text(t.at, &set, why, sizeof(why));
		if (!ret)
			ret = verify(&set, false, NULL, &v);
		ok(bad ? ret == -EINVAL && strstr(v.text, "block 4 of the result is missing")
		       : !ret,
		   bad ? "an alltoall that sends a wrong shard" : "an alltoall");
		if (!bad)
			ok(verify(&set, true, NULL, &v) == -EINVAL && strstr(v.text, "writes what"),
			   "the same alltoall in place");
		swc_plan_set_free(&set);
		free(t.at);
	}
}

int main(void)
{
	printf("TAP version 13\n");
	test_round_trips();
	test_wrong_files();
	test_wrong_ends();
	test_large_files();
	test_family();
	test_one_rank();
	test_uneven();
	test_writing();
	test_alltoall();
	return done();
}
