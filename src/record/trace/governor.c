/* SPDX-License-Identifier: Apache-2.0 */
/* governor.c - see governor.h. */
#include "record/trace/governor.h"

#include <math.h>

#include "base/macros.h"
#include "wire/op_kind.h"

/* Runs on the tracer's thread. Invariant: a window is open only while the
 * probes are all there or all away, so what happens while they are switched belongs to none. */

#define MARKS_MIN 3 /* with fewer a window says nothing */

uint64_t cost_trial_watch(struct cost_trial *t, uint32_t pid)
{
	uint64_t marks = t->marks;

	t->marks = 0;
	if (pid == t->pid)
		return marks;
	*t = (struct cost_trial){.pid = pid};
	return 0;
}

void cost_trial_mark(struct cost_trial *t, uint32_t pid, wall_time at)
{
	if (pid != t->pid)
		return;
	t->marks++;
	if (!t->is_open || at.ns < t->began.ns)
		return;
	if (!t->window_marks++)
		t->first = at;
	t->last.ns = MAX(t->last.ns, at.ns);
}

void cost_trial_open(struct cost_trial *t, wall_time now, bool with_probes, uint64_t cpu_ns)
{
	t->is_open = true;
	t->with_probes = with_probes;
	t->began = t->first = t->last = now;
	t->began_cpu_ns = cpu_ns;
	t->window_marks = 0;
}

/* A process that sleeps half of the time pays half as much of its time: its CPU time counts as the part
 * of the clock's that it is. With several busy threads it is more; what one of them pays counts. */
static void pair_end(struct cost_trial *t)
{
	const double *cpu = t->step_cpu_ns, *clock = t->step_ns;
	size_t at = t->pair_count % PAIRED_MAX;

	if (cpu[0] > 0 && cpu[1] > 0) {
		t->by_clock[at] = log(clock[1] / clock[0]);
		t->by_cpu[at] =
			log(cpu[1] / cpu[0]) * MIN(1.0, (cpu[0] + cpu[1]) / (clock[0] + clock[1]));
		t->pair_count++;
	}
	t->step_ns[0] = t->step_ns[1] = 0;
	t->step_cpu_ns[0] = t->step_cpu_ns[1] = 0;
}

bool cost_trial_close(struct cost_trial *t, wall_time now, uint64_t cpu_ns)
{
	int64_t passed = now.ns - t->began.ns;
	uint64_t pairs = t->pair_count;
	double cpu_share, step_ns;

	if (!t->is_open || passed <= 0)
		return false;
	t->is_open = false;
	cpu_share = (double)(cpu_ns - MIN(t->began_cpu_ns, cpu_ns)) / (double)passed;
	step_ns = t->window_marks < MARKS_MIN
			  ? 0
			  : (double)(t->last.ns - t->first.ns) / (double)(t->window_marks - 1);
	t->step_ns[t->with_probes] = step_ns;
	t->step_cpu_ns[t->with_probes] = cpu_share * step_ns;
	if (t->with_probes)
		pair_end(t);
	return t->pair_count != pairs;
}

static bool estimate(const struct cost_trial *t, const double *logs, struct paired *ret)
{
	struct paired p;

	if (paired_estimate(logs, MIN(t->pair_count, (uint64_t)PAIRED_MAX), &p) < 0)
		return false;
	*ret = (struct paired){
		.middle = expm1(p.middle), .low = expm1(p.low), .high = expm1(p.high)};
	return true;
}

bool cost_trial_result(const struct cost_trial *t, struct cost_found *ret)
{
	struct cost_found f;

	if (!estimate(t, t->by_clock, &f.clock) || !estimate(t, t->by_cpu, &f.cpu))
		return false;
	*ret = f;
	return true;
}

/* Invariant: 0 <= low <= share <= high. */

void cost_load_add(struct cost_load *l, const struct cost_load *more)
{
	l->seconds += more->seconds;
	l->launches += more->launches;
	l->waits += more->waits;
	l->waited_ns += more->waited_ns;
}

struct cost_felt cost_felt_guess(double probes, const struct cost_load *l)
{
	double waited = l->seconds > 0 ? l->waited_ns / (l->seconds * (double)NS_PER_S) : 0;
	double first = l->launches > l->waits ? l->waits / l->launches : 1;
	double low = fmax(probes - waited, probes * first);

	if (waited <= 0)
		low = probes;
	return (struct cost_felt){.share = low, .low = low, .high = probes};
}

/* What a hit does to caches and branch predictors is not in its own time: at most as much again. */
static const double ACCOUNT_AT_MOST = 2;

static double clamp(double x, double low, double high)
{
	return fmin(fmax(x, low), high);
}

struct cost_felt cost_felt_join(
	double account, const struct cost_found *found, double part, const struct cost_felt *others)
{
	const struct paired *cpu = &found->cpu, *clock = &found->clock;
	double low = fmax(clock->low, 0), high = fmax(clock->high, 0);
	double share = clamp(account, fmax(cpu->low, 0), fmax(cpu->high, 0));

	if (cpu->high >= low)
		high = fmin(high, cpu->high);
	if (account * ACCOUNT_AT_MOST >= fmax(low, cpu->low))
		high = fmin(high, account * ACCOUNT_AT_MOST);
	return (struct cost_felt){.share = clamp(share, low, high) * part + others->share,
		.low = low * part + others->low,
		.high = high * part + others->high};
}

#define ROOM_SHARE 0.25 /* of the budget: launches have that at least, whatever the rest costs */
#define FACTOR_MIN 0.5  /* a comparison may be wrong: it does not rule alone */
#define FACTOR_MAX 8
#define CREDIT_S   1.0 /* of the budget: what may be spent at once */
#define OWED_SHARE 0.5 /* windows are made smaller down to this, for what was spent beyond it */

#define WINDOW_NS     (40 * NS_PER_MS)
#define WINDOW_MIN_NS (15 * NS_PER_MS) /* attaching takes some 10 ms, which cost and tell nothing */
#define WINDOW_MAX_NS (250 * NS_PER_MS)
#define WINDOW_STEPS                                                                               \
	5 /* of the job's, if it has short ones: enough to compare with those without probes */
#define TURN_NS       (10 * NS_PER_MS)
#define PERIOD_MIN_NS (250 * NS_PER_MS)
#define PERIOD_MAX_NS (2 * NS_PER_S)

#define RATE_S     0.1  /* over which the rate is averaged while probes are always there */
#define RATE_NEW   0.3  /* what a window changes of it */
#define CUT        4    /* times the plan: such a window is cut */
#define CALM_SHARE 0.75 /* of what launches may cost, */
#define CALM       4    /* in so many windows: then all are probed again */

static double credit_max(const struct governor *g)
{
	return g->budget * CREDIT_S * (double)NS_PER_S;
}

void governor_init(struct governor *g, double budget, double hit_ns, bool can_switch, uint64_t seed,
	mono_time now)
{
	*g = (struct governor){.budget = budget,
		.hit_ns = hit_ns,
		.launch_factor = 1,
		.can_switch = can_switch,
		.stepped = now,
		.random = seed | 1};
	g->credit_ns = credit_max(g);
}

/* Between 0 and 1, by xorshift. */
static double chance(struct governor *g)
{
	g->random ^= g->random << 13;
	g->random ^= g->random >> 7;
	g->random ^= g->random << 17;
	return (double)(g->random >> 11) / (double)(1ull << 53);
}

/* What launches may cost. Sampling them does not make the rest cheaper: where that alone is over the
 * budget (a compiler's start, deep stacks), the few launches of such a time are still seen. */
static double room(const struct governor *g)
{
	return fmax(g->budget - g->others, ROOM_SHARE * g->budget);
}

static double hits_ns(const struct governor *g, double hits)
{
	return hits * g->hit_ns * g->launch_factor;
}

/* What they would cost if they were always probed. */
static double full_cost(const struct governor *g)
{
	return hits_ns(g, g->launch_rate) / (double)NS_PER_S;
}

/* The share of the time in which launches may be probed: less after more was spent than there was credit for. */
static double share_now(const struct governor *g)
{
	double owed = fmax(-g->credit_ns / credit_max(g), 0);

	return fmin(room(g) / fmax(full_cost(g), 1e-9), 1) * fmax(1 - owed, OWED_SHARE);
}

static void plan(struct governor *g, mono_time now)
{
	double share = share_now(g);
	double window = g->step_ns ? fmin(fmax((double)(WINDOW_STEPS * g->step_ns), WINDOW_MIN_NS),
					     WINDOW_MAX_NS)
				   : WINDOW_NS;
	double period = fmin(fmax((window + TURN_NS) / share, PERIOD_MIN_NS), PERIOD_MAX_NS);

	/* Of a fixed one the middle would be seen more often than the ends, which a job may keep time with. */
	period *= 0.75 + 0.5 * chance(g);
	window = fmin(fmax(period * share - TURN_NS, WINDOW_MIN_NS), window * 4);
	g->window_ns = (uint64_t)window;
	g->period_ns = (uint64_t)period;
	g->opens.ns = now.ns + (uint64_t)(chance(g) * fmax(period - window - TURN_NS, 0));
	g->ends.ns = now.ns + g->period_ns;
}

static void window_end(struct governor *g)
{
	double rate = g->window_seconds > 0 ? g->window_hits / g->window_seconds : 0;

	g->launch_rate += RATE_NEW * (rate - g->launch_rate);
	g->calm = full_cost(g) < CALM_SHARE * room(g) &&
				  hits_ns(g, rate) / (double)NS_PER_S < CALM_SHARE * room(g)
			  ? g->calm + 1
			  : 0;
	g->window_hits = g->window_seconds = 0;
	if (g->calm < CALM)
		return;
	g->in_windows = false;
	g->calm = 0;
	g->credit_ns = credit_max(g) / 2;
}

static bool windows_step(struct governor *g, mono_time now, bool is_open)
{
	double planned = room(g) * (double)g->period_ns;

	if (is_open && !g->was_open)
		g->opens = now; /* it came late: it is as long as any other */
	if (is_open && hits_ns(g, g->window_hits) > CUT * planned)
		g->opens.ns = now.ns - MIN(now.ns, g->window_ns);
	if (now.ns >= g->ends.ns && !is_open && now.ns >= g->opens.ns + g->window_ns)
		plan(g, now);
	return now.ns >= g->opens.ns && now.ns < g->opens.ns + g->window_ns;
}

bool governor_step(struct governor *g, mono_time now, uint64_t launches, bool is_open)
{
	double seconds = (double)(now.ns - g->stepped.ns) / (double)NS_PER_S;
	bool wants = true;

	if (g->budget <= 0 || !g->can_switch)
		return true;
	g->stepped = now;
	g->credit_ns = fmin(g->credit_ns + room(g) * seconds * (double)NS_PER_S, credit_max(g)) -
		       hits_ns(g, (double)launches);
	if (g->in_windows) {
		if (g->was_open) {
			g->window_hits += (double)launches;
			g->window_seconds += seconds;
		}
		if (g->was_open && !is_open)
			window_end(g);
	} else if (seconds > 0) {
		g->launch_rate += ((double)launches / seconds - g->launch_rate) *
				  (1 - exp(-seconds / RATE_S));
		if (g->credit_ns < 0) {
			g->launch_rate = fmax(g->launch_rate, (double)launches / seconds);
			g->in_windows = true;
			g->window_hits = g->window_seconds = 0;
			plan(g, now);
			/* what is open now is over */
			g->opens.ns = MAX(g->opens.ns, now.ns + 1);
			g->was_open = false;
			return false;
		}
	}
	if (g->in_windows)
		wants = windows_step(g, now, is_open);
	g->was_open = is_open;
	return wants;
}

void governor_second(struct governor *g, uint64_t launch_hits, uint64_t other_hits, double seconds)
{
	double spent = hits_ns(g, (double)launch_hits) + (double)other_hits * g->hit_ns;

	if (seconds <= 0)
		return;
	g->others = (double)other_hits / seconds * g->hit_ns / (double)NS_PER_S;
	g->overhead = spent / (seconds * (double)NS_PER_S);
	g->spent_ns += spent;
	g->seconds += seconds;
}

void governor_learn(struct governor *g, double low, double high)
{
	double account = g->launch_rate * g->hit_ns / (double)NS_PER_S, factor;

	if (account <= 0)
		return;
	factor = fmin(fmax(account, low), high) / account;
	g->launch_factor = fmin(fmax(factor, FACTOR_MIN), FACTOR_MAX);
}

double governor_share(const struct governor *g)
{
	if (!g->in_windows || !g->period_ns)
		return 1;
	return (double)g->window_ns / (double)g->period_ns;
}

double governor_mean(const struct governor *g)
{
	return g->seconds > 0 ? g->spent_ns / (g->seconds * (double)NS_PER_S) : 0;
}

/* ---- which calls are sent as rows ---- */

#define CALLS_MIN 100 /* before an op has a limit of its own */
#define RATIO     3   /* slower than this times the median is an exception */
#define FLOOR_NS                                                                                   \
	50000 /* shorter: explains nothing of a step, and a row with its stack costs more */

void slow_limits_add(
	struct slow_limits *l, unsigned source, unsigned op, const struct sketch *calls)
{
	uint64_t limit, *slot;

	if (!op_kind_is_cuda(source))
		return;
	if (calls->count < CALLS_MIN || op >= WIRE_OP_MAX)
		return;
	limit = MAX(RATIO * sketch_quantile(calls, 0.5), (uint64_t)FLOOR_NS);
	slot = &l->ns[source][op];
	if (!*slot || limit < *slot)
		*slot = limit;
}
