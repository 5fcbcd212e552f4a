/* SPDX-License-Identifier: Apache-2.0 */
/* unwind_table.c - see unwind_table.h. Two passes over .eh_frame: where the functions are, sorted
 * by address; then each one's rows in that order.
 *
 * Invariants: everything below `covered` is decided, and rows are only appended at or behind it, so
 * addresses ascend and of two entries for one address the first wins. Neighbours differ in their
 * rule. A dropped row's code is looked up in the row before it: that is wrong there, and nobody
 * asks, because no call returns there. The work is linear in the section but for the sorting. */
#include "record/symbol/unwind_table.h"

#include <elf.h>

#include "base/array.h"
#include "base/search.h"
#include "record/symbol/eh_frame.h"

/* BL; BLR and the forms of it that authenticate the address (BLRAA, BLRAB, BLRAAZ, BLRABZ). */
static bool is_call_arm64(uint32_t word)
{
	return (word & 0xfc000000) == 0x94000000 || (word & 0xfefff000) == 0xd63f0000;
}

/* call rel32, five bytes; call through a register or memory, two at least. Prefixes do not matter:
 * the bytes behind them are looked at too. */
static bool is_call_x86(const uint8_t *code, uint64_t size)
{
	return (code[0] == 0xe8 && size >= 5) ||
	       (code[0] == 0xff && size >= 2 && (code[1] >> 3 & 7) == 2);
}

bool call_site_possible(unsigned machine, const uint8_t *code, uint64_t vaddr, uint64_t size)
{
	uint64_t at = 0;

	if (size > CALL_SITE_SCAN_MAX)
		return true;
	if (machine == EM_X86_64) {
		for (; at < size; at++)
			if (is_call_x86(code + at, size - at))
				return true;
		return false;
	}
	for (at = -vaddr & 3; at + 4 <= size; at += 4) {
		uint32_t word;

		memcpy(&word, code + at, sizeof(word));
		if (is_call_arm64(word))
			return true;
	}
	return false;
}

#define TEXTS_MAX            16 /* executable segments; linkers make one or two */
#define SLOTS                (4 * UNWIND_TABLE_RULES_MAX) /* a power of two */
#define NO_RECORD            UINT32_MAX /* the program's first function, not described */
#define FIRST_FUNCTION_BYTES 128        /* at most; 52 on arm64, 38 on x86-64 */

struct entry {
	uint32_t start, end; /* file offsets */
	uint32_t record;     /* offset in .eh_frame, or NO_RECORD */
};

struct builder {
	unsigned machine;
	const uint8_t *data; /* the file */
	struct image_range texts[TEXTS_MAX];
	unsigned text_count, text_last;
	struct eh_frame frame;
	struct entry *entries;
	uint32_t entry_count;
	bool sorted;
	struct unwind_table table;
	size_t entry_room, address_room, row_room, rule_room;
	uint32_t covered;
	uint16_t *slots; /* rules by hash: index, 0 if free */
};

static void builder_done(struct builder *b)
{
	free(b->entries);
	free(b->slots);
	unwind_table_done(&b->table);
}

/* ---- rules ---- */

static uint32_t rule_hash(const struct unwind_rule *rule)
{
	uint64_t words[2], h;

	memcpy(words, rule, sizeof(words));
	h = (words[0] * 0x9e3779b97f4a7c15 ^ words[1]) * 0x9e3779b97f4a7c15;
	return (uint32_t)(h >> 32);
}

static int rule_append(struct builder *b, const struct unwind_rule *rule)
{
	struct unwind_table *t = &b->table;
	int r = ARRAY_RESERVE(t->rules, b->rule_room, t->rule_count + 1, UNWIND_TABLE_RULES_MAX);

	if (r < 0)
		return r;
	t->rules[t->rule_count] = *rule;
	return (int)t->rule_count++;
}

/* The index of @rule, which is not UNWIND_CFA_NONE; 0 if there are too many rules. */
static int rule_index(struct builder *b, const struct unwind_rule *rule)
{
	const struct unwind_table *t = &b->table;
	uint32_t slot = rule_hash(rule) & (SLOTS - 1);
	int r;

	for (; b->slots[slot]; slot = (slot + 1) & (SLOTS - 1))
		if (memcmp(&t->rules[b->slots[slot]], rule, sizeof(*rule)) == 0)
			return b->slots[slot];
	r = rule_append(b, rule);
	if (r > 0)
		b->slots[slot] = (uint16_t)r;
	return r == -ENOBUFS ? 0 : r;
}

/* ---- rows ---- */

/* -ENOBUFS if there is no room for a further row; the last one then says that nothing is known. */
static int row_append(struct builder *b, uint32_t address, uint16_t rule)
{
	struct unwind_table *t = &b->table;
	bool is_last;
	int r;

	if (t->count > 0 && t->rule[t->count - 1] == rule)
		return 0;
	r = ARRAY_RESERVE(t->address, b->address_room, t->count + 1, UNWIND_TABLE_ROWS_MAX);
	r = r ?: ARRAY_RESERVE(t->rule, b->row_room, t->count + 1, UNWIND_TABLE_ROWS_MAX);
	if (r < 0)
		return r;
	is_last = t->count + 1 == UNWIND_TABLE_ROWS_MAX;
	t->address[t->count] = address;
	t->rule[t->count++] = is_last ? 0 : rule;
	t->cut |= is_last;
	return is_last ? -ENOBUFS : 0;
}

static bool may_call(const struct builder *b, uint32_t start, uint32_t end)
{
	/* file offsets and addresses agree in their last two bits */
	return call_site_possible(b->machine, b->data + start, start, end - start);
}

/* Walks come here without a call: by the first return address, or by a signal's. */
static bool is_reached(const struct unwind_rule *rule)
{
	return rule->cfa == UNWIND_CFA_OUTERMOST || rule->cfa == UNWIND_CFA_SIGNAL;
}

/* The rows of @e from b->covered on. -EBADMSG if its program makes no sense. */
static int append_program(struct builder *b, const struct entry *e)
{
	bool is_first = true;
	struct eh_entry entry;
	struct cfi_row row;
	struct cfi cfi;
	int r = eh_frame_entry(&b->frame, e->record, &entry);

	r = r ?: cfi_begin(&cfi, b->machine, &b->frame, &entry);
	if (r < 0)
		return r;
	while ((r = cfi_next(&cfi, &row)) > 0) {
		uint32_t start = e->start + (uint32_t)(row.start - entry.start);
		uint32_t end = e->start + (uint32_t)(row.end - entry.start);

		start = MAX(start, b->covered);
		if (start >= end || (!is_reached(&row.rule) && !may_call(b, start, end)))
			continue;
		r = row.rule.cfa == UNWIND_CFA_NONE ? 0 : rule_index(b, &row.rule);
		if (r < 0)
			return r;
		b->table.inexpressible += r == 0;
		/* the first row with a call takes over what was dropped before it */
		r = row_append(b, is_first ? b->covered : start, (uint16_t)r);
		if (r < 0)
			return r;
		is_first = false;
	}
	return r;
}

/* The first function is nobody's callee, wherever in it. */
static int append_first_function(struct builder *b)
{
	const struct unwind_rule rule = {.cfa = UNWIND_CFA_OUTERMOST};
	int r = rule_index(b, &rule);

	return r < 0 ? r : row_append(b, b->covered, (uint16_t)r);
}

/* One function: the gap before it, then its rows; of a bad one, that nothing is known. */
static int append_entry(struct builder *b, const struct entry *e)
{
	struct unwind_table *t = &b->table;
	struct unwind_table before;
	int r = 0;

	if (e->end <= b->covered) {
		t->skipped++;
		return 0;
	}
	if (e->start > b->covered) {
		if (t->count > 0 && may_call(b, b->covered, e->start))
			r = row_append(b, b->covered, 0);
		b->covered = e->start;
	}
	if (r < 0)
		return r;
	before = *t;
	r = e->record == NO_RECORD ? append_first_function(b) : append_program(b, e);
	if (r == -EBADMSG) {
		t->count = before.count;
		t->inexpressible = before.inexpressible;
		t->skipped++;
		r = row_append(b, b->covered, 0);
	}
	b->covered = e->end;
	return r;
}

/* ---- entries ---- */

static int file_range(struct builder *b, uint64_t vaddr, uint64_t size, struct entry *ret)
{
	for (unsigned n = 0; n < b->text_count; n++) {
		unsigned k = (b->text_last + n) % b->text_count;
		const struct image_range *t = &b->texts[k];
		uint64_t offset;

		if (vaddr < t->vaddr || vaddr - t->vaddr >= t->size ||
			size > t->size - (vaddr - t->vaddr))
			continue;
		offset = (uint64_t)(t->data - b->data) + (vaddr - t->vaddr);
		if (offset + size >= UNWIND_END)
			return -EBADMSG;
		b->text_last = k;
		ret->start = (uint32_t)offset;
		ret->end = (uint32_t)(offset + size);
		return 0;
	}
	return -EBADMSG;
}

static int entry_add(struct builder *b, uint64_t record)
{
	struct eh_entry e;
	struct entry at = {.record = (uint32_t)record};
	int r;

	b->table.entries++;
	if (record > UINT32_MAX || eh_frame_entry(&b->frame, record, &e) < 0 ||
		file_range(b, e.start, e.size, &at) < 0) {
		b->table.skipped++;
		return 0;
	}
	r = ARRAY_RESERVE(b->entries, b->entry_room, b->entry_count + 1, UNWIND_TABLE_ENTRIES_MAX);
	if (r < 0)
		return r;
	if (b->entry_count > 0 && at.start < b->entries[b->entry_count - 1].start)
		b->sorted = false;
	b->entries[b->entry_count++] = at;
	return 0;
}

ORDER(entry_compare, struct entry, ASCENDING(start) ?: ASCENDING(record))

/* C libraries before 2.33 do not describe where an arm64 program begins: without that, no stack of
 * a main thread would be complete. */
static int add_first_function(struct builder *b, uint64_t vaddr)
{
	struct entry at = {.record = NO_RECORD};
	int r;

	if (b->entry_count == 0 || !vaddr || file_range(b, vaddr, 4, &at) < 0)
		return 0;
	at.end = at.start + FIRST_FUNCTION_BYTES;
	for (uint32_t k = 0; k < b->entry_count; k++) {
		const struct entry *e = &b->entries[k];

		if (e->start <= at.start && at.start < e->end)
			return 0;
		if (e->start > at.start)
			at.end = MIN(at.end, e->start);
	}
	r = ARRAY_RESERVE(b->entries, b->entry_room, b->entry_count + 1, UNWIND_TABLE_ENTRIES_MAX);
	if (r < 0)
		return r == -ENOBUFS ? 0 : r;
	b->entries[b->entry_count++] = at;
	b->sorted = false;
	return 0;
}

/* A section that breaks off keeps what was before; one of which nothing can be read is an error. */
static int collect_entries(struct builder *b, uint64_t first_function, struct errinfo *reterr)
{
	uint64_t record;
	int r;

	b->sorted = true;
	while ((r = eh_frame_next(&b->frame, &record)) > 0) {
		r = entry_add(b, record);
		if (r == -ENOBUFS) {
			b->table.cut = true;
			break;
		}
		if (r < 0)
			return r;
	}
	if (r == -EBADMSG) {
		if (b->table.entries == 0)
			return errinfo_set(reterr, r, "invalid unwind information");
		b->table.entries++;
		b->table.skipped++;
	}
	r = add_first_function(b, first_function);
	if (r < 0)
		return r;
	if (!b->sorted)
		SORT(b->entries, b->entry_count, entry_compare);
	return 0;
}

static int append_entries(struct builder *b)
{
	int r = 0;

	b->covered = b->entry_count ? b->entries[0].start : 0;
	for (uint32_t k = 0; k < b->entry_count && r == 0; k++)
		r = append_entry(b, &b->entries[k]);
	if (r == 0 && b->table.count > 0)
		r = row_append(b, b->covered, 0);
	return r == -ENOBUFS ? 0 : r;
}

/* ---- the table ---- */

static int builder_init(struct builder *b, const struct image *i, const struct image_range *section)
{
	const struct unwind_rule none = {.cfa = UNWIND_CFA_NONE};
	size_t size;

	b->machine = image_machine(i);
	b->data = image_data(i, &size);
	b->frame = eh_frame_of(section);
	while (b->text_count < TEXTS_MAX &&
		image_text(i, b->text_count, &b->texts[b->text_count]) == 0)
		b->text_count++;
	b->slots = calloc(SLOTS, sizeof(*b->slots));
	if (!b->slots)
		return -ENOMEM;
	return rule_append(b, &none);
}

int unwind_table_build(const struct image *i, struct unwind_table *ret, struct errinfo *reterr)
{
	_cleanup_(builder_done) struct builder b = {0};
	struct image_range section = {0};
	int r = image_eh_frame(i, &section);

	if (r < 0 && r != -ENOENT)
		return errinfo_set(reterr, -EBADMSG, "invalid unwind information");
	r = builder_init(&b, i, &section);
	r = r ?: collect_entries(&b, image_entry(i), reterr);
	r = r ?: append_entries(&b);
	if (r < 0)
		return r;
	*ret = b.table;
	b.table = (struct unwind_table){0};
	return 0;
}

void unwind_table_done(struct unwind_table *t)
{
	free(t->address);
	free(t->rule);
	free(t->rules);
	*t = (struct unwind_table){0};
}

const struct unwind_rule *unwind_table_find(const struct unwind_table *t, uint64_t offset)
{
	size_t behind = LOWER_BOUND(i, t->count, t->address[i] <= offset);

	return behind > 0 ? &t->rules[t->rule[behind - 1]] : NULL;
}
