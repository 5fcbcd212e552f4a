/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - queues of device work and the threads that announce its completion.
 *
 * Time is arithmetic. When work is enqueued its start and end are known at once:
 *	start = max(now, end of the stream's previous work, what it waits for, a free slot)
 *	end = start + duration
 * so a busy host delays only when a thread hears of an end, never the end itself. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda_sim.h"

#define STREAM_MAX 1024 /* of one process, the default stream included */

enum stream_lane { LANE_NONE, LANE_COMPUTE, LANE_TO_DEVICE, LANE_TO_HOST, LANE_COUNT };

/* Something that must really happen when the work ends (bytes move, memory is freed). run() gets it
 * on the stream's thread, which frees it afterwards. */
struct stream_effect {
	struct stream_effect *next;
	uint64_t due_ns;
	void (*run)(struct stream_effect *e);
};

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
 * unfinished work. @e (from malloc, may be NULL) is the stream's
 * from now on. Returns the end of the work. */
uint64_t stream_enqueue(
	struct stream *s, enum stream_lane lane, uint64_t dur_ns, struct stream_effect *e);

/* stream_end_ns - when everything enqueued so far will have ended. */
uint64_t stream_end_ns(struct stream *s);

/* stream_delay - later work of the stream does not start before @until_ns. */
void stream_delay(struct stream *s, uint64_t until_ns);

/* stream_wait - block until @until_ns has passed and the effects due by then have happened. */
void stream_wait(struct stream *s, uint64_t until_ns);

/* stream_wait_all - every stream up to its own end, as cuCtxSynchronize does. */
void stream_wait_all(void);
