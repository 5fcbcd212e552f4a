/* SPDX-License-Identifier: Apache-2.0 */
/* incident_tracker.h - incidents over time: what one look at the last minutes found is, as a rule, what the
 * look before found too, grown. Pure: the caller brings the time.
 *
 * Life of a case: found (new); found again with later calls (grown); quiet for INCIDENT_TRACKER_QUIET_NS in
 * INCIDENT_TRACKER_UPDATES looks in a row, or not found in as many (resolved). Its id, its beginning and its
 * worst figures stay; nothing is ever taken back. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/incident.h"

#define INCIDENT_TRACKER_MAX      128 /* 1 MB; beyond, the longest resolved goes */
#define INCIDENT_TRACKER_QUIET_NS ((int64_t)(30 * NS_PER_S)) /* the pause that ends an incident */
#define INCIDENT_TRACKER_UPDATES  2

enum incident_change { INCIDENT_NEW, INCIDENT_GROWN, INCIDENT_RESOLVED };

struct incident_entry {
	struct incident incident; /* .resolved is set once it is over */
	wall_time detected;
	unsigned quiet_looks;
	bool was_found; /* by the present look */
};

struct incident_tracker {
	struct incident_entry *entries; /* in the order in which they were found */
	size_t count, room;
	uint64_t left_out; /* new ones for which there was no room */
};

typedef void incident_tracker_sink(
	void *arg, const struct incident *i, wall_time detected, enum incident_change change);

/* incident_tracker_update - enters what one look found. Unexplained slowness (LOW) opens no case. Resolved
 * cases are forgotten when they ended before @forget_before. 0 or -ENOMEM. */
int incident_tracker_update(struct incident_tracker *b, const struct incident *found, size_t count,
	wall_time now, wall_time forget_before, incident_tracker_sink *sink, void *arg);
/* incident_is_told - whether one of @list, the answer over the whole recording, says of the same process what was @said
 * while recording: the same problem, loss, culprit or line. What is not told is over, or was not borne out: say so. */
bool incident_is_told(const struct incident *said, const struct incident *list, size_t n);
void incident_tracker_done(struct incident_tracker *b);

const char *incident_change_name(enum incident_change c); /* "new" */
