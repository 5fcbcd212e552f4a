/* SPDX-License-Identifier: Apache-2.0 */
/* chain_lock.c - who holds a lock: the thread, and the line that it ran meanwhile. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "diagnose/accounts/kernel_thread.h"
#include "diagnose/chains/chain_private.h"
#include "diagnose/chains/program_sum.h"

/* "train.py:42 (collate)", or the native function; "": the stack says nothing. */
static void frame_text(const struct chain *c, uint64_t hash, char *out, size_t size)
{
	const struct stack *s = hash && c->rec->stacks ? stack_find(c->rec->stacks, hash) : NULL;
	const struct stack_frame *f = s ? stack_user_frame(s) : NULL;

	if (s && !f)
		f = stack_place(s);
	out[0] = 0;
	if (f && stack_frame_is_python(f))
		snprintf(out, size, "%s:%" PRIu32 " (%s)", stack_base_name(f->py_file), f->py_line,
			f->py_func);
	else if (f && f->symbol && strcmp(f->symbol, "syscall") != 0)
		snprintf(out, size, "%s", f->symbol);
}

bool chain_lock(const struct chain *c, struct resource_use *ret)
{
	const struct account_entry *most = NULL;
	uint64_t held = 0, all = 0;

	for (int i = 0; i < c->a->entry_count; i++) {
		const struct account_entry *e = &c->a->entries[i];

		if (e->line != c->line || e->slow_ns <= e->ordinary_ns)
			continue;
		all += e->slow_ns - e->ordinary_ns;
		if (!e->culprit[0] || kernel_thread_is(e->culprit))
			continue;
		held += e->slow_ns - e->ordinary_ns;
		if (!most || e->slow_ns - e->ordinary_ns > most->slow_ns - most->ordinary_ns)
			most = e;
	}
	if (!most)
		return false;
	ret->resource = RESOURCE_LOCK;
	ret->pid = most->culprit_pid;
	snprintf(ret->who, sizeof(ret->who), "thread %s", most->culprit);
	frame_text(c, most->stack_hash, ret->detail, sizeof(ret->detail));
	ret->share = (double)held / (double)MAX(all, UINT64_C(1));
	return true;
}
