/* SPDX-License-Identifier: Apache-2.0 */
/* comm_recovery.h - communicators that were made before the trace: their ranks brought together.
 *
 * Such a communicator's hash is not known and each rank counts its collectives from when the probes
 * came, so a call may be number 7 on one rank and 8 on another. On one node the ranks 0 … n-1 of
 * one size are taken for one communicator if each is one process and has one numbering. How the
 * numberings lie to each other is told by the waits: who comes d earlier to a collective waits d
 * longer for it. A shift that does not fit clearly better than all others leaves the whole
 * communicator out. */
#pragma once

#include "diagnose/compose/correlate.h"

/* comm_recovery_run - rows of such communicators as copies with a hash and numbers that their ranks share;
 * *ret is the caller's (free()), NULL if there are none. 0 or -ENOMEM. */
int comm_recovery_run(const struct recording *rec, struct collective_row **ret, size_t *ret_count);
