/* SPDX-License-Identifier: Apache-2.0 */
/* straggler_report.c - incidents of a job whose ranks wait for each other in many ways: one for each
 * cause that blame/ found, with the job's rank, its stage, and what the process did in its own time.
 *
 * Severity as in detect_straggler.c, by the share of the job's time. What ranks that wait lose is this
 * incident's, so unexplained slow calls of theirs are dropped. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/correlate/detect/straggler_job.h"
#include "agent/correlate/engine/detector.h"
#include "agent/correlate/engine/window.h"
#include "base/text.h"
#include "wire/names.h"

#define HIGH_SHARE   0.10
#define MEDIUM_SHARE 0.03
#define LOW_SHARE    0.01
#define CLEARED      4 /* named */
#define UNEVEN_STEPS 20
#define UNEVEN_SURE  0.5
#define OWN_MIN_NS   (200 * NS_PER_US)

/* "rank 5 (pid 1005), stage 2"; of a stage "stage 2 (ranks 10, 11 and 6 more)" */
static void who_text(
	const struct straggler_job *j, const struct blame_suspect *s, char *out, size_t size)
{
	const struct blame_worker *w = &j->workers[s->worker];
	size_t len, named = 0, all = 0;

	if (j->blame.kind != BLAME_STAGE) {
		len = (size_t)snprintf(out, size, "rank %d (pid %u)", w->rank, w->pid);
		if (s->stage >= 0 && len < size)
			snprintf(out + len, size - len, " of stage %d", s->stage);
		return;
	}
	len = (size_t)snprintf(out, size, "stage %d (ranks ", s->stage);
	for (size_t i = 0; i < j->worker_count; i++)
		all += j->blame.stage_of[i] == s->stage;
	for (size_t i = 0; i < j->worker_count && named < 2 && len < size; i++) {
		if (j->blame.stage_of[i] != s->stage)
			continue;
		len += (size_t)snprintf(
			out + len, size - len, "%s%d", named ? ", " : "", j->workers[i].rank);
		named++;
	}
	if (len < size && all > named)
		len += (size_t)snprintf(out + len, size - len, " and %zu more", all - named);
	if (len < size)
		snprintf(out + len, size - len, ")");
}

/* "ranks 3 and 7 were often last, but waited themselves" */
static void cleared_text(const struct straggler_job *j, char *out, size_t size)
{
	size_t n = j->blame.cleared_count, len = 0;

	out[0] = 0;
	if (!n)
		return;
	len = (size_t)snprintf(out, size, " Rank%s ", n == 1 ? "" : "s");
	for (size_t i = 0; i < MIN(n, (size_t)CLEARED) && len < size; i++)
		len += (size_t)snprintf(out + len, size - len, "%s%d", i ? ", " : "",
			j->workers[j->blame.cleared[i]].rank);
	if (n > CLEARED && len < size)
		len += (size_t)snprintf(out + len, size - len, " and %zu more", n - CLEARED);
	if (len < size)
		snprintf(out + len, size - len,
			" came last to collectives as well, but waited for others: not to blame.");
}

/* The process's own time before its calls: ascending, disjoint. */
static int own_windows(
	const struct straggler_job *j, uint32_t worker, struct window **ret, size_t *ret_count)
{
	_cleanup_free_ struct window *list = calloc(j->call_count + 1, sizeof(*list));
	int64_t from = INT64_MAX;
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < j->call_count; i++) {
		const struct push_call *c = &j->calls[i].c;

		if (j->calls[i].worker != worker)
			continue;
		if (c->enter_ns > from && (uint64_t)(c->enter_ns - from) >= OWN_MIN_NS)
			list[n++] = (struct window){from, c->enter_ns, j->rows[i]->tid};
		from = from == INT64_MAX ? c->leave_ns : MAX(from, c->leave_ns);
	}
	*ret = TAKE(list);
	*ret_count = n;
	return 0;
}

static const struct collective_row *latest_row(
	const struct straggler_job *j, const struct blame_suspect *s)
{
	const struct collective_row *first = NULL;

	for (size_t i = 0; i < j->call_count; i++) {
		const struct push_call *c = &j->calls[i].c;

		if (j->calls[i].worker != s->worker)
			continue;
		first = first ? first : j->rows[i];
		if (c->comm == s->comm && c->seq == s->seq && c->op == s->op)
			return j->rows[i];
	}
	return first;
}

static void write_words(const struct straggler_job *j, const struct blame_suspect *s,
	const struct window_use *u, struct incident *inc)
{
	const struct blame *b = &j->blame;
	bool stage = b->kind == BLAME_STAGE;
	char who[120], doing[160], cleared[160], regular[64] = "";
	char lag[TEXT_MAX], lost[TEXT_MAX], part[TEXT_MAX], own[TEXT_MAX], peers[TEXT_MAX],
		step[TEXT_MAX];

	who_text(j, s, who, sizeof(who));
	cleared_text(j, cleared, sizeof(cleared));
	window_describe(u, j->workers[s->worker].pid, doing, sizeof(doing));
	if (s->period > 1)
		snprintf(regular, sizeof(regular), ", every %u steps", s->period);
	text_format_duration(lag, s->lag_ns);
	text_format_duration(lost, s->lost_ns);
	text_format_percent(part, MIN(s->share, 1.0));
	text_format_duration(own, s->own_ns);
	text_format_duration(peers, s->peer_own_ns);
	text_format_duration(step, b->step_ns);
	snprintf(inc->summary, sizeof(inc->summary),
		"%s keeps %zu ranks waiting: %s late%s; the job was stalled for %s, %s of the time",
		who, j->worker_count - 1, lag, regular, lost, part);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"%s was late in %u of %u steps, by %s of its own time more than %s: %s", who,
		s->late, s->seen, lag, stage ? "the other stages" : "its peers", doing);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"%zu communications of %zu ranks, Sends and Recvs included, were followed backwards from who waited to who came last, "
		"over %u steps of %s (median). %s needs %s of its own in a step, %s %s; waiting for others is not counted. Without the difference the job had been %s faster, %s of its time.%s Before its calls %s.",
		j->call_count, j->worker_count, b->steps, step, who, own,
		stage ? "the other stages" : "its peers", peers, lost, part, cleared, doing);
}

static void add_evidence(const struct recording *rec, const struct collective_row *row,
	const struct straggler_job *j, const struct blame_suspect *s, struct incident *inc)
{
	char op[32], lag[TEXT_MAX];

	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (e->pid != row->pid || e->source != SOURCE_NCCL)
			continue;
		memcpy(inc->comm, e->comm, COMM_LEN);
		if (e->start.ns == row->start.ns && e->tid == row->tid)
			incident_evidence(inc, e);
	}
	inc->comm[COMM_LEN - 1] = 0;
	incident_step(inc, row->start.ns, row->dur_ns, "NCCL",
		wire_op_name(SOURCE_NCCL, row->op, op),
		"rank %d comes to communication %" PRIu64 ", %s late in its step",
		j->workers[s->worker].rank, row->c.seq, text_format_duration(lag, s->lag_ns));
	incident_sql(inc,
		"SELECT node, rank, pid, seq, op, timestamp, wait_ns FROM collectives WHERE comm = "
		"%" PRId64 " AND seq = %" PRIu64 " ORDER BY timestamp",
		(int64_t)row->c.comm_hash, row->c.seq);
}

static int report_suspect(const struct detector_input *in, const struct straggler_job *j,
	const struct blame_suspect *s, struct incident_list *out)
{
	const struct collective_row *row = latest_row(j, s);
	_cleanup_free_ struct window *windows = NULL;
	struct window_use use;
	struct incident *inc;
	size_t n;
	int r = own_windows(j, s->worker, &windows, &n);

	r = r < 0 ? r : window_examine(in->rec, row->pid, windows, n, &use);
	if (r < 0)
		return r;
	inc = incident_begin(out, PROBLEM_STRAGGLER);
	if (!inc)
		return 0;
	incident_id(inc, row->pid, s->since_ns);
	inc->last.ns = MAX(row->start.ns, s->since_ns);
	inc->severity = s->share >= HIGH_SHARE     ? SEVERITY_HIGH
			: s->share >= MEDIUM_SHARE ? SEVERITY_MEDIUM
						   : SEVERITY_LOW;
	inc->source = SOURCE_NCCL;
	inc->op = row->op;
	inc->calls = j->call_count;
	inc->count = s->late;
	inc->unit = "late steps";
	inc->culprit_rank = j->workers[s->worker].rank;
	snprintf(inc->culprit_node, sizeof(inc->culprit_node), "%s", j->workers[s->worker].node);
	inc->period_steps = s->period > 1 ? s->period : 0;
	inc->period_confidence = s->period > 1 ? s->confidence : 0;
	inc->excess_ns = s->lost_ns;
	inc->explained = s->own_ns ? 1 - MIN((double)s->peer_own_ns / (double)s->own_ns, 1.0) : 0;
	inc->completeness = completeness_of_sources(in->rec->books, OF_SOURCE(SOURCE_NCCL));
	inc->confidence = s->confidence * completeness_weight(inc->completeness);
	write_words(j, s, &use, inc);
	add_evidence(in->rec, row, j, s, inc);
	incident_keep(out, inc);
	return 0;
}

/* Whatever the others' calls waited for is told. */
static void cover_waits(const struct straggler_job *j, struct incident_list *out)
{
	for (size_t i = 0; i < j->worker_count; i++)
		incident_cover(out, j->workers[i].pid, 0, INT64_MAX);
}

/* Who was slowest in a step changes with every step: that is told, and nobody is named for it. */
static void report_uneven(
	const struct detector_input *in, const struct straggler_job *j, struct incident_list *out)
{
	const struct blame *b = &j->blame;
	double share = b->span_ns ? (double)b->lost_ns / (double)b->span_ns : 0;
	const struct collective_row *row = j->rows[0];
	char lost[TEXT_MAX], part[TEXT_MAX], step[TEXT_MAX], apart[TEXT_MAX], lasting[TEXT_MAX],
		op[32];
	struct incident *inc;

	if (b->steps < UNEVEN_STEPS || b->confidence < UNEVEN_SURE || share < MEDIUM_SHARE)
		return;
	inc = incident_begin(out, PROBLEM_STRAGGLER);
	if (!inc)
		return;
	incident_id(inc, row->pid, row->start.ns);
	inc->last.ns = j->rows[j->call_count - 1]->start.ns;
	inc->severity = share >= HIGH_SHARE ? SEVERITY_MEDIUM : SEVERITY_LOW;
	inc->source = SOURCE_NCCL;
	inc->op = row->op;
	inc->calls = j->call_count;
	inc->count = b->steps;
	inc->unit = "steps";
	inc->culprit_rank = -1;
	inc->excess_ns = b->lost_ns;
	inc->explained = 1;
	inc->completeness = completeness_of_sources(in->rec->books, OF_SOURCE(SOURCE_NCCL));
	inc->confidence = b->confidence * completeness_weight(inc->completeness);
	text_format_duration(lost, b->lost_ns);
	text_format_duration(step, b->step_ns);
	text_format_percent(part, MIN(share, 1.0));
	text_format_percent(apart, b->spread_step);
	text_format_percent(lasting, b->spread_lasting);
	snprintf(inc->summary, sizeof(inc->summary),
		"the load moves between %zu ranks: in every step another one is slowest; the job was stalled for %s, %s of the time",
		j->worker_count, lost, part);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"uneven load: ranks with the same work are %s apart in a step, but only %s over all %u steps: no rank is to blame",
		apart, lasting, b->steps);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"%zu communications of %zu ranks, Sends and Recvs included, were followed backwards from who waited to who came last, "
		"over %u steps of %s (median). What a rank computes in a step differs by far more than ranks differ over time, as with sequences or experts of uneven size. Give each rank the same amount of work in each step.",
		j->call_count, j->worker_count, b->steps, step);
	incident_step(inc, row->start.ns, row->dur_ns, "NCCL",
		wire_op_name(SOURCE_NCCL, row->op, op), "the first of %zu communications",
		j->call_count);
	incident_sql(inc,
		"SELECT rank, count(*) AS calls, sum(wait_ns) / 1e6 AS waited_ms FROM collectives GROUP BY rank ORDER BY rank");
	incident_keep(out, inc);
}

int straggler_job_report(
	const struct detector_input *in, const struct straggler_job *j, struct incident_list *out)
{
	bool covered = false;

	if (j->blame.kind == BLAME_UNEVEN)
		report_uneven(in, j, out);
	for (size_t i = 0; i < j->blame.suspect_count; i++) {
		const struct blame_suspect *s = &j->blame.suspects[i];
		int r;

		if (s->share < LOW_SHARE && s->period < 2)
			continue;
		if (!covered)
			cover_waits(j, out);
		covered = true;
		r = report_suspect(in, j, s, out);
		if (r < 0)
			return r;
	}
	return 0;
}
