/* SPDX-License-Identifier: Apache-2.0 */
/* dispatcher.c - the methods of the protocol, as a table. Schemas are parsed once and only read after
 * that; everything else lives as long as one request. */
#include "mcp/dispatcher.h"

#include "base/clock.h"
#include "json/tree.h"

#define META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define META_SERVER       "io.modelcontextprotocol/serverInfo"
#define LIST_TTL_MS       300000 /* tables do not change while the program runs */

struct dispatcher {
	const struct registry *registry;
	json_t **inputs; /* parsed, by the tool's index */
	size_t count;
};

struct turn { /* one request */
	const struct dispatcher *dispatcher;
	const struct registry *registry;
	struct call *call;
	const json_t *params; /* never NULL */
	const struct revision *agreed;
};

typedef json_t *method_fn(struct turn *t, struct rpc_error *e);

enum eras { ERA_HANDSHAKE = 1, ERA_STATELESS = 2, ERA_BOTH = 3 };

static int schema_load(const char *text, json_t **ret)
{
	return json_tree_read(text, strlen(text), 0, ret, NULL);
}

int dispatcher_new(const struct registry *o, struct dispatcher **ret, struct errinfo *reterr)
{
	_cleanup_(dispatcher_freep) struct dispatcher *t = calloc(1, sizeof(*t));
	size_t n = 0;

	while (o->tools && o->tools[n].name)
		n++;
	if (!t)
		return -ENOMEM;
	t->registry = o;
	t->inputs = calloc(n + 1, sizeof(*t->inputs));
	if (!t->inputs)
		return -ENOMEM;
	for (t->count = 0; t->count < n; t->count++) {
		const struct registry_tool *tool = &o->tools[t->count];
		_cleanup_json_ json_t *output = NULL;
		int r = tool->output ? schema_load(tool->output, &output) : 0;

		if (r == 0 && tool->input)
			r = schema_load(tool->input, &t->inputs[t->count]);
		else if (r == 0)
			t->inputs[t->count] =
				param_schema(tool->params, tool->takes, tool->requires, false);
		if (r == -EINVAL)
			return errinfo_set(reterr, r, "the schema of %s is not JSON", tool->name);
		if (!t->inputs[t->count])
			return -ENOMEM;
	}
	*ret = TAKE(t);
	return 0;
}

void dispatcher_free(struct dispatcher *t)
{
	for (size_t i = 0; t && t->inputs && i <= t->count; i++)
		json_decref(t->inputs[i]);
	free(t->inputs);
	free(t);
}

static const json_t *meta_of(const struct rpc_message *m)
{
	return json_object_get(m->params, "_meta");
}

const char *dispatcher_revision(const struct rpc_message *m)
{
	return json_string_value(json_object_get(meta_of(m), DISPATCHER_META_REVISION));
}

int dispatcher_no_revision(const char *asked, struct rpc_error *e)
{
	e->data = json_pack("{s:o, s:s}", "supported", revision_names(), "requested", asked);
	return rpc_fail(e, DISPATCHER_NO_REVISION, "unsupported protocol version");
}

int dispatcher_meta(const struct rpc_message *m, struct call *c, struct rpc_error *e)
{
	const json_t *meta = meta_of(m);
	const char *name = dispatcher_revision(m);

	c->capabilities = json_object_get(meta, META_CAPABILITIES);
	if (!json_is_object(meta) || !name)
		return rpc_fail(
			e, RPC_INVALID_PARAMS, "params._meta must hold " DISPATCHER_META_REVISION);
	c->revision = revision_find(name);
	if (!c->revision || !c->revision->stateless)
		return dispatcher_no_revision(name, e);
	if (!json_is_object(c->capabilities))
		return rpc_fail(e, RPC_INVALID_PARAMS, "params._meta must hold " META_CAPABILITIES);
	return 0;
}

/* ---- methods ---- */

static json_t *server_info(const struct registry *o)
{
	return json_pack(
		"{s:s, s:s, s:s}", "name", o->name, "title", o->title, "version", o->version);
}

static json_t *capabilities(const struct registry *o)
{
	json_t *c = json_object();
	bool completes = false;

	for (const struct registry_resource *r = o->templates; r && r->uri; r++)
		completes |= r->complete != NULL;
	for (const struct registry_prompt *p = o->prompts; p && p->name; p++)
		completes |= p->complete != NULL;
	if (o->tools)
		json_object_set_new(c, "tools", json_object());
	if (o->resources || o->templates)
		json_object_set_new(c, "resources", json_object());
	if (o->prompts)
		json_object_set_new(c, "prompts", json_object());
	if (completes)
		json_object_set_new(c, "completions", json_object());
	return c;
}

static json_t *do_initialize(struct turn *t, struct rpc_error *e)
{
	const char *asked = json_string_value(json_object_get(t->params, "protocolVersion"));

	if (!asked) {
		rpc_fail(e, RPC_INVALID_PARAMS, "initialize needs \"protocolVersion\"");
		return NULL;
	}
	t->agreed = revision_agree(asked);
	return json_pack("{s:s, s:o, s:o, s:s*}", "protocolVersion", t->agreed->name,
		"capabilities", capabilities(t->registry), "serverInfo", server_info(t->registry),
		"instructions", t->registry->instructions);
}

static json_t *do_discover(struct turn *t, struct rpc_error *e)
{
	return json_pack("{s:o, s:o, s:s*}", "supportedVersions", revision_names(), "capabilities",
		capabilities(t->registry), "instructions", t->registry->instructions);
}

static json_t *do_ping(struct turn *t, struct rpc_error *e)
{
	return json_object();
}

static json_t *cap_answer(const struct registry *o, struct answer *a, json_t *result)
{
	size_t max = o->answer_bytes ? o->answer_bytes : RPC_BYTES_MAX;
	size_t size = json_dumpb(result, NULL, 0, RPC_DUMP);

	if (size <= max)
		return result;
	json_decref(result);
	answer_fail(a, "the answer has %zu bytes, more than the limit of %zu. %s", size, max,
		o->too_large ? o->too_large : "Ask for less.");
	return json_pack("{s:O, s:b}", "content", a->content, "isError", true);
}

static json_t *do_call(struct turn *t, struct rpc_error *e)
{
	const char *name = json_string_value(json_object_get(t->params, "name"));
	const struct registry_tool *tool = registry_tool_find(t->registry, name);
	const json_t *given = json_object_get(t->params, "arguments");
	_cleanup_json_ json_t *arguments = given ? json_incref((json_t *)given) : json_object();
	_cleanup_buf_ struct buf why = BUF_INIT(SCHEMA_CHECK_SENTENCE);
	_cleanup_(answer_done) struct answer a = {0};
	json_t *result;

	if (!tool) {
		registry_tool_names(t->registry, &why);
		rpc_fail(e, RPC_INVALID_PARAMS, "unknown tool \"%.60s\"; there are %s",
			name ? name : "", buf_str(&why));
		return NULL;
	}
	if (tool->needs && t->call->revision->stateless &&
		!json_object_get(t->call->capabilities, tool->needs)) {
		e->data = json_pack("{s:{s:{}}}", "requiredCapabilities", tool->needs);
		rpc_fail(e, DISPATCHER_NO_CAPABILITY, "the client must support %s", tool->needs);
		return NULL;
	}
	if (answer_init(&a) < 0)
		return NULL;
	t->call->tool = tool;
	if (tool->params && json_is_object(arguments)) {
		json_t *named = param_arguments(tool->params, tool->takes, arguments);

		json_decref(arguments);
		arguments = named;
	}
	if (!arguments)
		return NULL;
	if (schema_check(t->dispatcher->inputs[tool - t->registry->tools], arguments, &why) < 0)
		answer_fail(&a, "%s.", buf_str(&why));
	else
		tool->run(t->call, arguments, &a);
	if (a.structured && !t->call->revision->structured)
		answer_structured_as_text(&a, t->registry->mark);
	result = json_pack("{s:O, s:b}", "content", a.content, "isError", a.failed);
	if (a.structured)
		json_object_set(result, "structuredContent", a.structured);
	return cap_answer(t->registry, &a, result);
}

#define LIST_METHOD(what)                                                                          \
	static json_t *do_list_##what(struct turn *t, struct rpc_error *e)                         \
	{                                                                                          \
		return registry_list_##what(t->registry, json_object_get(t->params, "cursor"), e); \
	}
LIST_METHOD(tools)
LIST_METHOD(resources)
LIST_METHOD(templates)
LIST_METHOD(prompts)

static json_t *do_read(struct turn *t, struct rpc_error *e)
{
	const char *uri = json_string_value(json_object_get(t->params, "uri"));
	_cleanup_json_ json_t *contents = json_array();
	char variable[REGISTRY_VALUE_MAX] = "";
	const struct registry_resource *row;
	int r;

	if (!uri) {
		rpc_fail(e, RPC_INVALID_PARAMS, "resources/read needs \"uri\"");
		return NULL;
	}
	row = registry_resource_find(t->registry, uri, variable);
	r = row ? row->read(t->call, uri, variable, contents, e) : -ENOENT;
	if (r == 0)
		return json_pack("{s:O}", "contents", contents);
	if (r == -ENOENT) {
		e->data = json_pack("{s:s}", "uri", uri);
		rpc_fail(e, t->call->revision->no_resource, "unknown resource");
	}
	return NULL;
}

/* Arguments of prompts are texts. */
static bool arguments_fit(
	const struct registry_prompt *p, const json_t *arguments, struct rpc_error *e)
{
	const json_t *one;
	const char *key;

	json_object_foreach ((json_t *)arguments, key, one)
		if (!json_is_string(one))
			return rpc_fail(e, RPC_INVALID_PARAMS, "\"%.60s\" must be a string", key) ==
			       0;
	for (const struct registry_argument *a = p->arguments; a && a->name; a++)
		if (a->required && !json_object_get(arguments, a->name))
			return rpc_fail(e, RPC_INVALID_PARAMS, "\"%s\" is required", a->name) == 0;
	return true;
}

static json_t *do_prompt(struct turn *t, struct rpc_error *e)
{
	const char *name = json_string_value(json_object_get(t->params, "name"));
	const json_t *arguments = json_object_get(t->params, "arguments");
	const struct registry_prompt *p = registry_prompt_find(t->registry, name);
	json_t *messages;

	if (!p) {
		rpc_fail(e, RPC_INVALID_PARAMS, "unknown prompt \"%.100s\"", name ? name : "");
		return NULL;
	}
	if (!arguments_fit(p, arguments, e))
		return NULL;
	messages = json_array();
	p->get(t->call, arguments, messages);
	return json_pack("{s:s, s:o}", "description", p->description, "messages", messages);
}

static registry_complete *completer(struct turn *t, const json_t *ref)
{
	const char *type = json_string_value(json_object_get(ref, "type"));
	const char *uri = json_string_value(json_object_get(ref, "uri"));
	const struct registry_prompt *p =
		registry_prompt_find(t->registry, json_string_value(json_object_get(ref, "name")));

	if (type && !strcmp(type, "ref/prompt"))
		return p ? p->complete : NULL;
	for (const struct registry_resource *r = t->registry->templates; r && uri && r->uri; r++)
		if (!strcmp(r->uri, uri))
			return r->complete;
	return NULL;
}

static json_t *do_complete(struct turn *t, struct rpc_error *e)
{
	const json_t *argument = json_object_get(t->params, "argument");
	const char *name = json_string_value(json_object_get(argument, "name"));
	const char *value = json_string_value(json_object_get(argument, "value"));
	registry_complete *complete = completer(t, json_object_get(t->params, "ref"));
	json_t *values = json_array();
	size_t total;

	if (complete && name && value)
		complete(t->call, name, value, values);
	total = json_array_size(values);
	while (json_array_size(values) > REGISTRY_VALUES)
		json_array_remove(values, json_array_size(values) - 1);
	return json_pack("{s:{s:o, s:I, s:b}}", "completion", "values", values, "total",
		(json_int_t)total, "hasMore", total > REGISTRY_VALUES);
}

static const struct method {
	const char *name;
	enum eras eras;
	bool cacheable; /* its result says for how long it holds */
	unsigned ttl_ms;
	method_fn *run;
} methods[] = {
	{"initialize", ERA_HANDSHAKE, false, 0, do_initialize},
	{"ping", ERA_HANDSHAKE, false, 0, do_ping},
	{"server/discover", ERA_STATELESS, true, LIST_TTL_MS, do_discover},
	{"tools/list", ERA_BOTH, true, LIST_TTL_MS, do_list_tools},
	{"tools/call", ERA_BOTH, false, 0, do_call},
	{"resources/list", ERA_BOTH, true, LIST_TTL_MS, do_list_resources},
	{"resources/templates/list", ERA_BOTH, true, LIST_TTL_MS, do_list_templates},
	{"resources/read", ERA_BOTH, true, 0, do_read},
	{"prompts/list", ERA_BOTH, true, LIST_TTL_MS, do_list_prompts},
	{"prompts/get", ERA_BOTH, false, 0, do_prompt},
	{"completion/complete", ERA_BOTH, false, 0, do_complete},
};

static const struct method *find_method(const char *name, const struct revision *r)
{
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (!strcmp(methods[i].name, name))
			return methods[i].eras & (r->stateless ? ERA_STATELESS : ERA_HANDSHAKE)
				       ? &methods[i]
				       : NULL;
	return NULL;
}

/* What every result of a stateless revision carries. */
static void adorn(const struct registry *o, const struct method *m, json_t *result)
{
	json_object_set_new(result, "resultType", json_string("complete"));
	json_object_set_new(result, "_meta", json_pack("{s:o}", META_SERVER, server_info(o)));
	if (!m->cacheable)
		return;
	json_object_set_new(result, "ttlMs", json_integer(m->ttl_ms));
	json_object_set_new(result, "cacheScope", json_string("private"));
}

json_t *dispatcher_answer(const struct dispatcher *t, const struct call *c,
	const struct rpc_message *m, const struct revision **ret_agreed, struct rpc_error *e)
{
	const struct method *method = find_method(m->method, c->revision);
	_cleanup_json_ json_t *none = json_object();
	struct call call = *c;
	struct turn turn = {.dispatcher = t,
		.registry = t->registry,
		.call = &call,
		.params = m->params ? m->params : none};
	mono_time begin = mono_now();
	json_t *result;

	if (!method) {
		rpc_fail(e, RPC_NO_METHOD, "unknown method \"%.100s\" in %s", m->method,
			c->revision->name);
		return NULL;
	}
	call.arg = call.arg ?: t->registry->arg;
	call.progress_token = json_object_get(meta_of(m), "progressToken");
	result = method->run(&turn, e);
	if (!result && !e->code)
		rpc_fail(e, RPC_INTERNAL, "not enough memory");
	if (t->registry->answered) {
		const char *name = json_string_value(json_object_get(m->params, "name"));
		const char *uri = json_string_value(json_object_get(m->params, "uri"));

		t->registry->answered(t->registry->arg, m->method, name ? name : uri,
			mono_now().ns - begin.ns,
			!result || json_is_true(json_object_get(result, "isError")));
	}
	if (result && c->revision->stateless)
		adorn(t->registry, method, result);
	if (ret_agreed && turn.agreed)
		*ret_agreed = turn.agreed;
	return result;
}
