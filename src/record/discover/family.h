/* SPDX-License-Identifier: Apache-2.0 */
/* family.h - a process and its descendants: what `--pid` means. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/errinfo.h"

/* family_list - @pid and all its present descendants, @pid first. Returns their number (at most
 * @max), -ESRCH if there is no such process, -ENOMEM. */
int family_list(const char *root, uint32_t pid, uint32_t *ret, size_t max);

/* family_uses_cuda - 0 if @pid or a descendant has a CUDA library mapped. -ESRCH: no such process;
 * -EBADMSG: none of them uses CUDA; -EACCES: it may not be looked at. Each with its sentence. */
int family_uses_cuda(const char *root, uint32_t pid, struct errinfo *reterr);
