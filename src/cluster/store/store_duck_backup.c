/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_backup.c - backups: copies of parts and manifest with the sums of all, made while the store is
 * in use, also by another process; what is copied is checked, and a folder has its name only when it is complete. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cluster/store/store_duck_private.h"

#define COPY_BYTES (1u << 20)
#define SUMS_MAX   (64u << 20)
#define SUMS_NAME  "SHA256SUMS" /* as sha256sum -c reads it */
#define TRIES      5            /* a part that is named may be gone before it is copied */

struct copying {
	const char *from, *to;
	char partial[STORE_PATH_MAX]; /* the name of @to until it is complete */
	struct manifest manifest;
	bool links; /* the same files under a second name, where that can be */
	struct buf sums;
};

static int copy_bytes(int from, int to)
{
	_cleanup_free_ char *data = malloc(COPY_BYTES);
	ssize_t n;

	if (!data)
		return -ENOMEM;
	while ((n = read(from, data, COPY_BYTES)) != 0) {
		if (n < 0)
			return -errno;
		for (ssize_t done = 0, m; done < n; done += m) {
			m = write(to, data + done, (size_t)(n - done));
			if (m < 0)
				return -errno;
		}
	}
	return fsync(to) < 0 ? -errno : 0;
}

int store_copy_file(const char *from, const char *to)
{
	_cleanup_fd_ int in = open(from, O_RDONLY | O_CLOEXEC);
	_cleanup_fd_ int out = -1;

	if (in < 0)
		return -errno;
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return out < 0 ? -errno : copy_bytes(in, out);
}

static int copy_part(struct copying *c, const struct part *p, struct errinfo *reterr)
{
	char from[STORE_PATH_MAX], to[STORE_PATH_MAX + 128], sum[DIGEST_HEX];
	int r;

	snprintf(to, sizeof(to), "%s/%s", c->partial, p->folder);
	if (mkdir(to, 0700) < 0 && errno != EEXIST)
		return errinfo_set(reterr, -errno, "%s cannot be made: %s", to, strerror(errno));
	snprintf(from, sizeof(from), "%s/%s/%06" PRIu64 ".duckdb", c->from, p->folder, p->id);
	snprintf(to, sizeof(to), "%s/%s/%06" PRIu64 ".duckdb", c->partial, p->folder, p->id);
	if (c->links && link(from, to) == 0)
		return 0;
	r = store_copy_file(from, to);
	if (r == 0)
		r = digest_sha256_file(to, sum);
	if (r < 0)
		return errinfo_set(
			reterr, r, "%s cannot be copied to %s: %s", from, to, strerror(-r));
	if (strcmp(sum, p->sha256) != 0)
		return errinfo_set_exit(reterr, EXIT_BAD_DATA, -EBADMSG,
			"%s is damaged: its SHA-256 differs from the one in the manifest", from);
	buf_printf(&c->sums, "%s  %s/%06" PRIu64 ".duckdb\n", sum, p->folder, p->id);
	to[strlen(c->partial) + 1 + strlen(p->folder)] = 0;
	return file_sync(to);
}

static int write_sums(struct copying *c, struct errinfo *reterr)
{
	char path[STORE_PATH_MAX + 32], sum[DIGEST_HEX];
	int r;

	snprintf(path, sizeof(path), "%s/" STORE_MANIFEST_NAME, c->partial);
	r = digest_sha256_file(path, sum);
	if (r == 0) {
		buf_printf(&c->sums, "%s  " STORE_MANIFEST_NAME "\n", sum);
		snprintf(path, sizeof(path), "%s/" SUMS_NAME, c->partial);
		r = c->sums.err ? c->sums.err
				: file_write_atomic(path, c->sums.data, c->sums.len, 0600);
	}
	return r == 0 ? 0 : errinfo_set(reterr, r, "%s cannot be written: %s", path, strerror(-r));
}

static int copy_all(struct copying *c, struct errinfo *reterr)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->manifest.parts.count; i++)
		r = copy_part(c, c->manifest.parts.items[i], reterr);
	if (r == 0)
		r = manifest_write(c->partial, &c->manifest, reterr);
	if (r == 0)
		r = write_sums(c, reterr);
	if (r == 0 && rename(c->partial, c->to) < 0)
		r = errinfo_set(
			reterr, -errno, "%s cannot be renamed: %s", c->partial, strerror(errno));
	return r;
}

/* What was copied so far of a copy that failed. */
static void remove_copied(struct copying *c)
{
	char path[STORE_PATH_MAX + 128];

	for (size_t i = 0; i < c->manifest.parts.count; i++) {
		const struct part *p = c->manifest.parts.items[i];

		snprintf(path, sizeof(path), "%s/%s/%06" PRIu64 ".duckdb", c->partial, p->folder,
			p->id);
		unlink(path);
		snprintf(path, sizeof(path), "%s/%s", c->partial, p->folder);
		rmdir(path); /* the last one of it succeeds */
	}
	snprintf(path, sizeof(path), "%s/" STORE_MANIFEST_NAME, c->partial);
	unlink(path);
	snprintf(path, sizeof(path), "%s/" STORE_MANIFEST_COPY, c->partial);
	unlink(path);
	rmdir(c->partial);
}

static int copy_store(struct copying *c, struct errinfo *reterr)
{
	int r;

	if (access(c->to, F_OK) == 0)
		return errinfo_set_exit(reterr, EXIT_NO_CREATE, -EEXIST,
			"%s exists already: name a new folder", c->to);
	if (snprintf(c->partial, sizeof(c->partial), "%s.partial", c->to) >=
		(int)sizeof(c->partial))
		return errinfo_set(reterr, -ENAMETOOLONG, "the name %.100s is too long", c->to);
	if (mkdir(c->partial, 0700) < 0)
		return errinfo_set_exit(reterr, EXIT_NO_CREATE, -errno, "%s cannot be made: %s",
			c->partial, strerror(errno));
	c->sums = BUF_INIT(SUMS_MAX);
	r = copy_all(c, reterr);
	buf_done(&c->sums);
	if (r < 0)
		remove_copied(c);
	return r;
}

/* Parts are never written again, and the manifest is replaced as a whole: what it names is there, or was merged or
 * dropped since, and the next manifest says so. So whoever has the store open does not matter. */
static int copy_folder(struct copying *c, struct errinfo *reterr)
{
	int r = -ENOENT;

	for (int tries = 0; r == -ENOENT && tries < TRIES; tries++) {
		r = manifest_read(c->from, &c->manifest, reterr);
		if (r == -ENOENT)
			return errinfo_set(reterr, r, "there is no store in %s", c->from);
		if (r == 0)
			r = copy_store(c, reterr);
		manifest_done(&c->manifest);
		c->manifest = (struct manifest){0};
	}
	return r;
}

int store_duck_backup(const char *from, const char *to, struct errinfo *reterr)
{
	return copy_folder(&(struct copying){.from = from, .to = to}, reterr);
}

int store_duck_link(const char *from, const char *to, struct errinfo *reterr)
{
	return copy_folder(&(struct copying){.from = from, .to = to, .links = true}, reterr);
}

static int remove_one(const char *path, const struct stat *st _unused_, int type _unused_,
	struct FTW *walk _unused_)
{
	return remove(path);
}

void store_duck_unlink(const char *folder)
{
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int store_duck_restore(const char *from, const char *to, struct errinfo *reterr)
{
	struct copying c = {.from = from, .to = to};
	struct store_report none = {0};
	int r = store_duck_verify(from, &none, reterr);

	if (r == -EBADMSG && none.findings && none.findings == none.known)
		r = 0; /* what was missing then is missing in it */
	if (r == 0)
		r = manifest_read(from, &c.manifest, reterr);
	if (r < 0)
		return r;
	manifest_new_id(c.manifest.id); /* it goes another way than the store that it is of */
	r = copy_store(&c, reterr);
	manifest_done(&c.manifest);
	return r;
}
