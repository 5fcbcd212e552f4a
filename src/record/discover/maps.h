/* SPDX-License-Identifier: Apache-2.0 */
/* maps.h - the memory mappings of a process, one by one.
 *
 * In /proc/PID/maps the kernel writes a newline of a name as \012 and appends " (deleted)" to files
 * that were unlinked; a name may also really end so or really contain "\012". Therefore a path is
 * believed only after stat(2) has shown the mapped (dev, inode). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAPS_BYTES_MAX (64 << 20) /* of one process's maps that are read */

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
