/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_log.c - see mcp_log.h. Names come from clients, so they are escaped. */
#include "cli/mcp_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/path_user.h"
#include "base/text.h"

#define LINE_MAX_BYTES 1024
#define NAME_SHOWN     128

int mcp_log_open(const char *path, struct mcp_log *ret, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
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
	ret->fd = fd;
	return 0;
}

void mcp_log_close(struct mcp_log *l)
{
	fd_closep(&l->fd);
}

void mcp_log_line(void *arg, const char *method, const char *name, uint64_t ns, bool failed)
{
	_cleanup_buf_ struct buf b = BUF_INIT(LINE_MAX_BYTES);
	const struct mcp_log *l = arg;
	time_t now = time(NULL);
	char when[32] = "";
	struct tm tm;

	if (gmtime_r(&now, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	buf_printf(&b, "%s %s ", when, failed ? "failed" : "ok");
	text_escape_terminal_len(&b, method, strnlen(method, NAME_SHOWN));
	buf_putc(&b, ' ');
	text_escape_terminal_len(&b, name ? name : "-", strnlen(name ? name : "-", NAME_SHOWN));
	buf_printf(&b, " %llu ms\n", (unsigned long long)(ns / NS_PER_MS));
	/* A log that cannot be written does not keep anybody from being answered. */
	if (!b.err && write(l->fd, b.data, b.len) < 0)
		return;
}
