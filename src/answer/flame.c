/* SPDX-License-Identifier: Apache-2.0 */
/* flame.c - see flame.h. Nodes and names are found by hash maps, so that adding a stack costs its
 * frames. Nothing recurses: a tree may be as deep as the deepest stack, and its order follows from
 * the links alone. */
#include "answer/flame.h"

#include "record/probe/function.h"
#include "base/buf.h"
#include "base/macros.h"
#include "base/hash.h"
#include "base/text.h"
#include "wire/names.h"

#define NO_STACK "[no stack]"
#define ELLIPSIS "\xe2\x80\xa6"

void flame_done(struct flame *f)
{
	for (size_t i = 0; i < f->name_count; i++)
		free(f->names[i]);
	free(f->names);
	free(f->nodes);
	idmap_done(&f->children);
	idmap_done(&f->texts);
	*f = FLAME_INIT;
}

static int make_room(void **array, size_t count, size_t *capacity, size_t element_bytes)
{
	size_t more = MAX(2 * *capacity, (size_t)256);
	void *p;

	if (count < *capacity)
		return 0;
	p = reallocarray(*array, more, element_bytes);
	if (!p)
		return -ENOMEM;
	*array = p;
	*capacity = more;
	return 0;
}

/* The number of the name; -ENOBUFS at the ceiling, -ENOMEM. Texts of one hash take the next ids. */
static int name_put(struct flame *f, const char *text, enum flame_kind kind, uint32_t *ret)
{
	uint64_t id = hash_bytes(text, strlen(text)) + (uint64_t)kind;
	size_t len = strlen(text);
	struct flame_name *name;
	void *found;
	int r;

	for (; (found = idmap_get(&f->texts, id)); id++) {
		uint32_t at = (uint32_t)(uintptr_t)found - 1;

		if (f->names[at]->kind == kind && !strcmp(f->names[at]->text, text)) {
			*ret = at;
			return 0;
		}
	}
	r = make_room((void **)&f->names, f->name_count, &f->name_capacity, sizeof(*f->names));
	if (r < 0)
		return r;
	name = malloc(sizeof(*name) + len + 1);
	if (!name)
		return -ENOMEM;
	name->kind = kind;
	memcpy(name->text, text, len + 1);
	r = idmap_put(&f->texts, id, (void *)(uintptr_t)(f->name_count + 1));
	if (r < 0) {
		free(name);
		return r;
	}
	*ret = (uint32_t)f->name_count;
	f->names[f->name_count++] = name;
	return 0;
}

/* *node becomes its child of that name. */
static int descend(struct flame *f, uint32_t *node, const char *text, enum flame_kind kind)
{
	uint32_t name = 0;
	uint64_t id;
	void *found;
	int r = name_put(f, text, kind, &name);

	if (r < 0)
		return r;
	id = (uint64_t)*node << 32 | name;
	found = idmap_get(&f->children, id);
	if (found) {
		*node = (uint32_t)(uintptr_t)found;
		return 0;
	}
	if (f->count == FLAME_NODES_MAX)
		return -ENOBUFS;
	r = make_room((void **)&f->nodes, f->count, &f->capacity, sizeof(*f->nodes));
	r = r ?: idmap_put(&f->children, id, (void *)(uintptr_t)f->count);
	if (r < 0)
		return r;
	f->nodes[f->count] = (struct flame_node){
		.parent = *node, .name = name, .depth = f->nodes[*node].depth + 1};
	*node = (uint32_t)f->count++;
	return 0;
}

/* ---- names ---- */

/* Without the offset that published files have: "cudaMalloc+0x1f3". */
static size_t symbol_len(const char *symbol)
{
	const char *plus = strrchr(symbol, '+');

	if (plus && plus > symbol && !strncmp(plus, "+0x", 3) &&
		plus[3 + strspn(plus + 3, "0123456789abcdef")] == 0)
		return (size_t)(plus - symbol);
	return strlen(symbol);
}

/* The probed function of that name; NULL if it is none. */
static const struct probe_function *find_call(const char *symbol, size_t len)
{
	static const struct probe_library *const libraries[] = {
		&probe_cuda_rt, &probe_cuda_drv, &probe_nccl};

	if (strncmp(symbol, "cu", 2) != 0 && strncmp(symbol, "nccl", 4) != 0)
		return NULL; /* nearly all */
	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
		for (const struct probe_function *p = libraries[i]->functions; p->symbols[0]; p++)
			for (int k = 0; k < FUNCTION_VARIANTS && p->symbols[k]; k++)
				if (strlen(p->symbols[k]) == len &&
					!strncmp(p->symbols[k], symbol, len))
					return p;
	return NULL;
}

static void put_clean(struct buf *b, const char *text, size_t len)
{
	size_t at = b->len;

	text_escape_terminal_len(b, text, MIN(len, (size_t)FLAME_NAME_MAX));
	for (; at < b->len; at++)
		if (b->data[at] == ';')
			b->data[at] = ',';
	if (len > FLAME_NAME_MAX)
		buf_puts(b, ELLIPSIS);
}

static bool has_symbol(const struct stack_frame *frame)
{
	return frame->symbol && frame->symbol[0];
}

static enum flame_kind put_frame(
	const struct flame *f, const struct stack_frame *frame, struct buf *b)
{
	size_t len;

	if (stack_frame_is_python(frame)) {
		const char *file = stack_base_name(frame->py_file);
		const char *func = frame->py_func[0] ? frame->py_func : "?";

		if (f->function_first) {
			put_clean(b, func, strlen(func));
			buf_puts(b, " (");
		}
		put_clean(b, file, strlen(file));
		if (frame->py_line)
			buf_printf(b, ":%" PRIu32, frame->py_line);
		buf_puts(b, f->function_first ? ")" : " ");
		if (!f->function_first)
			put_clean(b, func, strlen(func));
		return FLAME_PYTHON;
	}
	if (!has_symbol(frame)) {
		const char *file = frame->file && frame->file[0] ? frame->file : "unknown";

		buf_putc(b, '[');
		put_clean(b, stack_base_name(file), strlen(stack_base_name(file)));
		buf_putc(b, ']');
		return FLAME_NATIVE;
	}
	len = symbol_len(frame->symbol);
	put_clean(b, frame->symbol, len);
	return find_call(frame->symbol, len) ? FLAME_CALL : FLAME_NATIVE;
}

/* Whether the innermost frame is the function that made the record. */
static bool is_op(const struct stack_frame *frame, unsigned source, unsigned op)
{
	const struct probe_function *p =
		frame->symbol ? find_call(frame->symbol, symbol_len(frame->symbol)) : NULL;

	return p && p->cookie.source == source && p->cookie.op == op;
}

/* ---- the tree ---- */

static int add_frames(struct flame *f, const struct stack *s, uint32_t *node)
{
	bool was_nameless = false;

	for (size_t i = s->count; i-- > 0;) {
		_cleanup_buf_ struct buf text = BUF_INIT(64 * FLAME_NAME_MAX);
		enum flame_kind kind = put_frame(f, &s->frames[i], &text);
		bool nameless = kind == FLAME_NATIVE && !has_symbol(&s->frames[i]);
		int r;

		if (text.err)
			return text.err;
		if (nameless && was_nameless &&
			!strcmp(buf_str(&text), flame_name_of(f, *node)->text))
			continue;
		was_nameless = nameless;
		r = descend(f, node, buf_str(&text), kind);
		if (r < 0)
			return r;
	}
	return 0;
}

static void add_to(uint64_t *sum, uint64_t value)
{
	*sum = capped_sum(*sum, value);
}

static int add_stack(struct flame *f, const struct stack *s, unsigned source, unsigned op,
	uint64_t value, bool second)
{
	uint32_t node = 0;
	char name[32];
	int r = 0;

	if (!f->count) {
		r = make_room((void **)&f->nodes, 0, &f->capacity, sizeof(*f->nodes));
		if (r < 0)
			return r;
		f->nodes[f->count++] = (struct flame_node){0};
	}
	r = s && s->count ? add_frames(f, s, &node) : descend(f, &node, NO_STACK, FLAME_NATIVE);
	if (r == 0 && !(s && s->count && is_op(&s->frames[0], source, op)))
		r = descend(f, &node, wire_op_name(source, op, name), FLAME_CALL);
	if (r == -ENOBUFS) {
		f->left_out += value;
		return 0;
	}
	if (r == 0)
		add_to(second ? &f->nodes[node].self2 : &f->nodes[node].self, value);
	return r;
}

int flame_add(struct flame *f, const struct stack *s, unsigned source, unsigned op, uint64_t value)
{
	return add_stack(f, s, source, op, value, false);
}

int flame_add_second(
	struct flame *f, const struct stack *s, unsigned source, unsigned op, uint64_t value)
{
	return add_stack(f, s, source, op, value, true);
}

/* By parent, then smallest first: links are made by putting each in front of its siblings. */
static int by_place(const void *a, const void *b, void *arg)
{
	const struct flame *f = arg;
	const struct flame_node *x = &f->nodes[*(const uint32_t *)a];
	const struct flame_node *y = &f->nodes[*(const uint32_t *)b];
	int order;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (x->total != y->total)
		return x->total < y->total ? -1 : 1;
	if (x->total2 != y->total2)
		return x->total2 < y->total2 ? -1 : 1;
	order = strcmp(f->names[y->name]->text, f->names[x->name]->text);
	return order ? order : (int)f->names[y->name]->kind - (int)f->names[x->name]->kind;
}

int flame_finish(struct flame *f)
{
	_cleanup_free_ uint32_t *order = calloc(f->count + 1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < f->count; i++) {
		f->nodes[i].total = f->nodes[i].self;
		f->nodes[i].total2 = f->nodes[i].self2;
		f->nodes[i].child = f->nodes[i].next = 0;
		order[i] = (uint32_t)i;
	}
	for (size_t i = f->count; i-- > 1;) {
		struct flame_node *parent = &f->nodes[f->nodes[i].parent];

		add_to(&parent->total, f->nodes[i].total);
		add_to(&parent->total2, f->nodes[i].total2);
	}
	if (f->count > 1)
		qsort_r(order + 1, f->count - 1, sizeof(*order), by_place, f);
	for (size_t i = 1; i < f->count; i++) {
		struct flame_node *n = &f->nodes[order[i]], *parent = &f->nodes[n->parent];

		n->next = parent->child;
		parent->child = order[i];
	}
	return 0;
}

uint32_t flame_next(const struct flame *f, uint32_t node, bool skip)
{
	if (!skip && f->count && f->nodes[node].child)
		return f->nodes[node].child;
	while (node && !f->nodes[node].next)
		node = f->nodes[node].parent;
	return node ? f->nodes[node].next : 0;
}
