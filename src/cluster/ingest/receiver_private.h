/* SPDX-License-Identifier: Apache-2.0 */
/* receiver_private.h - the parts of the receiver: receiver.c has the ports, intake.c what becomes of one
 * request, decoder.c decodes large ones. */
#pragma once

#include "cluster/ingest/decoder.h"
#include "cluster/ingest/receiver.h"

struct receiver {
	struct receiver_sink sink;
	struct http_server *grpc, *http; /* NULL: not opened */
	struct decoder *decoder; /* NULL: there is no fleet, or receiver_free() was called */
	struct http_limits limits;
	struct receiver_stats stats; /* without those of the servers */
	bool draining;
	loop_fn *drained;
	void *drained_arg;
	unsigned left; /* servers that are not drained yet */
	size_t waiting; /* requests that wait until they are decoded or kept: they hold this struct */
	bool closed;    /* receiver_free() was called: the sink is gone */
};

/* receiver_release - a request that waited has been answered. */
void receiver_release(struct receiver *r);

/* intake_handler - one request, from its body to its reply. @arg is the receiver. */
http_handler intake_handler;

/* intake_refused - one that was refused before it came here. */
http_refused intake_refused;
