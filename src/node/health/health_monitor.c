/* SPDX-License-Identifier: Apache-2.0 */
/* health_monitor.c - see health_monitor.h. */
#include "node/health/health_monitor.h"

#include <math.h>

#define HEALTH_UNREACHABLE 3 /* failed pushes in a row */

#define EPSILON  1e-9
#define DROP_MIN 0.01 /* less is noise */

const struct health_classifier_settings health_classifier_defaults = {.hysteresis = 0.02};

int health_classifier_check(const struct health_classifier_settings *s, struct errinfo *reterr)
{
	if (!(s->hysteresis >= 0) || !(s->hysteresis < 0.5))
		return errinfo_set(reterr, -EINVAL, "the hysteresis must be from 0 to below 0.5");
	return 0;
}

void health_event_id(const uint8_t random[16], char ret[HEALTH_EVENT_MAX])
{
	uint8_t u[16];

	for (int i = 0; i < 16; i++)
		u[i] = random[i];
	u[6] = (u[6] & 0x0f) | 0x40; /* version 4 */
	u[8] = (u[8] & 0x3f) | 0x80; /* variant of RFC 9562 */
	snprintf(ret, HEALTH_EVENT_MAX,
		"%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
		u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
		u[15]);
}

enum health_verdict health_classifier_take(struct health_classifier *c,
	const struct health_classifier_settings *s, const struct health_evidence *e)
{
	if (c->is_straggler && !e->has_work) {
		c->is_straggler = false;
		return HEALTH_VERDICT_RESOLVED;
	}
	if (!e->active || !(e->threshold > 0))
		return HEALTH_VERDICT_NONE;
	if (c->is_straggler && e->score >= e->threshold + s->hysteresis - EPSILON) {
		c->is_straggler = false;
		return HEALTH_VERDICT_RESOLVED;
	}
	if (!c->is_straggler && e->score < e->threshold - EPSILON) {
		c->is_straggler = true;
		health_event_id(e->random, c->event);
	}
	return c->is_straggler ? HEALTH_VERDICT_STRAGGLER : HEALTH_VERDICT_NONE;
}

const char *health_dominant_signal(const struct health_baseline *b,
	const struct health_baseline_settings *s, const double raw[HEALTH_SIGNAL_COUNT])
{
	const char *id = "unknown";
	double most = DROP_MIN;

	for (int i = 0; i < HEALTH_SIGNAL_COUNT; i++) {
		double ordinary = health_baseline_fast(b, s, i);
		double drop = ordinary > 0 ? 1 - raw[i] / ordinary : 0;

		if (drop >= most) {
			most = drop;
			id = health_signal_id((enum health_signal)i);
		}
	}
	return id;
}

#define FRESH_NS  (20 * (int64_t)NS_PER_S)
#define USABLE_NS (300 * (int64_t)NS_PER_S)

const char *health_mode_id(enum health_mode m)
{
	return LIST_IDS(HEALTH_MODES)[m];
}

bool health_mode_find(const char *id, enum health_mode *ret)
{
	for (int m = HEALTH_MODE_NONE; m <= HEALTH_MODE_LOCAL_BASELINE; m++)
		if (strcmp(id, health_mode_id((enum health_mode)m)) == 0) {
			*ret = (enum health_mode)m;
			return true;
		}
	return false;
}

bool health_threshold_is_usable(double value)
{
	return value >= HEALTH_THRESHOLD_MIN && value <= HEALTH_THRESHOLD_MAX;
}

enum health_mode health_mode_choose(const struct health_mode_facts *f, double *ret_threshold)
{
	int64_t age = f->now_ns - f->cached.at_ns;
	int64_t fresh = MAX(FRESH_NS, (int64_t)(f->push_interval_ns / 2 * 5));
	bool usable = f->cached.known && health_threshold_is_usable(f->cached.value) && age >= 0 &&
		      age <= MAX(USABLE_NS, fresh);

	*ret_threshold = usable ? f->cached.value : 0;
	if (usable && f->cached.quorum && age <= fresh)
		return HEALTH_MODE_FLEET;
	if (usable)
		return f->reachable ? HEALTH_MODE_FLEET_CACHED : HEALTH_MODE_LOCAL_CACHED;
	if (!f->warm)
		return HEALTH_MODE_NONE;
	*ret_threshold = HEALTH_LOCAL_THRESHOLD;
	return HEALTH_MODE_LOCAL_BASELINE;
}

void health_reach_note(struct health_reach *r, bool success)
{
	r->failures = success ? 0 : MIN(r->failures + 1, (uint32_t)HEALTH_UNREACHABLE);
}

bool health_reach_ok(const struct health_reach *r)
{
	return r->failures < HEALTH_UNREACHABLE;
}

#define FUTURE_NS (60 * (int64_t)NS_PER_S)

const struct health_state_settings health_state_defaults = {
	.warmup = 30, .idle_intervals = 3, .failed_intervals = 3};

int health_state_check(const struct health_state_settings *s, struct errinfo *reterr)
{
	if (!s->idle_intervals || s->idle_intervals > HEALTH_IDLE_INTERVALS_MAX)
		return errinfo_set(reterr, -EINVAL, "idle intervals must be between 1 and %u",
			HEALTH_IDLE_INTERVALS_MAX);
	return s->failed_intervals
		       ? 0
		       : errinfo_set(reterr, -EINVAL, "failed intervals must be at least 1");
}

void health_state_init(struct health_state *h, bool restored)
{
	*h = (struct health_state){.now = restored ? PUSH_ACTIVE : PUSH_CALIBRATING};
}

static void calibrate(struct health_state *h)
{
	h->now = PUSH_CALIBRATING;
	h->warm = 0;
	h->without_launch = 0;
}

static void observe_good(struct health_state *h, const struct health_state_settings *s,
	int64_t launches, struct health_step *step)
{
	*step = (struct health_step){.push = true, .is_good = true};
	h->failed = 0;
	if (h->now == PUSH_STALE)
		calibrate(h);
	if (h->now == PUSH_IDLE && launches > 0) {
		calibrate(h);
		step->reset_baseline = true;
		step->push = false;
	}
	h->without_launch = launches > 0 ? 0 : MIN(h->without_launch + 1, s->idle_intervals);
	if (h->now == PUSH_CALIBRATING) {
		/* A reading while calibrating, also the one that made it so. */
		if (++h->warm >= s->warmup)
			h->now = PUSH_ACTIVE;
	} else if (h->now == PUSH_ACTIVE && h->without_launch >= s->idle_intervals) {
		h->now = PUSH_IDLE;
	}
	/* Without a launch it may be on its way to idle: that is no straggler. */
	step->classify = h->now == PUSH_ACTIVE && launches > 0;
}

struct health_step health_state_observe(struct health_state *h,
	const struct health_state_settings *s, const struct health_reading *r)
{
	enum push_state before = h->now;
	struct health_step step = {0};

	if (!r->failed && (r->at_ns <= r->now_ns || r->at_ns - r->now_ns <= FUTURE_NS)) {
		observe_good(h, s, MAX(r->launches, INT64_C(0)), &step);
	} else {
		h->failed = MIN(h->failed + 1, s->failed_intervals);
		if (h->failed >= s->failed_intervals)
			h->now = PUSH_STALE;
	}
	step.changed = h->now != before;
	return step;
}

void health_monitor_init(
	struct health_monitor *m, uint32_t warmup, const struct health_baseline *restored)
{
	*m = (struct health_monitor){.score_settings = health_score_defaults,
		.baseline_settings = health_baseline_defaults,
		.state_settings = health_state_defaults,
		.classifier_settings = health_classifier_defaults};
	m->baseline_settings.warmup = m->state_settings.warmup = warmup;
	if (restored)
		m->baseline = *restored;
	health_state_init(&m->state, restored != NULL);
}

int health_monitor_check(const struct health_monitor *m, struct errinfo *reterr)
{
	int r = health_score_check(&m->score_settings, reterr);

	r = r ?: health_baseline_check(&m->baseline_settings, reterr);
	r = r ?: health_state_check(&m->state_settings, reterr);
	return r < 0 ? r : health_classifier_check(&m->classifier_settings, reterr);
}

static double choose_mode(struct health_monitor *m, const struct health_input *in)
{
	const struct health_mode_facts f = {.cached = in->cached,
		.now_ns = in->now_ns,
		.push_interval_ns = in->push_interval_ns,
		.reachable = in->reachable,
		.warm = m->baseline.samples >= m->baseline_settings.warmup};
	double threshold;

	m->mode = health_mode_choose(&f, &threshold);
	return threshold;
}

static void judge(struct health_monitor *m, const struct health_input *in, struct health_output *o)
{
	/* Nothing can be said of a node whose ordinary throughput is not known. */
	bool is_known = in->is_ratio || health_baseline_fast(&m->baseline, &m->baseline_settings,
						HEALTH_THROUGHPUT) > 0;
	struct health_evidence e = {
		.active = o->step.classify && is_known &&
			  !EXISTS(i, in->program_count, in->programs[i].is_over),
		.has_work = m->state.now == PUSH_ACTIVE || m->state.now == PUSH_STALE,
		.score = o->score,
		.threshold = o->threshold};

	memcpy(e.random, in->random, sizeof(e.random));
	o->verdict = health_classifier_take(&m->classifier, &m->classifier_settings, &e);
	o->dominant = health_dominant_signal(&m->baseline, &m->baseline_settings, in->raw);
}

void health_monitor_take(
	struct health_monitor *m, const struct health_input *in, struct health_output *ret)
{
	struct health_output o = {
		.step = health_state_observe(&m->state, &m->state_settings, &in->reading)};

	if (o.step.reset_baseline)
		m->baseline = (struct health_baseline){0};
	o.threshold = choose_mode(m, in);
	if (o.step.is_good) {
		health_baseline_keep(&m->baseline, in->programs, in->program_count);
		memcpy(o.values, in->raw, sizeof(o.values));
		if (!in->is_ratio)
			o.values[HEALTH_THROUGHPUT] =
				health_baseline_ratio(&m->baseline, &m->baseline_settings,
					HEALTH_THROUGHPUT, in->raw[HEALTH_THROUGHPUT]);
		o.score = health_score(&m->score_settings, o.values, &o.anomalies);
		for (int i = 0; i < HEALTH_SIGNAL_COUNT; i++)
			o.values[i] = isfinite(o.values[i]) ? fmin(fmax(o.values[i], 0), 1) : 0;
		judge(m, in, &o);
		if (!m->classifier.is_straggler ||
			m->baseline.samples < m->baseline_settings.warmup) {
			health_baseline_add(&m->baseline, &m->baseline_settings, in->raw);
			health_baseline_add_programs(&m->baseline, &m->baseline_settings,
				in->programs, in->program_count);
		}
		o.degraded = health_baseline_degraded(&m->baseline, &m->baseline_settings);
	}
	*ret = o;
}
