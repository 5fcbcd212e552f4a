/* SPDX-License-Identifier: Apache-2.0 */
/* say.c - see say.h. */
#include "answer/encode/say.h"

#include "answer/encode/report.h"
#include "base/text.h"
#include "diagnose/accounts/account.h"

#define OPS_SAID    3
#define FRAMES_SAID 3
#define GPUS_SAID   8

/* @text, as a sentence of its own. */
static void put_sentence(struct buf *b, const char *before, const char *text)
{
	size_t len = strlen(text);

	if (len)
		buf_printf(b, "%s%s%s", before, text, strchr(".!?", text[len - 1]) ? "" : ".");
}

void say_incident(struct buf *b, const struct incident *i)
{
	buf_printf(b, "%s: ", severity_name(i->severity));
	put_sentence(b, "", i->summary);
	put_sentence(b, " Cause: ", i->root_cause);
	if (!strstr(i->root_cause, i->place) && !strstr(i->summary, i->place))
		put_sentence(b, " At ", i->place);
	if (i->fix_count)
		put_sentence(b, " Fix: ", i->fixes[0]);
}

void say_incidents(struct buf *b, const struct incidents_answer *a, size_t limit)
{
	for (size_t i = 0; !a->count && i < a->node_count; i++) {
		if (i)
			buf_putc(b, ' ');
		all_clear_verdict(b, &a->nodes[i].e.scope);
	}
	if (!a->count)
		return;
	buf_printf(b, "%s%s:", TEXT_PLURAL(a->count, "incidents"),
		a->count > 1 ? ", worst first" : "");
	for (size_t i = 0; i < MIN(a->count, limit); i++) {
		buf_putc(b, '\n');
		say_incident(b, a->rows[i].incident);
	}
	if (a->count > limit)
		buf_printf(b, "\n%zu more.", a->count - limit);
}

static void say_account(struct buf *b, const struct steps_row *row)
{
	const struct step_account *a = row->account;
	struct steps_line lines[ACCOUNT_LINES];
	int count = steps_lines(a, lines);

	buf_printf(b, "%s%.15s (PID %u): %s, %s each", b->len ? "\n" : "", a->comm, a->pid,
		TEXT_PLURAL(a->steps, step_origin_units(a->origin)),
		TEXT_DURATION(steps_mean_ns(a)));
	if (steps_comparable(a))
		buf_printf(b, "; %s take %s instead of %s", TEXT_PLURAL(a->slow_steps, "slow ones"),
			TEXT_DURATION(a->slow_step_ns), TEXT_DURATION(a->ordinary_step_ns));
	if (count && steps_comparable(a) && lines[0].difference_ns > 0)
		buf_printf(b, ", most of it %s (+%s)", account_line_title(lines[0].line),
			TEXT_DURATION((uint64_t)lines[0].difference_ns));
	else if (count)
		buf_printf(b, ", most of it %s (%s)", account_line_title(lines[0].line),
			TEXT_DURATION(lines[0].mean_ns));
	if (a->entry_count && steps_place(row->stacks, &a->entries[0]).user) {
		buf_puts(b, " at ");
		stack_text_place(b, steps_place(row->stacks, &a->entries[0]).user);
	}
	buf_putc(b, '.');
}

void say_steps(struct buf *b, const struct steps_answer *a)
{
	if (!a->count)
		buf_printf(b, "No steps found: %s.", a->reason);
	for (size_t i = 0; i < MIN(a->count, (size_t)3); i++)
		say_account(b, &a->rows[i]);
}

/* Disks, scheduler and network are beside the point of a first sentence. */
static bool is_of_gpu(const struct op_stat *o)
{
	return o->source == SOURCE_CUDA || o->source == SOURCE_DRIVER || o->source == SOURCE_NCCL ||
	       o->source == SOURCE_GRAPH;
}

void say_ops(struct buf *b, const struct ops_answer *a)
{
	buf_printf(
		b, "%s of %s", TEXT_PLURAL(a->calls, "calls"), TEXT_PLURAL(a->count, "operations"));
	for (size_t i = 0, said = 0; i < a->count && said < OPS_SAID; i++) {
		const struct op_stat *o = &a->rows[i];

		if (!is_of_gpu(o) || o->nested)
			continue;
		buf_printf(b, "%s%s %s of wall time (p99 %s)",
			said++ ? ", " : "; most time: ", WIRE_OP_NAME(o->source, o->op),
			TEXT_PERCENT(o->share), TEXT_DURATION(o->p99_ns));
	}
	buf_puts(b, ".");
}

/* Of the communicator that lost most by it. */
void say_collectives(struct buf *b, const struct collectives_answer *a)
{
	const struct collective_rank *worst = NULL;
	const struct collective_comm *comm = NULL;

	for (size_t i = 0; i < a->count; i++) {
		const struct collective_rank *r = collectives_straggler(&a->comms[i]);

		if (r && (!worst || r->late_ns > worst->late_ns)) {
			worst = r;
			comm = &a->comms[i];
		}
	}
	if (worst)
		buf_printf(b,
			"Straggler: rank %d on %s (PID %u) arrived last at %llu of %zu collectives, by up to %s; the others waited %s in all.",
			worst->row->c.rank, worst->row->node, worst->row->pid,
			(unsigned long long)worst->last, comm->judged,
			TEXT_DURATION(worst->late_max_ns), TEXT_DURATION(worst->late_ns));
	else if (a->calls)
		buf_printf(b, "No straggler found in %s to NCCL.", TEXT_PLURAL(a->calls, "calls"));
	else
		buf_puts(b, "The recording has no NCCL calls.");
	if (a->without)
		buf_printf(
			b, " %s without communicator id.", TEXT_PLURAL(a->without, "collectives"));
}

void say_gpus(struct buf *b, const struct gpus_answer *a)
{
	const struct sql_table *t = &a->samples;
	int reasons = table_column(t, "throttle_reasons");

	if (!a->count)
		buf_puts(b, "The recording has no GPU samples.");
	for (size_t i = 0; i < MIN(a->count, (size_t)GPUS_SAID); i++) {
		struct gpu_gauge busy = gpus_gauge(a, i, "util_gpu_pct");
		struct gpu_gauge clock = gpus_gauge(a, i, "sm_clock_mhz");
		struct gpu_gauge heat = gpus_gauge(a, i, "temperature_c");
		uint64_t samples = 0, slowed = 0;

		for (size_t k = a->newest[i]; k < t->row_count; k++)
			if (gpus_same(a, k, a->newest[i])) {
				samples++;
				slowed += gpus_slowing(table_int(t, k, reasons)) != 0;
			}
		buf_printf(b, "%sGPU %lld (%s):", i ? "\n" : "",
			(long long)table_int(t, a->newest[i], GPUS_GPU),
			table_text(t, a->newest[i], GPUS_NAME));
		if (busy.samples)
			buf_printf(b, " %.0f %% busy,", busy.mean);
		if (clock.samples)
			buf_printf(b, " %.0f MHz,", clock.mean);
		if (heat.samples)
			buf_printf(b, " up to %lld °C,", (long long)heat.max);
		buf_printf(b, " throttled %.0f %% of the time.",
			samples ? 100.0 * (double)slowed / (double)samples : 0);
	}
}

void say_losses(struct buf *b, const struct losses_answer *a)
{
	char n[TEXT_PLURAL_MAX];

	if (!a->total.known) {
		buf_puts(b,
			"Losses are unknown: the program that recorded this did not count them.");
		return;
	}
	text_format_plural(n, a->total.hits, "events");
	if (completeness_share(&a->total) >= 0 && a->total.lost)
		buf_printf(
			b, "All but %s of %s are in the recording.", TEXT_COUNT(a->total.lost), n);
	else if (completeness_share(&a->total) >= 0)
		buf_printf(b, "All %s are in the recording.", n);
	else
		buf_puts(b, "How complete the recording is, is unknown.");
	if (a->unseen.row_count)
		buf_printf(b, " No probe could see %s.",
			TEXT_PLURAL(a->unseen.row_count, "kinds of calls"));
}

void say_stacks(struct buf *b, const struct stacks_answer *a, size_t i, const struct stack *s)
{
	unsigned source = (unsigned)table_int(&a->totals, i, STACKS_SOURCE);
	const struct stack_frame *own = s ? stack_user_frame(s) : NULL;

	if (!s) {
		buf_puts(b, a->rows ? "None of the selected calls was recorded with its stack."
				    : "No calls were recorded in this time range.");
		return;
	}
	buf_printf(b, "Most time (%s, %s of %s)",
		TEXT_DURATION((uint64_t)table_real(&a->totals, i, STACKS_NS)),
		TEXT_PLURAL((uint64_t)table_int(&a->totals, i, STACKS_CALLS), "calls"),
		WIRE_OP_NAME(source, (unsigned)table_int(&a->totals, i, STACKS_OP)));
	if (own && own - s->frames >= FRAMES_SAID) { /* it would be cut off below */
		buf_puts(b, " in ");
		stack_text_place(b, own);
	}
	buf_puts(b, ": ");
	for (size_t k = 0; k < MIN(s->count, (size_t)FRAMES_SAID); k++) {
		buf_puts(b, k ? " < " : "");
		stack_text_place(b, &s->frames[k]);
	}
	buf_puts(b, s->count > FRAMES_SAID ? " < …" : ".");
}

void say_graphs(struct buf *b, const struct graphs_answer *a)
{
	buf_printf(b, "%s of CUDA graphs, %s.", TEXT_PLURAL(a->calls[GRAPH_LAUNCH], "launches"),
		TEXT_PLURAL(graphs_captures(a), "captures"));
}
