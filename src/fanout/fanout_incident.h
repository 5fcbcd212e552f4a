/* SPDX-License-Identifier: Apache-2.0 */
/* fanout_incident.h - what a node found: its incidents, or the verdicts stored in its recording.
 *
 * All texts are a stranger's: whoever prints them escapes them for the place they go to. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/errinfo.h"
#include "model/incident.h"

#define FANOUT_INCIDENTS_MAX 100         /* of a node; more are counted */
#define FANOUT_INCIDENT_JSON (256 << 10) /* bytes of one as JSON */

struct fanout_incident {
	char node[256];           /* whose incident: as it says, else the name of who answered */
	char address[272];        /* of who answered; nobody can forge that */
	size_t index;             /* of who answered, in the list of nodes */
	bool stored;              /* a stored verdict (a "causal chain"): less is known of it */
	struct incident incident; /* unit points into this struct */
	char unit[32];
	char op[64];         /* name of the slow call; "": not known */
	char where[512];     /* "forward() at train.py:142"; "": not known */
	double where_share;  /* of the excess, 0..1 */
	int64_t detected_ns; /* stored: when; 0: not known */
	char *json;          /* all that the node said about it, as one compact JSON object
				that is valid, with "node" and "address" in front */
};

struct fanout_incidents { /* worst first */
	struct fanout_incident **items;
	size_t count;
	size_t left_out; /* beyond FANOUT_INCIDENTS_MAX of a node */
};
void fanout_incidents_done(struct fanout_incidents *l);

struct fanout_extent { /* what a node looked at */
	bool known;
	uint64_t events;
	double completeness; /* 0..1: share of hits that are in the data; -1: not known */
};

struct fanout_source { /* who answered */
	const char *address, *name;
	size_t index;
};

/* fanout_incident_read - @body is a reply of GET /api/v1/incidents or /api/v1/chains (which one it
 * is shows in its keys): appends to @list. -EPROTO with a sentence; -ENOMEM; then @list is as
 * before. */
int fanout_incident_read(const char *body, size_t len, const struct fanout_source *who,
	struct fanout_incidents *list, struct fanout_extent *ret_extent, struct errinfo *reterr);

/* fanout_incident_sort - severity, then lost time, then how far above the ordinary, then the order
 * of nodes. */
void fanout_incident_sort(struct fanout_incidents *l);
