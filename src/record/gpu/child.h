/* SPDX-License-Identifier: Apache-2.0 */
/* child.h - the process that asks NVML. A stuck or dying driver stops it and nothing else.
 *
 * It is this program, executed again under the name GPU_CHILD_NAME with the socket to the agent as
 * file descriptor GPU_CHILD_FD; main() hands over to gpu_child_main() when it finds that name. So
 * it shares no memory, map or file with the agent. */
#pragma once

#include "base/clock.h"
#include "base/macros.h"
#include "base/spawn.h"
#include "model/sample.h"

#define GPU_CHILD_NAME "ingero-gpu-sampler"

/* How often it asks; within these. */
#define GPU_PERIOD_MIN_NS (100 * NS_PER_MS)
#define GPU_PERIOD_MAX_NS (60 * NS_PER_S)

bool gpu_child_is_meant(int argc, char **argv);

/* gpu_child_main - argv[1], if given: the library to load. Returns the exit code. */
int gpu_child_main(int argc, char **argv);

/* What the sampling child tells the agent: one datagram a record, of fixed size, over a
 * socket pair. Both ends are the same program, so there is no version; the agent still believes
 * nothing (sampler.c checks size, kind, index and texts). */

#define GPU_RECORD_MAGIC 0x676e6d31u

enum gpu_record_kind {
	GPU_RECORD_HELLO,  /* NVML is open: versions */
	GPU_RECORD_SAMPLE, /* one GPU; time is monotonic here */
	GPU_RECORD_ABSENT, /* there is nothing to sample: text says why. The child ends. */
	GPU_RECORD_FAILED, /* NVML refuses: text says why. The child ends. */
};

struct gpu_record {
	uint32_t magic, kind;
	uint64_t mono_ns; /* when it was read */
	union {
		struct {
			uint32_t count;
			char driver[64], cuda[32];
		} hello;
		struct {
			struct gpu_sample sample;
			char error[64]; /* what nvml_error means */
		} reading;
		struct {
			uint32_t lasting; /* waiting will not help */
			char text[256];
		} end;
	};
};
