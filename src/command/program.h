/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - a program of ours: its name and its commands. `help`, manual pages, completion and
 * docs/commands.md are written from it. */
#pragma once

#include "base/buf.h"
#include "command/option.h"
#include "base/errinfo.h"

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

/* program_columns - of the terminal behind @fd, or $COLUMNS there; 0: it is no terminal, or does not know. */
int program_columns(int fd);

const struct command *program_find(const struct program *p, const char *name);

/* program_put_word - appends @word, with a space before it unless it is the first. */
void program_put_word(struct buf *b, const char *word);

/* "did you mean …?" for mistyped commands and flags. */

/* suggest_distance - insertions, deletions, replacements and swaps of neighbours that turn @a into
 * @b; words longer than 63 bytes count as far from everything. */
unsigned suggest_distance(const char *a, const char *b);

/* suggest_is_near - whether @typed is probably a slip for @name: at most a third of its letters. */
int suggest_is_near(const char *typed, const char *name, unsigned *ret_distance);

/* From argv to a command's row and its exit code. */

/* dispatch_main - the main() of a program: dispatch_run() in a process that is set up for it.
 *
 * SIGPIPE is ignored: a closed stdout shows as EPIPE, and dispatch_flush() ends quietly. SIGXFSZ too: a file that
 * may not grow further (`ulimit -f`) is EFBIG, told as a full disk is. File
 * descriptors 0 to 2 always exist, so that a file opened later never becomes stdout. */
int dispatch_main(const struct program *p, int argc, char **argv);

/* dispatch_run - runs the command of @p that argv names and returns the process's exit code. */
int dispatch_run(const struct program *p, int argc, char **argv);

/* dispatch_fail - prints "PROGRAM: <sentence>" on stderr and returns the exit code of @err. */
int dispatch_fail(const struct errinfo *e, int err);

/* dispatch_serve - for a command that runs as a service, at its beginning: finds the service manager
 * that base/notify.h tells how it is doing. One that cannot be reached is a warning. */
void dispatch_serve(void);

/* dispatch_flush - what is left to do for stdout at the end: @code, or EXIT_IO with a sentence if
 * the output could not be written. A reader that went away (head, a closed pager) is no error. */
int dispatch_flush(int code);

/* Manual pages (man 7 macros) and the rows of docs/commands.md, from the option tables. */

/* manual_page - PROGRAM-COMMAND.1. Check b->err. */
void manual_page(struct buf *b, const struct program *p, const struct command *c);

/* manual_index - PROGRAM.1: the commands, exit codes, environment and files. */
void manual_index(struct buf *b, const struct program *p);

/* manual_rows - for each flag of each command a line: program, command, names, help, apart by
 * tabs. */
void manual_rows(struct buf *b, const struct program *p);

/* Scripts by which shells complete our commands, flags and values: written from the
 * option tables.
 *
 * Values with a name of PATH or FILE are completed as files. Others that have a list stand in the
 * program's table of values. */

/* What can stand for a value, or as an argument. */
enum completion_kind { COMPLETION_NOTHING, COMPLETION_FILES, COMPLETION_WORDS };

/* completion_value - of @o of the command called @command. With COMPLETION_WORDS the words are
 * appended to @words, separated by spaces. */
enum completion_kind completion_value(const struct program *p, const char *command,
	const struct option_row *o, struct buf *words);

/* completion_argument - likewise what stands behind the command. */
enum completion_kind completion_argument(
	const struct program *p, const char *command, struct buf *words);

/* completion_text - appends @text with the program's name where COMPLETION_NAME stands, and where
 * COMPLETION_ID stands the name as a part of a function's. */
#define COMPLETION_NAME "\1"
#define COMPLETION_ID   "\2"

/* completion_script - for "bash", "zsh" or "fish"; -EINVAL for another. Check b->err. */
int completion_script(struct buf *b, const struct program *p, const char *shell);

/* completion_command - the run() of `completion`, whose argument is the shell. */
int completion_command(const struct command *cmd, void *settings, int argc, char **argv);
