/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_sentence.h - which kernels the launches were of that an incident is about, in its explanation. The
 * engine knows them by number; names come from whoever has them: the tracer, or the file. */
#pragma once

#include "model/incident.h"

/* kernel_name_short - without what it returns, its template's arguments and its own:
 * "at::native::vectorized_elementwise_kernel" of 200 characters; cut to @size. Returns @out. */
#define KERNEL_SHORT_MAX 96
const char *kernel_name_short(const char *name, char out[KERNEL_SHORT_MAX]);

/* kernel_note - @e is among what proves @inc: if it is a launch, its kernel is counted. */
void kernel_note(struct incident *inc, const struct event *e);

/* The name of @function of @pid; NULL: not known. */
typedef const char *kernel_namer(void *arg, uint32_t pid, uint64_t function);

/* kernel_sentence_put - adds the names to the explanation; nothing where none is known, or no kernel has half
 * of the launches. */
void kernel_sentence_put(struct incident *inc, kernel_namer *name, void *arg);
