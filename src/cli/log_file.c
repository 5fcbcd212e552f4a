/* SPDX-License-Identifier: Apache-2.0 */
/* log_file.c - see log_file.h. */
#include "cli/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path_user.h"

int log_file_open(const char *path, int *ret, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	bool is_new = access(path, F_OK) < 0;
	int fd, r = path_user_enter(path, &before, reterr);

	if (r < 0)
		return r;
	fd = open(path,
		O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY |
			(before.shared ? O_NOFOLLOW : 0),
		0600);
	if (fd < 0)
		return errinfo_set_exit(
			reterr, EXIT_NO_CREATE, -errno, "--log %s: %s", path, strerror(errno));
	if (is_new)
		(void)owner_give(fd); /* else the user who called sudo reads it with sudo */
	*ret = fd;
	return 0;
}
