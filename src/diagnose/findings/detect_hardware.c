/* SPDX-License-Identifier: Apache-2.0 */
/* detect_hardware.c - signs of a GPU that is failing, in its once-a-second readings: memory errors
 * that grow, XID errors, a PCIe link that became narrower or slower.
 *
 * Only what changed during the recording counts: a counter that was high from the start is history.
 * A counter that falls (the driver was loaded anew) starts afresh. Each sign is an incident:
 *   uncorrected memory errors  silent-corruption  HIGH: data was lost
 *   XID                        as the table of device_error.c says; unknown ones LOW, as drift
 *   corrected memory errors    hardware-drift     LOW; MEDIUM from 10 on, in at least 3 readings
 *   lanes fewer than before    hardware-drift     MEDIUM, for at least 2 readings in a row
 *   generation lower           likewise, but only while the GPU is busy: an idle link saves power
 * Confidence 0.95 for counters and XIDs, which the driver reports; 0.8 for the link. What a wrong
 * result without such a sign would be cannot be seen from here, and the texts say so. */
#include <stdio.h>
#include <string.h>

#include "diagnose/findings/detector.h"
#include "diagnose/findings/device_error.h"
#include "base/text.h"

#define GPUS_MAX       64
#define XIDS_MAX       16 /* different ones told for one GPU */
#define DRIFT_ERRORS   10
#define DRIFT_READINGS 3
#define LINK_READINGS  2
#define BUSY_PCT       20
#define COUNT_MAX      (INT64_C(1) << 40) /* a counter beyond that is nonsense */

struct counter {             /* of errors */
	int64_t grown, last; /* last -1: not known yet */
	int64_t first_ns, last_ns;
	int64_t readings; /* in which it grew */
};

struct xid_seen {
	int64_t number, ns;
	uint64_t count;
};

struct link {
	int64_t most, now, first_ns, last_ns, row; /* row: readings below it, in a row */
	int64_t lower, longest;
};

struct gpu_history {
	int64_t index;
	char name[GPU_NAME_LEN], uuid[GPU_UUID_LEN];
	struct counter corrected, uncorrected;
	struct xid_seen xids[XIDS_MAX];
	int xid_count;
	int64_t xid_last, xid_last_ns;
	struct link width, gen;
	int64_t first_ns, last_ns;
};

static void counter_read(struct counter *c, int64_t value, int64_t ns)
{
	if (value < 0 || value > COUNT_MAX)
		return;
	if (c->last >= 0 && value > c->last) {
		if (!c->readings++)
			c->first_ns = ns;
		c->last_ns = ns;
		c->grown += value - c->last;
	}
	c->last = value;
}

static void xid_read(struct gpu_history *h, const struct gpu_sample *s)
{
	int k = 0;

	if (s->last_xid <= 0 || (s->last_xid == h->xid_last && s->last_xid_ns == h->xid_last_ns))
		return;
	h->xid_last = s->last_xid;
	h->xid_last_ns = s->last_xid_ns;
	while (k < h->xid_count && h->xids[k].number != s->last_xid)
		k++;
	if (k == XIDS_MAX)
		return;
	if (k == h->xid_count)
		h->xids[h->xid_count++] = (struct xid_seen){
			s->last_xid, s->last_xid_ns > 0 ? s->last_xid_ns : s->time.ns, 0};
	h->xids[k].count++;
}

static void link_read(struct link *l, int64_t value, bool counts, int64_t ns)
{
	if (value <= 0)
		return;
	if (value >= l->most) {
		l->most = value;
		l->row = 0;
		return;
	}
	if (!counts) {
		l->row = 0;
		return;
	}
	if (l->row++ == 0)
		l->first_ns = l->longest ? l->first_ns : ns;
	if (l->row > l->longest) {
		l->longest = l->row;
		l->lower = value;
		l->last_ns = ns;
	}
}

static void history_read(struct gpu_history *h, const struct gpu_sample *s)
{
	counter_read(&h->corrected, s->ecc_corrected, s->time.ns);
	counter_read(&h->uncorrected, s->ecc_uncorrected, s->time.ns);
	xid_read(h, s);
	link_read(&h->width, s->pcie_width, true, s->time.ns);
	link_read(&h->gen, s->pcie_gen, s->util_gpu_pct >= BUSY_PCT, s->time.ns);
	h->last_ns = s->time.ns;
}

static struct incident *begin(const struct gpu_history *h, const char *sign, enum problem problem,
	enum severity severity, int64_t first_ns, int64_t last_ns, struct incident_list *out)
{
	struct incident *inc = incident_begin(out, problem);

	incident_id(inc, 0, first_ns);
	/* Several signs of one GPU may begin in the same reading. */
	snprintf(inc->id, sizeof(inc->id), "%s-gpu%lld-%s-%lld", problem_row(problem)->id,
		(long long)h->index, sign, (long long)first_ns);
	inc->last.ns = last_ns;
	inc->severity = severity;
	inc->confidence = 0.95;
	incident_sql(inc,
		"SELECT timestamp, gpu, ecc_corrected, ecc_uncorrected, last_xid, last_xid_ns, "
		"pcie_gen, pcie_width, util_gpu_pct FROM gpu_samples WHERE gpu = %lld AND "
		"timestamp BETWEEN %lld AND %lld ORDER BY timestamp",
		(long long)h->index, (long long)h->first_ns, (long long)h->last_ns);
	return inc;
}

static void report_counter(const struct gpu_history *h, const struct counter *c, bool uncorrected,
	struct incident_list *out)
{
	enum severity severity = uncorrected ? SEVERITY_HIGH
				 : c->grown >= DRIFT_ERRORS && c->readings >= DRIFT_READINGS
					 ? SEVERITY_MEDIUM
					 : SEVERITY_LOW;
	const char *kind = uncorrected ? "uncorrected" : "corrected";
	char seen[TEXT_PLURAL_MAX];
	struct incident *inc;

	if (c->grown <= 0)
		return;
	inc = begin(h, "ecc", uncorrected ? PROBLEM_CORRUPTION : PROBLEM_HARDWARE_DRIFT, severity,
		c->first_ns, c->last_ns, out);
	inc->count = (uint64_t)c->grown;
	inc->unit = "memory errors";
	snprintf(inc->summary, sizeof(inc->summary),
		"GPU %lld (%s): %lld %s memory errors during the recording, seen in %s",
		(long long)h->index, h->name, (long long)c->grown, kind,
		text_format_plural(seen, (uint64_t)c->readings, "readings"));
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		uncorrected
			? "data in the memory of GPU %lld is corrupted: results computed from it are wrong"
			: "corrected memory errors of GPU %lld are increasing",
		(long long)h->index);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"The driver's counter grew by %lld to %lld. %s", (long long)c->grown,
		(long long)c->last,
		uncorrected
			? "The host cannot see which results are affected."
			: "Corrected errors do no harm; their growth often precedes a failure. The host cannot see whether a result was wrong.");
	incident_step(inc, c->first_ns, (uint64_t)(c->last_ns - c->first_ns), "GPU", "ecc",
		"GPU %lld: +%lld %s memory errors", (long long)h->index, (long long)c->grown, kind);
	incident_keep(out, inc);
}

static void report_xid(
	const struct gpu_history *h, const struct xid_seen *x, struct incident_list *out)
{
	static const struct xid_row unknown = {0, PROBLEM_HARDWARE_DRIFT, SEVERITY_LOW,
		"uncommon: see NVIDIA's list of XID errors"};
	const struct xid_row *row = xid_find(x->number);
	struct incident *inc;
	char times[TEXT_PLURAL_MAX];
	char sign[32];

	row = row ? row : &unknown;
	snprintf(sign, sizeof(sign), "xid%lld", (long long)x->number);
	inc = begin(h, sign, row->problem, row->severity, x->ns, x->ns, out);
	inc->count = x->count;
	inc->unit = "XID errors";
	snprintf(inc->summary, sizeof(inc->summary), "GPU %lld (%s): XID %lld, %s",
		(long long)h->index, h->name, (long long)x->number, row->meaning);
	snprintf(inc->root_cause, sizeof(inc->root_cause), "GPU %lld: %s", (long long)h->index,
		row->meaning);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"The driver reported it %s while sampling%s",
		text_format_plural(times, x->count, "times"),
		row->problem == PROBLEM_CORRUPTION
			? ". The host cannot see which results are affected."
			: "; the kernel's log (`dmesg`) has the details.");
	incident_step(inc, x->ns, 0, "GPU", "xid", "GPU %lld: XID %lld", (long long)h->index,
		(long long)x->number);
	incident_keep(out, inc);
}

static void report_link(const struct gpu_history *h, const struct link *l, const char *what,
	struct incident_list *out)
{
	struct incident *inc;

	if (l->longest < LINK_READINGS)
		return;
	inc = begin(h, what, PROBLEM_HARDWARE_DRIFT, SEVERITY_MEDIUM, l->first_ns, l->last_ns, out);
	inc->confidence = 0.8;
	inc->count = (uint64_t)l->longest;
	inc->unit = "readings";
	snprintf(inc->summary, sizeof(inc->summary),
		"GPU %lld (%s): the PCIe link has %s %lld instead of %lld", (long long)h->index,
		h->name, what, (long long)l->lower, (long long)l->most);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"the PCIe link of GPU %lld was retrained at a lower %s", (long long)h->index, what);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"The maximum in this recording is %lld; %lld consecutive samples were lower%s.",
		(long long)l->most, (long long)l->longest,
		l == &h->gen ? " while the GPU was busy" : "");
	incident_step(inc, l->first_ns, 0, "GPU", "pcie", "%s %lld, was %lld", what,
		(long long)l->lower, (long long)l->most);
	incident_keep(out, inc);
}

static struct gpu_history *history_of(
	struct gpu_history *all, int *count, const struct gpu_sample *s)
{
	int k = 0;

	while (k < *count && (all[k].index != s->index || strcmp(all[k].uuid, s->uuid)))
		k++;
	if (k == GPUS_MAX)
		return NULL;
	if (k == *count) {
		all[k] = (struct gpu_history){.index = s->index, .first_ns = s->time.ns};
		all[k].corrected.last = all[k].uncorrected.last = -1;
		snprintf(all[k].name, sizeof(all[k].name), "%s", s->name);
		snprintf(all[k].uuid, sizeof(all[k].uuid), "%s", s->uuid);
		(*count)++;
	}
	return &all[k];
}

int detect_hardware(const struct detector_input *s, struct incident_list *out)
{
	struct gpu_history all[GPUS_MAX];
	int count = 0;

	for (size_t i = 0; i < s->rec->gpu_count; i++) {
		const struct gpu_sample *g = &s->rec->gpus[i];
		struct gpu_history *h;

		if (g->time.ns < 0 || g->time.ns > INT64_C(1) << 62)
			continue;
		h = history_of(all, &count, g);
		if (h)
			history_read(h, g);
	}
	for (int i = 0; i < count; i++) {
		report_counter(&all[i], &all[i].uncorrected, true, out);
		report_counter(&all[i], &all[i].corrected, false, out);
		for (int k = 0; k < all[i].xid_count; k++)
			report_xid(&all[i], &all[i].xids[k], out);
		report_link(&all[i], &all[i].width, "lanes", out);
		report_link(&all[i], &all[i].gen, "generation", out);
	}
	return 0;
}
