// SPDX-License-Identifier: Apache-2.0
/* event.c - events in a fixed table, so that any value passed as a handle can be checked. A
 * stream's slot outlives the stream, and a destroyed stream's slot is reused only after its work
 * has ended, so an event may always be waited for on the stream it was recorded in. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "event.h"
#include "stream.h"

static struct event {
	bool live;
	struct stream *stream; /* NULL: never recorded */
	uint64_t ticket;
} events[EVENT_MAX];
static unsigned next_slot; /* where the search for a free one starts */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct event *event_of(CUevent handle)
{
	uintptr_t h = (uintptr_t)handle, base = (uintptr_t)events;

	if (h < base || h >= base + sizeof(events) || (h - base) % sizeof(events[0]) != 0)
		return NULL;
	return ((struct event *)h)->live ? (struct event *)h : NULL;
}

int event_create(CUevent *ret_handle)
{
	int r = -ENOMEM;

	pthread_mutex_lock(&lock);
	for (unsigned k = 0; k < EVENT_MAX; k++) {
		struct event *e = &events[(next_slot + k) % EVENT_MAX];

		if (e->live)
			continue;
		*e = (struct event){.live = true};
		next_slot = (next_slot + k + 1) % EVENT_MAX;
		*ret_handle = (CUevent)e;
		r = 0;
		break;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

int event_destroy(CUevent handle)
{
	struct event *e;

	pthread_mutex_lock(&lock);
	e = event_of(handle);
	if (e)
		e->live = false;
	pthread_mutex_unlock(&lock);
	return e ? 0 : -EINVAL;
}

int event_record(CUevent handle, struct stream *s)
{
	uint64_t ticket = stream_enqueue(s, LANE_NONE, 0, NULL);
	struct event *e;

	pthread_mutex_lock(&lock);
	e = event_of(handle);
	if (e) {
		e->stream = s;
		e->ticket = ticket;
	}
	pthread_mutex_unlock(&lock);
	return e ? 0 : -EINVAL;
}

static int event_read(CUevent handle, struct event *ret)
{
	struct event *e;

	pthread_mutex_lock(&lock);
	e = event_of(handle);
	if (e)
		*ret = *e;
	pthread_mutex_unlock(&lock);
	return e ? 0 : -EINVAL;
}

int event_wait(CUevent handle)
{
	struct event e;
	int r = event_read(handle, &e);

	if (r == 0 && e.stream)
		stream_wait(e.stream, e.ticket);
	return r;
}

int event_query(CUevent handle)
{
	struct event e;
	int r = event_read(handle, &e);

	if (r < 0)
		return r;
	return !e.stream || stream_has_ended(e.stream, e.ticket);
}

int event_delay(CUevent handle, struct stream *s)
{
	struct event e;
	int r = event_read(handle, &e);

	if (r == 0 && e.stream)
		r = stream_follow(s, e.stream, e.ticket);
	return r;
}
