/* SPDX-License-Identifier: Apache-2.0 */
/* ledger_columns.h - the columns of table `ledger`: CREATE, INSERT, SELECT and the merge derive from
 * these lists and from WIRE_LEDGER_LINES. Order: node, timestamp, duration, comm, the
 * numbers, the lines, stay_line, waker_comm, stack_hash. */
#pragma once

#include "model/ledger.h"

/* X(field of struct ledger_row and column, largest value) */
#define LEDGER_NUMBERS(X)                                                                          \
	X(pid, UINT32_MAX)                                                                         \
	X(tid, UINT32_MAX)                                                                         \
	X(mark, UINT8_MAX)                                                                         \
	X(launches, UINT32_MAX)                                                                    \
	X(waits, UINT32_MAX)                                                                       \
	X(copies, UINT32_MAX)                                                                      \
	X(allocs, UINT32_MAX)                                                                      \
	X(stays, UINT32_MAX)                                                                       \
	X(copy_bytes, INT64_MAX)                                                                   \
	X(launches_off, 1)                                                                         \
	X(stay_ns, INT64_MAX)                                                                      \
	X(stay_wait_ns, INT64_MAX)                                                                 \
	X(waker, UINT8_MAX)                                                                        \
	X(waker_pid, UINT32_MAX)                                                                   \
	X(waker_tid, UINT32_MAX)
