/* SPDX-License-Identifier: Apache-2.0 */
/* copies.h - what a process copied over the link to its GPU: bytes, time and rates. */
#pragma once

#include "diagnose/compose/detector.h"

struct copy_rates { /* of the stored copies of at least 1 MiB, one direction */
	uint64_t bytes, ns, count;
};

struct held_copies { /* asynchronous ones that held their caller */
	uint64_t calls, ns, bytes;
	uint8_t source;
	uint16_t op;
};

struct copies { /* of one process */
	uint32_t pid;
	char comm[COMM_LEN];
	int32_t device;
	int64_t first_ns, last_ns; /* of the process's calls */
	uint64_t calls, ns;        /* synchronous ones, by aggregates: the thread is in the call */
	uint64_t bytes;            /* of these */
	struct held_copies held;   /* counted above */
	uint64_t queued_bytes;     /* of other asynchronous ones */
	double best; /* bytes/s of its fastest large synchronous copy; 0: none known */
	const struct event *worst[4]; /* longest copies, longest first */
	struct copy_rates to_device, to_host;
	uint64_t other_bytes; /* stored copies within the device or the host */
	uint8_t source;
	uint16_t op; /* with most of ns */
	uint64_t op_ns;
};

#define COPIES_PROCESSES_MAX 1024

struct copies_table {
	struct copies *items; /* by pid */
	size_t count;
	double best; /* of all processes, asynchronous copies that were waited in included */
};

/* copies_run - fills @ret (released with copies_done(), also after a failure). Needs aggregates:
 * stored rows alone are a choice of slow calls. 0 or -ENOMEM. */
int copies_run(const struct detector_input *s, struct copies_table *ret);
void copies_done(struct copies_table *t);
