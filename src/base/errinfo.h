/* SPDX-License-Identifier: Apache-2.0 */
/* errinfo.h - the sentence for people that travels beside a negative errno.
 *
 * A function that can fail for a reason the user should read takes a struct errinfo *reterr as its
 * last argument (NULL is allowed). The innermost function that knows the reason writes it; callers
 * pass it on untouched or prefix it. Commands print it once, as "ingero: <text>".
 *
 * Exit codes are part of the contract; errinfo_exit_code() maps an errno to one. */
#pragma once

#include "base/macros.h"

enum exit_code {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_PARTIAL = 2,     /* some nodes answered, some did not */
	EXIT_USAGE = 64,      /* unknown command, flag or value */
	EXIT_BAD_DATA = 65,   /* not a database, damaged, newer schema */
	EXIT_NO_INPUT = 66,   /* no such file, process or library */
	EXIT_NO_FEATURE = 69, /* the kernel lacks something that is needed */
	EXIT_BUG = 70,        /* an internal rule was broken */
	EXIT_NO_CREATE = 73,  /* an output file could not be created */
	EXIT_IO = 74,         /* reading or writing failed, or the disk is full */
	EXIT_TRY_AGAIN = 75,  /* locked or busy */
	EXIT_NO_PERMISSION = 77,
	EXIT_CONFIG = 78,
};

struct errinfo {
	int exit_code; /* 0: derive it from the errno */
	char text[512];
};

/* errinfo_set - write the sentence and return @err, so that a failing path is one line.
 * The text is replaced, never appended to; @reterr may be NULL. */
int errinfo_set(struct errinfo *reterr, int err, const char *fmt, ...) _printf_(3, 4);

/* errinfo_set_exit - as errinfo_set(), with an exit code the errno alone would not give. */
int errinfo_set_exit(struct errinfo *reterr, enum exit_code code, int err, const char *fmt, ...)
	_printf_(4, 5);

/* errinfo_exit_code - the process exit code for a failure @err (negative errno). */
int errinfo_exit_code(const struct errinfo *e, int err);
