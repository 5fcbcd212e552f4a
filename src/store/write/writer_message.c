/* SPDX-License-Identifier: Apache-2.0 */
/* writer_message.c - what a queued message becomes in the store. The store's thread, inside the
 * batch that writer.c has begun. */
#include <errno.h>
#include <string.h>

#include "store/write/writer_private.h"

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
	case MESSAGE_SAMPLE: return nodedb_put_sample(w->db, &m->sample, reterr);
	case MESSAGE_COLLECTIVE:
		return nodedb_put_collective(
			w->db, &m->collective.event, &m->collective.nccl, reterr);
	case MESSAGE_GPU_SAMPLE: return nodedb_put_gpu_sample(w->db, (const void *)m->data, reterr);
	case MESSAGE_CONTAINER:
		return nodedb_put_container_sample(w->db, (const void *)m->data, reterr);
	case MESSAGE_LEDGER: return nodedb_put_ledger(w->db, (const void *)m->data, reterr);
	case MESSAGE_OVERHEAD: return nodedb_put_overhead(w->db, (const void *)m->data, reterr);
	case MESSAGE_PROCESS:
		return nodedb_put_process(w->db, (const void *)m->data,
			(const char *)m->data + sizeof(struct process), reterr);
	case MESSAGE_CGROUP: return nodedb_put_cgroup(w->db, (const void *)m->data, reterr);
	case MESSAGE_STACK: return write_stack(w, m, reterr);
	case MESSAGE_KERNEL: return write_kernel(w, m, reterr);
	case MESSAGE_TEXT: return nodedb_put_text(w->db, (const void *)m->data, reterr);
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
	return m->aggregate.count - MIN(m->aggregate.stored, m->aggregate.count);
}
