/* SPDX-License-Identifier: Apache-2.0 */
/* diff_json.h - what is different between two times, as /api/v1/diff says it. */
#pragma once

#include "answer/diff/diff.h"

/* diff_put - members of an open object; @limit operations. */
void diff_put(struct json_writer *w, const struct diff_answer *a, size_t limit);
#define DIFF_LIMIT     50
#define DIFF_LIMIT_MAX 1000
