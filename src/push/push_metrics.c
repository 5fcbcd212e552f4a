/* SPDX-License-Identifier: Apache-2.0 */
/* push_metrics.c - a node's health as the published metrics, in their order: those of the score, of the
 * agent, of the node, counters; then raw signals, which only we know. */

#include "push/push_private.h"

struct out { /* one request */
	struct otlp_writer w;
	uint64_t time_ns, start_ns;
};

static void put_point(
	struct out *o, const struct otlp_attributes *a, uint64_t start_ns, struct otlp_value v)
{
	otlp_write_point(&o->w,
		&(struct otlp_point){
			.attributes = a, .time_ns = o->time_ns, .start_ns = start_ns, .value = v});
}

static void put_gauge(struct out *o, const char *name, const char *unit, struct otlp_value v,
	const struct otlp_attributes *a)
{
	otlp_write_metric(&o->w, name, NULL, unit, OTLP_GAUGE);
	put_point(o, a, 0, v);
	otlp_write_metric_end(&o->w);
}

static void put_int(struct out *o, const char *name, int64_t v, const struct otlp_attributes *a)
{
	put_gauge(o, name, "1", (struct otlp_value){.kind = OTLP_INT, .i = v}, a);
}

static void put_double(struct out *o, const char *name, const char *unit, double v,
	const struct otlp_attributes *a)
{
	put_gauge(o, name, unit, (struct otlp_value){.kind = OTLP_DOUBLE, .d = v}, a);
}

static void put_score(struct out *o, const struct push_health *h)
{
	static const struct {
		const char *metric;
		size_t offset;
	} ratios[] = {
#define X(member, metric) {metric, offsetof(struct push_health, member)},
		PUSH_RATIOS(X)
#undef X
	};
	struct otlp_attributes a;

	a.count = 0;
	otlp_put_text(&a, PUSH_KEY_STATE, push_state_id(h->state));
	otlp_put_text(&a, PUSH_KEY_WORKLOAD, h->workload);
	otlp_put_text(&a, PUSH_KEY_COHORT, h->cohort);
	put_double(o, PUSH_METRIC_SCORE, "1", h->score, &a);
	a.count--; /* the cohort is told with the score only */
	for (size_t i = 0; i < ARRAY_SIZE(ratios); i++) {
		double v;

		memcpy(&v, (const char *)h + ratios[i].offset, sizeof(v));
		put_double(o, ratios[i].metric, "1", v, &a);
	}
	put_int(o, PUSH_METRIC_DEGRADED, h->degraded, &a);
}

static void put_agent(struct out *o, const struct push_metrics *m)
{
	struct otlp_attributes a;

	a.count = 0;
	otlp_put_text(&a, PUSH_KEY_MODE, m->detection_mode ? m->detection_mode : "none");
	put_int(o, PUSH_METRIC_MODE, 1, &a);
	put_int(o, PUSH_METRIC_REACHABLE, m->fleet_reachable, NULL);
}

static void put_node(struct out *o, const struct push_health *h)
{
	struct otlp_attributes a;

	a.count = 0;
	if (h->gpu_model[0] && h->gpu_count) {
		otlp_put_text(&a, PUSH_KEY_MODEL, h->gpu_model);
		otlp_put_int(&a, PUSH_KEY_GPUS, h->gpu_count);
		put_int(o, PUSH_METRIC_INFO, 1, &a);
	}
	put_int(o, PUSH_METRIC_WORLD, h->who.world_size, NULL);
}

static void put_count(struct out *o, const struct otlp_attributes *a, uint64_t v)
{
	put_point(o, a, o->start_ns,
		(struct otlp_value){.kind = OTLP_INT, .i = (int64_t)MIN(v, (uint64_t)INT64_MAX)});
}

/* One of the counters that every control group has. */
static void put_sum(struct out *o, const struct push_metrics *m, const char *name, const char *unit,
	size_t offset)
{
	struct otlp_attributes a;

	otlp_write_metric(&o->w, name, NULL, unit, OTLP_SUM);
	for (size_t i = 0; i < m->counter_count; i++) {
		const struct push_counters *c = &m->counters[i];
		uint64_t v;

		memcpy(&v, (const char *)c + offset, sizeof(v));
		a.count = 0;
		otlp_put_text(&a, PUSH_KEY_COHORT, c->cohort);
		put_count(o, &a, v);
	}
	otlp_write_metric_end(&o->w);
}

static void put_counters(struct out *o, const struct push_metrics *m)
{
	static const char *const directions[] = {"h2h", "h2d", "d2h", "d2d", "unknown"};
	struct otlp_attributes a;

	if (!m->counter_count)
		return;
	put_sum(o, m, PUSH_METRIC_LAUNCHES, "1", offsetof(struct push_counters, launches));
	put_sum(o, m, PUSH_METRIC_STALL, "ns", offsetof(struct push_counters, stall_ns));
	STATIC_ASSERT(ARRAY_SIZE(directions) == ARRAY_SIZE(m->counters->copied_bytes));
	otlp_write_metric(&o->w, PUSH_METRIC_COPIED, NULL, "By", OTLP_SUM);
	for (size_t i = 0; i < m->counter_count; i++)
		for (size_t k = 0; k < ARRAY_SIZE(directions); k++) {
			if (!m->counters[i].copied_bytes[k])
				continue;
			a.count = 0;
			otlp_put_text(&a, PUSH_KEY_COHORT, m->counters[i].cohort);
			otlp_put_text(&a, PUSH_KEY_DIRECTION, directions[k]);
			put_count(o, &a, m->counters[i].copied_bytes[k]);
		}
	otlp_write_metric_end(&o->w);
}

static void put_signals(struct out *o, const struct push_health *h)
{
	static const char *const units[] = {
#define X(NAME, metric, unit, more) [PUSH_SIGNAL_##NAME] = unit,
		PUSH_SIGNALS(X)
#undef X
	};

	for (enum push_signal i = 0; i < PUSH_SIGNAL_COUNT; i++)
		if (h->signals[i] >= 0)
			put_double(o, push_signal_metric(i), units[i], h->signals[i], NULL);
}

void push_metrics_write(struct buf *b, const struct push_metrics *m, bool json)
{
	struct out o = {.time_ns = (uint64_t)m->health->sent_ns, .start_ns = m->start_ns};
	struct otlp_attributes resource;

	resource.count = 0;
	push_who_put(&resource, &m->health->who);
	otlp_write_begin(&o.w, b, json, false, &resource, PUSH_SCOPE_HEALTH, PUSH_SCOPE_VERSION);
	if (m->straggler) {
		struct otlp_attributes a;

		a.count = 0;
		otlp_put_text(&a, PUSH_KEY_MODE, m->straggler->mode);
		otlp_put_double(&a, PUSH_KEY_THRESHOLD, m->straggler->threshold);
		otlp_put_double(&a, PUSH_KEY_SCORE, m->straggler->score);
		otlp_put_text(&a, PUSH_KEY_DOMINANT, m->straggler->dominant);
		if (m->straggler->event[0])
			otlp_put_text(&a, PUSH_KEY_EVENT, m->straggler->event);
		put_int(&o, PUSH_METRIC_STRAGGLER, !m->straggler->resolved, &a);
	} else {
		put_score(&o, m->health);
		put_agent(&o, m);
		put_node(&o, m->health);
		put_counters(&o, m);
		put_signals(&o, m->health);
	}
	otlp_write_end(&o.w);
}
