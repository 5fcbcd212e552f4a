/* SPDX-License-Identifier: Apache-2.0 */
/* output.c - see output.h. What is written holds data of a recording, so it is for its owner alone,
 * and root writes it with the rights of whoever may change the path. */
#include "base/output.h"

#include <fcntl.h>
#include <libgen.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/path_user.h"

#define BLOCK       512
#define NAMES_TRIED 16

struct header { /* as POSIX lays it out: numbers are octal digits with a NUL behind them */
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
	char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "the header is one block");

static void fill(struct buf *b, size_t len)
{
	static const char zeros[BLOCK];

	buf_append(b, zeros, len);
}

int tar_put(
	struct buf *b, const char *name, mode_t mode, int64_t mtime_s, const void *data, size_t len)
{
	struct header h = {.type = '0'};
	const unsigned char *bytes = (const unsigned char *)&h;
	unsigned sum = 0;

	if (strlen(name) >= sizeof(h.name))
		return -ENAMETOOLONG;
	memcpy(h.name, name, strlen(name));
	snprintf(h.mode, sizeof(h.mode), "%07o", (unsigned)mode & 07777);
	snprintf(h.uid, sizeof(h.uid), "%07o", 0U);
	snprintf(h.gid, sizeof(h.gid), "%07o", 0U);
	snprintf(h.size, sizeof(h.size), "%011llo", (unsigned long long)len);
	snprintf(
		h.mtime, sizeof(h.mtime), "%011llo", (unsigned long long)mtime_s & 077777777777ULL);
	memcpy(h.magic, "ustar", 6);
	memcpy(h.version, "00", 2);
	memset(h.checksum, ' ', sizeof(h.checksum)); /* as it counts itself */
	for (size_t i = 0; i < sizeof(h); i++)
		sum += bytes[i];
	snprintf(h.checksum, sizeof(h.checksum), "%06o", sum & 0777777);
	h.checksum[7] = ' ';
	buf_append(b, &h, sizeof(h));
	buf_append(b, data, len);
	fill(b, (BLOCK - len % BLOCK) % BLOCK);
	return b->err;
}

int tar_end(struct buf *b)
{
	fill(b, BLOCK);
	fill(b, BLOCK);
	return b->err;
}

static int fail(const struct output *o, int r, struct errinfo *reterr)
{
	return errinfo_set_exit(
		reterr, EXIT_NO_CREATE, r, "cannot write %s: %s", o->path, strerror(-r));
}

/* A file without a name: whatever ends the program, nothing of it stays. */
static int open_nameless(const char *path)
{
	_cleanup_free_ char *folder = strdup(path);

	return folder ? open(dirname(folder), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600) : -1;
}

/* It gets an unused one first, since a link cannot replace a file. */
static int give_name(struct output *o)
{
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", o->fd);
	for (int i = 0; i < NAMES_TRIED; i++) {
		uint32_t random;

		if (getrandom(&random, sizeof(random), 0) != sizeof(random) ||
			snprintf(o->temporary, sizeof(o->temporary), "%s.%08" PRIx32, o->path,
				random) >= (int)sizeof(o->temporary))
			return -ENAMETOOLONG;
		if (linkat(AT_FDCWD, link, AT_FDCWD, o->temporary, AT_SYMLINK_FOLLOW) == 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	o->temporary[0] = 0;
	return -errno;
}

int output_open(struct output *o, const char *path, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	struct stat st;
	int n;

	*o = (struct output){.fd = -1, .path = path};
	if (!strcmp(path, "-")) {
		o->path = "the standard output";
		o->is_stdout = true;
		fflush(stdout); /* what it holds goes before */
		o->fd = STDOUT_FILENO;
		return 0;
	}
	n = path_user_enter(path, &before, reterr);
	if (n < 0)
		return n;
	if (file_is_recording(path)) /* behind a link too */
		return errinfo_set_exit(reterr, EXIT_NO_CREATE, -EEXIST,
			"%s is a recording, or belongs to one, and is not overwritten: give another name",
			path);
	if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		o->fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY |
					   (before.shared ? O_NOFOLLOW : 0));
		return o->fd < 0 ? fail(o, -errno, reterr) : 0;
	}
	o->fd = open_nameless(path);
	o->is_nameless = o->fd >= 0;
	if (o->is_nameless)
		return 0;
	/* not every file system has such files */
	n = snprintf(o->temporary, sizeof(o->temporary), "%s.XXXXXX", path);
	if (n < 0 || (size_t)n >= sizeof(o->temporary)) {
		o->temporary[0] = 0;
		return fail(o, -ENAMETOOLONG, reterr);
	}
	o->fd = mkostemp(o->temporary, O_CLOEXEC);
	if (o->fd < 0) {
		n = -errno;
		o->temporary[0] = 0;
		return fail(o, n, reterr);
	}
	return 0;
}

int output_write(struct output *o, const void *data, size_t len, struct errinfo *reterr)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(o->fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EPIPE ? -EPIPE : fail(o, -errno, reterr);
		p += n;
		len -= (size_t)n;
		o->bytes += (uint64_t)n;
	}
	return 0;
}

int output_commit(struct output *o, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	int r = 0;

	if (!o->temporary[0] && !o->is_nameless)
		return 0;
	r = path_user_enter(o->path, &before, reterr);
	if (r < 0)
		return r;
	if (o->is_nameless)
		r = give_name(o);
	if (r < 0)
		return fail(o, r, reterr);
	if (fsync(o->fd) < 0 || rename(o->temporary, o->path) < 0)
		r = fail(o, -errno, reterr);
	else
		o->temporary[0] = 0;
	return r;
}

void output_done(struct output *o)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;

	if (o->fd >= 0 && !o->is_stdout)
		close(o->fd);
	if (o->temporary[0] && path_user_enter(o->path, &before, NULL) == 0)
		unlink(o->temporary);
	*o = OUTPUT_INIT;
}
