/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/findings/doing.h"

#include <errno.h>
#include <stdio.h>

#include "diagnose/accounts/path.h"
#include "diagnose/chains/delay.h"
#include "base/macros.h"
#include "base/text.h"

#define TOLD_SHARE 0.3 /* of the time: less says nothing */

static const struct tally_part *largest_part(const struct tally *t, int line)
{
	const struct tally_part *best = NULL;

	for (size_t i = 0; i < t->count; i++)
		if (t->parts[i].line == line && t->parts[i].culprit[0] &&
			(!best || t->parts[i].ns > best->ns))
			best = &t->parts[i];
	return best;
}

static void describe(const struct tally *t, uint64_t total, char *out, size_t size)
{
	const struct tally_part *p;
	char share[TEXT_MAX], who[64] = "";
	int line = 0;

	for (int i = 0; i < ACCOUNT_LINES; i++)
		if (i != ACCOUNT_UNKNOWN && t->ns[i] > t->ns[line])
			line = i;
	if (!total || (double)t->ns[line] < TOLD_SHARE * (double)total) {
		snprintf(out, size, "what its thread did is unknown");
		return;
	}
	p = largest_part(t, line);
	if (p && p->culprit_pid && (line == ACCOUNT_CPU || line == ACCOUNT_DISK))
		snprintf(who, sizeof(who), "%s %.15s (pid %u)",
			line == ACCOUNT_CPU ? " used by" : " behind", p->culprit, p->culprit_pid);
	snprintf(out, size, "its thread was %s%s for %s of that", delay_text((enum delay_kind)line),
		who, text_format_percent(share, (double)t->ns[line] / (double)total));
}

int doing_describe(const struct recording *rec, uint32_t pid, const struct window *windows,
	size_t n, char *out, size_t size)
{
	_cleanup_(timeline_done) struct timeline t = {0};
	_cleanup_(tally_done) struct tally sum = {0};
	uint64_t total = 0;
	int r = timeline_make(rec, &t);

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct path path = {.timeline = &t, .pid = pid, .tid = windows[i].tid};

		total += (uint64_t)(windows[i].end_ns - windows[i].start_ns);
		r = path_account(&path, windows[i].start_ns, windows[i].end_ns, &sum);
	}
	if (r == 0)
		describe(&sum, total, out, size);
	return r;
}
