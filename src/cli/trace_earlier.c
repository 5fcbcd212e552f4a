/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/trace_earlier.h"

#include <unistd.h>

#include "store/read/nodedb_snapshot.h"
#include "base/text.h"
#include "base/clock.h"

struct found {
	struct nodedb_totals totals;
	struct nodedb_range range;
};

static int look(struct nodedb_snapshot *l, void *arg, struct errinfo *reterr)
{
	struct found *f = arg;
	int r = nodedb_snapshot_totals(l, &f->totals, reterr);

	return r < 0 ? r : nodedb_snapshot_range(l, &f->range, reterr);
}

void trace_earlier(struct buf *b, const char *path)
{
	char events[TEXT_PLURAL_MAX], runs[TEXT_PLURAL_MAX], since[WHEN_UTC_MAX];
	struct found f = {0};
	struct errinfo e = {0};

	if (access(path, F_OK) < 0 || nodedb_snapshot_read(path, look, &f, &e) < 0 ||
		!f.totals.sessions || !f.range.first_ns)
		return;
	buf_printf(b,
		"  Already in it: %s%s of %s, since %.19sZ; `ingero explain` shows the newest run, `--all` all of them\n",
		f.totals.events_exact ? "" : "about ",
		text_format_plural(events, f.totals.events, "events"),
		text_format_plural(runs, f.totals.sessions, "runs"),
		when_utc(since, (wall_time){f.range.first_ns}));
}
