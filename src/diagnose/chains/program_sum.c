/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/chains/program_sum.h"

#include <stdio.h>
#include <string.h>

#include "base/macros.h"

static void note_pid(struct program *p, uint32_t pid)
{
	for (uint32_t i = 0; i < p->pid_count; i++)
		if (p->pids[i] == pid)
			return;
	if (p->pid_count < PROGRAM_PIDS_MAX)
		p->pids[p->pid_count++] = pid;
}

struct program *program_get(
	const struct recording *rec, struct program_sums *s, uint32_t pid, const char *comm)
{
	char name[PROCESS_WORDS_MAX];
	struct program *p;
	int k = 0;

	process_words(rec, pid, comm, name);
	while (k < s->count && strcmp(s->items[k].name, name) != 0)
		k++;
	if (k == PROGRAMS_MAX)
		return NULL;
	p = &s->items[k];
	if (k == s->count) {
		memcpy(p->name, name, sizeof(name));
		p->first_pid = pid;
		s->count++;
	}
	note_pid(p, pid);
	return p;
}

void program_name(const struct program *p, struct resource_use *ret)
{
	snprintf(ret->who, sizeof(ret->who), "%s", p->name);
	ret->count = p->pid_count;
	ret->pid = p->pid_count == 1 ? p->first_pid : 0;
}
