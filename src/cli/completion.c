/* SPDX-License-Identifier: Apache-2.0 */
/* completion.c - see completion.h: what can be completed, for all shells. */
#include "cli/completion.h"

#include <errno.h>
#include <string.h>

#include "cli/demo_scenario.h"
#include "wire/names.h"

static void put_word(struct buf *b, const char *word)
{
	if (b->len)
		buf_putc(b, ' ');
	buf_puts(b, word);
}

static void put_ops(struct buf *b)
{
	for (const struct wire_op_row *o = wire_ops; o->name; o++)
		put_word(b, o->name);
}

static void put_scenarios(struct buf *b)
{
	for (const struct demo_scenario *s = demo_scenarios; s->name; s++)
		put_word(b, s->name);
}

static void put_commands(struct buf *b)
{
	for (const struct command *const *c = commands; *c; c++)
		put_word(b, (*c)->name);
}

/* Lists of values. Either words or a function that writes them. */
static const struct {
	const char *command; /* NULL: any */
	const char *option;  /* NULL: what stands behind the command */
	const char *words;
	void (*put)(struct buf *b);
} lists[] = {
	{NULL, "op", NULL, put_ops},
	{"export", "format", "perfetto perfetto-proto flamegraph folded", NULL},
	{"export", "value", "time count", NULL},
	{"trace", "py-walker", "auto ebpf userspace", NULL},
	{"completion", NULL, "bash zsh fish", NULL},
	{"demo", NULL, NULL, put_scenarios},
	{"help", NULL, NULL, put_commands},
};

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool put_list(const char *command, const char *option, struct buf *words)
{
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		if ((lists[i].command && !is_same(lists[i].command, command)) ||
			!is_same(lists[i].option, option))
			continue;
		if (lists[i].words)
			put_word(words, lists[i].words);
		else
			lists[i].put(words);
		return true;
	}
	return false;
}

static bool is_path(const char *value_name)
{
	return !strcmp(value_name, "PATH") || !strcmp(value_name, "FILE") ||
	       !strcmp(value_name, "FOLDER");
}

enum completion_kind completion_value(
	const char *command, const struct option_row *o, struct buf *words)
{
	if (!o->value_name)
		return COMPLETION_NOTHING;
	if (put_list(command, o->name, words))
		return COMPLETION_WORDS;
	return is_path(o->value_name) ? COMPLETION_FILES : COMPLETION_NOTHING;
}

enum completion_kind completion_argument(const char *command, struct buf *words)
{
	if (put_list(command, NULL, words))
		return COMPLETION_WORDS;
	return is_same(command, "merge") ? COMPLETION_FILES : COMPLETION_NOTHING;
}

int completion_script(struct buf *b, const char *shell)
{
	static const struct {
		const char *name;
		void (*write)(struct buf *b);
	} shells[] = {
		{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};

	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		if (!strcmp(shells[i].name, shell)) {
			shells[i].write(b);
			return 0;
		}
	return -EINVAL;
}

void completion_case(
	struct buf *b, const char *command, const struct option_row *o, completion_put *put)
{
	_cleanup_buf_ struct buf words = BUF_INIT(1 << 16);
	enum completion_kind kind = completion_value(command, o, &words);

	if (!o->value_name || o->hidden)
		return;
	buf_printf(b, "\t'%s --%s'", command, o->name);
	if (o->letter)
		buf_printf(b, " | '%s -%c'", command, o->letter);
	buf_puts(b, ")\n\t\t");
	put(b, kind, &words);
	buf_puts(b, "\n\t\treturn\n\t\t;;\n");
}
