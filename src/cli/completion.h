/* SPDX-License-Identifier: Apache-2.0 */
/* completion.h - scripts by which shells complete our commands, flags and values: written from the
 * option tables.
 *
 * Values with a name of PATH or FILE are completed as files. Others that have a list stand in the
 * table in completion.c. */
#pragma once

#include "base/buf.h"
#include "cli/option.h"

/* What can stand for a value, or as an argument. */
enum completion_kind { COMPLETION_NOTHING, COMPLETION_FILES, COMPLETION_WORDS };

/* completion_value - of @o of the command called @command. With COMPLETION_WORDS the words are
 * appended to @words, separated by spaces. */
enum completion_kind completion_value(
	const char *command, const struct option_row *o, struct buf *words);

/* completion_case - a branch of a shell's `case` for the value of @o: 'trace --db' | 'trace -d') …
 * What it does there is @put's to write; nothing for flags without a value. */
typedef void completion_put(struct buf *b, enum completion_kind kind, const struct buf *words);
void completion_case(
	struct buf *b, const char *command, const struct option_row *o, completion_put *put);

/* completion_argument - likewise what stands behind the command. */
enum completion_kind completion_argument(const char *command, struct buf *words);

/* completion_script - for "bash", "zsh" or "fish"; -EINVAL for another. Check b->err. */
int completion_script(struct buf *b, const char *shell);

/* Each shell's own. */
void completion_bash(struct buf *b);
void completion_zsh(struct buf *b);
void completion_fish(struct buf *b);
