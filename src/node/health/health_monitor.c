/* SPDX-License-Identifier: Apache-2.0 */
/* health_monitor.c - see health_monitor.h. */
#include "node/health/health_monitor.h"

#include <math.h>
#include <string.h>

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

	if (r == 0)
		r = health_baseline_check(&m->baseline_settings, reterr);
	if (r == 0)
		r = health_state_check(&m->state_settings, reterr);
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

static void measure(
	const struct health_monitor *m, const struct health_input *in, struct health_output *o)
{
	memcpy(o->values, in->raw, sizeof(o->values));
	if (!in->is_ratio)
		o->values[HEALTH_THROUGHPUT] = health_baseline_ratio(&m->baseline,
			&m->baseline_settings, HEALTH_THROUGHPUT, in->raw[HEALTH_THROUGHPUT]);
	o->score = health_score(&m->score_settings, o->values, &o->anomalies);
	for (int i = 0; i < HEALTH_SIGNAL_COUNT; i++)
		o->values[i] = isfinite(o->values[i]) ? fmin(fmax(o->values[i], 0), 1) : 0;
}

static bool has_just_ended(const struct health_input *in)
{
	for (size_t i = 0; i < in->program_count; i++)
		if (in->programs[i].is_over)
			return true;
	return false;
}

static void judge(struct health_monitor *m, const struct health_input *in, struct health_output *o)
{
	/* Nothing can be said of a node whose ordinary throughput is not known. */
	bool is_known = in->is_ratio || health_baseline_fast(&m->baseline, &m->baseline_settings,
						HEALTH_THROUGHPUT) > 0;
	struct health_evidence e = {.active = o->step.classify && is_known && !has_just_ended(in),
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
		measure(m, in, &o);
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
