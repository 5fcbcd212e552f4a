/* SPDX-License-Identifier: Apache-2.0 */
/* sql_code.h - SQLite's result codes as errno and sentence; private to sql/. */
#pragma once

#include "base/errinfo.h"

/* sql_code_error - @code (SQLITE_*) that occurred with @path. @system_err is the errno beneath it,
 * @what SQLite's own words. Returns 0 for OK, ROW and DONE. */
int sql_code_error(
	int code, int system_err, const char *path, const char *what, struct errinfo *reterr);
