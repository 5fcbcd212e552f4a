/* SPDX-License-Identifier: Apache-2.0 */
/* demo_day.c - see demo_day.h. */
#include "cluster/cli/demo_day.h"

#include "base/clock.h"

#define HOUR_NS      (3600 * NS_PER_S)
#define STEP_NS      (500 * NS_PER_MS)
#define LATE_NS      (290 * NS_PER_MS)
#define ACT_NS       (120 * NS_PER_S) /* of an act that is over, and of the present before it is shown */
#define LIVE_NS      (30 * 60 * NS_PER_S)
#define THROTTLED_AT (20 * HOUR_NS) /* ago */
#define HANG_AT      (6 * HOUR_NS)
#define QUIET_PUSH   (300 * NS_PER_S)
#define PUSH_NS      (5 * NS_PER_S)

#define LATE_RANK      41
#define THROTTLED_RANK 17
#define HANG_RANK      9

static const struct push_report why_late = {
	.cause = "its data loader waits for a disk that rsync keeps busy (train.py:41)",
	.fix = "Copy the data set to this node's own disk, or run rsync with ionice -c 3",
	.line = "disk",
	.line_ns = LATE_NS,
	.step_ns = STEP_NS + LATE_NS,
	.ordinary_ns = STEP_NS,
	.doing = PUSH_DOING_BLOCKED,
	.confidence = 0.93};
static const struct push_report why_throttled = {
	.cause = "its GPU runs at 1,095 of 1,980 MHz: it is too hot (84 °C)",
	.fix = "Clean the air path of this node, or lower the power limit of all GPUs alike",
	.line = "gpu",
	.line_ns = STEP_NS / 2,
	.step_ns = STEP_NS + STEP_NS / 2,
	.ordinary_ns = STEP_NS,
	.doing = PUSH_DOING_GPU,
	.confidence = 0.88};
static const struct push_report why_hung = {
	.cause = "its process waits for a lock that its own checkpoint thread holds (ckpt.py:118)",
	.fix = "Save checkpoints outside the lock of the data queue",
	.line = "lock",
	.line_ns = STEP_NS,
	.step_ns = STEP_NS,
	.ordinary_ns = STEP_NS,
	.doing = PUSH_DOING_BLOCKED,
	.confidence = 0.9};

static struct play_settings ordinary(int64_t start_ns, uint64_t lasts_ns, uint64_t seed)
{
	return (struct play_settings){.job = {.seed = seed,
					      .data = DEMO_RANKS,
					      .tensor = 1,
					      .pipeline = 1,
					      .microbatches = 1,
					      .layers = 1,
					      .buckets = 2,
					      .steps = (uint32_t)(lasts_ns / STEP_NS),
					      .step_ns = STEP_NS,
					      .jitter = 0.003},
		.agents = {.seed = seed,
			.cluster = DEMO_CLUSTER,
			.gpus_per_node = DEMO_PER_NODE,
			.gpu_model = "NVIDIA H100 80GB HBM3",
			.provider = "lambda",
			.start_ns = start_ns,
			.push_ns = PUSH_NS,
			.latency_ns = 2 * NS_PER_MS}};
}

struct simulation_settings demo_quiet(int64_t now_ns)
{
	struct simulation_settings a = ordinary(now_ns - 24 * (int64_t)HOUR_NS, 0, 3).agents;

	a.nodes = DEMO_NODES;
	a.end_ns = now_ns - (int64_t)ACT_NS;
	a.push_ns = QUIET_PUSH;
	a.batch_ns = QUIET_PUSH;
	return a;
}

static struct play_settings throttled(int64_t now_ns)
{
	static struct simulation_fault slow = {
		.kind = SIMULATION_SLOW, .node = THROTTLED_RANK / DEMO_PER_NODE, .value = 0.67};
	struct play_settings p = ordinary(now_ns - (int64_t)THROTTLED_AT, ACT_NS, 17);

	slow.from_ns = p.agents.start_ns + (int64_t)ACT_NS / 4;
	slow.to_ns = now_ns;
	p.job.fault = JOB_SLOW;
	p.job.faulty[0] = THROTTLED_RANK;
	p.job.faulty_count = 1;
	p.job.amount = 0.5;
	p.job.from_step = p.job.steps / 4;
	p.agents.faults = &slow;
	p.agents.fault_count = 1;
	p.report = &why_throttled;
	return p;
}

static struct play_settings hang(int64_t now_ns)
{
	struct play_settings p = ordinary(now_ns - (int64_t)HANG_AT, ACT_NS, 9);

	p.job.fault = JOB_HANG;
	p.job.faulty[0] = HANG_RANK;
	p.job.faulty_count = 1;
	p.job.from_step = p.job.steps / 2;
	p.agents.end_ns = p.agents.start_ns + (int64_t)ACT_NS;
	p.report = &why_hung;
	return p;
}

static struct play_settings present(int64_t now_ns)
{
	struct play_settings p = ordinary(now_ns - (int64_t)ACT_NS, ACT_NS + LIVE_NS, 41);

	p.job.fault = JOB_LATE;
	p.job.faulty[0] = LATE_RANK;
	p.job.faulty_count = 1;
	p.job.late_ns = LATE_NS;
	p.job.period = DEMO_PERIOD;
	p.agents.batch_ns = NS_PER_S / 4;
	p.report = &why_late;
	return p;
}

struct play_settings demo_act(enum demo_act act, int64_t now_ns)
{
	switch (act) {
	case DEMO_THROTTLED: return throttled(now_ns);
	case DEMO_HANG: return hang(now_ns);
	default: return present(now_ns);
	}
}

struct fleet_settings demo_core(enum demo_act act, const struct rates *rates)
{
	struct fleet_settings s = fleet_defaults;

	s.nodes = nodes_defaults;
	s.calls = calls_defaults;
	s.nodes.interval_ns = PUSH_NS;
	s.rates = rates;
	s.seed = (uint64_t)wall_now().ns + act;
	return s;
}
