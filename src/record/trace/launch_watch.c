/* SPDX-License-Identifier: Apache-2.0 */
/* launch_watch.c - see launch_watch.h. */
#include "record/trace/launch_watch.h"

#include <math.h>
#include <time.h>

#include "base/idmap.h"

#define PROCESSES_MAX 16384
#define FEW                                                                                        \
	64 /* processes whose CPU time is read at every step, so that it is known when they end */
#define GONE_READINGS                                                                              \
	3 /* one that has ended is forgotten after so many: its last counts are read by then */

struct process {
	struct launch_estimate estimate;
	uint64_t hits; /* at the last step */
	double weight;
	unsigned gone; /* readings since it ended, from 1; 0: it lives */
};

struct launch_watch {
	const struct wire_use *uses;
	double hit_ns;
	struct idmap by_pid;
	size_t count;
	enum launch_phase phase;
	mono_time began, turned;
	uint64_t watched_ns, windows;
	bool is_over;
	/* Of those that are forgotten; the square is that of their errors but for the bias, which all share. */
	double launches, counted, square, bias;
};

double launch_sum_share(const struct launch_sum *s)
{
	if (s->launches <= s->counted && s->error <= 0)
		return 0;
	return s->launches > 0 ? fmin(fmax(s->error / s->launches, 1e-4), 1) : 1;
}

void launch_watch_free(struct launch_watch *w)
{
	struct process *p;
	size_t cursor = 0;

	while ((p = idmap_next(&w->by_pid, &cursor, NULL)))
		free(p);
	idmap_done(&w->by_pid);
	free(w);
}

int launch_watch_new(const struct wire_use *uses, double hit_ns, struct launch_watch **ret)
{
	struct launch_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->uses = uses;
	w->hit_ns = hit_ns;
	w->by_pid = IDMAP_INIT(PROCESSES_MAX);
	w->phase = LAUNCH_COUNTED;
	w->began = w->turned = mono_now();
	w->windows = 1;
	*ret = w;
	return 0;
}

/* The kernel's ABI for the clocks of a process. The id is made by hand, because clock_getcpuclockid() makes a system
 * call that the confined thread has given up, and knows only the last of them. */
enum cpu_clock { BY_TICKS, USER_BY_TICKS, BY_SCHEDULER };

static uint64_t cpu_clock_ns(uint32_t pid, enum cpu_clock which)
{
	struct timespec ts;

	if (clock_gettime((clockid_t)(~pid << 3 | which), &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t launch_watch_cpu_ns(uint32_t pid)
{
	return cpu_clock_ns(pid, BY_SCHEDULER);
}

static const struct wire_use *use_of(const struct launch_watch *w, uint64_t pid)
{
	return &w->uses[pid & (WIRE_USES - 1)];
}

/* What a process's launches cost so far, in hits. */
static uint64_t hits_of(const struct launch_watch *w, uint64_t pid)
{
	const struct wire_use *u = use_of(w, pid);
	uint64_t send_ns = __atomic_load_n(&u->send_ns, __ATOMIC_RELAXED);

	return __atomic_load_n(&u->launches, __ATOMIC_RELAXED) -
	       __atomic_load_n(&u->nested, __ATOMIC_RELAXED) / 2 +
	       (w->hit_ns > 0 ? (uint64_t)((double)send_ns / w->hit_ns) : 0);
}

static void read_one(const struct launch_watch *w, uint64_t pid, struct process *p)
{
	const struct wire_use *u = use_of(w, pid);
	struct launch_reading now = {
		.launches = __atomic_load_n(&u->launches, __ATOMIC_RELAXED),
		.nested = __atomic_load_n(&u->nested, __ATOMIC_RELAXED),
		.send_ns = __atomic_load_n(&u->send_ns, __ATOMIC_RELAXED),
		.waits = __atomic_load_n(&u->waits, __ATOMIC_RELAXED),
		.at_wait = __atomic_load_n(&u->at_wait, __ATOMIC_RELAXED),
		.time_ns = mono_now().ns,
		.cpu_ns = launch_watch_cpu_ns((uint32_t)pid),
		.user_ns = cpu_clock_ns((uint32_t)pid, USER_BY_TICKS),
		.tick_ns = cpu_clock_ns((uint32_t)pid, BY_TICKS),
	};

	if (p->gone)
		return;
	if (!now.cpu_ns) { /* it ended a moment ago */
		now.cpu_ns = p->estimate.last.cpu_ns;
		now.user_ns = p->estimate.last.user_ns;
		now.tick_ns = p->estimate.last.tick_ns;
	}
	launch_estimate_read(&p->estimate, &now, w->phase, w->hit_ns);
}

static void read_all(struct launch_watch *w)
{
	struct process *p;
	size_t cursor = 0;
	uint64_t pid;

	while ((p = idmap_next(&w->by_pid, &cursor, &pid)))
		read_one(w, pid, p);
}

/* @p, which is in the table no more. */
static void forget(struct launch_watch *w, struct process *p)
{
	w->launches += launch_estimate_total(&p->estimate);
	w->counted += p->estimate.counted;
	w->bias += launch_estimate_bias(&p->estimate);
	w->square +=
		pow(launch_estimate_error(&p->estimate) - launch_estimate_bias(&p->estimate), 2);
	w->count--;
	free(p);
}

int launch_watch_add(struct launch_watch *w, uint32_t pid)
{
	struct process *p = idmap_get(&w->by_pid, pid);
	int r;

	if (p && !p->gone)
		return 0;
	if (p)
		forget(w, idmap_remove(&w->by_pid, pid)); /* the number is another's now */
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = (struct process){.weight = 1, .hits = hits_of(w, pid)};
	r = idmap_put(&w->by_pid, pid, p);
	if (r < 0) {
		free(p);
		return r;
	}
	w->count++;
	read_one(w, pid, p);
	return 0;
}

void launch_watch_gone(struct launch_watch *w, uint32_t pid)
{
	struct process *p = idmap_get(&w->by_pid, pid);

	if (!p || p->gone)
		return;
	read_one(w, pid, p);
	launch_estimate_end(&p->estimate);
	p->gone = 1;
}

void launch_watch_turn(struct launch_watch *w, mono_time now, enum launch_phase phase)
{
	read_all(w);
	if (w->phase == LAUNCH_COUNTED)
		w->watched_ns += now.ns - w->turned.ns;
	w->windows += phase == LAUNCH_COUNTED;
	w->phase = phase;
	w->turned = now;
}

uint64_t launch_watch_step(struct launch_watch *w)
{
	uint64_t most = 0, pid;
	struct process *p;
	size_t cursor = 0;

	while ((p = idmap_next(&w->by_pid, &cursor, &pid))) {
		uint64_t hits = hits_of(w, pid);

		most = MAX(most, hits - MIN(p->hits, hits));
		p->hits = hits;
		if (w->count <= FEW)
			read_one(w, pid, p);
	}
	return most;
}

void launch_watch_weigh(struct launch_watch *w)
{
	struct process *p;
	size_t cursor = 0;

	read_all(w);
	while ((p = idmap_next(&w->by_pid, &cursor, NULL))) {
		launch_estimate_weigh(&p->estimate);
		p->weight = launch_estimate_apply(&p->estimate, 0);
		p->gone += p->gone > 0;
	}
	cursor = 0;
	while ((p = idmap_next(&w->by_pid, &cursor, NULL)))
		if (p->gone > GONE_READINGS)
			forget(w, idmap_take(&w->by_pid, &cursor));
}

void launch_watch_more(
	struct launch_watch *w, void (*fn)(void *arg, uint32_t pid, double share), void *arg)
{
	struct process *p;
	size_t cursor = 0;
	uint64_t pid;

	while ((p = idmap_next(&w->by_pid, &cursor, &pid))) {
		double share = p->gone || w->is_over ? launch_estimate_more(&p->estimate) : 0;

		if (share > 0)
			fn(arg, (uint32_t)pid, share);
	}
}

void launch_watch_end(struct launch_watch *w, mono_time now)
{
	struct process *p;
	size_t cursor = 0;

	launch_watch_turn(w, now, LAUNCH_AWAY);
	w->is_over = true;
	while ((p = idmap_next(&w->by_pid, &cursor, NULL)))
		if (!p->gone)
			launch_estimate_end(&p->estimate);
}

double launch_watch_weight(const struct launch_watch *w, uint32_t pid)
{
	const struct process *p = idmap_get(&w->by_pid, pid);

	return p ? p->weight : 1;
}

double launch_watch_apply(struct launch_watch *w, uint32_t pid, uint64_t launches)
{
	struct process *p = idmap_get(&w->by_pid, pid);

	return p ? launch_estimate_apply(&p->estimate, (double)launches) : 1;
}

void launch_watch_sum(const struct launch_watch *w, struct launch_sum *ret)
{
	uint64_t passed = mono_now().ns - w->began.ns;
	uint64_t open =
		w->watched_ns + (w->phase == LAUNCH_COUNTED ? mono_now().ns - w->turned.ns : 0);
	double square = w->square, bias = w->bias;
	struct process *p;
	size_t cursor = 0;

	*ret = (struct launch_sum){
		.launches = w->launches, .counted = w->counted, .windows = w->windows};
	while ((p = idmap_next(&w->by_pid, &cursor, NULL))) {
		ret->launches += launch_estimate_total(&p->estimate);
		ret->counted += p->estimate.counted;
		bias += launch_estimate_bias(&p->estimate);
		square += pow(
			launch_estimate_error(&p->estimate) - launch_estimate_bias(&p->estimate),
			2);
	}
	ret->error = sqrt(square) + bias;
	ret->watched = passed ? fmin((double)open / (double)passed, 1) : 1;
}
