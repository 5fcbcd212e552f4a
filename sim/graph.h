/* SPDX-License-Identifier: Apache-2.0 */
/* graph.h - CUDA graphs: recorded work, and the handles of graphs and of their instances.
 *
 * A body is what a capture recorded, unchanged once the capture ended, and counted: a graph, its
 * instances and every launch under way hold a reference to it. */
#pragma once

#include <stdatomic.h>

#include "stream.h"

#define GRAPH_MAX      4096       /* live graphs of one process, and as many instances */
#define GRAPH_MAX_WORK (1u << 20) /* pieces of work of one graph */

struct graph_work {
	enum stream_lane lane;
	uint64_t dur_ns;
	struct stream_effect *effect; /* NULL: none */
};

struct graph_body {
	atomic_uint refs;
	bool broken; /* something could not be recorded */
	size_t count, room;
	struct graph_work *works;
	uint64_t total_ns;
	size_t effect_count;
};

/* graph_body_new - empty, with one reference; NULL without memory. */
struct graph_body *graph_body_new(void);
struct graph_body *graph_body_ref(struct graph_body *b);
void graph_body_unref(struct graph_body *b); /* NULL is fine */

/* graph_body_add - takes @e. Without memory, or beyond GRAPH_MAX_WORK, the body is broken. */
void graph_body_add(
	struct graph_body *b, enum stream_lane lane, uint64_t dur_ns, struct stream_effect *e);

/* graph_body_is_alike - an instance of @a can be updated to @b: the same kinds of work in order. */
bool graph_body_is_alike(const struct graph_body *a, const struct graph_body *b);

/* graph_body_launch - all of it as one piece of work of @s; -ENOMEM. */
int graph_body_launch(struct graph_body *b, struct stream *s);

enum graph_kind { GRAPH_TEMPLATE, GRAPH_INSTANCE, GRAPH_KINDS };

/* graph_put - a handle for @b, which takes the caller's reference. -ENOMEM if there are GRAPH_MAX.
 */
int graph_put(enum graph_kind kind, struct graph_body *b, void **ret_handle);

/* graph_get - a new reference to the body of a handle; NULL for a value that is none. */
struct graph_body *graph_get(enum graph_kind kind, const void *handle);

/* graph_set - replace the body of an instance, taking the reference. -EINVAL likewise. */
int graph_set(const void *handle, struct graph_body *b);

/* graph_drop - the handle is dead; -EINVAL likewise. */
int graph_drop(enum graph_kind kind, const void *handle);
