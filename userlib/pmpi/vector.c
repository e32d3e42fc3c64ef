// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Collectives whose counts not all ranks know: MPI_Gatherv() and MPI_Scatterv(), where only the root
 * has them, and MPI_Alltoallv() and MPI_Alltoallw(), where each rank has its own.
 *
 * The ranks tell each other first, by an allreduce of some words, for which all of them have to be
 * in the call anyway. What follows depends on those words alone, and so is the same on all ranks:
 * swingcoll carries the call out, or, as after an argument that MPI has to refuse, MPI does. Whether
 * a call begins so at all depends on the function and the communicator: it is measured like the
 * size classes of other collectives, with what the words cost, and begun anew with smaller sizes.
 *
 * Gather and scatter of swingcoll take a count for each rank. Its all-to-all does not: shares get
 * the room of the largest one, headed by their length unless all are equal.
 *
 * A nonblocking call takes the same steps one after the other, in progress.c's polls. When the ranks
 * have told each other, it is too late to call MPI on the communicator, where all ranks' calls must be
 * in the same order: MPI then moves the shares by messages (messages.c). They are sent in the order in
 * which the ranks tell, and that is the order of the calls, as one begins to tell when the one before it
 * has begun to move (requests.c).
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
 * have passed something that MPI has to refuse. If a word is too large, the sum means nothing.
 */
struct told {
	uint64_t *words;
	uint64_t *sum;
	uint64_t *refusals;
	uint64_t largest; /* of the words; set when all have told */
	uint64_t room;	  /* of a share of an all-to-all, with its header */
};

/* ---- sides ---- */

static MPI_Datatype type_of(const struct pmpi_side *s, int r)
{
	return s->types ? s->types[r] : s->type;
}

/* False if MPI must refuse it. */
static bool bytes_of(const struct pmpi_side *s, int r, uint64_t *bytes)
{
	MPI_Count count = pmpi_count_of(s, r);

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
	MPI_Count count = pmpi_count_of(s, r);
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
		if (!bytes_of(sending_side(v), r, &bytes) || !bytes_of(&v->recv, r, &unused))
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
		if (!bytes_of(side, r, &bytes))
			return false;
		if (!gather || (r == c->root && own->buf == MPI_IN_PLACE))
			t->words[r] = bytes;
	}
	if (root && own->buf == MPI_IN_PLACE)
		return true;
	if (!bytes_of(own, 0, &bytes))
		return false;
	if (gather)
		t->words[c->comm->rank] = bytes;
	return true;
}

static size_t count_words(const struct pmpi_vector *v)
{
	return (size_t)v->call.comm->size + 2;
}

static bool allocate_words(const struct pmpi_vector *v, struct told *t)
{
	t->words = calloc(count_words(v), sizeof(*t->words));
	if (!t->words)
		return false;
	t->sum = t->words + v->call.comm->size;
	t->refusals = t->sum + 1;
	return true;
}

/* This rank's contribution; false: MPI has to refuse its arguments. */
static bool fill_words(const struct pmpi_vector *v, struct told *t)
{
	if (is_alltoall(v) ? tell_alltoall(v, t) : tell_rooted(v, t))
		return true;
	memset(t->words, 0, count_words(v) * sizeof(*t->words));
	*t->refusals = 1;
	return false;
}

static int tell(struct pmpi_vector *v, struct told *t)
{
	int error;

	fill_words(v, t);
	while ((error = swingcoll_allreduce(t->words, t->words, count_words(v), SWINGCOLL_U64,
					    SWINGCOLL_SUM, v->call.comm->swc)) == -EAGAIN)
		pmpi_progress(NULL);
	return error;
}

/* Now the ranks know alike: is swingcoll to carry it out? Else why not. */
static bool suits(struct pmpi_vector *v, struct told *t, enum pmpi_form form, enum pmpi_reason *why)
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
	/* What is measured changes between calls of the program only: that is the same on all ranks. */
	if (form == PMPI_FORM_BLOCKING)
		pmpi_told(&v->call, t->largest);
	*why = PMPI_WHY_SMALL;
	if ((int64_t)t->largest < pmpi_world.min)
		return false;
	*why = PMPI_WHY_COUNTS;
	return !is_alltoall(v) || equal || all < 2 * *t->sum;
}

/*
 * Buffers for swingcoll: the caller's, or copies. @all: root's, or of an all-to-all what arrives; @own:
 * this rank's share, or what it sends. @place: of root's share within all.
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

/* ---- gatherv and scatterv ---- */

/* Root's side. If it is what is sent, it must be as it is at swingcoll's disposal. */
static int prepare_all(struct buffers *b, const struct pmpi_vector *v, const struct told *t)
{
	const struct pmpi_call *c = &v->call;
	const struct pmpi_side *side = roots_side(v);
	bool sends = c->coll == SWINGCOLL_SCATTER;

	b->all = find_in_order(side, c->comm->size, t->words);
	if (b->all && !(sends && pmpi_must_copy(c, b->all, *t->sum)) &&
	    !pmpi_must_keep(c, b->all, *t->sum))
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
	    !(sends && pmpi_must_copy(c, b->own, bytes)) && !pmpi_must_keep(c, b->own, bytes))
		return MPI_SUCCESS;
	b->own = b->own_copy = malloc(bytes);
	if (!b->own)
		return MPI_ERR_NO_MEM;
	return sends ? copy_share(true, side, 0, bytes, b->own) : MPI_SUCCESS;
}

static int prepare_rooted(struct buffers *b, const struct pmpi_vector *v, const struct told *t)
{
	const struct pmpi_call *c = &v->call;
	int ret = MPI_SUCCESS;

	for (int r = 0; r < c->root; r++)
		b->place += t->words[r];
	if (c->comm->rank == c->root)
		ret = prepare_all(b, v, t);
	return ret == MPI_SUCCESS ? prepare_own(b, v, t) : ret;
}

/* Results to the caller's buffers. */
static int deliver_rooted(const struct buffers *b, const struct pmpi_vector *v,
			  const struct told *t)
{
	const struct pmpi_call *c = &v->call;

	if (c->coll == SWINGCOLL_SCATTER)
		return b->own_copy ? copy_share(false, own_side(v), 0, t->words[c->comm->rank],
						b->own_copy)
				   : MPI_SUCCESS;
	return b->all_copy ? copy_shares(false, roots_side(v), c->comm->size, t->words, b->all_copy)
			   : MPI_SUCCESS;
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
static int prepare_alltoall(struct buffers *b, const struct pmpi_vector *v, struct told *t)
{
	const struct pmpi_call *c = &v->call;
	int n = c->comm->size;
	uint64_t bytes = (uint64_t)n * t->room;

	if (t->room == t->largest) {
		for (int r = 0; r < n; r++)
			t->words[r] = t->largest;
		b->own = find_in_order(sending_side(v), n, t->words);
		b->all = find_in_order(&v->recv, n, t->words);
		if (b->all && pmpi_must_keep(c, b->all, bytes))
			b->all = NULL;
		if (b->own &&
		    (pmpi_must_copy(c, b->own, bytes) || pmpi_must_keep(c, b->own, bytes) ||
		     (v->send.buf != MPI_IN_PLACE &&
		      overlap(b->own, bytes, b->all, b->all ? bytes : 0))))
			b->own = NULL;
	}
	if (!b->all)
		b->all = b->all_copy = malloc(bytes);
	if (!b->all)
		return MPI_ERR_NO_MEM;
	if (b->own)
		return MPI_SUCCESS;
	b->own = b->own_copy = calloc((size_t)n, t->room);
	return b->own ? fill_rooms(v, t, b->own) : MPI_ERR_NO_MEM;
}

/* ---- movement ---- */

static int prepare(struct buffers *b, const struct pmpi_vector *v, struct told *t)
{
	return is_alltoall(v) ? prepare_alltoall(b, v, t) : prepare_rooted(b, v, t);
}

static int deliver(const struct buffers *b, const struct pmpi_vector *v, const struct told *t)
{
	if (!is_alltoall(v))
		return deliver_rooted(b, v, t);
	return b->all_copy ? empty_rooms(v, t, b->all_copy) : MPI_SUCCESS;
}

static int move(const struct buffers *b, const struct pmpi_call *c, const struct told *t)
{
	struct swingcoll_comm *swc = c->comm->swc;

	if (c->coll == SWINGCOLL_GATHER)
		return swingcoll_gatherv(b->own, b->all, t->words, SWINGCOLL_U8, c->root, swc);
	if (c->coll == SWINGCOLL_SCATTER)
		return swingcoll_scatterv(b->all, b->own, t->words, SWINGCOLL_U8, c->root, swc);
	return swingcoll_alltoall(b->own, b->all, t->room, SWINGCOLL_U8, swc);
}

static int start_moving(const struct buffers *b, const struct pmpi_call *c, const struct told *t,
			struct swingcoll_req **req)
{
	struct swingcoll_comm *swc = c->comm->swc;

	if (c->coll == SWINGCOLL_GATHER)
		return swingcoll_igatherv(b->own, b->all, t->words, SWINGCOLL_U8, c->root, swc,
					  req);
	if (c->coll == SWINGCOLL_SCATTER)
		return swingcoll_iscatterv(b->all, b->own, t->words, SWINGCOLL_U8, c->root, swc,
					   req);
	return swingcoll_ialltoall(b->own, b->all, t->room, SWINGCOLL_U8, swc, req);
}

/* An error of swingcoll, or *ret is one of MPI. */
static int prepare_and_move(const struct pmpi_vector *v, struct told *t, int *ret)
{
	struct buffers b = { 0 };
	int error = 0;

	*ret = prepare(&b, v, t);
	while (*ret == MPI_SUCCESS && (error = move(&b, &v->call, t)) == -EAGAIN)
		pmpi_progress(NULL);
	if (*ret == MPI_SUCCESS && !error)
		*ret = deliver(&b, v, t);
	free_buffers(&b);
	return error;
}

/* ---- blocking calls ---- */

/* True: swingcoll has carried it out, or there has been an error, *ret. */
static bool run(struct pmpi_vector *v, struct told *t, int *ret)
{
	struct pmpi_call *c = &v->call;
	enum pmpi_reason why = PMPI_WHY_REFUSED;
	int error = tell(v, t);

	*ret = MPI_SUCCESS;
	if (!error && !suits(v, t, PMPI_FORM_BLOCKING, &why)) {
		pmpi_count_fallback(c->name, why);
		return false;
	}
	/* Without a byte there is nothing to do. */
	if (!error && *t->sum)
		error = prepare_and_move(v, t, ret);
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
	pmpi_carried_out();
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
	if (!allocate_words(v, &t)) {
		*ret = pmpi_error(c, MPI_ERR_NO_MEM);
		return true;
	}
	pmpi_wait_for_queue(c);
	if (c->trial)
		c->began = pmpi_now_ns();
	done = run(v, &t, ret);
	free(t.words);
	return done;
}

/* ---- nonblocking calls ---- */

enum step {
	TELL,
	TELLING,
	MOVE,
	MOVING,
	LEFT, /* to MPI */
};

/*
 * @req: of swingcoll, while TELLING and MOVING; @messages: once LEFT, and their first error. In an
 * all-to-all in place the other buffer is a copy then, too.
 */
struct pmpi_steps {
	struct pmpi_vector v;
	struct told t;
	struct buffers b;
	enum step step;
	struct swingcoll_req *req;
	struct pmpi_messages messages;
	int error;
};

struct pmpi_steps *pmpi_steps_begin(const struct pmpi_vector *v, bool *refused)
{
	struct pmpi_steps *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->v = *v;
	if (!allocate_words(&s->v, &s->t)) {
		free(s);
		return NULL;
	}
	*refused = !fill_words(&s->v, &s->t);
	return s;
}

struct pmpi_vector *pmpi_steps_vector(struct pmpi_steps *s)
{
	return &s->v;
}

void pmpi_steps_end(struct pmpi_steps *s)
{
	pmpi_messages_end(&s->messages);
	free_buffers(&s->b);
	free(s->t.words);
	free(s);
}

bool pmpi_steps_moving(const struct pmpi_steps *s)
{
	return s->step >= MOVING;
}

/* ---- calls left to MPI ---- */

/* Does a share go from one rank to the other? */
static bool is_share(const struct pmpi_vector *v, int from, int to)
{
	const struct pmpi_call *c = &v->call;

	if (is_alltoall(v))
		return true;
	if (c->root != (c->coll == SWINGCOLL_GATHER ? to : from))
		return false;
	return from != to || own_side(v)->buf != MPI_IN_PLACE;
}

/* What arrives in place must not replace what has not been sent. */
static int copy_in_place(struct pmpi_steps *s)
{
	const struct pmpi_side *side = &s->v.recv;
	uint64_t *bytes = s->t.words, sum = 0;
	int n = s->v.call.comm->size;

	for (int r = 0; r < n; r++) {
		if (!bytes_of(side, r, &bytes[r]))
			return MPI_ERR_TYPE;
		sum += bytes[r];
	}
	s->b.own_copy = malloc(sum);
	return s->b.own_copy ? copy_shares(true, side, n, bytes, s->b.own_copy) : MPI_ERR_NO_MEM;
}

/* One that is packed. */
static int make_element(MPI_Datatype type, MPI_Datatype *element)
{
	int size, ret = PMPI_Type_size(type, &size);

	if (ret == MPI_SUCCESS)
		ret = PMPI_Type_contiguous(size, MPI_BYTE, element);
	return ret == MPI_SUCCESS ? PMPI_Type_commit(element) : ret;
}

static int receive_shares(struct pmpi_steps *s)
{
	const struct pmpi_side *side = &s->v.recv;
	const struct pmpi_comm *comm = s->v.call.comm;
	int ret = MPI_SUCCESS, one;
	uint64_t bytes;
	char *place;

	for (int r = 0; r < comm->size; r++) {
		if (!is_share(&s->v, r, comm->rank) || !bytes_of(side, r, &bytes) || !bytes)
			continue;
		one = place_of(side, r, &place);
		if (one == MPI_SUCCESS)
			one = pmpi_messages_receive(&s->messages, place, pmpi_count_of(side, r),
						    type_of(side, r), &comm->peers[r],
						    &comm->peers[comm->rank]);
		ret = ret == MPI_SUCCESS ? one : ret;
	}
	return ret;
}

/* One share, from the copy if there is one. */
static int send_share(struct pmpi_steps *s, const struct pmpi_side *side, int r, char *copy)
{
	const struct pmpi_peer *peer = &s->v.call.comm->peers[r];
	MPI_Datatype type = type_of(side, r);
	char *place = copy;
	int ret = copy ? make_element(type, &type) : place_of(side, r, &place);

	if (ret != MPI_SUCCESS)
		return ret;
	ret = pmpi_messages_send(&s->messages, place, pmpi_count_of(side, r), type, peer);
	if (copy)
		PMPI_Type_free(&type);
	return ret;
}

static int send_shares(struct pmpi_steps *s)
{
	const struct pmpi_side *side = sending_side(&s->v);
	const struct pmpi_comm *comm = s->v.call.comm;
	char *copy = s->b.own_copy;
	int ret = MPI_SUCCESS, one;
	uint64_t bytes;

	for (int r = 0; r < comm->size; r++) {
		if (!is_share(&s->v, comm->rank, r) || !bytes_of(side, r, &bytes) || !bytes)
			continue;
		one = send_share(s, side, r, copy);
		ret = ret == MPI_SUCCESS ? one : ret;
		if (copy)
			copy += bytes;
	}
	return ret;
}

static int leave(struct pmpi_steps *s)
{
	int ret = pmpi_messages_begin(&s->messages, 2 * s->v.call.comm->size), one;

	if (ret == MPI_SUCCESS && is_alltoall(&s->v) && s->v.send.buf == MPI_IN_PLACE)
		ret = copy_in_place(s);
	if (ret != MPI_SUCCESS)
		return ret;
	ret = receive_shares(s);
	one = send_shares(s);
	return ret == MPI_SUCCESS ? one : ret;
}

/* All ranks have told. */
static int decide_step(struct pmpi_steps *s, int *ret)
{
	enum pmpi_reason why;

	if (suits(&s->v, &s->t, PMPI_FORM_NONBLOCKING, &why)) {
		if (!pmpi_is_persistent(&s->v.call))
			pmpi_count(&pmpi_counts[s->v.call.name].offloaded);
		s->step = MOVE;
		*ret = *s->t.sum ? prepare(&s->b, &s->v, &s->t) : MPI_SUCCESS;
		return *s->t.sum && *ret == MPI_SUCCESS ? -EINPROGRESS : 0;
	}
	if (!pmpi_is_persistent(&s->v.call))
		pmpi_count_fallback(s->v.call.name, why);
	s->step = LEFT;
	s->error = leave(s);
	return -EINPROGRESS;
}

static int test_left(struct pmpi_steps *s, int *ret)
{
	bool done = pmpi_messages_test(&s->messages, &s->error);

	*ret = s->error;
	return done ? 0 : -EINPROGRESS;
}

/* -EAGAIN of swingcoll: it takes no more at the moment. */
int pmpi_steps_poll(struct pmpi_steps *s, int *ret)
{
	const struct pmpi_call *c = &s->v.call;
	int error = 0;

	*ret = MPI_SUCCESS;
	if (s->step == LEFT)
		return test_left(s, ret);
	if (s->step == TELL) {
		error = swingcoll_iallreduce(s->t.words, s->t.words, count_words(&s->v),
					     SWINGCOLL_U64, SWINGCOLL_SUM, c->comm->swc, &s->req);
		if (error)
			return error == -EAGAIN ? -EINPROGRESS : error;
		s->step = TELLING;
	}
	if (s->step == TELLING) {
		error = swingcoll_test(s->req, NULL);
		if (!error)
			error = decide_step(s, ret);
		if (error != -EINPROGRESS || s->step != MOVE)
			return error;
	}
	if (s->step == MOVE) {
		error = start_moving(&s->b, c, &s->t, &s->req);
		if (error)
			return error == -EAGAIN ? -EINPROGRESS : error;
		s->step = MOVING;
	}
	error = swingcoll_test(s->req, NULL);
	if (!error)
		*ret = deliver(&s->b, &s->v, &s->t);
	return error;
}
