/* SPDX-License-Identifier: Apache-2.0 */
#include "blame/ends.h"

#include <stddef.h>

#include "base/macros.h"
#include "blame/clocks.h"

void ends_call(struct ends *e, struct push_call *c, bool *is_end)
{
	*is_end = false;
	*e = (struct ends){c, is_end};
}

void ends_sync(struct ends *e, int64_t start_ns, int64_t end_ns)
{
	struct push_call *c = e->last;
	uint64_t waited;

	if (!c || end_ns <= c->enter_ns)
		return;
	waited = (uint64_t)(end_ns - MAX(start_ns, c->enter_ns));
	if (clocks_is_end(c->enter_ns, end_ns, waited)) {
		c->leave_ns = end_ns;
		c->wait_ns = waited;
		*e->is_end = true;
	}
	e->last = NULL; /* the next one waits for something else */
}

void ends_share(struct push_call *c, const struct push_call *next)
{
	if (c->wait_ns && c->wait_ns != UINT64_MAX && c->wait_ns == next->wait_ns &&
		c->leave_ns > next->enter_ns)
		c->leave_ns = MAX(next->leave_ns, c->enter_ns + (int64_t)c->wait_ns);
}
