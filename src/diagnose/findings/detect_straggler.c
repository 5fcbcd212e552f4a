/* SPDX-License-Identifier: Apache-2.0 */
/* detect_straggler.c - ranks that the others wait for, again and again: of each job in the recording one
 * incident for each cause that blame/ found, with the job's rank, its stage, and what the process did in its
 * own time. Ranks that are late in the same steps are one cause.
 *
 * Severity: HIGH if the job stands still for at least 10 % of its time, MEDIUM from 5 %, LOW from 1 %, nothing
 * below unless it comes at regular distances. Stages do different work, and nobody divides it evenly: one that has become slow is HIGH
 * from 20 %, MEDIUM from 10 %, one that always was is LOW. What ranks that wait lose is this incident's, so unexplained
 * slow calls of theirs are dropped.
 *
 * explained is the part of the others' waiting that its lateness accounts for; excess_ns the time the job
 * stood still. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/findings/straggler_load.h"
#include "diagnose/findings/detector.h"
#include "base/text.h"
#include "blame/transfer_text.h"
#include "wire/names.h"

#define HIGH_SHARE   0.10
#define MEDIUM_SHARE 0.05 /* as the cluster's service has it */
#define LOW_SHARE    0.01
#define CLEARED      4 /* named */
#define NAMED        3 /* ranks that are late together */
#define OWN_MIN_NS   (200 * NS_PER_US)

struct culprits {                          /* suspects that are late together */
	const struct blame_suspect *worst; /* the costliest */
	const struct blame_suspect *all[BLAME_SUSPECTS_MAX];
	size_t count;
	double share;
	uint64_t lost_ns;
};

static struct culprits cause_of(const struct blame *b, size_t first)
{
	struct culprits c = {.worst = &b->suspects[first]};

	for (size_t i = first; i < b->suspect_count; i++) {
		const struct blame_suspect *s = &b->suspects[i];

		if (s->cause != b->suspects[first].cause)
			continue;
		c.all[c.count++] = s;
		c.share = MIN(c.share + s->share, 1.0);
		c.lost_ns += s->lost_ns;
	}
	return c;
}

static bool has_nodes(const struct straggler_job *j)
{
	for (size_t i = 1; i < j->worker_count; i++)
		if (strcmp(j->workers[i].node, j->workers[0].node))
			return true;
	return false;
}

/* "rank 5 (pid 1005 on n1) of stage 2", "ranks 2 (pid 1002) and 3 (pid 1003)" */
static void ranks_text(
	const struct straggler_job *j, const struct culprits *c, char *out, size_t size)
{
	size_t len = (size_t)snprintf(out, size, "rank%s ", c->count == 1 ? "" : "s");
	size_t named = MIN(c->count, (size_t)NAMED);

	for (size_t i = 0; i < named && len < size; i++) {
		const struct blame_worker *w = &j->workers[c->all[i]->worker];

		len += (size_t)snprintf(out + len, size - len, "%s%d (pid %u%s%.40s)",
			i == 0              ? ""
			: i == c->count - 1 ? " and "
					    : ", ",
			w->rank, w->pid, has_nodes(j) ? " on " : "", has_nodes(j) ? w->node : "");
	}
	if (c->count > named && len < size)
		len += (size_t)snprintf(out + len, size - len, " and %zu more", c->count - named);
	if (c->worst->stage >= 0 && len < size)
		snprintf(out + len, size - len, " of stage %d", c->worst->stage);
}

/* Of a stage "stage 2 (ranks 10, 11 and 6 more)". */
static void who_text(
	const struct straggler_job *j, const struct culprits *c, char *out, size_t size)
{
	size_t len, named = 0, all = 0;
	int32_t stage = c->worst->stage;

	for (size_t i = 0; i < j->worker_count; i++)
		all += j->blame.stage_of[i] == stage;
	if (j->blame.kind != BLAME_STAGE || all < 2) {
		ranks_text(j, c, out, size);
		return;
	}
	len = (size_t)snprintf(out, size, "stage %d (ranks ", stage);
	for (size_t i = 0; i < j->worker_count && named < 2 && len < size; i++) {
		if (j->blame.stage_of[i] != stage)
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
			" also entered collectives last, but only after waiting for others.");
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

static void write_words(const struct straggler_job *j, const struct culprits *c, const char *doing,
	struct incident *inc)
{
	const struct blame *b = &j->blame;
	const struct blame_suspect *s = c->worst;
	const char *peers_are = b->kind == BLAME_STAGE ? "the other stages" : "its peers";
	size_t others = j->worker_count - MIN(c->count, j->worker_count);
	_cleanup_buf_ struct buf what = BUF_INIT(256);
	char who[160], cleared[160], regular[64] = "";
	char lag[TEXT_MAX], lost[TEXT_MAX], part[TEXT_MAX], own[TEXT_MAX], peers[TEXT_MAX],
		step[TEXT_MAX];

	who_text(j, c, who, sizeof(who));
	cleared_text(j, cleared, sizeof(cleared));
	if (s->period > 1)
		snprintf(regular, sizeof(regular), ", every %u steps", s->period);
	text_format_span(lag, s->lag_ns);
	text_format_span(lost, c->lost_ns);
	text_format_percent(part, c->share);
	text_format_span(own, s->own_ns);
	text_format_span(peers, s->peer_own_ns);
	text_format_span(step, b->step_ns);
	snprintf(inc->summary, sizeof(inc->summary),
		"%s keep%s %zu rank%s waiting: %s late%s; the job was stalled for %s, %s of the time",
		who, c->count == 1 ? "s" : "", others, others == 1 ? "" : "s", lag, regular, lost,
		part);
	transfer_text_collective(&what, s->op, s->comm);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"%s %s late in %s of %s steps%s%s, by %s more of its own time than %s: %s", who,
		c->count == 1 ? "was" : "were", TEXT_COUNT(s->late), TEXT_COUNT(s->seen),
		s->comm ? " for " : "", s->comm ? buf_str(&what) : "", lag, peers_are, doing);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"%s communications of %zu ranks, Sends and Recvs included, were traced back from the waiting ranks to the one that entered last, "
		"over %s steps of %s (median)%s. %s need%s %s per step without waiting for others, %s %s. "
		"%zu rank%s waited %s in each of %s steps. Without the difference the job would have been %s faster, %s of its time.%s Before its calls %s.",
		TEXT_COUNT(j->call_count), j->worker_count, TEXT_COUNT(b->steps), step,
		j->workers[0].error_ns
			? ", with clocks of different nodes aligned by the ends of collectives"
			: "",
		who, c->count == 1 ? "s" : "", own, peers_are, peers, others,
		others == 1 ? "" : "s", lag, TEXT_COUNT(s->late), lost, part, cleared, doing);
}

/* What all but the late ones waited, each time once. */
static uint64_t others_waited(const struct straggler_job *j, const struct culprits *c)
{
	_cleanup_free_ int64_t *until = calloc(j->worker_count + 1, sizeof(*until));
	uint64_t sum = 0;

	for (size_t i = 0; until && i < c->count; i++)
		until[c->all[i]->worker] = INT64_MAX;
	for (size_t i = 0; until && i < j->call_count; i++) {
		const struct push_call *x = &j->calls[i].c;
		int64_t *u = &until[j->calls[i].worker];
		int64_t start;

		if (x->wait_ns == UINT64_MAX)
			continue;
		start = MAX(x->leave_ns - (int64_t)x->wait_ns, *u);
		if (x->leave_ns <= start)
			continue;
		sum += (uint64_t)(x->leave_ns - start);
		*u = x->leave_ns;
	}
	return sum;
}

struct worst { /* calls that a process came to after the longest own time, longest first */
	const struct collective_row *rows[INCIDENT_EVIDENCE];
	int64_t own_ns[INCIDENT_EVIDENCE];
	size_t count;
};

static void keep_worst(struct worst *w, const struct collective_row *row, int64_t own_ns)
{
	size_t at = w->count;

	while (at > 0 && w->own_ns[at - 1] < own_ns)
		at--;
	if (at == INCIDENT_EVIDENCE)
		return;
	w->count = MIN(w->count + 1, (size_t)INCIDENT_EVIDENCE);
	for (size_t i = w->count - 1; i > at; i--) {
		w->rows[i] = w->rows[i - 1];
		w->own_ns[i] = w->own_ns[i - 1];
	}
	w->rows[at] = row;
	w->own_ns[at] = own_ns;
}

/* The latest one of @s is among them, whatever came before it. */
static struct worst worst_of(const struct straggler_job *j, const struct blame_suspect *s,
	const struct collective_row *row)
{
	struct worst w = {.rows = {row}, .own_ns = {INT64_MAX}, .count = 1};
	int64_t from = INT64_MAX;

	for (size_t i = 0; i < j->call_count; i++) {
		const struct push_call *c = &j->calls[i].c;

		if (j->calls[i].worker != s->worker)
			continue;
		if (c->enter_ns > from && c->comm == row->c.comm_hash && j->rows[i] != row)
			keep_worst(&w, j->rows[i], c->enter_ns - from);
		from = from == INT64_MAX ? c->leave_ns : MAX(from, c->leave_ns);
	}
	return w;
}

static void add_evidence(const struct recording *rec, const struct collective_row *row,
	const struct straggler_job *j, const struct blame_suspect *s, struct incident *inc)
{
	struct worst w = worst_of(j, s, row);
	char op[32], lag[TEXT_MAX];
	size_t len;

	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (e->pid != row->pid || e->source != SOURCE_NCCL)
			continue;
		memcpy(inc->comm, e->comm, COMM_LEN);
		for (size_t k = 0; k < w.count; k++)
			if (e->start.ns == w.rows[k]->start.ns && e->tid == w.rows[k]->tid)
				incident_evidence(inc, e);
	}
	inc->comm[COMM_LEN - 1] = 0;
	incident_step(inc, row->start.ns, row->dur_ns, "NCCL",
		wire_op_name(SOURCE_NCCL, row->op, op),
		"rank %d entered collective #%" PRIu64 " %s late in its step",
		j->workers[s->worker].rank, row->c.seq, text_format_span(lag, s->lag_ns));
	len = (size_t)snprintf(inc->evidence_sql, sizeof(inc->evidence_sql),
		"SELECT node, rank, pid, seq, op, timestamp, wait_ns FROM collectives WHERE comm = "
		"%" PRId64 " AND seq IN (",
		(int64_t)row->c.comm_hash);
	for (size_t k = 0; k < w.count; k++)
		len += (size_t)snprintf(inc->evidence_sql + len, sizeof(inc->evidence_sql) - len,
			"%s%" PRIu64, k ? "," : "", w.rows[k]->c.seq);
	snprintf(inc->evidence_sql + len, sizeof(inc->evidence_sql) - len,
		") ORDER BY seq, timestamp");
}

/* The first twentieth of the job: what is late from there on is late from the beginning. */
static int64_t in_first_part(const struct straggler_job *j)
{
	return j->blame.end_ns - (int64_t)(j->blame.span_ns / 20 * 19);
}

/* How many steps the job has made since @s was late for the first time. */
static uint32_t late_since(const struct straggler_job *j, const struct blame_suspect *s)
{
	return (uint32_t)(MAX(j->blame.end_ns - s->since_ns, INT64_C(0)) /
			  (int64_t)MAX(j->blame.step_ns, UINT64_C(1)));
}

/* Stages cannot be divided evenly, and ranks differ by some milliseconds without a fault: that has to cost more. */
static enum severity severity_of(const struct blame *b, const struct culprits *c)
{
	bool is_usual = b->kind == BLAME_STAGE || c->worst->lag_ns < BLAME_SMALL_NS;
	double share = c->share;

	if (c->worst->by_design)
		return SEVERITY_LOW;
	return share >= (is_usual ? 2 * HIGH_SHARE : HIGH_SHARE) ? SEVERITY_HIGH
	       : share >= (is_usual ? HIGH_SHARE : MEDIUM_SHARE) ? SEVERITY_MEDIUM
								 : SEVERITY_LOW;
}

static void fill(const struct detector_input *in, const struct straggler_job *j,
	const struct culprits *c, const struct collective_row *row, struct incident *inc)
{
	const struct blame_suspect *s = c->worst;
	double waited = (double)others_waited(j, c);
	double others = (double)(j->worker_count - MIN(c->count, j->worker_count));

	inc->last.ns = MAX(s->until_ns, s->since_ns);
	inc->severity = severity_of(&j->blame, c);
	inc->source = SOURCE_NCCL;
	inc->op = row->op;
	inc->calls = j->call_count;
	inc->count = s->late;
	inc->unit = RANK_LATE_UNIT;
	inc->culprit_rank = j->workers[s->worker].rank;
	snprintf(inc->culprit_node, sizeof(inc->culprit_node), "%s", j->workers[s->worker].node);
	if (s->since_ns > in_first_part(j)) /* it began while it was recorded, and lasts */
		inc->since.ns = s->period == 1 || s->late + 1 >= late_since(j, s) ? s->since_ns : 0;
	inc->period_steps = s->period > 1 ? s->period : 0;
	inc->period_confidence = s->period > 1 ? s->confidence : 0;
	inc->excess_ns = c->lost_ns;
	inc->explained = waited > 0 ? MIN((double)c->lost_ns * others / waited, 1.0) : 1;
	inc->completeness = completeness_of_sources(in->rec->books, OF_SOURCE(SOURCE_NCCL));
	inc->confidence = s->confidence * completeness_weight(inc->completeness);
}

/* One that sleeps has no more work than the others. */
static void advise_sleeper(const struct collective_row *row, struct incident *inc)
{
	inc->fix_count = 0;
	incident_fix(inc,
		"If only this rank does it (it logs, saves or asks a service for all), do it in a thread, or while the others compute");
	incident_fix(inc,
		"Find out what it sleeps for before that call: `ingero explain --steps --pid %u` shows the line. Usual are a sleep() between retries, polling, and a wait with a time limit",
		row->pid);
}

static int report_cause(const struct detector_input *in, const struct straggler_job *j,
	const struct culprits *c, struct incident_list *out)
{
	const struct collective_row *row = latest_row(j, c->worst);
	_cleanup_free_ struct window *windows = NULL;
	struct doing doing;
	struct incident *inc;
	size_t n;
	int r = own_windows(j, c->worst->worker, &windows, &n);

	r = r < 0 ? r : doing_describe(in->rec, row->pid, windows, n, &doing);
	if (r < 0)
		return r;
	inc = incident_begin(out, PROBLEM_STRAGGLER);
	incident_id(inc, row->pid, c->worst->since_ns);
	fill(in, j, c, row, inc);
	write_words(j, c, doing.text, inc);
	if (doing.line == ACCOUNT_ASLEEP)
		advise_sleeper(row, inc);
	add_evidence(in->rec, row, j, c->worst, inc);
	incident_keep(out, inc);
	return 0;
}

static int report_job(
	const struct detector_input *in, const struct straggler_job *j, struct incident_list *out)
{
	int r = straggler_load_report(in, j, out);

	if (r < 0)
		return r;
	straggler_link_report(in, j, out);
	for (size_t i = 0; i < j->blame.suspect_count; i++) {
		struct culprits c = cause_of(&j->blame, i);

		/* a GPU that is late is straggler_load.c's to tell */
		if (c.worst->on_time || c.worst->cause != i ||
			(c.share < LOW_SHARE && c.worst->period < 2))
			continue;
		r = report_cause(in, j, &c, out);
		if (r < 0)
			return r;
	}
	return 0;
}

int detect_straggler(const struct detector_input *in, struct incident_list *out)
{
	_cleanup_(straggler_jobs_done) struct straggler_jobs jobs;
	int r = straggler_jobs_find(in->rec, in->accounts, &jobs);

	for (size_t i = 0; r == 0 && i < jobs.count; i++)
		if (jobs.items[i].blame.confidence > 0)
			r = report_job(in, &jobs.items[i], out);
	return r;
}
