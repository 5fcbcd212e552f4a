/* SPDX-License-Identifier: Apache-2.0 */
/* detect_sharing.c - several processes on one GPU, and whether that costs one of them time: sharing_find.c
 * says by how much its waits are longer beside the others. It is a problem from 3 % of the time.
 * The neighbour with the longest burst beside these calls is named.
 *
 * Ordinals of devices are the process's own: CUDA_VISIBLE_DEVICES may give two GPUs one number. The
 * driver's count of processes on each GPU settles it where it was sampled (one: no sharing); else
 * it is said and costs confidence. If one process alone is traced, the seconds in which the driver
 * counts more stand for the others' bursts. Recordings of several nodes are not looked at: their
 * devices cannot be told apart.
 *
 * Severity: MEDIUM; LOW, once for a device, if the driver counts several processes on it but
 * nothing is slower. Confidence = completeness (0.9 if not known) x n/(n+10) x 0.6 if the driver's
 * count is not known, n being the smaller number of calls that were compared. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/compose/detector.h"
#include "diagnose/findings/sharing_find.h"
#include "base/text.h"
#include "wire/names.h"
#include "wire/op_kind.h"

#define SPAN_SHARE    0.03
#define UNKNOWN_COUNT 0.6
#define CALLS_HALF    10.0
#define VICTIMS_MAX   16 /* of a device: each takes a look at all waits */
#define DEVICES_MAX   16
#define COVERS_OP     0.5 /* of the extra time of its calls: then nothing else is said of them */

/* How many processes the driver saw on a GPU at most: 0 if it does not tell. */
static int64_t driver_count(const struct recording *rec)
{
	int64_t most = 0;

	for (size_t i = 0; i < rec->gpu_count; i++)
		most = MAX(most, rec->gpus[i].processes);
	return most;
}

static void name_of(const struct recording *rec, uint32_t pid, char out[COMM_LEN])
{
	out[0] = 0;
	for (size_t i = 0; i < rec->event_count; i++)
		if (rec->events[i].pid == pid && op_kind_is_cuda(rec->events[i].source)) {
			memcpy(out, rec->events[i].comm, COMM_LEN);
			out[COMM_LEN - 1] = 0;
			return;
		}
}

static void other_text(const struct recording *rec, uint32_t pid, char out[64])
{
	char name[COMM_LEN];

	name_of(rec, pid, name);
	if (pid)
		snprintf(out, 64, "%s (pid %u)", name, pid);
	else
		snprintf(out, 64, "an untraced process");
}

static void write_words(const struct recording *rec, const struct sharing_case *f, int64_t counted,
	struct incident *inc)
{
	char with[TEXT_MAX], without[TEXT_MAX], op[32], other[64], share[TEXT_MAX];
	char ratio[TEXT_MAX], lost[TEXT_MAX], calls[TEXT_PLURAL_MAX];
	const struct comparison *c = f->c;

	other_text(rec, f->culprit, other);
	snprintf(inc->summary, sizeof(inc->summary),
		"%s %sx slower (p50 %s -> %s) while %s uses GPU %d too",
		wire_op_name(c->source, c->op, op), text_format_ratio(ratio, inc->tail_ratio),
		text_format_duration(without, f->med_without),
		text_format_duration(with, f->med_with), other, f->device);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"GPU %d is shared: %s (pid %u) and %s work on it at the same time", f->device,
		inc->comm, f->pid, other);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"%s of %s by pid %u overlapped work of other processes on device %d and took "
		"%s (median); %zu other calls took %s. Lost that way: %s, %s of the extra time of "
		"its calls; delays by CPU and disk are not included. %s",
		text_format_plural(calls, c->with_count, "calls"),
		wire_op_name(c->source, c->op, op), f->pid, f->device, with, c->without_count,
		without, text_format_duration(lost, f->net_ns),
		text_format_percent(share, inc->explained),
		counted > 1
			? "The driver counted several processes on a GPU."
			: "That it is the same GPU is inferred from its number: the driver's process count was not recorded.");
}

static void write_sql(uint32_t pid, uint32_t other, struct incident *inc)
{
	snprintf(inc->evidence_sql, sizeof(inc->evidence_sql),
		"SELECT pid, gpu_id, count(*) AS calls, min(timestamp), max(timestamp + duration) "
		"FROM events WHERE " OP_KIND_CUDA_SQL " AND pid IN (%u, %u) GROUP BY 1, 2",
		pid, other);
}

static void write_proof(
	const struct recording *rec, const struct sharing_case *f, struct incident *inc)
{
	const struct comparison *c = f->c;
	char op[32], other[64];

	other_text(rec, f->culprit, other);

	for (size_t i = 0; i < f->burst_count && inc->step_count < 4; i++)
		if (f->bursts[i].pid == f->culprit)
			incident_step(inc, f->bursts[i].start_ns,
				(uint64_t)(f->bursts[i].end_ns - f->bursts[i].start_ns), "CUDA",
				"burst", "%s works on device %d", other, f->device);
	for (size_t i = 0; i < c->with_count && inc->evidence_count < INCIDENT_EVIDENCE; i++)
		if (c->with[i]->dur_ns >= f->med_with) {
			if (inc->evidence_count < 4)
				incident_step(inc, c->with[i]->start.ns, c->with[i]->dur_ns, "CUDA",
					wire_op_name(c->source, c->op, op),
					"pid %u waits meanwhile", f->pid);
			incident_evidence(inc, c->with[i]);
		}
	write_sql(f->pid, f->culprit, inc);
}

static void report(const struct detector_input *s, const struct sharing_case *f, int64_t counted,
	struct incident_list *out)
{
	const struct comparison *c = f->c;
	int64_t from = c->with[0]->start.ns, to = event_end_ns(c->with[c->with_count - 1]);
	double n = (double)MIN(c->with_count, c->without_count);
	struct incident *inc;

	incident_cover(out, f->pid, from, to);
	if ((double)f->net_ns >= COVERS_OP * (double)f->all_excess_ns)
		incident_cover_op(out, f->pid, c->source, c->op);
	inc = incident_begin(out, PROBLEM_GPU_SHARING);
	if (!inc)
		return;
	incident_id(inc, f->pid, from);
	name_of(s->rec, f->pid, inc->comm);
	inc->last.ns = to;
	inc->severity = SEVERITY_MEDIUM;
	inc->source = c->source;
	inc->op = c->op;
	inc->calls = c->with_count + c->without_count;
	inc->slow_calls = inc->count = c->with_count;
	inc->unit = "calls beside others";
	inc->baseline_ns = f->med_without;
	inc->slow_p50_ns = f->med_with;
	inc->tail_ratio = (double)f->med_with / (double)MAX(f->med_without, UINT64_C(1));
	inc->excess_ns = f->net_ns;
	inc->explained = f->all_excess_ns ? (double)f->net_ns / (double)f->all_excess_ns : 0;
	inc->completeness = s->completeness;
	inc->confidence = completeness_weight(s->completeness) * n / (n + CALLS_HALF) *
			  (counted > 1 ? 1 : UNKNOWN_COUNT);
	inc->causes[0] = (struct incident_cause){.cause = CAUSE_CUDA_CALL,
		.culprit_pid = f->culprit,
		.culprit_share = 1,
		.ns = f->net_ns,
		.calls = (uint32_t)c->with_count};
	name_of(s->rec, f->culprit, inc->causes[0].culprit);
	inc->cause_count = 1;
	write_words(s->rec, f, counted, inc);
	write_proof(s->rec, f, inc);
	incident_keep(out, inc);
}

static void note(const struct detector_input *s, const struct sharing_case *f, int64_t counted,
	struct incident_list *out)
{
	struct incident *inc = incident_begin(out, PROBLEM_GPU_SHARING);
	char other[64];

	if (!inc)
		return;
	other_text(s->rec, f->others[0].tid, other);
	incident_id(inc, f->pid, f->others[0].start_ns);
	name_of(s->rec, f->pid, inc->comm);
	inc->last.ns = f->others[f->other_count - 1].end_ns;
	inc->severity = SEVERITY_LOW;
	inc->completeness = s->completeness;
	inc->confidence = completeness_weight(s->completeness);
	inc->count = (uint64_t)counted;
	inc->unit = "processes on the GPU";
	snprintf(inc->summary, sizeof(inc->summary),
		"%d processes use GPU %d; no call was slower because of it", (int)counted,
		f->device);
	snprintf(inc->root_cause, sizeof(inc->root_cause), "GPU %d is shared by pid %u and pid %u",
		f->device, f->pid, f->others[0].tid);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"Waits of pid %u during and outside other processes' work on the device do not differ enough, or too few were recorded.",
		f->pid);
	incident_step(inc, f->others[0].start_ns,
		(uint64_t)(f->others[0].end_ns - f->others[0].start_ns), "CUDA", "burst",
		"%s has a context on device %d", other, f->device);
	write_sql(f->pid, f->others[0].tid, inc);
	incident_keep(out, inc);
}

/* The processes of one device, in order of their first burst. */
static int look_at_device(const struct detector_input *s, const struct held_up *held,
	const struct burst *bursts, size_t n, int64_t counted, struct incident_list *out)
{
	uint32_t seen[VICTIMS_MAX];
	size_t seen_count = 0;
	int64_t span = bursts[n - 1].end_ns - bursts[0].start_ns;
	bool noted = false;

	for (size_t i = 0; i < n && seen_count < VICTIMS_MAX; i++) {
		_cleanup_(sharing_done) struct sharing_case f = {.pid = bursts[i].pid,
			.device = bursts[i].device,
			.held = held,
			.bursts = bursts,
			.burst_count = n};
		size_t k = 0;
		int r;

		while (k < seen_count && seen[k] != f.pid)
			k++;
		if (k < seen_count || !f.pid)
			continue;
		seen[seen_count++] = f.pid;
		r = sharing_find(s->rec, &f);
		if (r < 0)
			return r;
		if (f.c && (double)f.net_ns >= SPAN_SHARE * (double)span) {
			report(s, &f, counted, out);
			noted = true;
		} else if (f.other_count && counted > 1 && !noted) {
			note(s, &f, counted, out);
			noted = true;
		}
	}
	return 0;
}

static void held_up_done(struct held_up *h)
{
	free(h->calls);
}

static bool has_two(const struct burst *bursts, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (bursts[i].pid != bursts[0].pid)
			return true;
	return false;
}

int detect_sharing(const struct detector_input *s, struct incident_list *out)
{
	_cleanup_(bursts_done) struct bursts b = {0};
	_cleanup_(held_up_done) struct held_up held = {0};
	int64_t counted = driver_count(s->rec);
	size_t next, devices = 0;
	int r;

	if (counted == 1 || (s->rec->node && strchr(s->rec->node, ',')))
		return 0;
	r = bursts_run(s->rec, &b);
	if (r == 0 && counted > 1)
		r = bursts_add_untraced(s->rec, &b);
	for (size_t i = 0; r == 0 && i < b.count && devices < DEVICES_MAX; i = next) {
		for (next = i; next < b.count && b.items[next].device == b.items[i].device;)
			next++;
		if (!has_two(&b.items[i], next - i))
			continue;
		if (!devices++)
			r = held_up_find(s->rec, &held);
		if (r == 0)
			r = look_at_device(s, &held, &b.items[i], next - i, counted, out);
	}
	return r;
}
