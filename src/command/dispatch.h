/* SPDX-License-Identifier: Apache-2.0 */
/* dispatch.h - from argv to a command's row and its exit code. */
#pragma once

#include "base/errinfo.h"
#include "command/program.h"

/* dispatch_main - the main() of a program: dispatch_run() in a process that is set up for it.
 *
 * SIGPIPE is ignored: a closed stdout shows as EPIPE, and dispatch_flush() ends quietly. File
 * descriptors 0 to 2 always exist, so that a file opened later never becomes stdout. */
int dispatch_main(const struct program *p, int argc, char **argv);

/* dispatch_run - runs the command of @p that argv names and returns the process's exit code. */
int dispatch_run(const struct program *p, int argc, char **argv);

/* dispatch_fail - prints "PROGRAM: <sentence>" on stderr and returns the exit code of @err. */
int dispatch_fail(const struct errinfo *e, int err);

/* dispatch_serve - for a command that runs as a service, at its beginning: finds the service manager
 * that base/notify.h tells how it is doing. One that cannot be reached is a warning. */
void dispatch_serve(void);

/* dispatch_flush - what is left to do for stdout at the end: @code, or EXIT_IO with a sentence if
 * the output could not be written. A reader that went away (head, a closed pager) is no error. */
int dispatch_flush(int code);
