/* SPDX-License-Identifier: Apache-2.0 */
/* dispatch.h - from argv to a command's row and its exit code. */
#pragma once

#include "base/errinfo.h"

/* dispatch_run - runs the command that argv names and returns the process's exit code. */
int dispatch_run(int argc, char **argv);

/* dispatch_fail - prints "ingero: <sentence>" on stderr and returns the exit code of @err. */
int dispatch_fail(const struct errinfo *e, int err);

/* dispatch_flush - what is left to do for stdout at the end: @code, or EXIT_IO with a sentence if
 * the output could not be written. A reader that went away (head, a closed pager) is no error. */
int dispatch_flush(int code);
