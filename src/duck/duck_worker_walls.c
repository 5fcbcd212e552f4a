/* SPDX-License-Identifier: Apache-2.0 */
/* duck_worker_walls.c - see duck_worker_walls.h. */
#include "duck/duck_worker_walls.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/confine.h"
#include "base/spawn.h"
#include "sql/sql_worker.h"

#define OPEN_FILES 16 /* besides those of rows, which are open twice */

static int give_up_privileges(const struct duck_files *f, uint64_t left_ns)
{
	char first[DUCK_FILE_PATH_MAX];
	int r = 0;

	(void)prctl(PR_SET_NAME, DUCK_WORKER_NAME, 0, 0, 0);
	confine_bounding_set();
	if (f->count)
		r = confine_reader(duck_file_path(f, 0, first));
	else
		r = confine_user(CONFINE_NOBODY, CONFINE_NOBODY);
	if (r == 0)
		r = confine_capabilities();
	if (r == 0)
		r = confine_life(SPAWN_SOCKET);
	if (r == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		r = -errno;
	confine_limits(&(struct confine_limits){
		.address_bytes = DUCK_WORKER_ADDRESS,
		.open_files = OPEN_FILES + 2 * f->count,
		.cpu_seconds = left_ns / NS_PER_S + 2,
		.no_processes = true,
	});
	return r;
}

int duck_worker_confine(const struct duck_files *f, uint64_t left_ns, struct duck_walls *ret)
{
	int r = give_up_privileges(f, left_ns);

	if (r == 0)
		r = confine_paths(f->fds, f->count, &ret->landlock);
	if (r == 0)
		r = sql_worker_forbid_calls(true);
	if (r < 0)
		return r;
	ret->seccomp = r > 0;
	return 0;
}
