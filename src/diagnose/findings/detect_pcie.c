/* SPDX-License-Identifier: Apache-2.0 */
/* detect_pcie.c - copies to and from the GPU that take too much of a process's time.
 *
 * The time in synchronous copies is known (copies.h), but part of it may be waiting for kernels
 * that were queued before. What a copy must take at least is its bytes at the rate of the process's
 * own fastest large copy; the time that all its bytes take at that rate is certain, the rest is
 * not. It is a problem from 20 % of the process's time in copies, 10 % if they were to be asynchronous; MEDIUM if 10 % of the time is
 * certain, else LOW. Copies that are queued show no time of their own: they count if their bytes,
 * at what the link can do, take half of the process's time.
 *
 * Why, in this order: the link is narrow or slow (it can do less than 8 GB/s, a PCIe 3 slot of
 * eight lanes); most of the time is in asynchronous copies that hold their caller, which only
 * memory that is not pinned makes them do; the fastest copy reaches less than half of what the link can do, or of the fastest
 * copy of the recording (memory that is not pinned: the driver copies it twice); without a known
 * link, less than 4 GB/s is one of the two; copies on average below half of the process's own best
 * (they wait for work before them, or are small); else there are simply many bytes.
 *
 * Copies to the host that are far slower than those to the device wait for the kernels whose results they
 * fetch: that part is not certain.
 *
 * Confidence = completeness (0.9 when not known) x the certain part of the copy time x 0.8 when the
 * link is not known. Copies of less than 256 KiB on average are waits rather than copies. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/calls/copies.h"
#include "base/text.h"
#include "wire/names.h"

#define SPAN_MIN       1e9 /* a program that has just begun copies its weights */
#define SHARE_MIN      0.20
#define HELD_MIN       0.10 /* these were meant to cost nothing */
#define CERTAIN_SHARE  0.5
#define CERTAIN_MIN    0.10
#define LINK_BUSY      0.50
#define MEAN_BYTES_MIN (256u << 10)
#define BYTES_MIN      (UINT64_C(64) << 20)
#define NARROW_LINK    8e9
#define SLOW_COPY      4e9
#define HALF           0.5
#define UNKNOWN_LINK   0.8
#define ONE_WAY        4 /* so many times slower than the other way */

enum why { WHY_LINK, WHY_HELD, WHY_PAGEABLE, WHY_LINK_OR_PAGEABLE, WHY_WAITS, WHY_BYTES };

struct link {
	int64_t gen, width; /* the best that was sampled: an idle link slows down */
	double rate;        /* bytes/s each way; 0: not known */
};

struct burden { /* a process's copies, judged */
	const struct copies *c;
	struct link link;
	uint64_t span_ns;
	double share;   /* of its time in synchronous copies; of the link's for queued ones */
	double certain; /* of its time */
	double rate;    /* bytes/s on average */
	double waiting; /* share of the copies' time that is waiting for kernels */
	enum why why;
	bool is_queued;
};

/* What a lane moves each way after encoding, by generation. */
static double lane_rate(int64_t gen)
{
	static const double rates[] = {0, 250e6, 500e6, 985e6, 1969e6, 3938e6, 7563e6};

	return gen > 0 && gen < (int64_t)ARRAY_SIZE(rates) ? rates[gen] : 0;
}

static struct link link_of(const struct recording *rec, int32_t device)
{
	struct link l = {0};

	for (size_t i = 0; i < rec->gpu_count; i++) {
		const struct gpu_sample *g = &rec->gpus[i];
		double rate = lane_rate(g->pcie_gen) * (double)MIN(g->pcie_width, INT64_C(32));

		if ((device < 0 || g->index == device) && rate > l.rate)
			l = (struct link){g->pcie_gen, g->pcie_width, rate};
	}
	return l;
}

/* The share of the stored large copies' time in which those to the host wait for the kernels whose results
 * they fetch: what they take beyond their bytes at the other direction's rate, where that is far higher. */
static double waiting_share(const struct copies *c)
{
	const struct copy_rates *in = &c->to_device, *back = &c->to_host;
	double need;

	if (!in->bytes || !back->bytes)
		return 0;
	need = (double)back->bytes * (double)in->ns / (double)in->bytes;
	return need * ONE_WAY < (double)back->ns
		       ? ((double)back->ns - need) / (double)(back->ns + in->ns)
		       : 0;
}

static enum why why_of(const struct burden *b, double best_of_all)
{
	double best = b->c->best;

	if (b->link.rate > 0 && b->link.rate < NARROW_LINK)
		return WHY_LINK;
	if (b->waiting > HALF)
		return WHY_WAITS;
	if ((double)b->c->held.ns > HALF * (double)b->c->ns)
		return WHY_HELD;
	if (best < HALF * MAX(best_of_all, b->link.rate))
		return WHY_PAGEABLE;
	if (b->link.rate <= 0 && best < SLOW_COPY)
		return WHY_LINK_OR_PAGEABLE;
	return b->rate < HALF * best ? WHY_WAITS : WHY_BYTES;
}

static bool judge(
	const struct recording *rec, const struct copies *c, double best, struct burden *b)
{
	double span = (double)(c->last_ns - c->first_ns);
	uint64_t host = c->to_device.bytes + c->to_host.bytes;

	*b = (struct burden){.c = c, .span_ns = (uint64_t)MAX(span, 0.0)};
	if (span < SPAN_MIN || c->other_bytes > host)
		return false;
	b->link = link_of(rec, c->device);
	if (b->link.rate > 0 && c->queued_bytes + c->bytes >= BYTES_MIN &&
		c->queued_bytes > c->bytes) {
		b->is_queued = true;
		b->share = b->certain = (double)(c->queued_bytes + c->bytes) / b->link.rate *
					(double)NS_PER_S / span;
		b->rate = (double)(c->queued_bytes + c->bytes) * (double)NS_PER_S / span;
		b->why = b->link.rate < NARROW_LINK ? WHY_LINK : WHY_BYTES;
		if (b->share >= LINK_BUSY || !c->held.ns)
			return b->share >= LINK_BUSY;
		b->is_queued = false; /* what is queued is little beside what holds its caller */
	}
	if (!c->calls || c->bytes < BYTES_MIN || c->bytes / c->calls < MEAN_BYTES_MIN ||
		c->best <= 0 || !c->ns)
		return false;
	b->share = MIN((double)c->ns / span, 1.0);
	b->waiting = waiting_share(c);
	b->certain = MIN(((double)c->held.ns * (1 - b->waiting) +
				 (double)c->bytes / c->best * (double)NS_PER_S *
					 (1 - (double)c->held.ns / (double)c->ns)) /
				 span,
		b->share);
	b->rate = (double)c->bytes * (double)NS_PER_S / (double)c->ns;
	b->why = why_of(b, best);
	return b->share >= (b->why == WHY_HELD ? HELD_MIN : SHARE_MIN);
}

static void rate_text(char out[TEXT_MAX], double bytes_per_s)
{
	if (bytes_per_s >= 1e9)
		snprintf(out, TEXT_MAX, "%.1f GB/s", bytes_per_s / 1e9);
	else
		snprintf(out, TEXT_MAX, "%.0f MB/s", bytes_per_s / 1e6);
}

static void link_text(char out[64], const struct link *l)
{
	char rate[TEXT_MAX];

	if (l->rate <= 0) {
		snprintf(out, 64, "a link of unknown width");
		return;
	}
	rate_text(rate, l->rate);
	snprintf(out, 64, "PCIe %d x%d (at most %s)", (int)l->gen, (int)l->width, rate);
}

static void write_root_cause(const struct burden *b, double best_of_all, struct incident *inc)
{
	char rate[TEXT_MAX], best[TEXT_MAX], other[TEXT_MAX], link[64], bytes[TEXT_MAX];
	char *out = inc->root_cause;
	size_t size = sizeof(inc->root_cause);

	rate_text(rate, b->rate);
	rate_text(best, b->c->best);
	rate_text(other, MAX(best_of_all, b->link.rate));
	link_text(link, &b->link);
	/* Calls that hold their caller are those that were timed. */
	text_format_bytes(bytes, b->c->bytes + (b->why == WHY_HELD ? 0 : b->c->queued_bytes));
	switch (b->why) {
	case WHY_LINK:
		snprintf(out, size, "slow link: %s, copies go over %s at %s", bytes, link, rate);
		break;
	case WHY_HELD:
		snprintf(out, size,
			"copies from unpinned memory: asynchronous copies hold their caller, %s at %s on average",
			bytes, rate);
		break;
	case WHY_PAGEABLE:
		snprintf(out, size,
			"copies from unpinned memory, or small copies: at best %s where %s is possible",
			best, other);
		break;
	case WHY_LINK_OR_PAGEABLE:
		snprintf(out, size,
			"a slow link or unpinned memory: at best %s (the link width was not recorded)",
			best);
		break;
	case WHY_WAITS:
		snprintf(out, size,
			"copies at %s on average where the fastest reached %s: they wait for work queued before them, or use unpinned memory",
			rate, best);
		break;
	case WHY_BYTES:
		snprintf(out, size, "large transfers: %s at %s, the rate of %s", bytes, rate,
			b->link.rate > 0 ? link : "the fastest copy of the process");
		break;
	}
}

/* Which way the large copies that are stored went. */
static void put_ways(const struct copies *c, const char *link, char *out, size_t size)
{
	char in[TEXT_MAX], back[TEXT_MAX];

	rate_text(in, (double)c->to_device.bytes * 1e9 / (double)MAX(c->to_device.ns, UINT64_C(1)));
	rate_text(back, (double)c->to_host.bytes * 1e9 / (double)MAX(c->to_host.ns, UINT64_C(1)));
	if (c->to_device.count && c->to_host.count)
		snprintf(out, size,
			" Of the stored large copies %" PRIu64
			" went to the device at %s and %" PRIu64 " to the host at %s, over %s.",
			c->to_device.count, in, c->to_host.count, back, link);
	else if (c->to_device.count || c->to_host.count)
		snprintf(out, size,
			" The %" PRIu64
			" large copies that are stored all went to the %s, at %s over %s.",
			c->to_device.count + c->to_host.count,
			c->to_device.count ? "device" : "host", c->to_device.count ? in : back,
			link);
}

static void write_words(const struct burden *b, double best_of_all, struct incident *inc)
{
	char share[TEXT_MAX], bytes[TEXT_MAX], rate[TEXT_MAX], sure[TEXT_MAX], span[TEXT_MAX];
	char n[TEXT_PLURAL_MAX], link[64];
	size_t len;
	const struct copies *c = b->c;

	text_format_percent(share, b->share);
	rate_text(rate, b->rate);
	if (b->is_queued)
		snprintf(inc->summary, sizeof(inc->summary),
			"copies keep the link busy for %s of wall time: %s by %s (pid %u)", share,
			text_format_bytes(bytes, c->bytes + c->queued_bytes), c->comm, c->pid);
	else
		snprintf(inc->summary, sizeof(inc->summary),
			"memcpy %s of wall time: %s at %s by %s (pid %u)", share,
			text_format_bytes(bytes, c->bytes), rate, c->comm, c->pid);
	write_root_cause(b, best_of_all, inc);
	link_text(link, &b->link);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"%s moved %s and took %s of the %s observed; at the "
		"rate of the fastest large copy these bytes need %s of the time, the rest may be "
		"waiting for work queued before.",
		text_format_plural(n, c->calls, "synchronous copies"), bytes, share,
		text_format_duration(span, b->span_ns), text_format_percent(sure, b->certain));
	len = strlen(inc->explanation);
	put_ways(c, link, inc->explanation + len, sizeof(inc->explanation) - len);
}

static void write_proof(const struct burden *b, struct incident *inc)
{
	const struct copies *c = b->c;
	char bytes[TEXT_MAX], op[32];

	for (size_t i = 0; i < ARRAY_SIZE(c->worst) && c->worst[i]; i++) {
		const struct event *e = c->worst[i];

		incident_step(inc, e->start.ns, e->dur_ns, "CUDA",
			wire_op_name(e->source, e->op, op), "%s to the %s",
			text_format_bytes(bytes, e->arg0), e->arg1 == 2 ? "host" : "device");
		incident_evidence(inc, e);
	}
	if (!inc->step_count)
		incident_step(inc, c->first_ns, b->span_ns, "CUDA", "copies", "%s were queued",
			text_format_bytes(bytes, c->queued_bytes));
	snprintf(inc->evidence_sql, sizeof(inc->evidence_sql),
		"SELECT o.name, sum(a.count) AS calls, sum(a.sum_arg0) AS bytes, sum(a.sum_dur) AS "
		"ns FROM event_aggregates a JOIN ops o ON o.source_id = a.source AND o.op_id = "
		"a.op WHERE a.pid = %u AND a.nested = 0 AND o.name LIKE '%%emcpy%%' GROUP BY 1",
		c->pid);
}

static void report(const struct detector_input *s, const struct burden *b, double best_of_all,
	struct incident_list *out)
{
	const struct copies *c = b->c;
	struct incident *inc;

	if (b->why == WHY_HELD)
		incident_cover_op(out, c->pid, c->held.source, c->held.op);
	inc = incident_begin(out, PROBLEM_PCIE);
	if (!inc)
		return;
	incident_id(inc, c->pid, c->first_ns);
	memcpy(inc->comm, c->comm, COMM_LEN);
	inc->last.ns = c->last_ns;
	/* Where most of the time may be something else (a disk behind the copies), it is a hint. */
	inc->severity = b->certain >= CERTAIN_MIN && b->certain >= CERTAIN_SHARE * b->share
				? SEVERITY_MEDIUM
				: SEVERITY_LOW;
	inc->source = c->source ? c->source : SOURCE_CUDA;
	inc->op = c->op;
	inc->calls = inc->count = c->calls;
	inc->unit = "copies";
	inc->excess_ns = b->is_queued ? 0 : c->ns;
	inc->explained = b->certain / b->share;
	inc->completeness = s->completeness;
	inc->confidence = completeness_weight(s->completeness) * inc->explained *
			  (b->link.rate > 0 ? 1 : UNKNOWN_LINK);
	write_words(b, best_of_all, inc);
	write_proof(b, inc);
	incident_keep(out, inc);
}

int detect_pcie(const struct detector_input *s, struct incident_list *out)
{
	_cleanup_(copies_done) struct copies_table t = {0};
	int r = copies_run(s, &t);

	for (size_t i = 0; r == 0 && i < t.count; i++) {
		struct burden b;

		if (judge(s->rec, &t.items[i], t.best, &b))
			report(s, &b, t.best, out);
	}
	return r;
}
