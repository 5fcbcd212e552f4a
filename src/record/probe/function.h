/* SPDX-License-Identifier: Apache-2.0 */
/* function.h - tables of probed library functions.
 *
 * A row names a function, the op it is recorded as and where its arguments are, counted in machine
 * words from 1 (a dim3 by value takes two words; all arguments read here are integers, so the count
 * is the same on x86-64 and arm64). It becomes the attach cookie (wire/record.h): the kernel half
 * has no function-specific code.
 *
 * To add a function: an op in wire/ids.h if it needs its own, a row in its library's table with all
 * symbol variants, a call of it in sim/ so that the tally test covers it. Where a version changed the arguments, a row
 * with "+" and a symbol that came with it stands before the older one's: the first row that names a place has it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/record.h"

#define FUNCTION_VARIANTS 8

struct probe_function {
	const char *symbols
		[FUNCTION_VARIANTS]; /* all that exist are probed; aliases once; "+NAME": only where NAME is, too */
	union wire_cookie cookie; /* but for .function and .library */
};

/* CALL(source, op, arg0, arg1, stream, flags): positions in words; COOKIE_* flags. */
#define CALL(source_, op_, arg0_, arg1_, stream_, flags_)                                          \
	{                                                                                          \
		.source = (source_), .op = (op_), .arg0 = (arg0_), .arg1 = (arg1_),                \
		.stream = (stream_), .flags = (flags_)                                             \
	}

struct probe_library {
	const char *name;                       /* "libcudart" */
	const struct probe_function *functions; /* ended by a row without symbols */
};

extern const struct probe_library probe_cuda_rt;
extern const struct probe_library probe_cuda_drv;
extern const struct probe_library probe_nccl;

/* probe_function_find - a row that is recorded as (@source, @op) of CUDA, DRIVER or GRAPH: what the
 * arguments of its events are. NULL if there is none. */
const struct probe_function *probe_function_find(unsigned source, unsigned op);

/* probe_cookie - the cookie of row @row in the probed file number @library. */
union wire_cookie probe_cookie(const struct probe_library *lib, int row, unsigned library);
