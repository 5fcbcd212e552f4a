/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - a program of ours: its name and its commands. `help`, manual pages, completion and
 * docs/commands.md are written from it. */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "command/option.h"

/* Values that shells complete: words, or a function that writes them with spaces between. */
struct program_values {
	const char *command; /* NULL: any */
	const char *option;  /* NULL: what stands behind the command */
	const char *words;
	void (*put)(struct buf *b);
	bool files;
};

struct program_variable { /* of the environment */
	const char *name, *meaning;
};

struct program {
	const char *name;                         /* as it is typed */
	const char *headline;                     /* what it is for, in one line */
	const struct command *const *commands;    /* NULL-terminated, in the order of `help` */
	const struct program_values *values;      /* ends with neither words nor put nor files */
	const struct program_variable *variables; /* ends with NULL */
	bool no_config; /* it reads no ingero.yaml: there is no --config */
	/* Where root keeps its state, as a service would; NULL: in the home of who called it. */
	const char *root_folder;
	const char *files; /* FILES of the manual page, as roff; NULL: none */
};

/* program_running - the one that dispatch_run() runs; before that, one without commands. */
const struct program *program_running(void);

const struct command *program_find(const struct program *p, const char *name);

/* program_put_word - appends @word, with a space before it unless it is the first. */
void program_put_word(struct buf *b, const char *word);

/* "did you mean …?" for mistyped commands and flags. */

/* suggest_distance - insertions, deletions, replacements and swaps of neighbours that turn @a into
 * @b; words longer than 63 bytes count as far from everything. */
unsigned suggest_distance(const char *a, const char *b);

/* suggest_is_near - whether @typed is probably a slip for @name: at most a third of its letters. */
int suggest_is_near(const char *typed, const char *name, unsigned *ret_distance);
