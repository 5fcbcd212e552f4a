/* SPDX-License-Identifier: Apache-2.0 */
/* alerter.h - the thread that tells receivers of alerts about incidents of this node: one alert an
 * incident, from its beginning to its end.
 *
 * The tracing thread never waits for it: it hands a notice over, and what there is no room for is
 * counted. What lasts when tracing ends is resolved then, with a sentence that says so: nobody
 * would resolve it later. */
#pragma once

#include <stdint.h>

#include "notify/alert/alert_file.h"

#define ALERTER_FLUSH_NS (3 * NS_PER_S) /* at the end, for what is not told yet */
#define ALERTER_ON_WAY   256            /* notices between the threads */
#define ALERTER_OPEN_MAX 256            /* incidents that last */

struct alerter_settings {
	const struct alert_file *file; /* the caller's until alerter_stop() */
	const char *node;              /* likewise */
	void (*begin)(void);           /* the thread calls it before anything else; may be NULL */
};

struct alerter_stats {
	uint64_t notices; /* given to the receivers */
	uint64_t sent;    /* requests, of all receivers */
	uint64_t lost;    /* notices, of all receivers or before them */
	uint64_t refused; /* requests */
	uint64_t waiting; /* not told in time */
};

struct alerter;

int alerter_start(const struct alerter_settings *s, struct alerter **ret, struct errinfo *reterr);

/* alerter_tell - @i as it is now; over if its `resolved` is set. */
void alerter_tell(struct alerter *a, const struct incident *i);

/* alerter_stop - ends what lasts, tells it within ALERTER_FLUSH_NS, frees @a. */
struct alerter_stats alerter_stop(struct alerter *a);
