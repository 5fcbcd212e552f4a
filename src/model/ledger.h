/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.h - what one thread spent its time on between two of its marks (wire/ledger.h). Rows of a
 * thread follow each other without a gap unless one was lost. */
#pragma once

#include <stdint.h>

#include "base/clock.h"
#include "model/event.h"
#include "wire/ledger.h"

struct ledger_row {
	wall_time start;
	uint64_t dur_ns;
	uint32_t pid, tid;
	uint64_t ns[LEDGER_LINES]; /* sum: dur_ns */
	uint64_t copy_bytes;
	uint32_t launches, waits, copies, allocs, stays;
	uint8_t mark;      /* enum wire_mark: what ended it */
	uint8_t waker;     /* enum wire_waker */
	uint8_t stay_line; /* enum wire_ledger_line */
	uint8_t launches_off;
	uint64_t stay_ns, stay_wait_ns; /* the stay that ended it, and its runnable last part */
	uint32_t waker_pid, waker_tid;
	uint64_t stack_hash;
	char waker_comm[COMM_LEN];
	char comm[COMM_LEN];
};

static inline int64_t ledger_end_ns(const struct ledger_row *r)
{
	return r->start.ns + (int64_t)r->dur_ns;
}
