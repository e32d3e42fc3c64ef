// SPDX-License-Identifier: GPL-2.0-only
/*
 * Blocking collectives of MPI under the preload library, each beside the same call by its PMPI_ name: integers must
 * agree bit for bit, floating-point numbers be the same on all ranks and close. Rank 0 prints TAP. pmpi.sh runs it, and
 * looks at what the library says it has offloaded.
 */
#include <dlfcn.h>

#include "pmpi_test.h"

#define MANY 20011 /* more than goes through shared memory */
#define ROOM (MANY * 16)

static const int counts[] = { 0, 1, 7, 1000, MANY };
static bool quick; /* fewer types */
static char *mine, *ours, *theirs;

/* ---- reductions ---- */

struct type {
	const char *name;
	MPI_Datatype type;
	size_t size;
	bool is_float;
	bool is_unsigned; /* both MPIs have minima of large ones wrong */
};

static void fill(const struct type *t, size_t n, int seed)
{
	for (size_t i = 0; i < n; i++) {
		/* Products of all ranks stay in range, and sums of floats depend on the order. */
		int v = (int)((i * 7 + (size_t)rank * 13 + (size_t)seed) % 11) -
			(t->is_unsigned ? 0 : 3);

		if (t->is_float && t->size == 4)
			((float *)mine)[i] = 1.0f + (float)v / 7;
		else if (t->is_float)
			((double *)mine)[i] = 1.0 + (double)v / 7;
		else
			memcpy(mine + i * t->size, &(int64_t){ v }, t->size);
	}
}

static bool close_enough(const struct type *t, size_t n)
{
	if (!t->is_float)
		return !memcmp(ours, theirs, n * t->size);
	for (size_t i = 0; i < n; i++) {
		double a = t->size == 4 ? ((float *)ours)[i] : ((double *)ours)[i];
		double b = t->size == 4 ? ((float *)theirs)[i] : ((double *)theirs)[i];

		if (a - b > 1e-4 || b - a > 1e-4)
			return false;
	}
	return true;
}

static bool same_everywhere(size_t bytes)
{
	char *first = malloc(bytes + 1);
	bool same;

	memcpy(first, ours, bytes);
	PMPI_Bcast(first, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
	same = !memcmp(first, ours, bytes);
	free(first);
	return same;
}

static void try_allreduce(const struct type *t, MPI_Op op, int count, bool in_place)
{
	size_t bytes = (size_t)count * t->size;

	fill(t, (size_t)count, count);
	memcpy(ours, mine, bytes);
	GOOD(MPI_Allreduce(in_place ? MPI_IN_PLACE : mine, ours, count, t->type, op,
			   MPI_COMM_WORLD) == MPI_SUCCESS);
	PMPI_Allreduce(mine, theirs, count, t->type, op, MPI_COMM_WORLD);
	GOOD(close_enough(t, (size_t)count));
	GOOD(same_everywhere(bytes));
}

static void try_reduce(const struct type *t, MPI_Op op, int count, int root)
{
	bool is_root = rank == root;

	fill(t, (size_t)count, root);
	GOOD(MPI_Reduce(mine, is_root ? ours : NULL, count, t->type, op, root, MPI_COMM_WORLD) ==
	     MPI_SUCCESS);
	PMPI_Reduce(mine, theirs, count, t->type, op, root, MPI_COMM_WORLD);
	GOOD(!is_root || close_enough(t, (size_t)count));
	memcpy(ours, mine, (size_t)count * t->size);
	GOOD(MPI_Reduce(is_root ? MPI_IN_PLACE : mine, ours, count, t->type, op, root,
			MPI_COMM_WORLD) == MPI_SUCCESS);
	GOOD(!is_root || close_enough(t, (size_t)count));
}

static void try_reduce_scatter(const struct type *t, MPI_Op op, int count)
{
	size_t n = (size_t)count * (size_t)nranks;
	int *shares = calloc((size_t)nranks, sizeof(*shares));

	fill(t, n, 5);
	GOOD(MPI_Reduce_scatter_block(mine, ours, count, t->type, op, MPI_COMM_WORLD) ==
	     MPI_SUCCESS);
	PMPI_Reduce_scatter_block(mine, theirs, count, t->type, op, MPI_COMM_WORLD);
	GOOD(close_enough(t, (size_t)count));
	memcpy(ours, mine, n * t->size);
	GOOD(MPI_Reduce_scatter_block(MPI_IN_PLACE, ours, count, t->type, op, MPI_COMM_WORLD) ==
	     MPI_SUCCESS);
	GOOD(close_enough(t, (size_t)count));
	for (int r = 0; r < nranks; r++)
		shares[r] = count;
	for (int i = 0; i < 2; i++) {
		memset(ours, 0, (size_t)count * t->size);
		GOOD(MPI_Reduce_scatter(mine, ours, shares, t->type, op, MPI_COMM_WORLD) ==
		     MPI_SUCCESS);
		GOOD(close_enough(t, (size_t)count));
	}
	memcpy(ours, mine, n * t->size);
	GOOD(MPI_Reduce_scatter(MPI_IN_PLACE, ours, shares, t->type, op, MPI_COMM_WORLD) ==
	     MPI_SUCCESS);
	GOOD(close_enough(t, (size_t)count));
	for (int r = 0; r < nranks; r++)
		shares[r] = r ? count : 0;
	GOOD(MPI_Reduce_scatter(mine, ours, shares, t->type, op, MPI_COMM_WORLD) == MPI_SUCCESS);
	PMPI_Reduce_scatter(mine, theirs, shares, t->type, op, MPI_COMM_WORLD);
	GOOD(close_enough(t, (size_t)shares[rank]));
	/* Shares that differ by a little: swingcoll, with the room of the largest for each. */
	for (int r = 0; r < nranks; r++)
		shares[r] = count + !r;
	fill(t, n + 1, 3);
	GOOD(MPI_Reduce_scatter(mine, ours, shares, t->type, op, MPI_COMM_WORLD) == MPI_SUCCESS);
	PMPI_Reduce_scatter(mine, theirs, shares, t->type, op, MPI_COMM_WORLD);
	GOOD(close_enough(t, (size_t)shares[rank]));
	memcpy(ours, mine, (n + 1) * t->size);
	GOOD(MPI_Reduce_scatter(MPI_IN_PLACE, ours, shares, t->type, op, MPI_COMM_WORLD) ==
	     MPI_SUCCESS);
	GOOD(close_enough(t, (size_t)shares[rank]));
	free(shares);
}

static void test_reductions(void)
{
	const struct type types[] = {
		{ "int", MPI_INT, 4, false },
		{ "signed char", MPI_SIGNED_CHAR, 1, false },
		{ "short", MPI_SHORT, 2, false },
		{ "unsigned long", MPI_UNSIGNED_LONG, 8, false, true },
		{ "float", MPI_FLOAT, 4, true },
		{ "double", MPI_DOUBLE, 8, true },
		{ "MPI_INTEGER", MPI_INTEGER, 4, false },
		{ "MPI_DOUBLE_PRECISION", MPI_DOUBLE_PRECISION, 8, true },
	};
	const MPI_Op ops[] = { MPI_SUM,	 MPI_PROD, MPI_MIN,  MPI_MAX,
			       MPI_BAND, MPI_BXOR, MPI_LAND, MPI_LXOR };

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		const struct type *t = &types[i];

		if (quick && i % 4) {
			skip(t->name, "quick");
			continue;
		}

		/* MPI defines logical operations for integers of C. */
		for (size_t o = 0; o < (t->is_float ? 4u : t->type == MPI_INTEGER ? 6u : 8u); o++)
			for (size_t n = 0; n < 5; n++)
				try_allreduce(t, ops[o], counts[n], n & 1);
		for (size_t n = 0; n < 4; n++) {
			/* In place to another root, MPICH 4.0 crashes itself. */
			try_reduce(t, MPI_SUM, counts[n], 0);
			try_reduce_scatter(t, MPI_SUM, counts[n]);
		}
		report("%s: Allreduce, Reduce, Reduce_scatter", t->name);
	}
}

/*
 * Sums of floats whose every bit depends on the order: that of the ranks, which this rank computes as well. Integers
 * agree with MPI's. Exscan leaves rank 0's buffer alone.
 */
static void test_scan(void)
{
	float *parts = calloc(1000 * (size_t)nranks, sizeof(*parts)), want[1000] = { 0 };

	for (int i = 0; i < 4; i++) {
		const struct type floats = { "", MPI_FLOAT, 4, true },
				  ints = { "", MPI_INT, 4, false };
		int n = counts[i];
		size_t bytes = (size_t)n * 4;

		fill(&floats, (size_t)n, 2);
		PMPI_Allgather(mine, n, MPI_FLOAT, parts, n, MPI_FLOAT, MPI_COMM_WORLD);
		for (int r = 0; r <= rank; r++)
			for (int k = 0; k < n; k++)
				want[k] = r ? want[k] + parts[r * n + k] : parts[k];
		memset(ours, 1, bytes);
		GOOD(MPI_Scan(mine, ours, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
		GOOD(!memcmp(ours, want, bytes));
		memcpy(ours, mine, bytes);
		GOOD(MPI_Scan(MPI_IN_PLACE, ours, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) ==
		     MPI_SUCCESS);
		GOOD(!memcmp(ours, want, bytes));

		fill(&ints, (size_t)n, 4);
		memset(ours, 1, bytes);
		memset(theirs, 1, bytes);
		GOOD(MPI_Exscan(mine, ours, n, MPI_INT, MPI_PROD, MPI_COMM_WORLD) == MPI_SUCCESS);
		PMPI_Exscan(mine, theirs, n, MPI_INT, MPI_PROD, MPI_COMM_WORLD);
		GOOD(!memcmp(ours, theirs, bytes));
		memcpy(ours, mine, bytes);
		GOOD(MPI_Exscan(MPI_IN_PLACE, ours, n, MPI_INT, MPI_LAND, MPI_COMM_WORLD) ==
		     MPI_SUCCESS);
		PMPI_Exscan(mine, theirs, n, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
		GOOD(!memcmp(ours, rank ? theirs : mine, bytes));
	}
	/* More than it pays for. */
	memset(mine, 0, ROOM);
	GOOD(MPI_Scan(mine, ours, ROOM / 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
	free(parts);
	report("Scan, Exscan, also in place");
}

/* Elements that are not 0 or 1, complex numbers, and pairs, which MPI does itself. */
static void test_odd_types(void)
{
	double z[4] = { rank, 1, -rank, 2 }, sum[4], theirs_z[4];
	struct {
		double v;
		int r;
	} place = { -rank, rank }, least, theirs_least;
	long double l = rank, l_sum = 0;

	GOOD(MPI_Allreduce(z, sum, 2, MPI_C_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD) ==
	     MPI_SUCCESS);
	PMPI_Allreduce(z, theirs_z, 2, MPI_C_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD);
	GOOD(!memcmp(sum, theirs_z, sizeof(sum)));
	GOOD(MPI_Allreduce(&place, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD) ==
	     MPI_SUCCESS);
	PMPI_Allreduce(&place, &theirs_least, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
	GOOD(least.v == theirs_least.v && least.r == theirs_least.r);
	GOOD(MPI_Allreduce(&l, &l_sum, 1, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
	GOOD(l_sum == nranks * (nranks - 1) / 2);
	report("complex numbers, MINLOC, long double");
}

static void largest(void *in, void *acc, int *n, MPI_Datatype *type)
{
	(void)type;
	for (int i = 0; i < *n; i++)
		if (((int *)in)[i] > ((int *)acc)[i])
			((int *)acc)[i] = ((int *)in)[i];
}

static void test_user_op(void)
{
	int v = rank * 3, max = -1;
	MPI_Op op;

	MPI_Op_create(largest, 1, &op);
	for (int i = 0; i < 8; i++)
		GOOD(MPI_Allreduce(&v, &max, 1, MPI_INT, op, MPI_COMM_WORLD) == MPI_SUCCESS);
	GOOD(max == 3 * (nranks - 1));
	MPI_Op_free(&op);
	report("an operation of the user's");
}

/* ---- movements ---- */

/* Each rank has the same numbers in another layout: contiguous, with gaps, in blocks of one type. */
static MPI_Datatype layout(int kind, int n)
{
	MPI_Datatype t;

	if (kind == 0)
		MPI_Type_contiguous(n, MPI_INT, &t);
	else if (kind == 1)
		MPI_Type_vector(n, 1, 2, MPI_INT, &t);
	else
		MPI_Type_create_indexed_block(1, n, (int[]){ 3 }, MPI_INT, &t);
	MPI_Type_commit(&t);
	return t;
}

/* Several of a Fortran type that MPI makes for a precision or a range, and keeps. */
static void try_f90_types(void)
{
	MPI_Datatype f90[3], several;
	int size;

	MPI_Type_create_f90_real(6, 30, &f90[0]);
	MPI_Type_create_f90_complex(6, 30, &f90[1]);
	MPI_Type_create_f90_integer(4, &f90[2]);
	for (int i = 0; i < 3; i++) {
		MPI_Type_contiguous(10, f90[i], &several);
		MPI_Type_commit(&several);
		MPI_Type_size(several, &size);
		for (int round = 1; round <= 2; round++) {
			memset(ours, rank ? -1 : round, (size_t)size);
			GOOD(MPI_Bcast(ours, 1, several, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
			GOOD(ours[0] == round && ours[size - 1] == round);
		}
		MPI_Type_free(&several);
	}
}

static void test_bcast(void)
{
	for (size_t i = 0; i < 5; i++)
		for (int root = 0; root < nranks; root++) {
			int n = counts[i], first = root * 100 + n;
			MPI_Datatype t = layout(rank % 3, n ? n : 1);
			int *v = calloc(2 * (size_t)n + 4, sizeof(*v));
			int at = rank % 3 == 2 ? 3 : 0, step = rank % 3 == 1 ? 2 : 1, bad = 0;

			for (int k = 0; k < n && rank == root; k++)
				v[at + k * step] = first + k;
			GOOD(MPI_Bcast(v, !!n, t, root, MPI_COMM_WORLD) == MPI_SUCCESS);
			for (int k = 0; k < n; k++)
				bad += v[at + k * step] != first + k;
			for (int k = 0; k < n && step == 2; k++)
				bad += v[2 * k + 1] != 0;
			GOOD(!bad);
			MPI_Type_free(&t);
			free(v);
		}
	try_f90_types();
	report("Bcast, another layout on each rank");
}

static void test_shares(void)
{
	for (size_t i = 0; i < 4; i++) {
		int n = counts[i];
		size_t share = (size_t)n * 4, all = share * (size_t)nranks;
		const struct type t = { "", MPI_INT, 4, false };

		fill(&t, (size_t)n * (size_t)nranks, 9);
		memset(ours, 1, all);
		GOOD(MPI_Allgather(mine, n, MPI_INT, ours, n, MPI_INT, MPI_COMM_WORLD) ==
		     MPI_SUCCESS);
		PMPI_Allgather(mine, n, MPI_INT, theirs, n, MPI_INT, MPI_COMM_WORLD);
		GOOD(!memcmp(ours, theirs, all));
		memset(ours, 1, all);
		memcpy(ours + (size_t)rank * share, mine, share);
		GOOD(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, ours, n, MPI_INT,
				   MPI_COMM_WORLD) == MPI_SUCCESS);
		GOOD(!memcmp(ours, theirs, all));
		memset(ours, 1, all);
		GOOD(MPI_Alltoall(mine, n, MPI_INT, ours, n, MPI_INT, MPI_COMM_WORLD) ==
		     MPI_SUCCESS);
		PMPI_Alltoall(mine, n, MPI_INT, theirs, n, MPI_INT, MPI_COMM_WORLD);
		GOOD(!memcmp(ours, theirs, all));
		memcpy(ours, mine, all);
		GOOD(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, ours, n, MPI_INT,
				  MPI_COMM_WORLD) == MPI_SUCCESS);
		GOOD(!memcmp(ours, theirs, all));
	}
	report("Allgather, Alltoall, also in place");
}

/* From and to every root: plain, in place there, and with gaps on one side. */
static void test_rooted_shares(void)
{
	MPI_Datatype gaps;

	MPI_Type_vector(2, 1, 2, MPI_INT, &gaps);
	MPI_Type_commit(&gaps);
	for (int i = 0; i < 4 * nranks; i++) {
		int n = 2 * counts[i / nranks], root = i % nranks;
		size_t share = (size_t)n * 4, all = share * (size_t)nranks;
		const struct type t = { "", MPI_INT, 4, false };
		bool here = rank == root;

		fill(&t, (size_t)n * (size_t)nranks, 11);
		memset(ours, 1, all);
		memset(theirs, 1, all);
		GOOD(MPI_Gather(mine, n, MPI_INT, here ? ours : NULL, here ? n : -1,
				here ? MPI_INT : MPI_DATATYPE_NULL, root,
				MPI_COMM_WORLD) == MPI_SUCCESS);
		PMPI_Gather(mine, n, MPI_INT, theirs, n, MPI_INT, root, MPI_COMM_WORLD);
		GOOD(!memcmp(ours, theirs, all));
		memset(ours, 1, all);
		if (here)
			memcpy(ours + (size_t)rank * share, mine, share);
		GOOD(MPI_Gather(here ? MPI_IN_PLACE : mine, n, MPI_INT, ours, n, MPI_INT, root,
				MPI_COMM_WORLD) == MPI_SUCCESS);
		GOOD(!memcmp(ours, theirs, all));
		/* The elements of the others come from places with gaps. */
		memset(ours, 1, all);
		memset(theirs, 1, all);
		GOOD(MPI_Gather(mine, here ? n : n / 2, here ? MPI_INT : gaps, ours, n, MPI_INT,
				root, MPI_COMM_WORLD) == MPI_SUCCESS);
		PMPI_Gather(mine, here ? n : n / 2, here ? MPI_INT : gaps, theirs, n, MPI_INT, root,
			    MPI_COMM_WORLD);
		GOOD(!memcmp(ours, theirs, all));

		memset(ours, 1, share);
		GOOD(MPI_Scatter(here ? mine : NULL, here ? n : -1,
				 here ? MPI_INT : MPI_DATATYPE_NULL, ours, n, MPI_INT, root,
				 MPI_COMM_WORLD) == MPI_SUCCESS);
		PMPI_Scatter(mine, n, MPI_INT, theirs, n, MPI_INT, root, MPI_COMM_WORLD);
		GOOD(!memcmp(ours, theirs, share));
		memset(ours, 1, share);
		GOOD(MPI_Scatter(mine, n, MPI_INT, here ? MPI_IN_PLACE : ours, n, MPI_INT, root,
				 MPI_COMM_WORLD) == MPI_SUCCESS);
		GOOD(here || !memcmp(ours, theirs, share));
		/* On root they go to places with gaps. */
		memset(ours, 1, 2 * share);
		memset(theirs, 1, 2 * share);
		GOOD(MPI_Scatter(mine, n, MPI_INT, ours, here ? n / 2 : n, here ? gaps : MPI_INT,
				 root, MPI_COMM_WORLD) == MPI_SUCCESS);
		PMPI_Scatter(mine, n, MPI_INT, theirs, here ? n / 2 : n, here ? gaps : MPI_INT,
			     root, MPI_COMM_WORLD);
		GOOD(!memcmp(ours, theirs, 2 * share));
	}
	MPI_Type_free(&gaps);
	report("Gather, Scatter, also in place, and with gaps");
}

/*
 * Rank 0 wants the shares in reverse order, with gaps. They are equal, nearly equal, of which swingcoll makes equal
 * ones, and one rank has all; the last rank's type has two elements where those of others have one.
 */
static void test_allgatherv(void)
{
	int *displs = calloc((size_t)nranks, sizeof(*displs)),
	    *shares = calloc((size_t)nranks, sizeof(*shares));
	const struct type t = { "", MPI_INT, 4, false };
	int unit = rank == nranks - 1 ? 2 : 1;
	MPI_Datatype type;

	MPI_Type_contiguous(unit, MPI_INT, &type);
	MPI_Type_commit(&type);
	for (int kind = 0; kind < 4; kind++) {
		bool in_place = kind == 2;

		for (int r = 0; r < nranks; r++) {
			shares[r] = (kind == 0	? 6
				     : kind < 3 ? 6 - 2 * (r == 1)
				     : r	? 0
						: 6) /
				    unit;
			displs[r] = (rank ? r * 6 : (nranks - 1 - r) * 8) / unit;
		}
		fill(&t, 6, 2);
		memset(ours, 7, 4096);
		memset(theirs, 7, 4096);
		if (in_place)
			memcpy(ours + (size_t)displs[rank] * (size_t)unit * 4, mine,
			       (size_t)shares[rank] * (size_t)unit * 4);
		GOOD(MPI_Allgatherv(in_place ? MPI_IN_PLACE : mine, shares[rank], type, ours,
				    shares, displs, type, MPI_COMM_WORLD) == MPI_SUCCESS);
		PMPI_Allgatherv(mine, shares[rank], type, theirs, shares, displs, type,
				MPI_COMM_WORLD);
		GOOD(!memcmp(ours, theirs, 4096));
	}
	MPI_Type_free(&type);
	free(displs);
	free(shares);
	report("Allgatherv, another order on each rank");
}

/*
 * Calls of a plain type that are repeated: with equal shares and others, wherever they are wanted, with empty ones, in
 * place on a rank whose turn it is, and from a longer type.
 */
static void test_allgatherv_again(void)
{
	const struct type t = { "", MPI_SHORT, 2, false };
	int *displs = calloc((size_t)nranks, sizeof(*displs)),
	    *shares = calloc((size_t)nranks, sizeof(*shares));

	for (int i = 0; i < 24; i++) {
		bool uneven = i & 1, gaps = i & 2, in_place = i % (nranks + 1) == rank;
		bool longer = i % 5 == rank && !in_place;

		for (int r = 0; r < nranks; r++) {
			shares[r] = uneven ? (r < nranks - 1 ? 10 : nranks > 2 ? 0 : 4) : 12;
			displs[r] = gaps ? (nranks - 1 - r) * 15 : r * 12;
		}
		fill(&t, 12, i);
		memset(ours, i, 4096);
		memset(theirs, i, 4096);
		if (in_place)
			memcpy(ours + (size_t)displs[rank] * 2, mine, (size_t)shares[rank] * 2);
		GOOD(MPI_Allgatherv(in_place ? MPI_IN_PLACE : mine,
				    longer ? shares[rank] / 2 : shares[rank],
				    longer ? MPI_INT : MPI_SHORT, ours, shares, displs, MPI_SHORT,
				    MPI_COMM_WORLD) == MPI_SUCCESS);
		PMPI_Allgatherv(mine, shares[rank], MPI_SHORT, theirs, shares, displs, MPI_SHORT,
				MPI_COMM_WORLD);
		GOOD(!memcmp(ours, theirs, 4096));
	}
	free(displs);
	free(shares);
	report("Allgatherv of a plain type, again and again");
}

/* ---- what one rank alone does ---- */

static const double constant[40000] = { 1, 2, 3 };

static void test_buffers(void)
{
	double *sum = malloc(sizeof(constant) + 8), *at = sum;
	double *const mine_d = malloc(sizeof(constant) + 8);
	const void *from = constant;

	/* The last rank's buffers are not aligned, rank 0 sends what cannot be written. */
	if (rank) {
		from = memcpy((char *)mine_d + (rank == nranks - 1), constant, sizeof(constant));
		at = (double *)((char *)sum + (rank == nranks - 1));
	}
	for (int n = 3; n <= 40000; n += 39997) {
		double r[3];

		GOOD(MPI_Allreduce(from, at, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD) ==
		     MPI_SUCCESS);
		memcpy(r, at, sizeof(r));
		GOOD(r[0] == nranks && r[1] == 2 * nranks && r[2] == 3 * nranks);
	}
	free(sum);
	free(mine_d);
	report("buffers that are not aligned, or read-only, on one rank");
}

/* ---- the same calls again and again ---- */

#define INTS 3

/* How a rank's buffers lie in a call: each rank for itself. */
enum lie {
	APART,
	UNALIGNED,
	IN_PLACE,
	DERIVED, /* one element of a type of three */
	LIES
};

/* Three numbers that tell who has sent them, and when. */
static void put(void *to, int who, int when)
{
	const int v[INTS] = { who, when, who * 1000 + when };

	memcpy(to, v, sizeof(v));
}

static bool is(const void *from, int who, int when)
{
	int v[INTS];

	put(v, who, when);
	return !memcmp(from, v, sizeof(v));
}

static bool is_sum(const void *from, int when)
{
	const int who = nranks * (nranks - 1) / 2, all = nranks * when;
	const int sum[INTS] = { who, all, who * 1000 + all };

	return !memcmp(from, sum, sizeof(sum));
}

static void try_reductions(int i, enum lie lie)
{
	size_t shift = lie == UNALIGNED;
	/* MPICH 4.0 fails in a reduction to another root than 0 that is in place. */
	bool in_place = lie == IN_PLACE, root = !rank;
	char *to = ours + shift, *from = mine + shift;

	put(in_place ? to : from, rank, i);
	MPI_Allreduce(in_place ? MPI_IN_PLACE : from, to, INTS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	GOOD(is_sum(to, i));
	in_place = in_place && root;
	put(in_place ? to : from, rank, i + 1);
	MPI_Reduce(in_place ? MPI_IN_PLACE : from, to, INTS, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	GOOD(!root || is_sum(to, i + 1));
}

static void try_shares(int i, enum lie lie, MPI_Datatype three)
{
	const size_t size = INTS * sizeof(int);
	int n = lie == DERIVED ? 1 : INTS, root = i % nranks;
	MPI_Datatype type = lie == DERIVED ? three : MPI_INT;
	char *own = ours + (size_t)rank * size;
	bool in_place = lie == IN_PLACE;

	put(in_place ? own : mine, rank, i);
	MPI_Allgather(in_place ? MPI_IN_PLACE : mine, n, type, ours, INTS, MPI_INT, MPI_COMM_WORLD);
	for (int r = 0; r < nranks; r++)
		GOOD(is(ours + (size_t)r * size, r, i));

	memset(ours, 0, (size_t)nranks * size);
	in_place = in_place && rank == root;
	put(in_place ? own : mine, rank, i + 1);
	MPI_Gather(in_place ? MPI_IN_PLACE : mine, INTS, MPI_INT, ours, n, type, root,
		   MPI_COMM_WORLD);
	for (int r = 0; rank == root && r < nranks; r++)
		GOOD(is(ours + (size_t)r * size, r, i + 1));

	for (int r = 0; r < nranks; r++)
		put(mine + (size_t)r * size, r, i);
	memset(ours, 0, (size_t)nranks * size);
	MPI_Scatter(mine, n, type, in_place ? MPI_IN_PLACE : ours, INTS, MPI_INT, root,
		    MPI_COMM_WORLD);
	GOOD(in_place || is(ours, rank, i));

	for (int r = 0; r < nranks; r++)
		put(mine + (size_t)r * size, rank + 10 * r, i);
	MPI_Alltoall(mine, n, type, ours, INTS, MPI_INT, MPI_COMM_WORLD);
	for (int r = 0; r < nranks; r++)
		GOOD(is(ours + (size_t)r * size, r + 10 * rank, i));

	put(mine, rank, i);
	MPI_Bcast(mine, INTS, MPI_INT, root, MPI_COMM_WORLD);
	GOOD(is(mine, root, i));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void test_repeated(void)
{
	MPI_Datatype three;

	MPI_Type_contiguous(INTS, MPI_INT, &three);
	MPI_Type_commit(&three);
	for (int i = 0; i < 60; i++) {
		try_reductions(i, (enum lie)((i * 7 + rank) % LIES));
		try_shares(i, (enum lie)((i * 5 + rank) % LIES), three);
	}
	MPI_Type_free(&three);
	report("the same calls again and again, with buffers that lie in other ways");

	/* MPI may give the second communicator the handle of the first. */
	for (int i = 0; i < 4; i++) {
		MPI_Comm comm;
		int me, n = nranks, r = -1;

		MPI_Comm_split(MPI_COMM_WORLD, 0, i & 1 ? -rank : rank, &comm);
		MPI_Comm_rank(comm, &me);
		for (int k = 0; k < 3; k++) {
			r = rank;
			MPI_Bcast(&r, 1, MPI_INT, 0, comm);
			GOOD(r == (i & 1 ? n - 1 : 0));
			MPI_Gather(&rank, 1, MPI_INT, ours, 1, MPI_INT, 0, comm);
			for (int at = 0; !me && at < n; at++)
				GOOD(((int *)ours)[at] == (i & 1 ? n - 1 - at : at));
		}
		MPI_Comm_free(&comm);
	}
	report("the same calls on communicators that come after each other");
}

/* ---- measurements ---- */

/* Whether swingcoll carries these calls out is measured for each kind of them; the counters tell. */
static void test_trials(void)
{
	int *displs = calloc((size_t)nranks, sizeof(*displs)),
	    *shares = calloc((size_t)nranks, sizeof(*shares));

	for (int kind = 0; kind < 3; kind++) {
		for (int r = 0; r < nranks; r++) {
			shares[r] = 1000 - 100 * (kind == 2 && !r);
			displs[r] = r * 1000;
		}
		memset(mine, rank + 1, 1000);
		for (int i = 0; i < 20; i++) {
			be_late(rank > 0);
			if (kind)
				MPI_Allgatherv(mine, shares[rank], MPI_BYTE, ours, shares, displs,
					       MPI_BYTE, MPI_COMM_WORLD);
			else
				MPI_Allgather(mine, 1000, MPI_BYTE, ours, 1000, MPI_BYTE,
					      MPI_COMM_WORLD);
			for (int r = 0; r < nranks; r++)
				GOOD(ours[displs[r]] == r + 1 &&
				     ours[displs[r] + shares[r] - 1] == r + 1);
			memset(ours, 0, (size_t)nranks * 1000);
		}
	}
	free(displs);
	free(shares);
	report("Allgather, Allgatherv with equal and with uneven shares, many times");
}

/* C libraries have such functions of their own, of another meaning. */
static void test_names(void)
{
	GOOD(!dlsym(RTLD_DEFAULT, "mpi_allreduce") && !dlsym(RTLD_DEFAULT, "mpi_wait"));
	report("names that C libraries use are theirs");
}

int main(int argc, char **argv)
{
	bool trials = argc > 1 && !strcmp(argv[1], "trials");

	MPI_Init(&argc, &argv);
	begin_tests(trials ? 1 : 20);
	quick = argc > 1;
	mine = calloc(1, ROOM);
	ours = calloc(1, ROOM);
	theirs = calloc(1, ROOM);
	if (trials) {
		test_trials();
	} else {
		test_reductions();
		test_scan();
		test_odd_types();
		test_user_op();
		test_bcast();
		test_shares();
		test_rooted_shares();
		test_allgatherv();
		test_allgatherv_again();
		test_buffers();
		test_repeated();
		test_names();
	}
	free(mine);
	free(ours);
	free(theirs);
	return end_tests();
}
