/* SPDX-License-Identifier: Apache-2.0 */
/* recording.h - makes a recording of many events for the benchmarks that read one. */
#pragma once

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/nodedb.h"

#define RECORDING_BATCH 10000

static inline void recording_check(int r, const struct errinfo *err)
{
	if (r >= 0)
		return;
	fprintf(stderr, "bench: %s\n", err->text[0] ? err->text : strerror(-r));
	exit(1);
}

/* A stream like a training job's: eight processes, starts a little out of order. */
static inline struct event recording_event(uint64_t n)
{
	uint64_t mix = n * 0x9e3779b97f4a7c15;

	return (struct event){
		.start.ns = (int64_t)(1700000000000000000 + n * 3000 + (mix >> 50)),
		.dur_ns = 5000 + (mix >> 48),
		.pid = 4000 + (uint32_t)(n & 7),
		.tid = 4100 + (uint32_t)(n & 31),
		.source = n & 1 ? SOURCE_DRIVER : SOURCE_CUDA,
		.op = 1 + (uint16_t)(n % 7),
		.flags = n & 1 ? WIRE_NESTED : 0,
		.cpu = (uint32_t)(n & 63),
		.weight = 1,
		.arg0 = 0x7f0000000000 + (mix >> 40),
		.arg1 = mix >> 44,
		.stream = 0x55550000 + (n & 3),
		.cgroup_id = 7261,
		.comm = "python3",
		.place = {.rank = (int32_t)(n & 7), .known = PLACEMENT_RANK},
	};
}

static inline void recording_make(const char *path, const char *node, uint64_t rows)
{
	struct session session = {.started = {1700000000000000000}};
	struct errinfo err = {0};
	struct nodedb *db = NULL;

	recording_check(nodedb_open(path, node, &db, &err), &err);
	recording_check(nodedb_session_begin(db, &session, &err), &err);
	for (uint64_t n = 0; n < rows; n++) {
		struct event e = recording_event(n);

		if (n % RECORDING_BATCH == 0) {
			if (n)
				recording_check(nodedb_batch_commit(db, &err), &err);
			recording_check(nodedb_batch_begin(db, &err), &err);
		}
		recording_check(nodedb_put_event(db, &e, &err), &err);
	}
	recording_check(nodedb_batch_commit(db, &err), &err);
	recording_check(nodedb_close(db, &err), &err);
}

/* Time of this process on a CPU: what other programs take from it does not count. Everything that
 * is measured with it runs on one thread. */
static inline double recording_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline void recording_remove(const char *path)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", ".lock"};

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		char name[512];

		snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
		unlink(name);
	}
}
