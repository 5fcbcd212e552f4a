/* SPDX-License-Identifier: Apache-2.0 */
/* trace_command.h - `ingero trace -- COMMAND`: this process starts the command and watches over it, a second one
 * (the tracer) traces it.
 *
 *   begin          the command is executed, and held before its first instruction (trace_command.h)
 *   fork           the tracer begins; it says when its probes are in place, and what there is to explain
 *   supervise      the command runs; signals that are sent to us are passed on; when it has ended, the tracer is told
 *                  to end, and `ingero explain` says what it found
 *
 * The tracer gives up its rights (docs/adr/0011); this process keeps root's and reads nothing but waitpid(2), signals
 * and bytes of the tracer's. If one of the two is killed, the other does not hang: the command runs on untraced, or
 * the recording is closed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/errinfo.h"
#include "cli/trace_settings.h"
#include "record/discover/discover.h"

/* For whom `ingero trace -- COMMAND` runs the command: the user who typed it, with the
 * environment that it was typed in. */

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

struct trace_command {
	char **argv; /* ends with NULL; argv NULL: there is no command */
	struct caller caller;
	char *folder;
	const char *db; /* as it was given */
	struct discover_command facts;
	uint32_t pids[OPTION_PIDS_MAX + 1];
	pid_t pid, tracer;
	int channel; /* between the two processes */
};

/* trace_command_begin - start it, and make @plan one that traces it, its children and the processes of --pid. */
int trace_command_begin(struct trace_command *c, const struct trace_settings *s,
	struct trace_plan *plan, struct errinfo *reterr);

/* trace_command_fork - 0 in the tracer, 1 in the process that is to call trace_command_supervise(). */
int trace_command_fork(struct trace_command *c, struct errinfo *reterr);

/* trace_command_supervise - returns the exit code: the command's, or the tracer's if that could not start. */
int trace_command_supervise(struct trace_command *c, const char *db_path);

/* For the tracer: probes are in place; it has ended, with or without a recording to explain; is it to end? */
void trace_command_ready(struct trace_command *c);
void trace_command_ended(struct trace_command *c, bool recorded);
bool trace_command_is_over(const struct trace_command *c);

void trace_command_done(struct trace_command *c);

/* A program that is started, but held back before its first instruction, so that probes can be put in
 * place before it makes its first call.
 *
 * It is held by ptrace(2) at the end of execve(2): that it can be executed is known by then, and its process is its
 * own in everything that /proc shows. Whoever holds it is the thread that began it. It dies with this process as long
 * as it is held; afterwards nothing ties the two but that it is a child. */

#define LAUNCH_NOT_FOUND      127 /* exit codes, as shells have them */
#define LAUNCH_NOT_EXECUTABLE 126
#define LAUNCH_SIGNAL         128 /* plus its number */

/* launch_begin - start argv[0], looked for in the PATH of @c's environment, as @c. It has our standard descriptors,
 * but for stdout, which is @stdout_fd. Signals are as at the start of this program, none is blocked.
 * Fails with LAUNCH_NOT_FOUND or LAUNCH_NOT_EXECUTABLE as the exit code if it cannot be executed. */
int launch_begin(char *const *argv, const struct caller *c, int stdout_fd, pid_t *ret_pid,
	struct errinfo *reterr);

/* launch_release - let it run. */
int launch_release(pid_t pid);

/* launch_abort - end it while it is held: it has not run at all. */
void launch_abort(pid_t pid);

/* launch_exit_code - what a shell would make of a status of waitpid(2). */
int launch_exit_code(int status);
