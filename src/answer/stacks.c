/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.c - see stacks.h. */
#include "answer/stacks.h"

#include "base/search.h"
#include "wire/op_kind.h"
#include "base/text.h"

int answer_stacks(const struct question *q, struct stacks_answer *ret, struct errinfo *reterr)
{
	struct stacks_answer a = {.ns = 0};
	int r = nodedb_snapshot_list(
		q->snapshot, NODEDB_STACK_TOTALS, &q->scope, 0, &a.totals, reterr);

	if (r < 0)
		return r;
	for (size_t i = 0; i < a.totals.row_count; i++) {
		int64_t rows = table_int(&a.totals, i, STACKS_ROWS);

		a.ns += table_real(&a.totals, i, STACKS_NS);
		a.rows += rows;
		a.without += table_int(&a.totals, i, STACKS_HASH) ? 0 : rows;
	}
	*ret = a;
	return 0;
}

void stacks_answer_done(struct stacks_answer *a)
{
	sql_table_done(&a->totals);
}

/* "17 python3,18 a name, with a comma": what does not begin with a number belongs to the name. */
bool stacks_next_process(
	const char **text, uint32_t *ret_pid, const char **ret_name, size_t *ret_len)
{
	char *end;
	size_t len;

	if (!**text)
		return false;
	*ret_pid = (uint32_t)strtoul(*text, &end, 10);
	*ret_name = end + (*end == ' ');
	len = strcspn(*ret_name, ",");
	while ((*ret_name)[len] == ',' &&
		((*ret_name)[len + 1] < '0' || (*ret_name)[len + 1] > '9'))
		len += 1 + strcspn(*ret_name + len + 1, ",");
	*ret_len = len;
	*text = *ret_name + len + ((*ret_name)[len] == ',');
	return true;
}

/* Rows are appended, and summed up whenever the array is full,
 * so that memory is that of the different stacks and not of the calls. Sums stop at the largest
 * number. */

#define ROWS_MIN 4096

struct rows {
	struct stack_total *items;
	size_t count, capacity;
};

ORDER(by_key, struct stack_total, ASCENDING(hash) ?: ASCENDING(source) ?: ASCENDING(op))

ORDER(by_time, struct stack_total, DESCENDING(ns) ?: by_key(x, y))

static void sum_up(struct rows *r)
{
	size_t n = 0;

	if (!r->count)
		return;
	SORT(r->items, r->count, by_key);
	for (size_t i = 0; i < r->count; i++) {
		if (n && by_key(&r->items[n - 1], &r->items[i]) == 0) {
			r->items[n - 1].ns = capped_sum(r->items[n - 1].ns, r->items[i].ns);
			r->items[n - 1].calls =
				capped_sum(r->items[n - 1].calls, r->items[i].calls);
		} else {
			r->items[n++] = r->items[i];
		}
	}
	r->count = n;
}

static int make_room(struct rows *r)
{
	struct stack_total *bigger;
	size_t capacity;

	if (r->count < r->capacity)
		return 0;
	sum_up(r);
	if (r->capacity && r->count < r->capacity / 2)
		return 0;
	capacity = MAX(2 * r->capacity, (size_t)ROWS_MIN);
	bigger = reallocarray(r->items, capacity, sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	r->items = bigger;
	r->capacity = capacity;
	return 0;
}

static bool is_wanted(const struct event *e, const struct wire_op_row *op)
{
	if (op)
		return e->source == op->source && e->op == op->op;
	return op_kind_is_gpu(e->source) && !(e->flags & WIRE_NESTED);
}

int stack_total_run(const struct event *events, size_t count, const struct wire_op_row *op,
	struct stack_total **ret, size_t *ret_count)
{
	struct rows r = {0};

	for (size_t i = 0; i < count; i++) {
		const struct event *e = &events[i];
		uint64_t weight = MAX(e->weight, 1u);

		if (!is_wanted(e, op))
			continue;
		if (make_room(&r) < 0) {
			free(r.items);
			return -ENOMEM;
		}
		r.items[r.count++] = (struct stack_total){.hash = e->stack_hash,
			.source = e->source,
			.op = e->op,
			.ns = capped_product(e->dur_ns, weight),
			.calls = weight};
	}
	sum_up(&r);
	SORT(r.items, r.count, by_time);
	*ret = r.items;
	*ret_count = r.count;
	return 0;
}

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
	if (s->count <= FRAMES_SHOWN) {
		put_frames(b, s, 0, s->count, indent, width);
	} else {
		put_frames(b, s, 0, FRAMES_SHOWN - FRAMES_OUTER, indent, width);
		buf_printf(b, "%*s" ELLIPSIS " %s in between; --json has them all\n", (int)indent,
			"", TEXT_PLURAL(s->count - FRAMES_SHOWN, "frames"));
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
