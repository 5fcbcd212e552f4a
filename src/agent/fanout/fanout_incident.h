/* SPDX-License-Identifier: Apache-2.0 */
/* fanout_incident.h - what a node found: its incidents, or the verdicts stored in its recording.
 *
 * All texts are a stranger's: whoever prints them escapes them for the place they go to. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "model/incident.h"

#define FANOUT_INCIDENTS_MAX 100         /* of a node; more are counted */
#define FANOUT_INCIDENT_JSON (256 << 10) /* bytes of one as JSON */

struct fanout_incident {
	char node[256];            /* whose incident: as it says, else the name of who answered */
	char address[272];         /* of who answered; nobody can forge that */
	size_t index;              /* of who answered, in the list of nodes */
	bool stored;               /* a stored verdict (a "causal chain"): less is known of it */
	struct incident incident;  /* unit points into this struct */
	char unit[32];
	char op[64];               /* name of the slow call; "": not known */
	char where[512];           /* "forward() at train.py:142"; "": not known */
	double where_share;        /* of the excess, 0..1 */
	int64_t detected_ns;       /* stored: when; 0: not known */
	char *json;                /* all that the node said about it, as one compact JSON object
				      that is valid, with "node" and "address" in front */
};

void fanout_incident_free(struct fanout_incident *i);
DEFINE_CLEANUP(struct fanout_incident *, fanout_incident_free)

struct fanout_incidents { /* worst first */
	struct fanout_incident **items;
	size_t count;
	size_t left_out; /* beyond FANOUT_INCIDENTS_MAX of a node */
};
void fanout_incidents_done(struct fanout_incidents *l);
