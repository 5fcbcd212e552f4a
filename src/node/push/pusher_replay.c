/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_replay.c - `fleet-push --replay` and, below, `--check`: a finished recording, sent at a bounded speed: its collectives as they were, with the times
 * they had, then its incidents. What was delivered is noted as ever, so that a replay that was broken off goes
 * on where it was. */
#include "base/log.h"
#include "base/text.h"
#include "net/client/client.h"
#include "node/push/pusher_private.h"

#define LOOK_NS      (50 * NS_PER_MS)
#define FAILURES_MAX 5 /* in a row: half a minute */

static void end(struct pusher *p, int err, const char *why)
{
	p->result = err;
	p->stopping = true;
	if (err < 0)
		errinfo_set_exit(&p->why, EXIT_FAILED, err, "%s", why);
	else
		(void)pusher_resume_note(p, NULL);
	loop_stop(p->loop);
}

/* The calls that come next: 1, or 0: there are none. */
static int read_next(struct pusher *p, struct errinfo *reterr)
{
	struct pusher_recording *r = &p->recording;
	int res = pusher_recording_calls(r, (wall_time){0}, reterr);

	if (res < 0)
		return res;
	p->replay_due_ns = mono_now().ns + r->calls.count * NS_PER_S / p->settings->replay_rate;
	return r->calls.count || r->calls.lost;
}

void pusher_replay_step(struct pusher *p)
{
	struct errinfo e = {0};
	int r = 1;

	loop_timer_set(p->look, LOOK_NS);
	if (p->batch.failures >= FAILURES_MAX || p->chain_failures >= FAILURES_MAX) {
		end(p, -EIO, p->complaint);
		return;
	}
	if (!p->batch.body.len && mono_now().ns >= p->replay_due_ns)
		r = read_next(p, &e);
	else if (!p->batch.body.len)
		return;
	if (r < 0) {
		p->result = r;
		p->why = e;
		loop_stop(p->loop);
	} else if (r > 0) {
		pusher_send_calls(p);
	} else if (!p->chains.sent_count) {
		pusher_chain_step(p);
		if (!p->chains.sent_count && !p->chain_failures)
			end(p, 0, "");
	}
}

void pusher_replay_say(const struct pusher *p)
{
	const struct pusher_counts *c = &p->pushed;

	if (!c->collectives && !c->lost && !c->incidents && p->mark.has_note)
		log_info(
			"everything in %s was already delivered to %s, according to %s: --mark '' sends it again",
			p->settings->db, p->settings->endpoint.shown, p->settings->mark);
	else
		log_info("sent %s to %s: %s, %s%s", p->settings->db, p->settings->endpoint.shown,
			TEXT_PLURAL(c->collectives, "collectives"),
			TEXT_PLURAL(c->incidents, "incidents"),
			c->lost ? "; some collectives were skipped because they cannot be matched"
				: "");
}

/* Where an earlier run of the agent was, and what it was sending: pusher_mark.c. */

#define PATIENCE_NS (PUSHER_FLUSH_NS + 2 * NS_PER_S) /* until the one before has ended */

static void take(struct pusher *p, const struct pusher_note *n, struct buf *batch)
{
	p->batch.stream = n->stream;
	p->batch.number = n->number;
	p->batch.count = n->count;
	p->batch.end = n->at;
	p->batch.refused = n->lost;
	p->recording.calls.lost += n->lost;
	p->chains.from_ns = n->chain_ns ? n->chain_ns : p->chains.from_ns;
	pusher_recording_resume(&p->recording, &n->at);
	if (batch->len)
		buf_append(&p->batch.body, batch->data, batch->len);
	log_info("continuing after the last run, which had sent %s of collectives%s",
		TEXT_PLURAL(n->number, "requests"), batch->len ? "; the last is sent again" : "");
}

int pusher_resume(struct pusher *p, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf batch = BUF_INIT(PUSHER_MARK_SLOT);
	struct errinfo e = {0};
	struct pusher_note n;
	int r;

	if (p->mark_is_settled)
		return 0;
	if (p->settings->replay) { /* from the first row on, with every incident */
		pusher_recording_resume(&p->recording, &(struct pusher_position){.row_ns = 1});
		p->chains.from_ns = 1;
		p->recording.is_alone = true;
	}
	p->batch.stream = (uint64_t)wall_now().ns;
	if (!p->settings->mark || p->settings->stub) {
		p->mark.fd = -1;
		p->mark_is_settled = true;
		return 0;
	}
	r = pusher_mark_open(&p->mark, p->settings->mark, PATIENCE_NS, &n, &batch, &e);
	if (r == -ENOENT) /* its folder, which is the recording's: it is not there yet */
		return 0;
	p->mark_is_settled = true;
	if (r == -EBUSY)
		return errinfo_set_exit(reterr, EXIT_TRY_AGAIN, r, "%s", e.text);
	if (r > 0)
		take(p, &n, &batch);
	else if (r < 0)
		log_warning("%s: after a restart the calls of the last minute will be sent again",
			e.text[0] ? e.text : strerror(-r));
	return 0;
}

int pusher_resume_note(struct pusher *p, const struct buf *batch)
{
	const struct pusher_note n = {.stream = p->batch.stream,
		.number = p->batch.number,
		.count = batch ? p->batch.count : 0,
		.lost = p->batch.refused,
		.chain_ns = p->chains.from_ns,
		.at = p->batch.end};

	return pusher_mark_write(&p->mark, &n, batch);
}

/* ---- `fleet-push --check`: empty requests to the paths of metrics and logs, which a receiver of OTLP
 * answers and keeps nothing of, and a look at the recording. */

struct probe {
	struct pusher pusher;
	int status, err;
	uint64_t took_ns;
	char why[256];
};

static void on_reply(void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	struct probe *x = arg;

	x->err = err;
	x->status = err == 0 ? r->status : 0;
	if (err == 0)
		x->took_ns = r->first_ns - r->sent_ns;
	pusher_reason(&x->pusher, x->why, r, err, e);
	loop_stop(x->pusher.loop);
}

static int exit_code(const struct probe *x)
{
	if (x->status == 401 || x->status == 403)
		return EXIT_NO_PERMISSION;
	return x->status == 404 || x->status == 405 ? EXIT_USAGE : EXIT_FAILED;
}

/* probe_path - whether an empty request of @what is taken at @path. */
static int probe_path(struct probe *x, const char *path, const char *what, struct errinfo *reterr)
{
	struct pusher *p = &x->pusher;
	_cleanup_buf_ struct buf body = BUF_INIT(100);
	struct http_ask a = {.endpoint = &p->settings->endpoint.endpoint,
		.method = "POST",
		.path = path,
		.timeout_ns = p->settings->timeout_ns,
		.body_max = PUSHER_BODY_BYTES};
	int r;

	buf_printf(&body, "{\"%s\":[]}", what);
	a.body = body.data;
	a.body_len = body.len;
	r = http_ask(p->client, &a, on_reply, x, NULL);
	r = r ?: loop_run(p->loop);
	if (r < 0)
		return r;
	if (x->err == 0 && x->status / 100 == 2)
		return 0;
	return errinfo_set_exit(reterr, exit_code(x), x->err < 0 ? x->err : -EIO, "%s", x->why);
}

/* Whether the token decides: where a request without it is taken, too, nobody has looked at the token. */
static int probe_token(struct probe *x, struct errinfo *reterr)
{
	struct pusher *p = &x->pusher;
	const struct http_client_settings bare = {.tls = p->tls};
	struct http_client *with = p->client;
	int r = http_client_new(p->loop, &bare, &p->client, reterr);

	if (r < 0)
		return r;
	r = probe_path(x, p->metrics_path, "resourceMetrics", reterr);
	http_client_free(p->client);
	p->client = with;
	if (r == 0)
		return errinfo_set_exit(reterr, EXIT_PARTIAL, -EPERM,
			"the token was not checked: %s accepts what this user sends from here without one",
			p->settings->endpoint.shown);
	return exit_code(x) == EXIT_NO_PERMISSION ? 0 : r;
}

static int probe_endpoint(struct probe *x, struct buf *out, struct errinfo *reterr)
{
	struct pusher *p = &x->pusher;
	char took[TEXT_MAX];
	int r = loop_new(&p->loop);

	r = r ?: pusher_send_open(p, reterr);
	r = r ?: probe_path(x, p->metrics_path, "resourceMetrics", reterr);
	r = r ?: probe_path(x, p->logs_path, "resourceLogs", reterr);
	if (r < 0)
		return r;
	text_format_duration(took, x->took_ns);
	r = p->settings->token ? probe_token(x, reterr) : 0;
	buf_printf(out, "Endpoint: %s answers in %s%s\n", p->settings->endpoint.shown, took,
		!p->settings->token ? "; no token is sent"
		: r == 0            ? ", and accepts the token"
				    : "");
	return r;
}

static int probe_recording(struct probe *x, struct buf *out, struct errinfo *reterr)
{
	const struct pusher_settings *s = x->pusher.settings;
	struct pusher_recording *r = &x->pusher.recording;
	struct pusher_note n = {0};
	struct pusher_reading reading;
	int res;

	if (s->stub) {
		buf_puts(out, "Recording: none, readings are made up (--stub)\n");
		return 0;
	}
	if (s->mark && pusher_mark_peek(s->mark, &n, NULL) > 0)
		pusher_recording_resume(r, &n.at);
	res = pusher_recording_health(r, wall_now(), &reading, reterr);
	res = res ?: pusher_recording_calls(r, wall_now(), reterr);
	if (res < 0 && reterr && !reterr->exit_code)
		reterr->exit_code = EXIT_NO_INPUT;
	if (res < 0)
		return res;
	buf_printf(out, "Recording: %s is being written\n", s->db);
	buf_printf(out,
		"Would be sent: the node's health every %s, and now %s%s, as node %s of cluster %s\n",
		TEXT_DURATION(s->push_interval_ns), TEXT_PLURAL(r->calls.count, "collectives"),
		r->calls.count >= PUSHER_BATCH_CALLS ? " or more" : "", s->node, s->cluster);
	if (n.number)
		buf_printf(out, "Delivered before: %" PRIu64 " batches of collectives (%s)\n",
			n.number, s->mark);
	return 0;
}

int pusher_probe(const struct pusher_settings *s, struct buf *out, struct errinfo *reterr)
{
	struct probe x = {.pusher = {.settings = s,
				  .body = BUF_INIT(PUSHER_BODY_BYTES),
				  .batch.body = BUF_INIT(PUSHER_BODY_BYTES),
				  .mark.fd = -1}};
	int r, e;

	pusher_recording_init(&x.pusher.recording, s->db ? s->db : "", s->window_ns);
	r = probe_endpoint(&x, out, reterr);
	/* Both are looked at: who mends one wants to know about the other. */
	e = probe_recording(&x, out, r < 0 ? NULL : reterr);
	pusher_done(&x.pusher);
	return r < 0 ? r : e;
}
