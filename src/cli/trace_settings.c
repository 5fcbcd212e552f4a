/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/trace_settings.h"

#include "base/text.h"
#include "record/probe/sample/sample.h"
#include "store/read/nodedb_snapshot.h"

struct found {
	struct nodedb_totals totals;
	struct nodedb_range range;
};

static int look(struct nodedb_snapshot *l, void *arg, struct errinfo *reterr)
{
	struct found *f = arg;
	int r = nodedb_snapshot_totals(l, &f->totals, reterr);

	return r < 0 ? r : nodedb_snapshot_range(l, &f->range, reterr);
}

void trace_earlier(struct buf *b, const char *path)
{
	char events[TEXT_PLURAL_MAX], runs[TEXT_PLURAL_MAX], since[WHEN_UTC_MAX];
	struct found f = {0};
	struct errinfo e = {0};

	if (access(path, F_OK) < 0 || nodedb_snapshot_read(path, look, &f, &e) < 0 ||
		!f.totals.sessions || !f.range.first_ns)
		return;
	buf_printf(b,
		"  Already in it: %s%s of %s, since %.19sZ; `ingero explain` shows the newest run, `--all` all of them\n",
		f.totals.events_exact ? "" : "about ",
		text_format_plural(events, f.totals.events, "events"),
		text_format_plural(runs, f.totals.sessions, "runs"),
		when_utc(since, (wall_time){f.range.first_ns}));
}

/* The options of `ingero trace`. */

#define OPTION(field) offsetof(struct trace_settings, field)
#define REFUSED(name, sentence)                                                                    \
	{                                                                                          \
		name, 0, OPTION_REFUSED, 0, "X", sentence, 0, 0, true                              \
	}
#define PHASES(name)                                                                               \
	REFUSED(name,                                                                              \
		"launches are sampled, so a step's phase is unknown; label phases with `ingero annotate`")
#define SCRAPES(name)                                                                              \
	REFUSED(name,                                                                              \
		"engines are not asked for their metrics; let Prometheus scrape them beside `trace --prometheus`")
const struct option_row trace_options[] = {
	{"pid", 'p', OPTION_PIDS, OPTION(pids), "N", "trace these processes and their children", 0,
		0, false},
	{"user", 'u', OPTION_STRING, OPTION(user), "NAME", "trace this user's CUDA processes", 0, 0,
		false},
	{"duration", 'd', OPTION_DURATION, OPTION(duration_ns), "TIME",
		"stop after this time (default: until Ctrl-C)", 0, 0, false},
	{"json", 0, OPTION_FLAG, OPTION(json), NULL,
		"print each recorded event as one line of JSON", 0, 0, false},
	{"verbose", 'v', OPTION_FLAG, OPTION(verbose), NULL,
		"also show what could not be traced, and why", 0, 0, false},
	{"log", 0, OPTION_STRING, OPTION(log), "PATH",
		"also append messages of the program to this file", 0, 0, false},
	{"db", 0, OPTION_STRING, OPTION(db), "PATH",
		"database to record to (default: $INGERO_DB, else ~/.ingero/ingero.db)", 0, 0,
		false},
	{"record", 0, OPTION_FLAG, OPTION(record), NULL, "record to the database (default: true)",
		0, 0, false},
	{"record-all", 0, OPTION_FLAG, OPTION(record_all), NULL,
		"record every call, not only slow calls and samples", 0, 0, false},
	{"max-db", 0, OPTION_SIZE, OPTION(max_db_bytes), "SIZE",
		"maximum size of the database; the oldest rows are deleted; 0: no limit (default: 10g)",
		0, 0, false},
	{"db-rollover-size", 0, OPTION_SIZE, OPTION(rollover_bytes), "SIZE",
		"instead of --max-db, start a new database at this size", 0, 0, false},
	{"db-rollover-keep", 0, OPTION_INT, OPTION(rollover_keep), "N",
		"rolled-over databases to keep (default: 6)", 0, 4000, false},
	{"annotate", 0, OPTION_FLAG, OPTION(annotate), NULL,
		"accept labels from workloads (`ingero annotate`) over a socket", 0, 0, false},
	{"annotate-socket-gid", 0, OPTION_INT, OPTION(annotate_gid), "GID",
		"group that may use the socket (default: -1, only this user)", -1, INT32_MAX,
		false},
	{"annotate-socket", 0, OPTION_STRING, OPTION(annotate_socket), "PATH",
		"path of the socket (default: /run/ingero/annotate.sock, or below "
		"$XDG_RUNTIME_DIR)",
		0, 0, true},
	{"deadband", 0, OPTION_INT, OPTION(deadband), "PERCENT",
		"store a host sample only if it changed by more than this (default: 0)", 0, 100,
		false},
	{"heartbeat", 0, OPTION_DURATION, OPTION(heartbeat_ns), "TIME",
		"store a host sample at least this often; without --deadband, exactly this often (default: every second)",
		0, 0, false},
	{"node", 0, OPTION_STRING, OPTION(node), "NAME",
		"name of this node (default: agent.node in ingero.yaml, else the host name)", 0, 0,
		false},
	{"cuda-lib", 0, OPTION_STRING, OPTION(cuda_lib), "PATH",
		"probe only this libcudart or libcuda", 0, 0, false},
	{"library", 0, OPTION_STRINGS, OPTION(libraries), "PATH",
		"also probe this libcudart, libcuda or libnccl from the start, in any process", 0,
		0, false},
	{"nccl-lib", 0, OPTION_STRING, OPTION(nccl_lib), "PATH",
		"probe only this libnccl (default: those that processes load)", 0, 0, false},
	{"ringbuf-size", 0, OPTION_SIZE, OPTION(ring_bytes), "SIZE",
		"size of the kernel ring buffer, a power of two (default: 8m)", 0, 0, false},
	{"no-io", 0, OPTION_FLAG, OPTION(no_io), NULL, "do not trace block I/O", 0, 0, false},
	{"overhead-budget", 0, OPTION_STRING, OPTION(budget), "PCT",
		"overhead limit; launches are counted in windows to stay below it (default: 1%; 0: no limit)",
		0, 0, false},
	{"sampling-rate", 0, OPTION_INT, OPTION(sampling_rate), "N",
		"store every Nth ordinary launch or copy as a row (default: 0, adaptive); counts stay exact",
		0, 1 << 20, false},
	{"stack", 0, OPTION_FLAG, OPTION(stack), NULL,
		"record the call stack of each call (default: true)", 0, 0, false},
	{"py-walker", 0, OPTION_STRING, OPTION(py_walker), "NAME",
		"where Python frames are read: auto, ebpf or userspace (default: auto)", 0, 0,
		false},
	{"stack-samples", 0, OPTION_INT, OPTION(stack_samples), "N",
		"record N ordinary calls per stack and only count the rest (default: 0, all)", 0,
		INT32_MAX, false},
	{"sample-hz", 0, OPTION_INT, OPTION(sample_hz), "N",
		"record what runs on each CPU N times a second; 0: never (default: 99)", 0,
		SAMPLE_HZ_MAX, false},
	{"no-net", 0, OPTION_FLAG, OPTION(no_net), NULL, "do not trace sockets and TCP", 0, 0,
		false},
	{"no-tcp", 0, OPTION_FLAG, OPTION(no_tcp), NULL, "as --no-net", 0, 0, true},
	{"nccl", 0, OPTION_FLAG, OPTION(nccl), NULL,
		"trace NCCL calls (always on; accepted for compatibility)", 0, 0, false},
	{"no-memory", 0, OPTION_FLAG, OPTION(no_memory), NULL,
		"do not trace page allocation and reclaim", 0, 0, false},
	{"prometheus", 0, OPTION_STRING, OPTION(prometheus), "ADDR",
		"serve Prometheus metrics at http://ADDR/metrics; a port alone means 127.0.0.1", 0,
		0, false},
	{"prometheus-token-file", 0, OPTION_STRING, OPTION(prometheus_token_file), "PATH",
		"require a token from this file for scrapes", 0, 0, false},
	{"prometheus-allow-remote", 0, OPTION_FLAG, OPTION(prometheus_allow_remote), NULL,
		"allow scrapes from other machines without a token", 0, 0, false},
	{"otlp", 0, OPTION_STRING, OPTION(otlp), "ENDPOINT",
		"send metrics by OTLP to host:port, http(s)://host:port[/path], "
		"grpc(s)://host:port",
		0, 0, false},
	{"otlp-protocol", 0, OPTION_STRING, OPTION(otlp_protocol), "NAME",
		"http/protobuf, http/json or grpc (default: from ENDPOINT, else http/protobuf)", 0,
		0, false},
	{"otlp-interval", 0, OPTION_DURATION, OPTION(otlp_interval_ns), "TIME",
		"interval between exports (default: 10s)", 0, 0, false},
	{"otlp-insecure", 0, OPTION_FLAG, OPTION(otlp_insecure), NULL,
		"allow plain text to this machine", 0, 0, false},
	{"otlp-insecure-allow-non-loopback", 0, OPTION_FLAG, OPTION(otlp_insecure_far), NULL,
		"allow plain text to other machines too", 0, 0, false},
	{"otlp-ca-cert", 0, OPTION_STRING, OPTION(otlp_ca_cert), "PATH",
		"CA certificates to trust (default: the system's)", 0, 0, false},
	{"otlp-client-cert", 0, OPTION_STRING, OPTION(otlp_client_cert), "PATH",
		"client certificate (mTLS)", 0, 0, false},
	{"otlp-client-key", 0, OPTION_STRING, OPTION(otlp_client_key), "PATH",
		"private key of the client certificate", 0, 0, false},
	{"notify", 0, OPTION_STRING, OPTION(notify), "PATH",
		"send alerts about each ongoing incident to the receivers in this file (docs/alerts.md) (default: agent.notify in ingero.yaml)",
		0, 0, false},
	{"cluster", 0, OPTION_STRING, OPTION(cluster), "NAME",
		"cluster name, sent with OTLP metrics", 0, 0, false},
	{"throttle-poll-interval", 0, OPTION_DURATION, OPTION(gpu_period_ns), "TIME",
		"interval between readings of the GPUs: clocks, throttling, memory, 100ms to 1m (default: 1s)",
		1, 0, false},
	{"remediate", 0, OPTION_FLAG, OPTION(remediate), NULL,
		"notify local programs of processes short of CPU time and of GPU memory in use, over the socket remediate-trace.sock",
		0, 0, false},
	{"remediate-socket", 0, OPTION_STRING, OPTION(remediate_socket), "PATH",
		"path of that socket (default: /run/ingero/remediate-trace.sock, or below $XDG_RUNTIME_DIR)",
		0, 0, false},
	{"remediate-gid", 0, OPTION_INT, OPTION(remediate_gid), "GID",
		"group that may read that socket (default: -1, only this user and root)", -1,
		INT32_MAX, false},
	{"inference", 0, OPTION_FLAG, OPTION(inference), NULL,
		"follow inference steps and report those that took much longer than usual; implies --remediate and, unless given, --heartbeat 30s, --db-rollover-size 1g, and JSON if stdout is no terminal",
		0, 0, false},
	{"inference-warmup", 0, OPTION_INT, OPTION(inference_warmup), "N",
		"steps of a stream to learn from before any is judged (default: 30)", 1, 100000,
		false},
	{"inference-outlier-ratio", 0, OPTION_NUMBER, OPTION(inference_ratio), "X",
		"steps longer than this many times the p95 are the worst outliers, 2.1 to 100 (default: 3)",
		2100, 100000, false},
	{"inference-pause-on-severity", 0, OPTION_STRING, OPTION(inference_pause), "NAME",
		"stop learning for 30s after an incident of the process of this severity: LOW, MEDIUM, HIGH; '': always learn (default: HIGH)",
		0, 0, false},
	{"inference-kvcache-lineage", 0, OPTION_FLAG, OPTION(kv_lineage), NULL,
		"report with an outlier how old the process's oldest GPU allocations are", 0, 0,
		false},
	{"inference-kvcache-top-n", 0, OPTION_INT, OPTION(kv_top), "N",
		"number of those allocations (default: 5)", 1, REMEDIATE_KV_TOP_MAX, false},
	{"inference-kvcache-max-per-pid", 0, OPTION_INT, OPTION(kv_max), "N",
		"allocations to follow per process (default: 0, 8192)", 0, 1 << 20, false},
	{"inference-phase-classifier", 0, OPTION_STRING, OPTION(inference_phase), "NAME",
		"only off: there is one baseline for each stream", 0, 0, true},
	/* Published, and without a place here: docs/published-flags.md. */
	REFUSED("memfrag-poll-interval",
		"GPU memory is read together with the clocks; use --throttle-poll-interval"),
	REFUSED("libnccl-discovery-interval",
		"a libnccl is probed when a process loads it, there is no interval; leave it out"),
	REFUSED("enable-experimental-kprobes",
		"nothing inside the driver is probed; leave it out: failed allocations are recorded by cudaMalloc's own probe"),
	REFUSED("fleet-workload-type",
		"what is traced does not depend on it; give it to `ingero fleet-push`"),
	REFUSED("inference-sampler-degrade-on",
		"waits and slow calls are always recorded, outliers or not; use --record-all to keep every call"),
	PHASES("inference-phase-decode-max-launches"),
	PHASES("inference-phase-decode-max-memcpy"),
	PHASES("inference-phase-prefill-min-launches"),
	PHASES("inference-phase-prefill-min-avg-kernel"),
	PHASES("inference-phase-mixed-memcpy"),
	PHASES("inference-phase-mixed-launch-low"),
	PHASES("inference-phase-mixed-launch-high"),
	PHASES("inference-phase-memfrag-decode-min"),
	REFUSED("inference-fingerprint-key",
		"launches are counted, not listed step by step; use `ingero query` for the kernels of a stream"),
	SCRAPES("inference-scrape"),
	SCRAPES("inference-scrape-interval"),
	SCRAPES("inference-scrape-host"),
	SCRAPES("inference-scrape-redetect-interval"),
	{"old-kernel", 0, OPTION_FLAG, OPTION(old_kernel), NULL,
		"use only features of kernels before 6.3", 0, 0, true},
	{"refuse-program", 0, OPTION_STRING, OPTION(refuse_program), "NAME",
		"behave as if the kernel refused this BPF program", 0, 0, true},
	{"attach-method", 0, OPTION_STRING, OPTION(method), "NAME",
		"session, multi or perf (default: the best that the kernel supports)", 0, 0, true},
	{NULL, 0, OPTION_FLAG, 0, NULL, NULL, 0, 0, false},
};

const struct trace_settings trace_defaults = {.record = true,
	.nccl = true,
	.stack = true,
	.max_db_bytes = TRACE_NOT_GIVEN,
	.sample_hz = 99,
	.rollover_keep = 6,
	.annotate_gid = -1,
	.gpu_period_ns = GPU_SAMPLER_PERIOD_NS,
	.remediate_gid = -1,
	.inference_warmup = 30,
	.inference_ratio = 3,
	.kv_top = REMEDIATE_KV_TOP};
