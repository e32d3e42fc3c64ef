// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <swingcoll.h>
#include <sys/wait.h>
#include <unistd.h>
#define COUNT (1 << 20) /* four processes add up a million floats */
static float v[COUNT];
static void check(int err)
{
	if (err)
		fprintf(stderr, "%s\n", swingcoll_strerror(err)), _exit(1);
}
int main(void)
{
	struct swingcoll_comm *comm;
	struct swingcoll_id id;
	int nranks = 4, rank = 0, status, bad = 0;
	check(swingcoll_unique_id(&id));
	while (rank < nranks - 1 && fork()) /* parents go on, each child takes the rank so far */
		rank++;
	check(swingcoll_comm_create(&comm, &id, nranks, rank, NULL));
	for (int i = 0; i < COUNT; i++)
		v[i] = (float)(rank + 1);
	check(swingcoll_allreduce(v, v, COUNT, SWINGCOLL_F32, SWINGCOLL_SUM, comm));
	printf("rank %d: %g everywhere\n", rank, v[COUNT - 1]);
	check(swingcoll_comm_destroy(comm));
	while (wait(&status) > 0)
		bad |= status;
	return bad != 0;
}
