/* SPDX-License-Identifier: Apache-2.0 */
/* trace_stream.h - the remediation stream of `ingero trace`, and what the terminal is told of it. Without
 * --remediate and --inference all of it does nothing. */
#pragma once

#include "cli/trace_settings.h"
#include "json/writer.h"
#include "record/trace/tracer.h"

struct trace_stream {
	struct remediate *remediate; /* NULL: there is none */
	const char *path;
	bool is_json, has_steps;
	int *drawn_lines;    /* of a table on the terminal, which a line has to clear */
	uint64_t printed_ns; /* when an outlier was last printed, monotonic */
};

/* trace_stream_open - while there are privileges to make the socket with. */
int trace_stream_open(struct trace_stream *t, const struct trace_plan *p, int *drawn_lines,
	struct errinfo *reterr);
void trace_stream_say(const struct trace_stream *t, FILE *out); /* where it is */

void trace_stream_event(struct trace_stream *t, const struct event *e);
void trace_stream_gpu(struct trace_stream *t, const struct gpu_sample *s);
void trace_stream_incident(struct trace_stream *t, uint32_t pid);

/* trace_stream_serve - after each step of the tracer; @is_second: its totals are new. */
void trace_stream_serve(struct trace_stream *t, struct tracer *tracer, bool is_second);

/* trace_stream_close - @out is told what was told; NULL: there was no trace. */
void trace_stream_close(struct trace_stream *t, FILE *out);

/* What the live table shows, as one line of JSON for `trace --json`. */

/* view_json - {"source":"ingero","op":"table",…}: the host, every operation with count and
 * quantiles, what is traced, the store's size and its last failure, steps of the clock. */
void view_json(struct json_writer *w, const struct tracer_view *v, const char *node, bool final);
