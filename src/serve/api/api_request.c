/* SPDX-License-Identifier: Apache-2.0 */
/* api_request.c - the parameters of a request. An unknown one is an error that names those that there
 * are: `sinc=5m` must not be answered as if nothing had been asked. */

#include "serve/serve_private.h"
#include "base/text.h"

#define VALUE_MAX  512
#define NAME_SHOWN 64

const struct param api_params[] = {
	{API_TIME, "since", NULL, PARAM_TEXT, 0, 64, NULL,
		"only the last 90s, 5m, 1h30m, 2d; all: everything", false},
	{API_TIME, "from", NULL, PARAM_TEXT, 0, 127, NULL,
		"start of the time range: RFC 3339, a time of day, or epoch", true},
	{API_TIME, "to", NULL, PARAM_TEXT, 0, 127, NULL, "end of the time range", true},
	{API_PID, "pid", "pids", PARAM_INTEGERS, 1, 4194304, NULL, "only this process", false},
	{API_PID, "rank", NULL, PARAM_INTEGER, 0, INT32_MAX, NULL, "only this rank of the job",
		false},
	{API_NODE, "node", NULL, PARAM_TEXT, 0, 255, NULL, "only this node of a merged file", true},
	{API_OP, "source", NULL, PARAM_TEXT, 0, 0, "cuda driver nccl cuda_graph host io tcp net",
		"only this library", true},
	{API_OP, "op", NULL, PARAM_TEXT, 0, 64, NULL, "only this operation: cudaMemcpyAsync",
		false},
	{API_LIMIT, "limit", "top_n", PARAM_INTEGER, -1, 10000, NULL, "maximum number of rows",
		false},
	{API_POINTS, "points", NULL, PARAM_INTEGER, 1, 10000, NULL,
		"maximum number of points in time", true},
	{API_NODES, "nodes", NULL, PARAM_INTEGER, 1, 10000, NULL,
		"maximum number of nodes of the tree", true},
	{API_STACKS, "stacks", NULL, PARAM_FLAG, 0, 0, NULL,
		"include the call stacks of slow calls", true},
	{API_TRACKS, "width", NULL, PARAM_INTEGER, 16, 4096, NULL,
		"width of the drawing in pixels: 16 to 4096", true},
	{API_TRACKS, "offset", NULL, PARAM_INTEGER, 0, UINT32_MAX, NULL,
		"skip this many tracks at the beginning", true},
	{API_TRACKS, "kinds", NULL, PARAM_TEXT, 0, 127, NULL,
		"only these: process, rank, thread, stream, host, gpu", true},
	{API_REF, "ref", NULL, PARAM_TEXT, 0, 127, NULL, "ref of the event, from /api/v1/timeline",
		true},
	{API_TEXT, "q", NULL, PARAM_TEXT, 0, 127, NULL, "text to search for", true},
	{API_TIME2, "from2", NULL, PARAM_TEXT, 0, 127, NULL,
		"start of the time range to compare with", true},
	{API_TIME2, "to2", NULL, PARAM_TEXT, 0, 127, NULL, "end of the time range to compare with",
		true},
	{API_ID, "id", NULL, PARAM_TEXT, 1, 127, NULL, "only the incident with this id", false},
	{API_SQL, "sql", "query", PARAM_TEXT, 1, 65536, NULL, "SELECT …", false},
	{API_ACTION, "action", NULL, PARAM_TEXT, 0, 0, "chains ops overview sql", "what to ask",
		false},
	{API_SCENARIO, "scenario", NULL, PARAM_TEXT, 0, 0,
		"incident cold-start memcpy-bottleneck periodic-spike cpu-contention gpu-steal",
		"which problem", false},
	{API_FULL, "full", NULL, PARAM_FLAG, 0, 0, NULL, "all details", false},
	{API_FULL | API_ANY, "tsc", NULL, PARAM_FLAG, 0, 0, NULL, "false: all details", true},
	{.name = NULL},
};

/* How the value of a parameter gets into the request: by a function of its own, or as the text or number at @offset. */
typedef int parser(const char *value, struct answer_request *w, struct errinfo *reterr);
struct setter {
	parser *set;                /* NULL, or it returned 1: the member below */
	uint16_t offset, text_size; /* text_size 0: a number, a size_t */
	uint32_t low, high;
};
#define BY(set_)                                                                                   \
	{                                                                                          \
		.set = (set_)                                                                      \
	}
#define TEXT(member, ...)                                                                          \
	{                                                                                          \
		__VA_ARGS__.offset = offsetof(struct answer_request, member),                      \
		.text_size = sizeof(((struct answer_request *)0)->member)                          \
	}
#define NUMBER(member, low_, high_)                                                                \
	{                                                                                          \
		.offset = offsetof(struct answer_request, member), .low = (low_), .high = (high_)  \
	}

static int set_since(const char *v, struct answer_request *w, struct errinfo *reterr)
{
	if (!strcmp(v, "all")) {
		w->all = true;
		return 0;
	}
	if (text_parse_duration(v, &w->since_ns) < 0)
		return errinfo_set(
			reterr, -EINVAL, "since: not a duration: give 90s, 5m, 1h30m, 2d, or all");
	w->all = w->since_ns == 0; /* as the published agent took it */
	return 0;
}

/* A number of @low to @high that ends at @v's end or at a comma; what comes after it. */
static const char *take_number(const char *v, uint64_t low, uint64_t high, uint64_t *ret)
{
	char *end;

	if (*v < '0' || *v > '9')
		return NULL;
	errno = 0;
	*ret = strtoull(v, &end, 10);
	if (errno || *ret < low || *ret > high || (*end && *end != ','))
		return NULL;
	return *end ? end + 1 : end;
}

static int set_pid(const char *v, struct answer_request *w, struct errinfo *reterr)
{
	while (*v) {
		uint64_t pid;

		v = take_number(v, 1, UINT32_MAX, &pid);
		if (!v)
			return errinfo_set(
				reterr, -EINVAL, "pid: must be numbers, separated by commas");
		if (w->pid_count == ANSWER_PIDS_MAX)
			return errinfo_set(
				reterr, -EINVAL, "pid: no more than %d", ANSWER_PIDS_MAX);
		w->pids[w->pid_count++] = (uint32_t)pid;
	}
	return 0;
}

static int set_rank(const char *v, struct answer_request *w, struct errinfo *reterr)
{
	uint64_t n;
	const char *end = take_number(v, 0, INT32_MAX, &n);

	if (!end || *end)
		return errinfo_set(reterr, -EINVAL, "rank: must be a number, 0 or more");
	w->has_rank = true;
	w->rank = (int32_t)n;
	return 0;
}

static int set_source(const char *v, struct answer_request *w, struct errinfo *reterr)
{
	for (const struct wire_source_row *s = wire_sources; s->json; s++)
		if (!strcmp(s->json, v)) {
			if (w->op && w->source != s->id)
				return errinfo_set(reterr, -EINVAL,
					"source: the op belongs to another source");
			w->source = s->id;
			return 0;
		}
	return errinfo_set(reterr, -EINVAL,
		"source: choose cuda, driver, cuda_graph, nccl, host, io, tcp or net");
}

static int set_op(const char *v, struct answer_request *w, struct errinfo *reterr)
{
	const struct wire_op_row *row = wire_op_by_name(v);

	if (!row)
		return errinfo_set(reterr, -EINVAL,
			"op: unknown; use for example cudaLaunchKernel, cudaStreamSync or ncclAllReduce");
	if (w->source && w->source != row->source)
		return errinfo_set(reterr, -EINVAL, "op: belongs to another source");
	w->source = row->source;
	w->op = row->op;
	return 0;
}

static int set_stacks(const char *v, struct answer_request *w, struct errinfo *reterr)
{
	w->stacks = !strcmp(v, "1") || !strcmp(v, "true");
	if (!w->stacks && strcmp(v, "0") != 0 && strcmp(v, "false") != 0)
		return errinfo_set(reterr, -EINVAL, "stacks: must be 1 or 0");
	return 0;
}

static int check_kinds(const char *v, struct answer_request *w, struct errinfo *reterr)
{
	static const char *const known[] = {"process", "rank", "thread", "stream", "host", "gpu"};

	for (const char *p = v; *p;) {
		size_t len = strcspn(p, ","), i = 0;

		while (i < ARRAY_SIZE(known) &&
			(strlen(known[i]) != len || strncmp(known[i], p, len) != 0))
			i++;
		if (i == ARRAY_SIZE(known))
			return errinfo_set(reterr, -EINVAL,
				"kinds: choose from process, rank, thread, stream, host and gpu, "
				"separated by commas");
		p += len + (p[len] == ',');
	}
	return 1;
}

static int set_full(const char *v, struct answer_request *w, struct errinfo *reterr)
{
	(void)reterr;
	w->brief = strcmp(v, "1") != 0;
	return 0;
}

/* As published: whether names are short, which they never are any more. */
static int set_tsc(const char *v, struct answer_request *w, struct errinfo *reterr)
{
	(void)reterr;
	w->brief = strcmp(v, "1") == 0;
	return 0;
}

/* What a tool reads itself. */
static int set_nothing(const char *v, struct answer_request *w, struct errinfo *reterr)
{
	(void)v;
	(void)w;
	(void)reterr;
	return 0;
}

/* In the order of api_params. */
static const struct setter setters[] = {BY(set_since), TEXT(from), TEXT(to), BY(set_pid),
	BY(set_rank), TEXT(node), BY(set_source), BY(set_op), NUMBER(limit, 1, UINT32_MAX),
	NUMBER(points, 1, UINT32_MAX), NUMBER(points, 1, UINT32_MAX), BY(set_stacks),
	NUMBER(points, 16, 4096), NUMBER(offset, 0, UINT32_MAX), TEXT(kinds, .set = check_kinds, ),
	TEXT(text), TEXT(text), TEXT(from2), TEXT(to2), TEXT(text), BY(set_nothing),
	BY(set_nothing), BY(set_nothing), BY(set_full), BY(set_tsc)};
STATIC_ASSERT(ARRAY_SIZE(setters) + 1 == ARRAY_SIZE(api_params));

/* The value of parameter number @i. */
static int set_param(size_t i, const char *v, struct answer_request *w, struct errinfo *reterr)
{
	const struct setter *s = &setters[i];
	const char *name = api_params[i].name, *end;
	char *member = (char *)w + s->offset;
	int r = s->set ? s->set(v, w, reterr) : 1;
	uint64_t n;

	if (r <= 0)
		return r;
	if (s->text_size) {
		if (strlen(v) >= s->text_size)
			return errinfo_set(reterr, -EINVAL, "%s: longer than %d bytes", name,
				s->text_size - 1);
		memcpy(member, v, strlen(v) + 1);
		return 0;
	}
	end = take_number(v, s->low, s->high, &n);
	if (end && !*end) {
		*(size_t *)(void *)member = n;
		return 0;
	}
	if (s->high == UINT32_MAX)
		return errinfo_set(
			reterr, -EINVAL, "%s: must be a number, %u or more", name, s->low);
	return errinfo_set(
		reterr, -EINVAL, "%s: must be a number from %u to %u", name, s->low, s->high);
}

/* One "name=value" of @len bytes. */
static int set_one(const struct api_row *row, const char *pair, size_t len,
	struct answer_request *w, struct errinfo *reterr)
{
	char text[VALUE_MAX * 3 + 32], value[VALUE_MAX];
	bool found = false;
	_cleanup_buf_ struct buf b = BUF_INIT(400), name = BUF_INIT(400);

	if (len >= sizeof(text))
		return errinfo_set(
			reterr, -EINVAL, "a parameter is longer than %d bytes", VALUE_MAX);
	memcpy(text, pair, len);
	text[len] = 0;
	for (size_t i = 0; api_params[i].name; i++) {
		int r;

		if (!(row->params & api_params[i].bit))
			continue;
		r = http_query_get(text, api_params[i].name, value, sizeof(value), &found);
		if (r < 0)
			return errinfo_set(
				reterr, -EINVAL, "%s: malformed or too long", api_params[i].name);
		if (found)
			return set_param(i, value, w, reterr);
	}
	text_escape_terminal_len(&name, text, MIN(strcspn(text, "="), (size_t)NAME_SHOWN));

	for (const struct param *p = api_params; p->name; p++)
		if (row->params & p->bit)
			buf_printf(&b, "%s%s", b.len ? ", " : "", p->name);
	return errinfo_set(reterr, -EINVAL, "%s: unknown parameter '%s'; valid: %s", row->path,
		buf_str(&name), b.len ? buf_str(&b) : "none");
}

int api_request(const struct api_row *row, const char *query, struct answer_request *ret,
	struct errinfo *reterr)
{
	struct answer_request w = {.until_now = true};
	int r = 0;

	while (r == 0 && *query) {
		size_t len = strcspn(query, "&");

		if (len)
			r = set_one(row, query, len, &w, reterr);
		query += len + (query[len] == '&');
	}
	if (r == 0)
		*ret = w;
	return r;
}

/* A value as a URL's query has it. False: no such form. */
static bool write_value(const json_t *v, struct buf *b)
{
	const json_t *one;
	size_t i;

	if (json_is_string(v))
		buf_puts(b, json_string_value(v));
	else if (json_is_boolean(v))
		buf_puts(b, json_is_true(v) ? "1" : "0");
	else if (json_is_number(v))
		buf_printf(b, "%lld", (long long)json_number_value(v));
	else if (!json_is_array(v))
		return false;
	json_array_foreach (v, i, one)
		buf_printf(b, "%s%lld", i ? "," : "", (long long)json_number_value(one));
	return !b->err;
}

unsigned api_tool_takes(const struct api_row *row)
{
	return row->params | row->more | (row->answer && !row->needs ? API_FULL : API_ANY);
}

int api_request_json(const struct api_row *row, const json_t *arguments, struct answer_request *ret,
	struct errinfo *reterr)
{
	unsigned takes = api_tool_takes(row);
	struct answer_request w = {.brief = !json_object_get(arguments, "id")};
	int r = 0;

	for (size_t i = 0; r == 0 && api_params[i].name; i++) {
		const json_t *v = json_object_get(arguments, api_params[i].name);
		_cleanup_buf_ struct buf text = BUF_INIT(VALUE_MAX);

		if (!v || !(takes & api_params[i].bit) || setters[i].set == set_nothing)
			continue;
		if (!strcmp(api_params[i].name, "limit") && json_number_value(v) < 0)
			w.limit = UINT32_MAX; /* top_n -1: all, as published */
		else if (!write_value(v, &text))
			r = errinfo_set(reterr, -EINVAL, "%s: too long", api_params[i].name);
		else
			r = set_param(i, buf_str(&text), &w, reterr);
	}
	if (r == 0)
		*ret = w;
	return r;
}
