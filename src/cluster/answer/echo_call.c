/* SPDX-License-Identifier: Apache-2.0 */
/* echo_call.c - a question on its way: who asks is looked up on the loop, a thread of a lane runs it, the loop
 * replies.
 *
 * Invariants:
 *  1. An exchange is touched on the loop's thread alone; its request's strings stay until the reply.
 *  2. What a call may see is a copy made when it was let in.
 *  3. finish() touches nothing of the server, which may be gone by then. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cluster/answer/echo_private.h"
#include "cluster/answer/tool_private.h"
#include "json/tree.h"
#include "mcp/rpc.h"

#define STOPPING_AFTER "5" /* seconds: another instance is there by then */
#define REFUSED_CODE   "tenant_scoped_bearer_refused"

/* ---- who asks ---- */

static void tenant_done(struct tenant *t)
{
	for (size_t i = 0; t->clusters && i < t->cluster_count; i++)
		free((char *)t->clusters[i]);
	free((void *)t->clusters);
	free((char *)t->name);
	*t = (struct tenant){0};
}

static int tenant_copy(const struct tenant *from, struct tenant *to)
{
	size_t n = from->cluster_count;
	const char **clusters =
		from->clusters ? calloc(MAX(n, (size_t)1), sizeof(*clusters)) : NULL;

	*to = (struct tenant){.name = strdup(from->name ? from->name : ""),
		.credential = from->credential,
		.clusters = clusters,
		.cluster_count = n,
		.verbs = from->verbs,
		.expires_ns = from->expires_ns};
	if (!to->name || (from->clusters && !clusters))
		return -ENOMEM;
	for (size_t i = 0; from->clusters && i < n; i++) {
		clusters[i] = strdup(from->clusters[i]);
		if (!clusters[i])
			return -ENOMEM;
	}
	return 0;
}

static void refuse(struct echo_server *e, struct http_exchange *x, const struct http_request *q,
	int status, const char *code, const char *message)
{
	echo_audit(e, &(struct audit_entry){.wall_ns = wall_now().ns,
			      .key_name = "",
			      .credential = q->credential,
			      .peer = q->peer,
			      .action = "denied",
			      .text = q->path,
			      .status = status});
	echo_reply_error(x, status, code, "%s", message);
}

static bool is_in_time(struct echo_server *e, struct http_exchange *x, const struct http_request *q)
{
	uint64_t wait_ns = 0;
	char seconds[TEXT_MAX];

	if (tenants_take(e->settings.tenants, q->credential, mono_now().ns, &wait_ns))
		return true;
	e->limited++;
	snprintf(seconds, sizeof(seconds), "%llu",
		(unsigned long long)((wait_ns + NS_PER_S - 1) / NS_PER_S));
	http_reply_field(x, "retry-after", wait_ns ? seconds : "1");
	refuse(e, x, q, 429, "rate_limited", "this token asks too often: wait as Retry-After says");
	return false;
}

bool echo_admit(struct echo_server *e, unsigned verb, struct http_exchange *x,
	const struct http_request *q, const struct tenant **ret)
{
	const struct tenant *t = NULL;

	if (e->is_stopping) {
		http_reply_field(x, "retry-after", STOPPING_AFTER);
		echo_reply_error(x, 503, "stopping", "the service is stopping: ask again");
		return false;
	}
	if (e->settings.tenants) {
		t = tenants_find(e->settings.tenants, q->credential, wall_now().ns);
		if (!t || (t->verbs & verb) != verb) {
			e->denied++;
			refuse(e, x, q, 403, REFUSED_CODE,
				!t ? "this token is not in use any more"
				   : "this token may not do that: whoami lists what it may do");
			return false;
		}
		if (!is_in_time(e, x, q))
			return false;
	}
	*ret = t;
	return true;
}

/* ---- on its way ---- */

static void call_free(struct echo_call *c)
{
	tenant_done(&c->tenant);
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
			"the answer does not fit: ask for less, by limit or since");
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
	int r;

	if (!echo_admit(e, verb, x, q, &t))
		return;
	c = calloc(1, sizeof(*c));
	r = c ? 0 : -ENOMEM;
	if (r == 0) {
		*c = (struct echo_call){.server = e,
			.x = x,
			.q = q,
			.tool = tool,
			.is_scoped = t,
			.run = run,
			.status = 200,
			.out = BUF_INIT(ECHO_REPLY_MAX)};
		c->queued = (struct pool_job){.fn = work, .arg = c, .asker = q->asker};
		r = t ? tenant_copy(t, &c->tenant) : 0;
	}
	if (r == 0)
		r = pool_push(e->lanes[lane], &c->queued);
	if (r == 0)
		return;
	if (c)
		call_free(c);
	http_reply_field(x, "retry-after", "1");
	echo_reply_error(x, 503, "busy", "too many questions are waiting: ask again in a moment");
}

/* ---- tools ---- */

void echo_audit(struct echo_server *e, const struct audit_entry *entry)
{
	if (!e->settings.audit)
		return;
	pthread_mutex_lock(&e->lock);
	(void)audit_write(e->settings.audit, entry);
	pthread_mutex_unlock(&e->lock);
}

static void record(struct echo_call *c, struct echo_tool *tool, const json_t *arguments, int r,
	uint64_t ns, size_t bytes)
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
			      .key_name = c->is_scoped ? c->tenant.name : "",
			      .credential = c->q->credential,
			      .peer = c->q->peer,
			      .action = action,
			      .text = text,
			      .status = r < 0 ? echo_failure_of(r).status : 200,
			      .bytes = bytes,
			      .ns = ns});
}

int echo_call_ask(struct echo_call *c, struct echo_tool *tool, const json_t *arguments,
	json_t **ret, struct buf *ret_text, struct errinfo *reterr)
{
	struct tool_call call = {.store = c->server->settings.store,
		.tenant = c->is_scoped ? &c->tenant : NULL,
		.now_ns = wall_now().ns,
		.arguments = arguments};
	mono_time before = mono_now();
	int r;

	if (c->is_scoped && (c->tenant.verbs & tool->tool->verb) != tool->tool->verb)
		r = errinfo_set(reterr, -EACCES, "this token may not use %s", tool->tool->name);
	else
		r = tool->tool->run(&call, ret, ret_text, reterr);
	record(c, tool, arguments, r, mono_now().ns - before.ns, ret_text->len);
	return r;
}
