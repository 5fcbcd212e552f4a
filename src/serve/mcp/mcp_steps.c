/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_steps.c - get_steps: where the time of steps went (answer/steps.h). The course over time
 * is for drawings and stays out; compact, an account says what a verdict needs. */
#include "serve/mcp/mcp_tool.h"

#include "answer/encode/steps_json.h"
#include "serve/mcp/mcp_tsc.h"
#include "mcp/rpc.h"

#define LIMIT        3
#define ANSWER_MAX   (4u << 20)
#define SHARE_SHOWN  0.01
#define LONGEST_PART 0.01 /* of a step: a line below it says nothing */

static void delete_members(json_t *object, const char *const keys[])
{
	for (; *keys; keys++)
		json_object_del(object, *keys);
}

static double real_of(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

/* Whether a line or an entry matters: it grew, or it is a part of the step. */
static bool is_told(const json_t *line, double step_us)
{
	double share = real_of(line, "share");

	return share >= SHARE_SHOWN || share <= -SHARE_SHOWN ||
	       real_of(line, "mean_us") >= LONGEST_PART * step_us;
}

static void trim_list(json_t *list, double step_us, const char *const keys[])
{
	json_t *one;
	size_t i;

	for (i = json_array_size(list); i-- > 0;)
		if (!is_told(json_array_get(list, i), step_us))
			json_array_remove(list, i);
	json_array_foreach (list, i, one)
		delete_members(one, keys);
}

static void trim_account(json_t *account)
{
	static const char *const of_account[] = {
		"node", "tid", "origin", "group", "first", "last", "slow_first", "slow_last", NULL};
	static const char *const of_line[] = {"line", "total_us", NULL};
	static const char *const of_entry[] = {"line", "stack_hash", NULL};
	double step_us = real_of(account, "mean_step_us");

	trim_list(json_object_get(account, "lines"), step_us, of_line);
	trim_list(json_object_get(account, "entries"), step_us, of_entry);
	delete_members(account, of_account);
}

static json_t *steps_tree(const struct steps_answer *a, size_t limit, enum steps_detail detail)
{
	_cleanup_buf_ struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer w = json_writer_to_buf(&b);
	json_t *tree, *one;
	size_t i;

	json_begin_object(&w);
	steps_put(&w, a, limit, detail);
	json_end_object(&w);
	tree = mcp_tree(&w);
	json_array_foreach (json_object_get(tree, "accounts"), i, one)
		json_object_del(one, "bars");
	return tree;
}

static json_t *steps_value(
	const struct question *q, const json_t *arguments, struct errinfo *reterr)
{
	_cleanup_(steps_answer_done) struct steps_answer a = {0};
	bool compact = mcp_arg_compact(arguments);
	int r = answer_steps(q, &a, reterr);
	json_t *full, *one, *range = r < 0 ? NULL : mcp_range(q, reterr);
	size_t i;

	if (!range)
		return NULL;
	full = steps_tree(&a, (size_t)mcp_arg_int(arguments, "limit", LIMIT),
		compact ? STEPS_FEW : STEPS_FULL);
	if (!full) {
		json_decref(range);
		return NULL;
	}
	json_array_foreach (json_object_get(full, "accounts"), i, one)
		if (compact)
			trim_account(one);
	json_object_set_new(full, "total", json_integer((json_int_t)a.count));
	json_object_set_new(full, "range", range);
	return full;
}

void mcp_steps(const struct call *c, const json_t *arguments, struct answer *a)
{
	struct errinfo e = {0};
	int r = mcp_turn_take(&e);

	if (r < 0) {
		mcp_reply_error(a, r, &e);
		return;
	}
	call_progress(c, 0, 1, "reading the recording");
	mcp_answer(c, arguments, steps_value, a);
	mcp_turn_give();
}
