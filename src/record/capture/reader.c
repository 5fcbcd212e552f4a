/* SPDX-License-Identifier: Apache-2.0 */
/* reader.c - the rings of the probes on one side, decode_event() and the sink on the other. Runs on
 * the tracer's thread. The life ring is read first, so that an exit is known before later calls. */
#include "record/capture/reader.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>

#include "record/capture/decode.h"
#include "record/probe/ring.h"

struct reader {
	struct ring *life, *events, *names;
	const struct clock_map *clock;
	reader_sink *sink;
	reader_ledger_sink *ledger_sink;
	reader_name_sink *name_sink;
	void *arg;
	uint64_t bad[WIRE_SOURCE_MAX];
};

static void take_bad(struct reader *r, const void *data, size_t len)
{
	const struct wire_header *h = data;

	r->bad[len >= sizeof(*h) ? h->source & (WIRE_SOURCE_MAX - 1) : 0]++;
}

static void take_ledger(struct reader *r, const void *data, size_t len)
{
	struct ledger_row row;

	if (decode_ledger(data, len, r->clock, &row) < 0)
		take_bad(r, data, len);
	else
		r->ledger_sink(r->arg, &row);
}

static void take_record(void *arg, const void *data, size_t len)
{
	struct reader *r = arg;
	struct collective c;
	struct event e;

	if (decode_is_ledger(data, len))
		take_ledger(r, data, len);
	else if (decode_event(data, len, r->clock, &e, &c) < 0)
		take_bad(r, data, len);
	else
		r->sink(r->arg, &e, e.source == SOURCE_NCCL ? &c : NULL);
}

static void take_name(void *arg, const void *data, size_t len)
{
	struct reader *r = arg;
	struct name_record n;

	if (r->name_sink && decode_name(data, len, r->clock, &n) == 0)
		r->name_sink(r->arg, &n);
}

void reader_take_names(struct reader *r, reader_name_sink *sink)
{
	r->name_sink = sink;
}

void reader_free(struct reader *r)
{
	ring_free(r->life);
	ring_free(r->events);
	ring_free(r->names);
	free(r);
}

int reader_new(struct probe *p, const struct clock_map *clock, reader_sink *sink,
	reader_ledger_sink *ledger_sink, void *arg, struct reader **ret)
{
	_cleanup_(reader_freep) struct reader *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->clock = clock;
	r->sink = sink;
	r->ledger_sink = ledger_sink;
	r->arg = arg;
	err = ring_new(probe_ring_life(p), take_record, r, &r->life);
	if (err == 0)
		err = ring_new(probe_ring_events(p), take_record, r, &r->events);
	if (err == 0)
		err = ring_new(probe_ring_names(p), take_name, r, &r->names);
	if (err < 0)
		return err;
	*ret = TAKE(r);
	return 0;
}

void reader_wait(struct reader *r, int other_fd, int timeout_ms)
{
	struct pollfd rings[] = {{.fd = r->life->epoll_fd, .events = POLLIN},
		{.fd = r->events->epoll_fd, .events = POLLIN},
		{.fd = r->names->epoll_fd, .events = POLLIN}, {.fd = other_fd, .events = POLLIN}};

	poll(rings, ARRAY_SIZE(rings), timeout_ms);
}

int reader_consume(struct reader *r)
{
	size_t life = ring_consume(r->life), events = ring_consume(r->events);

	ring_consume(r->names);
	return (int)MIN(life + events, (size_t)INT_MAX);
}

uint64_t reader_bad(const struct reader *r, unsigned source)
{
	return r->bad[source & (WIRE_SOURCE_MAX - 1)];
}
