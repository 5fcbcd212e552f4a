/* SPDX-License-Identifier: Apache-2.0 */
/* disk.c - copies of the CUDA libraries on disk that no process needs to have mapped. What a program
 * that has not run yet says about them is command_files.c's part.
 *
 * Looked for by name only; no library is opened or run. A file is one row, whatever its links are
 * called; among several names the one that is no symbolic link is kept.
 *
 * The search is bounded: fixed patterns (no tree is walked), DISCOVER_FILES_MAX files,
 * ENTRIES_MAX directory entries, INTERPRETERS_MAX Pythons and SEARCH_NS in all; a file system that
 * hangs can hold it up for one pattern only. */
#include "record/discover/disk_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <sys/stat.h>

#include "record/discover/embedded.h"
#include "base/file.h"

#define CACHE_MAX        (16 << 20)
#define ENTRIES_MAX      200000
#define INTERPRETERS_MAX 32
#define SEARCH_NS        (3 * NS_PER_S)

static const char *const directories[] = {
	"/usr/local/cuda/lib64",
	"/usr/local/cuda-*/lib64",
	"/usr/local/cuda*/targets/*/lib",
	"/usr/local/cuda*/compat",
	"/usr/lib/x86_64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu",
	"/usr/lib/*-linux-gnu/nvidia/current",
	"/usr/lib64",
	"/usr/lib",
	"/usr/lib/wsl/lib",
	"/usr/local/lib",
	"/usr/local/nvidia/lib64",
	"/run/nvidia/driver/usr/lib/*-linux-gnu",
	"/opt/conda/lib",
	"/opt/conda/envs/*/lib",
	"/home/*/anaconda3/lib",
	"/home/*/anaconda3/envs/*/lib",
	"/home/*/miniconda3/lib",
	"/home/*/miniconda3/envs/*/lib",
	"/home/*/.conda/envs/*/lib",
	"/root/miniconda3/lib",
	"/root/miniconda3/envs/*/lib",
};

/* Where Python keeps packages, and where in them the libraries lie. */
static const char *const python_prefixes[] = {
	"/usr",
	"/usr/local",
	"/opt/*",
	"/opt/conda/envs/*",
	"/home/*/*",
	"/home/*/.local",
	"/home/*/*conda3/envs/*",
	"/home/*/.conda/envs/*",
	"/root/*",
	"/root/.local",
	"/srv/*",
	"/workspace/*",
};
#define PACKAGES "/lib*/python*/*-packages"
static const char *const package_places[] = {"/nvidia/*/lib", "/torch/lib"};
/* Where wheels bring copies of their own, as libcudart.faf08d9a.so.13 in torchvision.libs. */
static const char *const packed_place = "/*.libs";
/* Where files of other names hold a runtime: looked into for a program that is about to run. */
static const char *const embedded_places[] = {"/cupy/*", "/cupy_backends/cuda/*", "/xgboost/lib"};

bool disk_is_over(const struct disk_search *f)
{
	return f->count == DISCOVER_FILES_MAX || f->entries >= ENTRIES_MAX ||
	       mono_now().ns - f->begun.ns > SEARCH_NS;
}

void disk_add_file(struct disk_search *f, const char *path, enum target_library_kind kind)
{
	struct stat st, link;
	size_t i = 0;

	if (lstat(path, &link) < 0 || stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	while (i < f->count && (f->rows[i].dev != st.st_dev || f->rows[i].inode != st.st_ino))
		i++;
	if (i == DISCOVER_FILES_MAX || strlen(path + f->prefix_len) >= TARGET_PATH_MAX)
		return;
	if (i < f->count && (!f->is_link[i] || S_ISLNK(link.st_mode)))
		return;
	f->rows[i] = (struct target_library){.kind = kind, .dev = st.st_dev, .inode = st.st_ino};
	snprintf(f->rows[i].path, sizeof(f->rows[i].path), "%s", path + f->prefix_len);
	f->is_link[i] = S_ISLNK(link.st_mode);
	f->count = MAX(f->count, i + 1);
}

/* A file of another name that holds one library; of two, NCCL: it is never the runtime of others. */
static int embedded_kind(const char *path, struct target_library *lib)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	unsigned kinds = fd < 0 ? 0 : embedded_kinds(fd, path);

	if (!kinds)
		return -ENOENT;
	lib->kind = kinds >> TARGET_NCCL & 1 ? TARGET_NCCL : TARGET_CUDART;
	lib->embedded = true;
	return 0;
}

static void add_library(struct disk_search *f, const char *path)
{
	const char *base = strrchr(path, '/');
	struct target_library lib = {0};
	size_t had = f->count;

	if (!base)
		return;
	if (discover_library_kind(base + 1, strlen(base + 1), &lib.kind) == 0) {
		if (target_kind_is_cuda(lib.kind))
			disk_add_file(f, path, lib.kind);
		return;
	}
	if (!f->by_symbols || !strstr(base, ".so") || disk_is_over(f) ||
		embedded_kind(path, &lib) < 0)
		return;
	disk_add_file(f, path, lib.kind);
	f->rows[had].embedded |= f->count > had;
}

void disk_add_folder(struct disk_search *f, const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[PATH_MAX];

	if (!d)
		return;
	while (f->entries++ < ENTRIES_MAX && (e = readdir(d)))
		if ((f->by_symbols || strncmp(e->d_name, "lib", 3) == 0) &&
			snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) < (int)sizeof(path))
			add_library(f, path);
	closedir(d);
}

static void add_pattern(
	struct disk_search *f, const char *root, const char *first, const char *second)
{
	char pattern[PATH_MAX];
	glob_t g = {0};

	if (disk_is_over(f) || snprintf(pattern, sizeof(pattern), "%s%s%s", root, first, second) >=
				       (int)sizeof(pattern))
		return;
	if (glob(pattern, GLOB_NOSORT, NULL, &g) == 0)
		for (size_t i = 0; i < g.gl_pathc; i++)
			disk_add_folder(f, g.gl_pathv[i]);
	globfree(&g);
}

/* The cache's paths are NUL-terminated strings in one table. Taking every string that begins with a
 * slash needs none of its offsets, so a damaged cache can only name files that are not there. */
static void add_loader_cache(struct disk_search *f, const char *root)
{
	_cleanup_buf_ struct buf b = BUF_INIT(CACHE_MAX);
	char path[PATH_MAX];
	size_t i = 0;

	if (file_read_at(root, "/etc/ld.so.cache", CACHE_MAX, &b) < 0)
		return;
	while (i < b.len) {
		const char *s = b.data + i;
		size_t len = strnlen(s, b.len - i);

		if (*s == '/' && file_join(path, sizeof(path), root, s) == 0)
			add_library(f, path);
		i += len + 1;
	}
}

/* ---- what the tracer's own environment and running programs say ---- */

static void add_packages(
	struct disk_search *f, const char *root, const char *folder, const char *below)
{
	char pattern[PATH_MAX];

	f->by_symbols = f->of_command;
	for (size_t j = 0; j < ARRAY_SIZE(package_places); j++)
		if (snprintf(pattern, sizeof(pattern), "%s%s", below, package_places[j]) <
			(int)sizeof(pattern))
			add_pattern(f, root, folder, pattern);
	for (size_t j = 0; f->by_symbols && j < ARRAY_SIZE(embedded_places); j++)
		if (snprintf(pattern, sizeof(pattern), "%s%s", below, embedded_places[j]) <
			(int)sizeof(pattern))
			add_pattern(f, root, folder, pattern);
	f->by_symbols = false;
	if (snprintf(pattern, sizeof(pattern), "%s%s", below, packed_place) < (int)sizeof(pattern))
		add_pattern(f, root, folder, pattern);
}

void disk_add_prefix(struct disk_search *f, const char *root, const char *prefix)
{
	if (prefix[0] && !strpbrk(prefix, "*?[\\"))
		add_packages(f, root, prefix, PACKAGES);
}

void disk_add_packages(struct disk_search *f, const char *root, const char *folder)
{
	if (!strpbrk(folder, "*?[\\"))
		add_packages(f, root, folder, "");
}

void disk_add_program(struct disk_search *f, const char *root, const char *path)
{
	char prefix[PATH_MAX];
	char *slash;

	snprintf(prefix, sizeof(prefix), "%s", path);
	for (int i = 0; i < 2; i++) {
		slash = strrchr(prefix, '/');
		if (!slash || slash == prefix)
			return;
		*slash = 0;
	}
	disk_add_prefix(f, root, prefix);
}

bool disk_is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & 0111;
}

void disk_add_list(struct disk_search *f, const char *root, const char *text, bool of_programs)
{
	char path[PATH_MAX], program[PATH_MAX];

	for (int n = 0; text && *text && n < INTERPRETERS_MAX; n++) {
		size_t len = strcspn(text, ":");

		if (*text == '/' && snprintf(path, sizeof(path), "%s%.*s", root, (int)len, text) <
					    (int)sizeof(path)) {
			if (!of_programs && !disk_is_over(f))
				disk_add_folder(f, path);
			else if (snprintf(program, sizeof(program), "%s/python3", path) <
					 (int)sizeof(program) &&
				 disk_is_program(program))
				disk_add_program(f, root, program + strlen(root));
		}
		text += len + (text[len] == ':');
	}
}

/* Pythons that are running, by their program's file. What they were called with is their own word
 * and leads nowhere here. */
static void add_running(struct disk_search *f, const char *root)
{
	char pattern[PATH_MAX], name[PATH_MAX];
	size_t found = 0;
	glob_t g = {0};

	if (file_join(pattern, sizeof(pattern), root, "/proc/[1-9]*/exe") < 0)
		return;
	if (glob(pattern, GLOB_NOSORT, NULL, &g) != 0)
		g.gl_pathc = 0;
	for (size_t i = 0; i < g.gl_pathc && found < INTERPRETERS_MAX && !disk_is_over(f); i++) {
		ssize_t len = readlink(g.gl_pathv[i], name, sizeof(name) - 1);

		name[MAX(len, (ssize_t)0)] = 0;
		if (!strstr(name, "/bin/python"))
			continue;
		found++;
		disk_add_program(f, root, name);
	}
	globfree(&g);
}

static void add_root(struct disk_search *f, const char *root)
{
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		add_pattern(f, root, directories[i], "");
	for (size_t i = 0; i < ARRAY_SIZE(python_prefixes); i++)
		add_packages(f, root, python_prefixes[i], PACKAGES);
	add_loader_cache(f, root);
}

static bool is_other_root(const char *root, const char *init_root)
{
	char here[PATH_MAX];
	struct stat a, b;

	return file_join(here, sizeof(here), root, "/") == 0 && stat(here, &a) == 0 &&
	       stat(init_root, &b) == 0 && (a.st_dev != b.st_dev || a.st_ino != b.st_ino);
}

int discover_library_files(
	const char *root, const struct discover_command *c, struct target_library **ret)
{
	_cleanup_free_ struct target_library *rows = calloc(DISCOVER_FILES_MAX, sizeof(*rows));
	struct disk_search f = {.rows = rows, .prefix_len = strlen(root), .begun = mono_now()};
	char init_root[PATH_MAX];

	if (!rows)
		return -ENOMEM;
	f.of_command = true;
	if (c)
		command_files_add(&f, root, c); /* first: the table has a limit */
	f.of_command = false;
	disk_add_list(&f, root, getenv("LD_LIBRARY_PATH"), false);
	add_root(&f, root);
	disk_add_list(&f, root, getenv("PATH"), true);
	add_running(&f, root);
	if (file_join(init_root, sizeof(init_root), root, "/proc/1/root") == 0 &&
		is_other_root(root, init_root))
		add_root(&f, init_root);
	if (c)
		command_files_guess(&f, root, c);
	*ret = TAKE(rows);
	return (int)f.count;
}

int discover_library_file(const char *path, struct target_library *ret, struct errinfo *reterr)
{
	const char *name = basename(path);
	struct target_library lib = {0};
	struct stat st;

	if (stat(path, &st) < 0)
		return errinfo_set(reterr, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) ||
		(discover_library_kind(name, strlen(name), &lib.kind) < 0 &&
			embedded_kind(path, &lib) < 0) ||
		!target_kind_is_cuda(lib.kind))
		return errinfo_set(reterr, -EBADMSG,
			"%s is not a CUDA library (libcudart.so…, libcuda.so…, libnccl.so…), and contains none",
			path);
	lib.dev = st.st_dev;
	lib.inode = st.st_ino;
	snprintf(lib.path, sizeof(lib.path), "%s", path);
	*ret = lib;
	return 0;
}
