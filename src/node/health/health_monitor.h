/* SPDX-License-Identifier: Apache-2.0 */
/* health_monitor.h - from readings of a node to its state, score and the verdict on itself: the parts of
 * this folder put together. Pure.
 *
 * While the node is a straggler its readings are not added to the baseline: throughput is measured
 * against that, and an average that followed a lasting fall would call it ordinary after two minutes. What a
 * program did that has ended is taken out of it, and nothing is decided while a reading still has some of it. */
#pragma once

#include "base/errinfo.h"
#include "node/health/health_baseline.h"
#include "push/push.h"

/* Whether a node is a straggler, with hysteresis. Pure.
 *
 * An episode begins when the score falls below the threshold and ends when it is back at the threshold
 * plus the hysteresis, or when the node ceases to be active: a node without work holds nobody up. All
 * that is sent of an episode carries its one event id. Without a threshold nothing is decided. */

#define HEALTH_EVENT_MAX 40 /* a UUID with its NUL */

struct health_classifier_settings {
	double hysteresis; /* 0 <= x < 0.5 */
};
extern const struct health_classifier_settings health_classifier_defaults;
int health_classifier_check(const struct health_classifier_settings *s, struct errinfo *reterr);

struct health_classifier {
	bool is_straggler;
	char event[HEALTH_EVENT_MAX]; /* of the episode, or of the last one */
};

enum health_verdict {
	HEALTH_VERDICT_NONE,      /* nothing to tell */
	HEALTH_VERDICT_STRAGGLER, /* tell it, at every reading while it lasts */
	HEALTH_VERDICT_RESOLVED,  /* tell it, once */
};

struct health_evidence {
	bool active;        /* the node is, and this reading may be judged */
	bool has_work;      /* false: it went idle */
	double score;       /* where active */
	double threshold;   /* 0: none */
	uint8_t random[16]; /* for the event id of an episode that begins */
};

enum health_verdict health_classifier_take(struct health_classifier *c,
	const struct health_classifier_settings *s, const struct health_evidence *e);

/* health_dominant_signal - the id of the signal that has fallen most below its own ordinary value, each
 * in its own unit: @raw as it is added to the baseline. "unknown" if none fell by 1 % or more. */
const char *health_dominant_signal(const struct health_baseline *b,
	const struct health_baseline_settings *s, const double raw[HEALTH_SIGNAL_COUNT]);

/* health_event_id - 16 random bytes as a UUID of version 4. */
void health_event_id(const uint8_t random[16], char ret[HEALTH_EVENT_MAX]);

/* By which threshold a node judges itself. Pure.
 *
 * A threshold is usable if it is within HEALTH_THRESHOLD_MIN … _MAX and at most 5 minutes old. In this
 * order:
 *   fleet           usable, of a quorum, and fresh: at most 20 s old, or two and a half push intervals
 *                   if that is longer, so that a slow cadence does not switch detection off
 *   fleet-cached    usable otherwise, and the fleet can be reached
 *   local-cached    usable otherwise
 *   local-baseline  none is usable (a fleet below its quorum has none), but enough samples are there
 *                   to judge by one's own past: HEALTH_LOCAL_THRESHOLD
 *   none            nothing to judge by
 * An age below 0 (a clock that was set back) is not usable. */

#define HEALTH_THRESHOLD_MIN   0.1
#define HEALTH_THRESHOLD_MAX   0.99
#define HEALTH_LOCAL_THRESHOLD 0.85

/* X(NAME, id) */
#define HEALTH_MODES(X)                                                                            \
	X(NONE, "none")                                                                            \
	X(FLEET, "fleet")                                                                          \
	X(FLEET_CACHED, "fleet-cached")                                                            \
	X(LOCAL_CACHED, "local-cached")                                                            \
	X(LOCAL_BASELINE, "local-baseline")

enum health_mode {
#define X(NAME, ...) HEALTH_MODE_##NAME,
	HEALTH_MODES(X)
#undef X
};

const char *health_mode_id(enum health_mode m);
/* health_mode_find - the mode that is called @id. False: none is. */
bool health_mode_find(const char *id, enum health_mode *ret);

struct health_threshold { /* what the fleet said last */
	bool known;
	double value;
	bool quorum;
	int64_t at_ns; /* monotonic */
};

struct health_mode_facts {
	struct health_threshold cached;
	int64_t now_ns;
	uint64_t push_interval_ns;
	bool reachable;
	bool warm; /* enough samples for a baseline */
};

/* health_mode_choose - *ret_threshold is 0 in mode none. */
enum health_mode health_mode_choose(const struct health_mode_facts *f, double *ret_threshold);

/* health_threshold_is_usable - the value, not its age. */
bool health_threshold_is_usable(double value);

struct health_reach {      /* whether the fleet can be reached */
	uint32_t failures; /* in a row */
};
void health_reach_note(struct health_reach *r, bool success);
bool health_reach_ok(const struct health_reach *r);

/* What a node is: calibrating, active, idle or stale. Pure.
 *
 *   calibrating -> active       after `warmup` readings
 *   active -> idle              after `idle_intervals` readings in a row without a launch
 *   idle -> calibrating         with the first launch: the baseline begins anew, and this reading is
 *                               its first, but is not pushed
 *   any -> stale                after `failed_intervals` failed readings in a row; nothing is pushed
 *   stale -> calibrating        with the first good reading
 *
 * The launches of a reading are those since the last one, not of the whole window that the other
 * signals look at: idle would otherwise come a window late. */

#define HEALTH_IDLE_INTERVALS_MAX (1u << 20)

struct health_state_settings {
	uint32_t warmup;           /* 30 */
	uint32_t idle_intervals;   /* 3; 1 … HEALTH_IDLE_INTERVALS_MAX */
	uint32_t failed_intervals; /* 3 */
};
extern const struct health_state_settings health_state_defaults;
int health_state_check(const struct health_state_settings *s, struct errinfo *reterr);

struct health_state {
	enum push_state now;
	uint32_t warm, without_launch, failed; /* readings */
};

struct health_reading {
	bool failed;
	int64_t launches;      /* since the last reading; below 0 counts as 0 */
	int64_t at_ns, now_ns; /* when it was made; over a minute ahead counts as failed */
};

struct health_step {         /* what follows from a reading */
	bool push;           /* send it */
	bool classify;       /* it may be called a straggler */
	bool reset_baseline; /* before the reading is added to it */
	bool is_good;        /* it may be added to the baseline */
	bool changed;        /* the state is another one */
};

/* health_state_init - @restored: a baseline was loaded, and the node is active at once. */
void health_state_init(struct health_state *h, bool restored);
struct health_step health_state_observe(struct health_state *h,
	const struct health_state_settings *s, const struct health_reading *r);

struct health_monitor {
	struct health_score_settings score_settings;
	struct health_baseline_settings baseline_settings;
	struct health_state_settings state_settings;
	struct health_classifier_settings classifier_settings;
	struct health_baseline baseline;
	struct health_state state;
	struct health_classifier classifier;
	enum health_mode mode;
};

/* health_monitor_init - the usual settings with @warmup readings. @restored is a baseline of an earlier
 * run; NULL: none. */
void health_monitor_init(
	struct health_monitor *m, uint32_t warmup, const struct health_baseline *restored);

/* health_monitor_check - settings that contradict each other: -EINVAL with a sentence. */
int health_monitor_check(const struct health_monitor *m, struct errinfo *reterr);

struct health_input {
	struct health_reading reading;
	double raw[HEALTH_SIGNAL_COUNT]; /* throughput in launches a second, the others as shares */
	bool is_ratio;                   /* throughput is a ratio already */
	const struct health_program *programs; /* whose throughput it is; none: not known */
	size_t program_count;
	struct health_threshold cached; /* what the fleet said last */
	int64_t now_ns;                 /* monotonic, as cached.at_ns */
	uint64_t push_interval_ns;
	bool reachable;
	uint8_t random[16];
};

struct health_output {
	struct health_step step;
	double values[HEALTH_SIGNAL_COUNT]; /* 0 to 1 */
	double score, threshold;            /* threshold 0: none */
	struct health_anomalies anomalies;
	bool degraded;
	enum health_verdict verdict;
	const char *dominant; /* of a verdict */
};

/* health_monitor_take - all but step, threshold and verdict is empty after a failed reading. */
void health_monitor_take(
	struct health_monitor *m, const struct health_input *in, struct health_output *ret);
