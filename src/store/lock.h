/* SPDX-License-Identifier: Apache-2.0 */
/* lock.h - one writer per database.
 *
 * A flock on "<db>.lock", which names the holder's pid. The kernel drops it with the process, so a
 * file left by a killed one locks nobody out. It is not on the database itself: SQLite's own locks
 * there would be lost when a second descriptor of that file is closed. */
#pragma once

#include <sys/types.h>

#include "base/errinfo.h"

struct store_lock {
	int fd; /* -1: not held */
	char *path;
};

#define STORE_LOCK_INIT ((struct store_lock){.fd = -1})

/* store_lock_take - -EBUSY with the holder's pid if another writer has it. */
int store_lock_take(const char *db_path, struct store_lock *ret_lock, struct errinfo *reterr);

/* store_lock_renew - takes it again if somebody has removed its file. */
int store_lock_renew(const char *db_path, struct store_lock *l, struct errinfo *reterr);

/* store_lock_done - removes the file and lets go; no-op if not held. */
void store_lock_done(struct store_lock *l);

/* store_lock_holder - the pid of the process that writes @db_path now; 0 if none does, or if its
 * lock cannot be read. Never in a writer's way: a lock without a living pid is not touched. */
pid_t store_lock_holder(const char *db_path);
