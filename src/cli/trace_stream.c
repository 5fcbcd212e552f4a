/* SPDX-License-Identifier: Apache-2.0 */
/* trace_stream.c - see trace_settings.h. */
#include "cli/trace_settings.h"

#include <math.h>

#include "answer/encode/event_json.h"
#include "base/text.h"
#include "wire/names.h"

static void put_op(struct json_writer *w, const struct tracer_op *o)
{
	json_begin_object(w);
	JSON_PUT(w, JSON_S("source", wire_source_name(o->source)),
		JSON_S("op", WIRE_OP_NAME(o->source, o->op)), JSON_B("nested", o->nested),
		JSON_U("count", o->count));
	if (o->sketch.count) { /* else an event without a duration */
		JSON_PUT(w, JSON_U("p50_ns", sketch_quantile(&o->sketch, 0.50)),
			JSON_U("p95_ns", sketch_quantile(&o->sketch, 0.95)),
			JSON_U("p99_ns", sketch_quantile(&o->sketch, 0.99)),
			JSON_U("max_ns", o->sketch.max), JSON_U("sum_ns", o->sketch.sum));
	}
	json_end_object(w);
}

static void put_stacks(struct json_writer *w, const struct stacks_report *s)
{
	uint64_t lost = s->dropped;

	for (int i = 0; i < STACK_LOSS_COUNT; i++)
		lost += s->tally.lost[i];
	JSON_PUT_INTO(w, "stacks", JSON_U("taken", s->tally.taken),
		JSON_U("taken_ns", s->tally.taken_ns), JSON_U("distinct", s->handed_on),
		JSON_U("complete", s->tally.complete), JSON_U("lost", lost),
		JSON_U("table_bytes", s->table_bytes),
		JSON_U("python_processes", s->python_processes),
		JSON_S("python_refused", s->python_refused),
		JSON_U("symbol_process_ended", s->symbols.deaths));
}

static void put_missing(struct json_writer *w, const struct parts_missing *missing)
{
	json_begin_array_member(w, "missing");
	for (size_t i = 0; missing && i < missing->count; i++) {
		const struct probe_part_row *part = &probe_parts[missing->rows[i].part];

		JSON_PUT_OBJECT(w, JSON_S("part", part->name), JSON_S("without", part->without),
			JSON_S("since", part->since), JSON_S("why", missing->rows[i].why));
	}
	json_end_array(w);
}

void view_json(struct json_writer *w, const struct tracer_view *v, const char *node, bool final)
{
	json_begin_object(w);
	event_json_time(w, v->now);
	JSON_PUT(w, JSON_S("node", node), JSON_S("source", "ingero"), JSON_S("op", "table"),
		JSON_B("final", final), JSON_U("duration_ns", v->ran_ns),
		JSON_U("processes", v->processes), JSON_U("libraries", v->libraries),
		JSON_U("runtime_probes", v->runtime_probes),
		JSON_U("driver_probes", v->driver_probes), JSON_S("method", v->method));
	put_missing(w, v->missing);
	if (v->has_host)
		JSON_PUT_INTO(w, "system", JSON_R("cpu_pct", v->host.cpu_pct),
			JSON_R("mem_pct", v->host.mem_pct),
			JSON_U("mem_avail_mb", v->host.mem_avail_mb),
			JSON_U("swap_mb", v->host.swap_mb), JSON_R("load_avg", v->host.load1));
	json_begin_array_member(w, "ops");
	for (size_t i = 0; i < v->op_count; i++)
		put_op(w, &v->ops[i]);
	json_end_array(w);
	JSON_PUT(w, JSON_U("db_bytes", v->db_bytes), JSON_S("store_error", v->store_error),
		JSON_U("clock_steps", v->clock_steps), JSON_R("overhead", v->overhead),
		JSON_R("overhead_low", v->overhead_low), JSON_R("overhead_high", v->overhead_high),
		JSON_U("overhead_pairs", v->overhead_pairs),
		JSON_R("overhead_budget", v->overhead_budget),
		JSON_U("launch_weight", (uint64_t)lrint(1 / fmax(v->launches.watched, 1e-3))),
		JSON_R("launches", v->launches.launches),
		JSON_R("launches_error", v->launches.error),
		JSON_R("launches_watched", v->launches.watched),
		JSON_U("launches_windows", v->launches.windows),
		JSON_U("names_lost", v->names_lost),
		JSON_U("coverage_gaps", v->gap_count + v->gaps_more));
	if (v->has_stacks)
		put_stacks(w, &v->stacks);
	json_end_object(w);
	json_finish(w);
}

#define PRINT_NS (10 * NS_PER_S) /* outliers for people: one in so long */

/* In JSON each one, as the stream has it. */
static void print_outlier(void *arg, const struct stream_message *m)
{
	_cleanup_buf_ struct buf b = BUF_INIT(STREAM_LINE_MAX);
	const struct stream_inference_outlier *o = &m->outlier;
	struct trace_stream *t = arg;
	uint64_t now = mono_now().ns;

	if (t->is_json) {
		if (stream_message_line(&b, m) == 0)
			fwrite(b.data, 1, b.len, stdout);
		return;
	}
	if (t->printed_ns && now - t->printed_ns < PRINT_NS)
		return;
	t->printed_ns = now;
	if (*t->drawn_lines)
		printf("\x1b[%dA\r\x1b[J", *t->drawn_lines);
	*t->drawn_lines = 0;
	printf("  Inference: a step of process %u took %s; 95 %% take at most %s (%s)\n", o->of.pid,
		TEXT_DURATION(o->step_duration_ns), TEXT_DURATION(o->baseline_p95_ns),
		o->of.bucket);
	fflush(stdout);
}

int trace_stream_open(struct trace_stream *t, const struct trace_plan *p, int *drawn_lines,
	struct errinfo *reterr)
{
	struct remediate_settings s = p->stream;

	*t = (struct trace_stream){.path = p->stream_path,
		.is_json = p->json,
		.has_steps = s.inference,
		.drawn_lines = drawn_lines};
	if (!p->has_stream)
		return 0;
	s.outlier = print_outlier;
	s.arg = t;
	return remediate_open(&s, &t->remediate, reterr);
}

void trace_stream_say(const struct trace_stream *t, FILE *out)
{
	if (!t->remediate)
		return;
	fprintf(out, "  Remediation stream: %s\n", TEXT_SHOWN(t->path));
	fflush(out);
}

void trace_stream_event(struct trace_stream *t, const struct event *e)
{
	if (t->remediate)
		remediate_event(t->remediate, e);
}

void trace_stream_gpu(struct trace_stream *t, const struct gpu_sample *s)
{
	if (t->remediate)
		remediate_gpu(t->remediate, s);
}

void trace_stream_incident(struct trace_stream *t, uint32_t pid)
{
	if (t->remediate)
		remediate_incident(t->remediate, pid, wall_now());
}

static void take_launches(void *arg, uint32_t pid, const char *comm, uint64_t count)
{
	remediate_launches(arg, pid, comm, count);
}

void trace_stream_serve(struct trace_stream *t, struct tracer *tracer, bool is_second)
{
	if (!t->remediate)
		return;
	remediate_poll(t->remediate);
	if (!is_second)
		return;
	tracer_launches(tracer, take_launches, t->remediate);
	remediate_second(t->remediate, wall_now());
}

static void say_steps(const struct infer_steps *s, FILE *out)
{
	fprintf(out,
		"  Inference: %s; %llu took over 1.5 times their p95, %llu over 2, %llu over %g\n",
		TEXT_PLURAL(s->steps, "steps"), (unsigned long long)s->outliers[INFER_1_5X],
		(unsigned long long)s->outliers[INFER_2X],
		(unsigned long long)s->outliers[INFER_RATIO], s->settings.ratio);
}

void trace_stream_close(struct trace_stream *t, FILE *out)
{
	struct stream_stats s;

	if (!t->remediate)
		return;
	fflush(stdout); /* lines of JSON are whole before others follow */
	s = remediate_stats(t->remediate);
	if (out && t->has_steps)
		say_steps(remediate_steps(t->remediate), out);
	if (out)
		fprintf(out, "  Remediation stream: %llu messages sent, %llu without a reader\n",
			(unsigned long long)s.messages,
			(unsigned long long)s.dropped[STREAM_DROP_NO_CLIENT]);
	remediate_close(TAKE(t->remediate));
}
