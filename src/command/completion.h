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
