/* SPDX-License-Identifier: Apache-2.0 */
/* alert_matter.h - what an alert is about: an episode of a cluster, or an incident of a node that stands
 * alone. Whoever finds it fills this in; texts are for people and may hold names of traced processes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ALERT_EVENT_MAX 128
#define ALERT_NAME_MAX  256 /* of a cluster, a node */
#define ALERT_WORD_MAX  32
#define ALERT_TEXT_MAX  1024

struct alert_cost {
	bool priced;     /* false: at least one GPU model has no price; money is then of the rest */
	double per_hour; /* at the present rate */
	double total;    /* since it began */
	double gpu_seconds; /* lost, since it began */
	double watt_hours;  /* likewise; 0: not known */
	char currency[8], symbol[8];
	char unpriced[96]; /* the first model without a price; "": none */
};

struct alert_matter {
	uint64_t id;                 /* the same while it lasts, and no other's */
	char event[ALERT_EVENT_MAX]; /* likewise, for receivers: their key */
	const char *name;            /* of the alert: "IngeroStraggler" */
	const char *class;           /* PagerDuty's: "gpu_straggler" */
	const char *problem;         /* "straggler" */
	const char *severity; /* "info", "warning", "error", "critical"; NULL: the receiver's */
	char cluster[ALERT_NAME_MAX]; /* "": a node that stands alone */
	char node[ALERT_NAME_MAX];    /* "": not one node */
	int32_t rank;                 /* -1: not one rank */
	int32_t stage;                /* likewise */
	uint32_t pid;                 /* 0: not one process */
	char process[ALERT_WORD_MAX]; /* its name */
	bool is_job;                  /* share and cost are known */
	double share;                 /* of the job's time */
	double confidence;
	uint64_t lag_ns;
	uint32_t period;
	uint32_t late, seen;     /* steps: late in so many of so many; 0: not known */
	uint32_t waiting;        /* ranks that wait; 0: not known */
	uint64_t waited_ns;      /* each of them, in a late step */
	char op[ALERT_WORD_MAX]; /* collective that it is late for; "": not known */
	char signal[ALERT_WORD_MAX];
	double score, threshold;
	int64_t since_ns, until_ns; /* nanoseconds since 1970; until_ns 0: it lasts */
	char text[ALERT_TEXT_MAX];  /* one sentence: who, what for, why, what it costs */
	char cause[ALERT_TEXT_MAX]; /* "": not known */
	char fix[ALERT_TEXT_MAX];
	char place[ALERT_TEXT_MAX]; /* line of code; "": not known */
	struct alert_cost cost;
};

/* X(NAME, id) */
#define ALERT_KINDS(X)                                                                             \
	X(BEGAN, "began")                                                                          \
	X(CHANGED, "changed") /* its cause or severity is another now */                           \
	X(ENDED, "ended")
enum alert_kind {
#define X(NAME, ...) ALERT_##NAME,
	ALERT_KINDS(X)
#undef X
};

struct alert_notice {
	enum alert_kind kind;
	struct alert_matter matter;
};
