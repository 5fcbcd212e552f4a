/* SPDX-License-Identifier: Apache-2.0 */
/* completion.c - see program.h: what can be completed, for all shells. */
#include "command/program.h"

/* completion_case - a branch of a shell's `case` for the value of @o: 'trace --db' | 'trace -d') …
 * What it does there is @put's to write; nothing for flags without a value. */
typedef void completion_put(
	struct buf *b, const struct program *p, enum completion_kind kind, const struct buf *words);

/* One function for bash's `complete -F`. Names are ours and plain (letters,
 * digits, - and _), so that they need no quotes of their own; a test looks. */

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

static const char zsh_tail[] = "}\n"
			       "if [[ ${funcstack[1]} == _" ID " ]]; then\n"
			       "\t_" ID " \"$@\"\n"
			       "else\n"
			       "\tcompdef _" ID " " NAME "\n"
			       "fi\n";

static void completion_text(struct buf *b, const struct program *p, const char *text)
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

static void completion_case(struct buf *b, const struct program *p, const char *command,
	const struct option_row *o, completion_put *put);

/* Each shell's own. */
static void completion_bash(struct buf *b, const struct program *p)
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

/* A list of `complete` commands for fish, with descriptions. */

static const char completion_fish_head[] =
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

static void completion_fish(struct buf *b, const struct program *p)
{
	completion_text(b, p, completion_fish_head);
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

/* One function for zsh, with descriptions. It works both as a file _PROGRAM in
 * $fpath and sourced. */

static const char completion_zsh_head[] =
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

static void completion_zsh_put_answer(
	struct buf *b, const struct program *p, enum completion_kind kind, const struct buf *words)
{
	switch (kind) {
	case COMPLETION_FILES: buf_puts(b, "_files"); break;
	case COMPLETION_WORDS: buf_printf(b, "compadd -- %s", buf_str(words)); break;
	case COMPLETION_NOTHING: buf_puts(b, "_message value"); break;
	}
}

static void completion_zsh_put_flags(struct buf *b, const struct option_row *rows)
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

static void completion_zsh_put_command(
	struct buf *b, const struct program *p, const char *name, const struct option_row *options)
{
	_cleanup_buf_ struct buf words = BUF_INIT(1 << 16);
	enum completion_kind kind = completion_argument(p, name, &words);

	buf_printf(b, "\t'%s -'*)\n\t\tflags=(\n", name);
	completion_zsh_put_flags(b, options);
	completion_zsh_put_flags(b, option_builtins());
	buf_puts(b, "\t\t)\n\t\t_describe -o flag flags\n\t\t;;\n");
	if (kind == COMPLETION_NOTHING)
		return;
	buf_printf(b, "\t'%s '*) ", name);
	completion_zsh_put_answer(b, p, kind, &words);
	buf_puts(b, " ;;\n");
}

static void completion_zsh(struct buf *b, const struct program *p)
{
	completion_text(b, p, completion_zsh_head);
	buf_puts(b, "\tcase \"$command $prev\" in\n");
	for (const struct command *const *c = p->commands; *c; c++)
		for (const struct option_row *o = (*c)->options; o && o->name; o++)
			completion_case(b, p, (*c)->name, o, completion_zsh_put_answer);
	buf_puts(b, "\t*' --config')\n\t\t_files\n\t\treturn\n\t\t;;\n\tesac\n");
	buf_puts(b, "\tcase \"$command $cur\" in\n\t' -'*)\n\t\tflags=(\n"
		    "\t\t\t'--version:show the version'\n");
	completion_zsh_put_flags(b, option_builtins());
	buf_puts(b, "\t\t)\n\t\t_describe -o flag flags\n\t\t;;\n\t' '*)\n\t\tflags=(\n");
	for (const struct command *const *c = p->commands; *c; c++) {
		buf_printf(b, "\t\t\t'%s:", (*c)->name);
		put_text(b, (*c)->summary);
		buf_puts(b, "'\n");
	}
	buf_puts(b, "\t\t\t'help:show the list of commands, or the help of one'\n\t\t)\n"
		    "\t\t_describe command flags\n\t\t;;\n");
	for (const struct command *const *c = p->commands; *c; c++)
		completion_zsh_put_command(b, p, (*c)->name, (*c)->options);
	completion_zsh_put_command(b, p, "help", NULL);
	buf_puts(b, "\tesac\n");
	completion_text(b, p, zsh_tail);
}

/* `completion bash|zsh|fish` of each program: what a shell needs to complete
 * its flags. */

int completion_command(const struct command *cmd, void *settings, int argc, char **argv)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	const struct program *p = program_running();
	struct errinfo e = {0};
	int r = argc ? completion_script(&b, p, argv[0]) : -EINVAL;

	if (r < 0)
		return dispatch_fail(
			&e, errinfo_set(&e, r, "name the shell: %s completion bash, zsh or fish",
				    p->name));
	if (b.err)
		return dispatch_fail(&e, b.err);
	fputs(buf_str(&b), stdout);
	return EXIT_OK;
}

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static enum completion_kind put_values(
	const struct program *p, const char *command, const char *option, struct buf *words)
{
	for (const struct program_values *v = p->values; v->words || v->put || v->files; v++) {
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
		for (const struct command *const *c = p->commands; *c; c++)
			program_put_word(words, (*c)->name);
	else if (is_same(command, "completion"))
		program_put_word(words, "bash zsh fish");
	else
		return put_values(p, command, NULL, words);
	return COMPLETION_WORDS;
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

static void completion_case(struct buf *b, const struct program *p, const char *command,
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
