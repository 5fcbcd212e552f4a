/* SPDX-License-Identifier: Apache-2.0 */
/* tracer.c - joins the stages of the agent into one run. See tracer.h for the flow.
 *
 * Order matters at both ends. Start: everything that can fail for the user's reasons (pids, kernel,
 * database) comes before anything is written. Stop: silence the probes, detach, sweep, then read
 * the rings to the end, so that the books can balance. */
#include "agent/tracer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agent/annotate/place.h"
#include "agent/annotate/server.h"
#include "agent/attach/calibrate.h"
#include "agent/attach/coverage.h"
#include "agent/attach/feature.h"
#include "agent/attach/judge.h"
#include "agent/capture/deadband.h"
#include "agent/capture/host.h"
#include "agent/capture/reader.h"
#include "agent/capture/totals.h"
#include "agent/capture/waits.h"
#include "agent/discover/discover.h"
#include "agent/discover/family.h"
#include "agent/governor.h"
#include "agent/probe/probe.h"
#include "agent/store/nodedb.h"
#include "agent/store/writer.h"
#include "base/idmap.h"
#include "base/log.h"
#include "config.h"

#define TARGETS_MAX    16384 /* as in the kernel half */
#define OPS_MAX        256
#define LIMIT_CALLS    100  /* calls before an op has a limit of its own */
#define LIMIT_RATIO    3    /* slower than this times the median is an exception */
#define LIMIT_FLOOR_NS 2000 /* never treat ordinary jitter of tiny calls as an exception */
#define FLUSH_TRIES    100  /* of 10 ms */
#define HIT_NS_GUESS   2000
#define SEEN_MIN_NS    (20 * NS_PER_MS)
#define WAIT_SECONDS   5  /* a collective waits this long for its synchronisation */
#define ACK_TRIES      50 /* of 10 ms */
#define ACKS_AT_ONCE   64

struct tracer {
	struct tracer_settings settings;
	struct clock_map clock;
	wall_time started;
	struct probe *probe;
	struct coverage *coverage;
	struct discover_scanner *scanner;
	struct reader *reader;
	struct totals *totals;
	struct waits *waits;
	struct host_reader host;
	struct host_sample host_now;
	bool has_host;
	struct gpu_sampler *gpu;
	bool gpu_named; /* the session's row has the GPU's name */
	struct deadband deadband;
	struct store_writer *store;
	uint64_t store_generation; /* the store's when rows told once were last pushed */
	struct annotate_server *annotate;
	struct idmap targets; /* pid -> itself: processes under trace */
	struct roster *roster;
	bool admit_due; /* new targets: give their threads state */
	uint64_t op_counts[WIRE_SOURCE_MAX][WIRE_OP_MAX]; /* records received */
	struct governor governor;
	bool launches_on;           /* the probes that the governor may take away are there */
	mono_time period_start;     /* when the governor last looked */
	mono_time on_since, off_at; /* of the launch probes' last stay */
	mono_time counted_to;       /* launches are accounted for up to here */
	struct accounting own;      /* what this side dropped or folded */
	struct accounting final;    /* the books after tracer_stop() */
	uint64_t db_bytes;
	char store_error[256];
	bool stopped;
	int64_t second, bucket; /* wall second and 5 s bucket being filled */
	struct tracer_op ops[OPS_MAX];
};

/* ---- records ---- */

static void target_note(struct tracer *t, uint32_t pid, uint32_t parent, wall_time seen)
{
	if (idmap_put(&t->targets, pid, t) < 0)
		log_warning("more than %d traced processes: some will not be shown", TARGETS_MAX);
	t->admit_due = true;
	roster_enter(t->roster, pid, parent, seen);
}

/* A new file, or one whose old rows were pruned, has to be told again what is told only once. */
static void renew_rows(struct tracer *t)
{
	uint64_t generation = t->store ? store_writer_generation(t->store) : 0;

	if (generation == t->store_generation)
		return;
	t->store_generation = generation;
	t->gpu_named = false;
	roster_renew(t->roster, wall_now());
}

static void follow_process(struct tracer *t, const struct event *e)
{
	switch (e->op) {
	case HOST_TARGET_FOUND: target_note(t, e->pid, 0, e->start); break;
	case HOST_PROCESS_FORK: target_note(t, e->peer_pid, e->pid, e->start); break;
	case HOST_PROCESS_EXEC: roster_enter(t->roster, e->pid, 0, e->start); break;
	case HOST_PROCESS_EXIT:
		idmap_remove(&t->targets, e->pid);
		roster_leave(t->roster, e->pid);
		if (totals_process_gone(t->totals, e->pid) < 0)
			log_warning("aggregates of process %u stay in the kernel", e->pid);
		break;
	}
}

static void store_collective(void *arg, const struct event *e, const struct collective *c)
{
	struct tracer *t = arg;

	if (t->store && !store_writer_push_collective(t->store, e, c))
		log_warning("the store's queue is full: collectives are missing in their table");
}

static void take_event(void *arg, struct event *e, const struct collective *c)
{
	struct tracer *t = arg;
	struct account *own = &t->own.source[e->source];
	const char *container_id;

	if (e->op < WIRE_OP_MAX)
		t->op_counts[e->source][e->op]++;
	if (totals_is_launch(e->source, e->op))
		e->weight *= t->governor.weight;
	if (e->flags & WIRE_UNCOUNTED && totals_add(t->totals, e) < 0)
		log_warning("no memory to count calls: aggregates are too low");
	if (e->source == SOURCE_HOST && e->op != HOST_SCHED_SWITCH)
		follow_process(t, e);
	container_id = roster_place(t->roster, e);
	if (c && collective_is_one(e) && !(e->flags & WIRE_NESTED))
		waits_collective(t->waits, e, c);
	else if (e->source == SOURCE_CUDA || e->source == SOURCE_DRIVER)
		waits_sync(t->waits, e);
	if (t->settings.event_sink)
		t->settings.event_sink(t->settings.event_arg, e, c, container_id);
	if (!t->store)
		own->aggregated++; /* the kernel's aggregates hold it already */
	else if (!store_writer_push(t->store, e))
		own->lost[LOSS_QUEUE_FULL]++;
}

/* ---- libraries and targets ---- */

static bool is_wanted(const struct tracer *t, const struct target_process *p)
{
	switch (t->settings.filter) {
	case FILTER_PIDS: return idmap_get(&t->targets, p->pid) != NULL;
	case FILTER_USER: return p->uid == t->settings.uid;
	default: return p->pid != (uint32_t)getpid();
	}
}

/* Probe what running processes map, and follow the processes themselves from now on. */
static int scan_processes(struct tracer *t)
{
	const struct discover_result *found;
	struct process_layers layers;
	wall_time now = wall_now();
	int r = discover_scan(t->scanner, &found);

	if (r < 0)
		return r;
	for (size_t i = 0; i < found->count; i++) {
		const struct target_process *p = &found->processes[i];

		if (!is_wanted(t, p))
			continue;
		judge_cover(t->coverage, "", p);
		if (!idmap_get(&t->targets, p->pid) && probe_target_add(t->probe, p->pid) == 0)
			target_note(t, p->pid, 0, now);
		judge_process(t->coverage, "", p, &layers);
		roster_judged(t->roster, p->pid, &layers);
	}
	return 0;
}

/* Copies on disk that nobody maps yet: a process that starts later is then seen from its first
 * call. */
static int cover_disk(struct tracer *t)
{
	_cleanup_free_ struct target_library *files = NULL;
	struct errinfo e = {0};
	int n = discover_library_files("", &files);

	if (n < 0)
		return n;
	for (int i = 0; i < n; i++)
		if (coverage_add(t->coverage, &files[i], files[i].path, &e) < 0)
			log_info("%s", e.text);
	return 0;
}

static int cover_named(struct tracer *t, const char *path, struct errinfo *reterr)
{
	struct target_library lib;
	int r = discover_library_file(path, &lib, reterr);

	if (r < 0)
		return r;
	r = coverage_add(t->coverage, &lib, path, reterr);
	return r < 0 ? r : 0;
}

/* The processes of --pid with all their descendants; at least one of each family uses CUDA. */
static int enter_pids(struct tracer *t, struct errinfo *reterr)
{
	_cleanup_free_ uint32_t *family = calloc(TARGETS_MAX, sizeof(*family));
	wall_time now = wall_now();

	if (!family)
		return -ENOMEM;
	for (size_t i = 0; i < t->settings.pid_count; i++) {
		int n = family_list("", t->settings.pids[i], family, TARGETS_MAX);

		if (n < 0)
			return n;
		for (int k = 0; k < n; k++) {
			int r = probe_target_add(t->probe, family[k]);

			if (r < 0)
				return errinfo_set(reterr, r, "process %u cannot be traced: %s",
					family[k], strerror(-r));
			target_note(t, family[k], 0, now);
		}
	}
	return 0;
}

static int check_pids(const struct tracer_settings *s, struct errinfo *reterr)
{
	for (size_t i = 0; i < s->pid_count; i++) {
		int r = family_uses_cuda("", s->pids[i], reterr);

		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- once a second ---- */

static bool push_aggregate(void *arg, const struct aggregate *a)
{
	struct tracer *t = arg;

	return !t->store || store_writer_push_aggregate(t->store, a);
}

/* Exceptions are relative to the fastest process of an op: a slower one sends more than it need,
 * never less. */
static void set_limits(struct tracer *t)
{
	uint64_t limits[WIRE_SOURCE_MAX][WIRE_OP_MAX] = {{0}};
	const struct total *v;
	size_t cursor = 0;

	while ((v = totals_next(t->totals, &cursor))) {
		uint64_t limit, *slot;

		if (v->key.source != SOURCE_CUDA && v->key.source != SOURCE_DRIVER)
			continue;
		if (v->all.count < LIMIT_CALLS || v->key.op >= WIRE_OP_MAX)
			continue;
		limit = MAX(LIMIT_RATIO * sketch_quantile(&v->all, 0.5), (uint64_t)LIMIT_FLOOR_NS);
		slot = &limits[v->key.source][v->key.op];
		if (!*slot || limit < *slot)
			*slot = limit;
	}
	for (unsigned s = 0; s < WIRE_SOURCE_MAX; s++)
		for (unsigned op = 0; op < WIRE_OP_MAX; op++)
			if (limits[s][op])
				probe_limit_set(t->probe, s, op, limits[s][op]);
}

static void fill_books(struct tracer *t, struct accounting *ret)
{
	if (t->stopped) {
		*ret = t->final;
		return;
	}
	*ret = t->own;
	for (unsigned s = 0; s < CALIBRATE_SOURCE; s++) {
		struct account *a = &ret->source[s];
		struct wire_tally k;

		probe_tally(t->probe, s, &k);
		a->hits = k.hits;
		a->aggregated += k.aggregated;
		for (int i = 0; i < LOSS_COUNT; i++)
			a->lost[i] += k.lost[i];
		a->lost[LOSS_BAD_RECORD] += reader_bad(t->reader, s);
		if (t->store) {
			uint64_t bare = store_writer_unaggregated(t->store, s);

			a->stored = store_writer_stored(t->store, s);
			a->aggregated -= bare;
			a->lost[LOSS_WRITE_FAILED] += store_writer_failed(t->store, s) + bare;
		}
	}
}

static int flush_bucket(struct tracer *t)
{
	return totals_flush(
		t->totals, (wall_time){t->bucket * (int64_t)NODEDB_BUCKET_FINE}, push_aggregate, t);
}

/* At the end nothing may be refused for want of room: the writer is given time to make some. What
 * it still refuses is a loss. */
static int flush_rest(struct tracer *t)
{
	const struct timespec nap = {.tv_nsec = 10 * (long)NS_PER_MS};
	const struct total *v;
	size_t cursor = 0;
	int r = flush_bucket(t);

	for (int i = 0; r > 0 && i < FLUSH_TRIES; i++) {
		nanosleep(&nap, NULL);
		r = flush_bucket(t);
	}
	while (r > 0 && (v = totals_next(t->totals, &cursor))) {
		uint64_t bare = v->bucket.sketch.count - v->bucket.stored;

		t->own.source[v->key.source].aggregated -= bare;
		t->own.source[v->key.source].lost[LOSS_QUEUE_FULL] += bare;
	}
	return r < 0 ? r : 0;
}

/* Bring launch probes on or take them off, as the governor wants them now. What counts is the time
 * in which launches were really begun: attaching and detaching take tens of milliseconds
 * themselves. */
static int switch_launches(struct tracer *t, wall_time now)
{
	bool on = governor_wants_on(&t->governor, now);
	int r;

	if (on == t->launches_on)
		return 0;
	t->launches_on = on;
	if (on) {
		r = coverage_launches(t->coverage, true);
		probe_launches_enable(t->probe, true);
		t->on_since = mono_now();
		return r;
	}
	probe_launches_enable(t->probe, false);
	t->off_at = mono_now();
	r = coverage_launches(t->coverage, false);
	return r < 0 ? r : probe_sweep(t->probe, LOSS_GOVERNOR, true);
}

/* How many launches one that was seen since the last reading stands for: the probes' stay stands
 * for all the time since launches were last seen. */
static double launch_weight(struct tracer *t, mono_time now)
{
	mono_time to = t->launches_on ? now : t->off_at;
	uint64_t seen_ns = to.ns - MIN(t->on_since.ns, to.ns);
	double weight;

	if (!t->launches_on && t->off_at.ns <= t->counted_to.ns)
		return 1; /* nothing came since */
	if (seen_ns < SEEN_MIN_NS)
		return t->governor.weight; /* too short to speak for more than was meant */
	weight = (double)(to.ns - t->counted_to.ns) / (double)seen_ns;
	t->counted_to = t->on_since = to;
	return MAX(weight, 1.0);
}

/* The governor looks at whole periods; while everything is probed, at every second. */
static void govern(struct tracer *t, mono_time now)
{
	uint64_t launches, others;

	if (t->governor.weight > 1 && now.ns - t->period_start.ns < GOVERNOR_PERIOD_NS)
		return;
	totals_busiest(t->totals, &launches, &others);
	governor_period(&t->governor, launches, others,
		(double)(now.ns - t->period_start.ns) / (double)NS_PER_S);
	t->period_start = now;
}

static int read_totals(struct tracer *t)
{
	mono_time now = mono_now();
	int r;

	totals_weigh(t->totals, launch_weight(t, now));
	r = totals_read(t->totals);
	if (r == 0)
		govern(t, now);
	return r;
}

static int every_second(struct tracer *t, wall_time now)
{
	struct accounting books;
	int64_t bucket = now.ns / (int64_t)NODEDB_BUCKET_FINE;
	int r = read_totals(t);

	if (r < 0)
		return r;
	if (bucket != t->bucket) {
		r = flush_bucket(t);
		if (r < 0)
			return r;
		t->bucket = bucket;
	}
	if (clock_map_refresh(&t->clock))
		log_warning("the wall clock was stepped; times before and after do not compare");
	t->has_host = host_read(&t->host, now, &t->host_now) == 0;
	if (t->store && t->has_host && deadband_admits(&t->deadband, &t->host_now))
		store_writer_push_sample(t->store, &t->host_now);
	if (t->store) {
		fill_books(t, &books);
		store_writer_push_accounting(t->store, &books);
	}
	waits_expire(t->waits, (wall_time){now.ns - WAIT_SECONDS * (int64_t)NS_PER_S});
	set_limits(t);
	roster_tick(t->roster);
	return t->settings.cuda_lib ? 0 : scan_processes(t);
}

/* ---- GPUs ---- */

static void take_gpu_sample(void *arg, const struct gpu_sample *s)
{
	struct tracer *t = arg;

	if (t->settings.gpu_sink)
		t->settings.gpu_sink(t->settings.event_arg, s);
	if (t->store && !store_writer_push_gpu_sample(t->store, s))
		log_warning("the store has no room: readings of the GPUs are lost");
}

static void poll_gpu(struct tracer *t)
{
	const struct gpu_identity *g;

	gpu_sampler_poll(t->gpu, take_gpu_sample, t);
	g = t->store && !t->gpu_named ? gpu_sampler_identity(t->gpu) : NULL;
	if (g)
		t->gpu_named = store_writer_push_gpu(t->store, g->model, g->driver, g->cuda);
}

enum gpu_state tracer_gpu_state(const struct tracer *t, char *text, size_t size)
{
	return gpu_sampler_state(t->gpu, text, size);
}

static void view_gpu(const struct tracer *t, struct tracer_view *v)
{
	v->gpu_state = tracer_gpu_state(t, v->gpu_text, sizeof(v->gpu_text));
	v->gpus = gpu_sampler_rows(t->gpu, &v->gpu_count);
	v->has_driver = access("/proc/driver/nvidia/version", F_OK) == 0;
}

/* ---- annotations ---- */

static bool put_annotation(void *arg, const struct annotation *a, uint64_t ticket)
{
	struct tracer *t = arg;

	return t->store && store_writer_push_annotation(t->store, a, ticket);
}

static void serve_annotations(struct tracer *t)
{
	struct store_ack acks[ACKS_AT_ONCE];
	size_t n;

	if (!t->annotate)
		return;
	while ((n = store_writer_take_acks(t->store, acks, ARRAY_SIZE(acks))))
		for (size_t i = 0; i < n; i++)
			annotate_server_ack(t->annotate, acks[i].ticket, acks[i].id);
	annotate_server_poll(t->annotate);
}

static int open_annotations(struct tracer *t, struct errinfo *reterr)
{
	const struct tracer_settings *s = &t->settings;
	int fd, r;

	if (!s->annotate_path || !t->store)
		return 0;
	r = annotate_place_bind(s->annotate_path,
		s->annotate_gid < 0 ? ANNOTATE_NO_GROUP : (gid_t)s->annotate_gid, &fd, reterr);
	if (r < 0)
		return r;
	r = annotate_server_new(fd, "", put_annotation, t, &t->annotate);
	if (r < 0) {
		close(fd);
		unlink(s->annotate_path);
	}
	return r;
}

/* What was taken is stored; its writers are told so if that takes no longer than half a second. */
static void close_annotations(struct tracer *t)
{
	const struct timespec nap = {.tv_nsec = 10 * (long)NS_PER_MS};

	if (!t->annotate)
		return;
	unlink(t->settings.annotate_path);
	annotate_server_refuse(t->annotate);
	for (int i = 0; t->store && i < ACK_TRIES && annotate_server_waiting(t->annotate); i++) {
		serve_annotations(t);
		nanosleep(&nap, NULL);
	}
	if (t->store)
		serve_annotations(t);
	annotate_server_free(TAKE(t->annotate));
}

int tracer_step(struct tracer *t, int timeout_ms, struct errinfo *reterr)
{
	wall_time now;
	int r, fresh = 0;

	reader_wait(t->reader, timeout_ms);
	reader_consume(t->reader);
	serve_annotations(t);
	renew_rows(t);
	if (t->admit_due) {
		t->admit_due = false;
		r = probe_admit(t->probe);
		if (r < 0)
			return errinfo_set(
				reterr, r, "threads cannot be followed: %s", strerror(-r));
	}
	poll_gpu(t);
	now = wall_now();
	if (now.ns / (int64_t)NS_PER_S != t->second) {
		t->second = now.ns / (int64_t)NS_PER_S;
		r = every_second(t, now);
		if (r < 0)
			return errinfo_set(reterr, r, "tracing cannot go on: %s", strerror(-r));
		fresh = 1;
	}
	r = switch_launches(
		t, now); /* after the reading, which then never sees a stay just begun */
	if (r < 0)
		return errinfo_set(reterr, r, "launch probes cannot be switched: %s", strerror(-r));
	return fresh;
}

/* ---- view ---- */

static struct tracer_op *op_row(
	struct tracer *t, size_t *count, unsigned source, unsigned op, bool nested)
{
	for (size_t i = 0; i < *count; i++)
		if (t->ops[i].source == source && t->ops[i].op == op && t->ops[i].nested == nested)
			return &t->ops[i];
	if (*count == OPS_MAX)
		return NULL;
	t->ops[*count] =
		(struct tracer_op){.source = (uint8_t)source, .op = (uint16_t)op, .nested = nested};
	return &t->ops[(*count)++];
}

static int compare_ops(const void *a, const void *b)
{
	const struct tracer_op *x = a, *y = b;

	if (x->nested != y->nested)
		return x->nested - y->nested;
	return x->sketch.sum < y->sketch.sum ? 1 : x->sketch.sum > y->sketch.sum ? -1 : 0;
}

static size_t fill_ops(struct tracer *t)
{
	const struct total *v;
	size_t cursor = 0, count = 0;
	struct tracer_op *row;

	while ((v = totals_next(t->totals, &cursor))) {
		row = op_row(t, &count, v->key.source, v->key.op, v->key.flags & WIRE_NESTED);
		if (row) {
			sketch_merge(&row->sketch, &v->all);
			row->count = row->sketch.count;
		}
	}
	for (unsigned op = 0; op < WIRE_OP_MAX; op++) { /* events that only ever are records */
		if (!t->op_counts[SOURCE_HOST][op] || op == HOST_SCHED_SWITCH)
			continue;
		row = op_row(t, &count, SOURCE_HOST, op, false);
		if (row)
			row->count = t->op_counts[SOURCE_HOST][op];
	}
	qsort(t->ops, count, sizeof(t->ops[0]), compare_ops);
	return count;
}

void tracer_view(struct tracer *t, struct tracer_view *ret)
{
	const char *first_library;
	size_t cursor = 0;
	uint64_t pid;

	*ret = (struct tracer_view){
		.started = t->started,
		.now = wall_now(),
		.method = probe_method_name(probe_method(t->probe)),
		.processes = t->targets.used,
		.libraries = coverage_probed(t->coverage, &first_library),
		.runtime_probes = coverage_probes(t->coverage, TARGET_CUDART) +
				  coverage_probes(t->coverage, TARGET_EXECUTABLE),
		.driver_probes = coverage_probes(t->coverage, TARGET_CUDA),
		.host = t->host_now,
		.has_host = t->has_host,
		.clock_steps = t->clock.steps,
		.overhead = governor_mean(&t->governor),
		.overhead_budget = t->governor.budget,
		.hit_ns = t->governor.hit_ns,
		.launch_weight = t->governor.weight,
	};
	if (idmap_next(&t->targets, &cursor, &pid)) {
		struct discover_process p;

		ret->first_pid = (uint32_t)pid;
		if (discover_process_stat("", ret->first_pid, &p) == 0)
			memcpy(ret->first_comm, p.comm, sizeof(ret->first_comm));
	}
	snprintf(ret->first_library, sizeof(ret->first_library), "%s", first_library);
	ret->gaps = roster_gaps(t->roster, &ret->gap_count, &ret->gaps_more);
	view_gpu(t, ret);
	fill_books(t, &ret->books);
	ret->ops = t->ops;
	ret->op_count = fill_ops(t);
	if (t->store) {
		struct errinfo e = {0};

		t->db_bytes = store_writer_size(t->store);
		if (store_writer_error(t->store, &e))
			memcpy(t->store_error, e.text, sizeof(t->store_error) - 1);
	}
	ret->db_bytes = t->db_bytes;
	memcpy(ret->store_error, t->store_error, sizeof(ret->store_error));
}

/* ---- start and stop ---- */

/* Called by the writer once everything that was pushed is stored or has failed. */
static void final_books(const struct store_writer *w, struct accounting *ret, void *arg)
{
	struct tracer *t = arg;

	fill_books(t, &t->final);
	*ret = t->final;
}

static int store_close(struct tracer *t, struct errinfo *reterr)
{
	int r = 0;

	renew_rows(t);
	roster_finish(t->roster);
	roster_store(t->roster, NULL);
	if (t->store)
		r = store_writer_stop(t->store, final_books, t, wall_now(), reterr);
	else
		fill_books(t, &t->final);
	t->store = NULL;
	t->stopped = true;
	return r;
}

void tracer_free(struct tracer *t)
{
	close_annotations(t);
	if (t->store)
		store_close(t, NULL);
	if (t->coverage)
		coverage_free(t->coverage);
	if (t->reader)
		reader_free(t->reader);
	if (t->totals)
		totals_free(t->totals);
	if (t->waits)
		waits_free(t->waits);
	if (t->scanner)
		discover_scanner_free(t->scanner);
	if (t->gpu)
		gpu_sampler_free(t->gpu);
	probe_close(t->probe);
	if (t->roster)
		roster_free(t->roster);
	idmap_done(&t->targets);
	free(t);
}

static int open_probe(struct tracer *t, struct errinfo *reterr)
{
	const struct tracer_settings *s = &t->settings;
	struct probe_settings ps = {
		.filter = s->filter,
		.uid = s->uid,
		.record_all = s->record_all,
		.ring_bytes = s->ring_bytes,
		.no_block = s->no_block,
		.no_net = s->no_net,
		.sampling_rate = s->sampling_rate,
		.no_memory = s->no_memory,
		.old_kernel = s->old_kernel,
	};

	int r;

	if (s->method != TRACER_METHOD_AUTO) {
		ps.method = (enum probe_method)s->method;
		return probe_open(&ps, &t->probe, reterr);
	}
	r = feature_attach_method(&ps.method, reterr);
	if (r < 0)
		return r;
	/* A kernel may know a method and yet refuse our program for it (kfuncs change). */
	for (;;) {
		r = probe_open(&ps, &t->probe, reterr);
		if (r >= 0 || r == -EPERM || ps.method == PROBE_PERF)
			return r;
		ps.method++;
	}
}

/* What a hit costs is measured, unless that fails: then a guess from virtual machines is used. */
static void start_governor(struct tracer *t)
{
	double hit_ns = HIT_NS_GUESS;
	int r;

	probe_enable_calls(t->probe);
	r = calibrate_hit_ns(t->probe, &hit_ns);
	probe_disable(t->probe);
	if (r < 0)
		log_warning("the cost of a probe could not be measured (%s): %d ns are assumed",
			strerror(-r), HIT_NS_GUESS);
	governor_init(&t->governor, t->settings.overhead_budget, hit_ns,
		probe_method(t->probe) != PROBE_PERF);
	t->launches_on = true;
}

static int open_store(struct tracer *t, struct errinfo *reterr)
{
	const struct tracer_settings *s = &t->settings;
	struct session session = {.started = t->started};
	struct store_writer_config config = {.upkeep = {.max_bytes = s->max_db_bytes,
						     .rollover_bytes = s->rollover_bytes,
						     .rollover_keep = s->rollover_keep,
						     .session = &session}};
	struct nodedb *db;
	int r;

	if (!s->db_path)
		return 0;
	snprintf(session.node, sizeof(session.node), "%s", s->node);
	snprintf(session.ingero_version, sizeof(session.ingero_version), "%s", INGERO_VERSION);
	snprintf(session.flags, sizeof(session.flags), "%s", s->flags_text ? s->flags_text : "");
	for (size_t i = 0, n = 0; i < s->pid_count && n < sizeof(session.pid_filter) - 12; i++)
		n += (size_t)snprintf(session.pid_filter + n, sizeof(session.pid_filter) - n,
			"%s%u", i ? "," : "", s->pids[i]);
	host_describe("", &session);
	r = nodedb_open(s->db_path, s->node, &db, reterr);
	if (r < 0)
		return r;
	r = nodedb_session_begin(db, &session, reterr);
	if (r == 0)
		r = store_writer_start(db, session.id, &config, &t->store, reterr);
	if (r < 0)
		nodedb_close(db, NULL);
	return r;
}

static int open_stages(struct tracer *t, struct errinfo *reterr)
{
	int r;

	r = roster_new("", t->settings.coverage_sink, t->settings.event_arg, &t->roster);
	if (r < 0)
		return r;
	r = open_probe(t, reterr);
	if (r < 0)
		return r;
	start_governor(t);
	r = coverage_new(t->probe, &t->coverage);
	if (r < 0)
		return r;
	r = reader_new(t->probe, &t->clock, take_event, t, &t->reader);
	if (r < 0)
		return r;
	r = totals_new(t->probe, &t->totals);
	if (r < 0)
		return r;
	r = waits_new(store_collective, t, &t->waits);
	if (r < 0)
		return r;
	r = discover_scanner_new("", &t->scanner);
	if (r < 0)
		return r;
	if (t->settings.cuda_lib) {
		r = cover_named(t, t->settings.cuda_lib, reterr);
		if (r < 0)
			return r;
	}
	r = open_store(t, reterr);
	if (r < 0)
		return r;
	roster_store(t->roster, t->store);
	return open_annotations(t, reterr);
}

static int cover_all(struct tracer *t, struct errinfo *reterr)
{
	int r = 0;

	if (t->settings.filter == FILTER_PIDS)
		r = enter_pids(t, reterr);
	if (r == 0 && !t->settings.cuda_lib)
		r = scan_processes(t);
	if (r == 0 && !t->settings.cuda_lib && t->settings.filter != FILTER_PIDS)
		r = cover_disk(t);
	return r < 0 ? r : probe_admit(t->probe);
}

int tracer_start(const struct tracer_settings *s, struct tracer **ret, struct errinfo *reterr)
{
	struct tracer *t;
	int r = check_pids(s, reterr);

	if (r < 0)
		return r;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->settings = *s;
	t->targets = IDMAP_INIT(TARGETS_MAX);
	t->deadband = (struct deadband){.points = s->deadband_points, .beat_ns = s->heartbeat_ns};
	t->started = wall_now();
	t->bucket = t->started.ns / (int64_t)NODEDB_BUCKET_FINE;
	t->second = t->started.ns / (int64_t)NS_PER_S;
	clock_map_init(&t->clock);
	host_reader_init(&t->host, "");
	t->has_host = host_read(&t->host, t->started, &t->host_now) == 0;
	r = gpu_sampler_start(&t->gpu, NULL);
	if (r == 0)
		r = open_stages(t, reterr);
	if (r == 0)
		r = cover_all(t, reterr);
	if (r < 0) {
		tracer_free(t);
		return r;
	}
	probe_enable(t->probe);
	probe_launches_enable(t->probe, true);
	t->period_start = t->on_since = t->counted_to = mono_now();
	*ret = t;
	return 0;
}

int tracer_stop(struct tracer *t, struct errinfo *reterr)
{
	const struct timespec settle = {.tv_nsec = 20 * (long)NS_PER_MS};
	int r, q;

	probe_disable(t->probe);
	/* Perf probes are slow to remove: that is left to tracer_free(), after the store is closed;
	 * a moment is enough for those that were past the switch when it was turned. */
	if (probe_method(t->probe) == PROBE_PERF)
		nanosleep(&settle, NULL);
	else
		coverage_detach(t->coverage);
	probe_sweep(t->probe, LOSS_AT_STOP, false);
	while (reader_consume(t->reader) > 0)
		continue;
	waits_expire(t->waits, (wall_time){INT64_MAX});
	poll_gpu(t);
	gpu_sampler_stop(t->gpu);
	r = read_totals(t);
	if (r == 0)
		r = flush_rest(t);
	close_annotations(t);
	q = store_close(t, reterr);
	return r < 0 ? r : q;
}
