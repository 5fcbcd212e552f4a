/* SPDX-License-Identifier: Apache-2.0 */
/* stack_report.c - see stack_report.h. */
#include "answer/encode/stack_report.h"

#include <inttypes.h>

#include "base/macros.h"
#include "base/text.h"
#include "answer/encode/event_json.h"
#include "answer/stacks.h"

#define INCIDENT_SHOWN 3   /* stacks of one incident in the text */
#define TOTALS_SHOWN   10  /* stacks of a recording without incidents */
#define TOTALS_JSON    100 /* in JSON */
#define INDENT         4
#define BOLD           "\033[1m"
#define RESET          "\033[0m"

static double share_of(uint64_t part, uint64_t all)
{
	return all ? (double)part / (double)all : 0;
}

static void put_title(struct buf *b, const struct stack_report *r, const char *title)
{
	buf_printf(b, "\n%s%s%s\n", r->color ? BOLD : "", title, r->color ? RESET : "");
}

static void put_stack(struct buf *b, const struct stack_report *r, uint64_t hash)
{
	const struct stack *s = stack_find(r->stacks, hash);

	if (s)
		stack_text(b, s, INDENT, r->width);
	else
		buf_printf(b, "%*s(frames not in the recording)\n", INDENT, "");
}

/* What the list above does not show: more stacks, and slow calls without one. */
static void put_rest(struct buf *b, const struct incident *inc, int shown, uint64_t shown_ns)
{
	uint64_t more_ns = inc->stack_ns - MIN(shown_ns, inc->stack_ns);
	uint64_t none_ns = inc->excess_ns - MIN(inc->stack_ns, inc->excess_ns);
	char share[TEXT_MAX];

	if (inc->stack_total > (uint32_t)shown)
		buf_printf(b, "  %s: %" PRIu32 " more stacks; --json has the %d heaviest\n",
			text_format_percent(share, share_of(more_ns, inc->excess_ns)),
			inc->stack_total - (uint32_t)shown, INCIDENT_STACKS);
	if (none_ns)
		buf_printf(b, "  %s: of the time without a stack\n",
			text_format_percent(share, share_of(none_ns, inc->excess_ns)));
}

/* What has no slow calls of one operation: slow steps, or a leak, which is no matter of time. */
static void put_counted(struct buf *b, const struct incident *inc, const struct incident_stack *s)
{
	char share[TEXT_MAX], excess[TEXT_MAX], n[TEXT_PLURAL_MAX];

	if (inc->excess_ns)
		buf_printf(b, "  %s of %s lost",
			text_format_percent(share, share_of(s->ns, inc->excess_ns)),
			text_format_duration(excess, inc->excess_ns));
	else
		buf_printf(b, "  %s",
			text_format_plural(n, s->calls, inc->unit ? inc->unit : "calls"));
	buf_printf(b, ", stack %" PRId64 "\n", (int64_t)s->hash);
}

static void put_incident(struct buf *b, const struct incident *inc, const struct stack_report *r)
{
	char name[32], share[TEXT_MAX], excess[TEXT_MAX], calls[TEXT_MAX], of[TEXT_PLURAL_MAX];
	uint64_t shown_ns = 0;
	int shown = MIN(inc->stack_count, INCIDENT_SHOWN);

	buf_printf(b, "\n[%s] %s by ", severity_name(inc->severity),
		wire_op_name(inc->source, inc->op, name));
	text_escape_terminal(b, inc->comm);
	buf_printf(b, " (pid %" PRIu32 ")\n", inc->pid);
	for (int i = 0; i < shown; i++) {
		const struct incident_stack *s = &inc->stacks[i];

		if (inc->excess_ns && inc->slow_calls)
			buf_printf(b, "  %s of %s extra time, %s of %s, stack %" PRId64 "\n",
				text_format_percent(share, share_of(s->ns, inc->excess_ns)),
				text_format_duration(excess, inc->excess_ns),
				text_format_count(calls, s->calls),
				text_format_plural(of, inc->slow_calls, "slow calls"),
				(int64_t)s->hash);
		else
			put_counted(b, inc, s);
		put_stack(b, r, s->hash);
		shown_ns += s->ns;
	}
	put_rest(b, inc, shown, shown_ns);
}

static uint64_t sum_ns(const struct stack_report *r)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < r->total_count; i++)
		ns = capped_sum(ns, r->totals[i].ns);
	return ns;
}

static void put_totals(struct buf *b, const struct stack_report *r)
{
	char share[TEXT_MAX], time[TEXT_MAX], calls[TEXT_MAX], name[32];
	uint64_t all = sum_ns(r);
	size_t shown = 0, stacks = 0;

	for (size_t i = 0; i < r->total_count; i++) {
		const struct stack_total *t = &r->totals[i];

		stacks += t->hash != 0;
		if (!t->hash || shown == TOTALS_SHOWN)
			continue;
		buf_printf(b, "\n%zu. %s, %s of the time of recorded calls: %s %s", ++shown,
			text_format_duration(time, t->ns),
			text_format_percent(share, share_of(t->ns, all)),
			text_format_count(calls, t->calls), wire_op_name(t->source, t->op, name));
		buf_printf(b, ", stack %" PRId64 "\n", (int64_t)t->hash);
		put_stack(b, r, t->hash);
	}
	if (stacks > shown)
		buf_printf(b,
			"\n%zu more are not shown; `ingero export --format flamegraph` draws"
			" them all\n",
			stacks - shown);
}

static bool has_stacks(const struct incident *incidents, size_t count, const struct stack_report *r)
{
	for (size_t i = 0; i < count; i++)
		if (incidents[i].stack_count)
			return true;
	for (size_t i = 0; !count && i < r->total_count; i++)
		if (r->totals[i].hash)
			return true;
	return false;
}

void stack_report_text(
	struct buf *b, const struct incident *incidents, size_t count, const struct stack_report *r)
{
	if (!has_stacks(incidents, count, r)) {
		put_title(b, r, "No call stacks");
		buf_puts(b,
			count ? "  The slow calls were recorded without call stacks.\n"
			      : "  No call stacks were recorded; `ingero trace` records them unless --stack=false.\n");
		return;
	}
	put_title(b, r,
		count ? "STACKS of the incidents, innermost frame first"
		      : "STACKS with most time, innermost frame first");
	for (size_t i = 0; i < count; i++)
		put_incident(b, &incidents[i], r);
	if (!count)
		put_totals(b, r);
}

/* ---- JSON ---- */

void stack_report_incident(
	struct json_writer *w, const struct incident *inc, const struct stack_list *stacks)
{
	json_begin_array(w);
	for (int i = 0; i < inc->stack_count; i++) {
		const struct incident_stack *s = &inc->stacks[i];

		json_begin_object(w);
		json_int_member(w, "hash", (int64_t)s->hash);
		json_uint_member(w, "ns", s->ns);
		json_double_member(w, "share", share_of(s->ns, inc->excess_ns));
		json_uint_member(w, "calls", s->calls);
		event_json_frames(w, stack_find(stacks, s->hash));
		json_end_object(w);
	}
	json_end_array(w);
}

void stack_report_totals(struct json_writer *w, const struct stack_report *r)
{
	uint64_t all = sum_ns(r);
	size_t shown = 0;
	char name[32];

	json_begin_array(w);
	for (size_t i = 0; i < r->total_count && shown < TOTALS_JSON; i++) {
		const struct stack_total *t = &r->totals[i];

		if (!t->hash)
			continue;
		shown++;
		json_begin_object(w);
		json_int_member(w, "hash", (int64_t)t->hash);
		json_string_member(w, "source", wire_source_name(t->source));
		json_string_member(w, "op", wire_op_name(t->source, t->op, name));
		json_uint_member(w, "ns", t->ns);
		json_double_member(w, "share", share_of(t->ns, all));
		json_uint_member(w, "calls", t->calls);
		event_json_frames(w, stack_find(r->stacks, t->hash));
		json_end_object(w);
	}
	json_end_array(w);
}
