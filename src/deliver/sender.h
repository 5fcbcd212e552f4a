/* SPDX-License-Identifier: Apache-2.0 */
/* sender.h - requests to one receiver, over HTTP or gRPC, one after the other and in order: what
 * fails for a reason that may pass is tried again (backlog.h says when, backlog.h what a reply means).
 *
 * Belongs to the thread that runs its loop. Messages name the receiver's host and port only: a path
 * or a field may be a secret. */
#pragma once

#include "base/errinfo.h"
#include "deliver/backlog.h"
#include "net/client/client.h"
#include "net/loop.h"

#define SENDER_TIMEOUT_NS (10 * NS_PER_S) /* of one attempt */

/* What differs between the users of a sender. All run on the loop; `arg` is the settings'. */
struct sender_ops {
	/* The path, type and fields of the request for @b; what is not set stays as it is. */
	void (*describe)(void *arg, const struct backlog_batch *b, struct http_ask *ask);
	/* What a status of HTTP means; NULL: verdict_http(). */
	enum backlog_outcome (*judge)(int status);
	/* @b was taken; the receiver says @reply. NULL: nobody is interested. */
	void (*taken)(void *arg, const struct backlog_batch *b, const void *reply, size_t len);
	/* A batch has left: there may be room. NULL: nobody is interested. Not from within
	 * sender_put(). */
	void (*left)(void *arg, enum backlog_outcome outcome);
};

struct sender_settings {
	const struct http_endpoint *endpoint; /* copied */
	const char *shown;                    /* "https://gpu1:4318", copied */
	const char *what;                     /* "metrics": in messages; the caller's */
	bool is_grpc;
	const char *ca, *cert, *key; /* PEM files; NULL: the system's authorities, none */
	bool insecure_far;           /* fields that are secret may travel in the clear */
	const struct sender_ops *ops;
	void *arg;
};

struct sender;

int sender_new(struct loop *l, const struct sender_settings *s, struct sender **ret,
	struct errinfo *reterr);
DECLARE_FREE(struct sender, sender_free) /* what is under way is given up */

/* sender_put - takes @batch over. */
void sender_put(struct sender *s, struct backlog_batch batch);

/* sender_finish - @fn runs once, when everything is delivered or an attempt has failed. */
void sender_finish(struct sender *s, loop_fn *fn, void *arg);

/* sender_say - a warning that names the receiver; @words are foreign. */
void sender_say(const struct sender *s, const char *what, const char *words);

const struct backlog *sender_backlog(const struct sender *s);
