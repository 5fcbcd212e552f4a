/* SPDX-License-Identifier: Apache-2.0 */
/* stack_text.c - see stack_text.h. */
#include "answer/stack_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"

#define FRAME_MAX    8192
#define FRAMES_SHOWN 30 /* a deeper stack is folded to this */
#define FRAMES_OUTER 10 /* of them, from the outer end */
#define ELLIPSIS     "\xe2\x80\xa6"

static void put_python(struct buf *b, const struct stack_frame *f)
{
	const char *name = f->py_func[0] ? f->py_func : "?";

	text_escape_terminal(b, name);
	buf_puts(b, name[0] == '<' ? "" : "()"); /* <module>, <lambda> */
	if (!f->py_file[0])
		return;
	buf_puts(b, " at ");
	text_escape_terminal(b, stack_base_name(f->py_file));
	if (f->py_line)
		buf_printf(b, ":%" PRIu32, f->py_line);
}

/* Bytes of @symbol before the arguments of a demangled name, which are its last brackets; all of it if there are none. */
static size_t before_arguments(const char *symbol)
{
	const char *end = strrchr(symbol, ')');
	int depth = 0;

	for (const char *p = end; p && p > symbol; p--) {
		depth += (*p == ')') - (*p == '(');
		if (!depth)
			return (size_t)(p - symbol);
	}
	return strlen(symbol);
}

static void put_native(struct buf *b, const struct stack_frame *f, bool is_short)
{
	size_t len = f->symbol && is_short ? before_arguments(f->symbol) : 0;

	if (f->symbol && is_short) {
		text_escape_terminal_len(b, f->symbol, len);
		buf_puts(b, f->symbol[len] ? "()" : "");
	} else if (f->symbol)
		text_escape_terminal(b, f->symbol);
	else if (f->ip)
		buf_printf(b, "0x%" PRIx64, f->ip);
	else
		buf_puts(b, "?");
	if (!f->file || !f->file[0])
		return;
	buf_puts(b, f->line ? " (" : " [");
	text_escape_terminal(b, stack_base_name(f->file));
	if (f->line)
		buf_printf(b, ":%" PRIu32 ")", f->line);
	else
		buf_putc(b, ']');
}

void stack_text_frame(struct buf *b, const struct stack_frame *f)
{
	if (stack_frame_is_python(f))
		put_python(b, f);
	else
		put_native(b, f, false);
}

void stack_text_place(struct buf *b, const struct stack_frame *f)
{
	if (stack_frame_is_python(f))
		put_python(b, f);
	else
		put_native(b, f, true);
}

/* Bytes of @s that take at most @columns. */
static size_t fit(const char *s, size_t columns)
{
	size_t i = 0;

	for (; s[i]; i++)
		if (((unsigned char)s[i] & 0xc0) != 0x80 && columns-- == 0)
			break;
	return i;
}

static void put_line(struct buf *b, size_t indent, size_t width, const char *text)
{
	size_t room = width == SIZE_MAX ? SIZE_MAX : width > indent + 20 ? width - indent : 20;
	size_t len = fit(text, room);

	buf_printf(b, "%*s", (int)indent, "");
	if (!text[len]) {
		buf_puts(b, text);
	} else {
		buf_append(b, text, fit(text, room - 1));
		buf_puts(b, ELLIPSIS);
	}
	buf_putc(b, '\n');
}

static void put_frames(
	struct buf *b, const struct stack *s, size_t from, size_t to, size_t indent, size_t width)
{
	for (size_t i = from; i < to; i++) {
		_cleanup_buf_ struct buf line = BUF_INIT(FRAME_MAX);

		stack_text_frame(&line, &s->frames[i]);
		put_line(b, indent, width, buf_str(&line));
	}
}

void stack_text(struct buf *b, const struct stack *s, size_t indent, size_t width)
{
	char text[TEXT_PLURAL_MAX];

	if (s->count <= FRAMES_SHOWN) {
		put_frames(b, s, 0, s->count, indent, width);
	} else {
		put_frames(b, s, 0, FRAMES_SHOWN - FRAMES_OUTER, indent, width);
		buf_printf(b, "%*s" ELLIPSIS " %s in between; --json has them all\n", (int)indent,
			"", text_format_plural(text, s->count - FRAMES_SHOWN, "frames"));
		put_frames(b, s, s->count - FRAMES_OUTER, s->count, indent, width);
	}
	if (!s->count)
		buf_printf(b, "%*s(no frame)\n", (int)indent, "");
	if (s->stop && s->stop[0]) {
		_cleanup_buf_ struct buf line = BUF_INIT(FRAME_MAX);

		buf_puts(&line, "(not complete: ");
		text_escape_terminal(&line, s->stop);
		buf_putc(&line, ')');
		put_line(b, indent, width, buf_str(&line));
	}
}
