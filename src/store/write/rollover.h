/* SPDX-License-Identifier: Apache-2.0 */
/* rollover.h - names and number of the files that a store leaves behind when it rolls over.
 *
 * "ingero.db" leaves "ingero.YYYYMMDDTHHMMSS.nnnnnnnnnZ-xxxxxxxx.db": UTC, nanoseconds, eight
 * random hexadecimal digits. The order of the names is the order of time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/errinfo.h"

/* rollover_name - the path under which the database @path is kept. -ENAMETOOLONG. */
int rollover_name(const char *path, wall_time now, uint32_t random, char *out, size_t size);

/* rollover_is_name - whether @name (without folder) is a rolled file of the database @path. */
bool rollover_is_name(const char *path, const char *name);

/* rollover_trim - delete the oldest rolled files of @path beyond @keep, and nothing else.
 * Returns how many were deleted. */
int rollover_trim(const char *path, unsigned keep, struct errinfo *reterr);

struct rollover_list {
	char **paths; /* oldest first */
	size_t count;
};

/* rollover_list - the rolled files of the database @path, as paths; freed by rollover_list_done(). */
int rollover_list(const char *path, struct rollover_list *ret, struct errinfo *reterr);
void rollover_list_done(struct rollover_list *l);
