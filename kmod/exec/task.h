/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks: each is the progress of one channel of a request through the channel's steps.
 */
#ifndef SWC_TASK_H
#define SWC_TASK_H

#include <linux/list.h>

#include "mem/reduce_copy.h"
#include "net.h"
#include "plan/plan_conn.h"
#include "swingcoll.h"

/* Changed by swc_task_set_state() only, which knows the transitions. */
enum swc_task_state {
	SWC_TASK_NEW,		/* the operation has not started */
	SWC_TASK_READY,		/* in op->runq */
	SWC_TASK_ACTIVE,	/* a worker runs it */
	SWC_TASK_WAIT_RECV,	/* for a message of @wait_rank, from another node: message @wait_ordinal */
	SWC_TASK_WAIT_SENDS,	/* until peers of this node have read what the step sends */
	SWC_TASK_WAIT_FENCE,	/* until messages of earlier steps have left their memory */
	SWC_TASK_WAIT_SYNC,	/* in a barrier */
	SWC_TASK_WAIT_DMA,	/* for an engine that carries out @copy */
	SWC_TASK_DONE,
};

/* How far a worker has come with a step. */
enum swc_step_status {
	SWC_STATUS_OK,		/* the step is done */
	SWC_STATUS_WAIT,	/* the task waits; a peer or an engine will make it ready */
	SWC_STATUS_END,		/* the task has no more steps */
	SWC_STATUS_YIELD,	/* the worker must give way; another one continues the task */
	SWC_STATUS_ERROR,	/* the operation cannot continue */
};

/* Phases of a network step. */
enum swc_net_phase {
	SWC_NET_SEND,		/* not begun; the first phase announces the step's sends */
	SWC_NET_POST,		/* give its messages for other nodes to their connections */
	SWC_NET_FENCE,		/* wait until memory to receive into may be overwritten, then offer it */
	SWC_NET_RECV,		/* receive, one transfer after the other */
};

/**
 * struct swc_send_window - messages to other nodes that still occupy their memory
 *
 * Guarded by op->lock. A task may be @size steps ahead of its messages.
 *
 * @size: steps that the window spans, from the plan
 * @pending: by step modulo @size: messages of that step whose memory is in use
 */
struct swc_send_window {
	u32 size;
	u32 pending[SWC_MAX_SEND_WINDOW];
};

static inline void swc_send_window_add(struct swc_send_window *w, u32 step)
{
	w->pending[step % w->size]++;
}

static inline void swc_send_window_del(struct swc_send_window *w, u32 step)
{
	w->pending[step % w->size]--;
}

/* Has every message of the steps from @first to before @end left its memory? */
static inline bool swc_send_window_empty(const struct swc_send_window *w, u32 first, u32 end)
{
	u32 i;

	for (i = first; i < end; i++)
		if (w->pending[i % w->size])
			return false;
	return true;
}

/**
 * struct swc_task - one channel of one rank's plan on its way through an operation
 *
 * Belongs to its request. While ACTIVE, the fields belong to the worker, except those marked (L), which
 * op->lock guards always: peers read them.
 *
 * @node: in op->runq or op->offload_batch (L)
 * @req: its request
 * @state: enum swc_task_state (L)
 * @phase: of the current network step; SWC_NET_SEND in every other step (L)
 * @channel: index
 * @step: current step, an index into the plan's table of steps (L)
 * @end: step behind the channel's last one
 * @sends_left: sends of the current step to ranks of this node that have not been read yet (L)
 * @taken: bitmap of sends that a peer has claimed, see plan/send_index.c (L)
 * @wait_rank, @wait_ordinal: see SWC_TASK_WAIT_RECV (L)
 * @posted: sends of the current network step that were given to connections, if they are for other nodes
 * @recv: receives done in the current network step
 * @copies: copies done in the current copy step
 * @sender: task whose send the current receive has claimed, or NULL
 * @seg: segment of another node that the current receive consumes, or NULL
 * @got: bytes received so far of the current message from another node
 * @inbox: segments of other nodes, in the order of their arrival (L)
 * @window: which messages to other nodes occupy their memory (L)
 * @sends: those messages: window.size times the most that a step of the channel sends; none on one node
 * @offered: memory has been offered for the steps of the channel before this one
 * @rndvs_pending: by step modulo the rendezvous window: offers that the connections hold (L)
 * @rndv: by step modulo the rendezvous window, by receive: memory that other nodes write into
 * @copying: @copy is set up and not complete
 * @cpu_only: an engine has failed with @copy
 * @engine_over: the engine has ended (L)
 * @copy: the pass over memory in progress
 * @prepared: the next local step's, ready for engines
 * @whole: bytes of @copy if an engine has its end while the CPU does the rest; else 0 (L)
 * @engine_bytes: bytes that the engine has copied; 0: it has failed (L)
 */
struct swc_task {
	struct list_head node;
	struct swc_req *req;
	u8 state;
	u8 phase;
	u16 channel;
	u32 step;
	u32 end;
	u32 sends_left;
	unsigned long *taken;
	u32 wait_rank;
	u32 wait_ordinal;
	u32 posted;
	u32 recv;
	u32 copies;
	struct swc_task *sender;
	struct swc_net_seg *seg;
	u64 got;
	struct list_head inbox;
	struct swc_send_window window;
	struct swc_send *sends;
	u32 offered;
	u32 rndvs_pending[SWC_MAX_RNDV_WINDOW];
	struct swc_rndv *rndv;
	bool copying;
	bool cpu_only;
	bool engine_over;
	struct swc_reduce_copy copy;
	struct swc_dma_job *prepared;
	u64 whole;
	u64 engine_bytes;
};

int swc_tasks_create(struct swc_req *req);
void swc_task_set_state(struct swc_task *task, enum swc_task_state state);
bool swc_task_is_last_step(const struct swc_task *task);
enum swc_step_status swc_task_look_up(const struct swc_task *task);

#endif /* SWC_TASK_H */
