/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - see progress.h. A thread of its own writes the line, so that the work need not know;
 * it touches nothing but the terminal. */
#include "cli/progress.h"

#include <signal.h>
#include <time.h>

#include "base/mutex.h"
#include "base/text.h"

#define ERASE "\r\033[K"

static void show(const struct progress *p, const char *text)
{
	/* If the terminal is gone there is nobody to tell. */
	(void)!write(p->fd, text, strlen(text));
}

static void *run(void *arg)
{
	struct progress *p = arg;
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	pthread_mutex_lock(&p->mutex);
	for (int seconds = 1; !p->stop; seconds++) {
		t.tv_sec++;
		while (!p->stop && pthread_cond_timedwait(&p->wake, &p->mutex, &t) != ETIMEDOUT)
			;
		if (p->stop)
			break;
		show(p, FORMATTED(192, ERASE "  %.*s, %ds", text_clip(p->what, 100), p->what,
				seconds));
	}
	pthread_mutex_unlock(&p->mutex);
	show(p, ERASE);
	return NULL;
}

void progress_begin(struct progress *p, int fd, const char *what)
{
	pthread_condattr_t attr;
	sigset_t all, before;

	*p = (struct progress){.fd = fd};
	snprintf(p->what, sizeof(p->what), "%s", what);
	if (!isatty(fd))
		return;
	pthread_mutex_init(&p->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->wake, &attr);
	pthread_condattr_destroy(&attr);
	sigfillset(&all); /* signals are for the thread that works */
	pthread_sigmask(SIG_BLOCK, &all, &before);
	p->running = pthread_create(&p->thread, NULL, run, p) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void progress_say(struct progress *p, const char *what)
{
	if (!p->running)
		return;
	MUTEX_HELD(&p->mutex);
	snprintf(p->what, sizeof(p->what), "%s", what);
}

void progress_done(struct progress *p)
{
	if (!p->running)
		return;
	pthread_mutex_lock(&p->mutex);
	p->stop = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->mutex);
	pthread_join(p->thread, NULL);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->mutex);
	p->running = false;
}
