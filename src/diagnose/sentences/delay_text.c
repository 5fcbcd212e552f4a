/* SPDX-License-Identifier: Apache-2.0 */
/* delay_text.c - see delay_text.h: puts the tables' texts together for what is known of a delay (delay_subject.h). Pure. */
#include "diagnose/sentences/delay_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/macros.h"
#include "base/text.h"
#include "diagnose/chains/delay_weight.h"
#include "diagnose/chains/kernel_type.h"
#include "diagnose/chains/whole.h"
#include "diagnose/findings/detector.h"
#include "diagnose/sentences/advice.h"
#include "diagnose/sentences/delay_sentence.h"
#include "diagnose/sentences/delay_subject.h"
#include "diagnose/sentences/span_text.h"
#include "wire/names.h"
#include "wire/op_kind.h"

#define LINES_SHOWN  5
#define LINE_SHARE   0.02 /* of the growth: less is not worth a word */
#define WHOLE_SHARE  0.85 /* of the growth: then it is all of it, in a title */
#define SHOWN_BYTES  1e5  /* less is "0.0 MB" */
#define KERNEL_SHOWN 40   /* bytes of a kernel's short name: its beginning tells it from others */

enum cause delay_cause(enum delay_kind k)
{
	switch (k) {
	case DELAY_BY_CPU: return CAUSE_RUN_QUEUE;
	case DELAY_BY_DISK:
	case DELAY_BY_CHECKPOINT: return CAUSE_BLOCK_IO;
	case DELAY_BY_NETWORK: return CAUSE_NETWORK;
	case DELAY_BY_MEMORY: return CAUSE_RECLAIM;
	case DELAY_BY_ASLEEP:
	case DELAY_BY_STOPPED:
	case DELAY_BY_LOCK:
	case DELAY_BY_GIL:
	case DELAY_BY_LOADER:
	case DELAY_BY_PROCESS: return CAUSE_ASLEEP;
	case DELAY_BY_UNKNOWN: return CAUSE_UNEXPLAINED;
	case DELAY_BY_GPU:
	case DELAY_BY_SYNC:
	case DELAY_BY_COPY:
	case DELAY_BY_LAUNCH:
	case DELAY_BY_ALLOCATION:
	case DELAY_BY_GRAPH:
	case DELAY_BY_COLLECTIVE:
	case DELAY_BY_CALL: return CAUSE_CUDA_CALL;
	default: return CAUSE_HOST_CODE;
	}
}

/* ---- values ---- */

static void put_kernel(const char *name, char *out)
{
	char brief[KERNEL_SHORT_MAX];

	kernel_name_short(name, brief);
	snprintf(out, KERNEL_SHOWN + 8, "%.*s%s", KERNEL_SHOWN, brief,
		strlen(brief) > KERNEL_SHOWN ? "…" : "");
}

static void put_kernels(const struct kernel_change *k, struct delay_values *v)
{
	if (k->from != KERNEL_OF_UNKNOWN)
		snprintf(v->types, sizeof(v->types), "%s instead of %s", kernel_type_text(k->to),
			kernel_type_text(k->from));
	if (k->added_count)
		put_kernel(k->added[0].name, v->kernels);
}

/* What is not counted, or is the same, is not said. */
static void put_work(const struct delay_subject *s, struct delay_values *v)
{
	const struct step_account *a = s->a;
	const struct gpu_change *g = s->gpu;
	int n = 0;

	if (a->slow_launches >= a->ordinary_launches + 1 && a->ordinary_launches > 0)
		n = snprintf(v->work, sizeof(v->work), "%.0f launches per %s instead of %.0f",
			a->slow_launches, delay_unit(a), a->ordinary_launches);
	if (a->slow_bytes >= a->ordinary_bytes + SHOWN_BYTES)
		snprintf(v->work + n, sizeof(v->work) - (size_t)n,
			"%s%.1f MB copied per %s instead of %.1f MB", n ? ", " : "",
			a->slow_bytes / 1e6, delay_unit(a), a->ordinary_bytes / 1e6);
	if (!v->work[0] && (a->is_varied || a->is_staged))
		snprintf(v->work, sizeof(v->work), "the work of a %s %s", delay_unit(a),
			a->is_varied ? "varies" : "grows");
	if (!v->work[0] && g && g->slow_mw > g->ordinary_mw && g->ordinary_mw > 0)
		snprintf(v->work, sizeof(v->work), "it draws %.0f W instead of %.0f",
			g->slow_mw / 1000, g->ordinary_mw / 1000);
}

static void put_gpu(const struct delay_subject *s, struct delay_values *v)
{
	const struct gpu_change *g = s->gpu;
	char op[32];

	if (!g)
		return;
	if (g->slow_clock_mhz > 0 && g->ordinary_clock_mhz > 0)
		snprintf(v->clock, sizeof(v->clock), "%.0f MHz instead of %.0f", g->slow_clock_mhz,
			g->ordinary_clock_mhz);
	if (g->reason == GPU_BY_KERNELS)
		put_kernels(&g->kernels, v);
	if (g->reason == GPU_BY_CALLS)
		snprintf(v->call, sizeof(v->call), "%s, about %.0f per %s",
			wire_op_name(g->call.source, g->call.op, op), MAX(g->call.in_step, 1.0),
			delay_unit(s->a));
	if (g->reason == GPU_BY_THREAD && g->thread)
		snprintf(v->thread, sizeof(v->thread), "%s", g->thread->comm);
}

static void put_counts(const struct delay_subject *s, struct delay_values *v)
{
	const struct step_account *a = s->a;
	double bytes = delay_is_slow(a) ? a->slow_bytes : a->ordinary_bytes;
	double launches = delay_is_slow(a) ? a->slow_launches : a->ordinary_launches;

	if (bytes >= SHOWN_BYTES)
		snprintf(v->bytes, sizeof(v->bytes), "%.*f MB", bytes < 1e7, bytes / 1e6);
	if (launches >= 1)
		snprintf(v->launches, sizeof(v->launches), "%.0f", launches);
	if (delay_is_slow(a) && a->slow_waits >= a->ordinary_waits + 1)
		snprintf(v->waits, sizeof(v->waits), "%.0f times per %s instead of %.*f",
			a->slow_waits, delay_unit(a), a->ordinary_waits < 2, a->ordinary_waits);
	else if (!delay_is_slow(a) && s->l->kind == DELAY_BY_SYNC)
		snprintf(v->waits, sizeof(v->waits), "%.0f times per %s", gpu_drains_of(s->rec, a),
			delay_unit(a));
}

static void put_answers(const struct delay_subject *s, struct delay_values *v)
{
	double each = answers_of(s->rec, s->a);
	char text[SPAN_TEXT_MAX];

	if (s->facts & MANY_WAITS && each >= 1)
		snprintf(v->answers, sizeof(v->answers), "%.0f requests per %s, %s each", each,
			delay_unit(s->a),
			span_text_one(text, (uint64_t)((double)s->l->slow_ns / each)));
}

/* Calls that come in every unit: fewer are those of a pool that grows. */
static void put_calls(const struct delay_subject *s, struct delay_values *v)
{
	struct delay_allocating done = delay_allocating_of(s->rec, s->a);
	double each = (double)done.calls / (double)MAX(s->a->steps, 1u);
	char op[32];

	if (s->l->kind == DELAY_BY_ALLOCATION && each >= 1)
		snprintf(v->calls, sizeof(v->calls), "%s about %.0f times per %s",
			wire_op_name(done.source, done.op, op), each, delay_unit(s->a));
}

static void find_values(const struct delay_subject *s, struct delay_values *v)
{
	const struct account_entry *e = s->l->lead;

	*v = (struct delay_values){0};
	delay_subject_who(s, v->who);
	if (s->facts & AMONG_OTHERS)
		snprintf(v->others, sizeof(v->others), " and other programs");
	if (s->end.on[0])
		delay_subject_name(s, s->end.on, s->end.on_pid, s->end.on_count, v->stopped);
	else if (s->end.resource == RESOURCE_STOPPER && s->l->kind == DELAY_BY_PROCESS)
		snprintf(v->stopped, sizeof(v->stopped), "a process");
	snprintf(v->detail, sizeof(v->detail), "%s", s->end.detail);
	if (s->has_place)
		place_at(&s->place, v->at, DELAY_VALUE_MAX);
	if (s->has_wait)
		place_at(&s->wait, v->wait, DELAY_VALUE_MAX);
	snprintf(v->units, sizeof(v->units), "%s", delay_units(s->a));
	snprintf(v->unit, sizeof(v->unit), "%s", delay_unit(s->a));
	if (e)
		snprintf(v->worker, sizeof(v->worker), "%s", e->comm);
	if (e && (s->l->kind == DELAY_BY_GIL || s->l->kind == DELAY_BY_LOCK))
		snprintf(v->thread, sizeof(v->thread), "%s", e->culprit);
	if (s->a->unknown_reason)
		snprintf(v->reason, sizeof(v->reason), "%s", s->a->unknown_reason);
	put_gpu(s, v);
	if (!v->clock[0])
		snprintf(v->clock, sizeof(v->clock), "%s",
			s->end.detail[0] ? s->end.detail : "less than before");
	put_work(s, v);
	put_counts(s, v);
	put_calls(s, v);
	put_answers(s, v);
}

/* ---- the title ---- */

static const char *ordinal(unsigned n)
{
	if (n % 100 / 10 == 1)
		return "th";
	return n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
}

/* "steps take 174 ms instead of 44", "every 50th step takes …", "61 of 72 ms of every step". Where most are slow, it is the
 * others that come every so many. */
static void put_cost(const struct delay_subject *s, const char *script, struct buf *b)
{
	const struct step_account *a = s->a;
	char text[SPAN_TEXT_MAX], more[SPAN_TEXT_MAX], share[TEXT_MAX], slow[TEXT_MAX],
		all[TEXT_MAX];
	bool is_part;

	if (!delay_is_slow(a)) {
		span_text(text, " of ", s->l->slow_ns, a->ordinary_step_ns);
		buf_printf(b, "%s of every %s%s%s", text, delay_unit(a), script ? " of " : "",
			script ? script : "");
		if (a->ordinary_step_ns)
			buf_printf(b, " (%s)",
				text_format_percent(share,
					MIN((double)s->l->slow_ns / (double)a->ordinary_step_ns,
						1.0)));
		return;
	}
	span_text(text, " instead of ", a->slow_step_ns, a->ordinary_step_ns);
	if (a->is_drift)
		buf_printf(b, "%s grew gradually to %s", delay_units(a),
			span_text(text, " from ", a->drift_to_ns, a->drift_from_ns));
	else if (s->inc->period_steps > 1 && 2 * a->slow_steps <= a->steps)
		buf_printf(b, "every %u%s %s takes %s", s->inc->period_steps,
			ordinal(s->inc->period_steps), delay_unit(a), text);
	else if (s->inc->since.ns)
		buf_printf(b, "%s take %s", delay_units(a), text);
	else
		buf_printf(b, "%s of %s %s %s %s", text_format_count(slow, a->slow_steps),
			text_format_count(all, a->steps), delay_units(a),
			a->slow_steps == 1 ? "takes" : "take", text);
	is_part = s->l->share < WHOLE_SHARE && s->l->kind != DELAY_BY_UNKNOWN;
	if (script || is_part)
		buf_printf(b, " (%s%s", script ? script : "", script && is_part ? "; " : "");
	if (is_part)
		buf_printf(
			b, "+%s from this", span_text_one(more, s->l->slow_ns - s->l->ordinary_ns));
	buf_puts(b, script || is_part ? ")" : "");
}

static void put_title(const struct delay_subject *s, const struct delay_sentence *row,
	const struct delay_values *v, struct incident *inc)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	const char *script = delay_subject_script(s->rec, s->a);
	char head[sizeof(inc->summary)];

	delay_sentence_fill(row->head, v, head, sizeof(head));
	if ((v->at[0] && strstr(head, v->at)) || (v->wait[0] && strstr(head, v->wait)))
		script = NULL; /* the place says it */
	buf_printf(&b, "%s: ", head);
	put_cost(s, script, &b);
	snprintf(inc->summary, sizeof(inc->summary), "%s", buf_str(&b));
}

/* ---- the figures ---- */

/* "CPU +149 ms, unknown +91 ms" */
static void put_lines(const struct delay_subject *s, struct buf *b)
{
	char text[SPAN_TEXT_MAX];
	const char *comma = "";

	for (int i = 0; s->all && i < MIN(s->all->count, LINES_SHOWN); i++) {
		const struct delay *l = &s->all->items[i];

		if (l->share < LINE_SHARE)
			break;
		buf_printf(b, "%s%s %s%s", comma, delay_text(l->kind),
			delay_is_slow(s->a) ? "+" : "",
			span_text_one(text, l->slow_ns - l->ordinary_ns));
		comma = ", ";
	}
}

static void put_kernel_figures(const struct kernel_change *k, struct buf *b)
{
	char name[KERNEL_SHOWN + 8];

	buf_puts(b, " First launched when it became slow:");
	for (int i = 0; i < k->added_count; i++) {
		put_kernel(k->added[i].name, name);
		buf_printf(b, "%s %s (about %.0f each)", i ? "," : "", name, k->added[i].in_step);
	}
	buf_puts(b, ".");
}

static void put_explanation(const struct delay_subject *s, struct incident *inc)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	const struct step_account *a = s->a;
	char lost[SPAN_TEXT_MAX], part[TEXT_MAX];

	if (delay_is_slow(a)) {
		buf_printf(&b,
			"Slow %s lost %s in all, %s of it to this. A slow one compared with an ordinary one: ",
			delay_units(a), span_text_one(lost, a->lost_ns),
			text_format_percent(part, s->l->share));
		put_lines(s, &b);
		buf_puts(&b, ".");
	} else {
		buf_printf(&b, "All %s %s%s are affected; there is no baseline.",
			text_format_count(part, a->ordinary_steps),
			a->slow_steps ? "ordinary " : "", delay_units(a));
	}
	if (s->gpu && s->l->kind == DELAY_BY_GPU && s->gpu->reason == GPU_BY_KERNELS)
		put_kernel_figures(&s->gpu->kernels, &b);
	if (delay_is_slow(a) && a->is_proportional)
		buf_printf(&b, " The work of a %s varies: longer ones do more of the same.",
			delay_unit(a));
	if (delay_is_idle(s->rec, a, s->l))
		buf_puts(&b, " A program with nothing to do waits in the same way.");
	else if (delay_is_pause(s->rec, a, s->l))
		buf_puts(&b, " The program sleeps there on purpose.");
	if (s->has_place && s->place.share < 0.995)
		buf_printf(
			&b, " %s of it is spent there.", text_format_percent(part, s->place.share));
	buf_printf(&b, " %s boundary: %s (%s).", a->origin == STEP_BY_TIME ? "Window" : "Step",
		step_origin_text(a->origin), text_format_percent(part, a->confidence));
	snprintf(inc->explanation, sizeof(inc->explanation), "%s", buf_str(&b));
}

/* Rows that show it, where they are others than those of steps: which kernels ran, and when; or the new calls. */
static void put_sql(const struct delay_subject *s, struct incident *inc)
{
	const struct step_account *a = s->a;
	const struct gpu_change *g = s->l->kind == DELAY_BY_GPU ? s->gpu : NULL;

	if (g && g->reason == GPU_BY_KERNELS)
		incident_sql(inc,
			"SELECT k.name, sum(e.timestamp BETWEEN %" PRId64 " AND %" PRId64
			") AS while_slow, count(*) AS rows FROM events e JOIN kernels k ON k.node = e.node "
			"AND k.pid = e.pid AND k.function = e.arg0 WHERE e.pid = %u AND e.flags & 1 = 0 AND "
			"e.timestamp BETWEEN %" PRId64 " AND %" PRId64 " AND " OP_KIND_LAUNCH_SQL
			" GROUP BY k.name ORDER BY while_slow DESC, rows DESC LIMIT 200",
			a->slow_first.ns, a->slow_last.ns, a->pid, a->first.ns, a->last.ns);
	if (g && g->reason == GPU_BY_CALLS)
		incident_sql(inc,
			"SELECT id, timestamp, tid, duration, arg0, arg1, stream, stack_hash FROM events WHERE pid = %u AND "
			"source = %u AND op = %u AND timestamp BETWEEN %" PRId64 " AND %" PRId64
			" ORDER BY timestamp LIMIT 200",
			a->pid, g->call.source, g->call.op, a->first.ns, a->slow_last.ns);
}

/* ---- all ---- */

static void put_advice(
	const struct delay_subject *s, const struct delay_values *v, struct incident *inc)
{
	char name[sizeof(s->end.who) + 32];

	/* Who stops a program by its name would stop the job with it. */
	snprintf(name, sizeof(name), "%s", s->end.who);
	if (delay_subject_is_jobs(s, s->end.who, s->end.pid))
		snprintf(name, sizeof(name), "that process");
	else if (name[0] && !(s->facts & IS_OWN) && !strncmp(s->end.who, s->a->comm, COMM_LEN))
		snprintf(name, sizeof(name), "%s (not the job, PID %u)", s->end.who, s->a->pid);
	advice_put(&(struct advice_case){.kind = s->l->kind,
			   .resource = s->end.resource,
			   .facts = s->facts,
			   .who = v->who,
			   .name = name,
			   .pid = s->end.pid},
		inc);
}

void delay_text_write(const struct recording *rec, const struct step_account *a,
	const struct delay_list *all, const struct delay *l, const struct gpu_change *gpu,
	struct incident *inc)
{
	const struct delay_sentence *row;
	struct delay_subject s;
	struct delay_values v;

	delay_subject_find(rec, a, all, l, gpu, inc, &s);
	find_values(&s, &v);
	row = delay_sentence_find(l->kind, s.end.resource, s.facts);
	put_title(&s, row, &v, inc);
	delay_sentence_fill(row->why, &v, inc->root_cause, sizeof(inc->root_cause));
	put_explanation(&s, inc);
	put_advice(&s, &v, inc);
	delay_subject_stacks(&s, inc);
	put_sql(&s, inc);
	inc->place[0] = 0;
	if (s.has_place)
		place_format(&s.place, inc->place, sizeof(inc->place));
}
