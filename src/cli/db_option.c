/* SPDX-License-Identifier: Apache-2.0 */
/* db_option.c - see db_option.h. Times are those of the recording, so that a file saved yesterday
 * answers as it did then. */
#include "cli/db_option.h"

#include <errno.h>
#include <unistd.h>

#include "agent/store/owner.h"

int db_option_path(
	const char *given, char **ret_default, const char **ret_path, struct errinfo *reterr)
{
	int r;

	if (given) {
		*ret_path = given;
		return 0;
	}
	r = store_default_path(ret_default, reterr);
	if (r < 0)
		return r;
	*ret_path = *ret_default;
	if (access(*ret_path, F_OK) < 0 && errno == ENOENT)
		return errinfo_set(reterr, -ENOENT,
			"nothing has been recorded yet (%s does not exist): `sudo ingero trace` "
			"records, --db names another file, `ingero demo` shows an example",
			*ret_path);
	return 0;
}

int db_option_since(
	const char *path, uint64_t since_ns, struct nodedb_filter *f, struct errinfo *reterr)
{
	struct nodedb_filter newest = {.last = 1};
	struct nodedb_content c = {0};
	int r;

	if (!since_ns)
		return 0;
	r = nodedb_read(path, &newest, &c, reterr);
	if (r < 0)
		return r;
	f->from_ns = c.event_count ? c.last_ns - (int64_t)since_ns : 0;
	nodedb_content_done(&c);
	return 0;
}
