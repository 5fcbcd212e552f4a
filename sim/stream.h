/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - queues of device work and the threads that announce its completion.
 *
 * Time is arithmetic. When work is enqueued its start and end are known at once:
 *	start = max(now, end of the stream's previous work, what it waits for, a free slot)
 *	end = start + duration
 * so a busy host delays only when a thread hears of an end, never the end itself. Only behind a
 * gate (sim_gate in cuda_sim.h: a collective whose other ranks have not come) ends are unknown;
 *what is enqueued there is put off and gets its times, by the same arithmetic, when the gate opens.
 *
 * A piece of work is named by its ticket: its number in the stream, from 1; ticket 0 has ended. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda_sim.h"

#define STREAM_MAX 1024 /* of one process, the default stream included */

enum stream_lane { LANE_NONE, LANE_COMPUTE, LANE_TO_DEVICE, LANE_TO_HOST, LANE_COUNT };

/* Something that must really happen when the work ends (bytes move, memory is freed). run() gets it
 * on the stream's thread; afterwards drop(), if any, then free(). An effect that a graph holds is
 * run at each launch. */
struct stream_effect {
	struct stream_effect *next;
	uint64_t due_ns;
	void (*run)(struct stream_effect *e);
	void (*drop)(struct stream_effect *e);
};

struct graph_body;
struct stream;

/* stream_start - make the default stream; called once, with no work in the process. -errno. */
int stream_start(void);

/* stream_create - a stream beside the default one; @blocking: in order with the default stream.
 * -ENOMEM if there are STREAM_MAX or no thread can be made. */
int stream_create(bool blocking, CUstream *ret_handle);

/* stream_of - the stream of a handle (NULL, 1 and 2: the default stream); NULL if there is none. */
struct stream *stream_of(CUstream handle);

/* stream_destroy - the handle is dead at once, the work enqueued still ends. */
void stream_destroy(struct stream *s);

/* stream_enqueue - add work of @dur_ns. Blocks while the stream holds SIM_QUEUE_DEPTH pieces of
 * unfinished work. @e (from malloc, may be NULL) is the stream's from now on. Returns the ticket.
 * On a capturing stream the work is recorded instead, and the ticket is 0. */
uint64_t stream_enqueue(
	struct stream *s, enum stream_lane lane, uint64_t dur_ns, struct stream_effect *e);

/* stream_enqueue_gate - add work that ends when sim_gate_open(@g) says. -EBUSY on a capturing
 * stream; -ENOMEM. */
int stream_enqueue_gate(struct stream *s, struct sim_gate *g);

/* stream_follow - later work of @s does not start before @ticket of @first has ended. -ENOMEM. */
int stream_follow(struct stream *s, struct stream *first, uint64_t ticket);

/* stream_last - the ticket of what was enqueued last. */
uint64_t stream_last(struct stream *s);

/* stream_wait - block until the work has ended and the effects due by then have happened. */
void stream_wait(struct stream *s, uint64_t ticket);

/* stream_has_ended - the same question without blocking. */
bool stream_has_ended(struct stream *s, uint64_t ticket);

/* stream_wait_all - every stream up to its own end, as cuCtxSynchronize does. */
void stream_wait_all(void);

/* stream_capture_begin - record instead of running, until stream_capture_end(). -EBUSY if it does
 * already; -ENOMEM. */
int stream_capture_begin(struct stream *s);

/* stream_capture_end - what was recorded; *ret_body is the caller's reference. -EINVAL if the
 * stream was not capturing; -ECANCELED if the capture was broken (and is over). */
int stream_capture_end(struct stream *s, struct graph_body **ret_body);

bool stream_is_capturing(const struct stream *s);

/* stream_capture_break - something was asked of the capturing stream that cannot be recorded. */
void stream_capture_break(struct stream *s);
