/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - what the sampling child tells the agent: one datagram a record, of fixed size, over a
 * socket pair. Both ends are the same program, so there is no version; the agent still believes
 * nothing (sampler.c checks size, kind, index and texts). */
#pragma once

#include "base/macros.h"
#include "model/sample.h"

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
