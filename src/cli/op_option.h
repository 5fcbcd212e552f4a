/* SPDX-License-Identifier: Apache-2.0 */
/* op_option.h - what --op means: cudaMalloc, cuda:cudaMalloc. */
#pragma once

#include "base/errinfo.h"
#include "wire/names.h"

/* op_option_find - the operation that @text names, without regard to case; a source may stand
 * before it (driver:cuMemAlloc). NULL @text: *ret_op is NULL. -EINVAL with examples. */
int op_option_find(const char *text, const struct wire_op_row **ret_op, struct errinfo *reterr);
