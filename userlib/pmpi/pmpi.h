/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The MPI preload library: MPI's collectives carried out by swingcoll, in programs that know
 * nothing of it. It defines MPI's own names, and calls MPI by the names of the profiling interface
 * (PMPI_). The same sources are compiled for each MPI.
 *
 * The rule that everything here obeys: whether swingcoll or MPI carries a call out must come out
 * alike on all ranks, without a word between them. So it depends only on what MPI requires to be
 * equal: the order of the calls on a communicator, the operation, the root, and the size of the
 * signature in bytes. It never depends on a rank's own handle of a type, count of elements,
 * alignment, or time; a rank whose data lies in another way copies it (layout.c).
 *
 * Map of calls:
 *	fortran -> init, blocking, nonblocking, persistent, vectors, requests, comm
 *	fortran_persistent -> persistent
 *	fortran_completions -> completions, requests
 *	init -> world, comm, types, progress, messages, stats, settings
 *	blocking -> call, catch_up, layout, memos
 *	nonblocking -> requests, vector, call, memos, progress
 *	completions -> requests
 *	persistent -> requests, vector, call, memos
 *	vectors -> vector, call, memos
 *	vector -> call, catch_up, pinned, layout, messages, progress, stats, world
 *	requests -> vector, call, catch_up, pinned, layout, types, comm, progress, stats
 *	call -> pinned, catch_up, layout, types, comm, choose, memos, stats, progress, world, settings
 *	comm -> progress, messages, memos, world
 *	pinned -> layout
 *	layout -> types, progress
 *	world -> memos, settings, progress
 *	messages -> progress, world
 *	catch_up -> progress
 *	progress
 *	types
 *	memos
 *	stats -> memos, settings, world
 *	choose
 *	settings
 */
#ifndef PMPI_PMPI_H
#define PMPI_PMPI_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include <swingcoll.h>

#include "pmpi/choose.h"
#include "pmpi/names.h"

#define PMPI_PUBLIC __attribute__((visibility("default")))

/* What follows is the library's own, and needs no table to be found. */
#pragma GCC visibility push(hidden)

/* ---- world.c ---- */

/**
 * struct pmpi_world - what all ranks of MPI_COMM_WORLD have agreed on in MPI_Init()
 * @active: calls may be offloaded
 * @why: if not, the reason
 * @mask: functions that are offloaded, as bits by enum pmpi_name
 * @min: least size of a call, or PMPI_MEASURE
 * @pinnable: bytes that each rank may lock in memory
 * @engine: MPI's progress engine looks at our requests, whatever the program waits for
 * @rank, @size: of MPI_COMM_WORLD
 * @stats: this rank prints what has become of its calls
 * @group: of MPI_COMM_WORLD
 */
struct pmpi_world {
	bool active;
	enum pmpi_reason why;
	uint64_t mask;
	int64_t min;
	uint64_t pinnable;
	bool engine;
	int rank, size;
	bool stats;
	MPI_Group group;
};

extern struct pmpi_world pmpi_world;

/* Agree with all ranks. After PMPI_Init(). @mask: functions that this rank can offload, as bits. */
void pmpi_world_agree(uint64_t mask);
/* From now on everything is left to MPI. */
void pmpi_world_end(void);

/* ---- memos.c ---- */

/*
 * A call about which everything is decided, by what stays as it is until the communicator is freed: the same
 * call goes the same way at once. Programs repeat their calls: what MPI does itself must not become slower,
 * and small calls of swingcoll cost little more than what is done here. Each thread has a row of memos for
 * each function.
 *
 * @comm: no valid handle: empty. The thread that frees the communicator empties all that have it
 * @hits: calls since it was entered, not yet in @counter
 * @counter: of such calls
 * @offloaded: swingcoll carries them out, on this communicator, with what follows; NULL: MPI does
 * @n: elements, in swingcoll's terms
 * @dtype, @redop, @size: likewise, and bytes of an element
 */
struct pmpi_memo {
	MPI_Comm comm;
	MPI_Datatype type;
	uint64_t op;
	MPI_Count count;
	uint64_t hits;
	uint64_t *counter;
	const struct pmpi_comm *offloaded;
	uint32_t n;
	uint8_t dtype, redop, size;
} __attribute__((aligned(64)));

#define PMPI_ROW_BITS 4
#define PMPI_ROW (1 << PMPI_ROW_BITS)
/* The first row. The thread has none until it remembers a call: then all of these are empty. */
extern __thread struct pmpi_memo *pmpi_memos __attribute__((tls_model("initial-exec")));

#define PMPI_HANDLE(handle) ((uint64_t)(uintptr_t)(handle))

/* The place in the row. */
static inline uint32_t pmpi_memo_slot(MPI_Comm comm, MPI_Count count)
{
	return ((uint32_t)PMPI_HANDLE(comm) + (uint32_t)count) * 0x9e3779b1 >> (32 - PMPI_ROW_BITS);
}

/*
 * The memo of this call, or NULL. op: or 0. For a call that is left to MPI this is nearly all that the
 * library adds, so it has as few instructions as can be. Functions whose count is a constant have one
 * type, and it is the name that decides whether op is used: what is always the same need not be
 * compared.
 */
static inline __attribute__((always_inline)) struct pmpi_memo *
pmpi_recall(enum pmpi_name name, MPI_Comm comm, MPI_Datatype type, MPI_Count count, uint64_t op)
{
	struct pmpi_memo *m = pmpi_memos + pmpi_memo_slot(comm, count);

	/* Or the compiler adds the row's place to the slot, instead of to the offsets below. */
	__asm__("" : "+r"(m));
	m += name * PMPI_ROW;
#define DIFFERS(a, b) __builtin_expect((a) != (b), 0)
	if (DIFFERS(m->comm, comm))
		return NULL;
	if (!__builtin_constant_p(count) && (DIFFERS(m->count, count) || DIFFERS(m->type, type)))
		return NULL;
	if (!(__builtin_constant_p(op) && !op) && DIFFERS(m->op, op))
		return NULL;
#undef DIFFERS
	return m;
}

/* Is the call left to MPI? Then it has been counted. */
static inline __attribute__((always_inline)) bool pmpi_is_passed(struct pmpi_memo *m)
{
	if (__builtin_expect(m->offloaded != NULL, 0))
		return false;
	m->hits++;
	return true;
}

/* Likewise, of functions that need no memo for anything else. */
static inline __attribute__((always_inline)) bool
pmpi_passes(enum pmpi_name name, MPI_Comm comm, MPI_Datatype type, MPI_Count count, uint64_t op)
{
	struct pmpi_memo *m = pmpi_recall(name, comm, type, count, op);

	return m && pmpi_is_passed(m);
}

struct pmpi_call;

/*
 * Let such calls go the same way from now on, until the communicator is forgotten, and count them in
 * *counter. What led to that must stay true for as long. @offloaded: to swingcoll, else to MPI.
 */
void pmpi_remember(const struct pmpi_call *c, bool offloaded, uint64_t *counter);
/*
 * The communicator is freed: its handle may mean another one from now on. Or swingcoll carries out no more
 * calls on it.
 */
void pmpi_memos_forget(MPI_Comm comm);
/* Bring the counters up to date. Meanwhile no other thread may be in a call. */
void pmpi_memos_count(void);

/* ---- stats.c ---- */

struct pmpi_counts {
	uint64_t offloaded;
	uint64_t fallback[PMPI_NR_REASONS];
};

extern struct pmpi_counts pmpi_counts[PMPI_NR_NAMES];
extern bool pmpi_threads; /* several threads may call MPI at once */

static inline void pmpi_count(uint64_t *n)
{
	if (__builtin_expect(pmpi_threads, 0))
		__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
	else
		++*n;
}

static inline void pmpi_count_fallback(enum pmpi_name name, enum pmpi_reason why)
{
	pmpi_count(&pmpi_counts[name].fallback[why]);
}

void pmpi_stats_print(void);

/* ---- types.c ---- */

enum pmpi_kind {
	PMPI_SIGNED,
	PMPI_UNSIGNED,
	PMPI_INTEGER, /* signed, of Fortran or all languages: it has no logical operations */
	PMPI_FLOAT,
	PMPI_COMPLEX, /* two floats */
	PMPI_BOOL,
	PMPI_BYTE,
	PMPI_OPAQUE, /* is moved, but not reduced */
};

/* A type of MPI's own whose elements lie without gaps. */
struct pmpi_type {
	MPI_Datatype handle;
	uint32_t size;
	uint8_t kind;  /* enum pmpi_kind */
	uint8_t words; /* swingcoll elements in one of MPI */
	int8_t dtype;  /* enum swingcoll_dtype, or -1 */
};

/* Read the sizes of all types. After PMPI_Init(). */
void pmpi_types_init(void);
/* NULL: derived, a pair with gaps, or invalid. */
const struct pmpi_type *pmpi_type_find(MPI_Datatype handle);

/* A reduction in swingcoll's terms. @logical: elements are made 0 or 1 first. */
struct pmpi_op {
	enum swingcoll_redop redop;
	bool logical;
};

/* True if swingcoll can reduce the type by the operation, else *why is set. */
bool pmpi_op_find(MPI_Op op, const struct pmpi_type *type, struct pmpi_op *out,
		  enum pmpi_reason *why);

/* ---- comm.c ---- */

/* Persistent requests that swingcoll carries out at once on a communicator of MPI. */
#define PMPI_SLOTS 8

/**
 * struct pmpi_comm - what the library knows of a communicator of MPI
 *
 * Made by the first call on the communicator. MPI holds a reference, by an attribute, until the
 * communicator is freed, and so does each request in flight.
 *
 * @swc: NULL until enough calls have been made, or if @off
 * @off: all calls are left to MPI, for the reason @why
 * @calls, @bytes: that could be offloaded, so far
 * @patience: how much longer than usual it is used until @swc is made, agreed on once; 0 if not @has_patience
 * @made_ns, @cost_ns: when @swc was made, and how long that took
 * @refused: how often a rank's buffer could not be pinned
 * @choose: NULL unless calls are measured
 * @queue: requests that swingcoll has not taken yet; requests.c
 * @peers: how to send its ranks messages, or NULL on all of them; only if @swc
 * @slots: the same ranks again, each with another communicator of swingcoll, for one persistent request
 *	at a time; in use while somebody else holds a reference
 */
struct pmpi_comm {
	MPI_Comm mpi;
	int refs; /* atomic */
	int rank, size;
	bool off;
	bool several_nodes;
	enum pmpi_reason why;
	struct swingcoll_comm *swc;
	unsigned int calls;
	uint64_t bytes;
	int patience;
	bool has_patience;
	uint64_t made_ns, cost_ns;
	unsigned int refused;
	struct choose *choose;
	struct pmpi_request *queue;
	struct pmpi_peer *peers;
	struct pmpi_comm *slots[PMPI_SLOTS];
};

void pmpi_comm_init(void);
/* Find or make; NULL if memory is short or the handle invalid. */
struct pmpi_comm *pmpi_comm_find(MPI_Comm mpi);
/* Number of ranks, 0 if nothing is offloaded on it. */
int pmpi_comm_size(MPI_Comm mpi);
/*
 * A call of so many bytes could be offloaded. True if there is a swingcoll communicator; @create: make
 * it, if that is due, with all ranks, which are in the same call, and which it waits for.
 */
bool pmpi_comm_ready(struct pmpi_comm *comm, uint64_t bytes, bool create);
/*
 * All ranks agree on a slot that none of them uses, and make its communicator if there is none yet: *slot
 * is NULL on all of them if that is not possible. Whoever takes it gets a reference. Returns 0 or an error
 * of swingcoll. The communicator is ready, and nothing is queued.
 */
int pmpi_comm_find_slot(struct pmpi_comm *comm, struct pmpi_comm **slot);
struct pmpi_comm *pmpi_comm_get(struct pmpi_comm *comm);
void pmpi_comm_put(struct pmpi_comm *comm);
/* Leave all communicators, before MPI ends. */
void pmpi_comm_exit(void);

/* ---- progress.c ---- */

/* Something that has to be looked at until it is done. */
struct pmpi_pollable {
	/* True: it is done, and is not looked at again; it may have freed itself. */
	bool (*poll)(struct pmpi_pollable *p);
	struct pmpi_pollable *next;
};

/* Does MPI's progress engine look at pollables? Before pmpi_progress_init(). */
bool pmpi_progress_has_engine(void);
int pmpi_progress_init(void);
/* Look at all pollables until they are done. False: some are not, and their communicators must stay. */
bool pmpi_progress_drain(void);
void pmpi_progress_exit(void);
/* The largest tag of a message. */
int pmpi_progress_last_tag(void);
/* A persistent receive of an empty message, which pmpi_progress_send() makes complete. */
int pmpi_progress_tag(void);
int pmpi_progress_receive(int tag, MPI_Request *request);
void pmpi_progress_send(int tag);
/* Copy an element to one of another type that has the same signature, or is packed. MPI_SUCCESS or an error of MPI. */
int pmpi_progress_copy(const void *from, MPI_Datatype from_type, void *to, MPI_Datatype to_type);
/* Let MPI progress, and look at all pollables. What the library does while it waits. */
void pmpi_progress(void *unused);
/* The latter alone. */
void pmpi_progress_poll(void);
void pmpi_progress_add(struct pmpi_pollable *p);

/* ---- catch_up.c ---- */

/* Calls that swingcoll has carried out since somebody looked for what has come for MPI; atomic. */
extern unsigned int pmpi_owed;
#define PMPI_TURN 8
/* Each so many calls: make MPI progress, unless that was done a moment ago. */
void pmpi_take_turn(void);

static inline unsigned int pmpi_owe(void)
{
	unsigned int n = __atomic_load_n(&pmpi_owed, __ATOMIC_RELAXED) + 1;

	__atomic_store_n(&pmpi_owed, n, __ATOMIC_RELAXED);
	return n;
}

/* A blocking call of swingcoll has ended. */
static inline void pmpi_carried_out(void)
{
	if (__builtin_expect(!(pmpi_owe() % PMPI_TURN), 0))
		pmpi_take_turn();
}

/* ---- messages.c ---- */

/* A rank of a communicator: its rank in MPI_COMM_WORLD, and the tag by which it receives messages there. */
struct pmpi_peer {
	int rank, tag;
};

/* Messages that have been started together. All zero: none. */
struct pmpi_messages {
	MPI_Request *requests;
	int n, next;
};

void pmpi_messages_init(void);
void pmpi_messages_exit(void);
/*
 * The ranks of a communicator of swingcoll, which all call it, tell each other how to send messages: to *peers,
 * of which there are n. Returns 0 or an error of swingcoll. *met is false on all of them if one cannot.
 */
int pmpi_messages_meet(struct swingcoll_comm *swc, struct pmpi_peer *peers, int n, bool *met);
/* MPI_SUCCESS or an error of MPI, which no error handler gets. At most so many. */
int pmpi_messages_begin(struct pmpi_messages *m, int most);
int pmpi_messages_send(struct pmpi_messages *m, const void *buf, MPI_Count count, MPI_Datatype type,
		       const struct pmpi_peer *to);
/* @self: this rank, which chose the tag. */
int pmpi_messages_receive(struct pmpi_messages *m, void *buf, MPI_Count count, MPI_Datatype type,
			  const struct pmpi_peer *from, const struct pmpi_peer *self);
/* True: all have ended, and the first error goes to *error, which is kept if there is none. */
bool pmpi_messages_test(struct pmpi_messages *m, int *error);
void pmpi_messages_end(struct pmpi_messages *m);

/* ---- layout.c ---- */

struct pmpi_call;

/**
 * struct pmpi_stage - the buffers that swingcoll gets for a call
 * @send, @recv: the caller's, or copies
 * @send_copy, @recv_copy: to be freed
 * @send_kept, @recv_kept: likewise, of what cannot be pinned (pinned.c)
 * @recv_file, @recv_bytes: what @recv_kept stands for
 */
struct pmpi_stage {
	const void *send;
	void *recv;
	void *send_copy, *recv_copy;
	void *send_kept, *recv_kept, *recv_file;
	size_t recv_bytes;
};

/* Size of the elements; false if the type is invalid. */
bool pmpi_signature(MPI_Datatype type, MPI_Count count, uint64_t *bytes);
/* Do the elements lie one after the other, in the order of the signature, from the buffer on? */
bool pmpi_is_plain(MPI_Datatype type);
/*
 * Copy count elements between a buffer of the caller and a packed one. The call's communicator may
 * have been freed meanwhile. Returns MPI_SUCCESS or an error of MPI.
 */
int pmpi_repack(bool pack, void *buf, MPI_Count count, MPI_Datatype type, char *packed);
/*
 * Would the kernel refuse what is sent, when that would be the end of the call? Up to PMPI_SMALL bytes are copied without
 * asking, which takes longer than the copy.
 */
#define PMPI_SMALL 4096
bool pmpi_must_copy(const struct pmpi_call *c, const void *p, size_t bytes);
/* Return MPI_SUCCESS or an error of MPI. */
int pmpi_stage_begin(struct pmpi_stage *st, const struct pmpi_call *c);
/* If the call has succeeded, copy results to the caller's buffer. Frees the copies in any case. */
int pmpi_stage_end(struct pmpi_stage *st, const struct pmpi_call *c, bool good);
/*
 * MPI_Allgatherv() of a plain type that this rank sends, too, and for which there is a memo: shares that differ, or
 * have gaps between them, are gathered in a copy, each in the room of the largest. Returns 0 or an error of swingcoll;
 * -EAGAIN without memory.
 */
int pmpi_allgather_shares(const struct pmpi_memo *m, const struct pmpi_call *c);

/* ---- pinned.c ---- */

/* Likewise, but for the kind of memory, and for buffers that are received into, too. */
bool pmpi_must_keep(const struct pmpi_call *c, const void *p, size_t bytes);
/* As pmpi_stage_begin() and pmpi_stage_end(), and with copies of such memory. */
int pmpi_buffers_begin(struct pmpi_stage *st, const struct pmpi_call *c);
int pmpi_buffers_end(struct pmpi_stage *st, const struct pmpi_call *c, bool good);

/* ---- call.c ---- */

/*
 * How the shares of an array of counts compare. Those that differ are made as long as the largest,
 * if that does not double what is moved; a negative one is apart.
 */
enum pmpi_shares_kind {
	PMPI_SHARES_EQUAL,
	PMPI_SHARES_UNEVEN,
	PMPI_SHARES_APART,
	PMPI_SHARES_KINDS
};

struct pmpi_shares {
	enum pmpi_shares_kind kind;
	MPI_Count largest;
};

/*
 * All ranks know all counts, in elements of their own types, so @kind is the same on all of them.
 * One of the arrays is NULL.
 */
struct pmpi_shares pmpi_shares(MPI_Comm mpi, const int *counts, const MPI_Count *large_counts);

/**
 * struct pmpi_call - a collective call
 *
 * The first part is what the caller has passed; counts are those of one rank's share where there
 * are shares, and the fields of the side that a collective does not have are those of the other
 * side. The second part is set by the decision.
 *
 * @counts, @displs: of MPI_Allgatherv() and MPI_Reduce_scatter(), which has no @displs, else NULL
 * @large_counts, @large_displs: likewise, of the functions whose names end in _c
 * @root_count, @root_type: a share in root's buffer of MPI_Gather() and MPI_Scatter(), on root only;
 *	@recv_count and @recv_type are the rank's own share, of either
 * @shares: how they differ; @recv_count is the largest one
 * @memo: what pmpi_recall() got as op
 * @tried: enum pmpi_tried, or a negative error
 * @tells: whether MPI does it must not depend on counts: the ranks tell each other first (vector.c)
 * @keep: copy what the kernel refuses to pin: what is sent if it is read-only, and mapped files. For
 *	calls that could not turn to MPI then: nonblocking ones, and those on several nodes
 * @count, @dtype, @redop: in swingcoll's terms
 * @size: bytes that decide, equal on all ranks
 * @trial: the class whose trial this call belongs to, or NULL
 */
struct pmpi_call {
	enum pmpi_name name;
	enum swingcoll_coll coll;
	const void *send;
	void *recv;
	MPI_Count send_count, recv_count;
	MPI_Datatype send_type, recv_type;
	MPI_Op op;
	int root;
	MPI_Comm mpi;
	const int *counts, *displs;
	const MPI_Count *large_counts;
	const MPI_Aint *large_displs;
	MPI_Count root_count;
	MPI_Datatype root_type;
	enum pmpi_shares_kind shares;
	bool tells;
	bool keep;
	int tried;
	uint64_t memo;

	struct pmpi_comm *comm;
	size_t count;
	enum swingcoll_dtype dtype;
	enum swingcoll_redop redop;
	bool logical;
	uint64_t size;
	struct choose_class *trial;
	uint64_t began;
};

/*
 * Each rank gets the contributions of all, by an allgather, and reduces those of the ranks before it,
 * by MPI's own operation: the reduction of MPI_Scan() and MPI_Exscan(), in the order of the ranks.
 */
static inline bool pmpi_is_scan(const struct pmpi_call *c)
{
	return c->name == PMPI_SCAN || c->name == PMPI_ISCAN || c->name == PMPI_SCAN_INIT;
}

/* A call by which a persistent request is made: these are counted, and not its starts. */
static inline bool pmpi_is_persistent(const struct pmpi_call *c)
{
	return c->name >= PMPI_NR_SELECTABLE;
}

static inline bool pmpi_is_alltoallw(const struct pmpi_call *c)
{
	return c->name == PMPI_ALLTOALLW || c->name == PMPI_IALLTOALLW ||
	       c->name == PMPI_ALLTOALLW_INIT;
}

static inline bool pmpi_is_prefix(const struct pmpi_call *c)
{
	return pmpi_is_scan(c) || c->name == PMPI_EXSCAN || c->name == PMPI_IEXSCAN ||
	       c->name == PMPI_EXSCAN_INIT;
}

/* The count of a rank's share, of the calls that have @counts. */
static inline MPI_Count pmpi_share(const struct pmpi_call *c, int r)
{
	return c->counts ? c->counts[r] : c->large_counts[r];
}

/* What has become of a call before pmpi_offload(), unless swingcoll has failed: then it is the error. */
enum pmpi_tried {
	PMPI_DONE,
	PMPI_NEW,     /* it has no memo */
	PMPI_UNTRIED, /* it has one, of no use for these buffers, or at this moment */
};

/*
 * How a call may wait. A nonblocking one returns whatever other ranks do; the initialization of a
 * persistent one may wait for them, but what it costs is not what its starts cost.
 */
enum pmpi_form {
	PMPI_FORM_BLOCKING,
	PMPI_FORM_NONBLOCKING,
	PMPI_FORM_PERSISTENT,
};

/* Whether swingcoll carries the call out. If not, that has been counted. */
bool pmpi_decide(struct pmpi_call *c, enum pmpi_form form);
/*
 * Carry a blocking call out if swingcoll is to: then true, and *ret is what the MPI function
 * returns. Else the caller calls MPI, and then pmpi_passed().
 */
bool pmpi_offload(struct pmpi_call *c, int *ret);
void pmpi_passed_trial(struct pmpi_call *c);
static inline void pmpi_passed(struct pmpi_call *c)
{
	if (__builtin_expect(c->trial != NULL, 0))
		pmpi_passed_trial(c);
}

/* All ranks have told how large a call is that @tells: maybe the next ones are to be measured anew. */
void pmpi_told(struct pmpi_call *c, uint64_t largest);
/* Requests that were started before go first. */
void pmpi_wait_for_queue(const struct pmpi_call *c);
uint64_t pmpi_now_ns(void);

/* Start it; as the functions of swingcoll.h. */
int pmpi_start(const struct pmpi_call *c, const struct pmpi_stage *st, struct swingcoll_req **req);
/* The kernel has refused a rank's buffer, nothing has moved, and every rank knows. */
bool pmpi_was_refused(struct pmpi_call *c, int error);
/* Print an error of swingcoll, and return its class in MPI. */
int pmpi_error_class(const struct pmpi_call *c, int error);
/* Likewise, or for an error of MPI, and call the communicator's error handler. */
int pmpi_error(const struct pmpi_call *c, int error);

#pragma GCC visibility pop

#endif /* PMPI_PMPI_H */
