/* SPDX-License-Identifier: Apache-2.0 */
/* completion.h - scripts by which shells complete our commands, flags and values: written from the
 * option tables.
 *
 * Values with a name of PATH or FILE are completed as files. Others that have a list stand in the
 * program's table of values. */
#pragma once

#include "base/buf.h"
#include "command/program.h"

/* What can stand for a value, or as an argument. */
enum completion_kind { COMPLETION_NOTHING, COMPLETION_FILES, COMPLETION_WORDS };

/* completion_value - of @o of the command called @command. With COMPLETION_WORDS the words are
 * appended to @words, separated by spaces. */
enum completion_kind completion_value(const struct program *p, const char *command,
	const struct option_row *o, struct buf *words);

/* completion_case - a branch of a shell's `case` for the value of @o: 'trace --db' | 'trace -d') …
 * What it does there is @put's to write; nothing for flags without a value. */
typedef void completion_put(
	struct buf *b, const struct program *p, enum completion_kind kind, const struct buf *words);
void completion_case(struct buf *b, const struct program *p, const char *command,
	const struct option_row *o, completion_put *put);

/* completion_argument - likewise what stands behind the command. */
enum completion_kind completion_argument(
	const struct program *p, const char *command, struct buf *words);

/* completion_text - appends @text with the program's name where COMPLETION_NAME stands, and where
 * COMPLETION_ID stands the name as a part of a function's. */
#define COMPLETION_NAME "\1"
#define COMPLETION_ID   "\2"
void completion_text(struct buf *b, const struct program *p, const char *text);

/* completion_script - for "bash", "zsh" or "fish"; -EINVAL for another. Check b->err. */
int completion_script(struct buf *b, const struct program *p, const char *shell);

/* completion_command - the run() of `completion`, whose argument is the shell. */
int completion_command(const struct command *cmd, void *settings, int argc, char **argv);

/* Each shell's own. */
void completion_bash(struct buf *b, const struct program *p);
void completion_zsh(struct buf *b, const struct program *p);
void completion_fish(struct buf *b, const struct program *p);
