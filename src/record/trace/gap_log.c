/* SPDX-License-Identifier: Apache-2.0 */
/* gap_log.c - see gap_log.h. Searched from end to end: gaps come when a library is met for the first
 * time, a few times in a run. */
#include "record/trace/gap_log.h"

#include <string.h>

#include "base/hash.h"
#include "base/macros.h"

/* A start of 0 is not known, because the process had ended: then the pid decides. */
static bool is_same_process(const struct gap_log_entry *e, const struct call_gap *g)
{
	return e->pid == g->pid &&
	       (!e->start_ticks || !g->start_ticks || e->start_ticks == g->start_ticks);
}

bool gap_log_add(struct gap_log *l, const struct call_gap *g, bool *ret_is_new_process)
{
	uint64_t file = hash_bytes(g->file, strlen(g->file));

	*ret_is_new_process = true;
	for (size_t i = 0; i < MIN(l->count, ARRAY_SIZE(l->entries)); i++) {
		if (!is_same_process(&l->entries[i], g))
			continue;
		*ret_is_new_process = false;
		if (l->entries[i].file == file)
			return false;
	}
	l->entries[l->count++ % ARRAY_SIZE(l->entries)] =
		(struct gap_log_entry){g->pid, g->start_ticks, file};
	return true;
}
