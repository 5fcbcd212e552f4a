/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.c - what the core said while a made-up job ran, against what was done to it.
 *
 * Right is: a faulty rank is named, or its stage, or that the load moves, and nobody else. Several ranks
 * that are slow together may be told as their stage if they are all of it. */
#include "cluster/simulate/play.h"

#include "base/clock.h"
#include "base/hash.h"

#define FAULTS_MAX 65 /* clocks of nodes, and a GPU */
#define GPUS       8  /* of a node */
#define HEALTH_NS  (10 * NS_PER_S)
#define SM_CLOCK   1.98e9
#define BESIDE_PID 500000
#define SHIFT_NS   (300 * NS_PER_S) /* a job of a healthy cluster, before the next begins */
#define START      ((int64_t)1700000000 * (int64_t)NS_PER_S)

static bool is_faulty(const struct job_spec *j, int32_t rank)
{
	return EXISTS(i, j->faulty_count, (int32_t)j->faulty[i] == rank);
}

/* Of a node that is told of as a whole all ranks must be faulty. */
static bool names_faulty(const struct job_spec *j, const struct fleet_episode *e)
{
	uint32_t all = j->data * j->tensor * j->pipeline, each = j->per_node ? j->per_node : GPUS,
		 node = 0;

	if (!e->ranks)
		return is_faulty(j, e->rank);
	if (sscanf(e->node, "node-%u", &node) != 1)
		return false;
	for (uint32_t i = node * each; i < MIN(all, (node + 1) * each); i++)
		if (!is_faulty(j, (int32_t)i))
			return false;
	return true;
}

static bool is_link(
	const struct job_trace *t, const struct job_spec *j, const struct fleet_episode *e)
{
	if (j->pipeline > 1)
		return e->problem == FLEET_LINK && e->from_rank == (int32_t)t->link_from &&
		       e->to_rank == (int32_t)t->link_to;
	return e->problem == FLEET_COLLECTIVE && e->comm == t->link_comm;
}

/* Whether @e is what @j has done. */
static bool fits(const struct job_trace *t, const struct job_spec *j, const struct fleet_episode *e)
{
	uint32_t each = j->data * j->tensor;

	if (e->pid >= BESIDE_PID)
		return false;
	switch (j->fault) {
	case JOB_NONE: return false;
	case JOB_SLOW:
	case JOB_LATE:
	case JOB_DRIFT: return e->problem == FLEET_STRAGGLER && names_faulty(j, e);
	case JOB_STAGE:
		return (e->problem == FLEET_STAGE && e->stage == j->stage) ||
		       (each == 1 && e->problem == FLEET_STRAGGLER && e->rank == j->stage);
	case JOB_MOVING: return e->problem == FLEET_UNEVEN;
	case JOB_HANG: return e->problem == FLEET_HANG && is_faulty(j, e->rank);
	case JOB_LINK: return is_link(t, j, e);
	case JOB_EXPERT:
	case JOB_GPU:
		return (e->problem == FLEET_STRAGGLER || e->problem == FLEET_NODE) &&
		       names_faulty(j, e);
	}
	return false;
}

static void judge(const struct job_trace *t, const struct job_spec *j, struct fleet *f,
	int64_t now_ns, struct verdict *v)
{
	struct fleet_notice n;

	while (fleet_notice(f, &n)) {
		if (n.kind != FLEET_NOTICE_BEGAN)
			continue;
		if (fits(t, j, &n.episode)) {
			v->right = true;
			if (v->named_ns < 0)
				v->named_ns = now_ns - START;
			if (!v->said[0])
				snprintf(v->said, sizeof(v->said), "%.500s", n.episode.text);
			continue;
		}
		v->false_alarms++;
		v->said_ns = now_ns - START;
		snprintf(v->said, sizeof(v->said), "%.500s", n.episode.text);
	}
}

/* Who is shown, but not told of yet. */
static void judge_shown(const struct job_trace *t, const struct job_spec *j, const struct fleet *f,
	int64_t now_ns, struct verdict *v)
{
	struct fleet_episode e;
	size_t cursor = 0;

	while (fleet_episode_next(f, NULL, &cursor, &e)) {
		if (!e.provisional)
			continue;
		if (!fits(t, j, &e)) {
			v->shown_wrong += e.id > v->last_shown;
			v->last_shown = MAX(v->last_shown, e.id);
		} else if (v->shown_ns < 0) {
			v->shown_ns = now_ns - START;
		}
	}
}

static bool has_low_clock(const struct job_spec *j)
{
	return hash_number(j->seed) & 1;
}

/* A GPU is late because its clock is low, or because it has more to do: its node tells either. */
static void set_gpu(struct play_settings *s, struct simulation_fault faults[FAULTS_MAX])
{
	const struct job_spec *j = &s->job;
	bool is_clock = has_low_clock(j);

	if (j->fault == JOB_GPU)
		faults[s->agents.fault_count++] = (struct simulation_fault){
			is_clock ? SIMULATION_GPU_CLOCK : SIMULATION_LAUNCHES,
			j->faulty[0] / s->agents.gpus_per_node,
			s->agents.start_ns + (int64_t)(j->from_step * j->step_ns), INT64_MAX,
			is_clock ? 1 / (1 + j->amount) : 1 + j->amount / 5};
}

static void say_truth(const struct job_spec *j, char *ret, size_t size)
{
	switch (j->fault) {
	case JOB_NONE: snprintf(ret, size, "nothing"); break;
	case JOB_LATE:
		snprintf(ret, size, "rank %u, %llu ms every %u steps", j->faulty[0],
			(unsigned long long)j->late_ns / 1000000, j->period);
		break;
	case JOB_STAGE: snprintf(ret, size, "stage %d, %.0f %%", j->stage, 100 * j->amount); break;
	case JOB_LINK:
		snprintf(ret, size, "by rank %u, %.1f ms a transfer%s, from step %u", j->faulty[0],
			(double)j->link_ns / 1e6, j->link_back ? ", backwards" : "", j->from_step);
		break;
	case JOB_MOVING: snprintf(ret, size, "%.0f %%", 100 * j->amount); break;
	default:
		snprintf(ret, size, "rank %u%s, %.0f %%, from step %u%s", j->faulty[0],
			j->faulty_count > 1 ? " and another" : "", 100 * j->amount, j->from_step,
			j->fault != JOB_GPU ? ""
			: has_low_clock(j)  ? ", by a low clock"
					    : ", by more launches");
		break;
	}
}

/* What the fault costs, of the time since it begins: the same job is played without it. A rank that never comes costs all
 * of it. */
static int find_cost(const struct job_spec *j, uint64_t span_ns, double *ret)
{
	_cleanup_(job_trace_done) struct job_trace without = {0};
	struct job_spec healthy = *j;
	int r;

	*ret = j->fault == JOB_HANG ? 1 : 0;
	if (j->fault == JOB_HANG || j->fault == JOB_NONE)
		return 0;
	healthy.fault = JOB_NONE;
	r = job_run(&healthy, &without);
	if (r == 0 && span_ns > without.span_ns)
		*ret = (double)(span_ns - without.span_ns) /
		       ((double)span_ns -
			       (double)without.span_ns * j->from_step / MAX(j->steps, 1U));
	return r;
}

static struct play_settings settings_of(
	uint64_t seed, enum job_fault fault, int64_t start_ns, const struct verdict_how *how)
{
	struct play_settings s = {.job = job_spec_random(seed, fault),
		.agents = {.seed = seed,
			.cluster = "simulated",
			.gpus_per_node = GPUS,
			.start_ns = start_ns,
			.latency_ns = 2000000}};

	s.job.seq_per_comm = false; /* agents count the calls to each peer: push.h */
	s.job.from_step = MAX(s.job.from_step, MIN(how->begin, s.job.steps / 2));
	if (how->is_hard) {
		job_spec_harden(&s.job);
		s.agents.push_ns = HEALTH_NS;
		s.agents.sm_clock_hz = SM_CLOCK;
		if (s.job.per_node)
			s.agents.gpus_per_node = s.job.per_node;
	}
	if (job_has(&s.job, JOB_TRAIT_BESIDE)) {
		s.beside = job_spec_random(seed ^ 0xbe51de, JOB_NONE);
		s.beside.seq_per_comm = false;
		s.beside.first_pid = BESIDE_PID;
		if (job_has(&s.job, JOB_TRAIT_LONG))
			job_spec_stretch(&s.beside, (uint32_t)(s.job.step_ns / s.beside.step_ns));
		s.beside.steps = (uint32_t)(s.job.steps * s.job.step_ns / s.beside.step_ns) + 1;
	}
	job_spec_stretch(&s.job, how->stretch);
	return s;
}

static void say_shape(const struct job_spec *j, char *ret, size_t size)
{
	size_t at = (size_t)snprintf(ret, size, "data %u, tensor %u, pipeline %u%s%s", j->data,
		j->tensor, j->pipeline, j->experts ? ", experts" : "",
		j->async ? ", host ahead" : "");

	for (int t = JOB_TRAIT_AHEAD + 1; t < JOB_TRAIT_COUNT && at < size; t++)
		if (job_has(j, (enum job_trait)t))
			at += (size_t)snprintf(
				ret + at, size - at, ", %s", job_trait_id((enum job_trait)t));
}

static int core_new(uint64_t seed, struct fleet **ret)
{
	struct fleet_settings core = fleet_defaults;

	core.nodes = nodes_defaults;
	core.calls = calls_defaults;
	core.seed = seed;
	return fleet_new(&core, ret);
}

/* From the beginning of @s to its end. */
static int play_all(struct play_settings *s, struct fleet *f, struct verdict *v, int64_t *ret_end)
{
	_cleanup_(play_freep) struct play *p = NULL;
	struct simulation_fault faults[FAULTS_MAX];
	int r;
	uint32_t ranks = s->job.data * s->job.tensor * s->job.pipeline;
	double error = (double)s->job.clock_error_ns / (double)NS_PER_S;

	/* What the job would do to the clock of each of its ranks is done to their node's. */
	for (uint32_t i = 0; error > 0 && i < FAULTS_MAX - 1 && i * s->agents.gpus_per_node < ranks;
		i++) {
		double at = (double)(hash_number(s->job.seed + i) >> 11) / (double)(1ULL << 52) - 1;

		faults[i] = (struct simulation_fault){
			SIMULATION_CLOCK_STEP, i, s->agents.start_ns, INT64_MAX, at * error};
		s->agents.fault_count = i + 1;
	}
	s->agents.faults = faults;
	set_gpu(s, faults);
	r = play_new(s, &p);
	if (r < 0)
		return r;
	do {
		r = play_until(p, f, play_now(p) + PLAY_TICK_NS);
		judge(play_job(p), &s->job, f, play_now(p), v);
		judge_shown(play_job(p), &s->job, f, play_now(p), v);
	} while (r > 0);
	v->first_late_ns = play_first_late(p) < 0 ? -1 : play_first_late(p) - START;
	v->span_ns = (uint64_t)(play_end(p) - START);
	r = r < 0 ? r : find_cost(&s->job, play_job(p)->span_ns, &v->cost);
	v->messages += play_counts(p).messages;
	v->calls += play_counts(p).calls;
	*ret_end = play_end(p);
	return r;
}

int verdict_of_random(
	uint64_t seed, enum job_fault fault, const struct verdict_how *how, struct verdict *ret)
{
	_cleanup_(fleet_freep) struct fleet *f = NULL;
	struct play_settings s = settings_of(seed, fault, START, how);
	int64_t end_ns;
	int r;

	*ret = (struct verdict){
		.fault = s.job.fault, .traits = s.job.traits, .named_ns = -1, .shown_ns = -1};
	say_truth(&s.job, ret->truth, sizeof(ret->truth));
	say_shape(&s.job, ret->shape, sizeof(ret->shape));
	if (s.job.fault == JOB_HANG)
		s.agents.end_ns =
			START + (int64_t)(3 * s.job.steps * s.job.step_ns) + 10 * (int64_t)NS_PER_S;
	r = core_new(seed, &f);
	r = r ?: play_all(&s, f, ret, &end_ns);
	if (ret->shown_ns < 0 || (ret->named_ns >= 0 && ret->named_ns < ret->shown_ns))
		ret->shown_ns = ret->named_ns;
	if (s.job.fault == JOB_NONE)
		ret->right = !ret->false_alarms;
	return r;
}

int verdict_of_healthy(
	uint64_t seed, uint64_t span_ns, const struct verdict_how *how, struct verdict *ret)
{
	_cleanup_(fleet_freep) struct fleet *f = NULL;
	int64_t at_ns = START;
	int r = core_new(seed, &f);

	*ret = (struct verdict){.fault = JOB_NONE, .named_ns = -1, .shown_ns = -1};
	snprintf(ret->truth, sizeof(ret->truth), "nothing");
	for (uint64_t i = 0; r == 0 && at_ns - START < (int64_t)span_ns; i++) {
		struct play_settings s = settings_of(hash_number(seed) + i, JOB_NONE, at_ns, how);
		uint32_t alarms = ret->false_alarms;

		s.job.first_pid = (uint32_t)(1000 * (i % 400 + 1));
		s.beside.first_pid = BESIDE_PID + s.job.first_pid;
		s.job.steps = (uint32_t)(MIN(SHIFT_NS * how->stretch, span_ns) / s.job.step_ns) + 1;
		r = play_all(&s, f, ret, &at_ns);
		if (ret->false_alarms > alarms)
			say_shape(&s.job, ret->shape, sizeof(ret->shape));
	}
	ret->right = !ret->false_alarms;
	return r;
}
