/* SPDX-License-Identifier: Apache-2.0 */
/* writer_push.c - the pushing side of the store's writer: copies what is given into the ring of
 * events or the list of messages, or says that there is no room. Any thread; never waits for more
 * than the mutex. */

#include "base/mutex.h"
#include "store/write/writer_private.h"

#define MESSAGE_CMDLINE 4096

bool store_writer_push(struct store_writer *w, const struct event *e)
{
	bool wake = false, room;

	pthread_mutex_lock(&w->mutex);
	room = w->count < w->ring_size && !w->stopping;
	if (room) {
		w->ring[(w->head + w->count) % w->ring_size] = *e;
		wake = ++w->count == w->wake_at;
	}
	pthread_mutex_unlock(&w->mutex);
	if (wake)
		pthread_cond_signal(&w->wake);
	return room;
}

static struct message *message_new(enum message_kind kind, const void *data, size_t len)
{
	struct message *m = calloc(1, sizeof(*m) + len);

	if (!m)
		return NULL;
	m->size = sizeof(*m) + len;
	m->kind = kind;
	m->len = len;
	if (data)
		memcpy(m->data, data, len);
	return m;
}

static bool push_message(struct store_writer *w, struct message *m)
{
	bool is_bulk = m && (m->kind == MESSAGE_STACK || m->kind == MESSAGE_LEDGER ||
				    m->kind == MESSAGE_KERNEL ||
				    (m->kind == MESSAGE_ROW && m->row == NODEDB_ROW_TEXT));
	size_t max = is_bulk ? WRITER_BULK_BYTES : WRITER_MESSAGE_BYTES, before;
	bool room, wake = false;

	if (!m)
		return false;
	pthread_mutex_lock(&w->mutex);
	before = w->message_bytes;
	room = !w->stopping && before + m->size <= max;
	if (room) {
		w->message_bytes += m->size;
		*w->end = m;
		w->end = &m->next;
		/* Rows that are counted do not wait until there is no room; while a full disk keeps
		 * them, more do not wake the thread again. */
		wake = m->kind == MESSAGE_LEDGER && before < WRITER_BULK_BYTES / 2 &&
		       w->message_bytes >= WRITER_BULK_BYTES / 2;
		w->urgent = w->urgent || wake;
	}
	pthread_mutex_unlock(&w->mutex);
	if (wake)
		pthread_cond_signal(&w->wake);
	if (!room)
		free(m);
	return room;
}

bool store_writer_push_aggregate(struct store_writer *w, const struct aggregate *a)
{
	uint8_t blob[SKETCH_BLOB_MAX];
	struct message *m = message_new(MESSAGE_AGGREGATE, blob, sketch_encode(&a->sketch, blob));

	if (!m)
		return false;
	m->aggregate.bucket = a->bucket;
	m->aggregate.pid = a->pid;
	m->aggregate.op = a->op;
	m->aggregate.source = a->source;
	m->aggregate.flags = a->flags;
	m->aggregate.stored = a->stored;
	m->aggregate.estimated = a->estimated;
	m->aggregate.sum_arg0 = a->sum_arg0;
	m->aggregate.count = a->sketch.count;
	m->aggregate.sum = a->sketch.sum;
	m->aggregate.min = a->sketch.min;
	m->aggregate.max = a->sketch.max;
	return push_message(w, m);
}

bool store_writer_push_of(
	struct store_writer *w, enum nodedb_row which, const void *row, size_t bytes)
{
	struct message *m = message_new(MESSAGE_ROW, row, bytes);

	if (m)
		m->row = which;
	return push_message(w, m);
}

bool store_writer_push_ledger(struct store_writer *w, const struct ledger_row *row)
{
	return push_message(w, message_new(MESSAGE_LEDGER, row, sizeof(*row)));
}

bool store_writer_push_gpu(
	struct store_writer *w, const char *model, const char *driver, const char *cuda)
{
	struct gpu_names names;

	snprintf(names.model, sizeof(names.model), "%s", model);
	snprintf(names.driver, sizeof(names.driver), "%s", driver);
	snprintf(names.cuda, sizeof(names.cuda), "%s", cuda);
	return push_message(w, message_new(MESSAGE_GPU, &names, sizeof(names)));
}

bool store_writer_push_collective(
	struct store_writer *w, const struct event *e, const struct collective *c)
{
	struct message *m = message_new(MESSAGE_COLLECTIVE, NULL, 0);

	if (m) {
		m->collective.event = *e;
		m->collective.nccl = *c;
	}
	return push_message(w, m);
}

bool store_writer_push_process(struct store_writer *w, const struct process *p, const char *cmdline)
{
	size_t len = cmdline ? strnlen(cmdline, MESSAGE_CMDLINE - 1) : 0;
	struct message *m = message_new(MESSAGE_PROCESS, NULL, sizeof(*p) + len + 1);

	if (!m)
		return false;
	memcpy(m->data, p, sizeof(*p));
	if (len)
		memcpy(m->data + sizeof(*p), cmdline, len);
	return push_message(w, m);
}

bool store_writer_push_stack(struct store_writer *w, const struct stack *s)
{
	_cleanup_buf_ struct buf frames = BUF_INIT(STACK_JSON_MAX), ips = BUF_INIT(STACK_JSON_MAX),
				 stop = BUF_INIT(STACK_JSON_MAX);
	struct message *m;

	stack_json_frames(s, &frames, &stop);
	stack_json_ips(s, &ips);
	if (frames.err || ips.err || stop.err)
		return false;
	m = message_new(MESSAGE_STACK, NULL, ips.len + frames.len + stop.len + 3);
	if (!m)
		return false;
	m->stack.hash = s->hash;
	m->stack.ips_len = ips.len;
	m->stack.frames_len = frames.len;
	m->stack.stop_len = stop.len;
	memcpy(m->data, buf_str(&ips), ips.len + 1);
	memcpy(m->data + ips.len + 1, buf_str(&frames), frames.len + 1);
	memcpy(m->data + ips.len + 1 + frames.len + 1, buf_str(&stop), stop.len + 1);
	return push_message(w, m);
}

bool store_writer_push_layers(
	struct store_writer *w, uint32_t pid, uint64_t start_ticks, const struct process_layers *l)
{
	struct message *m = message_new(MESSAGE_LAYERS, l, sizeof(*l));

	if (!m)
		return false;
	m->owner.pid = pid;
	m->owner.start_ticks = start_ticks;
	return push_message(w, m);
}

bool store_writer_push_kernel(struct store_writer *w, const struct kernel_row *k)
{
	size_t len = offsetof(struct kernel_row, name) + strnlen(k->name, sizeof(k->name) - 1);

	return push_message(w, message_new(MESSAGE_KERNEL, k, len));
}

bool store_writer_push_renewed(struct store_writer *w, uint64_t generation)
{
	struct message *m = message_new(MESSAGE_RENEWED, NULL, 0);

	if (m)
		m->generation = generation;
	return push_message(w, m);
}

bool store_writer_push_place(struct store_writer *w, struct placement place)
{
	struct message *m = message_new(MESSAGE_PLACE, NULL, 0);

	if (m)
		m->place = place;
	return push_message(w, m);
}

bool store_writer_push_call_gap(struct store_writer *w, const struct call_gap *g)
{
	return push_message(w, message_new(MESSAGE_CALL_GAP, g, sizeof(*g)));
}

bool store_writer_push_cpu_losses(struct store_writer *w, const struct cpu_losses *l)
{
	return push_message(w, message_new(MESSAGE_CPU_LOSSES, l, sizeof(*l)));
}

bool store_writer_push_incident(
	struct store_writer *w, const struct incident *i, wall_time detected)
{
	struct message *m = message_new(MESSAGE_INCIDENT, i, sizeof(*i));

	if (m)
		m->detected = detected;
	return push_message(w, m);
}

bool store_writer_push_accounting(struct store_writer *w, const struct accounting *a)
{
	return push_message(w, message_new(MESSAGE_ACCOUNTING, a, sizeof(*a)));
}

bool store_writer_push_annotation(
	struct store_writer *w, const struct annotation *a, uint64_t ticket)
{
	size_t len = offsetof(struct annotation, labels) + strnlen(a->labels, sizeof(a->labels));
	struct message *m;
	bool room;

	pthread_mutex_lock(&w->mutex);
	w->acks = w->acks ?: calloc(WRITER_ACKS_MAX, sizeof(*w->acks));
	room = w->acks && w->acks_due < WRITER_ACKS_MAX;
	w->acks_due += room;
	pthread_mutex_unlock(&w->mutex);
	if (!room)
		return false;
	m = message_new(MESSAGE_ANNOTATION, a, len);
	if (m)
		m->annotation.ticket = ticket;
	room = push_message(w, m);
	pthread_mutex_lock(&w->mutex);
	w->acks_due -= !room;
	w->urgent = w->urgent || room;
	pthread_mutex_unlock(&w->mutex);
	pthread_cond_signal(&w->wake);
	return room;
}

size_t store_writer_take_acks(struct store_writer *w, struct store_ack *out, size_t max)
{
	size_t n;

	MUTEX_HELD(&w->mutex);
	n = MIN(max, w->ack_count);
	if (n) {
		memcpy(out, w->acks, n * sizeof(*out));
		memmove(w->acks, w->acks + n, (w->ack_count - n) * sizeof(*out));
		w->ack_count -= n;
		w->acks_due -= n;
	}
	return n;
}

/* what a queued message becomes in the store. The store's thread, inside the
 * batch that writer.c has begun. */

static int write_aggregate(struct store_writer *w, const struct message *m, struct errinfo *reterr)
{
	struct aggregate a = {
		.bucket = m->aggregate.bucket,
		.pid = m->aggregate.pid,
		.source = m->aggregate.source,
		.flags = m->aggregate.flags,
		.op = m->aggregate.op,
		.stored = m->aggregate.stored,
		.sum_arg0 = m->aggregate.sum_arg0,
	};
	int r = sketch_decode(&a.sketch, m->data, m->len);

	if (r < 0)
		return r;
	a.sketch.count = m->aggregate.count;
	a.sketch.sum = m->aggregate.sum;
	a.sketch.min = m->aggregate.min;
	a.sketch.max = m->aggregate.max;
	r = nodedb_add_aggregate(w->db, false, &a, reterr);
	if (r < 0)
		return r;
	a.bucket.ns -= a.bucket.ns % (int64_t)NODEDB_BUCKET_COARSE;
	return nodedb_add_aggregate(w->db, true, &a, reterr);
}

static int write_stack(struct store_writer *w, const struct message *m, struct errinfo *reterr)
{
	const char *ips = (const char *)m->data, *frames = ips + m->stack.ips_len + 1;
	const char *stop = frames + m->stack.frames_len + 1;
	struct stack_row row = {m->stack.hash, ips, frames, stop, m->stack.ips_len,
		m->stack.frames_len, m->stack.stop_len};

	return nodedb_put_stack(w->db, &row, reterr);
}

/* Rows of a session. Without one they are let go: its successor is a new generation, for which they
 * are pushed again. */
static int write_of_session(struct store_writer *w, const struct message *m, struct errinfo *reterr)
{
	const struct gpu_names *g = (const void *)m->data;
	int64_t session = retention_session(&w->retention);

	if (!session)
		return 0;
	if (m->kind == MESSAGE_GPU)
		return nodedb_session_gpu(w->db, session, g->model, g->driver, g->cuda, reterr);
	if (m->kind == MESSAGE_CPU_LOSSES)
		return nodedb_put_cpu_losses(w->db, session, (const void *)m->data, reterr);
	if (m->kind == MESSAGE_CALL_GAP)
		return nodedb_put_call_gap(w->db, session, (const void *)m->data, reterr);
	if (m->kind == MESSAGE_PLACE)
		return nodedb_session_place(w->db, session, m->place, reterr);
	return nodedb_put_layers(
		w->db, session, m->owner.pid, m->owner.start_ticks, (const void *)m->data, reterr);
}

/* Written with the rows of their transaction, by writer.c. */
static int take_books(struct store_writer *w, const struct message *m)
{
	memcpy(&w->books, m->data, sizeof(w->books));
	w->has_books = true;
	return 0;
}

static int write_annotation(struct store_writer *w, struct message *m, struct errinfo *reterr)
{
	struct annotation a = {0};
	int r;

	memcpy(&a, m->data, MIN(m->len, sizeof(a) - 1));
	r = nodedb_put_annotation(w->db, &a, &m->annotation.id, reterr);
	if (r < 0)
		m->annotation.id = r;
	return r;
}

/* Only as much of it as its name is long was queued. */
static int write_kernel(struct store_writer *w, const struct message *m, struct errinfo *reterr)
{
	struct kernel_row k = {0};

	memcpy(&k, m->data, MIN(m->len, sizeof(k) - 1));
	return nodedb_put_kernel(w->db, &k, reterr);
}

int writer_message_write(struct store_writer *w, struct message *m, struct errinfo *reterr)
{
	switch (m->kind) {
	case MESSAGE_AGGREGATE: return write_aggregate(w, m, reterr);
	case MESSAGE_ROW: return nodedb_put_of(w->db, m->row, m->data, reterr);
	case MESSAGE_COLLECTIVE:
		return nodedb_put_collective(
			w->db, &m->collective.event, &m->collective.nccl, reterr);
	case MESSAGE_LEDGER: return nodedb_put_ledger(w->db, (const void *)m->data, reterr);
	case MESSAGE_PROCESS:
		return nodedb_put_process(w->db, (const void *)m->data,
			(const char *)m->data + sizeof(struct process), reterr);
	case MESSAGE_STACK: return write_stack(w, m, reterr);
	case MESSAGE_KERNEL: return write_kernel(w, m, reterr);
	case MESSAGE_GPU:
	case MESSAGE_LAYERS:
	case MESSAGE_CALL_GAP:
	case MESSAGE_CPU_LOSSES:
	case MESSAGE_PLACE: return write_of_session(w, m, reterr);
	case MESSAGE_ACCOUNTING: return take_books(w, m);
	case MESSAGE_RENEWED: return 0; /* counts once the rows before it are committed */
	case MESSAGE_INCIDENT:
		return nodedb_put_incident(w->db, (const void *)m->data, m->detected, reterr);
	case MESSAGE_ANNOTATION: return write_annotation(w, m, reterr);
	}
	return 0;
}

uint64_t writer_message_calls(const struct message *m)
{
	uint64_t not_counted = m->aggregate.stored + m->aggregate.estimated;

	return m->aggregate.count - MIN(not_counted, m->aggregate.count);
}

/* ---- counters ---- */

uint64_t store_writer_generation(const struct store_writer *w)
{
	return atomic_load(&w->generation);
}

uint64_t store_writer_stored(const struct store_writer *w, unsigned source)
{
	return atomic_load(&w->stored[writer_slot(source)]);
}

uint64_t store_writer_failed(const struct store_writer *w, unsigned source)
{
	return atomic_load(&w->failed[writer_slot(source)]);
}

uint64_t store_writer_unaggregated(const struct store_writer *w, unsigned source)
{
	return atomic_load(&w->unaggregated[writer_slot(source)]);
}

uint64_t store_writer_pruned(const struct store_writer *w)
{
	return atomic_load(&w->pruned);
}

uint64_t store_writer_size(const struct store_writer *w)
{
	return nodedb_size(w->db);
}

bool store_writer_error(struct store_writer *w, struct errinfo *ret)
{
	bool has;

	MUTEX_HELD(&w->mutex);
	has = w->has_error;
	if (has)
		*ret = w->error;
	return has;
}
