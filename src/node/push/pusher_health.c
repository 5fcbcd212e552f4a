/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_health.c - from a reading of the recording to what is pushed of the node's health, and the threshold that the fleet
 * answers with. */
#include <ctype.h>
#include <math.h>
#include <strings.h>
#include <sys/random.h>

#include "base/log.h"
#include "base/notify.h"
#include "json/reader.h"
#include "node/health/health_baseline.h"
#include "node/push/pusher_node.h"
#include "node/push/pusher_private.h"

/* Readings of --stub: a score of 0.94. */
static const double stub_values[HEALTH_SIGNAL_COUNT] = {1, 0.9, 0.9, 0.9};

int pusher_health_begin(struct pusher *p, struct errinfo *reterr)
{
	enum health_load load = HEALTH_LOAD_MISSING;
	struct health_baseline baseline;

	if (p->settings->baseline && !p->settings->stub)
		load = health_file_load(p->settings->baseline, &health_baseline_defaults,
			(int64_t)p->settings->baseline_age_ns, wall_now(), &baseline);
	if (load != HEALTH_LOAD_MISSING)
		log_info("baseline %s: %s", p->settings->baseline, health_load_id(load));
	health_monitor_init(
		&p->monitor, p->settings->warmup, load == HEALTH_LOAD_FRESH ? &baseline : NULL);
	p->monitor.classifier_settings.hysteresis = p->settings->hysteresis;
	return health_monitor_check(&p->monitor, reterr);
}

void pusher_health_save(struct pusher *p)
{
	struct errinfo e = {0};
	int r;

	if (!p->settings->baseline || p->settings->stub)
		return;
	r = health_file_save(p->settings->baseline, &p->monitor.baseline,
		&p->monitor.baseline_settings, wall_now(), &e);
	if (r < 0)
		log_warning("%s", e.text[0] ? e.text : strerror(-r));
}

/* ---- reading ---- */

void pusher_say_ready(const struct pusher *p)
{
	notify_ready("pushes to %s", p->settings->endpoint.shown);
}

static void read_stub(struct pusher_reading *r)
{
	*r = (struct pusher_reading){.launches = 1, .at_ns = wall_now().ns, .step = {-1, -1}};
	memcpy(r->raw, stub_values, sizeof(r->raw));
	r->readings.gpu_busy_pct = r->readings.sm_clock_mhz = -1;
}

static bool read_now(struct pusher *p)
{
	struct errinfo e = {0};
	int r = 0;

	if (p->settings->stub)
		read_stub(&p->reading);
	else
		r = pusher_recording_health(&p->recording, wall_now(), &p->reading, &e);
	if (r < 0)
		snprintf(p->read_why, sizeof(p->read_why), "%.255s",
			e.text[0] ? e.text : strerror(-r));
	if (r < 0 && !p->read_failed) {
		if (!p->settings->once) /* which ends with that sentence */
			log_warning("%s: nothing is pushed until it can be read", p->read_why);
		notify_status("waits: %s", p->read_why);
	} else if (r == 0 && p->read_failed) {
		log_info("%s can be read again", p->settings->db);
		pusher_say_ready(p);
	}
	p->read_failed = r < 0;
	return r == 0;
}

/* Once in five minutes for a signal: log.h holds the rest back. */
static void say_anomalies(const struct health_anomalies *a)
{
	for (int i = 0; i < HEALTH_SIGNAL_COUNT; i++) {
		if (a->nan >> i & 1)
			log_warning("signal %s is not a number", health_signal_id(i));
		if (a->infinite >> i & 1)
			log_warning("signal %s is infinite", health_signal_id(i));
	}
}

/* ---- judging ---- */

static void take_reading(struct pusher *p, bool failed, struct health_output *ret)
{
	const struct pusher_reading *r = &p->reading;
	struct health_input in = {.reading = {.failed = failed,
					  .launches = r->launches,
					  .at_ns = r->at_ns,
					  .now_ns = wall_now().ns},
		.is_ratio = p->settings->stub,
		.programs = r->programs,
		.program_count = r->program_count,
		.cached = p->threshold,
		.now_ns = (int64_t)mono_now().ns,
		.push_interval_ns = p->settings->push_interval_ns,
		.reachable = health_reach_ok(&p->reach)};
	enum health_mode mode = p->monitor.mode;
	bool was_straggler = p->monitor.classifier.is_straggler;

	memcpy(in.raw, r->raw, sizeof(in.raw));
	if (getrandom(in.random, sizeof(in.random), 0) != (ssize_t)sizeof(in.random))
		for (size_t i = 0; i < sizeof(in.random); i++)
			in.random[i] = (uint8_t)pusher_random(p);
	health_monitor_take(&p->monitor, &in, ret);
	if (ret->step.changed)
		log_info("state %s", push_state_id(p->monitor.state.now));
	p->has_mode |= p->monitor.mode != HEALTH_MODE_NONE;
	if (mode != p->monitor.mode)
		log_info("detection mode %s, was %s", health_mode_id(p->monitor.mode),
			health_mode_id(mode));
	if (was_straggler != p->monitor.classifier.is_straggler)
		log_info("%s: score %.3f, threshold %.3f",
			was_straggler ? "no longer a straggler" : "straggler", ret->score,
			ret->threshold);
	if (ret->degraded && !p->was_degraded)
		log_warning("a signal has fallen below half of its long-term average");
	p->was_degraded = ret->degraded;
	say_anomalies(&ret->anomalies);
}

static bool make_verdict(
	const struct pusher *p, const struct health_output *o, struct push_straggler *ret)
{
	if (o->verdict == HEALTH_VERDICT_NONE)
		return false;
	*ret = (struct push_straggler){.threshold = o->threshold,
		.score = o->score,
		.resolved = o->verdict == HEALTH_VERDICT_RESOLVED};
	snprintf(ret->event, sizeof(ret->event), "%s", p->monitor.classifier.event);
	snprintf(ret->mode, sizeof(ret->mode), "%s", health_mode_id(p->monitor.mode));
	snprintf(ret->dominant, sizeof(ret->dominant), "%s", o->dominant);
	return true;
}

/* ---- the request ---- */

const char *pusher_workload(const struct pusher *p)
{
	if (p->settings->workload)
		return p->settings->workload;
	return p->recording.steps.is_training ? "training" : "unknown";
}

static void fill_health(struct pusher *p, struct push_health *h)
{
	const struct pusher_reading *r = &p->reading;
	const struct recent_readings *read = &r->readings;

	h->who = pusher_who(p);
	h->state = p->monitor.state.now;
	snprintf(h->workload, sizeof(h->workload), "%s", pusher_workload(p));
	pusher_cohort_hash(h->workload, p->recording.job, p->recording.cgroup, h->cohort);
	snprintf(h->gpu_model, sizeof(h->gpu_model), "%s", read->gpu_model);
	h->gpu_count = p->settings->gpus ? p->settings->gpus : read->gpus;
	h->signals[PUSH_SIGNAL_LAUNCH_RATE] = p->settings->stub ? -1 : r->raw[HEALTH_THROUGHPUT];
	h->signals[PUSH_SIGNAL_STEP] = r->step.step_s;
	h->signals[PUSH_SIGNAL_OWN_TIME] = r->step.own_s;
	h->signals[PUSH_SIGNAL_GPU_BUSY] = read->gpu_busy_pct >= 0 ? read->gpu_busy_pct / 100 : -1;
	h->signals[PUSH_SIGNAL_SM_CLOCK] = read->sm_clock_mhz >= 0 ? read->sm_clock_mhz * 1e6 : -1;
}

static void write_request(struct pusher *p, struct push_health *h)
{
	_cleanup_free_ struct push_counters *counters = NULL;
	size_t count = 0;
	struct push_metrics m = {.health = h,
		.detection_mode = health_mode_id(p->has_mode ? p->monitor.mode : p->settings->mode),
		.fleet_reachable = health_reach_ok(&p->reach),
		.start_ns = (uint64_t)p->recording.counters.start_ns};

	if (pusher_counters_list(&p->recording.counters, &counters, &count) < 0)
		log_warning("not enough memory for the counters");
	m.counters = counters;
	m.counter_count = count;
	buf_clear(&p->body);
	h->sent_ns = wall_now().ns;
	push_metrics_write(&p->body, &m, true);
}

bool pusher_health_step(
	struct pusher *p, struct push_straggler *ret_straggler, bool *ret_has_verdict)
{
	struct push_health h = {0};
	struct health_output o;

	take_reading(p, !read_now(p), &o);
	*ret_has_verdict = make_verdict(p, &o, ret_straggler);
	if (!o.step.push)
		return false;
	h.score = o.score;
	h.degraded = o.degraded;
	h.throughput = o.values[HEALTH_THROUGHPUT];
	h.compute = o.values[HEALTH_COMPUTE];
	h.memory = o.values[HEALTH_MEMORY];
	h.cpu = o.values[HEALTH_CPU];
	fill_health(p, &h);
	write_request(p, &h);
	return true;
}

/* ---- what the fleet replies ---- */

static enum pusher_hint take(double value, bool quorum, int64_t now_ns, struct health_threshold *t)
{
	if (!health_threshold_is_usable(value) && !(value == 0 && !quorum))
		return PUSHER_HINT_REFUSED;
	/* A fleet that has just been started knows nothing yet: what it said before is better. */
	if (value == 0 && t->known && health_threshold_is_usable(t->value))
		return PUSHER_HINT_TAKEN;
	*t = (struct health_threshold){
		.known = true, .value = value, .quorum = quorum, .at_ns = now_ns};
	return PUSHER_HINT_TAKEN;
}

enum pusher_hint pusher_reply_fields(
	const struct http_head *h, int64_t now_ns, struct health_threshold *t)
{
	const char *value = http_head_get(h, "x-ingero-threshold");
	const char *quorum = http_head_get(h, "x-ingero-quorum-met");
	bool is_met = quorum && !strcasecmp(quorum, "true");
	double number;
	char *end;

	if (!value || !quorum)
		return PUSHER_HINT_MISSING;
	number = strtod(value, &end);
	if (end == value || *end || isspace((unsigned char)*value) ||
		(!is_met && strcasecmp(quorum, "false")))
		return PUSHER_HINT_REFUSED;
	return take(number, is_met, now_ns, t);
}

enum pusher_hint pusher_reply_body(
	const char *text, size_t len, int64_t now_ns, struct health_threshold *t)
{
	bool has_value = false, has_quorum = false, quorum = false;
	enum json_read token = JSON_READ_BAD;
	struct json_reader r;
	double value = 0;

	json_reader_init(&r, text, MIN(len, (size_t)PUSHER_BODY_MAX), PUSHER_BODY_MAX);
	if (json_read(&r) == JSON_READ_OBJECT)
		while ((token = json_read(&r)) == JSON_READ_KEY) {
			bool is_value = json_read_is(&r, "threshold");
			bool is_quorum = json_read_is(&r, "quorum_met");

			token = json_read(&r);
			if (is_value && (token == JSON_READ_INT || token == JSON_READ_REAL)) {
				value = token == JSON_READ_INT ? (double)r.i : r.d;
				has_value = true;
			} else if (is_quorum && token == JSON_READ_BOOL) {
				quorum = r.b;
				has_quorum = true;
			} else if (is_value || is_quorum || !json_skip(&r, token)) {
				break;
			}
		}
	if (token != JSON_READ_OBJECT_END || json_read(&r) != JSON_READ_END)
		has_value = false;
	json_reader_done(&r);
	return has_value && has_quorum ? take(value, quorum, now_ns, t) : PUSHER_HINT_REFUSED;
}

uint64_t pusher_jitter(uint64_t ns, double share, uint64_t random)
{
	double unit = (double)(random >> 11) / (double)(UINT64_C(1) << 53); /* 0 … 1 */

	return (uint64_t)fmax((double)ns * (1 + share * (2 * unit - 1)), 0);
}
