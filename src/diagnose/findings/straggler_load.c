/* SPDX-License-Identifier: Apache-2.0 */
/* straggler_load.c - see straggler_load.h.
 *
 * Severity: of load that moves MEDIUM if it costs at least 10 % of the time, LOW from 3 %. Of a GPU that is late, whose
 * time is not measured but inferred from what its rank gives it to do: HIGH from 10 %, MEDIUM from 3 %, LOW where it is
 * not known what it costs. Of a link or a collective, which blame says are slow (blame_link.c): HIGH from 10 %, MEDIUM from 3 %,
 * nothing below. */
#include <inttypes.h>
#include <stdio.h>

#include "diagnose/findings/straggler_load.h"
#include "diagnose/chains/kernel_type.h"
#include "base/text.h"
#include "blame/transfer_text.h"
#include "wire/names.h"

#define HIGH_SHARE    0.10
#define MEDIUM_SHARE  0.03
#define MEMBERS_NAMED 3
#define UNEVEN_STEPS  20 /* that tell of uneven load, or of slow transfers */
#define UNEVEN_SURE   0.5
#define WORK_SURE     0.75 /* that who has more work is who is late */
#define LEVEL_SURE    0.45 /* likewise, where it has always had more */

static struct incident *begin(const struct detector_input *in, const struct straggler_job *j,
	const struct collective_row *row, int64_t since_ns, double confidence,
	struct incident_list *out)
{
	struct incident *inc = incident_begin(out, PROBLEM_STRAGGLER);
	char op[32];

	incident_id(inc, row->pid, since_ns ? since_ns : row->start.ns);
	inc->last.ns = j->rows[j->call_count - 1]->start.ns;
	inc->source = SOURCE_NCCL;
	inc->op = row->op;
	inc->calls = j->call_count;
	inc->unit = INCIDENT_UNIT_LOAD;
	inc->culprit_rank = -1;
	inc->explained = 1;
	inc->completeness = completeness_of_sources(in->rec->books, OF_SOURCE(SOURCE_NCCL));
	inc->confidence = confidence * completeness_weight(inc->completeness);
	incident_step(inc, row->start.ns, row->dur_ns, "NCCL",
		wire_op_name(SOURCE_NCCL, row->op, op), "one of %zu communications", j->call_count);
	return inc;
}

/* Who was slowest in a step changes with every step: that is told, and nobody is named for it. */
static void report_uneven(const struct detector_input *in, const struct straggler_job *j,
	const struct straggler_work *w, struct incident_list *out)
{
	const struct blame *b = &j->blame;
	bool by_input = w->moves && w->moved_ns > b->uneven_ns;
	uint64_t ns = by_input ? w->moved_ns : b->uneven_ns;
	double share = by_input ? w->moved_share : b->uneven_share;
	char lost[TEXT_MAX], part[TEXT_MAX], step[TEXT_MAX], apart[TEXT_MAX], lasting[TEXT_MAX];
	struct incident *inc;

	if (b->steps < UNEVEN_STEPS || b->confidence < UNEVEN_SURE || share < MEDIUM_SHARE)
		return;
	inc = begin(in, j, j->rows[0], 0, b->confidence, out);
	/* Where nothing shows that their work differs, ranks that take turns may do so by chance. */
	inc->severity =
		share >= (by_input ? HIGH_SHARE : 2 * HIGH_SHARE) ? SEVERITY_MEDIUM : SEVERITY_LOW;
	inc->count = b->steps;
	inc->excess_ns = ns;
	text_format_duration(lost, ns);
	text_format_duration(step, b->step_ns);
	text_format_percent(part, MIN(share, 1.0));
	text_format_percent(apart, b->spread_step);
	text_format_percent(lasting, b->spread_lasting);
	snprintf(inc->summary, sizeof(inc->summary),
		"the load moves between %zu ranks: a different one is slowest in every step; the job was stalled for %s, %s of the time",
		j->worker_count, lost, part);
	if (by_input)
		snprintf(inc->root_cause, sizeof(inc->root_cause),
			"uneven load: the largest input of all ranks decides how long a step takes, and a different rank has it in every step: no rank is to blame");
	else
		snprintf(inc->root_cause, sizeof(inc->root_cause),
			"uneven load: ranks with the same work are %s apart in a step, but only %s over all %u steps: no rank is to blame",
			apart, lasting, b->steps);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"%zu communications of %zu ranks, Sends and Recvs included, were traced back from the waiting ranks to the one that entered last, "
		"over %u steps of %s (median). What a rank computes in a step differs by far more than ranks differ over time, as with sequences or experts of uneven size.",
		j->call_count, j->worker_count, b->steps, step);
	inc->fix_count = 0; /* the catalogue's are about a late rank */
	incident_fix(inc,
		"Give every rank the same amount of work in each step: batches of similar length, balanced experts");
	incident_sql(inc,
		"SELECT rank, count(*) AS calls, sum(wait_ns) / 1e6 AS waited_ms FROM collectives GROUP BY rank ORDER BY rank");
	incident_keep(out, inc);
}

static const struct collective_row *row_of(
	const struct straggler_job *j, uint32_t worker, int64_t since_ns)
{
	const struct collective_row *row = NULL;

	for (size_t i = 0; i < j->call_count; i++)
		if (j->calls[i].worker == worker && (!row || row->start.ns < since_ns))
			row = j->rows[i];
	return row;
}

static void write_work(const struct straggler_work *w, char *out, size_t size)
{
	char more[TEXT_MAX], usual[TEXT_MAX], name[KERNEL_SHORT_MAX];

	if (w->kernel) {
		kernel_name_short(w->kernel, name);
		snprintf(out, size, "kernels that no other rank runs (%.40s)", name);
	} else if (w->launches > 0)
		snprintf(
			out, size, "%.0f launches per step instead of %.0f", w->launches, w->usual);
	else if (w->received > 0)
		snprintf(out, size, "%s received from other ranks per step instead of %s",
			text_format_bytes(more, (uint64_t)w->received),
			text_format_bytes(usual, (uint64_t)w->usual_received));
	else
		snprintf(out, size, "%s copied per step instead of %s",
			text_format_bytes(more, (uint64_t)w->bytes),
			text_format_bytes(usual, (uint64_t)MAX(w->usual_bytes, 0.0)));
}

/* "the job was stalled for 3.2s, 26 % of the time" */
static void write_cost(const struct straggler_work *w, char *out, size_t size)
{
	char lost[TEXT_MAX], part[TEXT_MAX];

	snprintf(out, size, "the job was stalled for %s, %s of the time",
		text_format_duration(lost, w->lost_ns),
		text_format_percent(part, MIN(w->share, 1.0)));
}

/* All hosts are in time, and one GPU has more to do than the others. */
static void report_late(const struct detector_input *in, const struct straggler_job *j,
	const struct straggler_work *w, struct incident_list *out)
{
	const struct blame_worker *who = &j->workers[w->late];
	const struct collective_row *row = row_of(j, w->late, w->since_ns);
	size_t others = j->worker_count - 1;
	char work[96], each[TEXT_MAX], cost[96] = "";
	struct incident *inc;

	inc = row ? begin(in, j, row, w->since_ns, w->lost_ns ? WORK_SURE : LEVEL_SURE, out) : NULL;
	if (!inc)
		return;
	inc->severity = w->share >= HIGH_SHARE     ? SEVERITY_HIGH
			: w->share >= MEDIUM_SHARE ? SEVERITY_MEDIUM
						   : SEVERITY_LOW;
	inc->count = w->steps;
	inc->culprit_rank = who->rank;
	snprintf(inc->culprit_node, sizeof(inc->culprit_node), "%s", who->node);
	inc->since.ns = w->since_ns;
	inc->excess_ns = w->lost_ns;
	write_work(w, work, sizeof(work));
	text_format_duration(each, w->steps ? w->lost_ns / w->steps : 0);
	if (w->lost_ns)
		write_cost(w, cost, sizeof(cost));
	snprintf(inc->summary, sizeof(inc->summary),
		"More GPU work on rank %d (pid %u) than on the %zu other%s, which wait%s for its GPU: %s%s%s",
		who->rank, who->pid, others, others == 1 ? "" : "s", others == 1 ? "s" : "", work,
		w->lost_ns ? "; " : "", cost);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"The GPU of rank %d has more to do: %s. Its host enters collectives on time, its GPU does not; no other rank's work has grown",
		who->rank, work);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"All ranks enter their collectives at about the same time, and wait for their GPUs %s longer in each of %u steps. "
		"The time of each GPU is not recorded: the late rank is inferred from what the ranks launch and copy.",
		each, w->steps);
	incident_sql(inc,
		"SELECT k.pid, k.name, k.launches FROM kernels k ORDER BY k.name, k.pid LIMIT 500");
	incident_keep(out, inc);
}

/* An incident of what the job's ranks lost together, since @w->since_ns. */
static struct incident *begin_shared(const struct detector_input *in, const struct straggler_job *j,
	const struct straggler_work *w, uint32_t worker, struct incident_list *out)
{
	const struct collective_row *row = row_of(j, worker, w->since_ns);
	struct incident *inc = row && w->share >= MEDIUM_SHARE
				       ? begin(in, j, row, w->since_ns, WORK_SURE, out)
				       : NULL;

	if (!inc)
		return NULL;
	inc->severity = w->share >= HIGH_SHARE ? SEVERITY_HIGH : SEVERITY_MEDIUM;
	inc->count = w->steps;
	inc->since.ns = w->since_ns;
	inc->excess_ns = w->lost_ns;
	return inc;
}

/* "ranks 0 and 1", "all 8 ranks" of those that have calls on the communicator */
static void write_members(
	const struct straggler_job *j, const struct straggler_extra *e, char *out, size_t size)
{
	size_t len = 0, named = 0;
	int32_t last = -1;

	if (e->workers >= j->worker_count) {
		snprintf(out, size, "all %zu ranks", j->worker_count);
		return;
	}
	len = (size_t)snprintf(out, size, "ranks ");
	for (int32_t next = INT32_MAX; named < MEMBERS_NAMED && len < size; named++) {
		next = INT32_MAX;
		for (size_t i = 0; i < j->call_count; i++) {
			int32_t rank = j->workers[j->calls[i].worker].rank;

			if (j->calls[i].c.comm == e->comm && rank > last && rank < next)
				next = rank;
		}
		if (next == INT32_MAX)
			break;
		len += (size_t)snprintf(out + len, size - len, "%s%d", named ? ", " : "", next);
		last = next;
	}
	if (len < size && e->workers > named)
		snprintf(out + len, size - len, " and %zu more", e->workers - named);
}

/* Some or all ranks make collectives that steps did not have before. */
static void report_extra(const struct detector_input *in, const struct straggler_job *j,
	const struct straggler_work *w, struct incident_list *out)
{
	const struct straggler_extra *e = &w->extra;
	struct incident *inc = begin_shared(in, j, w, e->worker, out);
	char who[96], scratch[32], bytes[TEXT_MAX], cost[96], calls[16];
	const char *op = wire_op_name(SOURCE_NCCL, e->op, scratch);

	if (!inc)
		return;
	if (e->workers < j->worker_count)
		inc->culprit_rank = j->workers[e->worker].rank;
	else
		inc->unit = INCIDENT_UNIT_LINK;
	write_members(j, e, who, sizeof(who));
	write_cost(w, cost, sizeof(cost));
	snprintf(calls, sizeof(calls), "%.*f", e->calls < 9.5 ? 1 : 0, e->calls);
	text_format_bytes(bytes, e->bytes);
	snprintf(inc->summary, sizeof(inc->summary),
		"More collectives than before: %s make %s × %s of %s more per step, in a communicator of %u; %s",
		who, calls, op, bytes, e->workers, cost);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"Extra %s of %s in communicator %016" PRIx64
		", %s per step and member; ranks that are not members wait for them",
		op, bytes, e->comm, calls);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"All ranks enter the job's other collectives on time. In slow steps %s call %s in that communicator, in ordinary steps they do not.",
		who, op);
	incident_fix(inc, "Make these collectives less often, smaller, or asynchronous (async_op)");
	incident_sql(inc,
		"SELECT node, rank, pid, seq, op, bytes, timestamp, wait_ns FROM collectives WHERE comm = %" PRId64
		" ORDER BY timestamp LIMIT 200",
		(int64_t)e->comm);
	incident_keep(out, inc);
}

/* The threads that carry a rank's collectives do not get a CPU, though its host comes in time. */
static void report_starved(const struct detector_input *in, const struct straggler_job *j,
	const struct straggler_work *w, struct incident_list *out)
{
	const struct blame_worker *who = &j->workers[w->late];
	struct incident *inc = begin_shared(in, j, w, w->late, out);
	char cost[96];

	if (!inc)
		return;
	inc->culprit_rank = who->rank;
	snprintf(inc->culprit_node, sizeof(inc->culprit_node), "%s", who->node);
	write_cost(w, cost, sizeof(cost));
	snprintf(inc->summary, sizeof(inc->summary),
		"Threads of rank %d (pid %u) wait for CPUs: %.0f %% of the time instead of %.0f %%; %zu rank%s wait%s for its part of the collectives; %s",
		who->rank, who->pid, 100 * w->starved, 100 * w->starved_before, j->worker_count - 1,
		j->worker_count == 2 ? "" : "s", j->worker_count == 2 ? "s" : "", cost);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"Rank %d gets too little CPU time: other processes, including data loader workers, run on its CPUs. NCCL's threads, which carry out collectives on the CPU, are therefore late",
		who->rank);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"All ranks enter their collectives at about the same time, and wait for their GPUs longer in each of %u steps. "
		"No other rank's threads wait longer for CPUs than before.",
		w->steps);
	incident_fix(inc,
		"Leave CPUs to the ranks: use fewer loader workers, or reserve CPUs for them (taskset, --cpus-per-task)");
	incident_sql(inc,
		"SELECT pid, tid, comm, sum(cpu_wait) / 1e9 AS waited_s, sum(run) / 1e9 AS ran_s FROM ledger GROUP BY pid, tid ORDER BY waited_s DESC LIMIT 50");
	incident_keep(out, inc);
}

/* Nobody is late, nobody does more, and GPUs are less busy: what carries the collectives is slow. */
static void report_idle(const struct detector_input *in, const struct straggler_job *j,
	const struct straggler_work *w, struct incident_list *out)
{
	struct incident *inc = begin_shared(in, j, w, 0, out);
	char wait[TEXT_MAX], usual[TEXT_MAX], cost[96];

	if (!inc)
		return;
	inc->unit = INCIDENT_UNIT_LINK;
	write_cost(w, cost, sizeof(cost));
	text_format_duration(wait, w->wait_ns);
	text_format_duration(usual, w->usual_wait_ns);
	snprintf(inc->summary, sizeof(inc->summary),
		"Slow link between ranks: collectives take longer although all %zu ranks are on time: waits for the GPU take %s instead of %s per step; %s",
		j->worker_count, wait, usual, cost);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"All ranks enter their collectives on time, launch and copy what they did before, and their GPUs' memory is less busy: they wait for each other's data");
	snprintf(inc->explanation, sizeof(inc->explanation),
		"Steps are slow on all ranks at once, in %u steps. No rank is late, none has more kernels, launches, copies or collectives than before. "
		"Collectives that all ranks take part in cannot show which link it is.",
		w->steps);
	incident_fix(inc,
		"Measure the collective alone (nccl-tests with the same ranks and size), then pairs of ranks (sendrecv_perf), and find out what shares their network");
	incident_sql(inc,
		"SELECT rank, count(*) AS calls, sum(wait_ns) / 1e6 AS waited_ms FROM collectives GROUP BY rank ORDER BY rank");
	incident_keep(out, inc);
}

/* Somebody is late on the host: that is detect_straggler.c's to tell. */
static bool is_told(const struct blame *b)
{
	return b->suspect_count && !b->suspects[0].on_time && b->suspects[0].share >= MEDIUM_SHARE;
}

int straggler_load_report(
	const struct detector_input *in, const struct straggler_job *j, struct incident_list *out)
{
	struct straggler_work w;
	bool told;
	int r = straggler_work_find(in->rec, in->accounts, j, &w);

	if (r < 0)
		return r;
	told = is_told(&j->blame);
	if (!told && w.extra.comm)
		report_extra(in, j, &w, out);
	else if (!told && w.starved > 0)
		report_starved(in, j, &w, out);
	else if (!told && w.kernel)
		report_late(in, j, &w, out);
	else if (j->blame.uneven_ns || (w.moves && !told))
		report_uneven(in, j, &w, out);
	else if (!told && w.late != UINT32_MAX)
		report_late(in, j, &w, out);
	else if (!told && w.is_idle && !j->blame.transfer_count) /* else they are named */
		report_idle(in, j, &w, out);
	return 0;
}

/* ---- links and collectives ---- */

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

static void write_transfer(
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

static void report_transfer(const struct detector_input *in, const struct straggler_job *j,
	const struct blame_transfer *t, struct incident_list *out)
{
	const struct collective_row *row = longest_row(j, t);
	struct incident *inc =
		row ? begin(in, j, row, t->since_ns, j->blame.confidence, out) : NULL;

	if (!inc)
		return;
	inc->last.ns = MAX(t->until_ns, t->since_ns);
	inc->severity = t->share >= HIGH_SHARE ? SEVERITY_HIGH : SEVERITY_MEDIUM;
	inc->count = t->count;
	inc->unit = "transfers";
	inc->excess_ns = t->lost_ns;
	write_transfer(j, t, inc);
	incident_sql(inc,
		"SELECT node, rank, peer, pid, seq, op, timestamp, wait_ns FROM collectives WHERE comm = "
		"%" PRId64 " ORDER BY wait_ns DESC LIMIT 20",
		(int64_t)t->comm);
	incident_keep(out, inc);
}

/* Where all have become slower than before there is one cause: it is told by the costliest. */
void straggler_link_report(
	const struct detector_input *in, const struct straggler_job *j, struct incident_list *out)
{
	const struct blame *b = &j->blame;
	bool has_past = false;

	if (b->steps < UNEVEN_STEPS || b->confidence < UNEVEN_SURE)
		return;
	for (size_t i = 0; i < b->transfer_count; i++) {
		const struct blame_transfer *t = &b->transfers[i];

		if (!t->is_slow || t->share < MEDIUM_SHARE || (t->by_past && has_past))
			continue;
		has_past |= t->by_past;
		report_transfer(in, j, t, out);
	}
}
