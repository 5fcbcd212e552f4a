/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_replay.c - a finished recording, sent at a bounded speed: its collectives as they were, with the times
 * they had, then its incidents. What was delivered is noted as ever, so that a replay that was broken off goes
 * on where it was. */

#include "base/log.h"
#include "base/text.h"
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
	char of[2][TEXT_PLURAL_MAX];

	if (!c->collectives && !c->lost && !c->incidents && p->mark.has_note)
		log_info(
			"everything in %s was delivered to %s before, as %s notes: with --mark '' it is sent again",
			p->settings->db, p->settings->endpoint.shown, p->settings->mark);
	else
		log_info("sent %s to %s: %s, %s%s", p->settings->db, p->settings->endpoint.shown,
			text_format_plural(of[0], c->collectives, "collectives"),
			text_format_plural(of[1], c->incidents, "incidents"),
			c->lost ? "; some collectives were left out, as nobody could match them"
				: "");
}

/* Where an earlier run of the agent was, and what it was sending: pusher_mark.h. */

#define PATIENCE_NS (PUSHER_FLUSH_NS + 2 * NS_PER_S) /* until the one before has ended */

static void take(struct pusher *p, const struct pusher_note *n, struct buf *batch)
{
	char sent[TEXT_PLURAL_MAX];

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
	log_info("goes on where the last run was, which had sent %s with collectives%s",
		text_format_plural(sent, n->number, "requests"),
		batch->len ? "; the last is sent again" : "");
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
