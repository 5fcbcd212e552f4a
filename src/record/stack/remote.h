/* SPDX-License-Identifier: Apache-2.0 */
/* remote.h - memory of other processes, read without waiting for them (base/bounded.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* remote_read - @len bytes of process @pid, which is @uid's, by bounded_run(). -EFAULT, or as process_vm_readv(2) and
 * that one. */
int remote_read(uint32_t pid, uint32_t uid, uint64_t address, void *out, size_t len);

/* remote_read_now - the same, here: for what runs inside a job. */
int remote_read_now(uint32_t pid, uint64_t address, void *out, size_t len);

/* Files of a traced process's file system that tell names of its code, opened for the
 * symbol process.
 *
 * Whoever made that file system, or may write to a folder of it, is a stranger: no name leads out of
 * it, and nothing but a regular file is opened. What is in the files is read in the symbol process
 * only. @root, where there is one, stands before /proc: "" for the real machine. */

/* foreign_open_debug - the debug information that a distribution keeps apart from the file of this build
 * id: in the file system @root ("/proc/7/root", "" for ours) or else in ours. A descriptor; -ENOENT. */
int foreign_open_debug(const char *root, const uint8_t *build_id, unsigned len);

/* foreign_user - the user that process @pid acts as. -ESRCH. */
int foreign_user(const char *root, uint32_t pid, uid_t *ret);

/* foreign_open_perf_map - the list that a JIT of process @pid, which calls itself @own_pid, writes of its
 * code: /tmp/perf-PID.map. Everybody may write to /tmp: it must be no link, have no other name, and be
 * owned by the process's user or by root. A descriptor; -EPERM if it is another's; -ESRCH if the
 * process is gone; else of file_open_inside(). */
int foreign_open_perf_map(const char *root, uint32_t pid, uint32_t own_pid, struct stat *ret_st);
