/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - a line on a terminal while something takes long: what, and for how long already. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct progress {
	char what[160];
	int fd;
	bool running, stop;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
};

#define PROGRESS_INIT ((struct progress){.fd = -1})

/* progress_begin - from a second on, shows @what on @fd, if that is a terminal. A line less is no
 * failure, so there is none. */
void progress_begin(struct progress *p, int fd, const char *what);

/* progress_say - what it is now; may be called often. */
void progress_say(struct progress *p, const char *what);

/* progress_done - takes the line away again; may be called twice. */
void progress_done(struct progress *p);
