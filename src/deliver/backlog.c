/* SPDX-License-Identifier: Apache-2.0 */
/* backlog.c - see backlog.h. Invariants: count <= BACKLOG_BATCHES; bytes is the sum of all lengths
 * and <= BACKLOG_BYTES; the first batch is never dropped while it is under way; every batch that
 * was put is counted once, in sent, dropped or refused, when it leaves. */
#include "deliver/backlog.h"

#include <ctype.h>
#include <time.h>

#include "base/macros.h"

#define BACKLOG_FIRST_NS NS_PER_S
#define BACKLOG_LAST_NS  (30 * NS_PER_S)

enum backlog_outcome verdict_http(int status)
{
	switch (status) {
	case 429:
	case 502:
	case 503:
	case 504: return BACKLOG_AGAIN;
	default: return status >= 200 && status < 300 ? BACKLOG_SENT : BACKLOG_REFUSED;
	}
}

enum backlog_outcome verdict_grpc(int status)
{
	switch (status) {
	case 0: return BACKLOG_SENT;
	case 1:  /* CANCELLED */
	case 4:  /* DEADLINE_EXCEEDED */
	case 10: /* ABORTED */
	case 11: /* OUT_OF_RANGE */
	case 14: /* UNAVAILABLE */
	case 15: /* DATA_LOSS */ return BACKLOG_AGAIN;
	default: return BACKLOG_REFUSED;
	}
}

uint64_t verdict_retry_after(const char *text, wall_time now)
{
	unsigned long seconds;
	struct tm date = {0};
	const char *end;
	int64_t when;

	if (!text)
		return 0;
	if (isdigit((unsigned char)*text)) {
		errno = 0;
		seconds = strtoul(text, (char **)&end, 10);
		if (*end)
			return 0;
		return errno ? BACKLOG_ASKED_MAX
			     : MIN(seconds, BACKLOG_ASKED_MAX / NS_PER_S) * NS_PER_S;
	}
	end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &date);
	if (!end || *end)
		return 0;
	when = timegm(&date) - now.ns / (int64_t)NS_PER_S;
	return when > 0 ? MIN((uint64_t)when, BACKLOG_ASKED_MAX / NS_PER_S) * NS_PER_S : 0;
}

static struct backlog_batch *batch_at(struct backlog *b, size_t i)
{
	return &b->ring[(b->head + i) % BACKLOG_BATCHES];
}

static void batch_drop(struct backlog *b, const struct backlog_batch *batch)
{
	b->stats.dropped_batches++;
	b->stats.dropped_points += batch->points;
	free(batch->data);
}

void backlog_done(struct backlog *b)
{
	for (size_t i = 0; i < b->count; i++)
		free(batch_at(b, i)->data);
	*b = (struct backlog){0};
}

static void remove_first(struct backlog *b)
{
	b->bytes -= batch_at(b, 0)->len;
	b->head = (b->head + 1) % BACKLOG_BATCHES;
	b->count--;
}

/* The oldest that may go; while the first is under way that is the second, and the first moves into
 * its place. Returns false if there is none. */
static bool drop_oldest(struct backlog *b)
{
	struct backlog_batch first = *batch_at(b, 0);

	if (b->count <= b->under_way)
		return false;
	if (b->under_way) {
		struct backlog_batch second = *batch_at(b, 1);

		*batch_at(b, 1) = first;
		*batch_at(b, 0) = second;
	}
	batch_drop(b, batch_at(b, 0));
	remove_first(b);
	return true;
}

void backlog_put(struct backlog *b, struct backlog_batch batch)
{
	bool has_room = batch.len <= BACKLOG_BYTES;

	while (has_room && (b->count == BACKLOG_BATCHES || b->bytes > BACKLOG_BYTES - batch.len))
		has_room = drop_oldest(b);
	if (!has_room) {
		batch_drop(b, &batch);
		return;
	}
	*batch_at(b, b->count++) = batch;
	b->bytes += batch.len;
}

const struct backlog_batch *backlog_begin(struct backlog *b, mono_time now)
{
	if (!b->count || b->under_way || now.ns < b->due_ns)
		return NULL;
	b->under_way = true;
	return batch_at(b, 0);
}

/* xorshift64: spreads attempts, keeps no secret. */
static uint64_t next_random(struct backlog *b)
{
	uint64_t v = b->random ? b->random : 1;

	v ^= v << 13;
	v ^= v >> 7;
	v ^= v << 17;
	return b->random = v;
}

static uint64_t pause_ns(struct backlog *b)
{
	unsigned doublings = MIN(b->failures - 1, 5u); /* 2^5 s is more than the last */
	uint64_t whole = MIN(BACKLOG_FIRST_NS << doublings, BACKLOG_LAST_NS);

	return whole - next_random(b) % (whole / 2 + 1);
}

void backlog_end(struct backlog *b, mono_time now, enum backlog_outcome outcome, uint64_t asked_ns)
{
	struct backlog_batch *first = batch_at(b, 0);

	if (!b->under_way)
		return;
	b->under_way = false;
	if (outcome == BACKLOG_AGAIN) {
		b->failures++;
		b->stats.retries++;
		b->due_ns = now.ns + MAX(pause_ns(b), MIN(asked_ns, BACKLOG_ASKED_MAX));
		return;
	}
	b->failures = 0;
	b->due_ns = 0;
	if (outcome == BACKLOG_SENT) {
		b->stats.sent_batches++;
		b->stats.sent_points += first->points;
	} else {
		b->stats.refused_batches++;
		b->stats.refused_points += first->points;
	}
	free(first->data);
	remove_first(b);
}

uint64_t backlog_wait_ns(const struct backlog *b, mono_time now)
{
	if (!b->count || b->under_way)
		return UINT64_MAX;
	return b->due_ns > now.ns ? b->due_ns - now.ns : 0;
}

const struct backlog_batch *backlog_first(const struct backlog *b)
{
	return b->count ? &b->ring[b->head] : NULL;
}

void backlog_hurry(struct backlog *b)
{
	b->due_ns = 0;
}
