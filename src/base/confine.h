/* SPDX-License-Identifier: Apache-2.0 */
/* confine.h - what a process gives up before it touches code or data that it does not trust.
 *
 * For a process made by spawn_self(); a thread of a program that goes on working has
 * base/confine_thread.h. The order matters: confine_bounding_set() needs a capability,
 * confine_user() takes it away, confine_capabilities() makes that final, and confine_life() comes
 * after them because a change of user clears what it sets. Then confine_paths() and
 * confine_calls().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CONFINE_NOBODY 65534

struct confine_limits {
	uint64_t address_bytes; /* memory and mapped files; not set under sanitizers, which need
				   more */
	uint64_t file_bytes;    /* of a file that it writes */
	uint64_t open_files;
	uint64_t cpu_seconds; /* 0: as many as it likes */
	bool no_processes;    /* nor threads; root is not bound by it */
};

/* confine_limits - set them, and no core file and no locked memory. Lower ones that are in force
 * stay. */
void confine_limits(const struct confine_limits *limits);

/* confine_bounding_set - no capability can come back through an executable file. */
void confine_bounding_set(void);

/* confine_user - from root to @uid with the one group @gid. Nothing if it is not root. */
int confine_user(uid_t uid, gid_t gid);

/* confine_reader - from root, which cannot read the files of others without its capabilities, to the
 * owner of @path, if that one can reach it. Nothing if it is not root or there is no such file. */
int confine_reader(const char *path);

/* confine_capabilities - have none, and none to be gained by any means. */
int confine_capabilities(void);

/* confine_life - die with the parent whose end of @socket is open. -ESRCH if it is gone already. */
int confine_life(int socket);

/* confine_paths - nothing can be opened by its path but the @count files behind @files
 * (descriptors, O_PATH is enough), and these only to be read; no network, no signals to the
 * outside, as far as the kernel's landlock goes: *ret_version is its version, 0 if there is none
 * and nothing was forbidden. */
int confine_paths(const int *files, size_t count, int *ret_version);

enum confine_freedom {        /* besides files: what landlock could forbid and shall not */
	CONFINE_CONNECTS = 1, /* TCP, to any port */
	CONFINE_LISTENS = 2,  /* TCP, on any port */
	CONFINE_SIGNALS = 4,  /* signals to processes outside */
	CONFINE_SOCKETS = 8,  /* Unix sockets, in its folders */
};

struct confine_files {
	const char *const *folders; /* files are changed below these alone */
	size_t folder_count;
	/* Files and folders of which, and of what is below them and below @folders, contents are
	 * read; what is not there is left out. NULL: reading stays free. */
	const char *const *readable;
	size_t readable_count;
	unsigned freedoms; /* of enum confine_freedom */
};

/* confine_files - the calling thread uses the files of @f, executes none and makes no device.
 * *ret_version is as above.
 *
 * Landlock also forbids to look into processes outside (mem, root, exe of /proc/PID): not for a
 * thread that has to. */
int confine_files(const struct confine_files *f, int *ret_version);

struct confine_choice { /* a call that is free for some values of one argument */
	uint16_t call;
	uint8_t arg;
	uint8_t count;
	const uint16_t *values;
};

/* CONFINE_IOCTL - that of ioctl(2) for whoever reads, writes and prints: size and kind of what is open. */
#define CONFINE_IOCTLS 4
extern const uint16_t confine_ioctls[CONFINE_IOCTLS];
#define CONFINE_IOCTL                                                                              \
	{                                                                                          \
		.call = __NR_ioctl, .arg = 1, .values = confine_ioctls, .count = CONFINE_IOCTLS    \
	}

struct confine_calls {
	const uint16_t *calls; /* besides those that every process needs to live and to talk */
	size_t call_count;
	const uint16_t *fcntl_commands;
	size_t fcntl_count;
	const struct confine_choice *choices;
	size_t choice_count;
	bool opens;        /* opens files by their path to read them, asks about paths */
	bool links_hidden; /* but not where a link leads */
	bool writes;       /* and to write them */
	bool forks;        /* begins processes, in the namespaces that it is in */
	/* A call that such a thread never makes, but whoever has taken it over would (execve,
	 * ptrace, mount, …), ends the process. */
	bool strict;
	bool logged; /* what is refused goes to the kernel's audit log */
};

/* CONFINE_CALLS - the first six members, of three arrays. */
#define CONFINE_CALLS(list, commands, values)                                                      \
	.calls = list, .call_count = ARRAY_SIZE(list), .fcntl_commands = commands,                 \
	.fcntl_count = ARRAY_SIZE(commands), .choices = values, .choice_count = ARRAY_SIZE(values)

/* confine_calls - every other system call of the calling thread, and of what it begins, fails with
 * EPERM; no memory becomes executable, and signals go to this process alone unless kill(2) is
 * listed. 1 if that is in force, 0 under sanitizers, which need more calls. */
int confine_calls(const struct confine_calls *c);
