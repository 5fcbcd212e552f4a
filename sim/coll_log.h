/* SPDX-License-Identifier: Apache-2.0 */
/* coll_log.h - with SIM_TALLY, a line for each collective, send and receive in "path.nccl", added
 * as soon as it is known, so that a process that hangs or is killed leaves what it got to.
 * README.md has the columns. */
#pragma once

#include "comm.h"

/* Times are of the machine's monotonic clock. */
void coll_log_done(const struct comm_call *call, uint64_t arrive_ns, uint64_t last_ns);
void coll_log_pending(const struct comm_call *call, uint64_t arrive_ns, uint64_t now_ns);
void coll_log_mismatch(const struct comm_call *call, int other_rank, const struct meet_call *other);
