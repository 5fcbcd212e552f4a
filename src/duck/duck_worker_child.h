/* SPDX-License-Identifier: Apache-2.0 */
/* duck_worker_child.h - */
#pragma once

#include "duck/duck.h"
#include "duck/duck_worker.h"

/* The worker's files become the tables of its database; private to duck/. */

struct duck_files {
	const char *names[DUCK_WORKER_FILES_MAX];
	int fds[DUCK_WORKER_FILES_MAX]; /* O_PATH */
	size_t count;
};

/* duck_files_open - looks them up, reads nothing. -ENOENT one is gone; the sentence names it. */
int duck_files_open(struct duck_files *f, struct errinfo *reterr);

/* duck_attach_all - each as a catalog of its own, to be read. -EBADMSG one is damaged, -EBUSY one is
 * being written; the sentence names it. */
int duck_attach_all(struct duck_connection *c, const struct duck_files *f, struct errinfo *reterr);
