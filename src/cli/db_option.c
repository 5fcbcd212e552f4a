/* SPDX-License-Identifier: Apache-2.0 */
/* db_option.c - see db_option.h. */
#include "cli/db_option.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/path_user.h"

/* Of ingero-trace.service. Its folder is closed to others; it is nobody's own, so it is never taken unasked. */
#define SERVICE_DB "/var/lib/ingero/ingero.db"

/* Names are typed without their end. */
static int suggest_ending(const char *given, struct errinfo *reterr)
{
	char longer[PATH_MAX];

	if (access(given, F_OK) == 0 || errno != ENOENT ||
		snprintf(longer, sizeof(longer), "%s.db", given) >= (int)sizeof(longer) ||
		access(longer, F_OK) < 0)
		return 0; /* whoever opens it says what is wrong */
	return errinfo_set(reterr, -ENOENT, "%s does not exist: did you mean %s?", given, longer);
}

int db_option_path(
	const char *given, char **ret_default, const char **ret_path, struct errinfo *reterr)
{
	int r;

	if (given) {
		*ret_path = given;
		return suggest_ending(given, reterr);
	}
	r = store_default_path(ret_default, reterr);
	if (r < 0)
		return r;
	*ret_path = *ret_default;
	if (access(*ret_path, F_OK) == 0 || errno != ENOENT)
		return 0;
	if (access(SERVICE_DB, F_OK) == 0 || errno == EACCES)
		return errinfo_set(reterr, -ENOENT,
			"you have no recording of your own (%s does not exist): that of the service is " SERVICE_DB
			", choose it with --db, with sudo",
			*ret_path);
	return errinfo_set(reterr, -ENOENT,
		"no recording yet (%s does not exist): start one with `sudo ingero trace`, choose another file with --db, or see an example with `ingero demo`",
		*ret_path);
}
