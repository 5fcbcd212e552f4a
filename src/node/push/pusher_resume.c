/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_resume.c - where an earlier run of the agent was, and what it was sending: pusher_mark.h. */
#include <errno.h>
#include <string.h>

#include "node/push/pusher_private.h"
#include "base/log.h"
#include "base/text.h"

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
