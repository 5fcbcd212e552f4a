/* SPDX-License-Identifier: Apache-2.0 */
/* detect_hang.c - tells of collectives that do not end, and of ranks that disagree about one: one incident
 * for each communicator. hang_find.c says which.
 *
 * Severity: CRITICAL if ranks wait to the end for one that is in the recording and did not come, or
 * that called something else; HIGH if the ranks that did not come are in other recordings; MEDIUM
 * for a mismatch that went through, whose result is undefined, and for a rank that is late by less
 * than a minute and was at work until the end, as when it writes a checkpoint.
 *
 * Confidence = completeness of the recording (0.9 when not known), x 0.8 if no wait that long was
 * seen itself, only that nobody came back, x 0.7 if who is missing is not in the recording. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/findings/detector.h"
#include "diagnose/findings/hang_find.h"
#include "base/buf.h"
#include "base/text.h"
#include "wire/names.h"

#define UNSEEN_WAIT  0.8
#define UNSEEN_RANKS 0.7
#define NAMED_RANKS  4
#define REPORTED_MAX 16
#define LOOKS_MAX    32 /* suspects whose processes are looked at */
#define SENTENCE_MAX 4096
#define PAUSE_NS     ((int64_t)(60 * NS_PER_S))

/* "ranks 2 and 5 (pids 812, 815)" of those that are odd, or that are not. */
static void put_ranks(struct buf *b, const struct hang *h, bool odd)
{
	size_t n = odd ? h->odd_count : h->rank_count - h->odd_count, shown = 0;

	buf_printf(b, "rank%s ", n == 1 ? "" : "s");
	for (size_t i = 0; i < h->rank_count && shown < NAMED_RANKS; i++)
		if (h->ranks[i].is_odd == odd)
			buf_printf(b, "%s%d (pid %u)", shown++ ? ", " : "",
				h->ranks[i].last->c.rank, h->ranks[i].last->pid);
	if (n > shown)
		buf_printf(b, " and %zu more", n - shown);
}

static const struct hang_rank *first_rank(const struct hang *h, bool odd)
{
	for (size_t i = 0; i < h->rank_count; i++)
		if (h->ranks[i].is_odd == odd)
			return &h->ranks[i];
	return &h->ranks[0];
}

static void put_call(struct buf *b, const struct collective_row *r)
{
	char op[32], bytes[TEXT_MAX];

	buf_printf(b, "%s of %s", wire_op_name(SOURCE_NCCL, r->op, op),
		text_format_bytes(bytes, r->c.bytes));
	if (r->c.datatype >= 0)
		buf_printf(b, ", type %d", r->c.datatype);
	if (r->c.root >= 0)
		buf_printf(b, ", root %d", r->c.root);
}

/* What the rank that did not come did instead, as far as it was recorded. */
static void put_last_doing(struct buf *b, const struct recording *rec, const struct hang *h)
{
	const struct hang_rank *r = first_rank(h, true);
	const struct event *last = NULL;
	char op[32], ago[TEXT_MAX];

	if (r->exit_ns) {
		buf_printf(b, "its process exited%s",
			r->exit_ns <= h->since_ns ? " before the others arrived" : " meanwhile");
		return;
	}
	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (e->pid == r->last->pid && e->source != SOURCE_HOST && e->source != SOURCE_IO &&
			baseline_is_sane(e) && !(e->flags & WIRE_NESTED) &&
			(!last || e->start.ns >= last->start.ns))
			last = e;
	}
	if (!last || h->until_ns < event_end_ns(last)) {
		buf_puts(b, "its process is running");
		return;
	}
	buf_printf(b, "its process is running; its last recorded call, %s, ended %s before that",
		wire_op_name(last->source, last->op, op),
		text_format_duration(ago, (uint64_t)(h->until_ns - event_end_ns(last))));
}

static bool is_pause(const struct hang *h)
{
	return h->kind == HANG_MISSING && h->is_at_work && h->until_ns - h->since_ns < PAUSE_NS;
}

static void write_missing(
	struct buf *b, const struct recording *rec, const struct hang *h, struct incident *inc)
{
	char waited[TEXT_MAX], away[TEXT_PLURAL_MAX], op[32];
	const struct hang_rank *here = first_rank(h, false);
	const char *name = wire_op_name(SOURCE_NCCL, here->stuck->op, op);

	text_format_duration(waited, (uint64_t)(h->until_ns - h->since_ns));
	if (h->kind == HANG_MISSING)
		put_ranks(b, h, true);
	else
		buf_printf(b, "%s outside this recording",
			text_format_plural(
				away, (uint64_t)MAX(h->nranks - (int)h->rank_count, 0), "ranks"));
	snprintf(inc->summary, sizeof(inc->summary),
		is_pause(h)
			? "%s (collective %" PRIu64
			  ") waits: %s is still working and had not arrived by the end of the recording, the others waited %s"
			: "%s (collective %" PRIu64
			  ") hangs: %s never arrived, the others waited %s",
		name, h->seq, buf_str(b), waited);
	if (h->kind == HANG_MISSING) {
		buf_printf(b, " did not call collective %" PRIu64 " after %" PRIu64 ": ", h->seq,
			first_rank(h, true)->last->c.seq);
		put_last_doing(b, rec, h);
	} else {
		buf_printf(b,
			" did not enter collective %" PRIu64
			", or the network between them blocks it",
			h->seq);
	}
	snprintf(inc->root_cause, sizeof(inc->root_cause), "%s", buf_str(b));
}

static void write_mismatch(struct buf *b, const struct hang *h, struct incident *inc)
{
	char waited[TEXT_MAX];

	put_ranks(b, h, true);
	buf_puts(b, " called ");
	put_call(b, first_rank(h, true)->stuck);
	buf_puts(b, " where most ranks called ");
	for (size_t i = 0; i < h->rank_count; i++)
		if (!h->ranks[i].is_odd && h->ranks[i].stuck) {
			put_call(b, h->ranks[i].stuck);
			break;
		}
	snprintf(inc->root_cause, sizeof(inc->root_cause), "%s", buf_str(b));
	if (h->is_stuck)
		snprintf(inc->summary, sizeof(inc->summary),
			"collective %" PRIu64
			" has not ended after %s: ranks called different operations",
			h->seq,
			text_format_duration(waited, (uint64_t)(h->until_ns - h->since_ns)));
	else
		snprintf(inc->summary, sizeof(inc->summary),
			"ranks called different operations as collective %" PRIu64
			": its result is undefined",
			h->seq);
}

static void write_explanation(struct buf *b, const struct hang *h, struct incident *inc)
{
	char waited[TEXT_MAX], interval[TEXT_MAX];

	buf_printf(b,
		"Collectives of communicator %016" PRIx64 " were compared on %zu of %d ranks "
		"by sequence number. ",
		h->comm_hash, h->rank_count, MAX(h->nranks, (int)h->rank_count));
	put_ranks(b, h, false);
	buf_printf(b, " called number %" PRIu64, h->seq);
	if (h->is_stuck)
		buf_printf(b, " and did not return in the %s recorded after it%s",
			text_format_duration(waited, (uint64_t)(h->until_ns - h->since_ns)),
			h->is_seen ? "" : " (their waits were not recorded)");
	if (h->interval_ns)
		buf_printf(b, "; until then there was a collective every %s",
			text_format_duration(interval, h->interval_ns));
	buf_puts(b, ". Last collective of each rank:");
	for (size_t i = 0; i < MIN(h->rank_count, (size_t)8); i++)
		buf_printf(b, "%s rank %d: %" PRIu64, i ? "," : "", h->ranks[i].last->c.rank,
			h->ranks[i].last->c.seq);
	buf_puts(b, h->rank_count > 8 ? ", …" : ".");
	snprintf(inc->explanation, sizeof(inc->explanation), "%s", buf_str(b));
}

static void write_timeline(const struct recording *rec, const struct hang *h, struct incident *inc)
{
	char op[32];

	for (size_t i = 0; i < MIN(h->rank_count, (size_t)INCIDENT_TIMELINE - 1); i++) {
		const struct hang_rank *r = &h->ranks[i];
		const struct collective_row *row = r->stuck ? r->stuck : r->last;

		incident_step(inc, row->start.ns, row->dur_ns, "NCCL",
			wire_op_name(SOURCE_NCCL, row->op, op),
			"rank %d calls number %" PRIu64 "%s", row->c.rank, row->c.seq,
			!r->stuck     ? ", its last"
			: r->is_odd   ? ", unlike the others"
			: h->is_stuck ? " and waits"
				      : "");
	}
	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		for (size_t k = 0; e->source == SOURCE_NCCL && k < h->rank_count; k++) {
			const struct collective_row *row =
				h->ranks[k].stuck ? h->ranks[k].stuck : h->ranks[k].last;

			if (e->start.ns == row->start.ns && e->pid == row->pid &&
				e->tid == row->tid)
				incident_evidence(inc, e);
		}
	}
	snprintf(inc->evidence_sql, sizeof(inc->evidence_sql),
		"SELECT node, rank, pid, seq, op, bytes, datatype, root, timestamp, wait_ns FROM "
		"collectives WHERE comm = %" PRId64 " AND seq BETWEEN %" PRIu64 " AND %" PRIu64
		" ORDER BY seq, rank",
		(int64_t)h->comm_hash, h->seq - 1, h->seq);
}

static void set_stats(const struct detector_input *s, const struct hang *h, struct incident *inc)
{
	const struct hang_rank *lead = first_rank(h, h->odd_count > 0);

	incident_id(inc, lead->last->pid, h->since_ns);
	inc->last.ns = h->is_stuck ? h->until_ns : h->since_ns;
	inc->severity = !h->is_stuck || is_pause(h) ? SEVERITY_MEDIUM
			: h->kind == HANG_OUTSIDE   ? SEVERITY_HIGH
						    : SEVERITY_CRITICAL;
	inc->source = SOURCE_NCCL;
	inc->op = (lead->stuck ? lead->stuck : lead->last)->op;
	inc->count = h->rank_count - h->odd_count;
	inc->unit = h->is_stuck ? "waiting ranks" : "ranks that agree";
	inc->excess_ns = h->is_stuck ? (uint64_t)(h->until_ns - h->since_ns) : 0;
	inc->explained = h->is_stuck ? 1 : 0;
	inc->culprit_rank = h->odd_count ? lead->last->c.rank : -1;
	snprintf(inc->culprit_node, sizeof(inc->culprit_node), "%s",
		h->odd_count ? lead->last->node : "");
	inc->completeness = completeness_of_sources(s->rec->books, OF_SOURCE(SOURCE_NCCL));
	inc->confidence = completeness_weight(inc->completeness) *
			  (h->is_stuck && !h->is_seen ? UNSEEN_WAIT : 1) *
			  (h->kind == HANG_OUTSIDE ? UNSEEN_RANKS : 1);
	for (size_t i = 0; i < s->rec->event_count; i++)
		if (s->rec->events[i].pid == inc->pid && s->rec->events[i].source == SOURCE_NCCL) {
			memcpy(inc->comm, s->rec->events[i].comm, COMM_LEN);
			inc->comm[COMM_LEN - 1] = 0;
			break;
		}
}

static int report(const struct detector_input *s, const struct hang *h, struct incident_list *out)
{
	_cleanup_buf_ struct buf words = BUF_INIT(SENTENCE_MAX),
				 explanation = BUF_INIT(SENTENCE_MAX);
	struct incident *inc;

	inc = incident_begin(out, PROBLEM_NCCL_HANG);
	set_stats(s, h, inc);
	if (h->kind == HANG_MISMATCH)
		write_mismatch(&words, h, inc);
	else
		write_missing(&words, s->rec, h, inc);
	write_explanation(&explanation, h, inc);
	write_timeline(s->rec, h, inc);
	incident_keep(out, inc);
	return words.err == -ENOMEM || explanation.err == -ENOMEM ? -ENOMEM : 0;
}

int detect_hang(const struct detector_input *s, struct incident_list *out)
{
	_cleanup_(match_done) struct match_table t = {0};
	int64_t end_ns = match_end_ns(s->rec);
	unsigned looks = LOOKS_MAX;
	int r = match_run(s->rec, &t), reported = 0;

	for (size_t i = 0; r >= 0 && i < t.comm_count && reported < REPORTED_MAX; i++) {
		struct hang h;

		r = hang_find(s->rec, &t, &t.comms[i], end_ns, &looks, &h);
		if (r <= 0)
			continue;
		r = report(s, &h, out);
		hang_done(&h);
		reported++;
	}
	return MIN(r, 0);
}
