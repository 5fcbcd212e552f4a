/* SPDX-License-Identifier: Apache-2.0 */
/* demo_scenario.h - what `ingero demo` can show: a table of scenarios, each a table of acts.
 *
 * To add one: its acts and row in demo_scenario.c, its name in the list of recordings (demo_scenario.h)
 * and `tools/record-demo NAME`. */
#pragma once

#include <sys/types.h>

#include "base/errinfo.h"
#include "store/nodedb.h"
#include "diagnose/recording.h"
#include "base/buf.h"
#include "model/incident.h"

/* The one figure that a demo is about, taken from what was recorded. */

enum measure {
	MEASURE_SLOWDOWN,    /* how much slower steps were, and beside whom */
	MEASURE_FIRST_CALLS, /* the first call of an op against later ones */
	MEASURE_COPIES,      /* share of the time that copies take */
	MEASURE_PERIOD,      /* slow calls that come back every so many calls */
};

/* measure_put - appends a sentence like "cudaMalloc 47x slower (52µs -> 2.5ms) every 203 calls".
 * @list are the incidents of @rec, worst first. False, with nothing appended, if there is nothing
 * of the kind in @rec. Names of traced processes are in it as they are: escape what is printed. */
bool measure_put(struct buf *out, enum measure m, const struct recording *rec,
	const struct incident *list, size_t count);

/* The actors of a demo: programs of the stand-in GPU that run beside the tracer. */

#define STAGE_ACTORS 8
#define STAGE_ARGS   24

struct stage {
	char sim_dir[1024]; /* where the stand-in GPU's programs are */
	char work_dir[64];  /* temporary, removed by stage_close() */
	pid_t actors[STAGE_ACTORS];
	size_t count;
};

/* stage_find_sim - the folder of the stand-in GPU: $INGERO_SIM_DIR, beside the program, or
 * installed. -ENOENT with a sentence if there is none. */
int stage_find_sim(char *out, size_t size, struct errinfo *reterr);

/* stage_open - find the programs and make a working folder. */
int stage_open(struct stage *s, struct errinfo *reterr);

/* stage_make_dataset - the file `dataset` in the working folder, which workloads read their batches from. */
int stage_make_dataset(const struct stage *s, struct errinfo *reterr);

/* stage_start - run @program of the stand-in GPU with @args (ended by NULL). "%w" in an argument
 * stands for the working folder; NAME=VALUE before the other arguments is put into the program's
 * environment, as in a shell. "X.py" is a program in Python; without Python it is X, which does the
 * same and takes the same arguments. Returns the actor's index. */
int stage_start(
	struct stage *s, const char *program, const char *const *args, struct errinfo *reterr);

/* stage_wait_file - wait until an actor has made the file @name in the working folder.
 * -ETIMEDOUT with a sentence after 10 s. stage_touch() makes one. */
int stage_wait_file(const struct stage *s, const char *name, struct errinfo *reterr);
void stage_touch(const struct stage *s, const char *name);

/* stage_end - end one actor (SIGTERM, then SIGKILL after 2 s) and wait for it. */
void stage_end(struct stage *s, size_t actor);
pid_t stage_pid(const struct stage *s, size_t actor);

/* stage_close - end all actors and remove the working folder. */
void stage_close(struct stage *s);

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
