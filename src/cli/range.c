/* SPDX-License-Identifier: Apache-2.0 */
/* range.c - see range.h. */
#include "cli/range.h"

#include <errno.h>
#include <stdio.h>

#include "agent/store/write/lock.h"
#include "agent/store/read/nodedb_snapshot.h"

static int find_range(struct nodedb_snapshot *s, void *arg, struct errinfo *reterr)
{
	return nodedb_snapshot_range(s, arg, reterr);
}

int range_check(const struct time_request *asked, struct errinfo *reterr)
{
	if (asked->all && (asked->from || asked->to || asked->since_ns))
		return errinfo_set(
			reterr, -EINVAL, "give either --all or a time (--from, --to, --since)");
	return 0;
}

int range_resolve(const char *path, const struct time_request *asked, struct nodedb_filter *f,
	pid_t *ret_note, struct errinfo *reterr)
{
	struct time_end end = {.flag = "--"};
	struct nodedb_range events = {0};
	bool given = !time_request_is_empty(asked);
	int r;

	r = range_check(asked, reterr);
	if (r < 0)
		return r;
	*ret_note = given || f->last ? 0 : store_lock_holder(path);
	if (asked->all || (!given && !*ret_note))
		return 0;
	end.live = *ret_note != 0;
	r = nodedb_snapshot_read(path, find_range, &end.range, reterr);
	if (r == 0 && end.live)
		r = nodedb_range(path, &events, reterr);
	end.live_ns = events.last_ns;
	if (r == 0)
		r = time_request_resolve(asked, &end, 0, &f->scope, reterr);
	if (!asked->to || !asked->to[0])
		f->scope.to_ns =
			0; /* a verdict may be found after the last event that it is about */
	return r;
}

void range_print(pid_t note)
{
	if (note)
		fprintf(stderr,
			"ingero: process %ld is recording to this file: showing the last 5m; use --all for all of it\n",
			(long)note);
}
