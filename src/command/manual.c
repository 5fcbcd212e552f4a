/* SPDX-License-Identifier: Apache-2.0 */
/* manual.c - see program.h. Text from the tables is escaped for roff: backslashes, hyphens that are
 * typed, dots and quotes at the beginning of a line, and what is not ASCII. */
#include "command/program.h"

#include <ctype.h>

#include "base/text.h"
#include "config.h"

static const struct {
	enum exit_code code;
	const char *meaning;
} codes[] = {
	{EXIT_OK, "done"},
	{EXIT_FAILED, "failed for another reason"},
	{EXIT_PARTIAL, "some nodes answered, some did not"},
	{EXIT_USAGE, "unknown command, flag or value"},
	{EXIT_BAD_DATA, "invalid data: not a database, damaged, or a newer schema"},
	{EXIT_NO_INPUT, "no such file, process, user or library"},
	{EXIT_NO_FEATURE,
		"something required is missing: a kernel feature, DuckDB's library, a tracer that listens"},
	{EXIT_BUG, "internal error: please report it"},
	{EXIT_NO_CREATE, "cannot create an output file"},
	{EXIT_IO, "reading or writing failed, or the disk is full"},
	{EXIT_TRY_AGAIN, "locked or busy: try again"},
	{EXIT_NO_PERMISSION, "no permission"},
	{EXIT_CONFIG, "the configuration file is wrong"},
};

/* One line of text, without a newline. */
static void put_line(struct buf *b, const char *s, size_t len)
{
	uint32_t cp;

	if (len && (s[0] == '.' || s[0] == '\''))
		buf_puts(b, "\\&");
	for (size_t i = 0; i < len;) {
		int n = text_utf8_next(s + i, len - i, &cp);

		if (n < 0 || cp < 0x20)
			buf_putc(b, '?');
		else if (cp == '\\')
			buf_puts(b, "\\e");
		else if (cp == '-')
			buf_puts(b, "\\-");
		else if (cp == '\'')
			buf_puts(b, "\\(aq");
		else if (cp == '`')
			buf_puts(b, "\\(ga");
		else if (cp == '^')
			buf_puts(b, "\\(ha");
		else if (cp == '~')
			buf_puts(b, "\\(ti");
		else if (cp >= 0x80)
			buf_printf(b, "\\[u%04X]", cp);
		else
			buf_putc(b, (char)cp);
		i += n < 0 ? 1 : (size_t)n;
	}
}

static void put_text(struct buf *b, const char *s)
{
	put_line(b, s, strlen(s));
	buf_putc(b, '\n');
}

/* Paragraphs; lines that begin with two spaces stay as they are. */
static void put_details(struct buf *b, const char *s)
{
	bool verbatim = false, begun = false;

	while (*s) {
		size_t len = strcspn(s, "\n");
		bool indented = len > 2 && !strncmp(s, "  ", 2);

		if (verbatim && !indented)
			buf_puts(b, ".RE\n.fi\n");
		if (len && (!begun || indented != verbatim))
			buf_puts(b, ".PP\n");
		if (indented && !verbatim)
			buf_puts(b, ".nf\n.RS 2\n");
		verbatim = indented;
		begun = len > 0; /* an empty line ends a paragraph */
		if (len) {
			put_line(b, s + (indented ? 2 : 0), len - (indented ? 2 : 0));
			buf_putc(b, '\n');
		}
		s += len + (s[len] == '\n');
	}
	if (verbatim)
		buf_puts(b, ".RE\n.fi\n");
}

static void put_options(struct buf *b, const struct option_row *rows)
{
	for (const struct option_row *o = rows; o && o->name; o++) {
		if (o->hidden)
			continue;
		buf_puts(b, ".TP\n\\fB");
		if (o->letter)
			buf_printf(b, "\\-%c\\fR, \\fB", o->letter);
		buf_puts(b, "\\-\\-");
		put_line(b, o->name, strlen(o->name));
		buf_puts(b, "\\fR");
		if (o->value_name) {
			buf_puts(b, " \\fI");
			put_line(b, o->value_name, strlen(o->value_name));
			buf_puts(b, "\\fR");
		}
		buf_putc(b, '\n');
		put_text(b, o->help);
	}
}

static void put_head(struct buf *b, const char *name)
{
	buf_puts(b,
		".\\\" Written by the build from the option tables (src/command/manual.c).\n.TH ");
	for (const char *p = name; *p; p++)
		buf_putc(b, (char)toupper((unsigned char)*p));
	buf_puts(b, " 1 \"" INGERO_DATE "\" \"ingero " INGERO_VERSION "\" \"ingero\"\n.SH NAME\n");
	put_line(b, name, strlen(name));
	buf_puts(b, " \\- ");
}

/* A page of the program, in bold, as roff's .BR begins. */
static void put_reference(struct buf *b, const struct program *p, const struct command *c)
{
	buf_puts(b, ".BR ");
	put_line(b, p->name, strlen(p->name));
	if (c) {
		buf_puts(b, "\\-");
		put_line(b, c->name, strlen(c->name));
	}
	buf_puts(b, " (1)");
}

void manual_page(struct buf *b, const struct program *p, const struct command *c)
{
	char name[64];

	snprintf(name, sizeof(name), "%s-%s", p->name, c->name);
	put_head(b, name);
	put_text(b, c->summary);
	buf_puts(b, ".SH SYNOPSIS\n.B ");
	put_text(b, p->name);
	put_text(b, c->synopsis);
	buf_puts(b, ".SH DESCRIPTION\n");
	put_text(b, c->summary);
	if (c->details)
		put_details(b, c->details);
	buf_puts(b, ".SH OPTIONS\n");
	put_options(b, c->options);
	put_options(b, option_builtins());
	buf_puts(b,
		".PP\nTimes are written 30s, 500ms, 1h30m; sizes 500m, 10g. A flag that is on by"
		" default is turned off with \\-\\-flag=false.\n"
		".SH EXIT STATUS\n0 on success");
	if (FIND_ROW(o, c->options, name, !strcmp(o->name, "nodes")))
		buf_puts(b, "; 1 if no node answered, 2 if some nodes did and some did not");
	buf_puts(b, "; the others are in\n");
	put_reference(b, p, NULL);
	buf_puts(b, ".\n.SH SEE ALSO\n");
	put_reference(b, p, NULL);
	for (const struct command *const *o = p->commands; *o; o++)
		if (*o != c) {
			buf_puts(b, ",\n");
			put_reference(b, p, *o);
		}
	buf_putc(b, '\n');
}

void manual_index(struct buf *b, const struct program *p)
{
	put_head(b, p->name);
	put_text(b, p->headline);
	buf_puts(b, ".SH SYNOPSIS\n.B ");
	put_text(b, p->name);
	buf_puts(b, ".I COMMAND\n[flags]\n.SH DESCRIPTION\nEach command has its own page.\n");
	for (const struct command *const *c = p->commands; *c; c++) {
		buf_puts(b, ".TP\n");
		put_reference(b, p, *c);
		buf_putc(b, '\n');
		put_text(b, (*c)->summary);
	}
	buf_puts(b, ".SH OPTIONS\nThese can be given before the command or among its flags.\n");
	put_options(b, option_builtins());
	buf_puts(b, ".SH EXIT STATUS\n");
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		buf_printf(b, ".TP\n.B %d\n", codes[i].code);
		put_text(b, codes[i].meaning);
	}
	buf_puts(b, ".SH ENVIRONMENT\n");
	for (const struct program_variable *v = p->variables; v->name; v++) {
		buf_printf(b, ".TP\n.B %s\n", v->name);
		put_text(b, v->meaning);
	}
	if (p->files)
		buf_printf(b, ".SH FILES\n%s", p->files);
}

void manual_rows(struct buf *b, const struct program *p)
{
	for (const struct command *const *c = p->commands; *c; c++)
		for (const struct option_row *o = (*c)->options; o && o->name; o++) {
			if (o->hidden)
				continue;
			buf_printf(b, "%s\t%s\t`--%s%s%s`", p->name, (*c)->name, o->name,
				o->value_name ? " " : "", o->value_name ? o->value_name : "");
			if (o->letter)
				buf_printf(b, ", `-%c`", o->letter);
			buf_printf(b, "\t%s\n", o->help);
		}
}
