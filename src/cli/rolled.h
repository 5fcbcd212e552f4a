/* SPDX-License-Identifier: Apache-2.0 */
/* rolled.h - --include-rolled: a recording together with the files that it left when it rolled over
 * (trace --db-rollover-size), merged into one that is deleted again. */
#pragma once

#include <limits.h>
#include <stddef.h>

#include "base/errinfo.h"

struct rolled {
	char folder[PATH_MAX]; /* ours, below $TMPDIR, else /var/tmp; "": nothing was merged */
	char path[PATH_MAX];   /* what to read: the merged file, or the recording itself */
};

/* rolled_open - *ret is to be given back by rolled_done(). Without rolled files it is the recording
 * itself. Tells on stderr what is read. */
int rolled_open(const char *path, struct rolled *ret, struct errinfo *reterr);
void rolled_done(struct rolled *r);
