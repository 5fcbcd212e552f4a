/* SPDX-License-Identifier: Apache-2.0 */
/* waits.c - see waits.h. Collectives are held in order of their start, oldest first. */
#include "record/capture/waits.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define HELD_MAX 4096

struct held {
	struct event event;
	struct collective collective;
};

struct waits {
	waits_sink *sink;
	void *arg;
	size_t count;
	struct held held[HELD_MAX];
};

int waits_new(waits_sink *sink, void *arg, struct waits **ret)
{
	struct waits *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->sink = sink;
	w->arg = arg;
	*ret = w;
	return 0;
}

void waits_free(struct waits *w)
{
	free(w);
}

void waits_collective(struct waits *w, const struct event *e, const struct collective *c)
{
	if (w->count == HELD_MAX) {
		w->sink(w->arg, &w->held[0].event, &w->held[0].collective);
		memmove(w->held, w->held + 1, --w->count * sizeof(w->held[0]));
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

	if (scope == SCOPE_NONE)
		return;
	for (size_t i = 0; i < w->count; i++)
		waited += waited_for(scope, e, &w->held[i].event);
	for (size_t i = 0; i < w->count; i++) {
		struct held *h = &w->held[i];

		if (waited_for(scope, e, &h->event)) {
			int64_t from = MAX(e->start.ns, event_end_ns(&h->event));

			h->collective.wait_ns = MAX(event_end_ns(e) - from, (int64_t)0);
			if (waited == 1) /* of several, whose time it was is not known */
				h->collective.span_ns = event_end_ns(e) - h->event.start.ns;
			w->sink(w->arg, &h->event, &h->collective);
		} else {
			if (kept != i)
				w->held[kept] = *h;
			kept++;
		}
	}
	w->count = kept;
}

void waits_expire(struct waits *w, wall_time before)
{
	size_t n = 0;

	while (n < w->count && w->held[n].event.start.ns < before.ns) {
		w->sink(w->arg, &w->held[n].event, &w->held[n].collective);
		n++;
	}
	if (n)
		memmove(w->held, w->held + n, (w->count - n) * sizeof(w->held[0]));
	w->count -= n;
}
