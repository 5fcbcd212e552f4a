/* SPDX-License-Identifier: Apache-2.0 */
/* reader.c - the rings of the probes on one side, decode_event() and the sink on the other. Runs on
 * the tracer's thread. The life ring is read first, so that an exit is known before later calls. */
#include "record/capture/reader.h"

#include <arpa/inet.h>
#include <limits.h>
#include <poll.h>

#include "record/probe/ring.h"

DEFINE_CLEANUP(struct reader *, reader_free)

/* Reads the records of wire/record.h. The kernel half is ours, but a record is checked
 * like any foreign bytes: a mismatch is a counted loss, never a wrong event. */

#define MEMCPY_KIND_DTOD 3

static void copy_comm(char out[COMM_LEN], const char in[WIRE_COMM_LEN])
{
	memcpy(out, in, COMM_LEN);
	out[COMM_LEN - 1] = 0;
}

static void decode_header(
	const struct wire_header *h, const struct clock_map *clock, struct event *e)
{
	*e = (struct event){
		.start = clock_map_wall(clock, (mono_time){h->start_ns}),
		.dur_ns = h->dur_ns,
		.pid = h->pid,
		.tid = h->tid,
		.source = h->source,
		.op = h->op,
		.flags = h->flags,
		.cpu = h->cpu,
		.weight = h->weight,
		.cgroup_id = h->cgroup_id,
	};
	copy_comm(e->comm, h->comm);
}

static void decode_call(const struct wire_call *r, struct event *e)
{
	e->arg0 = r->arg0;
	e->arg1 = r->arg1;
	e->stream = r->stream;
	e->stack_hash = r->stack;
	e->ret = r->ret;
	e->device = r->device;
	if (e->source == SOURCE_CUDA &&
		(e->op == CUDA_MEMCPY_PEER || e->op == CUDA_MEMCPY_PEER_ASYNC))
		e->arg1 = MEMCPY_KIND_DTOD;
}

static void decode_sched(const struct wire_sched *r, struct event *e)
{
	e->wait_ns = r->wait_ns;
	e->peer_pid = r->by_pid;
	e->arg0 = r->wait_ns;
	e->arg1 = r->by_pid;
	e->stream = r->waker_pid;
	copy_comm(e->peer_comm, r->by_comm);
}

static void decode_stays(const struct wire_stays *r, struct event *e)
{
	e->arg0 = r->line;
	e->arg1 = r->ns;
	e->wait_ns = r->span_ns;
	e->stack_hash = r->stack;
	e->peer_pid = r->by_pid;
	e->stream = r->by_tid;
	copy_comm(e->peer_comm, r->by_comm);
}

static void decode_block(const struct wire_block *r, struct event *e)
{
	e->arg0 = r->bytes >> 9;
	e->arg1 = r->sector;
	e->dev = r->dev;
	e->ret = r->error;
}

static void decode_process(const struct wire_process *r, struct event *e)
{
	e->peer_pid = r->peer_pid;
	e->arg1 = r->peer_pid;
	if (e->op == HOST_PROCESS_EXIT)
		e->arg0 = (uint32_t)r->exit_code;
	if (e->op == HOST_TARGET_FOUND)
		e->arg0 = r->born_ns;
}

static void decode_net(const struct wire_net *r, struct event *e)
{
	e->arg0 = r->fd;
	e->arg1 = r->bytes > 0 ? (uint64_t)r->bytes : 0;
	e->ret = r->bytes < 0 ? (int32_t)r->bytes : 0;
	e->wait_ns = r->wait_ns;
	if (!r->family || !r->port)
		return;
	e->family = r->family;
	e->dev = r->port;
	memcpy(e->peer_addr, r->addr, sizeof(e->peer_addr));
}

/* IPv4 as published: both addresses in arg0, both ports in arg1; the other end of both families for
 * event_peer(). */
static void decode_tcp(const struct wire_tcp *r, struct event *e)
{
	uint32_t from, to;

	e->family = r->family;
	if (r->family) /* without one that place is a name, which ends */
		memcpy(e->peer_addr, r->daddr, sizeof(e->peer_addr));
	e->arg1 = (uint64_t)r->sport << 16 | r->dport;
	if (r->family != AF_INET)
		return;
	memcpy(&from, r->saddr, 4);
	memcpy(&to, r->daddr, 4);
	e->arg0 = (uint64_t)from << 32 | to;
}

static void decode_nccl(const struct wire_nccl *r, struct event *e, struct collective *c)
{
	e->arg0 = r->bytes;
	e->arg1 = r->seq > 0 ? (uint64_t)r->seq : 0;
	e->stream = r->stream;
	e->stack_hash = r->stack;
	e->ret = r->ret;
	e->device = r->device;
	*c = (struct collective){
		.comm = r->comm,
		.comm_hash = r->comm_hash,
		.seq = (uint64_t)r->seq,
		.bytes = r->bytes,
		.count = r->count,
		.rank = r->rank,
		.nranks = r->nranks,
		.datatype = r->datatype,
		.reduce_op = r->reduce_op,
		.root = r->root,
		.peer = r->peer,
		.wait_ns = -1,
	};
}

int decode_event(const void *data, size_t len, const struct clock_map *clock, struct event *ret,
	struct collective *ret_nccl)
{
	const struct wire_header *h = data;
	struct event e;

	if (len < sizeof(*h) || h->size > len || h->version != WIRE_VERSION)
		return -EBADMSG;
#define RECORD_IS(type, decoder)                                                                   \
	do {                                                                                       \
		if (h->size != sizeof(struct type))                                                \
			return -EBADMSG;                                                           \
		decode_header(h, clock, &e);                                                       \
		decoder(data, &e);                                                                 \
	} while (0)

	if (h->source == SOURCE_NCCL && h->size == sizeof(struct wire_nccl)) {
		decode_header(h, clock, ret);
		decode_nccl(data, ret, ret_nccl);
		return 0;
	}
	if (h->source == SOURCE_CUDA || h->source == SOURCE_DRIVER || h->source == SOURCE_GRAPH ||
		h->source == SOURCE_NVTX)
		RECORD_IS(wire_call, decode_call);
	else if (h->source == SOURCE_NET)
		RECORD_IS(wire_net, decode_net);
	else if (h->source == SOURCE_TCP)
		RECORD_IS(wire_tcp, decode_tcp);
	else if (h->source == SOURCE_IO)
		RECORD_IS(wire_block, decode_block);
	else if (h->source == SOURCE_HOST && h->op == HOST_SCHED_SWITCH)
		RECORD_IS(wire_sched, decode_sched);
	else if (h->source == SOURCE_HOST &&
		 (h->op == HOST_DIRECT_RECLAIM || h->op == HOST_COMPACTION ||
			 h->op == HOST_CPU_SAMPLE))
		RECORD_IS(wire_call, decode_call);
	else if (h->source == SOURCE_HOST && h->op == HOST_SHORT_STAYS)
		RECORD_IS(wire_stays, decode_stays);
	else if (h->source == SOURCE_HOST && h->op != HOST_LEDGER)
		RECORD_IS(wire_process, decode_process);
	else
		return -EBADMSG;
#undef RECORD_IS
	*ret = e;
	return 0;
}

bool decode_is_ledger(const void *data, size_t len)
{
	const struct wire_header *h = data;

	return len >= sizeof(*h) && h->source == SOURCE_HOST && h->op == HOST_LEDGER;
}

#define X(id, ...)  +1
#define MARK_COUNT  (0 WIRE_MARKS(X))
#define WAKER_COUNT (0 WIRE_WAKERS(X))

static bool is_ledger_sound(const struct wire_ledger *r)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < LEDGER_LINES; i++) {
		if (r->ns[i] > r->h.dur_ns)
			return false;
		sum += r->ns[i];
	}
	return sum == r->h.dur_ns && r->mark < MARK_COUNT && r->waker < WAKER_COUNT &&
	       r->stay_line < LEDGER_LINES && r->stay_ns <= r->h.dur_ns &&
	       r->stay_wait_ns <= r->stay_ns;
}

#undef X

int decode_ledger(
	const void *data, size_t len, const struct clock_map *clock, struct ledger_row *ret)
{
	const struct wire_ledger *r = data;

	if (len < sizeof(*r) || r->h.size != sizeof(*r) || r->h.version != WIRE_VERSION ||
		!decode_is_ledger(data, len) || !is_ledger_sound(r))
		return -EBADMSG;
	*ret = (struct ledger_row){
		.start = clock_map_wall(clock, (mono_time){r->h.start_ns}),
		.dur_ns = r->h.dur_ns,
		.pid = r->h.pid,
		.tid = r->h.tid,
		.copy_bytes = r->copy_bytes,
		.launches = r->launches,
		.waits = r->waits,
		.copies = r->copies,
		.allocs = r->allocs,
		.stays = r->stays,
		.mark = r->mark,
		.waker = r->waker,
		.stay_line = r->stay_line,
		.launches_off = !!r->launches_off,
		.stay_ns = r->stay_ns,
		.stay_wait_ns = r->stay_wait_ns,
		.waker_pid = r->waker_pid,
		.waker_tid = r->waker_tid,
		.stack_hash = r->stack,
	};
	memcpy(ret->ns, r->ns, sizeof(ret->ns));
	copy_comm(ret->comm, r->h.comm);
	copy_comm(ret->waker_comm, r->waker_comm);
	return 0;
}

/* The kernel half is ours, the text is a stranger's: any bytes. */

int decode_name(
	const void *data, size_t len, const struct clock_map *clock, struct name_record *ret)
{
	const struct wire_name *n = data;
	size_t room;

	if (len < sizeof(*n) || n->h.version != WIRE_VERSION || n->h.size > len ||
		n->h.size < sizeof(*n) || n->kind < NAME_OF_FUNCTION || n->kind > NAME_TEXT)
		return -EBADMSG;
	room = n->h.size - sizeof(*n);
	if (n->kind == NAME_ALIAS ? room != 0 : !memchr(n->text, 0, room))
		return -EBADMSG;
	*ret = (struct name_record){
		.kind = (enum wire_name_kind)n->kind,
		.source = n->h.source,
		.pid = n->h.pid,
		.at = clock_map_wall(clock, (mono_time){n->h.start_ns}),
		.key = n->key,
		.other = n->other,
		.is_cut = n->is_cut,
		.text = n->kind == NAME_ALIAS ? "" : n->text,
	};
	return 0;
}

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
	err = ring_new(probe_map(p, "life"), take_record, r, &r->life);
	err = err ?: ring_new(probe_map(p, "events"), take_record, r, &r->events);
	err = err ?: ring_new(probe_map(p, "names"), take_name, r, &r->names);
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
