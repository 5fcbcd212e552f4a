/* SPDX-License-Identifier: Apache-2.0 */
/* workers.c - see workers.h. Most ranks of a sound job are hardly ever late: a sketch (4.7 KB) is made
 * with the first time. */
#include "cluster/detect/workers.h"

#include "base/array.h"
#include "base/macros.h"

void workers_init(struct workers *w, uint32_t max)
{
	*w = (struct workers){.max = max, .by_process = IDMAP_INIT(max)};
}

void workers_done(struct workers *w)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->items[i]) {
			free(w->items[i]->lag);
			free(w->items[i]);
		}
	free(w->items);
	idmap_done(&w->by_process);
}

static uint64_t process_id(uint32_t node, uint32_t pid)
{
	return (uint64_t)node << 32 | pid;
}

int workers_get(struct workers *w, uint32_t node, uint32_t pid, struct worker **ret)
{
	struct worker *found = idmap_get(&w->by_process, process_id(node, pid));
	_cleanup_free_ struct worker *made = NULL;
	size_t i = 0;
	int r;

	if (found) {
		*ret = found;
		return 0;
	}
	if (w->used >= w->max)
		return -ENOBUFS;
	if (w->used == w->count)
		i = w->count;
	while (i < w->count && w->items[i])
		i++;
	r = ARRAY_RESERVE(w->items, w->room, i + 1, w->max);
	if (r < 0)
		return r;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	*made = (struct worker){.id = (uint32_t)i, .node = node, .pid = pid, .world_rank = -1};
	r = idmap_put(&w->by_process, process_id(node, pid), made);
	if (r < 0)
		return r;
	w->count = MAX(w->count, i + 1);
	w->used++;
	*ret = w->items[i] = TAKE(made);
	return 1;
}

void workers_remove(struct workers *w, struct worker *x)
{
	idmap_remove(&w->by_process, process_id(x->node, x->pid));
	w->items[x->id] = NULL;
	w->used--;
	w->sketches -= x->lag != NULL;
	free(x->lag);
	free(x);
}

int workers_add_lag(struct workers *w, struct worker *x, uint64_t lag_ns)
{
	if (!x->lag) {
		x->lag = calloc(1, sizeof(*x->lag));
		if (!x->lag)
			return -ENOMEM;
		w->sketches++;
	}
	x->last_count++;
	sketch_add(x->lag, lag_ns, 1);
	return 0;
}
