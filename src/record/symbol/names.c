/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - see names.h. Brings together the table of symbols (names.h), what DWARF says (names.h)
 * and the texts that outlive an answer (names.h).
 *
 * The function itself is called as the symbol table has it, since that tells clones apart; inlined
 * ones exist in DWARF only. Either source may lack, or be too damaged to read. */
#include "record/symbol/names.h"

#include "demangle/demangle.h"
#include "record/symbol/handles.h"

/* A hash table with open addressing over blocks that only grow.
 *
 * Invariants: at most half of the slots are taken; a slot without a text is free. */

#define BLOCK_BYTES (64u << 10)
#define KEY_MAX     (9u << 10) /* longer names are told by their front: nothing demangles them */
#define SLOTS_FIRST 1024

struct block {
	struct block *next;
	size_t used;
	char data[BLOCK_BYTES];
};

struct slot {
	uint64_t hash;
	const char *key;
	const char *text;
	uint32_t key_len;
	bool is_demangled; /* the text was made from the key, else it is the key */
};

struct texts {
	struct block *blocks;
	size_t bytes; /* in blocks */
	struct slot *slots;
	size_t used, cap; /* cap is a power of two */
};

int texts_new(struct texts **ret)
{
	struct texts *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->cap = SLOTS_FIRST;
	t->slots = calloc(t->cap, sizeof(*t->slots));
	if (!t->slots) {
		free(t);
		return -ENOMEM;
	}
	*ret = t;
	return 0;
}

void texts_free(struct texts *t)
{
	while (t->blocks) {
		struct block *next = t->blocks->next;

		free(t->blocks);
		t->blocks = next;
	}
	free(t->slots);
	free(t);
}

static const char *store(struct texts *t, const char *s, size_t len)
{
	char *place;

	if (!t->blocks || t->blocks->used + len + 1 > BLOCK_BYTES) {
		struct block *b;

		if (t->bytes + BLOCK_BYTES > TEXTS_BYTES_MAX)
			return NULL;
		b = malloc(sizeof(*b));
		if (!b)
			return NULL;
		b->next = t->blocks;
		b->used = 0;
		t->blocks = b;
		t->bytes += BLOCK_BYTES;
	}
	place = t->blocks->data + t->blocks->used;
	memcpy(place, s, len);
	place[len] = 0;
	t->blocks->used += len + 1;
	return place;
}

/* Eight bytes at a time: mangled names have hundreds, and every answer looks up several. */
static uint64_t hash_of(const char *s, size_t len)
{
	uint64_t h = len, word;

	for (; len >= sizeof(word); s += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, s, sizeof(word));
		h = (h ^ word) * 0x9e3779b97f4a7c15;
		h ^= h >> 32;
	}
	word = 0;
	memcpy(&word, s, len);
	h = (h ^ word) * 0x9e3779b97f4a7c15;
	return h ^ h >> 32;
}

/* The slot of the key, or the free one where it belongs. */
static struct slot *slot_of(
	const struct texts *t, uint64_t hash, const char *s, size_t len, bool is_demangled)
{
	for (size_t i = hash;; i++) {
		struct slot *slot = &t->slots[i & (t->cap - 1)];

		if (!slot->text || (slot->hash == hash && slot->is_demangled == is_demangled &&
					   slot->key_len == len && memcmp(slot->key, s, len) == 0))
			return slot;
	}
}

static int grow(struct texts *t)
{
	struct slot *old = t->slots;
	size_t old_cap = t->cap;
	struct slot *slots = calloc(old_cap * 2, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	t->slots = slots;
	t->cap = old_cap * 2;
	for (size_t i = 0; i < old_cap; i++)
		if (old[i].text)
			*slot_of(t, old[i].hash, old[i].key, old[i].key_len, old[i].is_demangled) =
				old[i];
	free(old);
	return 0;
}

static const char *look_up(struct texts *t, const char *s, size_t len, bool is_demangled)
{
	uint64_t hash;
	struct slot *slot;
	const char *key, *text;
	char made[NAMES_TEXT_MAX];

	len = MIN(len, (size_t)KEY_MAX);
	hash = hash_of(s, len);
	slot = slot_of(t, hash, s, len, is_demangled);
	if (slot->text)
		return slot->text;
	if ((t->used + 1) * 2 > t->cap) {
		if (grow(t) < 0)
			return NULL;
		slot = slot_of(t, hash, s, len, is_demangled);
	}
	key = store(t, s, len);
	if (!key)
		return NULL;
	if (is_demangled) {
		demangle(key, made, sizeof(made));
	} else {
		struct cut_text cut = cut_text_on(made, sizeof(made));

		cut_text_put(&cut, s, len);
	}
	text = strcmp(made, key) == 0 ? key : store(t, made, strlen(made));
	if (!text)
		return NULL;
	*slot = (struct slot){.hash = hash,
		.key = key,
		.text = text,
		.key_len = (uint32_t)len,
		.is_demangled = is_demangled};
	t->used++;
	return text;
}

const char *texts_keep(struct texts *t, const char *s, size_t len)
{
	return look_up(t, s, len, false);
}

const char *texts_demangled(struct texts *t, const char *mangled, size_t len)
{
	return look_up(t, mangled, len, true);
}

struct names {
	const struct image *image;
	int fd, debug_fd;
	bool is_built;
	struct image *debug;
	struct symtab *symtab;
	struct lines *lines;
	struct texts *texts;
};

int names_open(const struct image *image, int fd, int debug_fd, struct names **ret)
{
	_cleanup_(names_closep) struct names *n = calloc(1, sizeof(*n));
	int r;

	if (!n)
		return -ENOMEM;
	n->image = image;
	n->fd = fd;
	n->debug_fd = debug_fd;
	r = texts_new(&n->texts);
	if (r < 0)
		return r;
	*ret = TAKE(n);
	return 0;
}

void names_close(struct names *n)
{
	lines_freep(&n->lines);
	symtab_freep(&n->symtab);
	image_closep(&n->debug);
	texts_freep(&n->texts);
	free(n);
}

static bool is_same_build(const struct image *a, const struct image *b)
{
	uint8_t x[IMAGE_BUILD_ID_MAX], y[IMAGE_BUILD_ID_MAX];
	int x_len = image_build_id(a, x), y_len = image_build_id(b, y);

	return x_len < 0 || y_len < 0 || (x_len == y_len && memcmp(x, y, (size_t)x_len) == 0);
}

/* A debug file of another build would give wrong names: better none. */
static void open_debug(struct names *n)
{
	_cleanup_(image_closep) struct image *debug = NULL;

	if (n->debug_fd >= 0 && image_open(n->debug_fd, &debug, NULL) == 0 &&
		is_same_build(n->image, debug))
		n->debug = TAKE(debug);
}

/* What cannot be opened stays NULL: the rest still answers. */
static void build(struct names *n)
{
	if (n->is_built)
		return;
	n->is_built = true;
	open_debug(n);
	symtab_new(n->image, n->debug, &n->symtab);
	lines_new(n->fd, n->debug ? n->debug_fd : -1, &n->lines);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static struct names_frame frame_of(struct names *n, const struct lines_frame *f)
{
	struct names_frame out = {.line = f->line};

	if (f->linkage && f->linkage[0])
		out.function = texts_demangled(n->texts, f->linkage, strlen(f->linkage));
	else if (f->function && f->function[0])
		out.function = texts_keep(n->texts, f->function, strlen(f->function));
	if (f->file && f->file[0]) {
		const char *base = base_name(f->file);

		out.file = texts_keep(n->texts, base, strlen(base));
	}
	if (!out.file)
		out.line = 0;
	return out;
}

int names_at(
	struct names *n, uint64_t offset, bool is_return, struct names_frame out[NAMES_INLINE_MAX])
{
	struct lines_frame found[NAMES_INLINE_MAX];
	struct symtab_function function;
	uint64_t vaddr, start = 0;
	int count = 0;

	if (is_return && offset == 0)
		return 0;
	build(n);
	if (image_vaddr(n->image, offset - is_return, &vaddr) < 0)
		return 0;
	if (n->lines)
		count = lines_at(n->lines, vaddr, found, NAMES_INLINE_MAX, &start);
	for (int i = 0; i < count; i++)
		out[i] = frame_of(n, &found[i]);
	if (n->symtab && symtab_at(n->symtab, vaddr, &function)) {
		if (count == 0)
			out[count++] = (struct names_frame){0};
		start = function.vaddr;
		out[count - 1].function =
			texts_demangled(n->texts, function.name, function.name_len);
	}
	/* A cold part's own addresses may lie before the function's first. */
	if (count > 0 && start != 0 && start <= vaddr)
		out[count - 1].from_start = vaddr - start + is_return;
	return count;
}

int names_handle(struct names *n, uint64_t vaddr, struct names_frame out[NAMES_INLINE_MAX])
{
	size_t len;
	const char *kernel = handles_kernel(n->image, vaddr, &len);

	if (!kernel)
		return 0;
	out[0] = (struct names_frame){.function = texts_demangled(n->texts, kernel, len)};
	return 1;
}

int names_symbol(struct names *n, const char *name, uint64_t *ret_vaddr, uint64_t *ret_size)
{
	build(n);
	return n->symtab ? symtab_find(n->symtab, name, ret_vaddr, ret_size) : -ENOENT;
}

size_t names_count(struct names *n)
{
	build(n);
	return n->symtab ? symtab_count(n->symtab) : 0;
}
