/* SPDX-License-Identifier: Apache-2.0 */
/* remote.h - memory of other processes, read without waiting for them (base/bounded.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* remote_read - @len bytes of process @pid, which is @uid's, by bounded_run(). -EFAULT, or as process_vm_readv(2) and
 * that one. */
int remote_read(uint32_t pid, uint32_t uid, uint64_t address, void *out, size_t len);

/* remote_read_now - the same, here: for what runs inside a job. */
int remote_read_now(uint32_t pid, uint64_t address, void *out, size_t len);
