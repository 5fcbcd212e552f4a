/* SPDX-License-Identifier: Apache-2.0 */
/* command_files.c - libraries that a program would load which has not run yet, as far as that can be known before:
 * from the words of its command line, its environment and what is written into its file. What it is not possible to
 * know (a library that is fetched or named while it runs) is met when it is mapped, as in any process.
 *
 * All of it is a user's word: files are only looked at, by a reader with bounds (elfsym.h), as many as FILES_MAX. */
#include "record/discover/disk_private.h"

#include <limits.h>

#include "record/discover/elfsym.h"
#include "base/file.h"

#define WORDS_MAX   64
#define FILES_MAX   64 /* opened to see what they are linked with */
#define DEPTH_MAX   4  /* a library that a library of the program needs */
#define LIST_MAX    (64 << 10)
#define SHEBANG_MAX 512

struct look {
	struct disk_search *search;
	const char *root;
	const struct discover_command *command;
	int files;
};

/* The variables that name a place where software was installed. */
static const char *const prefix_variables[] = {"VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME",
	"CUDA_PATH", "CUDA_ROOT", "PYTHONHOME", "PYTHONUSERBASE", "UV_PROJECT_ENVIRONMENT"};
/* Environments that tools make in the folder they are started in. */
static const char *const folder_prefixes[] = {".venv", "venv"};

static const char *variable(const struct look *l, const char *name)
{
	size_t len = strlen(name);

	for (char *const *v = l->command->envp; *v; v++)
		if (strncmp(*v, name, len) == 0 && (*v)[len] == '=')
			return *v + len + 1;
	return NULL;
}

/* @path as the program would take it, without the root. */
static bool absolute(const struct look *l, const char *path, size_t len, char out[PATH_MAX])
{
	if (len && *path == '/')
		return snprintf(out, PATH_MAX, "%.*s", (int)len, path) < PATH_MAX;
	return snprintf(out, PATH_MAX, "%s/%.*s", l->command->folder, (int)len, path) < PATH_MAX;
}

static void add_folder(struct look *l, const char *folder)
{
	char path[PATH_MAX];

	if (!disk_is_over(l->search) && file_join(path, sizeof(path), l->root, folder) == 0)
		disk_add_folder(l->search, path);
}

/* Each part of @list; an empty one is the folder that the program is in, as for the dynamic linker. */
static void add_folders(struct look *l, const char *list)
{
	char path[PATH_MAX];

	for (const char *p = list; p && *p; p += strcspn(p, ":"), p += *p == ':')
		if (absolute(l, p, strcspn(p, ":"), path))
			add_folder(l, path);
}

static void add_prefix(struct look *l, const char *prefix)
{
	static const char *const folders[] = {"lib", "lib64"};
	char path[PATH_MAX], below[PATH_MAX];

	if (!absolute(l, prefix, strlen(prefix), path))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		if (snprintf(below, sizeof(below), "%s/%s", path, folders[i]) < (int)sizeof(below))
			add_folder(l, below);
	disk_add_prefix(l->search, l->root, path);
}

/* ---- what is written into a program ---- */

/* @folders with the name of @path's folder for $ORIGIN. */
static void put_origin(struct buf *out, const char *folders, const char *path)
{
	static const char *const names[] = {"$ORIGIN", "${ORIGIN}"};
	const char *slash = strrchr(path, '/');

	while (*folders) {
		size_t skip = 0;

		for (size_t i = 0; i < ARRAY_SIZE(names) && !skip; i++)
			if (strncmp(folders, names[i], strlen(names[i])) == 0)
				skip = strlen(names[i]);
		if (skip)
			buf_append(out, path, (size_t)(slash - path));
		else
			buf_putc(out, *folders);
		folders += MAX(skip, (size_t)1);
	}
}

/* The folders that the file at @path is linked with, and those of the libraries that lie in them. */
static void follow_links(struct look *l, const char *path, int depth)
{
	_cleanup_buf_ struct buf written = BUF_INIT(LIST_MAX), names = BUF_INIT(LIST_MAX),
				 folders = BUF_INIT(LIST_MAX);
	_cleanup_(elfsym_closep) struct elfsym *e = NULL;
	struct errinfo ignored = {0};
	char below[PATH_MAX], file[PATH_MAX];

	if (depth > DEPTH_MAX || ++l->files > FILES_MAX || disk_is_over(l->search) ||
		file_join(file, sizeof(file), l->root, path) < 0 ||
		elfsym_open(file, &e, &ignored) < 0)
		return;
	if (depth == 0)
		disk_add_file(l->search, file, TARGET_EXECUTABLE); /* the runtime may be inside */
	if (elfsym_linked(e, &written, &names) < 0)
		return;
	put_origin(&folders, buf_str(&written), path);
	add_folders(l, buf_str(&folders));
	for (const char *name = names.data; name < names.data + names.len; name += strlen(name) + 1)
		for (const char *f = buf_str(&folders); *f; f += strcspn(f, ":"), f += *f == ':')
			if (snprintf(below, sizeof(below), "%.*s/%s", (int)strcspn(f, ":"), f,
				    name) < (int)sizeof(below))
				follow_links(l, below, depth + 1);
}

/* The Python whose name stands behind #! in the script at @path: a program that pip installed. */
static void add_interpreter(struct look *l, const char *path)
{
	_cleanup_buf_ struct buf b = BUF_INIT(SHEBANG_MAX);
	char name[PATH_MAX];
	const char *p;

	(void)file_read_at(l->root, path, SHEBANG_MAX, &b); /* what is longer is cut */
	p = buf_str(&b);
	if (strncmp(p, "#!", 2) != 0)
		return;
	p += 2 + strspn(p + 2, " \t");
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(p, " \t\n"), p);
	if (name[0] != '/')
		return;
	disk_add_program(l->search, l->root, name);
	follow_links(l, name, 0);
}

static void add_program(struct look *l, const char *path)
{
	_cleanup_free_ char *real = NULL;
	char file[PATH_MAX], folder[PATH_MAX];
	char *slash;

	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	*slash = 0;
	add_folder(l, folder);
	slash = strrchr(folder, '/');
	if (slash && slash != folder) {
		*slash = 0;
		add_prefix(l, folder);
	}
	add_interpreter(l, path);
	follow_links(l, path, 0);
	if (file_join(file, sizeof(file), l->root, path) == 0)
		real = realpath(file, NULL);
	if (real && strcmp(real, file) != 0) /* a link to a program in an environment of its own */
		disk_add_program(l->search, l->root, real + strlen(l->root));
}

/* The program that @word names, as a shell would find it. */
static bool find_program(const struct look *l, const char *word, char out[PATH_MAX])
{
	const char *list = variable(l, "PATH");
	char folder[PATH_MAX], file[PATH_MAX];

	if (strchr(word, '/'))
		return absolute(l, word, strlen(word), out) &&
		       file_join(file, sizeof(file), l->root, out) == 0 && disk_is_program(file);
	for (const char *p = list; p && *p; p += strcspn(p, ":"), p += *p == ':')
		if (absolute(l, p, strcspn(p, ":"), folder) &&
			snprintf(out, PATH_MAX, "%s/%s", folder, word) < PATH_MAX &&
			file_join(file, sizeof(file), l->root, out) == 0 && disk_is_program(file))
			return true;
	return false;
}

void command_files_add(struct disk_search *f, const char *root, const struct discover_command *c)
{
	struct look l = {.search = f, .root = root, .command = c};
	const char *home = variable(&l, "HOME");
	char path[PATH_MAX];

	add_folders(&l, variable(&l, "LD_LIBRARY_PATH"));
	for (int i = 0; c->argv[i] && i < WORDS_MAX; i++)
		if (c->argv[i][0] && c->argv[i][0] != '-' && find_program(&l, c->argv[i], path))
			add_program(&l, path);
	for (size_t i = 0; i < ARRAY_SIZE(prefix_variables); i++)
		if (variable(&l, prefix_variables[i]))
			add_prefix(&l, variable(&l, prefix_variables[i]));
	for (size_t i = 0; i < ARRAY_SIZE(folder_prefixes); i++)
		add_prefix(&l, folder_prefixes[i]);
	if (home && snprintf(path, sizeof(path), "%s/.local", home) < (int)sizeof(path))
		add_prefix(&l, path);
	for (const char *p = variable(&l, "PYTHONPATH"); p && *p;
		p += strcspn(p, ":"), p += *p == ':')
		if (absolute(&l, p, strcspn(p, ":"), path))
			disk_add_packages(f, root, path);
	disk_add_list(f, root, variable(&l, "PATH"), true);
}

/* Any other variable may be the one that the program asks: each folder that one names. */
void command_files_guess(struct disk_search *f, const char *root, const struct discover_command *c)
{
	struct look l = {.search = f, .root = root, .command = c};

	for (char *const *v = c->envp; *v; v++) {
		const char *value = *v + strcspn(*v, "=");

		if (value[0] && value[1] == '/') {
			add_folders(&l, value + 1);
			add_prefix(&l, value + 1);
		}
	}
}
