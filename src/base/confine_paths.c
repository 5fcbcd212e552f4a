/* SPDX-License-Identifier: Apache-2.0 */
/* confine_paths.c - landlock: which files a process may still open. Its interface is declared here
 * as the kernel has it, because headers of distributions are older. */
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/confine.h"
#include "base/macros.h"

struct landlock_rights {
	uint64_t files, network, scope;
};

struct landlock_rule {
	uint64_t allowed;
	int32_t fd;
} __attribute__((packed));

#define LANDLOCK_ASK_VERSION 1u
#define LANDLOCK_PATH        1u
#define LANDLOCK_READ_FILE   (1ULL << 2)

/* All that versions 1 to 6 can forbid; 7 brought no right. */
static size_t rights_of(int version, struct landlock_rights *r)
{
	static const unsigned file_rights[] = {0, 13, 14, 15, 15, 16};

	*r = (struct landlock_rights){
		.files = (1ULL << file_rights[MIN((size_t)version, ARRAY_SIZE(file_rights) - 1)]) -
			 1,
		.network = 3, /* bind and connect */
		.scope = 3,   /* abstract sockets and signals to the outside */
	};
	return version < 4   ? offsetof(struct landlock_rights, network)
	       : version < 6 ? offsetof(struct landlock_rights, scope)
			     : sizeof(*r);
}

int confine_paths(const int *files, size_t count, int *ret_version)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_ASK_VERSION);
	struct landlock_rights rights;
	_cleanup_fd_ int fd = -1;

	if (version <= 0) { /* not built in, or not switched on */
		*ret_version = 0;
		return 0;
	}
	fd = (int)syscall(
		SYS_landlock_create_ruleset, &rights, rights_of((int)version, &rights), 0);
	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < count; i++) {
		struct landlock_rule rule = {.allowed = LANDLOCK_READ_FILE, .fd = files[i]};

		if (syscall(SYS_landlock_add_rule, fd, LANDLOCK_PATH, &rule, 0) < 0)
			return -errno;
	}
	if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return -errno;
	*ret_version = (int)version;
	return 0;
}
