/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h - whom a process works for, read from the process itself.
 *
 * To add a launcher or a batch system: a row in the tables of identity.c. */
#pragma once

#include <stdint.h>

#include "base/errinfo.h"
#include "model/identity.h"

/* identity_read - the process's name and identity; ret->seen is left 0.
 * -ESRCH if it is gone, or was replaced by another of the same number while it was read; -ENOMEM.
 * What may not be read is unknown and, for the environment, marked so. */
int identity_read(const char *root, uint32_t pid, struct process *ret);

/* identity_node_check - can @name be a node's name? -EINVAL with the sentence if not: it must not
 * be empty, longer than 253 bytes, or hold a colon (ids of events read node:seq) or a byte that
 * acts on a terminal. */
int identity_node_check(const char *name, struct errinfo *reterr);
