/* SPDX-License-Identifier: Apache-2.0 */
/* trace_stream.c - see trace_stream.h. */
#include "cli/trace_stream.h"

#include "base/text.h"

#define PRINT_NS (10 * NS_PER_S) /* outliers for people: one in so long */

/* In JSON each one, as the stream has it. */
static void print_outlier(void *arg, const struct stream_message *m)
{
	_cleanup_buf_ struct buf b = BUF_INIT(STREAM_LINE_MAX);
	const struct stream_inference_outlier *o = &m->outlier;
	char step[TEXT_MAX], usual[TEXT_MAX];
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
		text_format_duration(step, o->step_duration_ns),
		text_format_duration(usual, o->baseline_p95_ns), o->of.bucket);
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
	_cleanup_buf_ struct buf b = BUF_INIT(4096);

	if (!t->remediate)
		return;
	text_escape_terminal(&b, t->path);
	fprintf(out, "  Remediation stream: %s\n", buf_str(&b));
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
	char count[TEXT_PLURAL_MAX];

	fprintf(out,
		"  Inference: %s; %llu took over 1.5 times their p95, %llu over 2, %llu over %g\n",
		text_format_plural(count, s->steps, "steps"),
		(unsigned long long)s->outliers[INFER_1_5X],
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
		fprintf(out,
			"  Remediation stream: %llu messages told, %llu while nobody listened\n",
			(unsigned long long)s.messages,
			(unsigned long long)s.dropped[STREAM_DROP_NO_CLIENT]);
	remediate_close(TAKE(t->remediate));
}
