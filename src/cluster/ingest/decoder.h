/* SPDX-License-Identifier: Apache-2.0 */
/* decoder.h - large requests, decoded by a thread of their own so that the loop answers others meanwhile.
 *
 * What a request holds is handed over on the loop's thread, one struct a turn, as if it had been decoded
 * there: the handler sees no other thread. */
#pragma once

#include "net/loop.h"
#include "otlp/otlp_response.h"
#include "push/push_wire.h"

#define DECODER_LEAST (128u << 10) /* bytes from which on a request is worth a thread */
#define DECODER_QUEUE 64           /* requests that wait */

struct decoder;
int decoder_new(struct loop *l, struct decoder **ret);
/* decoder_free - on the loop's thread. What is under way is cut short: its handler is not called any more, and
 * decoder_done is told -ECANCELED if the loop goes on. */
DECLARE_FREE(struct decoder, decoder_free)

struct decoder_request { /* data is the caller's until decoder_done */
	enum otlp_signal signal;
	bool json;
	const void *data;
	size_t len;
	uint64_t asker; /* whom it is for */
};

/* On the loop's thread, once: as push_receive_X() returned. */
typedef void decoder_done(
	void *arg, int r, const struct push_taken *taken, const struct errinfo *e);

/* decoder_push - -EBUSY: too many wait; -ENOMEM. */
int decoder_push(struct decoder *d, const struct decoder_request *q, const struct push_handler *h,
	decoder_done *done, void *arg);
/* decoder_decode - the same at once, on this thread. */
int decoder_decode(const struct decoder_request *q, const struct push_handler *h,
	struct push_taken *ret, struct errinfo *reterr);
