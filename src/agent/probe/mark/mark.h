/* SPDX-License-Identifier: Apache-2.0 */
/* mark.h - places in a program's own libraries that say what a training loop is doing: PyTorch's
 * optimizers, backward passes and data loaders, and Python's garbage collector.
 *
 * Nothing is recorded of a call here; the kernel half only ends a row of the thread's ledger, or
 * changes the line that its time is on. */
#pragma once

#include <stdbool.h>

#include "agent/probe/mark/hook.h"

struct mark_place {
	enum mark_hook hook;
	const char *symbol; /* pattern of elfsym_search() */
	const char *note;   /* or a static probe "provider:name" */
	bool at_return;
};

struct mark_library {
	const char *name;
	const struct mark_place *const *sets; /* the first that is complete is taken; NULL ends */
	const char *none;                     /* what to say of a file with none of them */
};

extern const struct mark_library mark_torch;
extern const struct mark_library mark_python;
