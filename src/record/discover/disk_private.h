/* SPDX-License-Identifier: Apache-2.0 */
/* disk_private.h - a search for libraries on disk, shared by disk.c (where they usually lie) and command_files.c
 * (where a program that has not run yet says). Nobody else includes it. Paths that are added have @root in front
 * where it is no argument of its own. */
#pragma once

#include "record/discover/discover.h"
#include "base/clock.h"

struct disk_search {
	struct target_library *rows;
	size_t count;
	bool is_link[DISCOVER_FILES_MAX];
	size_t prefix_len; /* of the root, cut from stored paths */
	size_t entries;    /* of directories, looked at so far */
	mono_time begun;
	bool of_command; /* what a program loads that is about to run: packages are looked into */
	bool by_symbols; /* files of other names are looked into at present (embedded.h) */
};

/* disk_is_over - one of the bounds of the search was reached. */
bool disk_is_over(const struct disk_search *f);

/* disk_is_program - a regular file that somebody may execute. */
bool disk_is_program(const char *path);

/* disk_add_file - the file at @path; disk_add_folder - the libraries in @dir, by their names. */
void disk_add_file(struct disk_search *f, const char *path, enum target_library_kind kind);
void disk_add_folder(struct disk_search *f, const char *dir);

/* disk_add_prefix - the packages of the Pythons that were installed to @prefix: /usr, an environment. */
void disk_add_prefix(struct disk_search *f, const char *root, const char *prefix);

/* disk_add_packages - the packages of Python below @folder. */
void disk_add_packages(struct disk_search *f, const char *root, const char *folder);

/* disk_add_program - that of the program at @path: PREFIX/bin/python3.11. */
void disk_add_program(struct disk_search *f, const char *root, const char *path);

/* disk_add_list - each part of the list @text that is an absolute path: a folder of libraries, or with
 * @of_programs one that may hold a Python. */
void disk_add_list(struct disk_search *f, const char *root, const char *text, bool of_programs);

/* command_files_add - what @c would load. command_files_guess - what else it might, if there is time and room left:
 * such a folder may be one of a million files. */
void command_files_guess(struct disk_search *f, const char *root, const struct discover_command *c);
void command_files_add(struct disk_search *f, const char *root, const struct discover_command *c);
