/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP requests of strangers, metrics and logs in both encodings, which the first byte says: what is
 * read and written again reads the same, and what the cluster takes keeps to its bounds. */
#include <errno.h>

#include "base/text.h"
#include "fuzz.h"
#include "otlp/otlp_read.h"
#include "otlp/otlp_write.h"
#include "push/push_wire.h"

struct copy { /* what was read, written anew: each point a request, in one buffer */
	struct buf out;
	size_t seen, last_resource;
};

static void check_text(const char *s, size_t len)
{
	uint32_t cp;

	for (size_t i = 0; i < len;) {
		int n = text_utf8_next(s + i, len - i, &cp);

		MUST(n > 0);
		i += (size_t)n;
	}
}

static void check_value(const struct otlp_value *v)
{
	if (v->kind == OTLP_TEXT) {
		check_text(v->text, v->len);
		MUST(!v->len || !memchr(v->text, 0, v->len));
	} else if (v->kind == OTLP_BYTES && v->len) {
		char *copy = malloc(v->len); /* all of it is there */

		MUST(copy);
		memcpy(copy, v->text, v->len);
		free(copy);
	}
}

static void check_attributes(const struct otlp_attributes *a)
{
	MUST(a->count <= OTLP_ATTRIBUTES_MAX);
	for (size_t i = 0; i < a->count; i++) {
		check_text(a->item[i].key, a->item[i].key_len);
		check_value(&a->item[i].value);
	}
}

static int copy_point(void *arg, const struct otlp_point *p)
{
	struct copy *c = arg;
	struct otlp_writer w;
	char *name = fuzz_text(p->name, p->name_len), *unit = fuzz_text(p->unit, p->unit_len);

	MUST(p->resource_number >= c->last_resource && p->resource_number);
	c->last_resource = p->resource_number;
	c->seen++;
	check_attributes(p->resource);
	check_attributes(p->attributes);
	check_text(p->scope, p->scope_len);
	check_text(p->name, p->name_len);
	check_text(p->unit, p->unit_len);
	MUST(p->value.kind == OTLP_NONE || p->value.kind == OTLP_INT ||
		p->value.kind == OTLP_DOUBLE);
	otlp_write_begin(&w, &c->out, false, false, p->resource, "s", "1");
	otlp_write_metric(&w, name, NULL, unit, p->kind == OTLP_SUM ? OTLP_SUM : OTLP_GAUGE);
	otlp_write_point(&w, p);
	otlp_write_metric_end(&w);
	otlp_write_end(&w);
	free(name);
	free(unit);
	return (int)(p->time_ns & 1) * -EINVAL;
}

static int copy_record(void *arg, const struct otlp_record *r)
{
	struct copy *c = arg;
	struct otlp_writer w;

	c->seen++;
	check_attributes(r->resource);
	check_attributes(r->attributes);
	check_text(r->scope, r->scope_len);
	check_text(r->event, r->event_len);
	check_value(&r->body);
	otlp_write_begin(&w, &c->out, false, true, r->resource, "s", "1");
	otlp_write_record(&w, r);
	otlp_write_end(&w);
	return 0;
}

static int walk(const void *data, size_t size, bool logs, bool json, struct copy *c)
{
	const struct otlp_visitor v = {.arg = c, .point = copy_point, .record = copy_record};
	struct otlp_walk done = {.taken = 7};
	int r;

	r = otlp_read(logs ? OTLP_LOGS : OTLP_METRICS, json, data, size, &v, &done, NULL);
	MUST(r == 0 || r == -EBADMSG || r == -E2BIG || r == -ENOMEM);
	MUST(r == 0 ? done.taken + done.rejected == c->seen : done.taken == 7);
	return r;
}

/* Protobuf messages one behind the other are one message: all of what was read can be read again. */
static void read_again(const void *data, size_t size, bool logs, bool json)
{
	struct copy first = {.out = BUF_INIT(8 << 20)}, second = {.out = BUF_INIT(8 << 20)},
		    third = {.out = BUF_INIT(8 << 20)};

	if (walk(data, size, logs, json, &first) == 0 && !first.out.err) {
		MUST(walk(buf_str(&first.out), first.out.len, logs, false, &second) == 0);
		MUST(second.seen == first.seen);
		MUST(walk(buf_str(&second.out), second.out.len, logs, false, &third) == 0);
		MUST(third.out.len == second.out.len);
		MUST(!third.out.len || memcmp(third.out.data, second.out.data, third.out.len) == 0);
	}
	buf_done(&first.out);
	buf_done(&second.out);
	buf_done(&third.out);
}

static void check_name(const char *s, size_t size)
{
	size_t len = strnlen(s, size);

	MUST(len < size);
	check_text(s, len);
}

static void check_who(const struct push_who *who)
{
	check_name(who->cluster, sizeof(who->cluster));
	check_name(who->node, sizeof(who->node));
	check_name(who->provider, sizeof(who->provider));
	MUST(who->cluster[0] && who->node[0] && who->rank >= -1);
}

static int take_health(void *arg, const struct push_health *h)
{
	check_who(&h->who);
	check_name(h->cohort, sizeof(h->cohort));
	check_name(h->workload, sizeof(h->workload));
	check_name(h->gpu_model, sizeof(h->gpu_model));
	MUST(h->state < PUSH_STALE && h->sent_ns >= 0);
	return 0;
}

static int take_straggler(void *arg, const struct push_who *who, const struct push_straggler *s)
{
	check_who(who);
	check_name(s->event, sizeof(s->event));
	return -EBUSY;
}

static int take_calls(void *arg, const struct push_calls *c)
{
	check_who(&c->who);
	MUST(c->count <= PUSH_CALLS_MAX);
	return 0;
}

static int take_report(void *arg, const struct push_report *r)
{
	check_who(&r->who);
	check_name(r->cause, sizeof(r->cause));
	check_name(r->fix, sizeof(r->fix));
	check_name(r->doing_where, sizeof(r->doing_where));
	MUST(r->world_rank >= -1);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct push_handler h = {.health = take_health,
		.straggler = take_straggler,
		.calls = take_calls,
		.report = take_report};
	struct push_taken t = {0};
	bool logs, json;
	int r;

	if (!size)
		return 0;
	logs = *data & 1;
	json = *data & 2;
	data++;
	size--;
	read_again(data, size, logs, json);
	r = (logs ? push_receive_logs : push_receive_metrics)(data, size, json, &h, &t, NULL);
	MUST(r == 0 || t.taken + t.rejected + t.foreign == 0);
	MUST((t.rejected > 0) == (t.why[0] != 0));
	return 0;
}
