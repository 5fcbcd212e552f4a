/* SPDX-License-Identifier: Apache-2.0 */
/* separate.h - whether lengths fall into two groups, by more than they vary anyway. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct separation {
	size_t low;   /* so many are in the group of the short ones; 0: there is one group only */
	bool is_sure; /* by the lengths alone; else only if the order of the long ones says so, too */
};

/* separate_find - how @sorted, ascending, is best cut in two. Logarithms are compared: twice as long is as far as
 * half as long. 0 or -ENOMEM. */
int separate_find(const uint64_t *sorted, size_t n, struct separation *ret);

/* Whether lengths in order of time have grown: at one moment, or little by little. */

struct trend {
	size_t since;  /* they are longer from this one on; SIZE_MAX: there is no such moment */
	bool is_drift; /* they became longer little by little */
	uint64_t from_ns, to_ns; /* of a drift: what they took at first and take at last */
};

/* trend_find - of @lengths, in order of time. @is_split: by their lengths alone they fall into two groups; then
 * only a moment after which nearly all are longer is a better border. 0 or -ENOMEM. */
int trend_find(const uint64_t *lengths, size_t n, bool is_split, struct trend *ret);
