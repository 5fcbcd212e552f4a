/* SPDX-License-Identifier: Apache-2.0 */
/* doing.h - what a thread spent given stretches of time on, by its account. */
#pragma once

#include "diagnose/recording.h"

struct window {
	int64_t start_ns, end_ns;
	uint32_t tid;
};

/* doing_describe - "its thread was waiting for a CPU used by hog (pid 7) for 81 % of that": the largest line of the
 * account of @windows (ascending, disjoint) of threads of @pid. 0 or -ENOMEM. */
int doing_describe(const struct recording *rec, uint32_t pid, const struct window *windows,
	size_t n, char *out, size_t size);
