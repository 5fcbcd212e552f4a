/* SPDX-License-Identifier: Apache-2.0 */
/* detect_memory.c - allocations that failed: for want of memory, or because what is free lies in
 * pieces; and the pressure on the cache of a serving process, seen by its retries.
 *
 * One incident a process. A failed request would have fitted ("fragmented") if both readings of
 * the GPU around it, at most 2 s away, had that much free; or if the process itself had held as
 * much at once before, and the other traced processes hold no more now than then. Readings that
 * both had less free say "full". Otherwise nothing is said about the reason.
 *
 * A failure is recovered if an allocation of at least that size succeeds soon after (frameworks
 * free their cache and ask again). CRITICAL: some failure was not. MEDIUM: all were.
 * A process that talks over the network, whose failures were all recovered or that allocates and
 * frees while the GPU is 95 % full, is reported as KV cache pressure (MEDIUM): a sign, no
 * proof, because a cache inside one allocation is not seen.
 *
 * Confidence is that of the reason: 0.9 by readings, 0.85 by the process's own peak, 0.95 by both,
 * 0.6 when it is not known; 0.5 for the KV cache; times completeness. */
#include <errno.h>
#include <stdio.h>

#include "diagnose/findings/detector.h"
#include "diagnose/findings/device_allocs.h"
#include "base/search.h"
#include "base/text.h"
#include "wire/names.h"
#include "wire/op_kind.h"

#define SAMPLE_REACH_NS  ((int64_t)(2 * NS_PER_S))
#define RETRY_NS         ((int64_t)(5 * NS_PER_S))
#define RETRY_ENTRIES    1024 /* entries looked at for a retry */
#define FAILURES_MAX     256  /* examined in one process; more are counted */
#define PROCESSES_MAX    64   /* looked at: a GPU has a handful */
#define SERVES_ROWS      10   /* socket rows that make a process a server */
#define FULL_SHARE       0.95
#define CHURN_ALLOCS     20 /* while full */
#define CHURN_PER_S      5
#define PRESSURE_RETRIES 3

enum reason { REASON_UNKNOWN, REASON_FULL, REASON_FRAGMENTED };

struct failure {
	size_t entry;
	enum reason reason;
	bool by_sample, by_peak, recovered;
	int64_t free_bytes;  /* before it; -1: not known */
	uint64_t peak_bytes; /* most the process had before */
	uint64_t others_bytes;
};

struct failures {
	struct failure lead; /* the one that is told */
	uint64_t count, fragmented, recovered;
	size_t first, last; /* entries */
};

/* Of the readings around @ns, which are in order of time: the last before or the first after. */
static const struct gpu_sample *sample_near(
	const struct recording *rec, int32_t device, int64_t ns, bool after)
{
	size_t next = LOWER_BOUND(i, rec->gpu_count, rec->gpus[i].time.ns <= ns);

	for (size_t i = after ? next : next - 1; i < rec->gpu_count; i += after ? 1 : SIZE_MAX) {
		const struct gpu_sample *s = &rec->gpus[i];
		int64_t d;

		if (__builtin_sub_overflow(s->time.ns, ns, &d) || d > SAMPLE_REACH_NS ||
			d < -SAMPLE_REACH_NS)
			return NULL;
		if (s->index == MAX(device, 0) && s->mem_free_bytes >= 0)
			return s;
	}
	return NULL;
}

static uint64_t others_at(const struct device_allocs *l, uint32_t pid, int64_t ns)
{
	uint64_t sum = 0;
	int seen = 0;

	for (size_t i = 0; i < l->count && seen++ < PROCESSES_MAX; i = device_allocs_end(l, i))
		if (l->entries[i].pid != pid)
			sum += device_allocs_balance(l, l->entries[i].pid, ns);
	return sum;
}

static bool is_recovered(const struct device_allocs *l, size_t at, size_t end)
{
	const struct device_allocs_entry *f = &l->entries[at];

	for (size_t i = at + 1; i < MIN(end, at + RETRY_ENTRIES); i++) {
		const struct device_allocs_entry *e = &l->entries[i];

		if (e->ns - f->ns > RETRY_NS)
			return false;
		if (e->kind == DEVICE_ALLOCS_ALLOC && e->bytes >= f->bytes)
			return true;
	}
	return false;
}

/* @peak: the entry after which the process held most, before this failure. */
static struct failure examine(const struct recording *rec, const struct device_allocs *l, size_t at,
	size_t end, size_t peak)
{
	const struct device_allocs_entry *e = &l->entries[at];
	int32_t device = rec->events[e->event].device;
	const struct gpu_sample *before = sample_near(rec, device, e->ns, false);
	const struct gpu_sample *after = sample_near(rec, device, e->ns, true);
	struct failure f = {.entry = at, .free_bytes = -1, .recovered = is_recovered(l, at, end)};
	uint64_t need = e->bytes;

	f.peak_bytes = l->entries[peak].balance;
	f.others_bytes = others_at(l, e->pid, e->ns);
	f.free_bytes = before ? before->mem_free_bytes : -1;
	f.by_peak = need && peak < at && e->balance <= f.peak_bytes &&
		    need <= f.peak_bytes - e->balance &&
		    f.others_bytes <= others_at(l, e->pid, l->entries[peak].ns);
	if (need && before && after) {
		bool fits = (uint64_t)before->mem_free_bytes >= need &&
			    (uint64_t)after->mem_free_bytes >= need;
		bool full = (uint64_t)before->mem_free_bytes < need &&
			    (uint64_t)after->mem_free_bytes < need;

		f.by_sample = fits || full;
		f.reason = fits ? REASON_FRAGMENTED : full ? REASON_FULL : REASON_UNKNOWN;
		f.by_peak = f.by_peak && !full;
	}
	if (f.by_peak)
		f.reason = REASON_FRAGMENTED;
	return f;
}

/* The more is known about a failure, the better it tells the story; not recovered comes first. */
static int weight_of(const struct failure *f)
{
	return 4 * !f->recovered + f->reason;
}

static struct failures collect(
	const struct recording *rec, const struct device_allocs *l, size_t from, size_t end)
{
	struct failures all = {0};
	size_t peak = from;

	for (size_t i = from; i < end; i++) {
		struct failure f;

		if (l->entries[i].balance > l->entries[peak].balance)
			peak = i;
		if (l->entries[i].kind != DEVICE_ALLOCS_FAIL)
			continue;
		all.last = i;
		if (all.count++ == 0)
			all.first = i;
		if (all.count > FAILURES_MAX)
			continue;
		f = examine(rec, l, i, end, peak);
		all.fragmented += f.reason == REASON_FRAGMENTED;
		all.recovered += f.recovered;
		if (all.count == 1 || weight_of(&f) > weight_of(&all.lead))
			all.lead = f;
	}
	return all;
}

static bool serves_network(const struct recording *rec, uint32_t pid)
{
	size_t rows = 0;

	for (size_t i = 0; i < rec->event_count && rows < SERVES_ROWS; i++)
		rows += rec->events[i].source == SOURCE_NET && rec->events[i].pid == pid;
	return rows == SERVES_ROWS;
}

static void describe_reason(
	const struct failure *f, const struct device_allocs_entry *e, struct incident *inc)
{
	char need[TEXT_MAX], free_now[TEXT_MAX], held[TEXT_MAX], peak[TEXT_MAX], others[TEXT_MAX];

	text_format_bytes(need, e->bytes);
	text_format_bytes(held, e->balance);
	text_format_bytes(peak, f->peak_bytes);
	text_format_bytes(others, f->others_bytes);
	text_format_bytes(free_now, f->free_bytes > 0 ? (uint64_t)f->free_bytes : 0);
	if (f->reason == REASON_FRAGMENTED)
		snprintf(inc->root_cause, sizeof(inc->root_cause),
			"fragmentation: a request of %s failed although %s%s was free, in pieces",
			need, f->by_sample ? "" : "at least ",
			f->by_sample ? free_now
				     : text_format_bytes(free_now, f->peak_bytes - e->balance));
	else if (f->reason == REASON_FULL)
		snprintf(inc->root_cause, sizeof(inc->root_cause),
			"the GPU's memory is full: %s requested, %s free", need, free_now);
	else
		snprintf(inc->root_cause, sizeof(inc->root_cause),
			"out of GPU memory: %s requested; free memory is not recorded", need);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"Of the memory allocated since the recording began, the process held %s (peak before: %s) and other traced processes %s. %s%s",
		held, peak, others,
		f->by_sample ? "Free memory is from the GPU samples before and after. "
			     : "The GPU samples around it disagree on free memory. ",
		f->by_peak ? "The process had held as much before." : "");
}

static void describe_failures(const struct recording *rec, const struct device_allocs *l,
	size_t from, size_t end, const struct failures *all, struct incident *inc)
{
	const struct device_allocs_entry *e = &l->entries[all->lead.entry];
	const struct event *row = &rec->events[e->event];
	char need[TEXT_MAX], n[TEXT_PLURAL_MAX], op[32];

	snprintf(inc->summary, sizeof(inc->summary),
		"%s%s%s failed in %s: out of GPU memory (%s, %llu of them "
		"by fragmentation, %llu recovered by a retry)",
		wire_op_name(row->source, row->op, op), e->bytes ? " of " : "",
		e->bytes ? text_format_bytes(need, e->bytes) : "", row->comm,
		text_format_plural(n, all->count, "failed allocations"),
		(unsigned long long)all->fragmented, (unsigned long long)all->recovered);
	incident_step(inc, e->ns - (int64_t)row->dur_ns, row->dur_ns, "CUDA",
		wire_op_name(row->source, row->op, op), "request of %s failed: out of memory",
		text_format_bytes(need, e->bytes));
	incident_evidence(inc, row);
	for (size_t i = from; i < end && inc->evidence_count < INCIDENT_EVIDENCE; i++)
		if (l->entries[i].kind == DEVICE_ALLOCS_FAIL && i != all->lead.entry)
			incident_evidence(inc, &rec->events[l->entries[i].event]);
	incident_sql(inc,
		"SELECT id, timestamp, duration, op, arg0, ret_code FROM events WHERE pid = %u AND "
		"ret_code = 2 AND " OP_KIND_CUDA_SQL " ORDER BY timestamp",
		row->pid);
}

static int add_stacks(const struct recording *rec, const struct device_allocs *l, size_t from,
	size_t end, struct incident *inc)
{
	_cleanup_free_ struct incident_stack *list = calloc(end - from + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = from; i < end; i++) {
		uint64_t hash = rec->events[l->entries[i].event].stack_hash;

		if (l->entries[i].kind == DEVICE_ALLOCS_FAIL && hash)
			list[n++] = (struct incident_stack){hash, 1, 1};
	}
	incident_stacks_merge(list, n, inc);
	return 0;
}

static int report(const struct detector_input *s, const struct device_allocs *l, size_t from,
	size_t end, const struct failures *all, struct incident_list *out)
{
	const struct failure *f = &all->lead;
	bool recovered = all->recovered == all->count;
	bool cache = recovered && all->count >= PRESSURE_RETRIES &&
		     serves_network(s->rec, l->entries[from].pid);
	struct incident *inc = incident_begin(out, cache ? PROBLEM_KV_CACHE : PROBLEM_GPU_MEMORY);

	incident_process(inc, &s->rec->events[l->entries[f->entry].event],
		l->entries[all->first].ns, l->entries[all->last].ns);
	incident_weigh(inc, recovered ? SEVERITY_MEDIUM : SEVERITY_CRITICAL,
		cache                        ? 0.5
		: f->by_peak && f->by_sample ? 0.95
		: f->by_sample               ? 0.9
		: f->by_peak                 ? 0.85
					     : 0.6,
		all->count, "failed allocations");
	incident_complete(inc, s->completeness);
	describe_reason(f, &l->entries[f->entry], inc);
	describe_failures(s->rec, l, from, end, all, inc);
	if (cache) {
		char refused[TEXT_PLURAL_MAX];

		snprintf(inc->root_cause, sizeof(inc->root_cause),
			"probable KV cache pressure: %s of a process that serves the network failed and "
			"%s retried",
			text_format_plural(refused, all->count, "allocations"),
			all->count == 1 ? "was" : "were");
	}
	if (add_stacks(s->rec, l, from, end, inc) < 0)
		return -ENOMEM;
	incident_keep(out, inc);
	return 0;
}

/* Allocations of the process while its GPU was nearly full: how many, from when to when. */
static size_t churn_while_full(const struct recording *rec, const struct device_allocs *l,
	size_t from, size_t end, int64_t *ret_first, int64_t *ret_last)
{
	size_t n = 0;

	for (size_t i = from, at = 0; i < end; i++) {
		const struct device_allocs_entry *e = &l->entries[i];
		const struct gpu_sample *s = NULL;

		for (; at < rec->gpu_count && rec->gpus[at].time.ns <= e->ns;)
			at++;
		for (size_t k = at; k-- > 0 && !s && at - k <= 64;)
			if (rec->gpus[k].index == MAX(rec->events[e->event].device, 0))
				s = &rec->gpus[k];
		if (e->kind != DEVICE_ALLOCS_ALLOC || !e->freed || !s || s->mem_total_bytes <= 0 ||
			e->ns - s->time.ns > SAMPLE_REACH_NS ||
			(double)s->mem_used_bytes < FULL_SHARE * (double)s->mem_total_bytes)
			continue;
		if (n++ == 0)
			*ret_first = e->ns;
		*ret_last = e->ns;
	}
	return n;
}

static void report_churn(const struct detector_input *s, const struct device_allocs *l, size_t from,
	size_t end, struct incident_list *out)
{
	const struct event *row = &s->rec->events[l->entries[from].event];
	int64_t first = 0, last = 0;
	size_t n = churn_while_full(s->rec, l, from, end, &first, &last);
	struct incident *inc;

	if (n < CHURN_ALLOCS || last <= first ||
		(double)n / ((double)(last - first) / 1e9) < CHURN_PER_S ||
		!serves_network(s->rec, row->pid))
		return;
	inc = incident_begin(out, PROBLEM_KV_CACHE);
	incident_process(inc, row, first, last);
	incident_weigh(inc, SEVERITY_MEDIUM, 0.5, n, "allocations while full");
	incident_complete(inc, s->completeness);
	snprintf(inc->summary, sizeof(inc->summary),
		"%s allocated and freed %zu times in %.1f s while GPU memory was over 95 %% full",
		row->comm, n, (double)(last - first) / 1e9);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"probable KV cache pressure: a process that serves the network allocates and frees while memory is almost full");
	snprintf(inc->explanation, sizeof(inc->explanation),
		"Indirect evidence: the cache is inside allocations and is not traced.");
	incident_step(inc, first, (uint64_t)(last - first), "CUDA", "allocations",
		"%zu allocations freed again, memory over 95 %% full", n);
	incident_evidence(inc, row);
	incident_sql(inc,
		"SELECT timestamp, gpu, mem_used_bytes, mem_total_bytes FROM gpu_samples WHERE "
		"timestamp BETWEEN %lld AND %lld ORDER BY timestamp",
		(long long)first, (long long)last);
	incident_keep(out, inc);
}

int detect_memory(const struct detector_input *s, struct incident_list *out)
{
	const struct device_allocs *l = s->allocs;
	size_t end, examined = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->count && examined < PROCESSES_MAX;
		i = end, examined++) {
		struct failures all;

		end = device_allocs_end(l, i);
		all = collect(s->rec, l, i, end);
		if (all.count)
			r = report(s, l, i, end, &all, out);
		else
			report_churn(s, l, i, end, out);
	}
	return r;
}
