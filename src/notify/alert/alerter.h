/* SPDX-License-Identifier: Apache-2.0 */
/* alerter.h - the thread that tells receivers of alerts about incidents of this node: one alert an
 * incident, from its beginning to its end.
 *
 * The tracing thread never waits for it: it hands a notice over, and what there is no room for is
 * counted. What lasts when tracing ends is resolved then, with a sentence that says so: nobody
 * would resolve it later. */
#pragma once

#include "alert/alert_body.h"
#include "alert/alert_config.h"
#include "model/incident.h"

/* The file of `trace --notify`: who is told of this node's incidents, and from which
 * severity on.
 *
 *   min_severity: HIGH     # LOW, MEDIUM (default), HIGH, CRITICAL
 *   alerts: …              # alert/alert_config.h. */

struct alert_file {
	struct alert_values values;
	struct alert_list alerts;
	enum severity least;
};

/* alert_file_read - @path, or if @text is not NULL that as its content. Exit code 78 and a sentence with
 * file and line. The caller frees it with alert_file_free(). */
int alert_file_read(const char *path, const char *text, size_t len, struct alert_file **ret,
	struct errinfo *reterr);
DECLARE_FREE(struct alert_file, alert_file_free)
#define ALERTER_OPEN_MAX 256 /* incidents that last */

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

/* An incident of this node as what an alert is about. Pure. */

/* incident_alert_id - of an incident's id: what alerts know it by. */
uint64_t incident_alert_id(const struct incident *i);

/* incident_alert - @node is where it happens. The event is the incident's id and the node: receivers hear
 * of many. */
void incident_alert(const struct incident *i, const char *node, struct alert_matter *ret);
