/* SPDX-License-Identifier: Apache-2.0 */
#include "record/trace/waited_for.h"

#include "base/clock.h"
#include "base/macros.h"

#define ENOUGH_NS    (200 * NS_PER_MS)
#define ENOUGH_STAYS 3 /* one stay may be anything: a start, a shutdown */

/* The item of @pid; of a new one, a free place or that of whom least was waited for. */
static struct waited_process *item_of(struct waited_for *w, uint32_t pid)
{
	struct waited_process *least = &w->items[0];

	for (size_t i = 0; i < ARRAY_SIZE(w->items); i++) {
		struct waited_process *p = &w->items[i];

		if (p->pid == pid)
			return p;
		if (p->ns < least->ns)
			least = p;
	}
	*least = (struct waited_process){.pid = pid};
	return least;
}

bool waited_for_add(struct waited_for *w, uint32_t pid, uint64_t ns)
{
	struct waited_process *p;

	if (w->followed >= WAITED_FOR_MAX)
		return false;
	p = item_of(w, pid);
	p->ns += ns;
	p->stays++;
	if (p->ns < ENOUGH_NS || p->stays < ENOUGH_STAYS)
		return false;
	*p = (struct waited_process){0};
	w->followed++;
	return true;
}
