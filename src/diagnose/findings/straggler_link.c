/* SPDX-License-Identifier: Apache-2.0 */
/* straggler_link.c - see straggler_link.h. What is slow is blame's to say (blame_link.c), the sentence is the
 * cluster's.
 *
 * Severity: HIGH if the job waits for it for at least 10 % of its time, MEDIUM from 3 %, nothing below. Where all
 * have become slower than before there is one cause: it is told by the costliest. */
#include "diagnose/findings/straggler_link.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "blame/transfer_text.h"
#include "wire/names.h"

#define HIGH_SHARE   0.10
#define MEDIUM_SHARE 0.03
#define STEPS_LEAST  20
#define SURE         0.5

/* The call that took longest of those the job waited in. */
static const struct collective_row *longest_row(
	const struct straggler_job *j, const struct blame_transfer *t)
{
	const struct collective_row *row = NULL;
	int64_t longest = -1;

	for (size_t i = 0; i < j->call_count; i++) {
		const struct push_call *c = &j->calls[i].c;
		bool is_end = t->from == UINT32_MAX
				      ? c->bytes == t->bytes
				      : j->calls[i].worker == t->to && c->op == NCCL_RECV &&
						j->workers[t->from].rank == c->peer;

		if (c->comm != t->comm || !is_end || c->leave_ns - c->enter_ns <= longest)
			continue;
		longest = c->leave_ns - c->enter_ns;
		row = j->rows[i];
	}
	return row;
}

static void write_words(
	const struct straggler_job *j, const struct blame_transfer *t, struct incident *inc)
{
	const struct transfer_text x = transfer_text_of(t, j->workers);
	_cleanup_buf_ struct buf b = BUF_INIT(1024);
	char lost[TEXT_MAX], part[TEXT_MAX], took[TEXT_MAX], usual[TEXT_MAX], step[TEXT_MAX];

	transfer_text_put(&b, &x);
	text_format_percent(part, t->share);
	text_format_duration(lost, t->lost_ns);
	text_format_duration(took, t->took_ns);
	text_format_duration(usual, t->usual_ns);
	text_format_duration(step, j->blame.step_ns);
	snprintf(inc->summary, sizeof(inc->summary), "%s; %s of the job's time", buf_str(&b), part);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"%zu transfers took %s each (median) once all ranks had arrived, %s %s: no rank is to blame",
		t->count, took, t->by_past ? "before" : "on peers", usual);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"%zu communications of %zu ranks, Sends and Recvs included, were traced back from the waiting ranks to the one that entered last, "
		"over %u steps of %s (median). A transfer is timed from the arrival of the last rank until that rank could continue. "
		"Without the difference the job would have been %s faster, %s of its time.",
		j->call_count, j->worker_count, j->blame.steps, step, lost, part);
	if (x.is_link)
		incident_fix(inc,
			"Measure that link alone (nccl-tests' sendrecv_perf between the two ranks), and check its counters: nvidia-smi nvlink -e, ethtool -S, perfquery");
	else
		incident_fix(inc,
			"Measure that collective alone (nccl-tests with the same ranks and size), and find out what shares its network");
}

static void report(const struct detector_input *in, const struct straggler_job *j,
	const struct blame_transfer *t, struct incident_list *out)
{
	const struct collective_row *row = longest_row(j, t);
	struct incident *inc;
	char op[32];

	if (!row)
		return;
	inc = incident_begin(out, PROBLEM_STRAGGLER);
	incident_id(inc, row->pid, t->since_ns);
	inc->last.ns = MAX(row->start.ns, t->since_ns);
	inc->severity = t->share >= HIGH_SHARE ? SEVERITY_HIGH : SEVERITY_MEDIUM;
	inc->source = SOURCE_NCCL;
	inc->op = row->op;
	inc->calls = j->call_count;
	inc->count = t->count;
	inc->unit = "transfers";
	inc->culprit_rank = -1;
	inc->excess_ns = t->lost_ns;
	inc->explained = 1;
	inc->completeness = completeness_of_sources(in->rec->books, OF_SOURCE(SOURCE_NCCL));
	inc->confidence = j->blame.confidence * completeness_weight(inc->completeness);
	write_words(j, t, inc);
	incident_step(inc, row->start.ns, row->dur_ns, "NCCL",
		wire_op_name(SOURCE_NCCL, row->op, op), "the longest of %zu transfers", t->count);
	incident_sql(inc,
		"SELECT node, rank, peer, pid, seq, op, timestamp, wait_ns FROM collectives WHERE comm = "
		"%" PRId64 " ORDER BY wait_ns DESC LIMIT 20",
		(int64_t)t->comm);
	incident_keep(out, inc);
}

void straggler_link_report(
	const struct detector_input *in, const struct straggler_job *j, struct incident_list *out)
{
	const struct blame *b = &j->blame;
	bool has_past = false;

	if (b->steps < STEPS_LEAST || b->confidence < SURE)
		return;
	for (size_t i = 0; i < b->transfer_count; i++) {
		const struct blame_transfer *t = &b->transfers[i];

		if (!t->is_slow || t->share < MEDIUM_SHARE || (t->by_past && has_past))
			continue;
		has_past |= t->by_past;
		report(in, j, t, out);
	}
}
