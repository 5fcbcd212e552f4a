/* SPDX-License-Identifier: Apache-2.0 */
/* diff_private.h - the parts of the comparison. */
#pragma once

#include "answer/diff/diff_side.h"

int diff_compare_steps(const struct diff_side sides[2], struct diff_answer *ret);
int diff_compare_stacks(const struct diff_side sides[2], struct diff_answer *ret);

/* diff_compare_promises - after the steps are compared. */
void diff_compare_promises(const struct diff_side sides[2], struct diff_answer *ret);
