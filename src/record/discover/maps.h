/* SPDX-License-Identifier: Apache-2.0 */
/* maps.h - the memory mappings of a process, one by one.
 *
 * In /proc/PID/maps the kernel writes a newline of a name as \012 and appends " (deleted)" to files
 * that were unlinked; a name may also really end so or really contain "\012". Therefore a path is
 * believed only after stat(2) has shown the mapped (dev, inode). */
#pragma once

#include "base/clock.h"
#include "base/errinfo.h"
#include "base/macros.h"
#include "model/identity.h"

struct maps_entry {
	uint64_t start, end;
	uint64_t offset;
	uint64_t dev, inode; /* 0: no file */
	bool executable;
	bool deleted;
	const char *path; /* not NUL-terminated; "[vdso]" and the like too; length 0: anonymous */
	size_t path_len;
};

/* maps_read - call @take for each mapping of @pid, in the order of addresses, until it returns
 * false. Lines longer than a name that matters (16 KiB) are skipped. Returns 0, or 1 if the maps
 * were longer than MAPS_BYTES_MAX; -ESRCH if the process is gone, -EACCES if its maps may not be
 * read. */
typedef bool maps_take(void *arg, const struct maps_entry *e);
int maps_read(const char *root, uint32_t pid, maps_take *take, void *arg);

/* maps_parse - one line of @len bytes; false if it is none. */
bool maps_parse(const char *line, size_t len, struct maps_entry *ret);

/* The kernel tells when a process maps a CUDA library.
 *
 * A scan of /proc sees a new process up to a second late, and a short one never. Perf's records of
 * executable mappings come as the mapping is made, from every process of the machine, and name the
 * file, its inode and the time: what was mapped before it was probed is known to the microsecond.
 * They are made for executable mappings only (some five for each program that starts) and nobody
 * waits for them. */

struct map_watch_mapping {
	uint32_t pid;
	mono_time at;
	struct target_library library;
};

typedef void map_watch_take(void *arg, const struct map_watch_mapping *m);

struct map_watch;

/* map_watch_open - watch all CPUs. -EACCES or -EPERM without CAP_PERFMON; else of
 * perf_event_open(2). A CPU that comes online later is not watched. */
int map_watch_open(struct map_watch **ret, struct errinfo *reterr);
void map_watch_close(struct map_watch *w);

/* map_watch_fd - readable when there are records. */
int map_watch_fd(const struct map_watch *w);

/* map_watch_read - hand the mappings of CUDA libraries since the last call to @take, CPU by CPU.
 * Returns how many records the kernel had no room for: then a scan is needed. */
uint64_t map_watch_read(struct map_watch *w, map_watch_take *take, void *arg);

/* map_watch_parse - the mapping in one perf record of @len bytes; false if it is none of a CUDA
 * library. */
bool map_watch_parse(const void *record, size_t len, struct map_watch_mapping *ret);
