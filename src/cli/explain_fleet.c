/* SPDX-License-Identifier: Apache-2.0 */
/* explain_fleet.c - see explain_fleet.h. The title and the lines of each verdict are the published
 * ones; what our nodes know beyond that follows. */
#include "cli/explain_fleet.h"

#include <stdio.h>

#include "answer/encode/report.h"
#include "base/text.h"

#define SHOWN        20 /* incidents; --json has them all */
#define LOSSES_NAMED 8  /* nodes */

/* "  1,234 events analysed; nothing lost", and if not, where. */
static void put_extent(struct buf *b, const struct fanout_result *r)
{
	size_t known = 0, lossy = 0, silent = 0;
	char n[TEXT_PLURAL_MAX], share[TEXT_MAX];
	uint64_t events = 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct fanout_extent *e = &r->answers[i].extent;

		if (!r->answers[i].ok || !e->known)
			continue;
		known++;
		events += e->events;
		lossy += e->completeness >= 0 && e->completeness < 1;
		silent += e->completeness < 0;
	}
	if (!known)
		return;
	buf_printf(b, "  %s analysed", text_format_plural(n, events, "events"));
	if (silent)
		buf_printf(b, "; losses unknown on %s", text_format_plural(n, silent, "nodes"));
	else if (!lossy)
		buf_puts(b, "; nothing lost");
	for (size_t i = 0, told = 0; lossy && i < r->count; i++) {
		const struct fanout_extent *e = &r->answers[i].extent;

		if (!r->answers[i].ok || !e->known || e->completeness < 0 || e->completeness >= 1)
			continue;
		if (told++ == LOSSES_NAMED) {
			buf_printf(b, " and %zu more", lossy - LOSSES_NAMED);
			break;
		}
		buf_printf(b, "%s%s of ", told == 1 ? "; lost: " : ", ",
			text_format_percent(share, 1 - e->completeness));
		text_escape_terminal(b, r->answers[i].name);
	}
	buf_putc(b, '\n');
}

void explain_fleet_text(struct buf *b, const struct fanout_result *r, struct explain_style style)
{
	const struct fanout_incidents *l = &r->incidents;
	size_t shown = MIN(l->count, (size_t)SHOWN);
	char chains[TEXT_PLURAL_MAX], nodes[TEXT_PLURAL_MAX];

	buf_printf(b, "FLEET CAUSAL CHAINS - %s from %s\n",
		text_format_plural(chains, l->count, "chains"),
		text_format_plural(nodes, r->ok_count, "nodes"));
	put_extent(b, r);
	if (!l->count)
		buf_puts(b, "  No incidents on any node.\n");
	for (size_t i = 0; i < shown; i++) {
		const struct fanout_incident *in = l->items[i];
		struct report_entry e = {.incident = &in->incident,
			.node = in->node,
			.where = in->where,
			.where_share = in->where_share,
			.verbose = style.verbose,
			.stored = in->stored};

		report_incident(b, &e, style.columns, style.colour);
	}
	if (l->count > shown)
		buf_printf(b, "\n%s not shown; --json has them all\n",
			text_format_plural(chains, l->count - shown, "smaller incidents"));
}

void explain_fleet_json(const struct fanout_result *r)
{
	const struct fanout_incidents *l = &r->incidents;

	fputs("[", stdout);
	for (size_t i = 0; i < l->count; i++)
		printf("%s\n%s", i ? "," : "", l->items[i]->json);
	fputs(l->count ? "\n]\n" : "]\n", stdout);
}
