/* SPDX-License-Identifier: Apache-2.0 */
/* token_keep.c - a token of the server's own, made once and kept in a file. See token.h.
 *
 * Under sudo the folder belongs to a user who may put anything there, so everything goes by the
 * folder's descriptor, no link is followed, and the file comes to its name complete: whoever makes
 * one at the same time either sees all of it or none. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "net/server/token.h"

#define RANDOM_BYTES 24
#define TEXT_BYTES   (2 * RANDOM_BYTES + 1)
#define FILE_BYTES   256 /* more than that is no file of ours */

int token_make(char **ret)
{
	unsigned char bytes[RANDOM_BYTES];
	char *text = malloc(TEXT_BYTES);

	if (!text)
		return -ENOMEM;
	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) {
		free(text);
		return -EIO;
	}
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	OPENSSL_cleanse(bytes, sizeof(bytes));
	*ret = text;
	return 0;
}

static bool is_private(int dir, int fd)
{
	struct stat folder, file;

	return fstat(dir, &folder) == 0 && fstat(fd, &file) == 0 && S_ISREG(file.st_mode) &&
	       !(file.st_mode & 077) && file.st_nlink == 1 &&
	       (file.st_uid == geteuid() || file.st_uid == 0 || file.st_uid == folder.st_uid);
}

static int read_kept(int dir, const char *name, char **ret, struct errinfo *reterr)
{
	_cleanup_fd_ int fd =
		openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char text[FILE_BYTES] = "";
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (!is_private(dir, fd))
		return errinfo_set_exit(reterr, EXIT_NO_PERMISSION, -EPERM,
			"other users can access the file %s: remove it and a new one is created",
			name);
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	while (n > 0 && isspace((unsigned char)text[n - 1]))
		text[--n] = 0;
	if (n < TOKEN_BYTES_MIN || strlen(text) != (size_t)n)
		return errinfo_set_exit(reterr, EXIT_CONFIG, -EINVAL,
			"the file %s contains no token: remove it and a new one is created", name);
	*ret = strdup(text);
	OPENSSL_cleanse(text, sizeof(text));
	return *ret ? 0 : -ENOMEM;
}

static int write_all(int fd, const char *token, int (*give)(int fd))
{
	char line[TEXT_BYTES + 1];
	int n = snprintf(line, sizeof(line), "%s\n", token);

	if (write(fd, line, (size_t)n) != n)
		return errno ? -errno : -EIO;
	if (fchmod(fd, 0600) < 0 || fsync(fd) < 0)
		return -errno;
	return give ? give(fd) : 0;
}

/* -EEXIST: somebody was faster. */
static int write_new(int dir, const char *name, const char *token, int (*give)(int fd))
{
	_cleanup_fd_ int fd = -1;
	char temporary[64];
	int r;

	snprintf(temporary, sizeof(temporary), ".token.%d", (int)getpid());
	unlinkat(dir, temporary, 0);
	fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = write_all(fd, token, give);
	if (r == 0 && linkat(dir, temporary, dir, name, 0) < 0)
		r = -errno;
	unlinkat(dir, temporary, 0);
	return r;
}

int token_keep(int dir, const char *name, int (*give)(int fd), char **ret, struct errinfo *reterr)
{
	_cleanup_free_ char *fresh = NULL;
	int r = read_kept(dir, name, ret, reterr);

	if (r == -ENOENT) {
		r = token_make(&fresh);
		if (r == 0)
			r = write_new(dir, name, fresh, give);
		if (r == 0)
			*ret = TAKE(fresh);
		else if (r == -EEXIST)
			r = read_kept(dir, name, ret, reterr);
	}
	if (r == -EPERM || r == -EINVAL || r >= 0)
		return r;
	return errinfo_set(reterr, r, "the file %s: %s", name, strerror(-r));
}
