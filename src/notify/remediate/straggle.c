/* SPDX-License-Identifier: Apache-2.0 */
/* straggle.c - see straggle.h. */
#include "notify/remediate/straggle.h"

#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "wire/ids.h"

#define ALPHA        0.2
#define WARMUP       3
#define DROP_MIN     0.3
#define SWITCHES_MIN 5
#define IDLE_MAX     30

void straggle_init(struct straggle *s)
{
	*s = (struct straggle){.processes = IDMAP_INIT(STRAGGLE_PROCESSES)};
}

void straggle_done(struct straggle *s)
{
	size_t cursor = 0;
	void *p;

	while ((p = idmap_next(&s->processes, &cursor, NULL)))
		free(p);
	idmap_done(&s->processes);
}

void straggle_launches(struct straggle *s, uint32_t pid, const char *comm, uint64_t count)
{
	struct straggle_process *p = idmap_get(&s->processes, pid);

	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p || idmap_put(&s->processes, pid, p) < 0) {
			free(p);
			return;
		}
		p->pid = pid;
		strncpy(p->comm, comm, sizeof(p->comm) - 1);
	}
	p->launches = p->told ? p->launches + count : count;
	p->told = true;
}

static void add_preemptor(struct straggle_process *p, uint32_t pid)
{
	if (!pid || pid == p->pid || p->preemptor_count == STRAGGLE_PREEMPTORS)
		return;
	for (size_t i = 0; i < p->preemptor_count; i++)
		if (p->preemptors[i] == pid)
			return;
	p->preemptors[p->preemptor_count++] = pid;
}

void straggle_take(struct straggle *s, const struct event *e)
{
	struct straggle_process *p = idmap_get(&s->processes, e->pid);

	if (!p || e->source != SOURCE_HOST)
		return;
	if (e->op == HOST_PROCESS_EXIT) {
		free(idmap_remove(&s->processes, e->pid));
	} else if (e->op == HOST_SCHED_SWITCH && e->wait_ns) {
		p->switches++;
		p->place = e->place;
		add_preemptor(p, e->peer_pid);
	}
}

/* Whether @p straggles in this second; *ret_drop is how much less it launched, 0 to 1. */
static bool judge(struct straggle_process *p, uint64_t launched, double *ret_drop)
{
	bool is_short_of_cpu = p->switches >= SWITCHES_MIN;

	*ret_drop = p->ordinary > 0 ? 1 - (double)launched / p->ordinary : 0;
	*ret_drop = MAX(*ret_drop, 0.0);
	if (p->is_straggling)
		return is_short_of_cpu;
	return p->seconds >= WARMUP && is_short_of_cpu && *ret_drop >= DROP_MIN;
}

static void learn(struct straggle_process *p, uint64_t launched)
{
	if (!launched && !p->seconds)
		return; /* it has not begun */
	p->ordinary = p->seconds ? ALPHA * (double)launched + (1 - ALPHA) * p->ordinary
				 : (double)launched;
	p->seconds++;
}

static void second_of(struct straggle_process *p, wall_time now,
	void (*fn)(void *arg, const struct straggle_verdict *v), void *arg)
{
	uint64_t launched = p->told && p->launches > p->before ? p->launches - p->before : 0;
	struct straggle_verdict v = {.process = p, .sustained = p->is_straggling};
	double drop;

	p->is_straggling = judge(p, launched, &drop);
	if (p->is_straggling) {
		p->since_ns = v.sustained ? p->since_ns : now.ns;
		v.drop_pct = 100 * drop;
		fn(arg, &v);
	} else {
		learn(p, launched);
	}
	p->idle = launched ? 0 : p->idle + 1;
	p->before = p->launches;
	p->told = false;
	p->switches = 0;
	p->preemptor_count = 0;
}

void straggle_second(struct straggle *s, wall_time now,
	void (*fn)(void *arg, const struct straggle_verdict *v), void *arg)
{
	struct straggle_process *p, *gone;
	size_t cursor = 0;

	while ((p = idmap_next(&s->processes, &cursor, NULL)))
		second_of(p, now, fn, arg);
	do { /* a walk ends where an entry goes */
		cursor = 0;
		gone = NULL;
		while (!gone && (p = idmap_next(&s->processes, &cursor, NULL)))
			gone = p->idle > IDLE_MAX ? p : NULL;
		if (gone)
			free(idmap_remove(&s->processes, gone->pid));
	} while (gone);
}
