/* SPDX-License-Identifier: Apache-2.0 */
/* detect_straggler.c - ranks that the others wait for, again and again.
 *
 * Where ranks wait for each other in several ways, by Sends or in communicators of some of them, who is
 * last may have waited itself: straggler_job.c follows that through the whole job. Where one communicator
 * holds all of them, last is late: one incident for each late process, or for those that are late
 * together. straggler_find.c says who; here the time before its calls is looked at (window.h) and the
 * verdict is written.
 *
 * Severity: HIGH if the job stands still for at least 10 % of the communicator's time, MEDIUM from
 * 3 %, LOW from 1 %, nothing below. Load that is uneven without a culprit is not reported.
 *
 * Confidence = share x n/(n+3) x completeness x ranks: the share of material collectives in which
 * it was last, n of them, the share of events that are in the data (0.9 when not known), and the
 * share of the communicator's ranks that are in the recording (1 when not known).
 *
 * explained is the part of the others' waiting that its lateness accounts for; excess_ns the time
 * the job stood still. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/correlate/engine/detector.h"
#include "agent/correlate/detect/straggler_find.h"
#include "agent/correlate/detect/straggler_job.h"
#include "base/text.h"
#include "wire/names.h"

#define HIGH_SHARE   0.10
#define MEDIUM_SHARE 0.03
#define LOW_SHARE    0.01
#define CALLS_HALF   3.0
#define CULPRITS_MAX 16
#define NAMED        3 /* ranks that are late together */
#define SHOWN        4 /* worst collectives in the timeline */

/* "rank 2 (pid 1002)", "ranks 2 (pid 1002) and 3 (pid 1003)" */
static void late_text(const struct straggler *s, char *out, size_t size)
{
	size_t len = (size_t)snprintf(out, size, "rank%s ", s->late_count == 1 ? "" : "s");

	for (int i = 0; i < MIN(s->late_count, NAMED) && len < size; i++)
		len += (size_t)snprintf(out + len, size - len, "%s%d (pid %u)",
			i == 0                   ? ""
			: i == s->late_count - 1 ? " and "
						 : ", ",
			s->late[i]->c.rank, s->late[i]->pid);
	if (s->late_count > NAMED && len < size)
		snprintf(out + len, size - len, " and %d more", s->late_count - NAMED);
}

static void write_words(const struct straggler *s, const struct window_use *u, struct incident *inc)
{
	char late[TEXT_MAX], lost[TEXT_MAX], all[TEXT_MAX], part[TEXT_MAX], share[TEXT_MAX];
	char waited[TEXT_MAX], each[TEXT_MAX], doing[160], regular[64] = "", who[80];
	int others = s->ranks - s->late_count;

	window_describe(u, s->row->pid, doing, sizeof(doing));
	late_text(s, who, sizeof(who));
	text_format_percent(share, (double)s->last / (double)s->material);
	text_format_duration(late, s->gap_p50_ns);
	if (s->period)
		snprintf(regular, sizeof(regular), ", every %u collectives", s->period);
	snprintf(inc->summary, sizeof(inc->summary),
		"%s keep%s %d rank%s waiting: %s late%s; the job was stalled for %s, %s of the time",
		who, s->late_count == 1 ? "s" : "", others, others == 1 ? "" : "s", late, regular,
		text_format_duration(lost, s->job_ns),
		text_format_percent(part, MIN((double)s->job_ns / (double)s->span_ns, 1.0)));
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"%s arrived last in %s of %zu delayed collectives, %s late: %s", who, share,
		s->material, late, doing);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"%zu collectives were compared on %d ranks by (communicator, sequence number)%s; "
		"%zu of them were delayed by the last ones, %zu of these by %s, %s after the rank before (median). The job was stalled for %s in total, %s at each such collective. The other ranks waited %s for these in their "
		"synchronisations, %s of it is this lateness. Before %s calls %s.",
		s->collectives, s->ranks,
		s->by_waits ? ", across nodes by how long each waited" : "", s->material, s->last,
		who, late, text_format_duration(lost, s->job_ns),
		text_format_duration(each, s->job_ns / MAX(s->window_count, (size_t)1)),
		text_format_duration(all, s->wait_ns), text_format_percent(waited, inc->explained),
		s->late_count == 1 ? "its" : "the last one's", doing);
}

static int steps_by_time(const void *a, const void *b)
{
	const struct incident_step *x = a, *y = b;

	return (x->time.ns > y->time.ns) - (x->time.ns < y->time.ns);
}

static void write_timeline(const struct straggler *s, struct incident *inc)
{
	char gap[TEXT_MAX], op[32];

	for (size_t i = 0; i < MIN(s->last, (size_t)SHOWN); i++) {
		const struct collective_row *r = s->worst[i].row;

		incident_step(inc, r->start.ns - (int64_t)s->worst[i].gap_ns, s->worst[i].gap_ns,
			"NCCL", wire_op_name(SOURCE_NCCL, r->op, op),
			"rank %d arrives at collective %" PRIu64 " %s after the last of the others",
			r->c.rank, r->c.seq, text_format_duration(gap, s->worst[i].gap_ns));
	}
	qsort(inc->timeline, (size_t)inc->step_count, sizeof(inc->timeline[0]), steps_by_time);
}

/* The rows of `events` of its worst calls. */
static void add_evidence(
	const struct recording *rec, const struct straggler *s, struct incident *inc)
{
	size_t n = MIN(s->last, (size_t)INCIDENT_EVIDENCE);
	size_t len;

	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (e->pid != s->row->pid || e->source != SOURCE_NCCL)
			continue;
		memcpy(inc->comm, e->comm, COMM_LEN);
		for (size_t k = 0; k < n; k++)
			if (s->worst[k].row->start.ns == e->start.ns &&
				s->worst[k].row->tid == e->tid)
				incident_evidence(inc, e);
	}
	inc->comm[COMM_LEN - 1] = 0;
	len = (size_t)snprintf(inc->evidence_sql, sizeof(inc->evidence_sql),
		"SELECT node, rank, pid, seq, op, timestamp, wait_ns FROM collectives WHERE comm = "
		"%" PRId64 " AND seq IN (",
		(int64_t)s->row->c.comm_hash);
	for (size_t k = 0; k < n; k++)
		len += (size_t)snprintf(inc->evidence_sql + len, sizeof(inc->evidence_sql) - len,
			"%s%" PRIu64, k ? "," : "", s->worst[k].row->c.seq);
	snprintf(inc->evidence_sql + len, sizeof(inc->evidence_sql) - len,
		") ORDER BY seq, timestamp");
}

static int report(const struct detector_input *detector_input, const struct straggler *s,
	struct incident_list *out)
{
	double job = (double)s->job_ns / (double)s->span_ns, n = (double)s->material;
	struct window_use use;
	struct incident *inc;
	int r = window_examine(detector_input->rec, s->row->pid, s->windows, s->window_count, &use);

	if (r < 0)
		return r;
	inc = incident_begin(out, PROBLEM_STRAGGLER);
	if (!inc)
		return 0;
	incident_id(inc, s->row->pid, s->first_ns);
	inc->last.ns = s->last_ns;
	inc->severity = job >= HIGH_SHARE     ? SEVERITY_HIGH
			: job >= MEDIUM_SHARE ? SEVERITY_MEDIUM
					      : SEVERITY_LOW;
	inc->source = SOURCE_NCCL;
	inc->op = s->row->op;
	inc->calls = s->collectives;
	inc->count = s->last;
	inc->unit = "late collectives";
	inc->culprit_rank = s->row->c.rank;
	snprintf(inc->culprit_node, sizeof(inc->culprit_node), "%s", s->row->node);
	inc->period_steps = s->period;
	inc->period_confidence = s->period_share;
	inc->excess_ns = s->job_ns;
	inc->explained = s->wait_ns ? (double)s->lost_ns / (double)s->wait_ns : 0;
	inc->completeness =
		completeness_of_sources(detector_input->rec->books, OF_SOURCE(SOURCE_NCCL));
	inc->confidence = (double)s->last / n * n / (n + CALLS_HALF) *
			  completeness_weight(inc->completeness) *
			  (s->nranks >= s->ranks ? (double)s->ranks / s->nranks : 1);
	write_words(s, &use, inc);
	write_timeline(s, inc);
	add_evidence(detector_input->rec, s, inc);
	incident_keep(out, inc);
	return 0;
}

static void stragglers_done(struct straggler (*list)[CULPRITS_MAX])
{
	for (int i = 0; i < CULPRITS_MAX; i++)
		straggler_done(&(*list)[i]);
}

/* One process late in several communicators is one problem: the costliest stands for it, and of too
 * many processes the costliest stay. Takes @found over. */
static size_t keep_costliest(struct straggler *list, size_t n, struct straggler *found)
{
	size_t i = 0;

	while (i < n && (list[i].row->pid != found->row->pid ||
				strcmp(list[i].row->node, found->row->node) != 0))
		i++;
	if (i == CULPRITS_MAX)
		for (size_t k = i = 0; k < n; k++)
			i = list[k].job_ns < list[i].job_ns ? k : i;
	if (i < n && list[i].job_ns >= found->job_ns) {
		straggler_done(found);
		return n;
	}
	straggler_done(&list[i]);
	list[i] = *found;
	return MAX(n, i + 1);
}

/* What the waiting ranks' synchronisations show is this. */
static void cover_waits(
	const struct match_table *t, const struct straggler *s, struct incident_list *out)
{
	for (size_t i = 0; i < t->row_count; i++)
		if (t->rows[i]->c.comm_hash == s->row->c.comm_hash &&
			t->rows[i]->c.seq == s->row->c.seq)
			incident_cover(out, t->rows[i]->pid, s->windows[0].start_ns,
				s->last_ns + (int64_t)s->gap_p50_ns);
}

static int report_by_comms(const struct detector_input *detector_input, struct incident_list *out)
{
	_cleanup_(match_done) struct match_table t = {0};
	_cleanup_(stragglers_done) struct straggler list[CULPRITS_MAX] = {0};
	struct straggler found;
	size_t n = 0;
	int r = match_run(detector_input->rec, &t);

	for (size_t i = 0; r >= 0 && i < t.comm_count; i++) {
		r = straggler_find(&t, &t.comms[i], &found);
		if (r > 0 && (double)found.job_ns >= LOW_SHARE * (double)found.span_ns)
			n = keep_costliest(list, n, &found);
		else if (r > 0)
			straggler_done(&found);
	}
	for (size_t i = 0; r >= 0 && i < n; i++) {
		cover_waits(&t, &list[i], out);
		r = report(detector_input, &list[i], out);
	}
	return MIN(r, 0);
}

int detect_straggler(const struct detector_input *detector_input, struct incident_list *out)
{
	_cleanup_(straggler_job_done) struct straggler_job j;
	int r = straggler_job_find(detector_input->rec, &j);

	if (r < 0)
		return r;
	return r > 0 ? straggler_job_report(detector_input, &j, out)
		     : report_by_comms(detector_input, out);
}
