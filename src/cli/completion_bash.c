/* SPDX-License-Identifier: Apache-2.0 */
/* completion_bash.c - one function for bash's `complete -F`. Names are ours and plain (letters,
 * digits, - and _), so that they need no quotes of their own; a test looks. */
#include "cli/completion.h"

static const char head[] =
	"# bash completion of ingero, as `ingero completion bash` writes it. To use it now:\n"
	"#   source <(ingero completion bash)\n"
	"_ingero() {\n"
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
	"\tdone\n";

static const char tail[] = "}\n"
			   "_ingero_files() {\n"
			   "\tcompopt -o filenames 2>/dev/null\n"
			   "\tmapfile -t COMPREPLY < <(compgen -f -- \"$1\")\n"
			   "}\n"
			   "_ingero_words() {\n"
			   "\tmapfile -t COMPREPLY < <(compgen -W \"$2\" -- \"$1\")\n"
			   "}\n"
			   "complete -F _ingero ingero\n";

static void put_answer(struct buf *b, enum completion_kind kind, const struct buf *words)
{
	switch (kind) {
	case COMPLETION_FILES: buf_puts(b, "_ingero_files \"$cur\""); break;
	case COMPLETION_WORDS: buf_printf(b, "_ingero_words \"$cur\" '%s'", buf_str(words)); break;
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

static void put_command(struct buf *b, const char *name, const struct option_row *options)
{
	_cleanup_buf_ struct buf words = BUF_INIT(1 << 16);
	enum completion_kind kind = completion_argument(name, &words);

	buf_printf(b, "\t'%s -'*) _ingero_words \"$cur\" '", name);
	put_flags(b, options);
	put_flags(b, option_builtin);
	buf_printf(b, "' ;;\n\t'%s '*) ", name);
	put_answer(b, kind, &words);
	buf_puts(b, " ;;\n");
}

void completion_bash(struct buf *b)
{
	buf_puts(b, head);
	buf_puts(b, "\tcase \"$command $prev\" in\n");
	for (const struct command *const *c = commands; *c; c++)
		for (const struct option_row *o = (*c)->options; o && o->name; o++)
			completion_case(b, (*c)->name, o, put_answer);
	buf_puts(b, "\t*' --config')\n\t\t_ingero_files \"$cur\"\n\t\treturn\n\t\t;;\n\tesac\n");
	buf_puts(b, "\tcase \"$command $cur\" in\n\t' '*) _ingero_words \"$cur\" 'help");
	for (const struct command *const *c = commands; *c; c++)
		buf_printf(b, " %s", (*c)->name);
	buf_puts(b, " --version");
	put_flags(b, option_builtin);
	buf_puts(b, "' ;;\n");
	for (const struct command *const *c = commands; *c; c++)
		put_command(b, (*c)->name, (*c)->options);
	put_command(b, "help", NULL);
	buf_puts(b, "\tesac\n");
	buf_puts(b, tail);
}
