/* SPDX-License-Identifier: Apache-2.0 */
/* echo_call.c - a question on its way: who asks is looked up on the loop, a thread of a lane runs it, the loop
 * replies.
 *
 * Invariants:
 *  1. An exchange is touched on the loop's thread alone; its request's strings stay until the reply.
 *  2. What a call may see is what its token said when it was let in, also if tokens change meanwhile.
 *  3. finish() touches nothing of the server, which may be gone by then. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cluster/answer/echo_private.h"
#include "cluster/answer/tool_private.h"
#include "mcp/rpc.h"

#define REFUSALS_BURST   1000
#define REFUSALS_EACH_NS (100 * NS_PER_MS)
#define STOPPING_AFTER   "5" /* seconds: another instance is there by then */

/* ---- who asks ---- */

static void refuse(struct echo_server *e, struct http_exchange *x, const struct http_request *q,
	const struct tenant_refusal *no)
{
	const struct tenant *t = tenants_find(e->settings.tenants, q->credential, wall_now().ns);
	char seconds[TEXT_MAX];

	e->denied += no->status == 403;
	e->limited += no->status == 429;
	echo_audit_refusal(e, q, t ? t->name : "", no->status, &e->denials);
	snprintf(seconds, sizeof(seconds), "%u", no->retry_s);
	if (no->retry_s)
		http_reply_field(x, "retry-after", seconds);
	echo_reply_error(x, no->status, no->code, "%s", no->text);
}

bool echo_admit(struct echo_server *e, unsigned verb, struct http_exchange *x,
	const struct http_request *q, const struct tenant **ret)
{
	struct tenant_refusal no;

	if (e->is_stopping) {
		http_reply_field(x, "retry-after", STOPPING_AFTER);
		echo_reply_error(x, 503, "stopping", "the service is shutting down: retry");
		return false;
	}
	*ret = tenants_admit(
		e->settings.tenants, q->credential, verb, mono_now().ns, wall_now().ns, &no);
	if (!*ret)
		refuse(e, x, q, &no);
	return *ret;
}

/* ---- on its way ---- */

static void call_free(struct echo_call *c)
{
	buf_done(&c->out);
	free(c);
}

/* On the loop. */
static void finish(void *arg)
{
	struct echo_call *c = arg;

	if (c->allow)
		http_reply_field(c->x, "allow", c->allow);
	if (c->again)
		http_reply_field(c->x, "retry-after", "1");
	if (c->out.err)
		echo_reply_error(c->x, 500, "too_large",
			"the reply is too large: use a smaller limit or a shorter since");
	else
		http_reply(c->x, c->status, c->type, buf_str(&c->out), c->out.len);
	call_free(c);
}

/* On a thread. */
static bool work(void *arg, bool brief _unused_)
{
	struct echo_call *c = arg;
	struct loop *l = c->server->loop;

	c->run(c);
	loop_post(l, &c->task, finish, c);
	return true;
}

void echo_call_start(struct echo_server *e, enum echo_lane lane, unsigned verb,
	struct echo_tool *tool, echo_fn *run, struct http_exchange *x, const struct http_request *q)
{
	const struct tenant *t = NULL;
	struct echo_call *c;

	if (!echo_admit(e, verb, x, q, &t))
		return;
	c = calloc(1, sizeof(*c));
	if (c) {
		*c = (struct echo_call){.server = e,
			.x = x,
			.q = q,
			.tool = tool,
			.tenant = t,
			.run = run,
			.came = mono_now(),
			.status = 200,
			.out = BUF_INIT(ECHO_REPLY_MAX)};
		c->queued = (struct pool_job){.fn = work, .arg = c, .asker = q->asker};
	}
	if (c && pool_push(e->lanes[lane], &c->queued) == 0)
		return;
	if (c)
		call_free(c);
	http_reply_field(x, "retry-after", "1");
	echo_reply_error(x, 503, "busy", "too many queries are queued: retry in a moment");
}

/* ---- tools ---- */

/* A line of the audit, if there is one; any thread. */
static void echo_audit(struct echo_server *e, const struct audit_entry *entry)
{
	if (e->settings.audit)
		(void)audit_write(e->settings.audit, entry);
}

void echo_audit_refusal(struct echo_server *e, const struct http_request *q, const char *key_name,
	int status, struct rate *rate)
{
	if (rate_take(rate, mono_now().ns, REFUSALS_BURST, REFUSALS_EACH_NS))
		echo_audit(e, &(struct audit_entry){.wall_ns = wall_now().ns,
				      .key_name = key_name,
				      .credential = q->credential,
				      .peer = q->peer ? q->peer : "",
				      .action = "denied",
				      .text = q->path,
				      .status = status});
}

static void record(struct echo_call *c, struct echo_tool *tool, const json_t *arguments, int r,
	uint64_t ns, size_t rows, size_t bytes)
{
	_cleanup_free_ char *text = json_dumps(arguments, RPC_DUMP);
	struct echo_server *e = c->server;
	char action[128];

	pthread_mutex_lock(&e->lock);
	tool->calls++;
	tool->failed += r < 0;
	sketch_add(&tool->took, ns, 1);
	pthread_mutex_unlock(&e->lock);
	snprintf(action, sizeof(action), "tool %s", tool->tool->name);
	echo_audit(e, &(struct audit_entry){.wall_ns = wall_now().ns,
			      .key_name = c->tenant->name,
			      .credential = c->q->credential,
			      .peer = c->q->peer,
			      .action = action,
			      .text = text,
			      .status = r < 0 ? echo_failure_of(r).status : 200,
			      .rows = rows,
			      .bytes = bytes,
			      .ns = ns});
}

/* What went wrong inside may name files and clusters: it is for the log. */
static void hide_reason(const char *tool, int r, struct errinfo *e)
{
	log_error("%s failed: %s", tool, e->text[0] ? e->text : strerror(-r));
	errinfo_set(e, r, "the query failed: see the service's log");
}

int echo_call_ask(struct echo_call *c, struct echo_tool *tool, const json_t *arguments,
	json_t **ret, struct buf *ret_text, struct errinfo *reterr)
{
	struct store_missing missing = {0};
	struct tool_call call = {.store = c->server->settings.store,
		.tenant = c->tenant,
		.now_ns = wall_now().ns,
		.arguments = arguments,
		.came = c->came,
		.missing = &missing};
	mono_time before = mono_now();
	int r;

	if (!(c->tenant->verbs & tool->tool->verb))
		r = errinfo_set(reterr, -EACCES, "this token may not use %s", tool->tool->name);
	else
		r = tool_run(tool->tool, &call, ret, ret_text, reterr);
	if (r == 0)
		tool_put_missing(*ret, &missing, ret_text);
	else if (echo_failure_of(r).status == 500)
		hide_reason(tool->tool->name, r, reterr);
	record(c, tool, arguments, r, mono_now().ns - before.ns,
		r < 0 ? 0 : json_array_size(json_object_get(*ret, "rows")), ret_text->len);
	return r;
}
