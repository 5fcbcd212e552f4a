/* SPDX-License-Identifier: Apache-2.0 */
/* figure.c - see figure.h. Pure; the longest text any input can give fits FIGURE_MAX. */
#include "base/figure.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/macros.h"

static const char *long_duration(uint64_t ns, char out[FIGURE_MAX])
{
	uint64_t s = ns / NS_PER_S + (ns % NS_PER_S >= NS_PER_S / 2);

	if (s < 3600)
		snprintf(out, FIGURE_MAX, "%llum%02llus", (unsigned long long)(s / 60),
			(unsigned long long)(s % 60));
	else
		snprintf(out, FIGURE_MAX, "%lluh%02llum", (unsigned long long)(s / 3600),
			(unsigned long long)(s % 3600 / 60));
	return out;
}

const char *figure_duration(uint64_t ns, char out[FIGURE_MAX])
{
	static const struct {
		uint64_t unit;
		const char *name;
	} units[] = {{NS_PER_US, "us"}, {NS_PER_MS, "ms"}, {NS_PER_S, "s"}};

	if (ns == 0)
		return snprintf(out, FIGURE_MAX, "0"), out;
	if (ns < NS_PER_US)
		return snprintf(out, FIGURE_MAX, "%llu ns", (unsigned long long)ns), out;
	if (ns >= 60 * NS_PER_S - NS_PER_S / 2)
		return long_duration(ns, out);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		double v = (double)ns / (double)units[i].unit;

		if (v < 9.95)
			return snprintf(out, FIGURE_MAX, "%.1f %s", v, units[i].name), out;
		if (v < 999.5)
			return snprintf(out, FIGURE_MAX, "%.0f %s", v, units[i].name), out;
	}
	return long_duration(ns, out);
}

const char *figure_count(uint64_t n, char out[FIGURE_MAX])
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n), at = 0;

	for (int i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			out[at++] = ',';
		out[at++] = digits[i];
	}
	out[at] = 0;
	return out;
}

const char *figure_percent(double share, char out[FIGURE_MAX])
{
	double pct = share * 100;

	if (!(pct > 0))
		snprintf(out, FIGURE_MAX, "0 %%");
	else if (pct < 0.05)
		snprintf(out, FIGURE_MAX, "< 0.1 %%");
	else if (pct < 9.95)
		snprintf(out, FIGURE_MAX, "%.1f %%", pct);
	else
		snprintf(out, FIGURE_MAX, "%.0f %%", MIN(pct, 1e6));
	return out;
}

const char *figure_ratio(double ratio, char out[FIGURE_MAX])
{
	snprintf(out, FIGURE_MAX, ratio < 99.95 ? "%.1f" : "%.0f", MIN(ratio, 1e18));
	return out;
}
