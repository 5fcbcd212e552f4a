/* SPDX-License-Identifier: Apache-2.0 */
/* serve_confine.c - see serve_confine.h and docs/adr/0011-confined-tracer.md.
 *
 * A recording may be another user's (that of the one who called sudo): CAP_DAC_OVERRIDE reads it and lets
 * SQLite make the file that a live one needs beside it, which landlock allows in that folder alone; with
 * CAP_SETUID a thread takes that user's rights to files (setfsuid; setuid is no call of a server's). */
#include "serve/serve_confine.h"

#include <libgen.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <unistd.h>

#include "base/confine_thread.h"
#include "base/path_user.h"
#include "sql/sql_worker.h"

/* The folder of @path, if it is there. */
static size_t add_folder(const char *path, char room[PATH_MAX], const char **folders, size_t count)
{
	char *folder;

	if (!path || snprintf(room, PATH_MAX, "%s", path) >= PATH_MAX)
		return count;
	folder = dirname(room);
	if (access(folder, F_OK) == 0)
		folders[count++] = folder;
	return count;
}

void serve_confine(struct serve_confine *c)
{
	static const struct spawn_program programs[] = {{SQL_WORKER_NAME, NULL}};
	_cleanup_free_ char *default_path = NULL, *real = realpath(c->db, NULL);
	char rooms[3][PATH_MAX];
	const char *folders[ARRAY_SIZE(rooms)];
	struct confine_server s = {
		.capabilities = CONFINE_CAP(CAP_CHOWN) | CONFINE_CAP(CAP_DAC_OVERRIDE) |
				CONFINE_CAP(CAP_KILL) | CONFINE_CAP(CAP_SETUID) |
				CONFINE_CAP(CAP_SETGID) | CONFINE_CAP(CAP_NET_BIND_SERVICE),
		.files = {.folders = folders},
		.programs = programs,
		.program_count = ARRAY_SIZE(programs),
	};
	size_t n = 0;

	check_probe(&c->probes);
	c->probes.is_old = true;
	(void)store_default_path(&default_path, NULL);
	n = add_folder(c->db, rooms[0], folders, n);
	n = add_folder(real, rooms[1], folders, n);
	n = add_folder(default_path, rooms[2], folders, n);
	s.files.folder_count = n;
	confine_server(&s);
}
