/* SPDX-License-Identifier: Apache-2.0 */
/* completion_bash.c - one function for bash's `complete -F`. Names are ours and plain (letters,
 * digits, - and _), so that they need no quotes of their own; a test looks. */
#include "command/completion.h"

#define NAME COMPLETION_NAME
#define ID   COMPLETION_ID

static const char head[] =
	"# bash completion of " NAME ", as `" NAME " completion bash` writes it. To use it now:\n"
	"#   source <(" NAME " completion bash)\n"
	"_" ID "() {\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' i\n"
	"\tCOMPREPLY=()\n"
	"\t# --flag=VALUE comes as three words\n"
	"\tif [ \"$cur\" = = ]; then\n"
	"\t\tcur=''\n"
	"\telif [ \"$prev\" = = ]; then\n"
	"\t\tprev=${COMP_WORDS[COMP_CWORD - 2]}\n"
	"\tfi\n"
	"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	"\t\tcase ${COMP_WORDS[i]} in\n"
	"\t\t--config) ((i++)) ;;\n"
	"\t\t-*) ;;\n"
	"\t\t*)\n"
	"\t\t\tcommand=${COMP_WORDS[i]}\n"
	"\t\t\tbreak\n"
	"\t\t\t;;\n"
	"\t\tesac\n"
	"\tdone\n"
	"\t# a command to run\n"
	"\tfor ((; i < COMP_CWORD; i++)); do\n"
	"\t\tif [ \"${COMP_WORDS[i]}\" = -- ]; then\n"
	"\t\t\t_" ID "_files \"$cur\"\n"
	"\t\t\tif ((i == COMP_CWORD - 1)); then\n"
	"\t\t\t\tmapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -c -- \"$cur\")\n"
	"\t\t\tfi\n"
	"\t\t\treturn\n"
	"\t\tfi\n"
	"\tdone\n";

static const char tail[] = "}\n"
			   "_" ID "_files() {\n"
			   "\tcompopt -o filenames 2>/dev/null\n"
			   "\tmapfile -t COMPREPLY < <(compgen -f -- \"$1\")\n"
			   "}\n"
			   "_" ID "_words() {\n"
			   "\tmapfile -t COMPREPLY < <(compgen -W \"$2\" -- \"$1\")\n"
			   "}\n"
			   "complete -F _" ID " " NAME "\n";

static void put_answer(
	struct buf *b, const struct program *p, enum completion_kind kind, const struct buf *words)
{
	switch (kind) {
	case COMPLETION_FILES: completion_text(b, p, "_" ID "_files \"$cur\""); break;
	case COMPLETION_WORDS:
		completion_text(b, p, "_" ID "_words \"$cur\" ");
		buf_printf(b, "'%s'", buf_str(words));
		break;
	case COMPLETION_NOTHING: buf_puts(b, ":"); break;
	}
}

static void put_flags(struct buf *b, const struct option_row *rows)
{
	for (const struct option_row *o = rows; o && o->name; o++) {
		if (o->hidden)
			continue;
		buf_printf(b, " --%s", o->name);
		if (o->letter)
			buf_printf(b, " -%c", o->letter);
	}
}

static void put_command(
	struct buf *b, const struct program *p, const char *name, const struct option_row *options)
{
	_cleanup_buf_ struct buf words = BUF_INIT(1 << 16);
	enum completion_kind kind = completion_argument(p, name, &words);

	buf_printf(b, "\t'%s -'*) ", name);
	completion_text(b, p, "_" ID "_words \"$cur\" '");
	put_flags(b, options);
	put_flags(b, option_builtins());
	buf_printf(b, "' ;;\n\t'%s '*) ", name);
	put_answer(b, p, kind, &words);
	buf_puts(b, " ;;\n");
}

void completion_bash(struct buf *b, const struct program *p)
{
	completion_text(b, p, head);
	buf_puts(b, "\tcase \"$command $prev\" in\n");
	for (const struct command *const *c = p->commands; *c; c++)
		for (const struct option_row *o = (*c)->options; o && o->name; o++)
			completion_case(b, p, (*c)->name, o, put_answer);
	completion_text(b, p,
		"\t*' --config')\n\t\t_" ID "_files \"$cur\"\n\t\treturn\n\t\t;;\n\tesac\n"
		"\tcase \"$command $cur\" in\n\t' '*) _" ID "_words \"$cur\" 'help");
	for (const struct command *const *c = p->commands; *c; c++)
		buf_printf(b, " %s", (*c)->name);
	buf_puts(b, " --version");
	put_flags(b, option_builtins());
	buf_puts(b, "' ;;\n");
	for (const struct command *const *c = p->commands; *c; c++)
		put_command(b, p, (*c)->name, (*c)->options);
	put_command(b, p, "help", NULL);
	buf_puts(b, "\tesac\n");
	completion_text(b, p, tail);
}
