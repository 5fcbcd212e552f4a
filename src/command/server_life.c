/* SPDX-License-Identifier: Apache-2.0 */
/* server_life.c - see server_life.h. Runs on the loop's thread. */
#include "command/server_life.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/notify.h"
#include "command/program.h"

void server_life_over(void *arg)
{
	struct server_life *l = arg;

	loop_stop(l->loop);
}

void server_life_tell_reload(const char *what, int r, const struct errinfo *e)
{
	const char *program = program_running()->name;

	if (r < 0)
		fprintf(stderr, "%s%s: reload failed, what was not read stays as it was: %s\n",
			log_mark(LOG_LEVEL_ERROR), program, e->text[0] ? e->text : strerror(-r));
	else
		fprintf(stderr, "%s%s: %s reloaded\n", log_mark(LOG_LEVEL_INFO), program, what);
}

static void on_stop(void *arg)
{
	struct server_life *l = arg;

	if (l->stopping) {
		loop_stop(l->loop);
		return;
	}
	l->stopping = true;
	notify_stopping();
	loop_timer_set(l->patience, l->patience_ns);
	l->drain(l->arg);
}

static void on_hangup(void *arg)
{
	struct server_life *l = arg;

	notify_reloading();
	l->reload(l->arg);
	l->ready(l->arg);
}

int server_life_watch(struct server_life *l, struct errinfo *reterr)
{
	int r = loop_signal(l->loop, SIGTERM, on_stop, l);

	if (r == 0)
		r = loop_signal(l->loop, SIGINT, on_stop, l);
	if (r == 0)
		r = loop_signal(l->loop, SIGHUP, on_hangup, l);
	if (r == 0)
		r = loop_timer_new(l->loop, server_life_over, l, &l->patience);
	return r == 0 ? 0 : errinfo_set(reterr, r, "cannot handle signals: %s", strerror(-r));
}

int server_life_run(struct server_life *l, struct errinfo *reterr)
{
	int r = loop_notify(l->loop);

	l->ready(l->arg);
	if (r == 0)
		r = loop_run(l->loop);
	return r == 0 ? 0 : errinfo_set(reterr, r, "event loop failed: %s", strerror(-r));
}

void server_life_done(struct server_life *l)
{
	if (l->patience)
		loop_timer_free(l->patience);
	l->patience = NULL;
}
