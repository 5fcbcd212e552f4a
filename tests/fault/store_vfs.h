/* SPDX-License-Identifier: Apache-2.0 */
/* store_vfs.h - SQLite's files with faults: the n-th write or sync fails, and what a power cut would
 * leave is kept apart.
 *
 * A layer over the default VFS that becomes the default itself, so that the store under test needs
 * no change. A power cut is taken at its worst: of each file only what was there at its last sync
 * is left, and a file that was never synced is not there. A removed one is gone at once: the first
 * sync of the log, which is before any row is, syncs the folder too. */
#pragma once

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"

struct store_vfs {
	atomic_long writes, syncs;   /* so far */
	long fail_write, fail_sync;  /* this one fails; 0: none */
	bool forever;                /* and all after it */
	int code;                    /* with this */
	const char *synced;          /* folder for what was synced; NULL: not kept */
	pthread_mutex_t synced_lock; /* of that folder */
	atomic_long failed;          /* calls that were made to fail */
};

static struct store_vfs store_vfs = {.synced_lock = PTHREAD_MUTEX_INITIALIZER};

struct store_vfs_file {
	sqlite3_file base;
	const char *path; /* SQLite's, as long as the file is open; NULL: a temporary file */
	sqlite3_file *real;
};

static sqlite3_file *store_vfs_real(sqlite3_file *f)
{
	return ((struct store_vfs_file *)f)->real;
}

/* store_vfs_set - counts from here, failing as the arguments say. */
static void store_vfs_set(long fail_write, long fail_sync, int code, bool forever)
{
	atomic_store(&store_vfs.writes, 0);
	atomic_store(&store_vfs.syncs, 0);
	atomic_store(&store_vfs.failed, 0);
	store_vfs.code = code;
	store_vfs.forever = forever;
	store_vfs.fail_write = fail_write;
	store_vfs.fail_sync = fail_sync;
}

static bool store_vfs_fails(atomic_long *count, long at)
{
	long n = atomic_fetch_add(count, 1) + 1;
	bool fails = at && (n == at || (store_vfs.forever && n > at));

	if (fails)
		atomic_fetch_add(&store_vfs.failed, 1);
	return fails;
}

/* store_vfs_keep - from now on what is synced is copied to @folder; NULL: what is there stays as it
 * is, which is what a power cut at this moment leaves. */
static _unused_ void store_vfs_keep(const char *folder)
{
	pthread_mutex_lock(&store_vfs.synced_lock);
	store_vfs.synced = folder;
	pthread_mutex_unlock(&store_vfs.synced_lock);
}

static void store_vfs_copy(struct store_vfs_file *f)
{
	const char *slash = f->path ? strrchr(f->path, '/') : NULL;
	char to[512], block[4096];
	sqlite3_int64 size = 0;
	FILE *out;

	if (!slash || f->real->pMethods->xFileSize(f->real, &size) != SQLITE_OK)
		return;
	snprintf(to, sizeof(to), "%s%s", store_vfs.synced, slash);
	out = fopen(to, "we");
	for (sqlite3_int64 at = 0; out && at < size; at += (sqlite3_int64)sizeof(block)) {
		int n = (int)(size - at < (sqlite3_int64)sizeof(block)
				      ? size - at
				      : (sqlite3_int64)sizeof(block));

		if (f->real->pMethods->xRead(f->real, block, n, at) == SQLITE_OK)
			fwrite(block, 1, (size_t)n, out);
	}
	if (out)
		fclose(out);
}

static int store_vfs_close(sqlite3_file *f)
{
	return store_vfs_real(f)->pMethods->xClose(store_vfs_real(f));
}

static int store_vfs_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
	return store_vfs_real(f)->pMethods->xRead(store_vfs_real(f), to, n, at);
}

static int store_vfs_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
	if (store_vfs_fails(&store_vfs.writes, store_vfs.fail_write))
		return store_vfs.code;
	return store_vfs_real(f)->pMethods->xWrite(store_vfs_real(f), from, n, at);
}

static int store_vfs_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	return store_vfs_real(f)->pMethods->xTruncate(store_vfs_real(f), size);
}

static int store_vfs_sync(sqlite3_file *f, int flags)
{
	int code;

	if (store_vfs_fails(&store_vfs.syncs, store_vfs.fail_sync))
		return store_vfs.code;
	code = store_vfs_real(f)->pMethods->xSync(store_vfs_real(f), flags);
	pthread_mutex_lock(&store_vfs.synced_lock);
	if (code == SQLITE_OK && store_vfs.synced)
		store_vfs_copy((struct store_vfs_file *)f);
	pthread_mutex_unlock(&store_vfs.synced_lock);
	return code;
}

static int store_vfs_size(sqlite3_file *f, sqlite3_int64 *ret)
{
	return store_vfs_real(f)->pMethods->xFileSize(store_vfs_real(f), ret);
}

static int store_vfs_lock(sqlite3_file *f, int level)
{
	return store_vfs_real(f)->pMethods->xLock(store_vfs_real(f), level);
}

static int store_vfs_unlock(sqlite3_file *f, int level)
{
	return store_vfs_real(f)->pMethods->xUnlock(store_vfs_real(f), level);
}

static int store_vfs_reserved(sqlite3_file *f, int *ret)
{
	return store_vfs_real(f)->pMethods->xCheckReservedLock(store_vfs_real(f), ret);
}

static int store_vfs_control(sqlite3_file *f, int op, void *arg)
{
	return store_vfs_real(f)->pMethods->xFileControl(store_vfs_real(f), op, arg);
}

static int store_vfs_sector(sqlite3_file *f)
{
	return store_vfs_real(f)->pMethods->xSectorSize(store_vfs_real(f));
}

static int store_vfs_traits(sqlite3_file *f)
{
	return store_vfs_real(f)->pMethods->xDeviceCharacteristics(store_vfs_real(f));
}

static int store_vfs_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **ret)
{
	return store_vfs_real(f)->pMethods->xShmMap(store_vfs_real(f), page, size, extend, ret);
}

static int store_vfs_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
	return store_vfs_real(f)->pMethods->xShmLock(store_vfs_real(f), offset, n, flags);
}

static void store_vfs_shm_barrier(sqlite3_file *f)
{
	store_vfs_real(f)->pMethods->xShmBarrier(store_vfs_real(f));
}

static int store_vfs_shm_unmap(sqlite3_file *f, int remove_it)
{
	return store_vfs_real(f)->pMethods->xShmUnmap(store_vfs_real(f), remove_it);
}

static const sqlite3_io_methods store_vfs_methods = {.iVersion = 2,
	.xClose = store_vfs_close,
	.xRead = store_vfs_read,
	.xWrite = store_vfs_write,
	.xTruncate = store_vfs_truncate,
	.xSync = store_vfs_sync,
	.xFileSize = store_vfs_size,
	.xLock = store_vfs_lock,
	.xUnlock = store_vfs_unlock,
	.xCheckReservedLock = store_vfs_reserved,
	.xFileControl = store_vfs_control,
	.xSectorSize = store_vfs_sector,
	.xDeviceCharacteristics = store_vfs_traits,
	.xShmMap = store_vfs_shm_map,
	.xShmLock = store_vfs_shm_lock,
	.xShmBarrier = store_vfs_shm_barrier,
	.xShmUnmap = store_vfs_shm_unmap};

static sqlite3_vfs *store_vfs_below;

static int store_vfs_open(
	sqlite3_vfs *vfs, const char *path, sqlite3_file *f, int flags, int *ret_flags)
{
	struct store_vfs_file *file = (struct store_vfs_file *)f;
	int code;

	file->base.pMethods = NULL;
	file->path = path;
	file->real = (sqlite3_file *)(file + 1);
	code = store_vfs_below->xOpen(store_vfs_below, path, file->real, flags, ret_flags);
	if (code == SQLITE_OK)
		file->base.pMethods = &store_vfs_methods;
	return code;
}

static int store_vfs_delete(sqlite3_vfs *vfs, const char *path, int sync)
{
	const char *slash = strrchr(path, '/');
	char copy[512];

	pthread_mutex_lock(&store_vfs.synced_lock);
	if (store_vfs.synced && slash) {
		snprintf(copy, sizeof(copy), "%s%s", store_vfs.synced, slash);
		unlink(copy);
	}
	pthread_mutex_unlock(&store_vfs.synced_lock);
	return store_vfs_below->xDelete(store_vfs_below, path, sync);
}

/* store_vfs_install - for the rest of the program; a group setup of cmocka. */
static int store_vfs_install(void **state)
{
	static sqlite3_vfs vfs;

	store_vfs_below = sqlite3_vfs_find(NULL);
	if (!store_vfs_below)
		return -1;
	vfs = *store_vfs_below; /* all but opening is the other's, which finds its own data in it */
	vfs.zName = "store-faults";
	vfs.pNext = NULL;
	vfs.szOsFile = (int)sizeof(struct store_vfs_file) + store_vfs_below->szOsFile;
	vfs.xOpen = store_vfs_open;
	vfs.xDelete = store_vfs_delete;
	return sqlite3_vfs_register(&vfs, 1) == SQLITE_OK ? 0 : -1;
}
