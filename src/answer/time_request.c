/* SPDX-License-Identifier: Apache-2.0 */
/* time_request.c - see time_request.h. Times are those of the recording, so that a file saved
 * yesterday answers as it did then. */
#include "answer/time_request.h"

#include <errno.h>

#include "base/text.h"
#include "base/when.h"

static int parse(const char *name, const char *text, const struct time_end *end, bool is_end,
	int64_t *ret_ns, struct errinfo *reterr)
{
	struct when_span span = {end->range.first_ns, end->range.last_ns};
	_cleanup_buf_ struct buf b = BUF_INIT(1024);

	if (!text || !text[0] || when_parse(text, &span, is_end, ret_ns) == 0)
		return 0;
	text_escape_terminal(&b, text);
	return errinfo_set(reterr, -EINVAL,
		"%s%s: '%.100s' is not a time: give 2026-03-24T13:48:44Z, '2026-03-24 13:48:44' or "
		"13:48:44 (local), or seconds, ms or ns since 1970",
		end->flag, name, buf_str(&b));
}

int time_request_resolve(const struct time_request *t, const struct time_end *end,
	uint64_t default_ns, struct scope *ret, struct errinfo *reterr)
{
	bool is_live = end->live && end->live_ns;
	int64_t from = 0, to = 0, last = MAX(end->range.last_ns, is_live ? end->live_ns : 0);
	uint64_t since = t->since_ns;
	int r = parse("from", t->from, end, false, &from, reterr);

	if (r == 0)
		r = parse("to", t->to, end, true, &to, reterr);
	if (r < 0)
		return r;
	if (to && from > to)
		return errinfo_set(reterr, -EINVAL, "%sfrom is after %sto", end->flag, end->flag);
	if (time_request_is_empty(t)) {
		since = default_ns ? default_ns : end->live ? TIME_REQUEST_LIVE_NS : 0;
		last = is_live ? end->live_ns : last;
	}
	ret->to_ns = to ? to : last;
	ret->from_ns = from ? from : to && !since ? end->range.first_ns : 0;
	if (!from && since && last)
		ret->from_ns =
			MAX(ret->to_ns - (int64_t)MIN(since, (uint64_t)INT64_MAX / 2), INT64_C(1));
	/* What is asked for and not there would only be empty space. */
	if (!from)
		ret->from_ns = MAX(ret->from_ns, MIN(end->range.first_ns, ret->to_ns));
	return 0;
}
