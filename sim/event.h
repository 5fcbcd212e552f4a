/* SPDX-License-Identifier: Apache-2.0 */
/* event.h - CUDA events: a remembered end of a stream's work. */
#pragma once

#include "cuda_sim.h"

#define EVENT_MAX 65536 /* live events of one process */

struct stream;

/* event_create - -ENOMEM if there are EVENT_MAX. */
int event_create(CUevent *ret_handle);

/* The others return -EINVAL for a value that is no live event. Waiting for an event that was never
 * recorded does not wait. */
int event_destroy(CUevent handle);
int event_record(CUevent handle, struct stream *s);
int event_wait(CUevent handle);
int event_query(CUevent handle); /* 1 if it has happened or was never recorded, else 0 */
int event_delay(CUevent handle, struct stream *s); /* later work of @s starts after the event */
