/* SPDX-License-Identifier: Apache-2.0 */
/* reader.c - libbpf's ring buffers on one side, decode_event() and the sink on the other. Runs on
 * the tracer's thread. The life ring is read first, so that an exit is known before later calls. */
#include "agent/capture/reader.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "agent/capture/decode.h"

struct reader {
	struct ring_buffer *life, *events, *names;
	const struct clock_map *clock;
	reader_sink *sink;
	reader_ledger_sink *ledger_sink;
	reader_name_sink *name_sink;
	void *arg;
	uint64_t bad[WIRE_SOURCE_MAX];
};

static int take_bad(struct reader *r, const void *data, size_t len)
{
	const struct wire_header *h = data;

	r->bad[len >= sizeof(*h) ? h->source & (WIRE_SOURCE_MAX - 1) : 0]++;
	return 0;
}

static int take_ledger(struct reader *r, const void *data, size_t len)
{
	struct ledger_row row;

	if (decode_ledger(data, len, r->clock, &row) < 0)
		return take_bad(r, data, len);
	r->ledger_sink(r->arg, &row);
	return 0;
}

static int take_record(void *arg, void *data, size_t len)
{
	struct reader *r = arg;
	struct collective c;
	struct event e;

	if (decode_is_ledger(data, len))
		return take_ledger(r, data, len);
	if (decode_event(data, len, r->clock, &e, &c) < 0)
		return take_bad(r, data, len);
	r->sink(r->arg, &e, e.source == SOURCE_NCCL ? &c : NULL);
	return 0;
}

static int take_name(void *arg, void *data, size_t len)
{
	struct reader *r = arg;
	struct name_record n;

	if (r->name_sink && decode_name(data, len, r->clock, &n) == 0)
		r->name_sink(r->arg, &n);
	return 0;
}

void reader_take_names(struct reader *r, reader_name_sink *sink)
{
	r->name_sink = sink;
}

void reader_free(struct reader *r)
{
	ring_buffer__free(r->life);
	ring_buffer__free(r->events);
	ring_buffer__free(r->names);
	free(r);
}

int reader_new(struct probe *p, const struct clock_map *clock, reader_sink *sink,
	reader_ledger_sink *ledger_sink, void *arg, struct reader **ret)
{
	_cleanup_(reader_freep) struct reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->clock = clock;
	r->sink = sink;
	r->ledger_sink = ledger_sink;
	r->arg = arg;
	r->life = ring_buffer__new(probe_ring_life(p), take_record, r, NULL);
	r->events = ring_buffer__new(probe_ring_events(p), take_record, r, NULL);
	r->names = ring_buffer__new(probe_ring_names(p), take_name, r, NULL);
	if (!r->life || !r->events || !r->names)
		return -errno;
	*ret = TAKE(r);
	return 0;
}

void reader_wait(struct reader *r, int other_fd, int timeout_ms)
{
	struct pollfd rings[] = {{.fd = ring_buffer__epoll_fd(r->life), .events = POLLIN},
		{.fd = ring_buffer__epoll_fd(r->events), .events = POLLIN},
		{.fd = ring_buffer__epoll_fd(r->names), .events = POLLIN},
		{.fd = other_fd, .events = POLLIN}};

	poll(rings, ARRAY_SIZE(rings), timeout_ms);
}

int reader_consume(struct reader *r)
{
	int life = ring_buffer__consume(r->life);
	int events = ring_buffer__consume(r->events);

	ring_buffer__consume(r->names);
	return MAX(life, 0) + MAX(events, 0);
}

uint64_t reader_bad(const struct reader *r, unsigned source)
{
	return r->bad[source & (WIRE_SOURCE_MAX - 1)];
}
