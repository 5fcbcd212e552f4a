/* SPDX-License-Identifier: Apache-2.0 */
/* detect_labels.c - numbers that the training script tells by annotations: loss, amp_scale,
 * grad_norm. Without annotations nothing is said.
 *
 * A series is the values of one key of one process, in order of time; a key counts by its name or
 * its last part ("train.loss", "train_loss"). At most 64 series are looked at.
 *   loss-spike: a value above the median of the 16 before it by 8 median deviations and by half of
 *   it; LOW, as the catalogue says. 16 values are needed before the first judgement.
 *   amp-instability: loss or gradient that is not a number (MEDIUM; HIGH from 3 in a row), or a
 *   loss scale that was lowered at least 4 times and in a quarter of all values (MEDIUM; HIGH when
 *   it ends below 1). Lowering it a few times at the start is how the scaler finds its level.
 * Confidence 0.9: the numbers are the script's own; what caused them is not seen. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/findings/detector.h"
#include "base/text.h"
#include "stat/robust.h"

#define SERIES_MAX  64
#define BEFORE      16
#define SPIKE_MADS  8
#define SPIKE_SHARE 0.5
#define SCALED      1e6 /* values are compared as whole millionths */
#define VALUE_MAX   1e12
#define SCALE_DROPS 4
#define SCALE_PART  4
#define NANS_HIGH   3

enum role { ROLE_NONE, ROLE_LOSS, ROLE_SCALE, ROLE_GRADIENT };

struct series {
	const char *key;
	uint32_t pid;
	enum role role;
	double window[BEFORE];
	size_t values;
	double last;
	uint64_t spikes, nans, run, longest, drops;
	const struct annotation_label *worst, *first_nan, *first_drop, *last_drop, *newest;
	double worst_ratio, worst_median;
};

static bool ends_with(const char *key, const char *name)
{
	size_t k = strlen(key), n = strlen(name);

	if (k < n || strcmp(key + k - n, name))
		return false;
	return k == n || key[k - n - 1] == '.' || key[k - n - 1] == '_' || key[k - n - 1] == '-';
}

/* Keys are checked when they come in; those of foreign files go into SQL text too. */
static bool is_plain(const char *key)
{
	return strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") ==
	       strlen(key);
}

static enum role role_of(const char *key)
{
	if (!is_plain(key))
		return ROLE_NONE;
	if (ends_with(key, "loss"))
		return ROLE_LOSS;
	if (ends_with(key, "amp_scale") || ends_with(key, "loss_scale"))
		return ROLE_SCALE;
	return ends_with(key, "grad_norm") ? ROLE_GRADIENT : ROLE_NONE;
}

static struct series *series_of(struct series *list, int *count, const struct annotation_label *l)
{
	enum role role = role_of(l->key);
	int k = 0;

	if (role == ROLE_NONE)
		return NULL;
	while (k < *count && (list[k].pid != l->pid || strcmp(list[k].key, l->key)))
		k++;
	if (k == SERIES_MAX)
		return NULL;
	if (k == *count)
		list[(*count)++] = (struct series){.key = l->key, .pid = l->pid, .role = role};
	return &list[k];
}

static bool read_number(const char *text, double *ret)
{
	char *end;

	*ret = strtod(text, &end);
	return end != text && !*end;
}

static void judge_spike(struct series *s, const struct annotation_label *l, double value)
{
	uint64_t sorted[BEFORE], median, mad;
	double m;

	if (s->values < BEFORE)
		return;
	for (int i = 0; i < BEFORE; i++)
		sorted[i] = (uint64_t)(s->window[i] * SCALED);
	median = robust_median_of(sorted, BEFORE);
	mad = robust_mad(sorted, BEFORE);
	m = (double)median / SCALED;
	if (m <= 0 || value < m * (1 + SPIKE_SHARE) ||
		value < m + SPIKE_MADS * (double)mad / SCALED)
		return;
	s->spikes++;
	if (value / m > s->worst_ratio) {
		s->worst_ratio = value / m;
		s->worst_median = m;
		s->worst = l;
	}
}

static void series_read(struct series *s, const struct annotation_label *l)
{
	double value;

	if (!read_number(l->value, &value))
		return;
	s->newest = l;
	if (!isfinite(value)) {
		if (s->nans++ == 0)
			s->first_nan = l;
		s->longest = MAX(s->longest, ++s->run);
		return;
	}
	s->run = 0;
	if (s->role == ROLE_SCALE && s->values && value < s->last) {
		if (s->drops++ == 0)
			s->first_drop = l;
		s->last_drop = l;
	}
	if (s->role == ROLE_LOSS && value >= 0 && value <= VALUE_MAX) {
		judge_spike(s, l, value);
		s->window[s->values % BEFORE] = value;
	}
	s->last = value;
	s->values++;
}

static struct incident *begin(const struct series *s, enum problem problem, enum severity severity,
	const struct annotation_label *at, uint64_t count, const char *unit,
	struct incident_list *out)
{
	struct incident *inc = incident_begin(out, problem);

	incident_id(inc, s->pid, at->time_ns);
	snprintf(inc->id, sizeof(inc->id), "%s-%.24s-%u-%lld", problem_row(problem)->id, s->key,
		s->pid, (long long)at->time_ns);
	inc->last.ns = s->newest->time_ns;
	incident_weigh(inc, severity, 0.9, count, unit);
	incident_step(inc, at->time_ns, 0, "LABEL", "annotation", "%s=%.100s", s->key, at->value);
	incident_sql(inc,
		"SELECT timestamp, pid, json_extract(labels, '$.\"%s\"') AS value FROM annotations "
		"WHERE value IS NOT NULL ORDER BY timestamp",
		s->key);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"From the values that the program sent as annotations; tensors are not inspected.");
	return inc;
}

static void report_spikes(const struct series *s, struct incident_list *out)
{
	struct incident *inc;

	if (!s->spikes)
		return;
	inc = begin(s, PROBLEM_LOSS_SPIKE, SEVERITY_LOW, s->worst, s->spikes, "spikes", out);
	snprintf(inc->summary, sizeof(inc->summary),
		"%s rose to %.60s, %.1f times the median of the 16 values before (%.4g); %llu such "
		"values of %zu",
		s->key, s->worst->value, s->worst_ratio, s->worst_median,
		(unsigned long long)s->spikes, s->values);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"loss spike: the cause is in the data or the optimiser, which are not traced");
	incident_keep(out, inc);
}

static void report_unstable(const struct series *s, struct incident_list *out)
{
	bool drops = s->drops >= SCALE_DROPS && s->drops * SCALE_PART >= s->values;
	struct incident *inc;
	char n[TEXT_PLURAL_MAX];

	if (s->nans) {
		inc = begin(s, PROBLEM_AMP,
			s->longest >= NANS_HIGH ? SEVERITY_HIGH : SEVERITY_MEDIUM, s->first_nan,
			s->nans, "values that are not numbers", out);
		snprintf(inc->summary, sizeof(inc->summary),
			"%s is %.60s: %llu of %s %s not numbers, %llu in a row", s->key,
			s->first_nan->value, (unsigned long long)s->nans,
			text_format_plural(n, s->values + s->nans, "values"),
			s->nans == 1 ? "is" : "are", (unsigned long long)s->longest);
		snprintf(inc->root_cause, sizeof(inc->root_cause),
			"numeric overflow or NaN, usually in half precision");
		incident_keep(out, inc);
	}
	if (!drops)
		return;
	inc = begin(s, PROBLEM_AMP, s->last < 1 ? SEVERITY_HIGH : SEVERITY_MEDIUM, s->first_drop,
		s->drops, "reductions", out);
	snprintf(inc->summary, sizeof(inc->summary), "%s was lowered %s in %zu values, to %.60s",
		s->key, text_format_plural(n, s->drops, "times"), s->values, s->last_drop->value);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"unstable mixed precision: gradients overflow at every loss scale");
	incident_keep(out, inc);
}

int detect_labels(const struct detector_input *s, struct incident_list *out)
{
	_cleanup_free_ struct series *list = calloc(SERIES_MAX, sizeof(*list));
	int count = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < s->rec->label_count; i++) {
		const struct annotation_label *l = &s->rec->labels[i];
		struct series *one = series_of(list, &count, l);

		if (one)
			series_read(one, l);
	}
	for (int i = 0; i < count; i++) {
		report_spikes(&list[i], out);
		report_unstable(&list[i], out);
	}
	return 0;
}
