/* SPDX-License-Identifier: Apache-2.0 */
/* perfmap.c - see names.h.
 *
 * Entries may overlap, and the later one wins. So the addresses are cut into cells at every start
 * and end, and the entries are painted onto them from the last to the first: a cell keeps the first
 * colour it gets. Painted cells are skipped through `beyond`, so that this takes time in proportion
 * to the number of entries however they overlap.
 *
 * Invariants: edge[] ascends, cell i is [edge[i], edge[i + 1]); the last edge begins no cell. */
#include "record/symbol/names.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/search.h"

#define ENTRIES_MAX                                                                                \
	(2u << 20) /* lines of 32 bytes and more fill the file's ceiling before that               \
		    */
#define NO_ENTRY UINT32_MAX

struct entry {
	uint64_t start, size;
	uint32_t name; /* in text */
};

struct perfmap {
	struct buf text; /* the file, each name ended by a NUL */
	struct entry *entries;
	size_t count, room, bad_lines;
	uint64_t *edge;
	uint32_t *owner; /* of cell i: an entry or NO_ENTRY */
	size_t edges;
};

void perfmap_free(struct perfmap *p)
{
	buf_done(&p->text);
	free(p->entries);
	free(p->edge);
	free(p->owner);
	free(p);
}

static int read_text(int fd, struct buf *text)
{
	char piece[64 << 10];
	ssize_t len;

	while (text->len < PERFMAP_BYTES_MAX) {
		len = pread(fd, piece, MIN(sizeof(piece), PERFMAP_BYTES_MAX - text->len),
			(off_t)text->len);
		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0)
			return -errno;
		if (len == 0)
			return text->err;
		buf_append(text, piece, (size_t)len);
		if (text->err)
			return text->err;
	}
	return text->err;
}

/* A hexadecimal number with or without "0x", and the blanks behind it; NULL if there is none. */
static const char *read_hex(const char *s, uint64_t *ret)
{
	unsigned digits = 0;
	uint64_t n = 0;

	if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
		s += 2;
	for (;; s++, digits++) {
		int value = *s >= '0' && *s <= '9'   ? *s - '0'
			    : *s >= 'a' && *s <= 'f' ? *s - 'a' + 10
			    : *s >= 'A' && *s <= 'F' ? *s - 'A' + 10
						     : -1;

		if (value < 0)
			break;
		if (n >> 60)
			return NULL;
		n = n << 4 | (uint64_t)value;
	}
	if (digits == 0 || (*s != ' ' && *s != '\t'))
		return NULL;
	*ret = n;
	return s + strspn(s, " \t");
}

static int line_add(struct perfmap *p, const char *line)
{
	struct entry e;
	const char *name = read_hex(line, &e.start);
	uint64_t end;
	int r;

	if (name)
		name = read_hex(name, &e.size);
	if (!name || !*name || e.size == 0 || __builtin_add_overflow(e.start, e.size, &end)) {
		p->bad_lines++;
		return 0;
	}
	e.name = (uint32_t)(name - p->text.data);
	r = ARRAY_RESERVE(p->entries, p->room, p->count + 1, ENTRIES_MAX);
	if (r < 0)
		return r;
	p->entries[p->count++] = e;
	return 0;
}

static int lines_add(struct perfmap *p)
{
	char *line = p->text.data, *end = line + p->text.len;

	while (line < end && p->count < ENTRIES_MAX) {
		char *newline = memchr(line, '\n', (size_t)(end - line));
		int r;

		/* What the ceiling cut in two is no line. */
		if (!newline && p->text.len == PERFMAP_BYTES_MAX)
			break;
		newline = newline ?: end;
		*newline = 0;
		if (newline > line && newline[-1] == '\r')
			newline[-1] = 0;
		r = *line ? line_add(p, line) : 0;
		if (r < 0)
			return r;
		line = newline + 1;
	}
	return 0;
}

ORDER(compare_edges, uint64_t, COMPARE(*x, *y))

/* The last edge at or before @address; the first one is. */
static size_t edge_at(const struct perfmap *p, uint64_t address)
{
	return LOWER_BOUND(i, p->edges, p->edge[i] <= address) - 1;
}

static int edges_set(struct perfmap *p)
{
	size_t kept = 1;

	p->edge = malloc(2 * p->count * sizeof(*p->edge));
	if (!p->edge)
		return -ENOMEM;
	for (size_t i = 0; i < p->count; i++) {
		p->edge[2 * i] = p->entries[i].start;
		p->edge[2 * i + 1] = p->entries[i].start + p->entries[i].size;
	}
	SORT(p->edge, 2 * p->count, compare_edges);
	for (size_t i = 1; i < 2 * p->count; i++)
		if (p->edge[i] != p->edge[kept - 1])
			p->edge[kept++] = p->edge[i];
	p->edges = kept;
	return 0;
}

/* The first unpainted cell from @cell on; paths are halved on the way. */
static uint32_t unpainted(uint32_t *beyond, uint32_t cell)
{
	while (beyond[cell] != cell) {
		beyond[cell] = beyond[beyond[cell]];
		cell = beyond[cell];
	}
	return cell;
}

static int cells_paint(struct perfmap *p)
{
	_cleanup_free_ uint32_t *beyond = NULL;

	if (p->count == 0)
		return 0;
	if (edges_set(p) < 0)
		return -ENOMEM;
	p->owner = malloc(p->edges * sizeof(*p->owner));
	beyond = malloc(p->edges * sizeof(*beyond));
	if (!p->owner || !beyond)
		return -ENOMEM;
	for (size_t i = 0; i < p->edges; i++) {
		p->owner[i] = NO_ENTRY;
		beyond[i] = (uint32_t)i;
	}
	for (size_t i = p->count; i-- > 0;) {
		const struct entry *e = &p->entries[i];
		uint32_t last = (uint32_t)edge_at(p, e->start + e->size);
		uint32_t cell = unpainted(beyond, (uint32_t)edge_at(p, e->start));

		for (; cell < last; cell = unpainted(beyond, cell)) {
			p->owner[cell] = (uint32_t)i;
			beyond[cell] = cell + 1;
		}
	}
	return 0;
}

int perfmap_read(int fd, struct perfmap **ret)
{
	_cleanup_(perfmap_freep) struct perfmap *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->text = BUF_INIT(PERFMAP_BYTES_MAX);
	r = read_text(fd, &p->text);
	r = r ?: p->text.len > 0 ? lines_add(p) : 0;
	r = r ?: cells_paint(p);
	if (r < 0)
		return r;
	*ret = TAKE(p);
	return 0;
}

const char *perfmap_at(const struct perfmap *p, uint64_t address, uint64_t *ret_from_start)
{
	const struct entry *e;
	uint32_t owner;

	if (p->count == 0 || address < p->edge[0])
		return NULL;
	owner = p->owner[edge_at(p, address)];
	if (owner == NO_ENTRY)
		return NULL;
	e = &p->entries[owner];
	*ret_from_start = address - e->start;
	return p->text.data + e->name;
}

size_t perfmap_count(const struct perfmap *p)
{
	return p->count;
}

size_t perfmap_bad_lines(const struct perfmap *p)
{
	return p->bad_lines;
}
