/* SPDX-License-Identifier: Apache-2.0 */
/* chain_delayed_ack.c - both ends of a connection wait for the other.
 *
 * A sender that has a second small packet keeps it until the first is acknowledged (Nagle), and the receiver, which cannot
 * answer half a message, acknowledges 40 ms later. So both are in a receive at the same time, for that long, again and again.
 * A peer that takes as long to answer is not: it sleeps, computes, or waits for somebody else. What a stay was for is told
 * by the row of the receive that it was in, or that followed it at once after poll(). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/macros.h"
#include "base/search.h"
#include "diagnose/chains/chain_private.h"
#include "diagnose/rows/reply.h"
#include "diagnose/thresholds.h"

#define ACK_LEAST_NS (39 * NS_PER_MS)
#define ACK_MOST_NS  (51 * NS_PER_MS)     /* where the kernel's clock ticks every 10 ms */
#define AT_ONCE_NS   ((int64_t)NS_PER_MS) /* from the end of a stay in poll() to the receive */

struct wait {
	int64_t start_ns, end_ns;
};

ORDER(by_end, struct wait, ASCENDING(end_ns))

struct waits { /* in order of their ends */
	struct wait *items;
	size_t count;
};

/* Whether @e, of the thread of @r, took what @r waited for: it was in the call meanwhile, or, after poll(), had nothing to wait for
 * any more. */
static bool ended(const struct event *e, const struct ledger_row *r)
{
	int64_t end = ledger_end_ns(r);

	if (e->source != SOURCE_NET || e->op != NET_RECV || e->tid != r->tid || e->ret < 0)
		return false;
	if (r->stay_line == LEDGER_SOCKET)
		return e->start.ns <= end && event_end_ns(e) + AT_ONCE_NS >= end;
	return e->start.ns + AT_ONCE_NS >= end && e->dur_ns < (uint64_t)AT_ONCE_NS &&
	       (double)e->wait_ns >= THRESHOLD(MOST) * (double)r->stay_ns;
}

/* Whether @e is received from somebody else than @other: another process that listens. */
static bool is_of_third(const struct event *e, uint32_t other)
{
	return e->peer_pid ? e->peer_pid != other : reply_is(e, e->pid);
}

/* Whether @r is a stay that data from @other ended. */
static bool is_receive(const struct chain *c, const struct ledger_row *r, uint32_t other)
{
	const struct recording *rec = c->rec;
	int64_t from = ledger_end_ns(r) - (int64_t)(r->stay_ns + ACK_MOST_NS);
	size_t i = LOWER_BOUND(k, rec->event_count, rec->events[k].start.ns < from);

	for (; i < rec->event_count && rec->events[i].start.ns <= ledger_end_ns(r) + AT_ONCE_NS;
		i++)
		if (ended(&rec->events[i], r))
			return !is_of_third(&rec->events[i], other);
	return false;
}

/* Whether @r is a stay of @pid that lasts as long as an acknowledgement that is delayed. */
static bool is_as_long(const struct chain *c, const struct ledger_row *r, uint32_t pid)
{
	return r->pid == pid && r->mark == MARK_STAY && r->waker != WAKER_TIMER &&
	       r->stay_ns >= ACK_LEAST_NS && r->stay_ns <= ACK_MOST_NS &&
	       (r->stay_line == LEDGER_SOCKET || r->stay_line == LEDGER_POLL) &&
	       chain_time(c, ledger_end_ns(r) - 1);
}

/* Those of @pid that data from @other ended. *ret_all: how many last as long. 0 or -ENOMEM. */
static int waits_find(
	const struct chain *c, uint32_t pid, uint32_t other, struct waits *ret, size_t *ret_all)
{
	const struct ledger_row *rows = c->rec->ledger;

	*ret_all = 0;
	for (size_t i = 0; i < c->rec->ledger_count; i++)
		*ret_all += is_as_long(c, &rows[i], pid);
	*ret = (struct waits){.items = calloc(*ret_all + 1, sizeof(*ret->items))};
	if (!ret->items)
		return -ENOMEM;
	for (size_t i = 0; i < c->rec->ledger_count; i++) {
		int64_t end = ledger_end_ns(&rows[i]);

		if (is_as_long(c, &rows[i], pid) && is_receive(c, &rows[i], other))
			ret->items[ret->count++] =
				(struct wait){end - (int64_t)rows[i].stay_ns, end};
	}
	SORT(ret->items, ret->count, by_end);
	return 0;
}

/* Whether one of @w lies beside most of @x. */
static bool is_mutual(const struct wait *x, const struct waits *w)
{
	size_t i = LOWER_BOUND(k, w->count, w->items[k].end_ns <= x->start_ns);

	for (; i < w->count && w->items[i].end_ns < x->end_ns + (int64_t)ACK_MOST_NS; i++) {
		int64_t both =
			MIN(x->end_ns, w->items[i].end_ns) - MAX(x->start_ns, w->items[i].start_ns);

		if ((double)both >= THRESHOLD(MOST) * (double)(x->end_ns - x->start_ns))
			return true;
	}
	return false;
}

void chain_delayed_ack(const struct chain *c, struct resource_use *use)
{
	struct waits own = {0}, other = {0};
	size_t all = 0, others_all, count = 0;
	uint64_t ns = 0;

	if (c->line != ACCOUNT_NETWORK || !use->pid)
		return;
	if (waits_find(c, c->a->pid, use->pid, &own, &all) == 0 &&
		waits_find(c, use->pid, c->a->pid, &other, &others_all) == 0)
		for (size_t i = 0; i < own.count; i++) {
			if (!is_mutual(&own.items[i], &other))
				continue;
			ns += (uint64_t)(own.items[i].end_ns - own.items[i].start_ns);
			count++;
		}
	free(own.items);
	free(other.items);
	if ((double)count < THRESHOLD(AGAIN) || (double)count < THRESHOLD(MOST) * (double)all ||
		(double)ns < THRESHOLD(MOST) * (double)chain_lost_ns(c))
		return;
	use->resource = RESOURCE_DELAYED_ACK;
	snprintf(use->detail, sizeof(use->detail), "%zu waits of %.0f ms on average", count,
		(double)ns / (double)count / NS_PER_MS);
}
