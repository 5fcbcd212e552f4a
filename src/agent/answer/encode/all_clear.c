/* SPDX-License-Identifier: Apache-2.0 */
/* all_clear.c - see all_clear.h. Silence means little where nobody looked: each thing that detectors
 * look at is either counted or named as missing, with the reason. What was lost, thinned or pruned
 * is said by the lines above it. Steps that were slow from the first to the last have nothing slower than
 * usual: that the GPU has little to do is said. Nothing is claimed about calls one by one: a single slow call is
 * no incident. */
#include "agent/answer/encode/all_clear.h"

#include <string.h>

#include "agent/answer/encode/paragraph.h"
#include "base/text.h"

#define IDLE_GPU   0.5
#define HOST_BOUND 0.8

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

static bool is_host_side(enum account_line l)
{
	return l == ACCOUNT_HOST || l == ACCOUNT_LAUNCH || l == ACCOUNT_CALL || l == ACCOUNT_GC;
}

/* Nothing is slower than it was, and yet the GPU has little to do: the host decides how long a step is. */
static void put_limit(struct buf *b, const struct report_scope *s)
{
	const struct step_account *a = s->accounts.count ? &s->accounts.items[0] : NULL;
	uint64_t all = 0, host = 0;
	char text[TEXT_MAX], busy[TEXT_MAX];

	if (!a || a->origin > STEP_BY_LOADER || !s->examined.has_busy ||
		s->examined.busy > IDLE_GPU)
		return;
	for (int i = 0; i < ACCOUNT_LINES; i++) {
		all += a->total_ns[i];
		host += is_host_side((enum account_line)i) ? a->total_ns[i] : 0;
	}
	if (!all || (double)host < HOST_BOUND * (double)all)
		return;
	buf_puts(b, " The steps of ");
	text_escape_terminal_len(b, a->comm, strnlen(a->comm, COMM_LEN));
	buf_printf(b,
		" (PID %u) are limited by the host: %s of their time is its code and launching kernels, and a GPU is busy for %s of it at most. Fewer and larger kernels (torch.compile, CUDA graphs, a larger batch) would make them faster; `ingero explain --steps` shows where the time goes.",
		a->pid, text_format_percent(text, (double)host / (double)all),
		text_format_percent(busy, s->examined.busy));
}

void all_clear_put(struct buf *b, const struct report_scope *s, size_t width)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1024);

	put_examined(&text, &s->examined);
	put_missing(&text, &s->examined);
	put_limit(&text, s);
	paragraph_put(b, width, "  ", buf_str(&text));
}

void all_clear_put_limit(struct buf *b, const struct report_scope *s, size_t width)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1024);

	put_limit(&text, s);
	if (!text.len)
		return;
	buf_puts(b, "\n");
	paragraph_put(b, width, "", buf_str(&text) + 1);
}
