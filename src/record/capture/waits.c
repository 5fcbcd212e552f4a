/* SPDX-License-Identifier: Apache-2.0 */
/* waits.c - see waits.h. Collectives are held in order of their start, oldest first.
 *
 * Frameworks that overlap communication never synchronise with NCCL's stream itself: of a stream whose last
 * SILENT_LEAST collectives nobody waited for, the next ones are held for SILENT_NS only, so that who is late is known while
 * it matters. */
#include "record/capture/waits.h"

#include "base/hash.h"

#define HELD_MAX     4096
#define SILENT_LEAST 8
#define SILENT_NS    INT64_C(100000000)
#define LOOK_NS      INT64_C(20000000) /* between looks for such ones */
#define STREAMS      256               /* where there are more, some are looked at together */

struct held {
	struct event event;
	struct collective collective;
};

struct waits {
	waits_sink *sink;
	void *arg;
	struct held *held; /* in `room`, so that the oldest leaves and none is moved */
	size_t count;
	int64_t looked_ns;
	uint8_t unwaited[STREAMS]; /* by hash of process and stream: collectives in a row */
	struct held room[2 * HELD_MAX];
};

int waits_new(waits_sink *sink, void *arg, struct waits **ret)
{
	struct waits *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->sink = sink;
	w->arg = arg;
	w->held = w->room;
	*ret = w;
	return 0;
}

void waits_free(struct waits *w)
{
	free(w);
}

static uint8_t *unwaited_of(struct waits *w, const struct event *e)
{
	return &w->unwaited[hash_number(e->stream ^ hash_number(e->pid)) % STREAMS];
}

/* Hands on the @i-th as it is: nobody has waited for it. */
static void hand_on(struct waits *w, size_t i)
{
	uint8_t *unwaited = unwaited_of(w, &w->held[i].event);

	*unwaited += *unwaited < SILENT_LEAST;
	w->sink(w->arg, &w->held[i].event, &w->held[i].collective);
}

/* Hands on what began before @before, and of streams that nobody waits for what began before @silent. */
static void expire(struct waits *w, int64_t before, int64_t silent)
{
	size_t kept = 0, i = 0;

	for (; i < w->count && w->held[i].event.start.ns < MAX(before, silent); i++) {
		int64_t start = w->held[i].event.start.ns;
		bool is_silent = *unwaited_of(w, &w->held[i].event) == SILENT_LEAST;

		if (start < before || (is_silent && start < silent))
			hand_on(w, i);
		else
			w->held[kept++] = w->held[i];
	}
	if (kept != i)
		memmove(w->held + kept, w->held + i, (w->count - i) * sizeof(w->held[0]));
	w->count -= i - kept;
}

static void expire_silent(struct waits *w, int64_t now_ns)
{
	if (!w->count || now_ns - w->looked_ns < LOOK_NS)
		return;
	w->looked_ns = now_ns;
	expire(w, INT64_MIN, now_ns - SILENT_NS);
}

void waits_collective(struct waits *w, const struct event *e, const struct collective *c)
{
	expire_silent(w, e->start.ns);
	if (w->count == HELD_MAX) {
		hand_on(w, 0);
		w->held++;
		w->count--;
	}
	if (w->held + w->count == w->room + ARRAY_SIZE(w->room)) {
		memmove(w->room, w->held, w->count * sizeof(w->room[0]));
		w->held = w->room;
	}
	w->held[w->count++] = (struct held){*e, *c};
}

enum scope { SCOPE_NONE, SCOPE_STREAM, SCOPE_THREAD, SCOPE_PROCESS };

/* What a synchronisation waits for. An event's stream is not known: what its thread enqueued. */
static enum scope scope_of(const struct event *e)
{
	if (e->flags & WIRE_NESTED)
		return SCOPE_NONE;
	if (e->source == SOURCE_CUDA)
		switch (e->op) {
		case CUDA_STREAM_SYNC: return SCOPE_STREAM;
		case CUDA_EVENT_SYNC: return SCOPE_THREAD;
		case CUDA_DEVICE_SYNC: return SCOPE_PROCESS;
		}
	if (e->source == SOURCE_DRIVER)
		switch (e->op) {
		case DRIVER_STREAM_SYNC: return SCOPE_STREAM;
		case DRIVER_EVENT_SYNC: return SCOPE_THREAD;
		case DRIVER_CTX_SYNC: return SCOPE_PROCESS;
		}
	return SCOPE_NONE;
}

static bool waited_for(enum scope scope, const struct event *sync, const struct event *e)
{
	if (e->pid != sync->pid || e->start.ns > event_end_ns(sync))
		return false;
	return scope == SCOPE_PROCESS || (scope == SCOPE_STREAM && e->stream == sync->stream) ||
	       (scope == SCOPE_THREAD && e->tid == sync->tid);
}

void waits_sync(struct waits *w, const struct event *e)
{
	enum scope scope = w->count ? scope_of(e) : SCOPE_NONE;
	size_t kept = 0, waited = 0;

	if (scope == SCOPE_NONE) {
		expire_silent(w, event_end_ns(e));
		return;
	}
	for (size_t i = 0; i < w->count; i++)
		waited += waited_for(scope, e, &w->held[i].event);
	for (size_t i = 0; i < w->count; i++) {
		struct held *h = &w->held[i];

		if (waited_for(scope, e, &h->event)) {
			int64_t from = MAX(e->start.ns, event_end_ns(&h->event));

			h->collective.wait_ns = MAX(event_end_ns(e) - from, (int64_t)0);
			if (waited == 1) /* of several, whose time it was is not known */
				h->collective.span_ns = event_end_ns(e) - h->event.start.ns;
			*unwaited_of(w, &h->event) = 0;
			w->sink(w->arg, &h->event, &h->collective);
		} else {
			if (kept != i)
				w->held[kept] = *h;
			kept++;
		}
	}
	w->count = kept;
}

void waits_expire(struct waits *w, wall_time before, wall_time now)
{
	expire(w, before.ns, MAX(before.ns, now.ns - SILENT_NS));
}
