/* SPDX-License-Identifier: Apache-2.0 */
/* disks.h - what block devices are called: rows of requests have a number, people know a name. */
#pragma once

#include "model/event.h"

#define DISKS_MAX 64 /* whoever comes later keeps its number alone */

struct disks {
	struct {
		uint32_t dev;
		char name[COMM_LEN]; /* "": not to be found */
	} items[DISKS_MAX];
	int count;
};

/* disks_name - if @e is a block request, its device's name becomes @e's peer_comm. @root as in discover.h. */
void disks_name(struct disks *d, const char *root, struct event *e);
