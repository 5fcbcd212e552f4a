/* SPDX-License-Identifier: Apache-2.0 */
/* elfsym_search.c - functions by a part of their names: see elfsym.h. As in elfsym.c nothing of the
 * file is believed, and memory does not grow with it.
 *
 * The string table is searched as bytes, because a name may be the end of another string: a place
 * that no symbol has as its name does no harm. About 1 ms for each MB of names and each pattern. */

#include "base/array.h"
#include "base/buf.h"
#include "record/discover/elfsym_private.h"

/* Where an ELF file says that its libraries are. Hostile input, as in elfsym.c: every offset is
 * checked by elfsym_read(), counts and lengths have ceilings. */

#define ENTRIES_MAX 4096 /* of the dynamic section */
#define STRING_MAX  4096

static int find_dynamic(const struct elfsym *e, uint64_t *ret_offset, size_t *ret_count)
{
	for (size_t i = 0; i < e->segment_count; i++)
		if (e->segments[i].p_type == PT_DYNAMIC) {
			*ret_offset = e->segments[i].p_offset;
			*ret_count = MIN(
				e->segments[i].p_filesz / sizeof(Elf64_Dyn), (uint64_t)ENTRIES_MAX);
			return 0;
		}
	return -ENOENT;
}

/* The string at @at, which is cut where the file ends. */
static int read_string(struct elfsym *e, uint64_t at, char out[STRING_MAX])
{
	size_t len = at < e->size ? MIN(e->size - at, (uint64_t)STRING_MAX - 1) : 0;
	int r = len ? elfsym_read(e, at, out, len) : -EBADMSG;

	out[r < 0 ? 0 : len] = 0;
	return r;
}

int elfsym_linked(struct elfsym *e, struct buf *folders, struct buf *names)
{
	uint64_t at = 0, strings = 0;
	char text[STRING_MAX];
	size_t count = 0;
	Elf64_Dyn d;
	int r = find_dynamic(e, &at, &count);

	for (size_t i = 0; r == 0 && !strings && i < count; i++) {
		r = elfsym_read(e, at + i * sizeof(d), &d, sizeof(d));
		if (r == 0 && d.d_tag == DT_STRTAB)
			strings = elfsym_file_offset(e, d.d_un.d_ptr, PF_R);
	}
	if (r == 0 && !strings)
		return -EBADMSG;
	for (size_t i = 0; r == 0 && i < count; i++) {
		r = elfsym_read(e, at + i * sizeof(d), &d, sizeof(d));
		if (r < 0 || d.d_tag == DT_NULL)
			break;
		if (d.d_tag != DT_NEEDED && d.d_tag != DT_RPATH && d.d_tag != DT_RUNPATH)
			continue;
		if (d.d_un.d_val > e->size)
			return -EBADMSG;
		r = read_string(e, strings + d.d_un.d_val, text);
		if (r == 0 && d.d_tag == DT_NEEDED) {
			buf_append(names, text, strlen(text) + 1);
		} else if (r == 0) {
			buf_puts(folders, folders->len ? ":" : "");
			buf_puts(folders, text);
		}
	}
	return r;
}

#define HITS_MAX 65536 /* places where the patterns' texts are; more is nonsense */

struct pattern {
	const char *text;
	size_t len;
	bool is_prefix;
};

struct matches {
	const struct pattern *patterns;
	uint64_t *offsets;
	uint32_t *found;
	size_t count, max;
	struct elfsym_hit *hits;
	size_t hit_count, hit_room;
};

/* What may follow the text: for a name its end, or what a compiler appends to the name of a copy.
 * The part of a function that is kept apart because it is seldom run is not one. */
static bool is_match(const struct pattern *p, const char *behind, size_t left)
{
	return p->is_prefix || (left && (*behind == 0 || (*behind == '.' && left >= 5 &&
								 memcmp(behind, ".cold", 5))));
}

static int note_hits(struct matches *m, uint32_t pattern, const char *data, size_t len, uint64_t at,
	size_t searched)
{
	const struct pattern *p = &m->patterns[pattern];
	const char *from = data, *found;

	while ((found = memmem(from, len - (size_t)(from - data), p->text, p->len))) {
		size_t end = (size_t)(found - data) + p->len;

		from = found + 1;
		if ((size_t)(found - data) >= searched)
			return 0; /* the next piece has it too */
		if (!is_match(p, data + end, len - end))
			continue;
		if (ARRAY_RESERVE(m->hits, m->hit_room, m->hit_count + 1, HITS_MAX) < 0)
			return -EBADMSG;
		m->hits[m->hit_count++] = (struct elfsym_hit){
			.at = (uint32_t)(at + (uint64_t)(found - data)), .name = pattern};
	}
	return 0;
}

/* Pieces overlap by the longest name that may be asked for, and the five bytes behind it. */
static int search_strings(struct elfsym *e, const struct elfsym_table *t, struct matches *m,
	const bool *is_wanted, size_t count)
{
	const size_t overlap = ELFSYM_NAME_MAX + 8;
	_cleanup_free_ char *data = malloc(ELFSYM_PIECE + overlap);
	int r = data ? 0 : -ENOMEM;

	m->hit_count = 0;
	for (uint64_t at = 0; r == 0 && at < t->strings_size; at += ELFSYM_PIECE) {
		size_t len = (size_t)MIN((uint64_t)(ELFSYM_PIECE + overlap), t->strings_size - at);

		r = elfsym_read(e, t->strings + at, data, len);
		for (uint32_t i = 0; r == 0 && i < count; i++)
			if (is_wanted[i])
				r = note_hits(m, i, data, len, at, ELFSYM_PIECE);
	}
	return r;
}

static void take_match(void *arg, uint32_t pattern, uint64_t offset, uint64_t size)
{
	struct matches *m = arg;

	for (size_t i = 0; i < m->count; i++)
		if (m->offsets[i] == offset)
			return;
	if (!offset || m->count == m->max)
		return;
	m->offsets[m->count] = offset;
	m->found[m->count++] = pattern;
}

static int search_table(struct elfsym *e, const struct elfsym_table *t, struct matches *m,
	const bool *is_wanted, size_t count)
{
	int r;

	if (!t->symbols_size)
		return 0;
	r = search_strings(e, t, m, is_wanted, count);
	return r < 0 || !m->hit_count ? r : elfsym_find(e, t, m->hits, m->hit_count, take_match, m);
}

int elfsym_search(struct elfsym *e, const char *const *patterns, size_t count,
	uint64_t *ret_offsets, uint32_t *ret_patterns, size_t max)
{
	struct pattern parsed[ELFSYM_PATTERNS_MAX];
	bool all[ELFSYM_PATTERNS_MAX], local[ELFSYM_PATTERNS_MAX];
	struct matches m = {
		.patterns = parsed, .offsets = ret_offsets, .found = ret_patterns, .max = max};
	bool has_local = false;
	int r;

	if (count > ELFSYM_PATTERNS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < count; i++) {
		size_t len = strlen(patterns[i]);
		bool is_prefix = len && patterns[i][len - 1] == '*';
		bool is_any = len > 1 && is_prefix && patterns[i][len - 2] == '*';

		parsed[i] = (struct pattern){patterns[i], len - is_prefix - is_any, is_prefix};
		if (!parsed[i].len || parsed[i].len > ELFSYM_NAME_MAX)
			return -EINVAL;
		all[i] = true;
		local[i] = !is_prefix || is_any;
		has_local |= local[i];
	}
	r = search_table(e, &e->dynamic, &m, all, count);
	if (r == 0 && has_local)
		r = search_table(e, &e->full, &m, local, count);
	free(m.hits);
	return r < 0 ? r : (int)m.count;
}
