/* SPDX-License-Identifier: Apache-2.0 */
/* accounting.c - see accounting.h: what the books cannot say, in words. */
#include "model/accounting.h"

#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"

static void put_moment(struct buf *b, int64_t ns)
{
	time_t seconds = (time_t)(ns / (int64_t)NS_PER_S);
	char text[64];
	struct tm tm;

	if (ns > 0 && localtime_r(&seconds, &tm) &&
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %Z", &tm))
		buf_printf(b, " at about %s", text);
}

bool accounting_put_unclean(const struct accounting *books, struct buf *b)
{
	char text[TEXT_MAX];
	uint64_t in_flight = 0;

	if (!books->unclean)
		return false;
	for (int i = 0; i < WIRE_SOURCE_MAX; i++)
		in_flight += account_in_flight(&books->source[i]);
	if (books->unclean == 1)
		buf_puts(b, "the recording ended");
	else
		buf_printf(b, "%u sessions of the recording ended, the last",
			(unsigned)books->unclean);
	buf_puts(b, " without a clean stop");
	put_moment(b, books->unclean_ns);
	buf_puts(b, ": events after the last commit are missing");
	if (in_flight)
		buf_printf(
			b, ", and so are %s events in flight", text_format_count(text, in_flight));
	buf_puts(b, "; completeness unknown");
	return true;
}

bool accounting_put_launches(const struct accounting *books, struct buf *b)
{
	char text[TEXT_MAX];

	if (books->launch_error <= 0)
		return false;
	buf_printf(b, "launches were counted %s of the time and estimated between, ",
		text_format_percent(text, books->launch_watched));
	if (books->launch_error < 1)
		buf_printf(b, "±%s", text_format_percent(text, books->launch_error));
	else
		buf_puts(b, "too little was seen to say how many there were");
	return true;
}
