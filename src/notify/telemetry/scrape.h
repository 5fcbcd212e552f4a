/* SPDX-License-Identifier: Apache-2.0 */
/* scrape.h - the HTTP endpoint that Prometheus scrapes: GET /metrics. GET /livez and /readyz, which need no
 * token, say whether the tracing thread still gives readings: for kubelet.
 *
 * Belongs to the thread that runs its loop. A scrape is answered with a reading that is at most a
 * second old; if there is none, it waits for one, which the listener asks for. */
#pragma once

#include "base/errinfo.h"
#include "model/metric.h"
#include "net/loop.h"

#define SCRAPE_WAITING_MAX 64             /* scrapes that wait for one reading */
#define SCRAPE_PATIENCE_NS (5 * NS_PER_S) /* then they are told that there is none */
#define SCRAPE_FRESH_NS    NS_PER_S

struct scrape_settings {
	const char *address;    /* "127.0.0.1:9464", ":9464" (every address), "9464" (loopback) */
	const char *token_file; /* who scrapes shows one of its tokens; NULL: no token is needed */
	bool allow_remote;      /* other machines may scrape without one */
	loop_fn *want;          /* a reading is needed: scrape_give() it */
	void *arg;
};

struct scrape;

/* scrape_new - listens. An address that other machines reach needs a token file or allow_remote:
 * -EPERM with a sentence otherwise. */
int scrape_new(struct loop *l, const struct scrape_settings *s, struct scrape **ret,
	struct errinfo *reterr);
void scrape_free(struct scrape *l);
DEFINE_CLEANUP(struct scrape *, scrape_free)

/* scrape_give - a reading, which stays the caller's. */
void scrape_give(struct scrape *l, const struct metric_set *s);

/* scrape_drain - no more scrapes; @fn runs when the replies under way have gone out. */
void scrape_drain(struct scrape *l, loop_fn *fn, void *arg);

const char *scrape_address(const struct scrape *l); /* with the port that was chosen */
uint64_t scrape_count(const struct scrape *l);      /* answered with metrics */
