/* SPDX-License-Identifier: Apache-2.0 */
/* stage.h - the actors of a demo: programs of the stand-in GPU that run beside the tracer. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/errinfo.h"

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
