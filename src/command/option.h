/* SPDX-License-Identifier: Apache-2.0 */
/* option.h - described options: parsing, --help, man pages (program.h), completion (program.h)
 * and the tables of docs/commands.md derive from one table per command.
 *
 * To add an option: one row in the command's table and one field in its settings struct. */
#pragma once

#include "base/errinfo.h"

enum option_kind {
	OPTION_FLAG,   /* bool; --x, --x=false, --no-x is a row of its own where published */
	OPTION_STRING, /* const char *, not empty: a script's variable that is not set is a mistake */
	OPTION_TEXT,   /* const char *, may be empty: help says what that means */
	OPTION_INT,    /* int64_t, checked against min..max */
	OPTION_NUMBER,   /* double, checked against min..max, which are in thousandths */
	OPTION_DURATION, /* uint64_t ns: "30s", "1h30m", "1w2d", "500ms" */
	OPTION_SIZE,     /* uint64_t bytes: "10g", "500m", "0" */
	OPTION_PIDS,     /* struct option_pids; may be repeated, values may be comma-separated */
	OPTION_STRINGS,  /* struct option_strings; may be repeated */
	OPTION_REFUSED, /* a published flag that has no place here: hidden, help says what to use */
};

#define OPTION_PIDS_MAX 64
struct option_pids {
	uint32_t pid[OPTION_PIDS_MAX];
	size_t count;
};

#define OPTION_STRINGS_MAX 64
struct option_strings {
	const char *value[OPTION_STRINGS_MAX + 1]; /* the one after the last is NULL */
	size_t count;
};

struct option_row {
	const char *name; /* long name; NULL ends the table */
	char letter;      /* short name or 0 */
	enum option_kind kind;
	size_t offset;          /* of the field in the settings struct */
	const char *value_name; /* "N", "PATH", …; NULL for flags */
	const char *help;       /* one line; says the default */
	int64_t min, max;       /* OPTION_INT; of OPTION_DURATION min is 1 where 0 makes no sense */
	bool hidden;            /* parsed, not in --help */
};

/* clang-format off */
/* OPTION_ROW - a row without a letter and limits: OPTION_ROW(STRING, "rates", offset, "FILE", "prices of GPUs"). */
#define OPTION_ROW(KIND, name, offset, value, help) {name, 0, OPTION_##KIND, offset, value, help, 0, 0, false}
/* OPTION_SHORT - with a letter too; OPTION_WITHIN - a number within limits. */
#define OPTION_SHORT(KIND, name, letter, offset, value, help) \
	{name, letter, OPTION_##KIND, offset, value, help, 0, 0, false}
#define OPTION_WITHIN(KIND, name, offset, value, min, max, help) \
	{name, 0, OPTION_##KIND, offset, value, help, min, max, false}
#define OPTION_END {.name = NULL}
/* OPTION_ALIAS - another name of an option, not in --help. */
#define OPTION_ALIAS(KIND, name, offset, value, help) {name, 0, OPTION_##KIND, offset, value, help, 0, 0, true}
/* OPTION_REFUSED_SECRET - a row for @name, whose value would be a secret that can be had from a file or @variable. */
#define OPTION_REFUSED_SECRET(name, variable) \
	OPTION_ALIAS(REFUSED, name, 0, "TOKEN", \
		"other users can see a command line; use --token-file or $" variable)
/* clang-format on */

struct command {
	const char *name;
	const char *synopsis; /* "trace [flags]" */
	const char *summary;  /* one line for the command list */
	const char *details;  /* paragraphs and examples for --help */
	const struct option_row *options;
	size_t settings_size;
	const void *defaults; /* initial settings; NULL: zeros */
	int max_args;         /* positional arguments allowed */
	bool runs_command; /* takes instead a command that stands behind "--", with flags of its own */
	bool tells_updates; /* people look at it: see update.h */
	int (*run)(const struct command *c, void *settings, int argc, char **argv);
};

/* option_parse - fill @settings from argv (argv[0] is the command's name). *ret_first is the index
 * of the first positional argument. -EINVAL with a sentence on any error, -EOPNOTSUPP if it says already
 * what to use instead; 1 if --help was asked. */
int option_parse(const struct command *c, int argc, char **argv, void *settings, int *ret_first,
	struct errinfo *reterr);

/* option_builtins - those that every command of the running program knows. */
const struct option_row *option_builtins(void);

/* option_print_help - of @c of the program that is called @program. */
void option_print_help(const char *program, const struct command *c);
