/* SPDX-License-Identifier: Apache-2.0 */
/* port_holder.c - see port_holder.h. The kernel lists sockets by number, and each process what it has
 * open; both are read anew each time. */
#include "base/port_holder.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/macros.h"

#define TABLE_MAX (8 << 20) /* 150 bytes a socket */
#define LISTENING 0x0a
#define LINKS_MAX 65536 /* descriptors looked at in a process */

static void dir_closep(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* The number of the socket that listens on @port, of a line of /proc/net/tcp; 0: not such a line. */
static uint64_t listening_inode(const char *line, uint16_t port)
{
	unsigned local, state;
	uint64_t inode;

	if (sscanf(line,
		    " %*u: %*[0-9A-Fa-f]:%4x %*[0-9A-Fa-f]:%*x %2x %*x:%*x %*x:%*x %*x %*u %*u %" SCNu64,
		    &local, &state, &inode) != 3)
		return 0;
	return local == port && state == LISTENING ? inode : 0;
}

static uint64_t find_socket(const char *root, uint32_t inside, uint16_t port)
{
	char tables[2][48];

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		if (inside)
			snprintf(tables[i], sizeof(tables[i]), "/proc/%" PRIu32 "/net/tcp%s",
				inside, i ? "6" : "");
		else
			snprintf(tables[i], sizeof(tables[i]), "/proc/net/tcp%s", i ? "6" : "");
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		_cleanup_buf_ struct buf text = BUF_INIT(TABLE_MAX + 1);

		(void)file_read_at(root, tables[i], TABLE_MAX, &text);
		for (const char *line = buf_str(&text); line; line = strchr(line, '\n')) {
			uint64_t inode;

			line += *line == '\n';
			inode = listening_inode(line, port);
			if (inode)
				return inode;
		}
	}
	return 0;
}

static bool holds(const char *root, const char *pid, const char *name)
{
	_cleanup_(dir_closep) DIR *d = NULL;
	char path[PATH_MAX], fds[64], target[64];
	struct dirent *e;

	snprintf(fds, sizeof(fds), "/proc/%.16s/fd", pid);
	if (file_join(path, sizeof(path), root, fds) < 0)
		return false;
	d = opendir(path);
	for (int i = 0; d && i < LINKS_MAX && (e = readdir(d)); i++) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);

		if (n <= 0)
			continue;
		target[n] = 0;
		if (!strcmp(target, name))
			return true;
	}
	return false;
}

int port_holder_find(const char *root, uint32_t inside, uint16_t port, struct port_holder *ret)
{
	_cleanup_(dir_closep) DIR *d = NULL;
	uint64_t inode = find_socket(root, inside, port);
	char path[PATH_MAX], name[64], comm[64];
	struct dirent *e;

	if (!inode || file_join(path, sizeof(path), root, "/proc") < 0)
		return -ENOENT;
	snprintf(name, sizeof(name), "socket:[%" PRIu64 "]", inode);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9' || !holds(root, e->d_name, name))
			continue;
		snprintf(comm, sizeof(comm), "/proc/%.16s/comm", e->d_name);
		*ret = (struct port_holder){.pid = (uint32_t)strtoul(e->d_name, NULL, 10)};
		if (file_read_line(root, comm, ret->comm, sizeof(ret->comm)) < 0)
			snprintf(ret->comm, sizeof(ret->comm), "a program");
		return 0;
	}
	return -ENOENT;
}
