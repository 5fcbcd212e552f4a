/* SPDX-License-Identifier: Apache-2.0 */
/* remediate.c - see remediate.h. */
#include "notify/remediate/remediate.h"

#include "base/spawn.h"

#define REMEDIATE_PAUSE_NS (30 * (int64_t)NS_PER_S)
#define REMEDIATE_GPUS_MAX 64

#define STRAGGLE_PROCESSES 1024

#define ALPHA        0.2
#define WARMUP       3
#define DROP_MIN     0.3
#define SWITCHES_MIN 5
#define IDLE_MAX     30

void straggle_init(struct straggle *s)
{
	*s = (struct straggle){.processes = IDMAP_INIT(STRAGGLE_PROCESSES)};
}

void straggle_done(struct straggle *s)
{
	size_t cursor = 0;
	void *p;

	while ((p = idmap_next(&s->processes, &cursor, NULL)))
		free(p);
	idmap_done(&s->processes);
}

void straggle_launches(struct straggle *s, uint32_t pid, const char *comm, uint64_t count)
{
	struct straggle_process *p = idmap_get(&s->processes, pid);

	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p || idmap_put(&s->processes, pid, p) < 0) {
			free(p);
			return;
		}
		p->pid = pid;
		strncpy(p->comm, comm, sizeof(p->comm) - 1);
	}
	p->launches = p->told ? p->launches + count : count;
	p->told = true;
}

static void add_preemptor(struct straggle_process *p, uint32_t pid)
{
	if (!pid || pid == p->pid || p->preemptor_count == STRAGGLE_PREEMPTORS)
		return;
	for (size_t i = 0; i < p->preemptor_count; i++)
		if (p->preemptors[i] == pid)
			return;
	p->preemptors[p->preemptor_count++] = pid;
}

void straggle_take(struct straggle *s, const struct event *e)
{
	struct straggle_process *p = idmap_get(&s->processes, e->pid);

	if (!p || e->source != SOURCE_HOST)
		return;
	if (e->op == HOST_PROCESS_EXIT) {
		free(idmap_remove(&s->processes, e->pid));
	} else if (e->op == HOST_SCHED_SWITCH && e->wait_ns) {
		p->switches++;
		p->place = e->place;
		add_preemptor(p, e->peer_pid);
	}
}

/* Whether @p straggles in this second; *ret_drop is how much less it launched, 0 to 1. */
static bool judge(struct straggle_process *p, uint64_t launched, double *ret_drop)
{
	bool is_short_of_cpu = p->switches >= SWITCHES_MIN;

	*ret_drop = p->ordinary > 0 ? 1 - (double)launched / p->ordinary : 0;
	*ret_drop = MAX(*ret_drop, 0.0);
	if (p->is_straggling)
		return is_short_of_cpu;
	return p->seconds >= WARMUP && is_short_of_cpu && *ret_drop >= DROP_MIN;
}

static void learn(struct straggle_process *p, uint64_t launched)
{
	if (!launched && !p->seconds)
		return; /* it has not begun */
	p->ordinary = p->seconds ? ALPHA * (double)launched + (1 - ALPHA) * p->ordinary
				 : (double)launched;
	p->seconds++;
}

static void second_of(struct straggle_process *p, wall_time now,
	void (*fn)(void *arg, const struct straggle_verdict *v), void *arg)
{
	uint64_t launched = p->told && p->launches > p->before ? p->launches - p->before : 0;
	struct straggle_verdict v = {.process = p, .sustained = p->is_straggling};
	double drop;

	p->is_straggling = judge(p, launched, &drop);
	if (p->is_straggling) {
		p->since_ns = v.sustained ? p->since_ns : now.ns;
		v.drop_pct = 100 * drop;
		fn(arg, &v);
	} else {
		learn(p, launched);
	}
	p->idle = launched ? 0 : p->idle + 1;
	p->before = p->launches;
	p->told = false;
	p->switches = 0;
	p->preemptor_count = 0;
}

void straggle_second(struct straggle *s, wall_time now,
	void (*fn)(void *arg, const struct straggle_verdict *v), void *arg)
{
	struct straggle_process *p;
	size_t cursor = 0;

	while ((p = idmap_next(&s->processes, &cursor, NULL)))
		second_of(p, now, fn, arg);
	cursor = 0;
	while ((p = idmap_next(&s->processes, &cursor, NULL)))
		if (p->idle > IDLE_MAX)
			free(idmap_take(&s->processes, &cursor));
}

struct gpu { /* as last heard */
	bool is_known;
	uint64_t total_bytes, throttle;
	uint32_t sm_clock_mhz;
};

struct remediate {
	struct remediate_settings settings;
	struct stream *stream;
	struct balance balance;
	struct straggle straggle;
	struct infer_steps steps;
	struct gpu gpus[REMEDIATE_GPUS_MAX];
};

int remediate_open(
	const struct remediate_settings *s, struct remediate **ret, struct errinfo *reterr)
{
	_cleanup_free_ struct remediate *r = calloc(1, sizeof(*r));
	int res;

	if (!r)
		return -ENOMEM;
	r->settings = *s;
	res = stream_open(s->path, s->group, &r->stream, reterr);
	if (res < 0)
		return res;
	balance_init(&r->balance, s->allocs_max);
	straggle_init(&r->straggle);
	infer_init(&r->steps, &s->steps);
	*ret = TAKE(r);
	return 0;
}

void remediate_close(struct remediate *r)
{
	if (spawn_server_remove() != -ENOTCONN)
		stream_leave_path(r->stream);
	stream_close(r->stream);
	balance_done(&r->balance);
	straggle_done(&r->straggle);
	infer_done(&r->steps);
	free(r);
}

/* ---- what is told ---- */

static int32_t rank_of(const struct placement *p)
{
	return p->known & PLACEMENT_RANK ? p->rank : STREAM_NOT_A_RANK;
}

static uint32_t world_of(const struct placement *p)
{
	return p->known & PLACEMENT_WORLD_SIZE ? (uint32_t)p->world_size : 0;
}

static const struct gpu *gpu_of(const struct remediate *r, int32_t device)
{
	static const struct gpu none;
	size_t i = device > 0 ? (size_t)device : 0;

	return i < REMEDIATE_GPUS_MAX ? &r->gpus[i] : &none;
}

static void tell_straggle(void *arg, const struct straggle_verdict *v)
{
	struct remediate *r = arg;
	const struct straggle_process *p = v->process;
	char id[64];
	struct stream_message m = {.type = STREAM_STRAGGLE,
		.straggle = {.pid = p->pid,
			.throughput_drop_pct = v->drop_pct,
			.sched_switch_count = p->switches,
			.preempting_count = p->preemptor_count,
			.timestamp_ns = (uint64_t)wall_now().ns,
			.sustained = v->sustained,
			.comm = p->comm[0] ? p->comm : NULL,
			.event_id = id,
			.rank = rank_of(&p->place),
			.world_size = world_of(&p->place)}};

	snprintf(id, sizeof(id), "straggle-%u-%lld", p->pid, (long long)p->since_ns);
	memcpy(m.straggle.preempting_pids, p->preemptors, p->preemptor_count * sizeof(uint32_t));
	stream_publish(r->stream, &m);
}

static void put_throttles(const struct gpu *g, struct stream_inference_outlier *o)
{
	for (const struct gpu_throttle *t = gpu_throttles; g->is_known && t->bit; t++)
		if (t->slows && g->throttle & t->bit && o->throttle_count < STREAM_THROTTLES)
			o->throttle_reasons[o->throttle_count++] = t->name;
	o->min_sm_clock_mhz = g->sm_clock_mhz;
}

static void tell_outlier(struct remediate *r, const struct infer_outlier *o, int32_t device)
{
	char bucket[INFER_NAME_MAX], id[64];
	const struct infer_stream *of = o->of;
	struct stream_message m = {.type = STREAM_INFERENCE_OUTLIER,
		.outlier = {.node = {.node_id = r->settings.node,
				    .cluster_id = r->settings.cluster,
				    .time = o->end,
				    .event_id = id,
				    .rank = rank_of(&of->place),
				    .world_size = world_of(&of->place)},
			.of = {.pid = of->pid,
				.bucket = infer_bucket_name(&r->steps, o->bucket, bucket),
				.stream_handle = of->stream},
			.step_duration_ns = o->step_ns,
			.baseline_p95_ns = of->p95_ns,
			.baseline_mean_ns = (uint64_t)of->mean_ns}};

	snprintf(id, sizeof(id), "step-%u-%llx-%lld", of->pid, (unsigned long long)of->stream,
		(long long)o->end.ns);
	put_throttles(gpu_of(r, device), &m.outlier);
	m.outlier.alloc_count = balance_ages(&r->balance, of->pid, o->end,
		m.outlier.kv_cache_top_alloc_ages_ms, r->settings.kv_top);
	stream_publish(r->stream, &m);
	if (r->settings.outlier)
		r->settings.outlier(r->settings.arg, &m);
}

/* ---- what is seen ---- */

void remediate_event(struct remediate *r, const struct event *e)
{
	struct infer_outlier o;

	balance_take(&r->balance, e);
	straggle_take(&r->straggle, e);
	if (r->settings.inference && infer_take(&r->steps, e, &o))
		tell_outlier(r, &o, e->device);
}

void remediate_gpu(struct remediate *r, const struct gpu_sample *s)
{
	struct gpu *g;

	if (s->index < 0 || s->index >= REMEDIATE_GPUS_MAX)
		return;
	g = &r->gpus[s->index];
	*g = (struct gpu){.is_known = s->throttle_reasons != GPU_UNKNOWN,
		.total_bytes = s->mem_total_bytes > 0 ? (uint64_t)s->mem_total_bytes : 0,
		.throttle = (uint64_t)s->throttle_reasons,
		.sm_clock_mhz = s->sm_clock_mhz > 0 ? (uint32_t)s->sm_clock_mhz : 0};
}

void remediate_launches(struct remediate *r, uint32_t pid, const char *comm, uint64_t count)
{
	straggle_launches(&r->straggle, pid, comm, count);
}

void remediate_incident(struct remediate *r, uint32_t pid, wall_time now)
{
	infer_pause(&r->steps, pid, (wall_time){now.ns + REMEDIATE_PAUSE_NS});
}

void remediate_second(struct remediate *r, wall_time now)
{
	const struct balance_process *p;
	size_t cursor = 0;

	straggle_second(&r->straggle, now, tell_straggle, r);
	while ((p = balance_next(&r->balance, &cursor))) {
		uint64_t total = gpu_of(r, p->device)->total_bytes;
		const struct stream_message m = {.type = STREAM_MEMORY,
			.memory = {.pid = p->pid,
				.gpu_id = (uint32_t)MAX(p->device, 0),
				.allocated_bytes = p->bytes,
				.total_vram = total,
				.last_alloc_size = p->last_bytes,
				.utilization_pct =
					total ? 100.0 * (double)p->bytes / (double)total : 0,
				.comm = p->comm[0] ? p->comm : NULL,
				.timestamp_ns = (uint64_t)wall_now().ns}};

		stream_publish(r->stream, &m);
	}
}

void remediate_poll(struct remediate *r)
{
	stream_poll(r->stream);
}

struct stream_stats remediate_stats(const struct remediate *r)
{
	return stream_stats(r->stream);
}

const struct infer_steps *remediate_steps(const struct remediate *r)
{
	return &r->steps;
}
