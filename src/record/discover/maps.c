/* SPDX-License-Identifier: Apache-2.0 */
/* maps.c - reads /proc/PID/maps in pieces, line by line in a fixed buffer: a process may have
 * 65,530 mappings with names of 4 KiB each. A line that does not fit is skipped to its end. */
#include "record/discover/maps.h"

#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "record/discover/discover.h"
#include "base/macros.h"

#define DELETED " (deleted)"

/* A hexadecimal or decimal number up to @stop, which is consumed. */
static bool take_number(const char **p, const char *end, unsigned base, char stop, uint64_t *ret)
{
	const char *s = *p;
	uint64_t v = 0;

	for (; s < end && *s != stop; s++) {
		unsigned digit = *s >= '0' && *s <= '9'   ? (unsigned)(*s - '0')
				 : *s >= 'a' && *s <= 'f' ? (unsigned)(*s - 'a') + 10
							  : 99;

		if (digit >= base || v > (UINT64_MAX - digit) / base)
			return false;
		v = v * base + digit;
	}
	if (s == *p || s == end)
		return false;
	*p = s + 1;
	*ret = v;
	return true;
}

bool maps_parse(const char *line, size_t len, struct maps_entry *ret)
{
	const char *p = line, *end = line + len;
	struct maps_entry e = {0};
	uint64_t major, minor;

	if (!take_number(&p, end, 16, '-', &e.start) || !take_number(&p, end, 16, ' ', &e.end))
		return false;
	if (end - p < 5 || p[4] != ' ')
		return false;
	e.executable = p[2] == 'x';
	p += 5;
	if (!take_number(&p, end, 16, ' ', &e.offset) || !take_number(&p, end, 16, ':', &major) ||
		!take_number(&p, end, 16, ' ', &minor) || !take_number(&p, end, 10, ' ', &e.inode))
		return false;
	e.dev = makedev((unsigned)major, (unsigned)minor);
	while (p < end && *p == ' ')
		p++;
	if (e.inode && (size_t)(end - p) > strlen(DELETED) &&
		memcmp(end - strlen(DELETED), DELETED, strlen(DELETED)) == 0) {
		e.deleted = true;
		end -= strlen(DELETED);
	}
	e.path = p;
	e.path_len = (size_t)(end - p);
	*ret = e;
	return true;
}

struct line_reader {
	char data[16384];
	size_t len;
	bool skipping; /* inside a line that was too long */
	bool done;
	maps_take *take;
	void *arg;
};

/* Looks at the complete lines in @r and keeps the rest of the last one. */
static void take_lines(struct line_reader *r)
{
	char *p = r->data, *end = r->data + r->len, *nl;
	struct maps_entry e;

	while (!r->done && (nl = memchr(p, '\n', (size_t)(end - p)))) {
		if (!r->skipping && maps_parse(p, (size_t)(nl - p), &e))
			r->done = !r->take(r->arg, &e);
		r->skipping = false;
		p = nl + 1;
	}
	r->len = (size_t)(end - p);
	memmove(r->data, p, r->len);
	if (r->len == sizeof(r->data)) {
		r->skipping = true;
		r->len = 0;
	}
}

int maps_read(const char *root, uint32_t pid, maps_take *take, void *arg)
{
	struct line_reader r = {.len = 0, .take = take, .arg = arg};
	_cleanup_fd_ int fd = -1;
	size_t total = 0;

	fd = discover_open_file(root, pid, "maps");
	if (fd < 0)
		return fd;
	while (!r.done) {
		ssize_t got = read(fd, r.data + r.len, sizeof(r.data) - r.len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno == EPERM ? -EACCES : -errno;
		if (got == 0)
			break;
		r.len += (size_t)got;
		total += (size_t)got;
		take_lines(&r);
		if (total >= MAPS_BYTES_MAX)
			return 1;
	}
	return 0;
}
