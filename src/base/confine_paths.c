/* SPDX-License-Identifier: Apache-2.0 */
/* confine_paths.c - landlock: which files a process may still open. Its interface is declared here
 * as the kernel has it, because headers of distributions are older. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
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

#define LANDLOCK_READ_DIR (1ULL << 3)
#define LANDLOCK_SOCKET   (1ULL << 9)
#define LANDLOCK_DEVICE   (1ULL << 15) /* ioctl() on one */

/* Writing, removing and making files and folders, moving them between folders, truncating. */
#define LANDLOCK_WRITES                                                                            \
	(1ULL << 1 | 1ULL << 4 | 1ULL << 5 | 1ULL << 7 | 1ULL << 8 | 1ULL << 13 | 1ULL << 14)

#define LANDLOCK_BIND    1ULL
#define LANDLOCK_CONNECT 2ULL
#define LANDLOCK_SIGNAL  2ULL

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

/* The kernel's version, 0 if it has no landlock or it is not switched on. */
static int ask_version(void)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_ASK_VERSION);

	return version > 0 ? (int)version : 0;
}

static int add_rule(int rules, int file, uint64_t allowed)
{
	struct landlock_rule rule = {.allowed = allowed, .fd = file};

	return syscall(SYS_landlock_add_rule, rules, LANDLOCK_PATH, &rule, 0) < 0 ? -errno : 0;
}

int confine_paths(const int *files, size_t count, int *ret_version)
{
	int r = 0, version = ask_version();
	struct landlock_rights rights;
	_cleanup_fd_ int fd = -1;

	if (!version) {
		*ret_version = 0;
		return 0;
	}
	fd = (int)syscall(SYS_landlock_create_ruleset, &rights, rights_of(version, &rights), 0);
	if (fd < 0)
		return -errno;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = add_rule(fd, files[i], LANDLOCK_READ_FILE);
	if (r < 0)
		return r;
	if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return -errno;
	*ret_version = version;
	return 0;
}

/* A file has no folder's rights. */
static int allow_reading(int rules, const char *path)
{
	_cleanup_fd_ int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	return add_rule(
		rules, fd, LANDLOCK_READ_FILE | (S_ISDIR(st.st_mode) ? LANDLOCK_READ_DIR : 0));
}

int confine_files(const struct confine_files *f, int *ret_version)
{
	int r = 0, version = ask_version();
	uint64_t below = LANDLOCK_WRITES;
	struct landlock_rights rights;
	_cleanup_fd_ int fd = -1;
	size_t size;

	if (!version) {
		*ret_version = 0;
		return 0;
	}
	size = rights_of(version, &rights);
	rights.files &= ~LANDLOCK_DEVICE;
	if (f->freedoms & CONFINE_SOCKETS)
		below |= LANDLOCK_SOCKET;
	if (f->readable)
		below |= LANDLOCK_READ_FILE | LANDLOCK_READ_DIR;
	else
		rights.files &= ~(LANDLOCK_READ_FILE | LANDLOCK_READ_DIR);
	rights.network &= ~((f->freedoms & CONFINE_LISTENS ? LANDLOCK_BIND : 0) |
			    (f->freedoms & CONFINE_CONNECTS ? LANDLOCK_CONNECT : 0));
	rights.scope &= ~(f->freedoms & CONFINE_SIGNALS ? LANDLOCK_SIGNAL : 0);
	fd = (int)syscall(SYS_landlock_create_ruleset, &rights, size, 0);
	if (fd < 0)
		return -errno;
	for (size_t i = 0; r == 0 && i < f->folder_count; i++) {
		_cleanup_fd_ int folder = open(f->folders[i], O_PATH | O_DIRECTORY | O_CLOEXEC);

		r = folder < 0 ? -errno : add_rule(fd, folder, rights.files & below);
	}
	for (size_t i = 0; r == 0 && i < f->readable_count; i++)
		r = allow_reading(fd, f->readable[i]);
	if (r < 0)
		return r;
	if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return -errno;
	*ret_version = version;
	return 0;
}
