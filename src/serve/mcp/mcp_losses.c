/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_losses.c - get_losses: how complete the recording is, as /api/v1/losses has it, without what only
 * drawings need. */
#include "serve/mcp/mcp_tool.h"

#define UNSEEN_SHOWN 16

static json_t *losses_value(
	const struct question *q, const json_t *arguments, struct errinfo *reterr)
{
	static const char *const for_drawings[] = {"by_cpu", "live", "truncated", "recorded"};
	json_t *full = mcp_api(q, losses_json, reterr), *range = full ? mcp_range(q, reterr) : NULL;
	json_t *total = json_object_get(full, "total"), *unseen = json_object_get(full, "unseen");

	if (!range) {
		json_decref(full);
		return NULL;
	}
	if (json_is_number(json_object_get(total, "completeness")) &&
		json_is_true(json_object_get(full, "recorded")))
		json_object_set(full, "completeness", json_object_get(total, "completeness"));
	else
		json_object_set_new(full, "note",
			json_is_true(json_object_get(full, "recorded"))
				? json_incref(json_object_get(total, "unclean"))
				: json_string("losses of this recording are unknown (the published "
					      "agent did not count)"));
	for (size_t i = 0; i < ARRAY_SIZE(for_drawings); i++)
		json_object_del(full, for_drawings[i]);
	while (json_array_size(unseen) > UNSEEN_SHOWN)
		json_array_remove(unseen, UNSEEN_SHOWN);
	json_object_set_new(full, "range", range);
	return full;
}

MCP_ANSWERS(mcp_losses, losses_value)
