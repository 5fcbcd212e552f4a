/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_simulate.c - `ingero-cluster simulate`: many made-up clusters with known faults, played to the
 * core faster than time, and how often it was right. The same seed gives the same table. */
#include <math.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/text.h"
#include "cluster/cli/commands.h"
#include "cluster/simulate/play.h"
#include "command/program.h"
#include "stat/robust.h"

struct simulate_flags {
	int64_t clusters, seed, first, begin, stretch;
	const char *fault;
	uint64_t healthy_ns;
	bool verbose, hard;
};

static const struct simulate_flags defaults = {.clusters = 70, .seed = 1, .stretch = 1};

#define OPTION(field) offsetof(struct simulate_flags, field)
static const struct option_row simulate_options[] = {
	{"clusters", 'n', OPTION_INT, OPTION(clusters), "N",
		"number of clusters, divided among the faults (default: 70)", 1, 1000000, false},
	{"seed", 0, OPTION_INT, OPTION(seed), "N", "seed of the clusters (default: 1)", 0,
		INT64_MAX, false},
	{"first", 0, OPTION_INT, OPTION(first), "N",
		"start with the Nth cluster, to replay one (default: 0)", 0, 1000000, false},
	{"begin", 0, OPTION_INT, OPTION(begin), "STEP",
		"earliest step at which a fault begins (default: 0)", 0, 80, false},
	{"stretch", 0, OPTION_INT, OPTION(stretch), "N",
		"steps last N times as long as usual, which is 0.1 to 0.6 s (default: 1)", 1, 200,
		false},
	OPTION_ROW(STRING, "fault", OPTION(fault), "NAME",
		"only this one: none, slow, late, drift, stage, moving, hang, link; with --hard gpu, expert (default: all)"),
	OPTION_ROW(DURATION, "healthy", OPTION(healthy_ns), "DURATION",
		"instead, healthy clusters for this long each, one job after another"),
	OPTION_ROW(FLAG, "hard", OPTION(hard), NULL,
		"as in production: attached late, unnamed, hosts ahead, steps of up to 47 s and more"),
	{"verbose", 'v', OPTION_FLAG, OPTION(verbose), NULL, "also print the wrong answers", 0, 0,
		false},
	{NULL, 0, OPTION_FLAG, 0, NULL, NULL, 0, 0, false},
};

#define CHEAP 0.02             /* of the job's time: nobody is to be woken for that */
#define KINDS (JOB_EXPERT + 1) /* the last two are for hard jobs alone */

struct row {
	uint32_t total, right, alarms, shown; /* shown: provisional, and wrong */
	uint64_t *delays; /* from the first late collective until it was shown */
	size_t named, room;
};

struct table {
	struct row row[KINDS];
	uint32_t cheap, cheap_right; /* faults that cost less than CHEAP */
	struct {
		uint32_t total, right, alarms;
	} trait[JOB_TRAIT_COUNT];
	double hours; /* played, without a fault */
	uint64_t messages, calls;
};

static int fault_of(const char *name, int *ret, struct errinfo *reterr)
{
	*ret = -1;
	if (!name)
		return 0;
	for (int i = 0; i < KINDS; i++)
		if (strcmp(job_fault_id((enum job_fault)i), name) == 0)
			*ret = i;
	if (*ret < 0)
		return errinfo_set(reterr, -EINVAL,
			"--fault: choose none, slow, late, drift, stage, moving, hang, link, gpu or expert, not '%.40s'",
			name);
	return 0;
}

static void table_done(struct table *t)
{
	for (int i = 0; i < KINDS; i++)
		free(t->row[i].delays);
}

static int add_delay(struct row *w, const struct verdict *v)
{
	int r;

	if (v->shown_ns < 0 || v->first_late_ns < 0)
		return 0;
	r = ARRAY_RESERVE(w->delays, w->room, w->named + 1, SIZE_MAX / 16);
	if (r == 0)
		w->delays[w->named++] = (uint64_t)MAX(v->shown_ns - v->first_late_ns, INT64_C(0));
	return r;
}

static int play_one(
	struct table *t, uint64_t seed, enum job_fault fault, const struct simulate_flags *f)
{
	struct verdict_how how = {(uint32_t)f->begin, (uint32_t)f->stretch, f->hard};
	struct verdict v;
	int r = f->healthy_ns ? verdict_of_healthy(seed, f->healthy_ns, &how, &v)
			      : verdict_of_random(seed, fault, &how, &v);

	if (r < 0)
		return r;
	for (int i = 0; i < JOB_TRAIT_COUNT; i++) {
		if (!(v.traits >> i & 1))
			continue;
		t->trait[i].total++;
		t->trait[i].right += v.right;
		t->trait[i].alarms += v.false_alarms;
	}
	if (v.fault != JOB_NONE && v.cost < CHEAP) {
		t->cheap++;
		t->cheap_right += v.right;
	}
	t->row[v.fault].total++;
	t->row[v.fault].right += v.right;
	t->row[v.fault].alarms += v.false_alarms;
	t->row[v.fault].shown += v.shown_wrong;
	r = add_delay(&t->row[v.fault], &v);
	t->messages += v.messages;
	t->calls += v.calls;
	if (v.fault == JOB_NONE)
		t->hours += (double)v.span_ns / (3600.0 * (double)NS_PER_S);
	if (f->verbose && (!v.right || v.false_alarms))
		printf("cluster %llu, %s (%s; costs %.1f %%; %s), after %.1f of %.0f s: %s\n",
			(unsigned long long)seed, job_fault_id(v.fault), v.truth, 100 * v.cost,
			v.shape, (double)v.said_ns / (double)NS_PER_S,
			(double)v.span_ns / (double)NS_PER_S,
			v.said[0] ? v.said : "nothing was reported");
	return r;
}

/* "0.6s / 1.2s": half of them, and 95 of 100, were shown by then; "" if none was. */
static const char *delay_text(char out[2 * TEXT_MAX], struct row *w)
{
	out[0] = '\0';
	robust_sort(w->delays, w->named);
	if (w->named)
		snprintf(out, 2 * TEXT_MAX, "%s / %s",
			TEXT_DURATION(robust_quantile(w->delays, w->named, 0.5)),
			TEXT_DURATION(robust_quantile(w->delays, w->named, 0.95)));
	return out;
}

/* What @n rare things that were counted may be at most, with 95 %: Poisson, by Wilson and Hilferty. */
static double at_most(uint32_t n)
{
	double k = n + 1.0;

	return k * pow(1 - 1 / (9 * k) + 1.645 / (3 * sqrt(k)), 3);
}

static void print_table(struct table *t, uint64_t took_ns)
{
	char took[TEXT_MAX], delay[2 * TEXT_MAX];
	uint32_t right = 0, total = 0, alarms = 0;

	printf("%-8s %8s %8s %14s %14s   %s\n", "fault", "played", "right", "others blamed",
		"wrongly shown", "shown after (p50 / p95)");
	for (int i = 0; i < KINDS; i++) {
		if (!t->row[i].total)
			continue;
		printf("%-8s %8u %8u %14u %14u   %s\n", job_fault_id((enum job_fault)i),
			t->row[i].total, t->row[i].right, t->row[i].alarms, t->row[i].shown,
			delay_text(delay, &t->row[i]));
		right += t->row[i].right;
		total += t->row[i].total;
		alarms += t->row[i].alarms;
	}
	/* The same clusters by what made them hard; one may have several. */
	for (int i = 0; i < JOB_TRAIT_COUNT; i++)
		if (t->trait[i].total)
			printf("  %-22s %u of %u right, %u others blamed\n",
				job_trait_id((enum job_trait)i), t->trait[i].right,
				t->trait[i].total, t->trait[i].alarms);
	if (t->cheap)
		printf("  cost less than %.0f %%      %u of %u right\n", 100 * CHEAP,
			t->cheap_right, t->cheap);
	printf("%u of %u right (%s), %u others blamed; ", right, total,
		TEXT_PERCENT(total ? (double)right / total : 0), alarms);
	if (t->hours > 0)
		printf("%u alarms in %.1f healthy hours (95 %% sure: fewer than %.2f a day); ",
			t->row[JOB_NONE].alarms, t->hours,
			at_most(t->row[JOB_NONE].alarms) * 24 / t->hours);
	printf("%s calls in %s\n", TEXT_COUNT(t->calls), text_format_duration(took, took_ns));
}

static int simulate_run(
	const struct command *cmd _unused_, void *settings, int argc _unused_, char **argv _unused_)
{
	const struct simulate_flags *f = settings;
	_cleanup_(table_done) struct table t = {0};
	struct errinfo e = {0};
	uint64_t begun = mono_now().ns;
	int fault, r = fault_of(f->fault, &fault, &e);

	if (r == 0 && fault >= JOB_GPU && !f->hard)
		r = errinfo_set(&e, -EINVAL, "--fault %s needs --hard", f->fault);
	for (int64_t i = f->first; r == 0 && i < f->first + f->clusters; i++)
		r = play_one(&t, (uint64_t)(f->seed * 1000000 + i),
			(enum job_fault)(fault < 0 ? i % (f->hard ? KINDS : JOB_GPU) : fault), f);
	if (r < 0)
		return dispatch_fail(&e, r);
	print_table(&t, mono_now().ns - begun);
	return EXIT_OK;
}

const struct command cmd_simulate = {
	.name = "simulate",
	.synopsis = "simulate [flags]",
	.summary = "Simulate clusters with known faults and count how often the answer is right",
	.details =
		"Data, tensor, pipeline and expert parallel jobs of 2 to 64 ranks, with jitter, uneven stages,\n"
		"evaluation phases and clocks that differ; nothing leaves this process.\n"
		"  ingero-cluster simulate\n"
		"  ingero-cluster simulate --clusters 1000 --seed 2 -v\n"
		"  ingero-cluster simulate --clusters 3 --healthy 24h\n"
		"  ingero-cluster simulate --hard --clusters 200",
	.options = simulate_options,
	.settings_size = sizeof(struct simulate_flags),
	.defaults = &defaults,
	.run = simulate_run,
};
