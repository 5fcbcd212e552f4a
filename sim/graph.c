// SPDX-License-Identifier: Apache-2.0
/* graph.c - recorded work and its handles. Handles are addresses in a fixed table, so that any
 * value passed as one can be checked.
 *
 * A launch is one piece of work of the stream: it lasts as long as all its parts together, and
 * their effects happen in order at its end. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "graph.h"
#include "share.h"

struct slot {
	struct graph_body *body; /* NULL: free */
};

struct launch_effect {
	struct stream_effect effect;
	struct graph_body *body;
};

static struct slot slots[GRAPH_KINDS][GRAPH_MAX];
static unsigned next_slot[GRAPH_KINDS]; /* where the search for a free one starts */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct graph_body *graph_body_new(void)
{
	struct graph_body *b = calloc(1, sizeof(*b));

	if (b)
		b->refs = 1;
	return b;
}

struct graph_body *graph_body_ref(struct graph_body *b)
{
	atomic_fetch_add(&b->refs, 1);
	return b;
}

static void effect_free(struct stream_effect *e)
{
	if (e && e->drop)
		e->drop(e);
	free(e);
}

void graph_body_unref(struct graph_body *b)
{
	if (!b || atomic_fetch_sub(&b->refs, 1) != 1)
		return;
	for (size_t i = 0; i < b->count; i++)
		effect_free(b->works[i].effect);
	free(b->works);
	free(b);
}

static int room_make(struct graph_body *b)
{
	size_t room = b->room ? b->room * 2 : 64;
	struct graph_work *grown;

	if (b->count < b->room)
		return 0;
	if (b->count >= GRAPH_MAX_WORK)
		return -ENOMEM;
	grown = realloc(b->works, room * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	b->works = grown;
	b->room = room;
	return 0;
}

void graph_body_add(
	struct graph_body *b, enum stream_lane lane, uint64_t dur_ns, struct stream_effect *e)
{
	if (room_make(b) < 0) {
		b->broken = true;
		effect_free(e);
		return;
	}
	b->works[b->count++] = (struct graph_work){lane, dur_ns, e};
	b->total_ns += dur_ns;
	b->effect_count += e != NULL;
}

bool graph_body_is_alike(const struct graph_body *a, const struct graph_body *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (a->works[i].lane != b->works[i].lane ||
			!a->works[i].effect != !b->works[i].effect)
			return false;
	return true;
}

static void launch_run(struct stream_effect *e)
{
	const struct graph_body *b = ((struct launch_effect *)e)->body;

	for (size_t i = 0; i < b->count; i++)
		if (b->works[i].effect)
			b->works[i].effect->run(b->works[i].effect);
}

static void launch_drop(struct stream_effect *e)
{
	graph_body_unref(((struct launch_effect *)e)->body);
}

int graph_body_launch(struct graph_body *b, struct stream *s)
{
	struct launch_effect *e = NULL;

	if (b->effect_count) {
		e = malloc(sizeof(*e));
		if (!e)
			return -ENOMEM;
		*e = (struct launch_effect){
			.effect = {.run = launch_run, .drop = launch_drop},
			.body = graph_body_ref(b),
		};
	}
	stream_enqueue(s, LANE_COMPUTE, share_stretch_ns(b->total_ns), e ? &e->effect : NULL);
	return 0;
}

int graph_put(enum graph_kind kind, struct graph_body *b, void **ret_handle)
{
	int r = -ENOMEM;

	pthread_mutex_lock(&lock);
	for (unsigned k = 0; k < GRAPH_MAX; k++) {
		unsigned i = (next_slot[kind] + k) % GRAPH_MAX;

		if (slots[kind][i].body)
			continue;
		slots[kind][i].body = b;
		next_slot[kind] = (i + 1) % GRAPH_MAX;
		*ret_handle = &slots[kind][i];
		r = 0;
		break;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

/* Under the lock. */
static struct slot *slot_of(enum graph_kind kind, const void *handle)
{
	uintptr_t h = (uintptr_t)handle, base = (uintptr_t)slots[kind];

	if (h < base || h >= base + sizeof(slots[kind]) || (h - base) % sizeof(struct slot) != 0)
		return NULL;
	return ((struct slot *)h)->body ? (struct slot *)h : NULL;
}

struct graph_body *graph_get(enum graph_kind kind, const void *handle)
{
	struct graph_body *b = NULL;
	struct slot *s;

	pthread_mutex_lock(&lock);
	s = slot_of(kind, handle);
	if (s)
		b = graph_body_ref(s->body);
	pthread_mutex_unlock(&lock);
	return b;
}

/* The slot's body becomes @b (NULL: free), the former loses its reference. */
static int slot_set(enum graph_kind kind, const void *handle, struct graph_body *b)
{
	struct graph_body *former = NULL;
	struct slot *s;

	pthread_mutex_lock(&lock);
	s = slot_of(kind, handle);
	if (s) {
		former = s->body;
		s->body = b;
	}
	pthread_mutex_unlock(&lock);
	graph_body_unref(former);
	return s ? 0 : -EINVAL;
}

int graph_set(const void *handle, struct graph_body *b)
{
	return slot_set(GRAPH_INSTANCE, handle, b);
}

int graph_drop(enum graph_kind kind, const void *handle)
{
	return slot_set(kind, handle, NULL);
}
