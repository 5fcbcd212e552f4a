/* SPDX-License-Identifier: Apache-2.0 */
/* view_json.h - what the live table shows, as one line of JSON for `trace --json`. */
#pragma once

#include "record/trace/tracer.h"
#include "json/writer.h"

/* view_json - {"source":"ingero","op":"table",…}: the host, every operation with count and
 * quantiles, what is traced, the store's size and its last failure, steps of the clock. */
void view_json(struct json_writer *w, const struct tracer_view *v, const char *node, bool final);
