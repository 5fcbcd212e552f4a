/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_probe.c - `fleet-push --check`: empty requests to the paths of metrics and logs, which a receiver of OTLP
 * answers and keeps nothing of, and a look at the recording. */

#include "node/push/pusher_private.h"
#include "base/text.h"
#include "net/client/client.h"

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
	if (r == 0)
		r = loop_run(p->loop);
	if (r < 0)
		return r;
	if (x->err == 0 && x->status / 100 == 2)
		return 0;
	return errinfo_set_exit(reterr, exit_code(x), x->err < 0 ? x->err : -EIO, "%s", x->why);
}

static int probe_endpoint(struct probe *x, struct buf *out, struct errinfo *reterr)
{
	struct pusher *p = &x->pusher;
	char took[TEXT_MAX];
	int r = loop_new(&p->loop);

	if (r == 0)
		r = pusher_send_open(p, reterr);
	if (r == 0)
		r = probe_path(x, p->metrics_path, "resourceMetrics", reterr);
	if (r == 0)
		r = probe_path(x, p->logs_path, "resourceLogs", reterr);
	if (r < 0)
		return r;
	buf_printf(out, "Endpoint: %s answers in %s%s\n", p->settings->endpoint.shown,
		text_format_duration(took, x->took_ns),
		p->settings->token ? ", and takes the token" : "; no token is sent");
	return 0;
}

static int probe_recording(struct probe *x, struct buf *out, struct errinfo *reterr)
{
	const struct pusher_settings *s = x->pusher.settings;
	struct pusher_recording *r = &x->pusher.recording;
	struct pusher_note n = {0};
	struct pusher_reading reading;
	char calls[TEXT_PLURAL_MAX], interval[TEXT_MAX];
	int res;

	if (s->stub) {
		buf_puts(out, "Recording: none, readings are made up (--stub)\n");
		return 0;
	}
	if (s->mark && pusher_mark_peek(s->mark, &n, NULL) > 0)
		pusher_recording_resume(r, &n.at);
	res = pusher_recording_health(r, wall_now(), &reading, reterr);
	if (res == 0)
		res = pusher_recording_calls(r, wall_now(), reterr);
	if (res < 0 && reterr && !reterr->exit_code)
		reterr->exit_code = EXIT_NO_INPUT;
	if (res < 0)
		return res;
	buf_printf(out, "Recording: %s is being written\n", s->db);
	buf_printf(out,
		"Would be sent: the node's health every %s, and now %s%s, as node %s of cluster %s\n",
		text_format_duration(interval, s->push_interval_ns),
		text_format_plural(calls, r->calls.count, "collectives"),
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
