/* SPDX-License-Identifier: Apache-2.0 */
/* windows.h - equal pieces of time, the units of a process in which nothing recurs that is known: a server, a
 * notebook, a program that only launches kernels. They lie between its first work on the GPU and its last:
 * imports and the loading of a model come before. Those in which it rested are left out: a server without
 * requests loses nothing. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "diagnose/rows/timeline.h"

struct windows {
	uint32_t tid; /* the thread that feeds the GPU */
	uint64_t each_ns;
	int64_t *starts; /* ascending */
	size_t count;
};

/* windows_find - those of @pid; none: it gave the GPU nothing to do, or for too short a time. Released with
 * windows_done(), also after a failure. 0 or -ENOMEM. */
int windows_find(const struct timeline *t, uint32_t pid, struct windows *ret);
void windows_done(struct windows *w);
