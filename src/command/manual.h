/* SPDX-License-Identifier: Apache-2.0 */
/* manual.h - manual pages (man 7 macros) and the rows of docs/commands.md, from the option tables.
 */
#pragma once

#include "base/buf.h"
#include "command/program.h"

/* manual_page - PROGRAM-COMMAND.1. Check b->err. */
void manual_page(struct buf *b, const struct program *p, const struct command *c);

/* manual_index - PROGRAM.1: the commands, exit codes, environment and files. */
void manual_index(struct buf *b, const struct program *p);

/* manual_rows - for each flag of each command a line: program, command, names, help, apart by
 * tabs. */
void manual_rows(struct buf *b, const struct program *p);
