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
