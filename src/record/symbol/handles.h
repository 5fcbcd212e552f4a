/* SPDX-License-Identifier: Apache-2.0 */
/* handles.h - the variables in which programs keep the handles of their kernels.
 *
 * nvcc 13 gives each kernel a stub that asks for the kernel's handle at its first launch and keeps it
 * in a static variable: _ZZ53__device_stub__Z33kernelPmPmE8__handle, in .bss, whose symbol has the
 * kernel's whole name. What is in the variable of a running process is therefore that kernel's handle.
 * Used in the symbol process only. */
#pragma once

#include "record/symbol/image.h"

#define HANDLES_MAX 65536 /* of one file; PyTorch's libtorch_cuda has 24,000 */

/* handles_list - the virtual addresses of all of them, ascending, in *ret, which is the caller's
 * (free()). Returns their number, at most HANDLES_MAX; -ENOMEM. */
int handles_list(const struct image *i, uint64_t **ret);

/* handles_kernel - the mangled name of the kernel whose variable is at @vaddr, @ret_len bytes in the
 * file; NULL: there is none. Goes through all symbols. */
const char *handles_kernel(const struct image *i, uint64_t vaddr, size_t *ret_len);

/* handles_parse - the kernel's name in that of a variable, @len bytes long; NULL: it is none. */
const char *handles_parse(const char *name, size_t len, size_t *ret_len);
