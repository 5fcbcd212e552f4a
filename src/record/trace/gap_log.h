/* SPDX-License-Identifier: Apache-2.0 */
/* gap_log.h - which gaps in what is seen of processes have been reported: a mapping is found by the
 * kernel's record and by scans, and one gap is reported once. The latest GAP_LOG_MAX are known. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/accounting.h"

#define GAP_LOG_MAX 256

struct gap_log_entry {
	uint32_t pid;
	uint64_t start_ticks, file; /* the file's name as a hash */
};

struct gap_log {                                   /* zero: empty */
	struct gap_log_entry entries[GAP_LOG_MAX]; /* a ring */
	size_t count;                              /* ever entered */
};

/* gap_log_add - false: @g has been reported. *ret_is_new_process: no other gap of its process has; set
 * in both cases. */
bool gap_log_add(struct gap_log *l, const struct call_gap *g, bool *ret_is_new_process);
