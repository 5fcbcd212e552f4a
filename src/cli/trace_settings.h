/* SPDX-License-Identifier: Apache-2.0 */
/* trace_settings.h - the options of `ingero trace`: as the user wrote them (trace_settings.c), and
 * as the agent wants them (trace_resolve.c). */
#pragma once

#include "base/buf.h"
#include "base/socket_path.h"
#include "command/option.h"
#include "json/writer.h"
#include "notify/remediate/remediate.h"
#include "notify/telemetry/telemetry.h"
#include "record/trace/tracer.h"

#define TRACE_NOT_GIVEN UINT64_MAX

struct trace_settings {
	struct option_pids pids;
	const char *user, *db, *node, *cuda_lib, *method, *refuse_program, *budget;
	struct option_strings libraries;
	uint64_t duration_ns, ring_bytes;
	bool verbose, nccl;
	const char *log, *notify;
	bool json, record, record_all, no_io, no_net, no_tcp, no_memory, old_kernel;
	uint64_t max_db_bytes, rollover_bytes, heartbeat_ns;
	int64_t rollover_keep, deadband, annotate_gid;
	bool annotate;
	const char *annotate_socket;
	int64_t sampling_rate, user_targets;
	bool stack;
	const char *py_walker;
	int64_t stack_samples, sample_hz;
	const char *prometheus, *prometheus_token_file;
	bool prometheus_allow_remote;
	const char *otlp, *otlp_protocol, *otlp_ca_cert, *otlp_client_cert, *otlp_client_key,
		*cluster;
	bool otlp_insecure, otlp_insecure_far;
	uint64_t otlp_interval_ns;
	const char *nccl_lib;
	uint64_t gpu_period_ns;
	bool remediate, inference, kv_lineage;
	const char *remediate_socket, *inference_pause, *inference_phase;
	int64_t remediate_gid, inference_warmup, kv_top, kv_max;
	double inference_ratio;
};

extern const struct option_row trace_options[];
extern const struct trace_settings trace_defaults;

struct trace_plan { /* what the options come to; strings of the settings stay theirs */
	struct tracer_settings tracer; /* but for the sinks */
	const char *db_path;           /* NULL: nothing is recorded */
	char *default_path;
	char annotate_path[SOCKET_PATH_MAX];
	char node[256], host[256];
	char *notify;    /* file of those who are told of incidents; NULL: none */
	bool has_stream; /* remediation */
	struct remediate_settings stream;
	char stream_path[SOCKET_PATH_MAX];
	int pause_severity; /* incidents from this on pause the baseline of steps; SEVERITY_COUNT: none */
	bool json;
	bool has_telemetry;
	struct telemetry_settings telemetry;
	struct endpoint endpoint;
	struct endpoint_fields fields, attributes;
};

/* trace_resolve - -EINVAL and the like with a sentence that names the option. @p points into
 * itself: it must not be moved. */
int trace_resolve(const struct trace_settings *s, struct trace_plan *p, struct errinfo *reterr);
/* trace_resolve_stream - the part of it that is about --remediate and --inference; the node is known. */
void trace_plan_done(struct trace_plan *p);

/* What a file that `ingero trace` is to record to holds already. */

/* trace_earlier - a line that says that @path has runs in it, with how many events and since when; nothing
 * for a new file, and for one that cannot be read: whoever records to it says why. */
void trace_earlier(struct buf *b, const char *path);

/* ---- the remediation stream of `ingero trace`, and what the terminal is told of it. Without
 * --remediate and --inference all of it does nothing. */

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
