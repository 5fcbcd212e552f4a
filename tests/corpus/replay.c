/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - corpus-replay [--sensitivity | --live]: what the engine says of corpus files, a line of JSON each.
 *
 * Standard input is files as corpus-reduce writes them, each after a line "file NAME". With --sensitivity
 * every threshold is moved by a fifth down and up, and a line is printed for each: which verdicts change. With --live
 * each file is cut off after every eighth, as somebody who watches sees it, and what was said with MEDIUM or above on
 * the way is printed with whether the answer in the end says it, too. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "corpus.h"
#include "diagnose/compose/diagnose.h"
#include "diagnose/live/incident_tracker.h"
#include "diagnose/thresholds.h"
#include "base/macros.h"
#include "json/writer.h"
#include "model/problem.h"

#define MOVE        0.2
#define DIRECTIONS  2
#define FILES_MAX   1024
#define VERDICT_MAX 256
#define LOOKS       8 /* at a file, the last at all of it */
#define FIRST_LOOK  3

struct replay {
	struct json_writer w;
	bool is_sensitivity, is_live;
	char *names[FILES_MAX];
	size_t count;
	/* With --sensitivity, by threshold and direction: the files whose verdict changes. */
	bool changed[THRESHOLD_COUNT][DIRECTIONS][FILES_MAX];
};

/* @is_told: also in the answer at the end. */
static void put_incident(struct json_writer *w, const struct incident *i, bool is_told)
{
	json_begin_object(w);
	json_string_member(w, "problem", problem_row(i->problem)->id);
	json_string_member(w, "severity", severity_name(i->severity));
	json_double_member(w, "confidence", i->confidence);
	json_uint_member(w, "pid", i->pid);
	json_string_member(w, "culprit", i->cause_count ? i->causes[0].culprit : "");
	json_int_member(w, "culprit_rank", i->culprit_rank);
	json_string_member(w, "place", i->place);
	json_uint_member(w, "lost_ns", i->excess_ns);
	json_uint_member(w, "unit_ns", i->unit_ns);
	json_uint_member(w, "fixed_ns", i->fixed_ns);
	json_string_member(w, "summary", i->summary);
	json_string_member(w, "root_cause", i->root_cause);
	json_string_member(w, "explanation", i->explanation);
	json_bool_member(w, "is_told", is_told);
	json_end_object(w);
}

static void put_account(struct json_writer *w, const struct step_account *a)
{
	json_begin_object(w);
	json_uint_member(w, "pid", a->pid);
	json_string_member(w, "origin", step_origin_id(a->origin));
	json_uint_member(w, "steps", a->steps);
	json_uint_member(w, "slow_steps", a->slow_steps);
	json_uint_member(w, "ordinary_step_ns", a->ordinary_step_ns);
	json_uint_member(w, "slow_step_ns", a->slow_step_ns);
	json_uint_member(w, "lost_ns", a->lost_ns);
	json_uint_member(w, "length_ns", (uint64_t)(a->last.ns - a->first.ns));
	json_end_object(w);
}

static int put_verdict(struct replay *r, struct corpus *c)
{
	_cleanup_free_ struct incident *list = NULL;
	size_t n = 0;
	int result = diagnose_run(&c->rec, &list, &n);

	if (result < 0)
		return result;
	json_begin_object(&r->w);
	json_string_member(&r->w, "file", r->names[r->count]);
	json_begin_array_member(&r->w, "incidents");
	for (size_t i = 0; i < n; i++)
		put_incident(&r->w, &list[i], true);
	json_end_array(&r->w);
	json_begin_array_member(&r->w, "accounts");
	for (size_t i = 0; i < c->accounts.report.count; i++)
		put_account(&r->w, &c->accounts.report.items[i]);
	json_end_array(&r->w);
	json_end_object(&r->w);
	return json_finish(&r->w);
}

static void range_of(const struct corpus *c, int64_t *ret_first, int64_t *ret_last)
{
	const struct account_set *set = &c->accounts.accounts;

	*ret_first = INT64_MAX;
	*ret_last = INT64_MIN;
	for (size_t i = 0; i < set->count; i++) {
		const struct process_account *a = &set->items[i];

		*ret_first = MIN(*ret_first, a->units[0].start_ns);
		*ret_last = MAX(*ret_last, a->units[a->unit_count - 1].end_ns);
	}
	if (c->rec.event_count) {
		*ret_first = MIN(*ret_first, c->rec.events[0].start.ns);
		*ret_last = MAX(*ret_last, c->rec.events[c->rec.event_count - 1].start.ns);
	}
}

static void ignore(
	void *arg, const struct incident *i, wall_time detected, enum incident_change change)
{
}

/* What was there at @until is looked at, and entered. */
static int look(struct corpus *c, int64_t until, struct incident_tracker *t)
{
	_cleanup_free_ struct incident *list = NULL;
	size_t n = 0;
	int r = corpus_cut(c, until);

	if (r == 0)
		r = diagnose_run(&c->rec, &list, &n);
	return r < 0 ? r
		     : incident_tracker_update(
			       t, list, n, (wall_time){until}, (wall_time){0}, ignore, NULL);
}

static int put_live(struct replay *r, struct corpus *c)
{
	_cleanup_(incident_tracker_done) struct incident_tracker said = {0};
	_cleanup_free_ struct incident *list = NULL;
	int64_t first, last;
	size_t n = 0;
	int result = 0;

	range_of(c, &first, &last);
	for (int i = FIRST_LOOK; result == 0 && i < LOOKS; i++)
		result = look(c, first + (last - first) / LOOKS * i, &said);
	if (result == 0)
		result = corpus_cut(c, INT64_MAX);
	if (result == 0)
		result = diagnose_run(&c->rec, &list, &n);
	if (result < 0)
		return result;
	json_begin_object(&r->w);
	json_string_member(&r->w, "file", r->names[r->count]);
	json_begin_array_member(&r->w, "said");
	for (size_t i = 0; i < said.count; i++) {
		const struct incident *inc = &said.entries[i].incident;

		put_incident(&r->w, inc, incident_is_told(inc, list, n));
	}
	json_end_array(&r->w);
	json_begin_array_member(&r->w, "incidents");
	for (size_t i = 0; i < n; i++)
		put_incident(&r->w, &list[i], true);
	json_end_array(&r->w);
	json_end_object(&r->w);
	return json_finish(&r->w);
}

/* What a verdict is: the first incident that somebody would look at. */
static int say(struct corpus *c, char ret[VERDICT_MAX])
{
	_cleanup_free_ struct incident *list = NULL;
	size_t n = 0, first = 0;
	int r = corpus_contrast(c);

	if (r == 0)
		r = diagnose_run(&c->rec, &list, &n);
	if (r < 0)
		return r;
	while (first < n && list[first].severity < SEVERITY_MEDIUM)
		first++;
	if (first == n)
		snprintf(ret, VERDICT_MAX, "nothing");
	else
		snprintf(ret, VERDICT_MAX, "%s %u %s %s", problem_row(list[first].problem)->id,
			list[first].pid,
			list[first].cause_count ? list[first].causes[0].culprit : "",
			list[first].place);
	return 0;
}

static int move_thresholds(struct replay *r, struct corpus *c)
{
	char before[VERDICT_MAX], after[VERDICT_MAX];
	double moved[THRESHOLD_COUNT];
	int result = say(c, before);

	for (int i = 0; result == 0 && i < THRESHOLD_COUNT; i++)
		for (int up = 0; result == 0 && up < DIRECTIONS; up++) {
			memcpy(moved, thresholds_default, sizeof(moved));
			moved[i] *= up ? 1 + MOVE : 1 - MOVE;
			thresholds = moved;
			result = say(c, after);
			thresholds = thresholds_default;
			r->changed[i][up][r->count] = strcmp(before, after) != 0;
		}
	return result;
}

static int put_sensitivity(struct replay *r)
{
	static const char *const names[] = {
#define X(NAME, ...) #NAME,
		THRESHOLDS(X)
#undef X
	};
	int result = 0;

	for (int i = 0; result == 0 && i < THRESHOLD_COUNT; i++) {
		json_begin_object(&r->w);
		json_string_member(&r->w, "threshold", names[i]);
		json_double_member(&r->w, "value", thresholds_default[i]);
		for (int up = 0; up < DIRECTIONS; up++) {
			json_begin_array_member(&r->w, up ? "up" : "down");
			for (size_t k = 0; k < r->count; k++)
				if (r->changed[i][up][k])
					json_put_string(&r->w, r->names[k]);
			json_end_array(&r->w);
		}
		json_end_object(&r->w);
		result = json_finish(&r->w);
	}
	return result;
}

/* Returns 1, 0 at the end, or a negative errno. */
static int next_file(struct replay *r)
{
	_cleanup_(corpus_done) struct corpus c = {0};
	char name[256];
	int result;

	if (scanf("file %255[^\n]", name) != 1)
		return feof(stdin) ? 0 : -EBADMSG;
	getchar(); /* its end of line */
	if (r->count == FILES_MAX)
		return -ENOBUFS;
	r->names[r->count] = strdup(name);
	if (!r->names[r->count])
		return -ENOMEM;
	result = corpus_read(stdin, &c);
	if (result > 0)
		result = corpus_open(&c);
	if (result == 0)
		result = r->is_sensitivity ? move_thresholds(r, &c)
			 : r->is_live      ? put_live(r, &c)
					   : put_verdict(r, &c);
	if (result < 0)
		fprintf(stderr, "%s: %s\n", name, strerror(-result));
	r->count++;
	return result < 0 ? result : 1;
}

int main(int argc, char **argv)
{
	struct replay *r = calloc(1, sizeof(*r));
	int result;

	if (!r)
		return 1;
	r->w = json_writer_to_file(stdout);
	r->is_sensitivity = argc == 2 && !strcmp(argv[1], "--sensitivity");
	r->is_live = argc == 2 && !strcmp(argv[1], "--live");
	do {
		result = next_file(r);
	} while (result > 0);
	if (result == 0 && r->is_sensitivity)
		result = put_sensitivity(r);
	for (size_t i = 0; i < r->count; i++)
		free(r->names[i]);
	free(r);
	return result < 0;
}
