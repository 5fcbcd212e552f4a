/* SPDX-License-Identifier: Apache-2.0 */
/* discover.h - which processes use CUDA, and where the libraries are that they map.
 *
 * Implemented in scan.c (facts of one process), library.c (its libraries by name), scan.c (all
 * processes, repeatedly), disk.c and command_files.c (copies that nobody maps yet). Everything is read from /proc
 * under a root prefix ("" for the real machine). What /proc says is hostile: names are any bytes,
 * lines of any length, processes come and go between two reads. */
#pragma once

#include "base/errinfo.h"
#include "base/macros.h"
#include "model/identity.h"

#define DISCOVER_LIBRARIES_MAX 32  /* distinct files per process */
#define DISCOVER_FILES_MAX     256 /* copies on disk */

/* ---- one process ---- */

struct discover_process {
	uint32_t pid, ppid, uid;
	uint64_t start_ticks;
	uint64_t vsize_bytes; /* 0 for kernel threads */
	uint32_t threads;
	char comm[TARGET_COMM_MAX];
	char cmdline[TARGET_CMDLINE_MAX]; /* arguments joined by spaces, cut at the limit */
	char cgroup[TARGET_PATH_MAX]; /* of the unified hierarchy, else of the first line; or "" */
};

/* discover_process - the facts of @pid. -ESRCH if there is no such process; -EBADMSG if /proc made
 * no sense. What may not be read (cmdline, cgroup) is "". */
int discover_process(const char *root, uint32_t pid, struct discover_process *ret);

/* discover_process_stat - only what one read of /proc/PID/stat gives; uid, cmdline and cgroup are
 * left empty. */
int discover_process_stat(const char *root, uint32_t pid, struct discover_process *ret);

/* discover_uid - whose process @pid is. */
int discover_uid(const char *root, uint32_t pid, uint32_t *ret_uid);

/* discover_cpus - how many CPUs the first thread of @pid may run on; 0: not known. */
uint32_t discover_cpus(const char *root, uint32_t pid);

/* discover_program - what @pid runs if it is an interpreter (model/identity.h), and discover_cpus().
 * What may not be read is "" and 0. */
void discover_program(
	const char *root, uint32_t pid, char ret_script[SCRIPT_MAX], uint32_t *ret_cpus);

/* discover_open_file - /proc/PID/@name, open for reading, for what is too large to be read at once. Returns a
 * descriptor; -ESRCH if the process is gone; -EACCES if it may not be read; else of open(2). */
int discover_open_file(const char *root, uint32_t pid, const char *name);

/* ---- its libraries ---- */

/* discover_library_kind - what a file of this base name is; -ENOENT if it is none of ours. */
int discover_library_kind(const char *basename, size_t len, enum target_library_kind *ret);

/* discover_libraries - the files of our kinds that @pid has mapped executable, one row per file.
 * Returns their number, at most @max; *ret_dropped counts the mappings that did not fit and is at
 * least 1 if the maps were longer than MAPS_BYTES_MAX.
 * -ESRCH if the process is gone; -EACCES if its maps may not be read. */
int discover_libraries(const char *root, uint32_t pid, struct target_library *ret, size_t max,
	size_t *ret_dropped);

/* discover_uses_cuda - is one of them a library of CUDA? */
bool discover_uses_cuda(const struct target_library *libraries, size_t count);

/* discover_library_open - the very file that @pid has mapped as @lib, open for reading: through
 * /proc/PID/map_files, else by its name in the process's root or, if the process is gone, in ours.
 * A regular file with the mapping's (dev, inode), however names are exchanged meanwhile.
 * Returns a descriptor; -ESTALE if only other files are found; -EREMOTE if a user's program delivers it, which
 * could keep whoever opens it waiting; -EACCES or -EPERM if map_files needs CAP_CHECKPOINT_RESTORE; else of
 * open(2). */
int discover_library_open(const char *root, uint32_t pid, const struct target_library *lib);

/* discover_executable_open - the program file of @pid, open for reading, whatever became of its
 * name; *ret describes it (kind TARGET_EXECUTABLE, map_start 0).
 * Returns a descriptor; -ESRCH if the process is gone; -EACCES; -ENAMETOOLONG. */
int discover_executable_open(const char *root, uint32_t pid, struct target_library *ret);

/* discover_file_identity - (dev, inode) of an open file as /proc/PID/maps shows it for whoever maps
 * it, which on some file systems is not what stat(2) says. */
int discover_file_identity(int fd, uint64_t *ret_dev, uint64_t *ret_inode);

/* ---- all processes ---- */

struct discover_scanner;

struct discover_result {
	struct target_process *processes; /* by pid */
	size_t count;
	size_t seen;       /* processes looked at, kernel threads included */
	size_t maps_read;  /* of these, maps read in this scan; the others were known and unchanged
			    */
	size_t unreadable; /* their maps may not be read: needs CAP_SYS_PTRACE */
	size_t dropped;    /* beyond the ceiling of known processes: not looked at */
	size_t libraries_dropped; /* mappings beyond the ceiling per process */
};

int discover_scanner_new(const char *root, struct discover_scanner **ret);
DECLARE_FREE(struct discover_scanner, discover_scanner_free)

/* discover_scan - all CUDA processes now. *ret belongs to the scanner and is valid until the next
 * scan. Returns 0, -ENOMEM, or why /proc could not be listed. */
int discover_scan(struct discover_scanner *s, const struct discover_result **ret);

/* discover_scanner_libraries - as discover_libraries(); and of a process that uses CUDA also the
 * libraries that files of other names hold (embedded.h). */
int discover_scanner_libraries(struct discover_scanner *s, uint32_t pid, struct target_library *ret,
	size_t max, size_t *ret_dropped);

/* ---- on disk ---- */

struct discover_command {  /* a program that has not run yet */
	char *const *argv; /* any of its words may name another program: env, timeout, torchrun */
	char *const *envp;
	const char *folder; /* that it is started in, absolute */
};

/* discover_library_files - copies of the libraries on disk: those that @c (may be NULL) would load, as
 * far as its words, its environment and its program's file tell, and its programs themselves
 * (TARGET_EXECUTABLE); LD_LIBRARY_PATH, the usual directories, Python and conda environments, Pythons
 * on PATH and running ones, the loader's cache (which holds what ld.so.conf names); and the same under
 * /proc/1/root when that is another file system (an agent in a container). One row per file, map_start
 * 0. *ret is the caller's (free()). Returns the number of rows, or -ENOMEM. */
int discover_library_files(
	const char *root, const struct discover_command *c, struct target_library **ret);

/* discover_file_open - the regular file at @path, open for reading; its (dev, inode) in @lib become
 * those that maps would show. Returns a descriptor, or of open(2). */
int discover_file_open(const char *path, struct target_library *lib);

/* discover_library_file - the library at @path, which the user named. -ENOENT no such file;
 * -EBADMSG if neither its name nor its symbols are those of a library we know. */
int discover_library_file(const char *path, struct target_library *ret, struct errinfo *reterr);
