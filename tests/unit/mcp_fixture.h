/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_fixture.h - a small offer to talk to: one tool of each kind, a resource, a template, a
 * prompt. */
#pragma once

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/dispatcher.h"

static void fixture_echo(const struct call *c, const json_t *arguments, struct answer *a)
{
	const json_t *n = json_object_get(arguments, "n");

	call_progress(c, 1, 2, "half");
	a->structured = json_pack("{s:I}", "n", json_integer_value(n));
	answer_text(a, "echo");
}

static void fixture_large(const struct call *c, const json_t *arguments, struct answer *a)
{
	_cleanup_free_ char *text = calloc(1, 5001);

	memset(text, 'x', 5000);
	answer_text(a, text);
}

static int fixture_read(const struct call *c, const char *uri, const char *variable,
	json_t *contents, struct rpc_error *e)
{
	if (!strcmp(variable, "gone"))
		return -ENOENT;
	json_array_append_new(contents, json_pack("{s:s, s:s}", "uri", uri, "text", variable));
	return 0;
}

static void fixture_complete(
	const struct call *c, const char *argument, const char *value, json_t *values)
{
	for (int i = 0; i < 120; i++)
		json_array_append_new(values, json_sprintf("%s%d", value, i));
}

static void fixture_prompt(const struct call *c, const json_t *arguments, json_t *messages)
{
	json_array_append_new(
		messages, json_pack("{s:s, s:{s:s, s:O}}", "role", "user", "content", "type",
				  "text", "text", json_object_get(arguments, "who")));
}

static const struct registry_tool fixture_tools[] = {
	{.name = "echo",
		.description = "echo",
		.input = "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
			 "\"n\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":9}},"
			 "\"required\":[\"n\"]}",
		.output = "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}",
		.annotations = "{\"readOnlyHint\":true}",
		.run = fixture_echo},
	{.name = "large",
		.description = "large",
		.input = "{\"type\":\"object\"}",
		.run = fixture_large},
	{.name = "asks",
		.description = "needs sampling",
		.input = "{\"type\":\"object\"}",
		.needs = "sampling",
		.run = fixture_large},
	{.name = NULL},
};

static const struct registry_resource fixture_resources[] = {
	{"test://one", "one", "One", "one", "text/plain", fixture_read, NULL},
	{NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};

static const struct registry_resource fixture_templates[] = {
	{"test://x/{id}/y", "x", "X", "x", "text/plain", fixture_read, fixture_complete},
	{NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};

static const struct registry_argument fixture_arguments[] = {
	{"who", "whom to greet", true}, {NULL, NULL, false}};

static const struct registry_prompt fixture_prompts[] = {
	{"greet", "Greet", "greets", fixture_arguments, fixture_prompt, NULL},
	{NULL, NULL, NULL, NULL, NULL, NULL},
};

static const struct registry fixture_offer = {.name = "fixture",
	.title = "Fixture",
	.version = "1",
	.instructions = "none",
	.tools = fixture_tools,
	.resources = fixture_resources,
	.templates = fixture_templates,
	.prompts = fixture_prompts,
	.page = 2,
	.answer_bytes = 4096,
	.too_large = "Ask for less."};

static inline struct dispatcher *fixture_talk(void)
{
	struct dispatcher *t = NULL;

	return dispatcher_new(&fixture_offer, &t, NULL) == 0 ? t : NULL;
}
