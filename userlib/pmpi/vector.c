// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Blocking collectives whose counts not all ranks know: MPI_Gatherv() and MPI_Scatterv(), where only
 * the root has them, and MPI_Alltoallv() and MPI_Alltoallw(), where each rank has its own.
 *
 * The ranks tell each other first, by an allreduce of some words, for which all of them have to be
 * in the call anyway. What follows depends on those words alone, and so is the same on all ranks:
 * swingcoll carries the call out, or, as after an argument that MPI has to refuse, MPI does. Whether
 * a call begins so at all depends on the function and the communicator: it is measured like the
 * size classes of other collectives, with what the words cost, and begun anew with smaller sizes.
 *
 * Gather and scatter of swingcoll take a count for each rank. Its all-to-all does not: shares get
 * the room of the largest one, headed by their length unless all are equal.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pmpi/pmpi.h"
#include "pmpi/vector.h"

/* Of a share of an all-to-all: the number of its bytes. */
#define HEADER sizeof(uint64_t)
/* More is refused by swingcoll. In all buffers of a call on a rank. */
#define MOST_BYTES (UINT64_C(1) << 46)

/*
 * What the ranks tell, added up: a word for each rank, of its bytes in a gatherv or scatterv, or of
 * the largest share that it sends in an all-to-all; then the sum of all bytes; then how many ranks
 * have passed something that MPI has to refuse.
 */
struct told {
	uint64_t *words;
	uint64_t *sum;
	uint64_t *refusals;
	uint64_t largest; /* of the words; set when all have told */
	uint64_t room;	  /* of a share of an all-to-all, with its header */
};

/* ---- sides ---- */

static MPI_Count count_of(const struct pmpi_side *s, int r)
{
	if (s->counts)
		return s->counts[r];
	return s->large_counts ? s->large_counts[r] : s->count;
}

static MPI_Datatype type_of(const struct pmpi_side *s, int r)
{
	return s->types ? s->types[r] : s->type;
}

/* False if MPI must refuse it. */
static bool bytes_of(const struct pmpi_side *s, int r, uint64_t *bytes)
{
	MPI_Count count = count_of(s, r);

	*bytes = 0;
	return count > 0 ? pmpi_signature(type_of(s, r), count, bytes) : !count;
}

/* The beginning of a rank's share. Displacements are elements, or bytes if each rank has a type. */
static int place_of(const struct pmpi_side *s, int r, char **place)
{
	MPI_Aint lb, extent = 1, displ = 0;
	int ret = MPI_SUCCESS;

	if (s->displs)
		displ = s->displs[r];
	else if (s->large_displs)
		displ = s->large_displs[r];
	if (displ && !s->types)
		ret = PMPI_Type_get_extent(s->type, &lb, &extent);
	*place = (char *)s->buf + displ * extent;
	return ret;
}

/* Do all shares have these lengths, and lie one after the other? Then the first one's place. */
static char *find_in_order(const struct pmpi_side *s, int n, const uint64_t *bytes)
{
	char *first = NULL, *place;
	uint64_t before = 0, own;

	for (int r = 0; r < n; r++) {
		if (!bytes_of(s, r, &own) || own != bytes[r])
			return NULL;
		if (!own)
			continue;
		if (place_of(s, r, &place) != MPI_SUCCESS || !pmpi_is_plain(type_of(s, r)))
			return NULL;
		if (!before)
			first = place;
		else if (place != first + before)
			return NULL;
		before += own;
	}
	return first;
}

/* Copy a share to or from a packed one, which has so many bytes. */
static int copy_share(bool pack, const struct pmpi_side *s, int r, uint64_t bytes, void *packed)
{
	MPI_Count count = count_of(s, r);
	int ret = MPI_SUCCESS, too_long = MPI_SUCCESS;
	MPI_Datatype type = type_of(s, r);
	uint64_t own;
	char *place;

	if (!bytes)
		return MPI_SUCCESS;
	if (!bytes_of(s, r, &own))
		return MPI_ERR_TYPE;
	/* Programs may offer more than they get. */
	if (own > bytes)
		count = (MPI_Count)(bytes / (own / (uint64_t)count));
	else if (own < bytes)
		too_long = MPI_ERR_TRUNCATE;
	if (count)
		ret = place_of(s, r, &place);
	if (ret == MPI_SUCCESS && count)
		ret = pmpi_repack(pack, place, count, type, packed);
	return ret == MPI_SUCCESS ? too_long : ret;
}

/* Likewise all shares, one after the other. */
static int copy_shares(bool pack, const struct pmpi_side *s, int n, const uint64_t *bytes,
		       char *packed)
{
	int ret = MPI_SUCCESS;

	for (int r = 0; r < n; r++) {
		int one = copy_share(pack, s, r, bytes[r], packed);

		ret = ret == MPI_SUCCESS ? one : ret;
		packed += bytes[r];
	}
	return ret;
}

static bool overlap(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes)
{
	uintptr_t p = (uintptr_t)a, q = (uintptr_t)b;

	return a_bytes && b_bytes && p < q + b_bytes && q < p + a_bytes;
}

/* ---- what the ranks tell ---- */

static bool is_alltoall(const struct pmpi_vector *v)
{
	return v->call.coll == SWINGCOLL_ALLTOALL;
}

/* The side that has counts for all ranks, on the root of a gatherv or scatterv. */
static const struct pmpi_side *roots_side(const struct pmpi_vector *v)
{
	return v->call.coll == SWINGCOLL_GATHER ? &v->recv : &v->send;
}

static const struct pmpi_side *own_side(const struct pmpi_vector *v)
{
	return v->call.coll == SWINGCOLL_GATHER ? &v->send : &v->recv;
}

/* The side that an all-to-all sends. */
static const struct pmpi_side *sending_side(const struct pmpi_vector *v)
{
	return v->send.buf == MPI_IN_PLACE ? &v->recv : &v->send;
}

/* Of both sides here; false: MPI has to refuse one. */
static bool tell_alltoall(const struct pmpi_vector *v, struct told *t)
{
	const struct pmpi_call *c = &v->call;
	uint64_t bytes, unused, *largest = &t->words[c->comm->rank];

	for (int r = 0; r < c->comm->size; r++) {
		if (!bytes_of(sending_side(v), r, &bytes) || !bytes_of(&v->recv, r, &unused) ||
		    bytes > MOST_BYTES)
			return false;
		*t->sum += bytes;
		*largest = bytes > *largest ? bytes : *largest;
	}
	return true;
}

/* The senders know how much they send. */
static bool tell_rooted(const struct pmpi_vector *v, struct told *t)
{
	const struct pmpi_call *c = &v->call;
	const struct pmpi_side *side = roots_side(v), *own = own_side(v);
	bool root = c->comm->rank == c->root, gather = c->coll == SWINGCOLL_GATHER;
	uint64_t bytes;

	for (int r = 0; root && r < c->comm->size; r++) {
		if (!bytes_of(side, r, &bytes) || bytes > MOST_BYTES)
			return false;
		if (!gather || (r == c->root && own->buf == MPI_IN_PLACE))
			t->words[r] = bytes;
	}
	if (root && own->buf == MPI_IN_PLACE)
		return true;
	if (!bytes_of(own, 0, &bytes) || bytes > MOST_BYTES)
		return false;
	if (gather)
		t->words[c->comm->rank] = bytes;
	return true;
}

static int tell(struct pmpi_vector *v, struct told *t)
{
	size_t n = (size_t)v->call.comm->size;
	int error;

	if (!(is_alltoall(v) ? tell_alltoall(v, t) : tell_rooted(v, t))) {
		memset(t->words, 0, (n + 1) * sizeof(*t->words));
		*t->refusals = 1;
	}
	while ((error = swingcoll_allreduce(t->words, t->words, n + 2, SWINGCOLL_U64, SWINGCOLL_SUM,
					    v->call.comm->swc)) == -EAGAIN)
		pmpi_progress(NULL);
	return error;
}

/* Now the ranks know alike: is swingcoll to carry it out? Else why not. */
static bool suits(struct pmpi_vector *v, struct told *t, enum pmpi_reason *why)
{
	uint64_t n = (uint64_t)v->call.comm->size, buffers, all;
	bool equal;

	for (uint64_t r = 0; r < n; r++) {
		t->largest = t->words[r] > t->largest ? t->words[r] : t->largest;
		if (!is_alltoall(v))
			*t->sum += t->words[r];
	}
	*why = PMPI_WHY_COUNTS;
	if (*t->refusals)
		return false;
	*why = PMPI_WHY_REFUSED;
	if (*t->sum > MOST_BYTES || t->largest > MOST_BYTES / n / 2)
		return false;
	/* Below 2^64, as there are at most 2^16 ranks. */
	all = t->largest * n * n;
	equal = all == *t->sum;
	t->room = equal ? t->largest : (t->largest + 2 * HEADER - 1) / HEADER * HEADER;
	buffers = is_alltoall(v) ? 2 * n * t->room : *t->sum + t->largest;
	if (buffers > pmpi_world.pinnable / 2)
		return false;
	pmpi_told(&v->call, t->largest);
	*why = PMPI_WHY_SMALL;
	if ((int64_t)t->largest < pmpi_world.min)
		return false;
	*why = PMPI_WHY_COUNTS;
	return !is_alltoall(v) || equal || all < 2 * *t->sum;
}

/* ---- gatherv and scatterv ---- */

/*
 * Buffers for swingcoll: the caller's, or copies. @all: root's; @own: this rank's share. @place: of
 * root's share within all.
 */
struct buffers {
	char *all, *own;
	char *all_copy, *own_copy;
	uint64_t place;
};

static void free_buffers(struct buffers *b)
{
	free(b->all_copy);
	free(b->own_copy);
}

/* Root's side. If it is what is sent, it must be as it is at swingcoll's disposal. */
static int prepare_all(struct buffers *b, const struct pmpi_vector *v, const struct told *t)
{
	const struct pmpi_call *c = &v->call;
	const struct pmpi_side *side = roots_side(v);
	bool sends = c->coll == SWINGCOLL_SCATTER;

	b->all = find_in_order(side, c->comm->size, t->words);
	if (b->all && !(sends && pmpi_must_copy(c, b->all, *t->sum)))
		return MPI_SUCCESS;
	b->all = b->all_copy = malloc(*t->sum);
	if (!b->all)
		return MPI_ERR_NO_MEM;
	return sends ? copy_shares(true, side, c->comm->size, t->words, b->all) : MPI_SUCCESS;
}

static int prepare_own(struct buffers *b, const struct pmpi_vector *v, const struct told *t)
{
	const struct pmpi_call *c = &v->call;
	const struct pmpi_side *side = own_side(v);
	bool root = c->comm->rank == c->root, sends = c->coll == SWINGCOLL_GATHER;
	uint64_t bytes = t->words[c->comm->rank], room;

	if (!bytes)
		return MPI_SUCCESS;
	if (root && side->buf == MPI_IN_PLACE) {
		b->own = b->all + b->place;
		return sends && b->all_copy
			       ? copy_share(true, roots_side(v), c->root, bytes, b->own)
			       : MPI_SUCCESS;
	}
	b->own = side->buf;
	if (bytes_of(side, 0, &room) && room >= bytes && pmpi_is_plain(side->type) &&
	    !(root && overlap(b->own, bytes, b->all, *t->sum)) &&
	    !(sends && pmpi_must_copy(c, b->own, bytes)))
		return MPI_SUCCESS;
	b->own = b->own_copy = malloc(bytes);
	if (!b->own)
		return MPI_ERR_NO_MEM;
	return sends ? copy_share(true, side, 0, bytes, b->own) : MPI_SUCCESS;
}

/* Results to the caller's buffers. */
static int deliver(const struct buffers *b, const struct pmpi_vector *v, const struct told *t)
{
	const struct pmpi_call *c = &v->call;

	if (c->coll == SWINGCOLL_SCATTER)
		return b->own_copy ? copy_share(false, own_side(v), 0, t->words[c->comm->rank],
						b->own_copy)
				   : MPI_SUCCESS;
	return b->all_copy ? copy_shares(false, roots_side(v), c->comm->size, t->words, b->all_copy)
			   : MPI_SUCCESS;
}

/* An error of swingcoll, or *ret is one of MPI. */
static int run_rooted(const struct pmpi_vector *v, const struct told *t, int *ret)
{
	const struct pmpi_call *c = &v->call;
	struct buffers b = { 0 };
	int error = 0;

	for (int r = 0; r < c->root; r++)
		b.place += t->words[r];
	*ret = c->comm->rank == c->root ? prepare_all(&b, v, t) : MPI_SUCCESS;
	if (*ret == MPI_SUCCESS)
		*ret = prepare_own(&b, v, t);
	while (*ret == MPI_SUCCESS) {
		if (c->coll == SWINGCOLL_GATHER)
			error = swingcoll_gatherv(b.own, b.all, t->words, SWINGCOLL_U8, c->root,
						  c->comm->swc);
		else
			error = swingcoll_scatterv(b.all, b.own, t->words, SWINGCOLL_U8, c->root,
						   c->comm->swc);
		if (error != -EAGAIN)
			break;
		pmpi_progress(NULL);
	}
	if (*ret == MPI_SUCCESS && !error)
		*ret = deliver(&b, v, t);
	free_buffers(&b);
	return error;
}

/* ---- all-to-all ---- */

/* The shares that this rank sends, each in its room. */
static int fill_rooms(const struct pmpi_vector *v, const struct told *t, char *room)
{
	bool headed = t->room != t->largest;
	int ret = MPI_SUCCESS;
	uint64_t bytes;

	for (int r = 0; r < v->call.comm->size && ret == MPI_SUCCESS; r++, room += t->room) {
		if (!bytes_of(sending_side(v), r, &bytes))
			return MPI_ERR_TYPE;
		if (headed)
			memcpy(room, &bytes, HEADER);
		ret = copy_share(true, sending_side(v), r, bytes, room + (headed ? HEADER : 0));
	}
	return ret;
}

static int empty_rooms(const struct pmpi_vector *v, const struct told *t, char *room)
{
	bool headed = t->room != t->largest;
	uint64_t bytes = t->largest;
	int ret = MPI_SUCCESS;

	for (int r = 0; r < v->call.comm->size; r++, room += t->room) {
		int one;

		if (headed)
			memcpy(&bytes, room, HEADER);
		one = copy_share(false, &v->recv, r, bytes, room + (headed ? HEADER : 0));
		ret = ret == MPI_SUCCESS ? one : ret;
	}
	return ret;
}

/* Equal shares need no copies where they lie one after the other. */
static int run_alltoall(const struct pmpi_vector *v, struct told *t, int *ret)
{
	const struct pmpi_call *c = &v->call;
	int n = c->comm->size, error = 0;
	char *send = NULL, *recv = NULL, *send_copy = NULL, *recv_copy = NULL;

	if (t->room == t->largest) {
		for (int r = 0; r < n; r++)
			t->words[r] = t->largest;
		send = find_in_order(sending_side(v), n, t->words);
		recv = find_in_order(&v->recv, n, t->words);
		if (send && (pmpi_must_copy(c, send, *t->sum) ||
			     (v->send.buf != MPI_IN_PLACE &&
			      overlap(send, n * t->room, recv, recv ? n * t->room : 0))))
			send = NULL;
	}
	*ret = MPI_SUCCESS;
	if (!recv)
		recv = recv_copy = malloc((size_t)n * t->room);
	if (!send) {
		send = send_copy = calloc((size_t)n, t->room);
		*ret = send ? fill_rooms(v, t, send) : MPI_ERR_NO_MEM;
	}
	if (!recv)
		*ret = MPI_ERR_NO_MEM;
	while (*ret == MPI_SUCCESS && (error = swingcoll_alltoall(send, recv, t->room, SWINGCOLL_U8,
								  c->comm->swc)) == -EAGAIN)
		pmpi_progress(NULL);
	if (*ret == MPI_SUCCESS && !error && recv_copy)
		*ret = empty_rooms(v, t, recv_copy);
	free(send_copy);
	free(recv_copy);
	return error;
}

/* ---- calls ---- */

/* True: swingcoll has carried it out, or there has been an error, *ret. */
static bool run(struct pmpi_vector *v, struct told *t, int *ret)
{
	struct pmpi_call *c = &v->call;
	enum pmpi_reason why = PMPI_WHY_REFUSED;
	int error = tell(v, t);

	*ret = MPI_SUCCESS;
	if (!error && !suits(v, t, &why)) {
		pmpi_count_fallback(c->name, why);
		return false;
	}
	/* Without a byte there is nothing to do. */
	if (!error && *t->sum)
		error = is_alltoall(v) ? run_alltoall(v, t, ret) : run_rooted(v, t, ret);
	if (c->trial)
		pmpi_passed_trial(c);
	c->trial = NULL;
	if (error && pmpi_was_refused(c, error)) {
		pmpi_count_fallback(c->name, PMPI_WHY_REFUSED);
		return false;
	}
	pmpi_count(&pmpi_counts[c->name].offloaded);
	if (error || *ret != MPI_SUCCESS)
		*ret = pmpi_error(c, error ? error : *ret);
	return true;
}

bool pmpi_offload_vector(struct pmpi_vector *v, int *ret)
{
	struct pmpi_call *c = &v->call;
	struct told t = { 0 };
	bool done;

	if (!pmpi_decide(c, PMPI_FORM_BLOCKING))
		return false;
	c->keep = c->comm->several_nodes;
	t.words = calloc((size_t)c->comm->size + 2, sizeof(*t.words));
	if (!t.words) {
		*ret = pmpi_error(c, MPI_ERR_NO_MEM);
		return true;
	}
	t.sum = t.words + c->comm->size;
	t.refusals = t.sum + 1;
	pmpi_wait_for_queue(c);
	if (c->trial)
		c->began = pmpi_now_ns();
	done = run(v, &t, ret);
	free(t.words);
	return done;
}
