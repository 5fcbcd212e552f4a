/* SPDX-License-Identifier: Apache-2.0 */
/* call_added.h - calls that a process makes only since its steps are slow. */
#pragma once

#include "diagnose/recording.h"
#include "model/step_account.h"

struct call_added {
	uint16_t source, op;       /* 0: none */
	double in_step;            /* in a slow step, at least */
	uint64_t stack_hash;       /* where most of its rows are from; 0: not known */
	bool is_on_default_stream; /* while the steps wait for other streams */
};

/* call_added_find - the call that lasting slow steps make most often and ordinary ones do not, by rows and aggregates,
 * which count all calls: fills, copies, events that a stream waits for. Kernels (kernel_change.h) and waits are not
 * among them. */
void call_added_find(
	const struct recording *rec, const struct step_account *a, struct call_added *ret);
