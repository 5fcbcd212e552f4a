/* SPDX-License-Identifier: Apache-2.0 */
/* caller.h - for whom `ingero trace -- COMMAND` runs the command: the user who typed it, with the
 * environment that it was typed in. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/errinfo.h"

struct caller {
	bool is_other; /* than the user this program runs as: under sudo */
	uid_t uid;
	gid_t gid;
	char *name;  /* NULL: the user has none */
	char **envp; /* ends with NULL */
	size_t env_count, env_room;
	char note[160]; /* "", or why that is not the environment sudo was called with */
};

#define CALLER_INIT ((struct caller){0})

/* caller_find - who it is; *ret is to be released with caller_done() in any case. Under sudo it is the user who
 * called it, and the environment is the one that the sudo process above this one was started with, with what its
 * command line sets (sudo NAME=VALUE ingero …). */
int caller_find(struct caller *ret, struct errinfo *reterr);
void caller_done(struct caller *c);

/* caller_variable - the value of @name in that environment; NULL: not set. */
const char *caller_variable(const struct caller *c, const char *name);

/* caller_become - this process becomes the user, for good, with no right or file that the user would not have.
 * For one that is about to execute the command. */
int caller_become(const struct caller *c);

/* The pure parts. caller_take_environ - sets what @text holds, as /proc/PID/environ does.
 * caller_take_assignments - sets the assignments that the command line @sudo (as /proc/PID/cmdline holds it) has
 * right before its last @own_words words, which are ours. -ENOMEM; -E2BIG: too many. */
int caller_take_environ(struct caller *c, const char *text, size_t len);
int caller_take_assignments(struct caller *c, const char *sudo, size_t len, size_t own_words);
