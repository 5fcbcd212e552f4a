/* SPDX-License-Identifier: Apache-2.0 */
/* range.c - see range.h. */
#include "cli/range.h"

#include <errno.h>
#include <stdio.h>

#include "agent/store/lock.h"
#include "base/text.h"
#include "base/when.h"

#define LIVE_NS (300 * (int64_t)NS_PER_S)

static int parse(const char *name, const char *text, const struct nodedb_range *range, bool end,
	int64_t *ret_ns, struct errinfo *reterr)
{
	struct when_span span = {range->first_ns, range->last_ns};
	_cleanup_buf_ struct buf b = BUF_INIT(1024);
	int r;

	if (!text)
		return 0;
	r = when_parse(text, &span, end, ret_ns);
	if (r == 0)
		return 0;
	text_escape_terminal(&b, text);
	return errinfo_set(reterr, -EINVAL,
		"--%s: '%.100s' is not a time: give 2026-03-24T13:48:44Z, '2026-03-24 13:48:44' or "
		"13:48:44 (local), or seconds, ms or ns since 1970",
		name, buf_str(&b));
}

static int set_times(const struct range_wish *wish, const struct nodedb_range *range,
	struct nodedb_filter *f, struct errinfo *reterr)
{
	int r = parse("from", wish->from, range, false, &f->from_ns, reterr);

	if (r == 0)
		r = parse("to", wish->to, range, true, &f->to_ns, reterr);
	if (r < 0)
		return r;
	if (wish->since_ns && !wish->from && range->last_ns)
		f->from_ns = MAX(range->last_ns - (int64_t)wish->since_ns, INT64_C(1));
	if (f->to_ns && f->from_ns > f->to_ns)
		return errinfo_set(reterr, -EINVAL, "--from is after --to");
	return 0;
}

int range_resolve(const char *path, const struct range_wish *wish, struct nodedb_filter *f,
	pid_t *ret_note, struct errinfo *reterr)
{
	bool given = wish->from || wish->to || wish->since_ns;
	struct nodedb_range range = {0};
	pid_t writer = 0;
	int r;

	if (wish->all && given)
		return errinfo_set(
			reterr, -EINVAL, "give either --all or a time (--from, --to, --since)");
	if (!given && !wish->all && !f->last)
		writer = store_lock_holder(path);
	*ret_note = writer;
	if (!given && !writer)
		return 0;
	r = nodedb_range(path, &range, reterr);
	if (r < 0)
		return r;
	if (writer) {
		f->from_ns = range.last_ns ? MAX(range.last_ns - LIVE_NS, INT64_C(1)) : 0;
		return 0;
	}
	return set_times(wish, &range, f, reterr);
}

void range_tell(pid_t note)
{
	if (note)
		fprintf(stderr,
			"ingero: process %ld is recording to this file: showing the last 5m; use --all for all of it\n",
			(long)note);
}
