/* SPDX-License-Identifier: Apache-2.0 */
/* listener.h - the HTTP endpoint that Prometheus scrapes: GET /metrics.
 *
 * Belongs to the thread that runs its loop. A scrape is answered with a reading that is at most a
 * second old; if there is none, it waits for one, which the listener asks for. */
#pragma once

#include "base/errinfo.h"
#include "model/metric.h"
#include "net/loop.h"

#define LISTENER_WAITING_MAX 64             /* scrapes that wait for one reading */
#define LISTENER_PATIENCE_NS (5 * NS_PER_S) /* then they are told that there is none */
#define LISTENER_FRESH_NS    NS_PER_S

struct listener_settings {
	const char *address;    /* "127.0.0.1:9464", ":9464" (every address), "9464" (loopback) */
	const char *token_file; /* who scrapes shows one of its tokens; NULL: no token is needed */
	bool allow_remote;      /* other machines may scrape without one */
	loop_fn *want;          /* a reading is needed: listener_give() it */
	void *arg;
};

struct listener;

/* listener_new - listens. An address that other machines reach needs a token file or allow_remote:
 * -EPERM with a sentence otherwise. */
int listener_new(struct loop *l, const struct listener_settings *s, struct listener **ret,
	struct errinfo *reterr);
void listener_free(struct listener *l);
DEFINE_CLEANUP(struct listener *, listener_free)

/* listener_give - a reading, which stays the caller's. */
void listener_give(struct listener *l, const struct metric_set *s);

const char *listener_address(const struct listener *l); /* with the port that was chosen */
uint64_t listener_scrapes(const struct listener *l);    /* answered with metrics */
