/* SPDX-License-Identifier: Apache-2.0 */
/* step_work.h - whether steps take longer because they do more. */
#pragma once

#include "diagnose/units/step.h"

struct step_work { /* of a step, by the aggregates */
	double launches_before, launches_after;
	double bytes_before, bytes_after;
	bool is_more; /* it grew by at least half of what the steps did */
};

/* step_work_compare - what a step of @l does before and since @since_ns, where it takes @before_ns and
 * @after_ns. All 0 where five whole seconds of either are not there. */
struct step_work step_work_compare(const struct recording *rec, const struct step_list *l,
	int64_t since_ns, uint64_t before_ns, uint64_t after_ns);
