/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.c - privileges, then paths (landlock), then system calls (seccomp): see base/confine.h.
 *
 * Each is enough against most of what a hostile file could do with a fault in a reader; together
 * they leave it this process's own memory, the files it was handed and the socket. */
#include "record/symbol/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "record/symbol/child.h"
#include "base/confine.h"
#include "base/macros.h"

#define ADDRESS_BYTES                                                                              \
	(8ULL << 30)             /* the largest libraries have 2 GB, and libdw maps them again     \
				  */
#define FILE_BYTES (64ULL << 20) /* the largest unwind table: 8 Mi rows of 6 bytes, and rules */
#define OPEN_FILES 1024

static int give_up_privileges(int socket)
{
	static const struct confine_limits limits = {
		.address_bytes = ADDRESS_BYTES,
		.file_bytes = FILE_BYTES,
		.open_files = OPEN_FILES,
	};
	int r;

	confine_limits(&limits);
	(void)prctl(PR_SET_NAME, SYMBOL_CHILD_NAME, 0, 0, 0);
	confine_bounding_set();
	r = confine_user(CONFINE_NOBODY, CONFINE_NOBODY);
	if (r == 0)
		r = confine_capabilities();
	if (r == 0)
		r = confine_life(socket);
	if (r == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		r = -errno;
	return r;
}

/* libdw asks for the path of each file that it is given (readlink, by realpath()), to find from there
 * the other half of debug information that dwz has split. That half could not be opened here, and
 * seccomp cannot tell one path from another: so the question is refused with the rest, and libdw
 * goes on without an answer. */
static int forbid_calls(void)
{
	static const uint16_t calls[] = {/* the table it hands back */
		__NR_memfd_create, __NR_ftruncate, __NR_write, __NR_pwrite64};
	static const uint16_t fcntl_commands[] = {
		F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC, F_ADD_SEALS, F_GET_SEALS};

	return confine_calls(&(struct confine_calls){
		.calls = calls,
		.call_count = ARRAY_SIZE(calls),
		.fcntl_commands = fcntl_commands,
		.fcntl_count = ARRAY_SIZE(fcntl_commands),
	});
}

int sandbox_enter(int socket, struct sandbox *ret)
{
	struct sandbox s = {0};
	int r = give_up_privileges(socket);

	if (r == 0)
		r = confine_paths(NULL, 0, &s.landlock);
	if (r == 0)
		r = forbid_calls();
	if (r < 0)
		return r;
	s.seccomp = r > 0;
	*ret = s;
	return 0;
}
