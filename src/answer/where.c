/* SPDX-License-Identifier: Apache-2.0 */
/* where.c - see where.h. An incident keeps its heaviest stacks only, so a share is a lower bound.
 */
#include "answer/where.h"

#include <string.h>

#include "base/macros.h"

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_place(const struct stack_frame *a, const struct stack_frame *b)
{
	return same_text(a->py_func, b->py_func) && same_text(a->py_file, b->py_file) &&
	       a->py_line == b->py_line && same_text(a->symbol, b->symbol) &&
	       same_text(a->file, b->file) && a->line == b->line;
}

bool where_find(const struct incident *inc, const struct stack_list *stacks, struct where *ret)
{
	struct where places[INCIDENT_STACKS] = {0}, *most = &places[0];
	uint64_t total;
	int n = 0;

	for (int i = 0; i < inc->stack_count; i++) {
		const struct stack *s = stack_find(stacks, inc->stacks[i].hash);
		const struct stack_frame *f = s ? stack_user_frame(s) : NULL;
		int k = 0;

		if (s && !f)
			f = stack_place(s);
		if (!f)
			continue;
		while (k < n && !same_place(places[k].frame, f))
			k++;
		if (k == n)
			places[n++].frame = f;
		places[k].ns += inc->stacks[i].ns;
	}
	for (int k = 1; k < n; k++)
		if (places[k].ns > most->ns)
			most = &places[k];
	if (!n)
		return false;
	*ret = *most;
	/* stacks are of whole waits, the excess only of what was too much of them */
	total = MAX(inc->excess_ns, inc->stack_ns);
	ret->share = total ? MIN((double)most->ns / (double)total, 1.0) : 0;
	return true;
}
