/* SPDX-License-Identifier: Apache-2.0 */
/* ca_output.c - where a certificate goes: a folder or an archive that is complete, on disk, before
 * it gets its name; a name that is taken is not written over. See ca_private.h. */
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <libgen.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "base/output.h"
#include "net/pki/ca_private.h"

static const struct part {
	const char *name;
	mode_t mode;
} parts[] = {{"ca.pem", 0644}, {"cert.pem", 0644}, {"key.pem", 0600}};

#define PARTS 3

static int cannot(struct errinfo *reterr, int err, const char *path)
{
	return errinfo_set_exit(reterr, err == -ENOSPC ? EXIT_IO : EXIT_NO_CREATE, err,
		"cannot write %s: %s", path, strerror(-err));
}

/* beside - a name that nobody has, in the folder of @final. */
static int beside(const char *final, char out[PATH_MAX], struct errinfo *reterr)
{
	char copy[PATH_MAX];

	if (snprintf(copy, sizeof(copy), "%s", final) >= (int)sizeof(copy) - 16)
		return errinfo_set(reterr, -ENAMETOOLONG, "the path %.100s… is too long", final);
	snprintf(out, PATH_MAX, "%.4000s/.new-XXXXXX", dirname(copy));
	return 0;
}

static int is_free(const char *final, struct errinfo *reterr)
{
	struct stat st;

	if (lstat(final, &st) < 0)
		return 0;
	return errinfo_set_exit(reterr, EXIT_NO_CREATE, -EEXIST,
		"%s exists already: give a name that is not taken", final);
}

/* remove_folder - with whatever lies in it: a file that was being written has a name of its own. */
static void remove_folder(const char *path)
{
	DIR *d = opendir(path);

	for (struct dirent *e; d && (e = readdir(d));) {
		char file[PATH_MAX + 300];

		snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
		if (e->d_name[0] != '.' || e->d_name[strspn(e->d_name, ".")])
			unlink(file);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

void ca_output_sweep(const char *dir, const char *name)
{
	char path[PATH_MAX];
	glob_t found;

	if (snprintf(path, sizeof(path), "%s/nodes/%s/.new-??????", dir, name) >=
			(int)sizeof(path) ||
		glob(path, GLOB_NOSORT, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		remove_folder(found.gl_pathv[i]);
	globfree(&found);
}

int ca_output_folder(struct ca_output *o, const char *final, const struct buf *ca,
	const struct buf *cert, const struct buf *key, struct errinfo *reterr)
{
	const struct buf *contents[PARTS] = {ca, cert, key};
	int r = is_free(final, reterr);

	r = r ?: beside(final, o->tmp, reterr);
	if (r < 0) {
		o->tmp[0] = 0;
		return r;
	}
	o->is_folder = true;
	snprintf(o->final, sizeof(o->final), "%s", final);
	if (!mkdtemp(o->tmp)) {
		r = -errno;
		o->tmp[0] = 0;
		return cannot(reterr, r, final);
	}
	for (size_t i = 0; i < PARTS; i++) {
		char path[PATH_MAX + 16];

		snprintf(path, sizeof(path), "%s/%s", o->tmp, parts[i].name);
		r = file_write_atomic(path, contents[i]->data, contents[i]->len, parts[i].mode);
		if (r < 0)
			return cannot(reterr, r, final);
	}
	return 0;
}

int ca_output_bundle(struct ca_output *o, const char *final, bool replace, const struct buf *ca,
	const struct buf *cert, const struct buf *key, struct errinfo *reterr)
{
	const struct buf *contents[PARTS] = {ca, cert, key};
	_cleanup_key_ struct buf b = BUF_INIT(4 * CERT_PEM_MAX);
	int fd, r = replace ? 0 : is_free(final, reterr);

	r = r ?: beside(final, o->tmp, reterr);
	if (r < 0) {
		o->tmp[0] = 0;
		return r;
	}
	o->replace = replace;
	snprintf(o->final, sizeof(o->final), "%s", final);
	for (size_t i = 0; r == 0 && i < PARTS; i++)
		r = tar_put(&b, parts[i].name, parts[i].mode, time(NULL), contents[i]->data,
			contents[i]->len);
	r = r ?: tar_end(&b);
	fd = mkostemp(o->tmp, O_CLOEXEC);
	if (fd < 0)
		o->tmp[0] = 0;
	if (r == 0 && fd < 0)
		r = -errno;
	if (fd >= 0)
		close(fd);
	r = r ?: file_write_atomic(o->tmp, b.data, b.len, 0600);
	return r < 0 ? cannot(reterr, r, final) : 0;
}

int ca_output_publish(struct ca_output *o, struct errinfo *reterr)
{
	char copy[PATH_MAX];
	unsigned flags = o->replace ? 0 : RENAME_NOREPLACE;

	if (renameat2(AT_FDCWD, o->tmp, AT_FDCWD, o->final, flags) < 0)
		return cannot(reterr, -errno, o->final);
	o->tmp[0] = 0;
	snprintf(copy, sizeof(copy), "%s", o->final);
	file_sync(dirname(copy)); /* it is there; whether for good is not ours to refuse by now */
	return 0;
}

void ca_output_drop(struct ca_output *o)
{
	if (!o->tmp[0])
		return;
	if (o->is_folder)
		remove_folder(o->tmp);
	else
		unlink(o->tmp);
	o->tmp[0] = 0;
}

int ca_output_link(const char *dir, const char *name, const char *serial, struct errinfo *reterr)
{
	char link[PATH_MAX], tmp[PATH_MAX];
	int r = 0;

	if (snprintf(link, sizeof(link), "%s/nodes/%s/current", dir, name) >= (int)sizeof(link) ||
		snprintf(tmp, sizeof(tmp), "%s/nodes/%s/.current", dir, name) >= (int)sizeof(tmp))
		return errinfo_set(reterr, -ENAMETOOLONG, "the path of the CA is too long");
	unlink(tmp); /* of a run that was killed; the folder is locked */
	if (symlink(serial, tmp) < 0 || rename(tmp, link) < 0)
		r = -errno;
	if (r < 0) {
		unlink(tmp);
		return cannot(reterr, r, link);
	}
	*strrchr(link, '/') = 0;
	file_sync(link);
	return 0;
}

void ca_output_remove(const char *dir, const char *name, const char *serial)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/nodes/%s/%s", dir, name, serial) < (int)sizeof(path))
		remove_folder(path);
}
