/* SPDX-License-Identifier: Apache-2.0 */
/* figure.h - numbers as people read them, the same in every text and table.
 *
 * Each writes into the caller's array and returns it, so that a call can stand inside a printf. */
#pragma once

#include <stdint.h>

#define FIGURE_MAX 32

/* figure_duration - "850 ns", "5.2 us", "142 ms", "7.5 s", "3m20s", "2h05m": one decimal below
 * ten, none above; rounded before the unit is chosen, so never "1000 us". */
const char *figure_duration(uint64_t ns, char out[FIGURE_MAX]);

/* figure_count - "10,234". */
const char *figure_count(uint64_t n, char out[FIGURE_MAX]);

/* figure_percent - a share 0..1 as "71 %", "3.2 %", "0 %"; "< 0.1 %" for a trace of it. */
const char *figure_percent(double share, char out[FIGURE_MAX]);

/* figure_ratio - "8.5" below 100, "340" above. */
const char *figure_ratio(double ratio, char out[FIGURE_MAX]);
