/* SPDX-License-Identifier: Apache-2.0 */
/* schema_check.h - does a value have the shape that a JSON Schema describes?
 *
 * The keywords that our schemas use: type (also a list of them), enum, minimum, maximum, minLength,
 * maxLength, maxItems, items, properties, required, additionalProperties: false. Others say nothing
 * here. Schemas are our own, so there is nothing to guard against in them. */
#pragma once

#include <jansson.h>

#include "base/buf.h"

#define SCHEMA_CHECK_SENTENCE 512

/* schema_check - 0; else -EINVAL, and @why gets one sentence that names the place ("limit", or
 * "pids[2]"), what is wanted there and what was given. */
int schema_check(const json_t *schema, const json_t *value, struct buf *why);
