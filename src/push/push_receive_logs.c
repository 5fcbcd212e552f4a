/* SPDX-License-Identifier: Apache-2.0 */
/* push_receive_logs.c - records of a request: batches of calls, and reports. Each is handed over as
 * it is read; a batch that comes again after a broken request is known by its number. */
#include <errno.h>
#include <string.h>

#include "push/push_private.h"

struct receiving {
	const struct push_handler *handler;
	struct push_taken taken;
	int err;         /* -ENOMEM: the request is given up */
	size_t resource; /* number of the resource that the two below are of */
	const char *why; /* its records are refused */
	struct push_who who;
};

/* By the event's name; a pipeline that knows no such field leaves the scope's. */
static bool is_event(const struct otlp_record *r, const char *name)
{
	const char *text = r->event_len ? r->event : r->scope;
	size_t len = r->event_len ? r->event_len : r->scope_len;

	return len == strlen(name) && memcmp(text, name, len) == 0;
}

static int taken(struct receiving *x, int r)
{
	if (r < 0)
		return push_reject(&x->taken, 1, "refused: %s", strerror(-r));
	x->taken.taken++;
	return 0;
}

static int take_calls(struct receiving *x, const struct otlp_record *r)
{
	struct push_calls calls = {.who = x->who};
	int err = -EBADMSG;

	if (r->body.kind == OTLP_BYTES)
		err = push_calls_unpack(r->body.text, r->body.len, &calls);
	if (err == -ENOMEM)
		return x->err = err;
	if (err < 0)
		return push_reject(
			&x->taken, 1, "a batch of collectives cannot be read: %s", strerror(-err));
	err = x->handler->calls(x->handler->arg, &calls);
	free(calls.items);
	return taken(x, err);
}

static int take_report(struct receiving *x, const struct otlp_record *r)
{
	struct push_report report = {.who = x->who, .sent_ns = push_time(r->time_ns)};

	if (!push_report_get(r, &report))
		return push_reject(&x->taken, 1, "a report has a value out of range");
	return taken(x, x->handler->report(x->handler->arg, &report));
}

static int take_record(void *arg, const struct otlp_record *r)
{
	struct receiving *x = arg;
	bool calls =
		x->handler->calls && (is_event(r, PUSH_SCOPE_CALLS) || is_event(r, PUSH_SCOPE_OWN));
	bool report = x->handler->report && is_event(r, PUSH_SCOPE_REPORT);

	if (x->err)
		return x->err;
	if (!calls && !report) {
		x->taken.foreign++;
		return 0;
	}
	if (r->resource_number != x->resource) {
		x->resource = r->resource_number;
		x->why = push_who_get(r->resource, &x->who);
	}
	if (x->why)
		return push_reject(&x->taken, 1, "%s", x->why);
	return calls ? take_calls(x, r) : take_report(x, r);
}

int push_receive_logs(const void *data, size_t len, bool json, const struct push_handler *h,
	struct push_taken *ret, struct errinfo *reterr)
{
	struct receiving x = {.handler = h};
	const struct otlp_visitor visitor = {.arg = &x, .record = take_record};
	struct otlp_walk walk;
	int r;

	r = json ? otlp_read_logs_json(data, len, &visitor, &walk, reterr)
		 : otlp_read_logs_protobuf(data, len, &visitor, &walk, reterr);
	if (r == 0 && x.err)
		r = errinfo_set(reterr, x.err, "out of memory while reading what agents pushed");
	if (r == 0)
		*ret = x.taken;
	return r;
}
