/* SPDX-License-Identifier: Apache-2.0 */
/* event_args.c - see event_args.h. What arg0, arg1 and stream of a CUDA call are is
 * read from the table by which it was probed (record/probe/function.h): what that does not tell is
 * not named. Files of the published agent have no streams and get only what it writes itself. */
#include "answer/event_args.h"

#include "record/probe/function.h"
#include "wire/op_kind.h"

static struct event_arg *add(struct event_args *a, const char *name)
{
	size_t at = MIN(a->count, EVENT_ARGS_MAX - (size_t)1); /* the last one gives way */
	struct event_arg *arg = &a->list[at];

	a->count = at + 1;
	*arg = (struct event_arg){.name = name};
	return arg;
}

void event_arg_number(struct event_args *a, const char *name, int64_t number)
{
	add(a, name)->number = number;
}

void event_arg_text(struct event_args *a, const char *name, const char *text)
{
	add(a, name)->name_text = text;
}

#define ADD_TEXT(a, name, ...)                                                                     \
	do {                                                                                       \
		struct event_arg *arg_ = add(a, name);                                             \
		snprintf(arg_->text, sizeof(arg_->text), __VA_ARGS__);                             \
	} while (0)

/* Handles and addresses are told apart by looking, not reckoned with. */
static void add_handle(struct event_args *a, const char *name, uint64_t v)
{
	ADD_TEXT(a, name, "0x%" PRIx64, v);
}

static void add_stream(struct event_args *a, uint64_t stream)
{
	if (stream)
		add_handle(a, "stream", stream);
	else
		ADD_TEXT(a, "stream", "default");
}

static void add_direction(struct event_args *a, const struct event *e, bool has_kind)
{
	int direction = copy_direction(e->source, e->op);

	if (has_kind && e->arg1 < COPY_UNKNOWN)
		direction = (int)e->arg1;
	if (direction >= 0 && direction != COPY_UNKNOWN)
		ADD_TEXT(a, "direction", "%s", copy_direction_names[direction]);
}

static void add_call(struct event_args *a, const struct event *e)
{
	const struct probe_function *f = probe_function_find(e->source, e->op);
	unsigned flags;

	if (!f)
		return;
	flags = f->cookie.flags;
	if (flags & COOKIE_BYTES)
		event_arg_number(a, "bytes", (int64_t)e->arg0);
	if (op_kind_is_launch(e->source, e->op))
		add_handle(a, "function", e->arg0);
	if ((flags & COOKIE_ARG1_OUT) && (flags & COOKIE_BYTES) && e->arg1)
		add_handle(a, "pointer", e->arg1);
	add_direction(a, e, flags & COOKIE_KIND);
	if (f->cookie.stream)
		add_stream(a, e->stream);
}

static void add_off_cpu(struct event_args *a, const struct event *e)
{
	if (e->wait_ns)
		event_arg_number(a, "waited_for_cpu_ns", (int64_t)e->wait_ns);
	if (e->peer_pid)
		ADD_TEXT(a, "ran_instead", "%s %u", e->peer_comm, e->peer_pid);
	if (e->stream)
		event_arg_number(a, "woken_by_pid", (int64_t)e->stream);
}

static void add_short_stays(struct event_args *a, const struct event *e)
{
	if (e->arg0 < LEDGER_LINES)
		ADD_TEXT(a, "line", "%s", LIST_IDS(WIRE_LEDGER_LINES)[e->arg0]);
	event_arg_number(a, "blocked_ns", (int64_t)e->arg1);
	event_arg_number(a, "of_the_last_ns", (int64_t)e->wait_ns);
	if (e->peer_pid)
		ADD_TEXT(a, "ended_by", "%s %u", e->peer_comm, e->peer_pid);
	else
		ADD_TEXT(a, "ended_by", "a time limit");
}

void event_args_call(const struct event *e, bool is_published, struct event_args *ret)
{
	/* a thread of the runtime is on device 0 until it says otherwise */
	bool has_device =
		e->source == SOURCE_CUDA || e->source == SOURCE_GRAPH || (e->flags & WIRE_NESTED);

	ret->count = 0;
	if (!is_published) {
		switch (e->source) {
		case SOURCE_CUDA:
		case SOURCE_DRIVER:
		case SOURCE_GRAPH: add_call(ret, e); break;
		case SOURCE_IO:
			event_arg_number(ret, "bytes", (int64_t)(e->arg0 << 9));
			if (e->dev)
				ADD_TEXT(ret, "device", "%u:%u", e->dev >> 20, e->dev & 0xfffff);
			break;
		case SOURCE_NET:
			event_arg_number(ret, "bytes", (int64_t)e->arg1);
			event_arg_number(ret, "blocked_ns", (int64_t)e->wait_ns);
			break;
		case SOURCE_HOST:
			if (e->op == HOST_SCHED_SWITCH)
				add_off_cpu(ret, e);
			else if (e->op == HOST_SHORT_STAYS)
				add_short_stays(ret, e);
			else if (e->op == HOST_PAGE_ALLOC)
				event_arg_number(ret, "bytes", (int64_t)e->arg0);
			break;
		}
	}
	if (e->device > 0 || (e->device == 0 && has_device && !is_published))
		event_arg_number(ret, "gpu_id", e->device);
	if (e->ret)
		event_arg_number(ret, "ret_code", e->ret);
	if (e->weight > 1)
		event_arg_number(ret, "stands_for_calls", e->weight);
}

void event_args_collective(const struct collective_row *row, struct event_args *ret)
{
	ret->count = 0;
	ADD_TEXT(ret, "comm", "%016" PRIx64, row->c.comm_hash);
	if (row->c.seq && row->c.seq <= INT64_MAX)
		event_arg_number(ret, "seq", (int64_t)row->c.seq);
	if (row->c.rank >= 0)
		event_arg_number(ret, "rank", row->c.rank);
	event_arg_number(ret, "bytes", (int64_t)row->c.bytes);
	if (row->c.peer >= 0)
		event_arg_number(ret, "peer", row->c.peer);
	if (row->c.root >= 0)
		event_arg_number(ret, "root", row->c.root);
	if (row->c.wait_ns >= 0)
		event_arg_number(ret, "wait_ns", row->c.wait_ns);
	add_stream(ret, row->stream);
	if (row->device >= 0)
		event_arg_number(ret, "gpu_id", row->device);
	if (row->ret)
		event_arg_number(ret, "ret_code", row->ret);
}
