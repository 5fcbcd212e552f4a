/* SPDX-License-Identifier: Apache-2.0 */
/* detect_throttle.c - clocks that were lowered: a note of when and why, LOW. What that cost is told by the accounts of
 * those who waited for the GPU (gpu_change.h), and then this note is not needed. throttle_find.c says when. */
#include <stdio.h>

#include "diagnose/findings/detector.h"
#include "diagnose/findings/throttle_find.h"
#include "base/macros.h"
#include "base/text.h"

#define GPUS_MAX 64

static void describe(const struct gpu_throttle_spans *g, struct incident *inc)
{
	char names[96], dur[TEXT_MAX], readings[TEXT_PLURAL_MAX], clocks[96] = "";

	if (g->bits)
		gpu_throttle_text(g->bits, names, sizeof(names));
	else
		snprintf(names, sizeof(names), "no reason given");
	if (g->clock_inside > 0 && g->clock_outside > 0)
		snprintf(clocks, sizeof(clocks), ", clock %lld MHz instead of %lld",
			(long long)g->clock_inside, (long long)g->clock_outside);
	snprintf(inc->summary, sizeof(inc->summary),
		"GPU %lld throttled for %s (%s%s); no traced process is known to be slower because of it",
		(long long)g->index, text_format_duration(dur, (uint64_t)g->ns), names, clocks);
	if (g->bits)
		snprintf(inc->root_cause, sizeof(inc->root_cause),
			"throttling: the driver lowered the clocks (%s)", names);
	else
		snprintf(inc->root_cause, sizeof(inc->root_cause),
			"lowered clock: the GPU was busy at %lld MHz instead of %lld; the driver gives no reason, as with locked clocks",
			(long long)g->clock_inside, (long long)g->clock_outside);
	if (!g->bits)
		incident_fix(inc,
			"Look for locked clocks: `nvidia-smi -q -d CLOCK`; `nvidia-smi -rgc` unlocks them");
	inc->count = g->count;
	inc->unit = "throttled readings";
	incident_step(inc, g->throttle_spans[0].start_ns, (uint64_t)g->ns, "GPU", "throttle",
		"GPU %lld: %s%s, in %zu of %s", (long long)g->index, names, clocks, g->count,
		text_format_plural(readings, g->readings, "readings"));
	incident_sql(inc,
		"SELECT timestamp, gpu, throttle_reasons, sm_clock_mhz, power_mw, temperature_c "
		"FROM gpu_samples WHERE gpu = %lld AND timestamp BETWEEN %lld AND %lld ORDER BY "
		"timestamp",
		(long long)g->index, (long long)g->first_ns, (long long)g->last_ns);
}

static int judge_gpu(const struct detector_input *s, int64_t index, struct incident_list *out)
{
	_cleanup_(throttle_done) struct gpu_throttle_spans g = {0};
	int r = throttle_find(s->rec, index, &g);
	struct incident *inc;

	if (r < 0 || !g.count || !g.bits)
		return r;
	inc = incident_begin(out, PROBLEM_THROTTLE);
	if (!inc)
		return 0;
	incident_id(inc, 0, g.throttle_spans[0].start_ns);
	inc->last.ns = g.throttle_spans[g.count - 1].end_ns;
	describe(&g, inc);
	snprintf(inc->explanation, sizeof(inc->explanation), "The GPU is sampled once a second.");
	inc->severity = SEVERITY_LOW;
	inc->confidence = 0.9;
	inc->completeness = s->completeness;
	incident_keep(out, inc);
	return 0;
}

int detect_throttle(const struct detector_input *s, struct incident_list *out)
{
	int64_t seen[GPUS_MAX];
	int count = 0, r = 0;

	for (size_t i = 0; i < s->rec->gpu_count && count < GPUS_MAX; i++) {
		int k = 0;

		while (k < count && seen[k] != s->rec->gpus[i].index)
			k++;
		if (k == count)
			seen[count++] = s->rec->gpus[i].index;
	}
	for (int i = 0; r == 0 && i < count; i++)
		r = judge_gpu(s, seen[i], out);
	return r;
}
