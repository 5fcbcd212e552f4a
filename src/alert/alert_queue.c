/* SPDX-License-Identifier: Apache-2.0 */
/* alert_queue.c - see alert_queue.h. Invariants: at most one item waits for an episode; a BEGAN waits
 * only for episodes that are not in `open`, other kinds only for those that are. */
#include "alert/alert_queue.h"

#include <errno.h>

void alert_queue_done(struct alert_queue *q)
{
	uint64_t id;
	size_t cursor = 0;
	void *open;

	while (q->head)
		free(alert_queue_take(q));
	while ((open = idmap_next(&q->open, &cursor, &id)))
		free(open);
	idmap_done(&q->open);
}

static struct alert_item *find(const struct alert_queue *q, uint64_t id)
{
	struct alert_item *i = q->head;

	while (i && i->notice.matter.id != id)
		i = i->next;
	return i;
}

static void take_out(struct alert_queue *q, struct alert_item *item)
{
	struct alert_item **link = &q->head, *before = NULL;

	while (*link != item) {
		before = *link;
		link = &(*link)->next;
	}
	*link = item->next;
	if (q->tail == item)
		q->tail = before;
	q->count--;
}

/* Room for one more, if need be at the cost of the oldest that is not an end: an incident that is
 * never resolved is worse than one that is not told. */
static bool make_room(struct alert_queue *q, enum alert_kind kind)
{
	struct alert_item *i = q->head;

	if (q->count < ALERT_WAITING_MAX)
		return true;
	q->lost++;
	while (i && i->notice.kind == ALERT_ENDED)
		i = i->next;
	if (kind != ALERT_ENDED || !i)
		return false;
	take_out(q, i);
	free(i);
	return true;
}

static void append(struct alert_queue *q, const struct alert_notice *n, enum alert_kind kind)
{
	struct alert_item *i = make_room(q, kind) ? calloc(1, sizeof(*i)) : NULL;

	if (!i) {
		q->lost += q->count < ALERT_WAITING_MAX; /* for want of memory */
		return;
	}
	i->notice = *n;
	i->notice.kind = kind;
	*(q->tail ? &q->tail->next : &q->head) = i;
	q->tail = i;
	q->count++;
}

void alert_queue_put(struct alert_queue *q, const struct alert_notice *n)
{
	bool is_open = idmap_get(&q->open, n->matter.id);
	struct alert_item *waiting = find(q, n->matter.id);
	bool ends = n->kind == ALERT_ENDED;

	if (ends && !is_open) { /* nobody was told that it began */
		q->brief += 1 + !!waiting;
		if (waiting)
			take_out(q, waiting);
		free(waiting);
	} else if (waiting) {
		q->merged++;
		waiting->notice.matter = n->matter;
		if (ends)
			waiting->notice.kind = ALERT_ENDED;
	} else if (is_open && n->kind == ALERT_BEGAN) {
		append(q, n, ALERT_CHANGED);
	} else {
		append(q, n, is_open ? n->kind : ALERT_BEGAN);
	}
}

/* What the receiver believes once it was told. False: there is no room to remember a new one. */
static bool remember(struct alert_queue *q, struct alert_item *i)
{
	const struct alert_matter *e = &i->notice.matter;
	struct alert_open *open = idmap_get(&q->open, e->id);

	if (!open) {
		open = malloc(sizeof(*open));
		if (!open || idmap_put(&q->open, e->id, open) < 0) {
			free(open);
			return false;
		}
		open->first = *e;
	}
	open->now = *e;
	i->first = open->first;
	if (i->notice.kind == ALERT_ENDED)
		free(idmap_remove(&q->open, e->id));
	return true;
}

struct alert_item *alert_queue_take(struct alert_queue *q)
{
	struct alert_item *i;

	while ((i = q->head)) {
		take_out(q, i);
		i->next = NULL;
		if (remember(q, i))
			return i;
		q->lost++; /* it could never be resolved */
		free(i);
	}
	return NULL;
}

const struct alert_open *alert_queue_open(const struct alert_queue *q, size_t *cursor)
{
	uint64_t id;

	return idmap_next(&q->open, cursor, &id);
}
