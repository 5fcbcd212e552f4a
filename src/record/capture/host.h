/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - readings of the whole machine from /proc. */
#pragma once

#include "base/macros.h"
#include "model/identity.h"
#include "model/sample.h"

#define HOST_CPUS_MAX 4096 /* CPUs with a higher number are in the sum alone */

struct host_cpu {
	uint64_t busy, total; /* at the last reading; total 0: none yet */
};

struct host_reader {
	const char *root; /* prefix of /proc, "" for the real one */
	struct host_cpu all, cpus[HOST_CPUS_MAX];
	struct host_cpu steal, iowait; /* of all, as if these were busy */
	uint64_t faults;               /* major faults at faults_time */
	wall_time faults_time;
};

void host_reader_init(struct host_reader *h, const char *root);

/* host_read - one sample; shares and rates are those since the previous call (the first has none).
 * 0 or negative errno. */
int host_read(struct host_reader *h, wall_time now, struct host_sample *ret);

/* host_describe - fill the machine's fields of a session (CPU, memory, kernel, OS). */
void host_describe(const char *root, struct session *s);

/* Which host samples are worth storing.
 *
 *   points 0, beat 0   every one
 *   points P           those that differ from the last one stored by more than P percent points in
 *                      CPU, memory or swap (of all memory)
 *   beat B             the first after every B, whatever it says; alone: only these. */

struct deadband {
	double points;
	uint64_t beat_ns;
	bool has_last;
	struct host_sample last; /* stored */
};

/* deadband_admits - whether @s is to be stored; if so it is the last one from now on. */
bool deadband_admits(struct deadband *d, const struct host_sample *s);
