/* SPDX-License-Identifier: Apache-2.0 */
/* fanout.c - see fanout.h. Runs on the thread of its loop.
 *
 * Each node is a leg: one call with the question, and beside it three calls for the time, one after
 * the other on a connection of their own. Answers are read as they come, so that at most the bodies
 * under way are held. The run ends when no call is under way; every call ends by the node's
 * deadline, so a dead node costs its timeout and nothing more.
 *
 * Many nodes are asked for the time only after their answer, on the connection that is there:
 * handshakes are most of the work then, and a second one for each node would double it. */
#include "fanout/fanout.h"

#include "fanout/fanout_private.h"
#include "json/writer.h"
#include "net/address.h"
#include "net/server/server.h"

#define TABLES_BYTES   (96u << 20) /* of the rows of all nodes together, */
#define TABLE_MIN      (2u << 20)  /* but a node may always have so many */
#define CLOCKS_AT_ONCE 32          /* nodes; more are asked for the time afterwards */
#define TIME_PATH      "/api/v1/time"

/* ---- the end of a run ---- */

static void run_free(struct fanout_run *run)
{
	for (size_t i = 0; run->legs && i < run->result.count; i++)
		fanout_rows_done(&run->legs[i].rows);
	free(run->legs);
	free(run->path);
	free(run->body);
	free(run->query);
	fanout_result_done(&run->result);
	free(run);
}
DEFINE_CLEANUP(struct fanout_run *, run_free)

static void unlink_run(struct fanout_run *run)
{
	struct fanout_run **p = &run->f->runs;

	while (*p != run)
		p = &(*p)->next;
	*p = run->next;
}

static void run_end(void *arg)
{
	struct fanout_run *run = arg;

	if (run->cancelled) {
		run_free(run);
		return;
	}
	unlink_run(run);
	fanout_result_finish(run);
	run->done(run->arg, &run->result);
	run_free(run);
}

static void call_over(struct fanout_run *run)
{
	if (--run->under_way == 0)
		run_end(run);
}

void fanout_cancel(struct fanout_run *run)
{
	unlink_run(run);
	for (size_t i = 0; i < run->result.count; i++) {
		if (run->legs[i].call)
			http_call_cancel(run->legs[i].call);
		if (run->legs[i].clock_call)
			http_call_cancel(run->legs[i].clock_call);
	}
	run->cancelled = true;
	if (!run->posted)
		run_free(run);
}

/* ---- one call ---- */

static uint64_t time_left(const struct fanout_leg *leg)
{
	mono_time now = mono_now();

	return leg->deadline.ns > now.ns ? leg->deadline.ns - now.ns : 0;
}

static int begin_call(struct fanout_leg *leg, const char *path, const char *body, size_t body_max,
	http_done *done, struct http_call **ret)
{
	struct fanout *f = leg->run->f;
	struct http_ask ask = {.endpoint = &f->nodes.items[leg->index].endpoint,
		.method = body ? "POST" : "GET",
		.path = path,
		.body = body,
		.body_len = body ? strlen(body) : 0,
		.timeout_ns = time_left(leg),
		.body_max = body_max};
	int r = ask.timeout_ns ? http_ask(f->client, &ask, done, leg, ret) : -ETIMEDOUT;

	if (r == 0)
		leg->run->under_way++;
	return r;
}

/* ---- the time ---- */

static void time_done(void *arg, const struct http_response *r, int err, const struct errinfo *e);

static int ask_time(struct fanout_leg *leg)
{
	return begin_call(leg, TIME_PATH, NULL, 4096, time_done, &leg->clock_call);
}

static void take_name(struct fanout_leg *leg, const struct http_response *r)
{
	const char *name = http_head_get(&r->head, "x-ingero-node");

	if (name && !leg->told[0])
		snprintf(leg->told, sizeof(leg->told), "%s", name);
}

static void time_done(void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	struct fanout_leg *leg = arg;
	struct fanout_clock_sample *s = &leg->samples[leg->sample_count];
	struct errinfo why = {0};
	struct clock_map map;
	int64_t remote;

	leg->clock_call = NULL;
	if (err == 0)
		err = fanout_reply_check(r, leg->run->f->with_token, &why);
	else
		why = *e;
	err = err ?: fanout_reply_time(r, &remote);
	if (err == 0) {
		clock_map_init(&map);
		*s = (struct fanout_clock_sample){.remote_ns = remote,
			.sent_ns = clock_map_wall(&map, (mono_time){r->sent_ns}).ns,
			.got_ns = clock_map_wall(&map, (mono_time){r->first_ns}).ns};
		take_name(leg, r);
		if (++leg->sample_count < FANOUT_CLOCK_SAMPLES)
			err = ask_time(leg);
	}
	if (err < 0)
		snprintf(leg->clock_why, sizeof(leg->clock_why), "%s",
			why.text[0] ? why.text : "it did not report its time");
	call_over(leg->run);
}

/* ---- the question ---- */

/* The client's sentences begin with the place, which is named beside them anyway. */
static const char *without_place(const char *text, const char *address)
{
	size_t len = strlen(address);

	if (strncmp(text, address, len) != 0)
		return text;
	text += len;
	text += *text == ':';
	return text + strspn(text, " ");
}

static void leg_failed(struct fanout_leg *leg, int err, const struct errinfo *e)
{
	struct fanout_answer *a = &leg->run->result.answers[leg->index];

	snprintf(a->why, sizeof(a->why), "%s",
		e->text[0] ? without_place(e->text, a->address) : strerror(-err));
}

static int take_json(struct fanout_answer *a, const struct http_response *r, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(FANOUT_ANSWER_MAX);
	int err = fanout_reply_copy(r, &b, reterr);

	if (err < 0)
		return err;
	if (b.len && b.data[b.len - 1] == '\n')
		b.data[--b.len] = 0;
	a->json = buf_take(&b);
	return a->json ? 0 : -ENOMEM;
}

static int take_answer(
	struct fanout_leg *leg, const struct http_response *r, struct errinfo *reterr)
{
	struct fanout_run *run = leg->run;
	struct fanout_answer *a = &run->result.answers[leg->index];
	size_t share = MAX(TABLES_BYTES / run->result.count, (size_t)TABLE_MIN);
	struct fanout_source who = {.address = a->address,
		.name = leg->told[0] ? leg->told : a->address,
		.index = leg->index};

	switch (run->kind) {
	case FANOUT_SQL:
		return fanout_table_read(
			r->body, r->body_len, run->limit, share, &leg->rows, reterr);
	case FANOUT_CHAINS:
	case FANOUT_INCIDENTS:
		return fanout_incident_read(
			r->body, r->body_len, &who, &run->result.incidents, &a->extent, reterr);
	case FANOUT_GET: return take_json(a, r, reterr);
	}
	return -EINVAL;
}

static int ask_question(struct fanout_leg *leg);

static void question_done(
	void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	struct fanout_leg *leg = arg;
	struct fanout_run *run = leg->run;
	struct errinfo why = {0};

	leg->call = NULL;
	if (err == 0) {
		struct fanout_answer *a = &run->result.answers[leg->index];

		a->status = r->status;
		free(a->hint);
		a->hint = r->status == 200 ? NULL : fanout_reply_hint(r);
		err = fanout_reply_check(r, run->f->with_token, &why);
	} else {
		why = *e;
	}
	if (err == 0) {
		take_name(leg, r);
		err = take_answer(leg, r, &why);
	}
	if (err == -ENOENT && r && run->kind == FANOUT_INCIDENTS && !leg->chains) {
		leg->chains = true; /* a published agent: it has its stored verdicts only */
		err = ask_question(leg);
		if (err == 0) {
			call_over(run);
			return;
		}
	}
	if (err < 0)
		leg_failed(leg, err, &why);
	else
		run->result.answers[leg->index].ok = true;
	if (err == 0 && run->clocks && run->clocks_after)
		ask_time(leg);
	call_over(run);
}

static int ask_question(struct fanout_leg *leg)
{
	_cleanup_buf_ struct buf path = BUF_INIT(1 << 16);
	struct fanout_run *run = leg->run;
	size_t share = FANOUT_ANSWERS_MAX / run->result.count;

	buf_puts(&path, leg->chains ? "/api/v1/chains" : run->path);
	if (run->query && run->query[0])
		buf_printf(&path, "?%s", run->query);
	if (path.err)
		return path.err;
	return begin_call(leg, buf_str(&path), run->body,
		MIN(MAX(share, (size_t)FANOUT_ANSWER_MIN), (size_t)FANOUT_ANSWER_MAX),
		question_done, &leg->call);
}

/* ---- asking ---- */

static char *make_body(const struct fanout_question *q, size_t limit, uint64_t timeout_ns)
{
	_cleanup_buf_ struct buf b = BUF_INIT(256 << 10);
	struct json_writer w = json_writer_to_buf(&b);

	json_begin_object(&w);
	JSON_PUT(&w, JSON_S("sql", q->sql), JSON_U("limit", limit));
	/* a little less than we wait, so that the node can still say that it was too slow */
	json_uint_member(&w, "timeout_ms", MAX(timeout_ns / NS_PER_MS * 9 / 10, UINT64_C(1)));
	json_end_object(&w);
	return json_finish(&w) < 0 ? NULL : buf_take(&b);
}

static const char *path_of(const struct fanout_question *q)
{
	switch (q->kind) {
	case FANOUT_SQL: return "/api/v1/query";
	case FANOUT_CHAINS: return "/api/v1/chains";
	case FANOUT_INCIDENTS: return "/api/v1/incidents";
	case FANOUT_GET: break;
	}
	return q->path;
}

static int run_new(struct fanout *f, const struct fanout_question *q, struct fanout_run **ret)
{
	_cleanup_(run_freep) struct fanout_run *run = calloc(1, sizeof(*run));
	size_t n = f->nodes.count;

	if (!run)
		return -ENOMEM;
	run->f = f;
	run->kind = q->kind;
	run->limit = MIN(q->limit ? q->limit : FANOUT_ROWS, (size_t)FANOUT_ROWS_MAX);
	run->apart = q->apart;
	run->clocks = !q->no_clocks;
	run->clocks_after = n > CLOCKS_AT_ONCE;
	run->path = strdup(path_of(q));
	run->query = strdup(q->query && q->kind != FANOUT_SQL ? q->query : "");
	if (q->kind == FANOUT_SQL)
		run->body = make_body(q, run->limit, f->timeout_ns);
	run->legs = calloc(n, sizeof(*run->legs));
	run->result.answers = calloc(n, sizeof(*run->result.answers));
	if (!run->path || !run->query || (q->kind == FANOUT_SQL && !run->body) || !run->legs ||
		!run->result.answers)
		return -ENOMEM;
	run->result.count = n;
	for (size_t i = 0; i < n; i++) {
		run->legs[i] = (struct fanout_leg){.run = run, .index = i};
		snprintf(run->result.answers[i].address, sizeof(run->result.answers[i].address),
			"%s", f->nodes.items[i].address);
	}
	*ret = TAKE(run);
	return 0;
}

static void run_start(struct fanout_run *run)
{
	uint64_t now = mono_now().ns;

	for (size_t i = 0; i < run->result.count; i++) {
		struct fanout_leg *leg = &run->legs[i];
		struct errinfo e = {0};
		int r;

		leg->deadline.ns = now + run->f->timeout_ns;
		r = ask_question(leg);
		if (r < 0)
			leg_failed(leg, r, &e);
		else if (run->clocks && !run->clocks_after && ask_time(leg) < 0)
			snprintf(leg->clock_why, sizeof(leg->clock_why), "it was not queried");
	}
}

int fanout_ask(struct fanout *f, const struct fanout_question *q, fanout_done *done, void *arg,
	struct fanout_run **ret_run, struct errinfo *reterr)
{
	struct fanout_run *run;
	int r;

	if (q->kind == FANOUT_SQL && (!q->sql || !q->sql[0]))
		return errinfo_set(reterr, -EINVAL, "no SQL for the nodes");
	if (q->kind == FANOUT_GET && (!q->path || q->path[0] != '/'))
		return errinfo_set(reterr, -EINVAL, "a path begins with '/'");
	r = run_new(f, q, &run);
	if (r < 0)
		return errinfo_set(
			reterr, r, "not enough memory to query %zu nodes", f->nodes.count);
	run->done = done;
	run->arg = arg;
	run->next = f->runs;
	f->runs = run;
	run_start(run);
	if (run->under_way == 0) { /* not one call could begin */
		r = loop_call(f->loop, run_end, run);
		if (r < 0) {
			fanout_cancel(run);
			return r;
		}
		run->posted = true;
	}
	if (ret_run)
		*ret_run = run;
	return 0;
}

struct wait {
	struct loop *loop;
	struct fanout_result *ret;
};

static void wait_done(void *arg, struct fanout_result *r)
{
	struct wait *w = arg;

	*w->ret = *r;
	*r = (struct fanout_result){0};
	loop_stop(w->loop);
}

int fanout_wait(struct fanout *f, const struct fanout_question *q, struct fanout_result *ret,
	struct errinfo *reterr)
{
	struct fanout_result result = {0};
	struct wait w = {f->loop, &result};
	struct fanout_run *run;
	int r = fanout_ask(f, q, wait_done, &w, &run, reterr);

	if (r < 0)
		return r;
	r = loop_run(f->loop);
	if (r < 0) {
		fanout_cancel(run);
		return errinfo_set(reterr, r, "cannot wait for the nodes: %s", strerror(-r));
	}
	*ret = result;
	return 0;
}

/* ---- life ---- */

static int copy_nodes(struct fanout *f, const struct fanout_settings *s, struct errinfo *reterr)
{
	if (!s->nodes || !s->nodes->count)
		return errinfo_set(reterr, -EINVAL, "no nodes to query");
	f->nodes.items = malloc(s->nodes->count * sizeof(*f->nodes.items));
	if (!f->nodes.items)
		return errinfo_set(reterr, -ENOMEM, "not enough memory for the nodes");
	memcpy(f->nodes.items, s->nodes->items, s->nodes->count * sizeof(*f->nodes.items));
	f->nodes.count = s->nodes->count;
	return 0;
}

/* Without TLS anybody on the way can read the token and change the answers. */
static int check_plain(
	const struct fanout *f, const struct fanout_settings *s, struct errinfo *reterr)
{
	for (size_t i = 0; i < f->nodes.count; i++) {
		const struct fanout_node *n = &f->nodes.items[i];

		if (!n->endpoint.tls && !s->allow_plain && !address_text_is_loopback(n->address))
			return errinfo_set(reterr, -EINVAL,
				"node %.200s is another machine, and plain HTTP to it is refused: "
				"use TLS, or if the network is trusted --fleet-require-tls=false",
				n->address);
	}
	return 0;
}

int fanout_new(struct loop *l, const struct fanout_settings *s, struct fanout **ret,
	struct errinfo *reterr)
{
	_cleanup_(fanout_freep) struct fanout *f = calloc(1, sizeof(*f));
	struct http_client_settings cs = {.bearer = s->bearer, .plain_ok = s->allow_plain};
	int r;

	if (!f)
		return errinfo_set(reterr, -ENOMEM, "not enough memory");
	f->loop = l;
	f->timeout_ns = s->timeout_ns ? s->timeout_ns : FANOUT_TIMEOUT_NS;
	f->skew_ns = s->skew_ns;
	f->with_token = s->bearer != NULL;
	r = copy_nodes(f, s, reterr);
	r = r ?: check_plain(f, s, reterr);
	if (r == 0 && EXISTS(i, f->nodes.count, f->nodes.items[i].endpoint.tls))
		r = tls_client_new(&s->tls, &f->tls, reterr);
	cs.tls = f->tls;
	r = r ?: http_client_new(l, &cs, &f->client, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(f);
	return 0;
}

struct tls *fanout_tls(const struct fanout *f)
{
	return f->tls;
}

void fanout_free(struct fanout *f)
{
	while (f->runs)
		fanout_cancel(f->runs);
	http_client_freep(&f->client);
	tls_freep(&f->tls);
	fanout_nodes_done(&f->nodes);
	free(f);
}
