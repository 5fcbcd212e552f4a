/* SPDX-License-Identifier: Apache-2.0 */
/* stress.h - events that are known beforehand, sent to a receiver of OTLP by many writers at once, so that
 * what is kept of them can be counted.
 *
 * Event i belongs to node i mod nodes and to chain i mod chains; exactly `low` of them, spread evenly, have
 * a score below 0.4. Every event has an id that begins with the run's. Belongs to the loop's thread. */
#pragma once

#include "deliver/endpoint.h"
#include "stat/sketch.h"

#define STRESS_RUN_MAX     24
#define STRESS_NODES_MAX   100000
#define STRESS_WRITERS_MAX 1024
#define STRESS_LOW_SCORE   0.30 /* of a planted event */

struct stress_settings {
	const struct endpoint *endpoint;
	struct http_client *client;   /* with the token */
	struct http_client *stranger; /* with a wrong one; NULL: none is tried */
	char run[STRESS_RUN_MAX];
	const char *cluster,
		*node; /* node: a name, to which -0, -1, … is added if there are several */
	const char *metric;
	uint64_t events;
	uint64_t nodes, writers, batch; /* batch: events of a request */
	uint64_t chains, low;
	double rate;           /* events a second; 0: as fast as they are taken */
	double duplicates;     /* share of the requests that are sent a second time */
	uint64_t wrong_tokens; /* requests with one */
	uint64_t malformed;    /* requests that are no OTLP */
	uint64_t patience_ns;  /* with a receiver that takes nothing: then the run ends */
};

struct stress_result {
	uint64_t events, requests;    /* sent: each counts once, however often it was tried */
	uint64_t acknowledged;        /* events */
	uint64_t rejected;            /* events in requests that were taken otherwise */
	uint64_t given_up;            /* events that were refused, or when the patience was over */
	uint64_t retries, duplicates; /* requests */
	uint64_t faults_refused, faults_taken; /* wrong tokens and malformed requests */
	struct sketch took;                    /* from sending to the acknowledgement */
	uint64_t ns;                           /* of all */
};

/* stress_run - runs @l until all is sent. A receiver that cannot be reached at first, or that wants
 * another token, is an error with a sentence. */
int stress_run(struct loop *l, const struct stress_settings *s, struct stress_result *ret,
	struct errinfo *reterr);
