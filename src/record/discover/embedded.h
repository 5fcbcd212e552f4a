/* SPDX-License-Identifier: Apache-2.0 */
/* embedded.h - libraries of any name that are known by their symbols: a CUDA runtime that was linked
 * into them (CuPy, XGBoost, CTranslate2), an NCCL that was, or a stand-in for NCCL (mscclpp_nccl.so).
 *
 * A process maps hundreds of files, so each is looked at once: what was found is kept by (dev,
 * inode), time of change and size. Of most files only the headers and the names of exported and
 * imported symbols are read; .symtab of those alone that load libraries by themselves, as the
 * runtime and NCCL both do. */
#pragma once

#include "base/macros.h"
#include "model/identity.h"

struct embedded;

int embedded_new(struct embedded **ret);
DECLARE_FREE(struct embedded, embedded_free)

/* embedded_find - a row for each library that files of @pid hold, behind the @count rows of @rows, of
 * which there are at most @max; *ret_dropped grows by those that did not fit. @root as in discover.h.
 * Files that are ours by name, and programs, are left out. Looks at new files for some EMBEDDED_LOOK_NS;
 * *ret_is_partial: not all were looked at, the next call goes on.
 * Returns the number of rows now; -ESRCH, -EACCES of reading its maps; -ENOMEM. */
#define EMBEDDED_LOOK_NS 100000000ull
int embedded_find(struct embedded *e, const char *root, uint32_t pid, struct target_library *rows,
	size_t count, size_t max, size_t *ret_dropped, bool *ret_is_partial);

/* embedded_kinds - which libraries the file @fd holds: bits 1 << kind of TARGET_CUDART and
 * TARGET_NCCL. @fd stays the caller's. What is no library holds none. */
unsigned embedded_kinds(int fd, const char *name);
