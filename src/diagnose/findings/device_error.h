/* SPDX-License-Identifier: Apache-2.0 */
/* device_error.h - the error numbers of CUDA and NCCL that matter, and the XID numbers of the
 * driver, with what they mean for a diagnosis. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/problem.h"

enum error_class {
	ERROR_EXPECTED, /* an answer, not a failure */
	ERROR_MEMORY,   /* reported by detect_memory.c */
	ERROR_CAPTURE,  /* of a graph capture: reported by detect_graph.c */
	ERROR_REFUSED,  /* a call with arguments that make no sense; nothing ran */
	ERROR_LAUNCH,   /* a kernel that cannot be built or launched as asked */
	ERROR_VERSION,  /* driver, toolkit and GPU do not fit */
	ERROR_DEVICE,   /* the device or its code failed */
};

struct error_row {
	int code;
	const char *name;
	enum error_class class;
	bool sticky; /* every later call of the process returns it too */
	const char *meaning;
};

/* error_find - never NULL: an unknown number has a row without a name ("error"). */
const struct error_row *error_find(unsigned source, int code);

/* error_advice - what to do about this very error; NULL: what helps against its class does. */
const char *error_advice(unsigned source, int code);

struct xid_row {
	int number;
	enum problem problem;
	enum severity severity;
	const char *meaning;
};

/* xid_find - the row of an XID; NULL for one that is not in the table. */
const struct xid_row *xid_find(int64_t number);
