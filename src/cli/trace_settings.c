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
	char since[WHEN_UTC_MAX];
	struct found f = {0};
	struct errinfo e = {0};

	if (access(path, F_OK) < 0 || nodedb_snapshot_read(path, look, &f, &e) < 0 ||
		!f.totals.sessions || !f.range.first_ns)
		return;
	buf_printf(b,
		"  Already in it: %s%s of %s, since %.19sZ; `ingero explain` shows the newest run, `--all` all of them\n",
		f.totals.events_exact ? "" : "about ", TEXT_PLURAL(f.totals.events, "events"),
		TEXT_PLURAL(f.totals.sessions, "runs"),
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
	OPTION_SHORT(
		PIDS, "pid", 'p', OPTION(pids), "N", "trace these processes and their children"),
	OPTION_SHORT(STRING, "user", 'u', OPTION(user), "NAME", "trace this user's CUDA processes"),
	OPTION_SHORT(DURATION, "duration", 'd', OPTION(duration_ns), "TIME",
		"stop after this time (default: until Ctrl-C)"),
	OPTION_ROW(
		FLAG, "json", OPTION(json), NULL, "print each recorded event as one line of JSON"),
	OPTION_SHORT(FLAG, "verbose", 'v', OPTION(verbose), NULL,
		"also show what could not be traced, and why"),
	OPTION_ROW(STRING, "log", OPTION(log), "PATH",
		"also append messages of the program to this file"),
	OPTION_ROW(STRING, "db", OPTION(db), "PATH",
		"database to record to (default: $INGERO_DB, else ~/.ingero/ingero.db)"),
	OPTION_ROW(FLAG, "record", OPTION(record), NULL, "record to the database (default: true)"),
	OPTION_ROW(FLAG, "record-all", OPTION(record_all), NULL,
		"record every call, not only slow calls and samples"),
	OPTION_ROW(SIZE, "max-db", OPTION(max_db_bytes), "SIZE",
		"maximum size of the database; the oldest rows are deleted; 0: no limit (default: 10g)"),
	OPTION_ROW(SIZE, "db-rollover-size", OPTION(rollover_bytes), "SIZE",
		"instead of --max-db, start a new database at this size"),
	OPTION_WITHIN(INT, "db-rollover-keep", OPTION(rollover_keep), "N", 0, 4000,
		"rolled-over databases to keep (default: 6)"),
	OPTION_ROW(FLAG, "annotate", OPTION(annotate), NULL,
		"accept labels from workloads (`ingero annotate`) over a socket"),
	OPTION_WITHIN(INT, "annotate-socket-gid", OPTION(annotate_gid), "GID", -1, INT32_MAX,
		"group that may use the socket (default: -1, only this user)"),
	OPTION_ALIAS(STRING, "annotate-socket", OPTION(annotate_socket), "PATH",
		"path of the socket (default: /run/ingero/annotate.sock, or below $XDG_RUNTIME_DIR)"),
	OPTION_WITHIN(INT, "deadband", OPTION(deadband), "PERCENT", 0, 100,
		"store a host sample only if it changed by more than this (default: 0)"),
	OPTION_ROW(DURATION, "heartbeat", OPTION(heartbeat_ns), "TIME",
		"store a host sample at least this often; without --deadband, exactly this often (default: every second)"),
	OPTION_ROW(STRING, "node", OPTION(node), "NAME",
		"name of this node (default: agent.node in ingero.yaml, else the host name)"),
	OPTION_ROW(STRING, "cuda-lib", OPTION(cuda_lib), "PATH",
		"probe only this libcudart or libcuda"),
	OPTION_ROW(STRINGS, "library", OPTION(libraries), "PATH",
		"also probe this libcudart, libcuda or libnccl from the start, in any process"),
	OPTION_ROW(STRING, "nccl-lib", OPTION(nccl_lib), "PATH",
		"probe only this libnccl (default: those that processes load)"),
	OPTION_ROW(SIZE, "ringbuf-size", OPTION(ring_bytes), "SIZE",
		"size of the kernel ring buffer, a power of two (default: 8m)"),
	OPTION_ROW(FLAG, "no-io", OPTION(no_io), NULL, "do not trace block I/O"),
	OPTION_ROW(STRING, "overhead-budget", OPTION(budget), "PCT",
		"overhead limit; launches are counted in windows to stay below it (default: 1%; 0: no limit)"),
	OPTION_WITHIN(INT, "sampling-rate", OPTION(sampling_rate), "N", 0, 1 << 20,
		"store every Nth ordinary launch or copy as a row (default: 0, adaptive); counts stay exact"),
	OPTION_ROW(FLAG, "stack", OPTION(stack), NULL,
		"record the call stack of each call (default: true)"),
	OPTION_ROW(STRING, "py-walker", OPTION(py_walker), "NAME",
		"where Python frames are read: auto, ebpf or userspace (default: auto)"),
	OPTION_WITHIN(INT, "stack-samples", OPTION(stack_samples), "N", 0, INT32_MAX,
		"record N ordinary calls per stack and only count the rest (default: 0, all)"),
	OPTION_WITHIN(INT, "sample-hz", OPTION(sample_hz), "N", 0, SAMPLE_HZ_MAX,
		"record what runs on each CPU N times a second; 0: never (default: 99)"),
	OPTION_ROW(FLAG, "no-net", OPTION(no_net), NULL, "do not trace sockets and TCP"),
	OPTION_ALIAS(FLAG, "no-tcp", OPTION(no_tcp), NULL, "as --no-net"),
	OPTION_ROW(FLAG, "nccl", OPTION(nccl), NULL,
		"trace NCCL calls (always on; accepted for compatibility)"),
	OPTION_ROW(FLAG, "no-memory", OPTION(no_memory), NULL,
		"do not trace page allocation and reclaim"),
	OPTION_ROW(STRING, "prometheus", OPTION(prometheus), "ADDR",
		"serve Prometheus metrics at http://ADDR/metrics; a port alone means 127.0.0.1"),
	OPTION_ROW(STRING, "prometheus-token-file", OPTION(prometheus_token_file), "PATH",
		"require a token from this file for scrapes"),
	OPTION_ROW(FLAG, "prometheus-allow-remote", OPTION(prometheus_allow_remote), NULL,
		"allow scrapes from other machines without a token"),
	OPTION_ROW(STRING, "otlp", OPTION(otlp), "ENDPOINT",
		"send metrics by OTLP to host:port, http(s)://host:port[/path], grpc(s)://host:port"),
	OPTION_ROW(STRING, "otlp-protocol", OPTION(otlp_protocol), "NAME",
		"http/protobuf, http/json or grpc (default: from ENDPOINT, else http/protobuf)"),
	OPTION_ROW(DURATION, "otlp-interval", OPTION(otlp_interval_ns), "TIME",
		"interval between exports (default: 10s)"),
	OPTION_ROW(FLAG, "otlp-insecure", OPTION(otlp_insecure), NULL,
		"allow plain text to this machine"),
	OPTION_ROW(FLAG, "otlp-insecure-allow-non-loopback", OPTION(otlp_insecure_far), NULL,
		"allow plain text to other machines too"),
	OPTION_ROW(STRING, "otlp-ca-cert", OPTION(otlp_ca_cert), "PATH",
		"CA certificates to trust (default: the system's)"),
	OPTION_ROW(STRING, "otlp-client-cert", OPTION(otlp_client_cert), "PATH",
		"client certificate (mTLS)"),
	OPTION_ROW(STRING, "otlp-client-key", OPTION(otlp_client_key), "PATH",
		"private key of the client certificate"),
	OPTION_ROW(STRING, "notify", OPTION(notify), "PATH",
		"send alerts about each ongoing incident to the receivers in this file (docs/alerts.md) (default: agent.notify in ingero.yaml)"),
	OPTION_ROW(
		STRING, "cluster", OPTION(cluster), "NAME", "cluster name, sent with OTLP metrics"),
	OPTION_WITHIN(DURATION, "throttle-poll-interval", OPTION(gpu_period_ns), "TIME", 1, 0,
		"interval between readings of the GPUs: clocks, throttling, memory, 100ms to 1m (default: 1s)"),
	OPTION_ROW(FLAG, "remediate", OPTION(remediate), NULL,
		"notify local programs of processes short of CPU time and of GPU memory in use, over the socket remediate-trace.sock"),
	OPTION_ROW(STRING, "remediate-socket", OPTION(remediate_socket), "PATH",
		"path of that socket (default: /run/ingero/remediate-trace.sock, or below $XDG_RUNTIME_DIR)"),
	OPTION_WITHIN(INT, "remediate-gid", OPTION(remediate_gid), "GID", -1, INT32_MAX,
		"group that may read that socket (default: -1, only this user and root)"),
	OPTION_ROW(FLAG, "inference", OPTION(inference), NULL,
		"follow inference steps and report those that took much longer than usual; implies --remediate and, unless given, --heartbeat 30s, --db-rollover-size 1g, and JSON if stdout is no terminal"),
	OPTION_WITHIN(INT, "inference-warmup", OPTION(inference_warmup), "N", 1, 100000,
		"steps of a stream to learn from before any is judged (default: 30)"),
	OPTION_WITHIN(NUMBER, "inference-outlier-ratio", OPTION(inference_ratio), "X", 2100, 100000,
		"steps longer than this many times the p95 are the worst outliers, 2.1 to 100 (default: 3)"),
	OPTION_ROW(TEXT, "inference-pause-on-severity", OPTION(inference_pause), "NAME",
		"stop learning for 30s after an incident of the process of this severity: LOW, MEDIUM, HIGH; '': always learn (default: HIGH)"),
	OPTION_ROW(FLAG, "inference-kvcache-lineage", OPTION(kv_lineage), NULL,
		"report with an outlier how old the process's oldest GPU allocations are"),
	OPTION_WITHIN(INT, "inference-kvcache-top-n", OPTION(kv_top), "N", 1, REMEDIATE_KV_TOP_MAX,
		"number of those allocations (default: 5)"),
	OPTION_WITHIN(INT, "inference-kvcache-max-per-pid", OPTION(kv_max), "N", 0, 1 << 20,
		"allocations to follow per process (default: 0, 8192)"),
	OPTION_ALIAS(STRING, "inference-phase-classifier", OPTION(inference_phase), "NAME",
		"only off: there is one baseline for each stream"),
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
	OPTION_ALIAS(FLAG, "old-kernel", OPTION(old_kernel), NULL,
		"use only features of kernels before 6.3"),
	OPTION_ALIAS(STRING, "refuse-program", OPTION(refuse_program), "NAME",
		"behave as if the kernel refused this BPF program"),
	{"user-targets", 0, OPTION_INT, OPTION(user_targets), "N",
		"processes of one user but root that are traced (default: 8192)", 1, TARGETS_MAX,
		true},
	OPTION_ALIAS(STRING, "attach-method", OPTION(method), "NAME",
		"session, multi or perf (default: the best that the kernel supports)"),
	OPTION_END,
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
