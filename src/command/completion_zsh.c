/* SPDX-License-Identifier: Apache-2.0 */
/* completion_zsh.c - one function for zsh, with descriptions. It works both as a file _PROGRAM in
 * $fpath and sourced. */
#include "command/completion.h"

#define NAME COMPLETION_NAME
#define ID   COMPLETION_ID

static const char head[] =
	"#compdef " NAME "\n"
	"# zsh completion of " NAME ", as `" NAME " completion zsh` writes it. To use it now:\n"
	"#   source <(" NAME " completion zsh)\n"
	"_" ID "() {\n"
	"\tlocal cur=${words[CURRENT]} prev=${words[CURRENT - 1]} command='' i\n"
	"\tlocal -a flags\n"
	"\tfor ((i = 2; i < CURRENT; i++)); do\n"
	"\t\tcase ${words[i]} in\n"
	"\t\t--config) ((i++)) ;;\n"
	"\t\t-*) ;;\n"
	"\t\t*)\n"
	"\t\t\tcommand=${words[i]}\n"
	"\t\t\tbreak\n"
	"\t\t\t;;\n"
	"\t\tesac\n"
	"\tdone\n"
	"\t# a command to run\n"
	"\ti=${words[(i)--]}\n"
	"\tif ((i < CURRENT)); then\n"
	"\t\tshift $i words\n"
	"\t\t((CURRENT -= i))\n"
	"\t\t_normal\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tif [[ $cur == --*=* ]]; then\n"
	"\t\tprev=${cur%%=*}\n"
	"\t\tcompset -P 1 '*='\n"
	"\t\tcur=${cur#*=}\n"
	"\tfi\n";

static const char tail[] = "}\n"
			   "if [[ ${funcstack[1]} == _" ID " ]]; then\n"
			   "\t_" ID " \"$@\"\n"
			   "else\n"
			   "\tcompdef _" ID " " NAME "\n"
			   "fi\n";

/* Inside single quotes, and for _describe, where a colon ends the name. */
static void put_text(struct buf *b, const char *text)
{
	for (; *text; text++)
		if (*text == '\'')
			buf_puts(b, "'\\''");
		else if (*text == ':' || *text == '\\')
			buf_printf(b, "\\%c", *text);
		else
			buf_putc(b, *text);
}

static void put_answer(
	struct buf *b, const struct program *p, enum completion_kind kind, const struct buf *words)
{
	switch (kind) {
	case COMPLETION_FILES: buf_puts(b, "_files"); break;
	case COMPLETION_WORDS: buf_printf(b, "compadd -- %s", buf_str(words)); break;
	case COMPLETION_NOTHING: buf_puts(b, "_message value"); break;
	}
}

static void put_flags(struct buf *b, const struct option_row *rows)
{
	for (const struct option_row *o = rows; o && o->name; o++) {
		if (o->hidden)
			continue;
		for (int i = 0; i < (o->letter ? 2 : 1); i++) {
			if (i)
				buf_printf(b, "\t\t\t'-%c:", o->letter);
			else
				buf_printf(b, "\t\t\t'--%s:", o->name);
			put_text(b, o->help);
			buf_puts(b, "'\n");
		}
	}
}

static void put_command(
	struct buf *b, const struct program *p, const char *name, const struct option_row *options)
{
	_cleanup_buf_ struct buf words = BUF_INIT(1 << 16);
	enum completion_kind kind = completion_argument(p, name, &words);

	buf_printf(b, "\t'%s -'*)\n\t\tflags=(\n", name);
	put_flags(b, options);
	put_flags(b, option_builtins());
	buf_puts(b, "\t\t)\n\t\t_describe -o flag flags\n\t\t;;\n");
	if (kind == COMPLETION_NOTHING)
		return;
	buf_printf(b, "\t'%s '*) ", name);
	put_answer(b, p, kind, &words);
	buf_puts(b, " ;;\n");
}

void completion_zsh(struct buf *b, const struct program *p)
{
	completion_text(b, p, head);
	buf_puts(b, "\tcase \"$command $prev\" in\n");
	for (const struct command *const *c = p->commands; *c; c++)
		for (const struct option_row *o = (*c)->options; o && o->name; o++)
			completion_case(b, p, (*c)->name, o, put_answer);
	buf_puts(b, "\t*' --config')\n\t\t_files\n\t\treturn\n\t\t;;\n\tesac\n");
	buf_puts(b, "\tcase \"$command $cur\" in\n\t' -'*)\n\t\tflags=(\n"
		    "\t\t\t'--version:show the version'\n");
	put_flags(b, option_builtins());
	buf_puts(b, "\t\t)\n\t\t_describe -o flag flags\n\t\t;;\n\t' '*)\n\t\tflags=(\n");
	for (const struct command *const *c = p->commands; *c; c++) {
		buf_printf(b, "\t\t\t'%s:", (*c)->name);
		put_text(b, (*c)->summary);
		buf_puts(b, "'\n");
	}
	buf_puts(b, "\t\t\t'help:show the list of commands, or the help of one'\n\t\t)\n"
		    "\t\t_describe command flags\n\t\t;;\n");
	for (const struct command *const *c = p->commands; *c; c++)
		put_command(b, p, (*c)->name, (*c)->options);
	put_command(b, p, "help", NULL);
	buf_puts(b, "\tesac\n");
	completion_text(b, p, tail);
}
