/* SPDX-License-Identifier: Apache-2.0 */
/* sharing.c - several processes on one GPU, and whether that costs one of them time.
 *
 * For each process the waits for the GPU (and synchronous copies) that lie within bursts of other
 * processes on the device are compared with those outside of them, op by op; both must exist, ten
 * of each. It is a problem if the median is at least 1.25 times as long, and 20 us, and what that
 * adds up to is 3 % of the process's time, after what the CPU and the disk took from these calls is
 * left out (then another detector has it). The neighbour with the longest bursts beside these calls
 * is named.
 *
 * Ordinals of devices are the process's own: CUDA_VISIBLE_DEVICES may give two GPUs one number. The
 * driver's count of processes on each GPU settles it where it was sampled (one: no sharing); else
 * it is said and costs confidence. Ranks of one communicator are on different GPUs by NCCL's rules.
 * Recordings of several nodes are not looked at: their devices cannot be told apart.
 *
 * Severity: MEDIUM; LOW, once for a device, if the driver counts several processes on it but
 * nothing is slower. Confidence = completeness (0.9 if not known) x n/(n+10) x 0.6 if the driver's
 * count is not known, n being the smaller number of calls that were compared. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/correlate/bursts.h"
#include "agent/correlate/detector.h"
#include "agent/correlate/window.h"
#include "base/idmap.h"
#include "base/text.h"
#include "stat/robust.h"
#include "wire/names.h"

#define CALLS_MIN      10
#define RATIO_MIN      1.25
#define DIFFERENCE_MIN (20 * NS_PER_US)
#define SPAN_SHARE     0.03
#define NET_SHARE      0.5 /* of the excess is left without CPU and disk */
#define UNKNOWN_BOOKS  0.9
#define UNKNOWN_COUNT  0.6
#define CALLS_HALF     10.0
#define VICTIMS_MAX    16 /* processes whose calls are compared: each takes a look at all events */
#define OTHERS_MAX     4096
#define DEVICES_MAX    16
#define WAIT_OPS       8

struct comparison { /* one op of the victim */
	uint8_t source;
	uint16_t op;
	const struct event **with, **without; /* in order of the events */
	size_t with_count, without_count;
};

struct case_file { /* a process and the others on its device */
	uint32_t pid;
	int32_t device;
	const struct burst *bursts; /* of the device */
	size_t burst_count;
	struct window *others; /* union of the others' bursts, ascending */
	size_t other_count;
	uint64_t med_with, med_without, excess_ns, net_ns, all_excess_ns;
	uint32_t culprit;
	const struct comparison *c;
};

static bool is_wait(const struct event *e)
{
	if (e->source == SOURCE_CUDA)
		return e->op == CUDA_STREAM_SYNC || e->op == CUDA_DEVICE_SYNC ||
		       e->op == CUDA_EVENT_SYNC || e->op == CUDA_MEMCPY;
	return e->source == SOURCE_DRIVER &&
	       (e->op == DRIVER_STREAM_SYNC || e->op == DRIVER_CTX_SYNC ||
		       e->op == DRIVER_EVENT_SYNC);
}

/* How many processes the driver saw on a GPU at most: 0 if it does not tell. */
static int64_t driver_count(const struct recording *rec)
{
	int64_t most = 0;

	for (size_t i = 0; i < rec->gpu_count; i++)
		most = MAX(most, rec->gpus[i].processes);
	return most;
}

static uint64_t comm_of(const struct recording *rec, uint32_t pid)
{
	for (size_t i = 0; i < rec->collective_count; i++)
		if (rec->collectives[i].pid == pid && rec->collectives[i].c.comm_hash)
			return rec->collectives[i].c.comm_hash;
	return 0;
}

/* The processes that call collectives of @comm: ranks of one job. */
static int ranks_of(const struct recording *rec, uint64_t comm, struct idmap *ret)
{
	int r = 0;

	for (size_t i = 0; comm && r == 0 && i < rec->collective_count; i++)
		if (rec->collectives[i].c.comm_hash == comm)
			r = idmap_put(ret, rec->collectives[i].pid, ret);
	return r == -ENOBUFS ? 0 : r;
}

static int unite_others(const struct recording *rec, struct case_file *f)
{
	_cleanup_(idmap_done) struct idmap mates = IDMAP_INIT(OTHERS_MAX);
	uint64_t comm = comm_of(rec, f->pid);

	if (ranks_of(rec, comm, &mates) < 0)
		return -ENOMEM;
	f->others = calloc(f->burst_count + 1, sizeof(*f->others));
	if (!f->others)
		return -ENOMEM;
	for (size_t i = 0; i < f->burst_count; i++) {
		const struct burst *b = &f->bursts[i];
		struct window *last = f->other_count ? &f->others[f->other_count - 1] : NULL;

		if (b->pid == f->pid || idmap_get(&mates, b->pid))
			continue;
		if (last && b->start_ns <= last->end_ns)
			last->end_ns = MAX(last->end_ns, b->end_ns);
		else
			f->others[f->other_count++] =
				(struct window){b->start_ns, b->end_ns, b->pid};
	}
	return 0;
}

static uint64_t overlap_ns(const struct case_file *f, const struct event *e)
{
	int64_t end = event_end_ns(e);
	size_t low = 0, high = f->other_count;
	uint64_t sum = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (f->others[middle].end_ns <= e->start.ns)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < f->other_count && f->others[low].start_ns < end; low++)
		sum += (uint64_t)(MIN(end, f->others[low].end_ns) -
				  MAX(e->start.ns, f->others[low].start_ns));
	return sum;
}

static struct comparison *comparison_of(struct comparison *list, const struct event *e)
{
	for (int i = 0; i < WAIT_OPS; i++) {
		if (!list[i].source) {
			list[i].source = e->source;
			list[i].op = e->op;
		}
		if (list[i].source == e->source && list[i].op == e->op)
			return &list[i];
	}
	return NULL;
}

static void comparisons_done(struct comparison (*list)[WAIT_OPS])
{
	for (int i = 0; i < WAIT_OPS; i++) {
		free((void *)(*list)[i].with);
		free((void *)(*list)[i].without);
	}
}

static int row_add(const struct event ***rows, size_t *count, const struct event *e)
{
	if (!(*count & (*count - 1))) { /* 0 and powers of two: full */
		const struct event **p = reallocarray(*rows, *count ? *count * 2 : 1, sizeof(*p));

		if (!p)
			return -ENOMEM;
		*rows = p;
	}
	(*rows)[(*count)++] = e;
	return 0;
}

static int compare_calls(
	const struct recording *rec, const struct case_file *f, struct comparison *list)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];
		struct comparison *c;
		uint64_t ns;

		if (e->pid != f->pid || MAX(e->device, 0) != f->device || !is_wait(e) ||
			e->flags & WIRE_NESTED || !e->dur_ns || !baseline_is_sane(e))
			continue;
		c = comparison_of(list, e);
		ns = overlap_ns(f, e);
		if (c && ns >= e->dur_ns / 2 + 1)
			r = row_add(&c->with, &c->with_count, e);
		else if (c && !ns)
			r = row_add(&c->without, &c->without_count, e);
	}
	return r;
}

static int median_of(const struct event *const *rows, size_t n, uint64_t *ret)
{
	_cleanup_free_ uint64_t *v = calloc(n + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		v[i] = rows[i]->dur_ns;
	robust_sort(v, n);
	*ret = robust_median(v, n);
	return 0;
}

/* What the calls beside others lost beyond CPU and disk. */
static int net_excess(const struct recording *rec, const struct comparison *c, struct case_file *f)
{
	_cleanup_free_ struct window *w = calloc(c->with_count + 1, sizeof(*w));
	struct window_use use;
	uint64_t host;
	int r;

	if (!w)
		return -ENOMEM;
	f->excess_ns = f->all_excess_ns = 0;
	for (size_t i = 0; i < c->with_count; i++) {
		const struct event *e = c->with[i];

		w[i] = (struct window){e->start.ns, event_end_ns(e), e->tid};
		f->excess_ns += e->dur_ns - MIN(e->dur_ns, f->med_without);
	}
	for (size_t i = 0; i < c->without_count; i++)
		f->all_excess_ns +=
			c->without[i]->dur_ns - MIN(c->without[i]->dur_ns, f->med_without);
	f->all_excess_ns += f->excess_ns;
	r = window_look(rec, f->pid, w, c->with_count, &use);
	host = use.cpu_ns + use.disk_ns;
	f->net_ns = f->excess_ns - MIN(f->excess_ns, host);
	return r;
}

/* 1: the process is slower beside others, 0: it is not, or it cannot be told. */
static int judge(const struct recording *rec, const struct comparison *c, struct case_file *f)
{
	uint64_t with, without;

	if (c->with_count < CALLS_MIN || c->without_count < CALLS_MIN)
		return 0;
	if (median_of(c->with, c->with_count, &with) < 0 ||
		median_of(c->without, c->without_count, &without) < 0)
		return -ENOMEM;
	f->med_with = with;
	f->med_without = without;
	if ((double)with < RATIO_MIN * (double)without || with < without + DIFFERENCE_MIN)
		return 0;
	if (net_excess(rec, c, f) < 0)
		return -ENOMEM;
	f->c = c;
	return (double)f->net_ns >= NET_SHARE * (double)f->excess_ns;
}

/* Who was there for the longest time beside these calls. */
static void name_culprit(struct case_file *f)
{
	int64_t from = f->c->with[0]->start.ns;
	int64_t to = event_end_ns(f->c->with[f->c->with_count - 1]);
	int64_t best = 0;

	for (size_t i = 0; i < f->burst_count; i++) {
		const struct burst *b = &f->bursts[i];
		int64_t ns = MIN(to, b->end_ns) - MAX(from, b->start_ns);

		if (b->pid != f->pid && ns > best) {
			best = ns;
			f->culprit = b->pid;
		}
	}
}

static void name_of(const struct recording *rec, uint32_t pid, char out[COMM_LEN])
{
	out[0] = 0;
	for (size_t i = 0; i < rec->event_count; i++)
		if (rec->events[i].pid == pid && baseline_is_call(rec->events[i].source)) {
			memcpy(out, rec->events[i].comm, COMM_LEN);
			out[COMM_LEN - 1] = 0;
			return;
		}
}

static void write_words(const struct recording *rec, const struct case_file *f, int64_t counted,
	struct incident *inc)
{
	char with[TEXT_MAX], without[TEXT_MAX], op[32], other[COMM_LEN], share[TEXT_MAX];
	char ratio[TEXT_MAX], lost[TEXT_MAX];
	const struct comparison *c = f->c;

	name_of(rec, f->culprit, other);
	wire_op_name(c->source, c->op, op);
	snprintf(inc->summary, sizeof(inc->summary),
		"%s %sx slower (p50 %s -> %s) while %s (pid %u) uses GPU %d too",
		wire_op_name(c->source, c->op, op), text_format_ratio(ratio, inc->tail_ratio),
		text_format_duration(without, f->med_without),
		text_format_duration(with, f->med_with), other, f->culprit, f->device);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"GPU %d is shared: %s (pid %u) and %s (pid %u) work on it at the same time",
		f->device, inc->comm, f->pid, other, f->culprit);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"%zu calls of %s by pid %u lay within bursts of work of other processes on device "
		"%d and took %s (median), %zu outside of them %s. %s were lost that way, %s of all "
		"that its calls took beyond the latter; time that the CPU or the disk took is not "
		"in it. %s",
		c->with_count, wire_op_name(c->source, c->op, op), f->pid, f->device, with,
		c->without_count, without, text_format_duration(lost, f->net_ns),
		text_format_percent(share, inc->explained),
		counted > 1 ? "The driver counted several processes on a GPU."
			    : "That it is the same GPU follows from its number only: the driver's "
			      "count of processes was not recorded.");
}

static void write_sql(uint32_t pid, uint32_t other, struct incident *inc)
{
	snprintf(inc->evidence_sql, sizeof(inc->evidence_sql),
		"SELECT pid, gpu_id, count(*) AS calls, min(timestamp), max(timestamp + duration) "
		"FROM events WHERE source IN (1, 4) AND pid IN (%u, %u) GROUP BY 1, 2",
		pid, other);
}

static void write_proof(const struct case_file *f, struct incident *inc)
{
	const struct comparison *c = f->c;
	char op[32];

	for (size_t i = 0; i < f->burst_count && inc->step_count < 4; i++)
		if (f->bursts[i].pid == f->culprit)
			incident_step(inc, f->bursts[i].start_ns,
				(uint64_t)(f->bursts[i].end_ns - f->bursts[i].start_ns), "CUDA",
				"burst", "pid %u works on device %d", f->culprit, f->device);
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

static void report(const struct scene *s, const struct case_file *f, int64_t counted,
	struct incident_list *out)
{
	const struct comparison *c = f->c;
	int64_t from = c->with[0]->start.ns, to = event_end_ns(c->with[c->with_count - 1]);
	double n = (double)MIN(c->with_count, c->without_count);
	struct incident *inc;

	incident_cover(out, f->pid, from, to);
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
	inc->confidence = (s->completeness < 0 ? UNKNOWN_BOOKS : s->completeness) * n /
			  (n + CALLS_HALF) * (counted > 1 ? 1 : UNKNOWN_COUNT);
	write_words(s->rec, f, counted, inc);
	write_proof(f, inc);
	incident_keep(out, inc);
}

static void note(const struct scene *s, const struct case_file *f, int64_t counted,
	struct incident_list *out)
{
	struct incident *inc = incident_begin(out, PROBLEM_GPU_SHARING);

	if (!inc)
		return;
	incident_id(inc, f->pid, f->others[0].start_ns);
	name_of(s->rec, f->pid, inc->comm);
	inc->last.ns = f->others[f->other_count - 1].end_ns;
	inc->severity = SEVERITY_LOW;
	inc->completeness = s->completeness;
	inc->confidence = s->completeness < 0 ? UNKNOWN_BOOKS : s->completeness;
	inc->count = (uint64_t)counted;
	inc->unit = "processes on the GPU";
	snprintf(inc->summary, sizeof(inc->summary),
		"%d processes use GPU %d, and no call was seen to be slower for it", (int)counted,
		f->device);
	snprintf(inc->root_cause, sizeof(inc->root_cause), "GPU %d is shared by pid %u and pid %u",
		f->device, f->pid, f->others[0].tid);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"Waits of pid %u within and outside of other processes' bursts of work on the "
		"device do not differ enough, or not enough of both were recorded.",
		f->pid);
	incident_step(inc, f->others[0].start_ns,
		(uint64_t)(f->others[0].end_ns - f->others[0].start_ns), "CUDA", "burst",
		"pid %u works on device %d", f->others[0].tid, f->device);
	write_sql(f->pid, f->others[0].tid, inc);
	incident_keep(out, inc);
}

/* 1: reported, 2: others are there but nothing is slower, 0: neither, or -ENOMEM. */
static int look_at(
	const struct scene *s, struct case_file *f, int64_t counted, struct incident_list *out)
{
	_cleanup_(comparisons_done) struct comparison list[WAIT_OPS] = {0};
	struct case_file worst = {0};
	int64_t span = f->bursts[f->burst_count - 1].end_ns - f->bursts[0].start_ns;
	int r = unite_others(s->rec, f);

	if (r < 0 || !f->other_count)
		return r;
	r = compare_calls(s->rec, f, list);
	for (int i = 0; r >= 0 && i < WAIT_OPS; i++) {
		r = judge(s->rec, &list[i], f);
		if (r > 0 && f->net_ns > worst.net_ns)
			worst = *f;
	}
	if (r < 0)
		return r;
	if ((double)worst.net_ns < SPAN_SHARE * (double)span || !worst.net_ns)
		return 2;
	name_culprit(&worst);
	report(s, &worst, counted, out);
	return 1;
}

/* The processes of one device, in order of their first burst. */
static int look_at_device(const struct scene *s, const struct burst *bursts, size_t n,
	int64_t counted, struct incident_list *out)
{
	uint32_t seen[VICTIMS_MAX];
	size_t seen_count = 0;
	bool noted = false;

	for (size_t i = 0; i < n && seen_count < VICTIMS_MAX; i++) {
		struct case_file f = {.pid = bursts[i].pid,
			.device = bursts[i].device,
			.bursts = bursts,
			.burst_count = n};
		size_t k = 0;
		int r;

		while (k < seen_count && seen[k] != f.pid)
			k++;
		if (k < seen_count)
			continue;
		seen[seen_count++] = f.pid;
		r = look_at(s, &f, counted, out);
		if (r == 2 && counted > 1 && !noted) {
			note(s, &f, counted, out);
			noted = true;
		}
		noted = noted || r == 1;
		free(f.others);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool has_two(const struct burst *bursts, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (bursts[i].pid != bursts[0].pid)
			return true;
	return false;
}

int sharing(const struct scene *s, struct incident_list *out)
{
	_cleanup_(bursts_done) struct bursts b = {0};
	int64_t counted = driver_count(s->rec);
	size_t next, devices = 0;
	int r;

	if (counted == 1 || (s->rec->node && strchr(s->rec->node, ',')))
		return 0;
	r = bursts_run(s->rec, &b);
	for (size_t i = 0; r == 0 && i < b.count && devices < DEVICES_MAX; i = next) {
		for (next = i; next < b.count && b.items[next].device == b.items[i].device;)
			next++;
		if (has_two(&b.items[i], next - i)) {
			r = look_at_device(s, &b.items[i], next - i, counted, out);
			devices++;
		}
	}
	return r;
}
