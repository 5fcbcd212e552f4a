// SPDX-License-Identifier: Apache-2.0
/* stream_work.c - places work in time: when a piece starts and ends, and what is put off.
 *
 * Invariants, under a stream's lock:
 * 1. tickets up to `placed` have an end (in the ring `ends` for the last SIM_QUEUE_DEPTH), those
 *    after it up to `issued` are the deferred items, in order;
 * 2. the first deferred item is an open-ended gate, or waits for one in another stream;
 * 3. an item that was put off starts when it would have, had the gate's end been known: times come
 *    from when it was posted and from what is before it, never from when it is placed.
 * The legacy default stream waits for what was posted before in blocking streams, and they for it:
 * `order` counts posts over all streams, so "posted before" is a comparison of two numbers. */
#include <errno.h>
#include <stdlib.h>

#include "graph.h"
#include "knob.h"
#include "lane.h"
#include "share.h"
#include "stream_work.h"
#include "tally.h"

static _Atomic uint64_t default_end_ns;  /* blocking streams wait for it */
static _Atomic uint64_t blocking_end_ns; /* latest end of all blocking streams */
static _Atomic uint64_t posts;
static _Atomic uint64_t deferred_count; /* in all streams */
static pthread_mutex_t lane_lock = PTHREAD_MUTEX_INITIALIZER;
static struct lane lanes[LANE_COUNT];

void stream_lanes_init(void)
{
	lane_init(&lanes[LANE_COMPUTE], (unsigned)knob_get()->concurrent);
	lane_init(&lanes[LANE_TO_DEVICE], 1);
	lane_init(&lanes[LANE_TO_HOST], 1);
}

static void raise_to(_Atomic uint64_t *v, uint64_t to)
{
	uint64_t seen = atomic_load(v);

	while (seen < to && !atomic_compare_exchange_weak(v, &seen, to))
		;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* When work posted at @posted_ns could start, were a slot free. */
static uint64_t ready_ns(const struct stream *s, uint64_t posted_ns)
{
	uint64_t t = later(posted_ns, s->end_ns);

	if (s == &stream_table[0])
		return later(t, atomic_load(&blocking_end_ns));
	return s->blocking ? later(t, atomic_load(&default_end_ns)) : t;
}

static uint64_t start_ns(uint64_t ready, enum stream_lane lane, uint64_t dur_ns)
{
	uint64_t start;

	if (lane == LANE_NONE || dur_ns == 0)
		return ready;
	pthread_mutex_lock(&lane_lock);
	start = lane_take(&lanes[lane], ready, dur_ns);
	pthread_mutex_unlock(&lane_lock);
	if (lane == LANE_COMPUTE)
		share_runs(start, start + dur_ns);
	return start;
}

static void effect_add(struct stream *s, struct stream_effect *e, uint64_t due_ns)
{
	bool first = !s->head;

	e->due_ns = due_ns;
	e->next = NULL;
	*s->tail = e;
	s->tail = &e->next;
	if (first)
		pthread_cond_signal(&s->work);
}

/* The next ticket ends at @end_ns. */
static void end_set(struct stream *s, uint64_t end_ns, struct stream_effect *e)
{
	uint64_t placed = s->placed;

	s->end_ns = end_ns;
	s->ends[placed % knob_get()->queue_depth] = end_ns;
	atomic_store_explicit(&s->placed, placed + 1, memory_order_release);
	if (s->blocking)
		raise_to(&blocking_end_ns, end_ns);
	if (s == &stream_table[0])
		raise_to(&default_end_ns, end_ns);
	if (e)
		effect_add(s, e, end_ns);
}

uint64_t stream_ticket_end_ns(const struct stream *s, uint64_t ticket)
{
	uint64_t depth = knob_get()->queue_depth;

	if (ticket == 0 || atomic_load(&s->issued) - ticket >= depth)
		return 0;
	return s->ends[(ticket - 1) % depth];
}

/* True if all work posted before @order that @s must come after has its times. */
static bool others_are_placed(const struct stream *s, uint64_t order)
{
	unsigned top = atomic_load(&stream_table_top);

	if (!s->blocking)
		return true;
	if (s != &stream_table[0])
		return atomic_load(&stream_table[0].deferred_order) > order;
	for (unsigned i = 1; i < top; i++)
		if (stream_table[i].blocking &&
			atomic_load(&stream_table[i].deferred_order) < order)
			return false;
	return true;
}

/* A gate's owner learns when the stream reaches it, and may open it at once or later. */
static bool gate_try(struct stream *s, struct stream_item *i, uint64_t ready)
{
	struct sim_gate *g = i->gate;

	if (!g->start_ns) {
		g->start_ns = ready;
		g->reached(g);
	}
	return g->end_ns != 0;
}

static bool item_place(struct stream *s, struct stream_item *i)
{
	uint64_t ready;

	if (!others_are_placed(s, i->order))
		return false;
	ready = ready_ns(s, i->posted_ns);
	if (i->gate) {
		if (!gate_try(s, i, ready))
			return false;
		end_set(s, later(ready, i->gate->end_ns), NULL);
		share_runs(ready, s->end_ns);
		i->gate->placed(i->gate);
		return true;
	}
	if (i->first) {
		if (atomic_load_explicit(&i->first->placed, memory_order_acquire) < i->first_ticket)
			return false;
		ready = later(ready, stream_ticket_end_ns(i->first, i->first_ticket));
	}
	end_set(s, start_ns(ready, i->lane, i->dur_ns) + i->dur_ns, i->effect);
	return true;
}

void stream_place_deferred(struct stream *s)
{
	bool some = false;

	while (s->deferred && item_place(s, s->deferred)) {
		struct stream_item *i = s->deferred;

		s->deferred = i->next;
		if (!i->next)
			s->deferred_tail = &s->deferred;
		atomic_store(&s->deferred_order, i->next ? i->next->order : UINT64_MAX);
		atomic_fetch_sub(&deferred_count, 1);
		free(i);
		some = true;
	}
	if (some) { /* any thread may place; the stream's own tells the other streams */
		pthread_cond_broadcast(&s->done);
		s->tells_followers = atomic_load(&deferred_count) != 0;
		if (s->tells_followers)
			pthread_cond_signal(&s->work);
	}
}

void stream_wake_followers(void)
{
	unsigned top = atomic_load(&stream_table_top);

	if (atomic_load(&deferred_count) == 0)
		return;
	for (unsigned i = 0; i < top; i++) {
		struct stream *s = &stream_table[i];

		if (atomic_load(&s->deferred_order) == UINT64_MAX)
			continue;
		pthread_mutex_lock(&s->lock);
		pthread_cond_signal(&s->work);
		pthread_mutex_unlock(&s->lock);
	}
}

/* Under the lock: wait until a ticket can be given. */
static void room_wait(struct stream *s)
{
	uint64_t depth = knob_get()->queue_depth;

	for (;;) {
		uint64_t issued = s->issued, oldest;

		if (issued < depth)
			return;
		oldest = issued + 1 - depth;
		if (oldest <= s->placed) {
			uint64_t end = s->ends[(oldest - 1) % depth];

			if (end == 0 || end <= tally_now_ns())
				return;
		}
		stream_wait_locked(s, oldest); /* lets go of the lock: another may take the place */
	}
}

/* Under the lock: the item is placed now or put off. Returns its ticket; 0 without memory. */
static uint64_t item_post(struct stream *s, const struct stream_item *like)
{
	struct stream_item *i = malloc(sizeof(*i));

	if (!i)
		return 0;
	*i = *like;
	i->posted_ns = tally_now_ns();
	i->order = atomic_fetch_add(&posts, 1) + 1;
	i->next = NULL;
	atomic_fetch_add(&deferred_count, 1);
	if (!s->deferred)
		atomic_store(&s->deferred_order, i->order);
	*s->deferred_tail = i;
	s->deferred_tail = &i->next;
	s->issued++;
	stream_place_deferred(s);
	return s->issued;
}

uint64_t stream_enqueue(
	struct stream *s, enum stream_lane lane, uint64_t dur_ns, struct stream_effect *e)
{
	uint64_t ticket = 0;

	pthread_mutex_lock(&s->lock);
	if (s->capture) {
		graph_body_add(s->capture, lane, dur_ns, e);
		pthread_mutex_unlock(&s->lock);
		return 0;
	}
	room_wait(s);
	if (atomic_load(&deferred_count)) {
		struct stream_item i = {.lane = lane, .dur_ns = dur_ns, .effect = e};

		ticket = item_post(s, &i);
	}
	if (!ticket) { /* the usual case; without memory the order with gates is lost, not the work
			*/
		s->issued++;
		end_set(s, start_ns(ready_ns(s, tally_now_ns()), lane, dur_ns) + dur_ns, e);
		ticket = s->issued;
	}
	pthread_mutex_unlock(&s->lock);
	return ticket;
}

int stream_enqueue_gate(struct stream *s, struct sim_gate *g)
{
	struct stream_item i = {.gate = g};
	int r = 0;

	pthread_mutex_lock(&s->lock);
	g->stream = s;
	if (s->capture)
		r = -EBUSY;
	else
		room_wait(s);
	if (r == 0 && item_post(s, &i) == 0)
		r = -ENOMEM;
	pthread_mutex_unlock(&s->lock);
	return r;
}

int stream_follow(struct stream *s, struct stream *first, uint64_t ticket)
{
	struct stream_item i = {.first = first, .first_ticket = ticket};
	int r = 0;

	pthread_mutex_lock(&s->lock);
	if (!s->capture) {
		room_wait(s);
		r = item_post(s, &i) ? 0 : -ENOMEM;
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* The stream's thread places what the gate held up; so the caller may hold any lock of its own. */
__attribute__((visibility("default"))) void sim_gate_open(struct sim_gate *g, uint64_t end_ns)
{
	struct stream *s = g->stream;

	pthread_mutex_lock(&s->lock);
	g->end_ns = end_ns ? end_ns : 1;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->lock);
}
