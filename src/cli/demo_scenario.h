/* SPDX-License-Identifier: Apache-2.0 */
/* demo_scenario.h - what `ingero demo` can show: a table of scenarios, each a table of acts.
 *
 * To add one: its acts and row in demo_scenario.c, its name in the list of recordings (recording.h)
 * and `tools/record-demo NAME`. */
#pragma once

#include <stdbool.h>

#include "cli/measure.h"
#include "cli/stage.h"

struct act {
	const char *says;
	unsigned seconds;
	const char *program;          /* NULL: nothing is started */
	const char *args[STAGE_ARGS]; /* NAME=VALUE at their beginning is its environment */
	bool traced; /* a CUDA process: it is there, and waits, before the tracer starts */
	bool stays;  /* runs on through the later acts */
};

struct demo_scenario {
	const char *name;
	const char *aliases[3];
	const char *title;
	const struct act *acts; /* ended by an act without text */
	bool dataset;           /* acts read %w/dataset */
	enum measure measure;
	const struct nodedb_packed *recording; /* the same, recorded */
};

extern const struct demo_scenario demo_scenarios[]; /* ended by one without a name */

/* demo_scenario_find - by name or alias; NULL if there is none. */
const struct demo_scenario *demo_scenario_find(const char *name);
