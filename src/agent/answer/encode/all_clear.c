/* SPDX-License-Identifier: Apache-2.0 */
/* all_clear.c - see all_clear.h. Silence means little where nobody looked: each thing that detectors
 * look at is either counted or named as missing, with the reason. What was lost, thinned or pruned
 * is said by the lines above it. Nothing is claimed about calls one by one: a single slow call is
 * no incident. */
#include "agent/answer/encode/all_clear.h"

#include "agent/answer/encode/paragraph.h"
#include "base/text.h"

static void put_examined(struct buf *b, const struct examined *e)
{
	const struct {
		uint64_t n;
		const char *what;
	} rows[] = {{e->calls, "calls"}, {e->stays, "stays off the CPU"}, {e->steps, "steps"},
		{e->readings, "readings of the GPU"}, {e->collectives, "collectives"}};
	char text[TEXT_PLURAL_MAX];
	const char *comma = "";

	buf_puts(b, "No problems found in ");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].n) {
			buf_printf(b, "%s%s", comma,
				text_format_plural(text, rows[i].n, rows[i].what));
			comma = ", ";
		}
	buf_puts(b, comma[0] ? ". " : "the events. ");
}

static void put_missing(struct buf *b, const struct examined *e)
{
	const struct {
		bool is_missing;
		const char *what;
	} rows[] = {{!e->stays, "delays by CPU and disk (no stays off the CPU recorded)"},
		{!e->marks_pauses, "pauses between calls (this recording does not mark them)"},
		{!e->steps, "steps (none recognised)"},
		{!e->readings, "clocks, memory and errors of the GPU (no readings)"},
		{!e->groups, "limits of containers (no control group could be read)"},
		{!e->collectives, "ranks (no collectives recorded)"}};
	const char *comma = "Not examined: ";

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].is_missing) {
			buf_printf(b, "%s%s", comma, rows[i].what);
			comma = ", ";
		}
	buf_puts(b, comma[0] == ',' ? "." : "");
}

void all_clear_put(struct buf *b, const struct report_scope *s, size_t width)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1024);

	put_examined(&text, &s->examined);
	put_missing(&text, &s->examined);
	paragraph_put(b, width, "  ", buf_str(&text));
}
