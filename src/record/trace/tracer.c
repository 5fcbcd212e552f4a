/* SPDX-License-Identifier: Apache-2.0 */
/* tracer.c - joins the stages of the agent into one run. See tracer.h for the flow.
 *
 * Order matters at both ends. Start: everything that can fail for the user's reasons (pids, kernel,
 * database) comes before anything is written. Stop: silence the probes, detach, sweep, then read
 * the rings to the end, so that the books can balance. */
#include "record/trace/tracer_private.h"
#include "base/hash.h"
#include "wire/op_kind.h"

#include <malloc.h>
#include <sys/stat.h>
#include <time.h>

#define HIT_NS_GUESS 2000
/* What is larger comes from the kernel and goes back to it when it is freed. Left to itself malloc() learns
 * from the first such block that is freed to keep them: 30 MB that explaining takes for a moment every 5 s. */
#define GIVEN_BACK_BYTES (128 << 10)

/* ---- records ---- */

static void store_collective(void *arg, const struct event *e, const struct collective *c)
{
	struct tracer *t = arg;

	explainer_collective(t->explainer, e, c);
	if (t->metric_state)
		metric_state_collective(t->metric_state, e, c);
	if (t->store && !store_writer_push_collective(t->store, e, c))
		log_warning("the store's queue is full: rows of collectives are lost");
}

static void take_event(void *arg, struct event *e, const struct collective *c)
{
	struct tracer *t = arg;
	struct account *own = &t->own.source[e->source];
	const char *container_id;
	const struct stack *stack;
	bool is_row;

	if (e->op < WIRE_OP_MAX)
		t->op_counts[e->source][e->op]++;
	if (op_kind_is_governed(e->source, e->op))
		e->weight *= tracer_launch_weight(t, e->pid);
	if (op_kind_is_gpu_wait(e->source, e->op) && !(e->flags & WIRE_NESTED))
		cost_trial_mark(&t->trial, e->pid, (wall_time){e->start.ns + (int64_t)e->dur_ns});
	if (e->flags & WIRE_UNCOUNTED && totals_add(t->totals, e) < 0)
		log_warning("out of memory for aggregates: counts are too low");
	if (e->source == SOURCE_HOST && e->op != HOST_SCHED_SWITCH)
		tracer_follow(t, e);
	is_row = tracer_take_stack(t, e, &stack);
	container_id = roster_place(t->roster, e);
	neighbours_see(t->neighbours, e, t->processes, t->store);
	disks_name(&t->disks, "", e);
	if (c && collective_is_one(e) && !(e->flags & WIRE_NESTED))
		waits_collective(t->waits, e, c);
	else if (e->source == SOURCE_CUDA || e->source == SOURCE_DRIVER)
		waits_sync(t->waits, e);
	if (t->settings.event_sink)
		t->settings.event_sink(t->settings.event_arg, e, c, container_id, stack);
	explainer_event(t->explainer, e);
	if (!t->store || !is_row)
		own->aggregated++; /* the kernel's aggregates hold it already */
	else if (!store_writer_push(t->store, e))
		own->lost[LOSS_QUEUE_FULL]++;
}

static void take_ledger(void *arg, const struct ledger_row *row)
{
	struct tracer *t = arg;

	t->op_counts[SOURCE_HOST][HOST_LEDGER]++;
	tracer_ledger(t, row);
}

int tracer_step(struct tracer *t, int timeout_ms, struct errinfo *reterr)
{
	wall_time now;
	int r, fresh = 0;

	reader_wait(t->reader, tracer_maps_fd(t), tracer_wait_ms(t, timeout_ms));
	r = tracer_poll_maps(t); /* first: a program that begins waits for nobody */
	if (r < 0)
		return errinfo_set(reterr, r, "cannot find processes: %s", strerror(-r));
	tracer_settle(t, false);
	reader_consume(t->reader);
	tracer_poll_stacks(t);
	tracer_serve_annotations(t);
	tracer_renew_rows(t);
	if (t->admit_due) {
		t->admit_due = false;
		r = probe_admit(t->probe);
		if (r < 0)
			return errinfo_set(reterr, r, "cannot trace threads: %s", strerror(-r));
	}
	tracer_poll_gpu(t);
	tracer_poll_explainer(t);
	now = wall_now();
	if (now.ns / (int64_t)NS_PER_S != t->second) {
		t->second = now.ns / (int64_t)NS_PER_S;
		r = tracer_second(t, now);
		if (r < 0)
			return errinfo_set(reterr, r, "cannot continue tracing: %s", strerror(-r));
		fresh = 1;
	}
	r = tracer_turn_launches(
		t, now); /* after the reading, which then never sees a stay just begun */
	if (r < 0)
		return errinfo_set(reterr, r, "cannot switch the launch probes: %s", strerror(-r));
	return fresh;
}

#define DESERTED_S                                                                                 \
	3 /* records of a fork may come after those of the parent's end: entries wait likewise */

bool tracer_is_over(const struct tracer *t)
{
	return t->settings.filter == FILTER_PIDS && !t->settings.command &&
	       t->deserted_s >= DESERTED_S;
}

/* ---- start and stop ---- */

/* Called by the writer once everything that was pushed is stored or has failed. */
static void final_books(const struct store_writer *w, struct accounting *ret, void *arg)
{
	struct tracer *t = arg;

	tracer_books(t, &t->final);
	t->pruned_rows = store_writer_pruned(w);
	*ret = t->final;
}

static int store_close(struct tracer *t, struct errinfo *reterr)
{
	struct stat st;
	int r = 0;

	tracer_renew_rows(t);
	roster_finish(t->roster);
	roster_store(t->roster, NULL);
	if (t->store)
		r = store_writer_stop(t->store, final_books, t, wall_now(), reterr);
	else
		tracer_books(t, &t->final);
	if (t->store && stat(t->settings.db_path, &st) == 0)
		t->db_bytes = (uint64_t)st.st_size;
	t->store = NULL;
	t->stopped = true;
	return r;
}

void tracer_free(struct tracer *t)
{
	tracer_close_explainer(t);
	tracer_close_annotations(t);
	tracer_close_stacks(t);
	if (t->store)
		store_close(t, NULL);
	tracer_close_names(t);
	if (t->samples)
		sample_clocks_close(t->samples);
	if (t->coverage)
		coverage_free(t->coverage);
	if (t->reader)
		reader_free(t->reader);
	if (t->totals)
		totals_free(t->totals);
	if (t->launches)
		launch_watch_free(t->launches);
	if (t->waits)
		waits_free(t->waits);
	if (t->scanner)
		discover_scanner_free(t->scanner);
	if (t->maps)
		map_watch_close(t->maps);
	if (t->gpu)
		gpu_sampler_free(t->gpu);
	probe_close(t->probe);
	tracer_close_processes(t);
	if (t->neighbours)
		neighbours_free(t->neighbours);
	if (t->metric_state)
		metric_state_free(t->metric_state);
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
		.sample_hz = s->sample_hz,
		.stacks = !s->no_stacks,
		.python = s->py_walker != TRACER_PY_USERSPACE,
		.old_kernel = s->old_kernel,
		.refuse_program = s->refuse_program,
		.user_targets = s->user_targets,
	};

	int r;

	if (access("/proc/self", F_OK) < 0)
		return errinfo_set(reterr, -EOPNOTSUPP,
			"/proc is not mounted here, so no process can be found: mount it (`mount -t proc proc /proc`)");
	if (!feature_host_pids(""))
		log_warning(
			"process ids here differ from those of the machine: " FEATURE_HOST_PIDS_ADVICE);
	if (s->method != TRACER_METHOD_AUTO) {
		ps.method = (enum probe_method)s->method;
		ps.method_asked = true;
		r = feature_method(ps.method, reterr);
		return r < 0 ? r : probe_open(&ps, &t->probe, reterr);
	}
	return feature_open(&ps, &t->probe, reterr);
}

/* Without samples it is not known what runs between calls; the rest is as good as with them. */
static void open_samples(struct tracer *t)
{
	struct obstacle_view v;
	char why[OBSTACLE_MAX];
	struct errinfo e = {0};
	int r;

	if (probe_program(t->probe, "cpu_sample") < 0)
		return; /* not wanted, or not available, which is said */
	r = sample_clocks_open(
		probe_program(t->probe, "cpu_sample"), t->settings.sample_hz, &t->samples, &e);
	if (r >= 0)
		return;
	obstacle_look("", &v);
	probe_miss(t->probe, PART_SAMPLES,
		(r == -EPERM || r == -EACCES) && obstacle_to_sample(&v, why) ? why : e.text);
}

/* What a hit costs is measured, unless that fails: then a guess from virtual machines is used. */
static int start_governor(struct tracer *t)
{
	double hit_ns = HIT_NS_GUESS;
	int r;

	probe_enable_calls(t->probe);
	r = calibrate_hit_ns(t->probe, &hit_ns);
	probe_disable(t->probe);
	if (r < 0)
		log_warning("cannot measure the cost of a probe (%s): assuming %d ns", strerror(-r),
			HIT_NS_GUESS);
	governor_init(&t->governor, t->settings.overhead_budget, hit_ns,
		probe_method(t->probe) != PROBE_PERF, mono_now().ns, mono_now());
	return launch_watch_new(probe_uses(t->probe), hit_ns, &t->launches);
}

/* As sessions.missing has it. */
static void describe_missing(const struct parts_missing *m, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < m->count && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s%s: %s", n ? "\n" : "",
			probe_parts[m->rows[i].part].name, m->rows[i].why);
}

static int open_store(struct tracer *t, struct errinfo *reterr)
{
	const struct tracer_settings *s = &t->settings;
	struct session session = {.started = t->started};
	struct store_writer_config config = {.retention = {.max_bytes = s->max_db_bytes,
						     .rollover_bytes = s->rollover_bytes,
						     .rollover_keep = s->rollover_keep,
						     .session = &session},
		.renews = true,
		.begin = tracer_confine_store,
		.begin_arg = &t->settings};
	struct nodedb *db;
	int r;

	if (!s->db_path)
		return 0;
	snprintf(session.node, sizeof(session.node), "%s", s->node);
	snprintf(session.ingero_version, sizeof(session.ingero_version), "%s", INGERO_VERSION);
	snprintf(session.flags, sizeof(session.flags), "%s", s->flags_text ? s->flags_text : "");
	describe_missing(probe_missing(t->probe), session.missing, sizeof(session.missing));
	for (size_t i = 0, n = 0; i < s->pid_count && n < sizeof(session.pid_filter) - 12; i++)
		n += (size_t)snprintf(session.pid_filter + n, sizeof(session.pid_filter) - n,
			"%s%u", i ? "," : "", s->pids[i]);
	host_describe("", &session);
	r = nodedb_open(s->db_path, s->node, &db, reterr);
	if (r < 0)
		return r;
	r = nodedb_session_begin(db, &session, reterr);
	r = r ?: store_writer_start(db, session.id, &config, &t->store, reterr);
	if (r < 0)
		nodedb_close(db, NULL);
	return r;
}

static double weight_of(void *watch, uint32_t pid, uint64_t launches)
{
	return launch_watch_apply(watch, pid, launches);
}

/* From the kernel's rings and maps to structs. */
static int open_capture(struct tracer *t)
{
	int r = coverage_new(t->probe, &t->coverage);

	r = r ?: reader_new(t->probe, &t->clock, take_event, take_ledger, t, &t->reader);
	r = r ?: tracer_open_names(t);
	if (r < 0)
		return r;
	reader_take_names(t->reader, tracer_take_name);
	r = tracer_open_stacks(t);
	r = r ?: totals_new(t->probe, &t->totals);
	if (r == 0)
		totals_weigh(t->totals, weight_of, t->launches);
	return r ?: waits_new(store_collective, t, &t->waits);
}

/* Libraries that were named: they are probed whoever maps them. */
static int cover_named(struct tracer *t, struct errinfo *reterr)
{
	int r = 0;

	if (t->settings.cuda_lib)
		r = tracer_cover_named(t, t->settings.cuda_lib, reterr);
	if (r >= 0 && t->settings.nccl_lib)
		r = tracer_cover_nccl(t, reterr);
	for (size_t i = 0; r >= 0 && i < t->settings.library_count; i++)
		r = tracer_cover_named(t, t->settings.libraries[i], reterr);
	return r;
}

static int open_stages(struct tracer *t, struct errinfo *reterr)
{
	int r;

	if (t->settings.metrics) {
		t->metric_state = metric_state_new();
		if (!t->metric_state)
			return -ENOMEM;
	}
	r = tracer_open_processes(t);
	r = r ?: neighbours_new("", &t->neighbours);
	r = r ?: open_probe(t, reterr);
	if (r < 0)
		return r;
	r = start_governor(t);
	if (r < 0)
		return r;
	open_samples(t);
	r = open_capture(t);
	r = r ?: discover_scanner_new("", &t->scanner);
	if (r < 0)
		return r;
	tracer_open_maps(t); /* before the first scan, so that nothing falls between the two */
	r = cover_named(t, reterr);
	if (r >= 0)
		r = open_store(t, reterr);
	if (r < 0)
		return r;
	roster_store(t->roster, t->store);
	r = tracer_open_explainer(t);
	return r < 0 ? r : tracer_open_annotations(t, reterr);
}

static int cover_all(struct tracer *t, struct errinfo *reterr)
{
	int r = 0;

	if (t->settings.filter == FILTER_PIDS)
		r = tracer_enter_pids(t, reterr);
	if (r == 0 && !t->settings.cuda_lib)
		r = tracer_scan(t);
	if (r == 0 && !t->settings.cuda_lib &&
		(t->settings.filter != FILTER_PIDS || t->settings.command))
		r = tracer_cover_disk(t);
	return r < 0 ? r : probe_admit(t->probe);
}

int tracer_start(const struct tracer_settings *s, struct tracer **ret, struct errinfo *reterr)
{
	struct stat own;
	struct tracer *t;
	int r = tracer_check_pids(s, reterr);

	r = r ?: hash_name_key(); /* a traced program chooses its threads' and functions' names */
	if (r < 0)
		return r;
	mallopt(M_MMAP_THRESHOLD, GIVEN_BACK_BYTES);
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->settings = *s;
	if (stat("/proc/self/exe", &own) == 0) {
		t->own_dev = own.st_dev;
		t->own_inode = own.st_ino;
	}
	t->deadband = (struct deadband){.points = s->deadband_points, .beat_ns = s->heartbeat_ns};
	t->started = wall_now();
	t->began = mono_now();
	t->bucket = t->started.ns / (int64_t)NODEDB_BUCKET_FINE;
	t->second = t->started.ns / (int64_t)NS_PER_S;
	clock_map_init(&t->clock);
	host_reader_init(&t->host, "");
	t->has_host = host_read(&t->host, t->started, &t->host_now) == 0;
	r = gpu_sampler_start(&t->gpu, NULL, s->gpu_period_ns);
	r = r ?: open_stages(t, reterr);
	if (r == 0) {
		/* before a file of a stranger is read */
		tracer_confine_main(&t->settings, probe_method(t->probe));
		r = cover_all(t, reterr);
	}
	if (r < 0) {
		tracer_free(t);
		return r;
	}
	coverage_beside(t->coverage);
	probe_enable(t->probe);
	probe_launches_enable(t->probe, true);
	t->enabled = t->scanned = wall_now();
	t->govern_at = mono_now();
	t->launch_phase = LAUNCH_COUNTED;
	*ret = t;
	return 0;
}

int tracer_stop(struct tracer *t, bool at_once, struct errinfo *reterr)
{
	const struct timespec settle = {.tv_nsec = 20 * (long)NS_PER_MS};
	int r, q;

	tracer_settle(t, true);
	probe_disable(t->probe);
	launch_watch_end(t->launches, mono_now());
	/* What is slow to remove is left to tracer_free(), after the store is closed; a moment is
	 * enough for those that were past the switch when it was turned. */
	if (coverage_detach_is_slow(t->coverage))
		nanosleep(&settle, NULL);
	else
		coverage_detach(t->coverage);
	if (t->samples)
		sample_clocks_close(TAKE(t->samples));
	probe_sweep(t->probe, LOSS_AT_STOP, false);
	while (reader_consume(t->reader) > 0)
		tracer_renew_rows(t);
	tracer_read_kernels(t); /* asks for symbols, which come with the stacks' */
	tracer_finish_stacks(t, at_once);
	tracer_flush_kernels(t);
	if (tracer_names_lost(t))
		log_warning("%llu names of kernels or ranges were lost: there was no room",
			(unsigned long long)tracer_names_lost(t));
	waits_expire(t->waits, (wall_time){INT64_MAX}, (wall_time){INT64_MAX});
	tracer_poll_gpu(t);
	gpu_sampler_stop(t->gpu);
	tracer_cpu_losses(t);
	r = tracer_read_totals(t);
	tracer_last_overhead(t);
	r = r ?: tracer_flush_rest(t);
	tracer_close_explainer(t);
	tracer_close_annotations(t);
	q = store_close(t, reterr);
	return r < 0 ? r : q;
}
