/* SPDX-License-Identifier: Apache-2.0 */
/* server_life.h - how a server runs until it ends, and reads its files again. SIGTERM and SIGINT let replies
 * under way end, for as long as it has patience; a second one does not wait. SIGHUP reads files again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errinfo.h"
#include "net/loop.h"

struct server_life {
	struct loop *loop;
	uint64_t patience_ns;
	void (*drain)(void *arg); /* begin to end; server_life_over() when nothing is under way */
	void (*reload)(void *arg);
	void (*ready)(void *arg); /* tell the service manager, at the beginning and after reload */
	void *arg;

	struct loop_timer *patience; /* from here on its own */
	bool stopping;
};

/* server_life_watch - watch the signals for @l, which the caller has filled in and which stays where it
 * is until server_life_done(). */
int server_life_watch(struct server_life *l, struct errinfo *reterr);
/* server_life_run - from ready to the end of the loop, once the signals are watched. */
int server_life_run(struct server_life *l, struct errinfo *reterr);
void server_life_done(struct server_life *l);

/* server_life_tell_reload - says that @what was read again, or by @r and @e why it was not. */
void server_life_tell_reload(const char *what, int r, const struct errinfo *e);

/* server_life_over - a loop_fn: ends the loop of the struct server_life @arg. */
void server_life_over(void *arg);
