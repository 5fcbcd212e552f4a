/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_fixture.c - a server with the tools, resources and prompts that the protocol's conformance
 * suite asks for, on the same src/mcp and net/server as `ingero mcp`: what is tested is the
 * protocol, not the tools. Prints its URL and ends when its standard input does. */
#include <stdio.h>
#include <string.h>

#include "serve/mcp/mcp_registry.h"
#include "mcp/http_transport.h"

#define NOTHING "{\"type\":\"object\",\"properties\":{}}"
/* One pixel, and silence: the shortest of their kinds. */
#define PNG                                                                                        \
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5"  \
	"ErkJggg=="
#define WAV "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

static json_t *embedded(const char *uri, const char *text)
{
	return json_pack("{s:s, s:{s:s, s:s, s:s}}", "type", "resource", "resource", "uri", uri,
		"mimeType", "text/plain", "text", text);
}

static json_t *media(const char *type, const char *mime, const char *data)
{
	return json_pack("{s:s, s:s, s:s}", "type", type, "data", data, "mimeType", mime);
}

static void simple_text(const struct call *c, const json_t *arguments, struct answer *a)
{
	answer_text(a, "This is a simple text response for testing.");
}

static void image(const struct call *c, const json_t *arguments, struct answer *a)
{
	json_array_append_new(a->content, media("image", "image/png", PNG));
}

static void audio(const struct call *c, const json_t *arguments, struct answer *a)
{
	json_array_append_new(a->content, media("audio", "audio/wav", WAV));
}

static void resource(const struct call *c, const json_t *arguments, struct answer *a)
{
	json_array_append_new(a->content,
		embedded("test://embedded-resource", "This is an embedded resource content."));
}

static void mixed(const struct call *c, const json_t *arguments, struct answer *a)
{
	answer_text(a, "Multiple content types test:");
	image(c, arguments, a);
	json_array_append_new(a->content,
		embedded("test://mixed-content-resource", "{\"test\":\"data\",\"value\":123}"));
}

static void failing(const struct call *c, const json_t *arguments, struct answer *a)
{
	answer_fail(a, "This tool intentionally returns an error for testing");
}

static void progress(const struct call *c, const json_t *arguments, struct answer *a)
{
	call_progress(c, 0, 100, NULL);
	call_progress(c, 50, 100, NULL);
	call_progress(c, 100, 100, NULL);
	answer_text(a, "done");
}

static void echo(const struct call *c, const json_t *arguments, struct answer *a)
{
	const json_t *message = json_object_get(arguments, "message");

	a->structured = json_pack("{s:O}", "message", (json_t *)message);
	answer_text(a, json_string_value(message));
}

static const struct registry_tool tools[] = {
	{.name = "test_simple_text", .description = "text", .input = NOTHING, .run = simple_text},
	{.name = "test_image_content", .description = "image", .input = NOTHING, .run = image},
	{.name = "test_audio_content", .description = "audio", .input = NOTHING, .run = audio},
	{.name = "test_embedded_resource",
		.description = "resource",
		.input = NOTHING,
		.run = resource},
	{.name = "test_multiple_content_types",
		.description = "mixed",
		.input = NOTHING,
		.run = mixed},
	{.name = "test_error_handling", .description = "fails", .input = NOTHING, .run = failing},
	{.name = "test_tool_with_progress",
		.description = "progress",
		.input = NOTHING,
		.run = progress},
	{.name = "test_logging_tool",
		.description = "logs nothing",
		.input = NOTHING,
		.run = simple_text},
	{.name = "test_streaming_elicitation",
		.description = "asks nothing",
		.input = NOTHING,
		.run = simple_text},
	{.name = "test_missing_capability",
		.description = "needs sampling",
		.input = NOTHING,
		.needs = "sampling",
		.run = simple_text},
	{.name = "json_schema_2020_12_tool",
		.description = "A tool with a schema that is handed on as it is",
		.input =
			"{\"$schema\":\"https://json-schema.org/draft/2020-12/"
			"schema\",\"type\":\"object\",\"$defs\":{\"address\":{\"$anchor\":"
			"\"addressDef\",\"type\":\"object\","
			"\"properties\":{\"street\":{\"type\":\"string\"},\"city\":{\"type\":"
			"\"string\"}}}},\"properties\":{\"name\":{\"type\":\"string\"},"
			"\"address\":{\"$ref\":\"#/$defs/address\"},\"contactMethod\":{\"type\":"
			"\"string\",\"enum\":[\"phone\",\"email\"]},\"phone\":{\"type\":\"string\"}"
			",\"email\":{\"type\":\"string\"}},\"allOf\":[{\"anyOf\":[{\"required\":["
			"\"phone\"]},{\"required\":[\"email\"]}]}],\"if\":{\"properties\":{"
			"\"contactMethod\":{\"const\":\"phone\"}},\"required\":[\"contactMethod\"]"
			"},\"then\":{\"required\":[\"phone\"]},\"else\":{\"required\":[\"email\"]},"
			"\"additionalProperties\":false}",
		.run = simple_text},
	{.name = "echo",
		.description = "gives back its argument",
		.input = "{\"type\":\"object\",\"properties\":{\"message\":{\"type\":\"string\"}},"
			 "\"required\":[\"message\"]}",
		.output = "{\"type\":\"object\",\"properties\":{\"message\":{\"type\":\"string\"}}"
			  ",\"required\":[\"message\"]}",
		.run = echo},
	{.name = NULL},
};

static int read_text(const struct call *c, const char *uri, const char *variable, json_t *contents,
	struct rpc_error *e)
{
	json_array_append_new(
		contents, json_pack("{s:s, s:s, s:s}", "uri", uri, "mimeType", "text/plain", "text",
				  "This is the content of the static text resource."));
	return 0;
}

static int read_binary(const struct call *c, const char *uri, const char *variable,
	json_t *contents, struct rpc_error *e)
{
	json_array_append_new(contents,
		json_pack("{s:s, s:s, s:s}", "uri", uri, "mimeType", "image/png", "blob", PNG));
	return 0;
}

static int read_template(const struct call *c, const char *uri, const char *variable,
	json_t *contents, struct rpc_error *e)
{
	json_array_append_new(contents,
		json_pack("{s:s, s:s, s:o}", "uri", uri, "mimeType", "application/json", "text",
			json_sprintf("{\"id\":\"%s\",\"templateTest\":true}", variable)));
	return 0;
}

static void complete(const struct call *c, const char *argument, const char *value, json_t *values)
{
	static const char *const words[] = {"test", "tested", "paris"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strncmp(words[i], value, strlen(value)))
			json_array_append_new(values, json_string(words[i]));
}

static const struct registry_resource resources[] = {
	{"test://static-text", "static-text", "Text", "text", "text/plain", read_text, NULL},
	{"test://static-binary", "static-binary", "Image", "image", "image/png", read_binary, NULL},
	{NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};

static const struct registry_resource templates[] = {
	{"test://template/{id}/data", "template", "Template", "by id", "application/json",
		read_template, complete},
	{NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};

static void say(json_t *messages, json_t *content)
{
	json_array_append_new(
		messages, json_pack("{s:s, s:o}", "role", "user", "content", content));
}

static json_t *text_block(const char *text)
{
	return json_pack("{s:s, s:s}", "type", "text", "text", text);
}

static void prompt_simple(const struct call *c, const json_t *arguments, json_t *messages)
{
	say(messages, text_block("This is a simple prompt for testing."));
}

static void prompt_arguments(const struct call *c, const json_t *arguments, json_t *messages)
{
	char text[256];

	snprintf(text, sizeof(text), "Prompt with arguments: arg1='%.64s', arg2='%.64s'",
		json_string_value(json_object_get(arguments, "arg1")),
		json_string_value(json_object_get(arguments, "arg2")));
	say(messages, text_block(text));
}

static void prompt_resource(const struct call *c, const json_t *arguments, json_t *messages)
{
	say(messages, embedded(json_string_value(json_object_get(arguments, "resourceUri")),
			      "Embedded resource content for testing."));
	say(messages, text_block("Please process the embedded resource above."));
}

static void prompt_image(const struct call *c, const json_t *arguments, json_t *messages)
{
	say(messages, media("image", "image/png", PNG));
	say(messages, text_block("Please analyze the image above."));
}

static const struct registry_argument two[] = {
	{"arg1", "first", true}, {"arg2", "second", true}, {NULL, NULL, false}};
static const struct registry_argument uri_argument[] = {
	{"resourceUri", "of the resource", true}, {NULL, NULL, false}};

static const struct registry_prompt prompts[] = {
	{"test_simple_prompt", "Simple", "simple", NULL, prompt_simple, NULL},
	{"test_prompt_with_arguments", "Arguments", "arguments", two, prompt_arguments, complete},
	{"test_prompt_with_embedded_resource", "Resource", "resource", uri_argument,
		prompt_resource, NULL},
	{"test_prompt_with_image", "Image", "image", NULL, prompt_image, NULL},
	{NULL, NULL, NULL, NULL, NULL, NULL},
};

static void stop(void *loop)
{
	loop_stop(loop);
}

int main(int argc, char **argv)
{
	static const struct http_route routes[] = {
		MCP_HTTP_ROUTES(mcp_http_handler), {.method = NULL}};
	struct registry registry = {.name = "mcp-fixture",
		.title = "Fixture",
		.version = "1.0",
		.tools = tools,
		.resources = resources,
		.templates = templates,
		.prompts = prompts,
		.page = argc > 1 ? 2 : 0};
	struct http_server_settings s = {.address = "127.0.0.1:0", .routes = routes};
	_cleanup_(loop_freep) struct loop *loop = NULL; /* the first here is the last to go */
	_cleanup_(dispatcher_freep) struct dispatcher *dispatcher = NULL;
	_cleanup_(mcp_http_freep) struct mcp_http *http = NULL;
	_cleanup_(http_server_freep) struct http_server *server = NULL;
	struct errinfo e = {0};
	int r = loop_new(&loop);

	if (r == 0)
		r = dispatcher_new(&registry, &dispatcher, &e);
	if (r == 0)
		r = mcp_http_new(dispatcher, loop, &http);
	s.arg = http;
	if (r == 0)
		r = http_server_new(loop, &s, &server, &e);
	if (r < 0) {
		fprintf(stderr, "mcp-fixture: %s\n", e.text);
		return 1;
	}
	printf("http://%s/mcp\n", http_server_address(server));
	fflush(stdout);
	loop_watch(loop, STDIN_FILENO, stop, loop);
	loop_signal(loop, 15, stop, loop);
	return loop_run(loop) < 0;
}
