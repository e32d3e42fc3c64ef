// SPDX-License-Identifier: GPL-2.0-only
/* Names, errors, options and arguments that need no kernel module. TAP on stdout. */
#include <errno.h>
#include <string.h>

#include <swingcoll.h>

#include "tap.h"

static int names_round_trip(void)
{
	for (int i = SWINGCOLL_I8; i <= SWINGCOLL_F64; i++)
		if (swingcoll_dtype_parse(swingcoll_dtype_name(i)) != i || !swingcoll_dtype_size(i))
			return 0;
	for (int i = SWINGCOLL_SUM; i <= SWINGCOLL_BXOR; i++)
		if (swingcoll_redop_parse(swingcoll_redop_name(i)) != i)
			return 0;
	for (int i = SWINGCOLL_ALLREDUCE; i <= SWINGCOLL_SCATTER; i++)
		if (swingcoll_coll_parse(swingcoll_coll_name(i)) != i)
			return 0;
	return 1;
}

int main(void)
{
	struct swingcoll_comm_opts opts = { .algo = "no such" };
	struct swingcoll_id a, b;
	struct swingcoll_comm *comm = (void *)&a;
	int n = 0;

	printf("TAP version 13\n");
	ok(names_round_trip(), "names and parsers agree");
	ok(swingcoll_dtype_parse("f33") == -EINVAL && swingcoll_redop_parse("") == -EINVAL &&
		   swingcoll_coll_parse("alltoal") == -EINVAL,
	   "unknown names are refused");
	ok(!strcmp(swingcoll_coll_name(99), "?") && !strcmp(swingcoll_dtype_name(99), "?"),
	   "unknown values are \"?\"");
	ok(swingcoll_supported(SWINGCOLL_F32, SWINGCOLL_AVG) &&
		   !swingcoll_supported(SWINGCOLL_F32, SWINGCOLL_BXOR),
	   "bit operations are supported for integers only");
	while (swingcoll_algo_name(n))
		n++;
	ok(n > 0 && !swingcoll_algo_name(-1), "algorithms are listed");
	ok(swingcoll_strerror(-ETIMEDOUT) && swingcoll_strerror(-12345), "errors have a text");
	ok(!swingcoll_unique_id(&a) && !swingcoll_unique_id(&b) && memcmp(&a, &b, sizeof(a)),
	   "ids differ");

	ok(swingcoll_comm_create(&comm, &a, 2, 2, NULL) == -EINVAL,
	   "a rank out of range is refused");
	ok(swingcoll_comm_create(&comm, &a, 2, 0, &opts) == -EINVAL && !comm,
	   "an unknown algorithm is refused");
	opts = (struct swingcoll_comm_opts){ .reserved = { 1 } };
	ok(swingcoll_comm_create(&comm, &a, 2, 0, &opts) == -EINVAL,
	   "a reserved option that is not 0 is refused");
	opts = (struct swingcoll_comm_opts){ .flags = 1u << 31 };
	ok(swingcoll_comm_create(&comm, &a, 2, 0, &opts) == -EINVAL, "an unknown flag is refused");
	ok(swingcoll_allreduce(NULL, NULL, 0, SWINGCOLL_F32, SWINGCOLL_SUM, NULL) == -EINVAL &&
		   swingcoll_barrier(NULL) == -EINVAL && swingcoll_wait(NULL, NULL) == -EINVAL &&
		   swingcoll_comm_abort(NULL) == -EINVAL && !swingcoll_comm_destroy(NULL),
	   "calls without a communicator are refused");
	ok(swingcoll_mem_register(NULL, 4) == -EINVAL && swingcoll_mem_unregister(&a) == -EINVAL,
	   "registering NULL and unregistering unregistered memory are refused");
	errno = 77;
	swingcoll_comm_create(&comm, &a, 1, 0, NULL);
	swingcoll_comm_destroy(comm);
	ok(errno == 77, "errno is unchanged");
	return done();
}
