/* SPDX-License-Identifier: Apache-2.0 */
/* completion_fish.c - a list of `complete` commands for fish, with descriptions. */
#include "command/completion.h"

#define NAME COMPLETION_NAME
#define ID   COMPLETION_ID

static const char head[] =
	"# fish completion of " NAME ", as `" NAME " completion fish` writes it. To use it now:\n"
	"#   " NAME " completion fish | source\n"
	"function __" ID "_is\n"
	"\tset -l words (commandline -opc)\n"
	"\tset -l command ''\n"
	"\tset -e words[1]\n"
	"\twhile set -q words[1]\n"
	"\t\tswitch $words[1]\n"
	"\t\t\tcase --config\n"
	"\t\t\t\tset -e words[1]\n"
	"\t\t\tcase '-*'\n"
	"\t\t\tcase '*'\n"
	"\t\t\t\tset command $words[1]\n"
	"\t\t\t\tbreak\n"
	"\t\tend\n"
	"\t\tset -e words[1]\n"
	"\tend\n"
	"\ttest \"$command\" = \"$argv[1]\"\n"
	"end\n"
	"complete -c " NAME " -f\n"
	"complete -c " NAME " -n 'contains -- -- (commandline -opc)' -F\n"; /* a command to run */

static void put_quoted(struct buf *b, const char *text)
{
	buf_putc(b, '\'');
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			buf_putc(b, '\\');
		buf_putc(b, *text);
	}
	buf_putc(b, '\'');
}

/* The beginning of a line; @command NULL: wherever the word stands. */
static void put_complete(struct buf *b, const struct program *p, const char *command)
{
	completion_text(b, p, "complete -c " NAME);
	if (command) {
		completion_text(b, p, " -n '__" ID "_is ");
		buf_printf(b, "%s'", command);
	}
}

static void put_option(
	struct buf *b, const struct program *p, const char *command, const struct option_row *o)
{
	_cleanup_buf_ struct buf words = BUF_INIT(1 << 16);
	enum completion_kind kind = completion_value(p, command ? command : "", o, &words);

	if (o->hidden)
		return;
	put_complete(b, p, command);
	buf_printf(b, " -l %s", o->name);
	if (o->letter)
		buf_printf(b, " -s %c", o->letter);
	if (o->value_name)
		buf_puts(b, kind == COMPLETION_FILES ? " -r -F" : " -x");
	if (kind == COMPLETION_WORDS)
		buf_printf(b, " -a '%s'", buf_str(&words));
	buf_puts(b, " -d ");
	put_quoted(b, o->help);
	buf_putc(b, '\n');
}

static void put_argument(struct buf *b, const struct program *p, const char *command)
{
	_cleanup_buf_ struct buf words = BUF_INIT(1 << 16);
	enum completion_kind kind = completion_argument(p, command, &words);

	if (kind == COMPLETION_NOTHING)
		return;
	put_complete(b, p, command);
	if (kind == COMPLETION_FILES)
		buf_puts(b, " -F\n");
	else
		buf_printf(b, " -a '%s'\n", buf_str(&words));
}

static void put_name(struct buf *b, const struct program *p, const char *name, const char *summary)
{
	put_complete(b, p, "\"\"");
	buf_printf(b, " -a %s -d ", name);
	put_quoted(b, summary);
	buf_putc(b, '\n');
}

void completion_fish(struct buf *b, const struct program *p)
{
	completion_text(b, p, head);
	for (const struct command *const *c = p->commands; *c; c++)
		put_name(b, p, (*c)->name, (*c)->summary);
	put_name(b, p, "help", "show the list of commands, or the help of one");
	put_complete(b, p, "\"\"");
	buf_puts(b, " -l version -d 'show the version'\n");
	for (const struct option_row *o = option_builtins(); o->name; o++)
		put_option(b, p, NULL, o);
	for (const struct command *const *c = p->commands; *c; c++) {
		for (const struct option_row *o = (*c)->options; o && o->name; o++)
			put_option(b, p, (*c)->name, o);
		put_argument(b, p, (*c)->name);
	}
	put_argument(b, p, "help");
}
