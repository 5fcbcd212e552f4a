/* SPDX-License-Identifier: Apache-2.0 */
/* quota.h - how long a process's control group was kept from running by its CPU quota. */
#pragma once

#include "diagnose/recording.h"

struct quota_stop {
	uint64_t ns; /* 0: not at all, or not known */
	double cpus; /* that the group may use; 0: not known */
};

/* quota_group - the control group that @pid was in at @to_ns. Where no call of it says which that is, it is the one
 * that was read, if there is only one; 0: not known. */
uint64_t quota_group(const struct recording *rec, uint32_t pid, int64_t to_ns);

/* quota_find - in the time from @from_ns to @to_ns, of the group that @pid was in at its end. */
struct quota_stop quota_find(
	const struct recording *rec, uint32_t pid, int64_t from_ns, int64_t to_ns);
