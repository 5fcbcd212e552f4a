/* SPDX-License-Identifier: Apache-2.0 */
/* duck_worker_attach.h - the worker's files become the tables of its database; private to duck/. */
#pragma once

#include "duck/duck.h"
#include "duck/duck_worker.h"

#define DUCK_FILE_PATH_MAX 32

struct duck_files {
	const char *names[DUCK_WORKER_FILES_MAX];
	int fds[DUCK_WORKER_FILES_MAX]; /* O_PATH */
	size_t count;
};

/* duck_files_open - looks them up, reads nothing. -ENOENT one is gone; the sentence names it. */
int duck_files_open(struct duck_files *f, struct errinfo *reterr);

/* duck_file_path - a path of file @i that does not tell where it lies. */
const char *duck_file_path(const struct duck_files *f, size_t i, char out[DUCK_FILE_PATH_MAX]);

/* duck_attach_all - each as a catalog of its own, to be read. -EBADMSG one is damaged, -EBUSY one is
 * being written; the sentence names it. */
int duck_attach_all(struct duck_connection *c, const struct duck_files *f, struct errinfo *reterr);

/* duck_make_views - each table as a view over the files that have it. */
int duck_make_views(struct duck_connection *c, const struct duck_files *f,
	const struct duck_worker_table *tables, size_t table_count, struct errinfo *reterr);

/* duck_shut - nothing can be attached, loaded, written or set from now on, as far as DuckDB goes. -EPERM:
 * it is not so. */
int duck_shut(struct duck_connection *c, struct errinfo *reterr);
