/* SPDX-License-Identifier: Apache-2.0 */
/* joins.h - calls that come with their rank's own numbers, because its agent came late, held until they can be brought
 * together with those of other ranks (blame/comm_join.h). From then on calls of that rank and communicator are named as
 * they come. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"
#include "blame/comm_join.h"

#define JOINS_HELD_MAX    (64u << 10) /* calls; the oldest are given up, and counted */
#define JOINS_STREAMS_MAX (64u << 10)

struct known_stream {
	struct comm_join_stream s;
	int64_t last, last_ns; /* its newest call: number, and when it was made */
};

struct joins {
	struct held_call {
		struct blame_call b; /* worker: its id */
		int64_t received_ns;
	} * held; /* in the order in which they came */
	size_t count, room;
	size_t tried; /* of these, when last tried */
	int64_t tried_ns;
	unsigned failures;  /* tries since one brought something together, or a tracer came */
	struct idmap known; /* struct known_stream, by its calls' key */
	uint64_t joined, given_up;
};

void joins_init(struct joins *j);
void joins_done(struct joins *j);

/* joins_name - gives @call of @worker the name that all ranks know it by: true. False: it is not known. */
bool joins_name(struct joins *j, uint32_t worker, struct push_call *call);

/* joins_hold - keeps the call for later. 0 or -ENOMEM. */
int joins_hold(struct joins *j, uint32_t worker, const struct push_call *call, int64_t received_ns);

/* joins_is_due - is it time to try what is held? When more has come, once a second, and ever less often while that brings
 * nothing together and no other tracer has come. */
bool joins_is_due(const struct joins *j, int64_t now_ns);

/* joins_try - with @others, which are numbered; @workers by id. Calls that are named now are moved to *ret, which the
 * caller frees, and those older than @oldest_ns given up. 0 or -ENOMEM. */
int joins_try(struct joins *j, const struct blame_worker *workers, const struct blame_call *others,
	size_t other_count, int64_t now_ns, int64_t oldest_ns, struct held_call **ret,
	size_t *ret_count);

/* joins_forget - a worker's id is free again. */
void joins_forget(struct joins *j, uint32_t worker);
