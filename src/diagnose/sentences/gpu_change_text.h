/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_change_text.h - sentences about why the GPU kept steps waiting longer. */
#pragma once

#include "diagnose/chains/gpu_change.h"
#include "base/buf.h"
#include "model/incident.h"

/* gpu_change_cause - the cause in a sentence, without a full stop. */
void gpu_change_cause(const struct step_account *a, const struct gpu_change *g, struct buf *b);

/* gpu_change_detail - what more is known, as whole sentences with a space behind each. */
void gpu_change_detail(const struct gpu_change *g, struct buf *b);

/* gpu_change_show - what follows from it, and the rows that show it, where they are others than those of steps. */
void gpu_change_show(
	const struct step_account *a, const struct gpu_change *g, struct incident *inc);
