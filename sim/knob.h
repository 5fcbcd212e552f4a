/* SPDX-License-Identifier: Apache-2.0 */
/* knob.h - the one table of environment variables that set the stand-in's behaviour.
 *
 * To add a knob: one line in SIM_KNOBS and one in the table of README.md (a test compares them). */
#pragma once

#include <stdint.h>
#include <stdio.h>

/* X(field, environment name, default, least, most, meaning). Numbers may be written as 20e9. */
#define SIM_KNOBS(X)                                                                               \
	X(kernel_ns, "SIM_KERNEL_NS", 200000, 0, 1e12, "duration of a kernel of unknown kind")     \
	X(init_ns, "SIM_INIT_NS", 30000000, 0, 1e11, "time the first call takes to initialise")    \
	X(device_mem, "SIM_DEVICE_MEM", 17179869184, 1 << 20, 1e13, "device memory, bytes")        \
	X(host_mem, "SIM_HOST_MEM", 4294967296, 1 << 20, 1e13, "most pinned host memory, bytes")   \
	X(pcie_rate, "SIM_PCIE_BYTES_PER_S", 20e9, 1, 1e15, "host to device and back, bytes/s")    \
	X(mem_rate, "SIM_MEM_BYTES_PER_S", 1e12, 1, 1e15, "copies and fills on the device")        \
	X(copy_bytes, "SIM_COPY_BYTES", 67108864, 0, 1e13, "most bytes one copy really moves")     \
	X(concurrent, "SIM_CONCURRENT", 32, 1, 128, "kernels that run at the same time")           \
	X(queue_depth, "SIM_QUEUE_DEPTH", 1024, 1, 65536,                                          \
		"work a stream holds before calls block")                                          \
	X(devices, "SIM_DEVICES", 1, 1, 16, "number of devices")                                   \
	X(nccl_rate, "SIM_NCCL_BYTES_PER_S", 100e9, 1, 1e15, "collectives, bytes of a call/s")     \
	X(nccl_mismatch_hangs, "SIM_NCCL_MISMATCH_HANGS", 0, 0, 1,                                 \
		"1: collectives that do not match never end")                                      \
	X(malloc_ns, "SIM_MALLOC_NS", 0, 0, 1e11, "time an allocation takes")                      \
	X(malloc_slow_every, "SIM_MALLOC_SLOW_EVERY", 0, 0, 1e12,                                  \
		"every so many takes SIM_MALLOC_SLOW_NS; 0: none")                                 \
	X(malloc_slow_ns, "SIM_MALLOC_SLOW_NS", 2500000, 0, 1e11, "time of such an allocation")    \
	X(fail_launch, "SIM_FAIL_LAUNCH", 0, 0, 1e15,                                              \
		"launches from this one on return SIM_FAIL_CODE; 0: none")                         \
	X(fail_code, "SIM_FAIL_CODE", 700, 1, 999, "what they return")

struct knobs {
#define X(field, ...) uint64_t field;
	SIM_KNOBS(X)
#undef X
	const char *tally; /* SIM_TALLY or NULL */
};

/* knob_parse - @text as a whole number from @least to @most; -EINVAL or -ERANGE. */
int knob_parse(const char *text, double least, double most, uint64_t *ret_value);

/* knob_get - the settings, read from the environment at the first call. A value that cannot be
 * used is reported on standard error and the default stands. */
const struct knobs *knob_get(void);

/* knob_print - the table, one knob a line. */
void knob_print(FILE *f);
