/* SPDX-License-Identifier: Apache-2.0 */
/* completion.c - see completion.h: what can be completed, for all shells. */
#include "command/completion.h"

#include <errno.h>
#include <string.h>

static void put_commands(const struct program *p, struct buf *b)
{
	for (const struct command *const *c = p->commands; *c; c++)
		program_put_word(b, (*c)->name);
}

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool is_end(const struct program_values *v)
{
	return !v->words && !v->put && !v->files;
}

static enum completion_kind put_values(
	const struct program *p, const char *command, const char *option, struct buf *words)
{
	for (const struct program_values *v = p->values; !is_end(v); v++) {
		if ((v->command && !is_same(v->command, command)) || !is_same(v->option, option))
			continue;
		if (v->files)
			return COMPLETION_FILES;
		if (v->words)
			program_put_word(words, v->words);
		else
			v->put(words);
		return COMPLETION_WORDS;
	}
	return COMPLETION_NOTHING;
}

static bool is_path(const char *value_name)
{
	return !strcmp(value_name, "PATH") || !strcmp(value_name, "FILE") ||
	       !strcmp(value_name, "FOLDER");
}

enum completion_kind completion_value(
	const struct program *p, const char *command, const struct option_row *o, struct buf *words)
{
	enum completion_kind kind;

	if (!o->value_name)
		return COMPLETION_NOTHING;
	kind = put_values(p, command, o->name, words);
	if (kind == COMPLETION_NOTHING && is_path(o->value_name))
		return COMPLETION_FILES;
	return kind;
}

enum completion_kind completion_argument(
	const struct program *p, const char *command, struct buf *words)
{
	if (is_same(command, "help"))
		put_commands(p, words);
	else if (is_same(command, "completion"))
		program_put_word(words, "bash zsh fish");
	else
		return put_values(p, command, NULL, words);
	return COMPLETION_WORDS;
}

void completion_text(struct buf *b, const struct program *p, const char *text)
{
	for (; *text; text++) {
		if (*text != COMPLETION_NAME[0] && *text != COMPLETION_ID[0]) {
			buf_putc(b, *text);
			continue;
		}
		for (const char *c = p->name; *c; c++)
			buf_putc(b, *c == '-' && *text == COMPLETION_ID[0] ? '_' : *c);
	}
}

int completion_script(struct buf *b, const struct program *p, const char *shell)
{
	static const struct {
		const char *name;
		void (*write)(struct buf *b, const struct program *p);
	} shells[] = {
		{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};

	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		if (!strcmp(shells[i].name, shell)) {
			shells[i].write(b, p);
			return 0;
		}
	return -EINVAL;
}

void completion_case(struct buf *b, const struct program *p, const char *command,
	const struct option_row *o, completion_put *put)
{
	_cleanup_buf_ struct buf words = BUF_INIT(1 << 16);
	enum completion_kind kind = completion_value(p, command, o, &words);

	if (!o->value_name || o->hidden)
		return;
	buf_printf(b, "\t'%s --%s'", command, o->name);
	if (o->letter)
		buf_printf(b, " | '%s -%c'", command, o->letter);
	buf_puts(b, ")\n\t\t");
	put(b, p, kind, &words);
	buf_puts(b, "\n\t\treturn\n\t\t;;\n");
}
