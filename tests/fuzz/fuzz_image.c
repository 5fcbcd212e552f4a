/* SPDX-License-Identifier: Apache-2.0 */
/* An ELF file in memory: its parts lie inside it, addresses go to offsets and back, and its unwind
 * table is one that can be searched. */
#include "record/symbol/image.h"
#include "record/symbol/names.h"
#include "record/symbol/unwind_table.h"
#include "fuzz.h"

static void inside(const struct image *i, const struct image_range *r)
{
	size_t size;
	const uint8_t *data = image_data(i, &size);

	if (r->data)
		MUST(r->data >= data && r->size <= size &&
			(size_t)(r->data - data) <= size - (size_t)r->size);
}

static void check_parts(const struct image *i, const uint8_t *data, size_t size)
{
	static const char *const sections[] = {".text", ".eh_frame", ".dynstr", ".symtab", ".bss"};
	struct image_range r, linked;
	uint8_t id[IMAGE_BUILD_ID_MAX];
	uint64_t vaddr, offset;

	for (size_t n = 0; n < ARRAY_SIZE(sections); n++) {
		if (image_section(i, sections[n], &r) == 0)
			inside(i, &r);
		if (image_section_linked(i, sections[n], &r, &linked) == 0) {
			inside(i, &r);
			inside(i, &linked);
		}
	}
	if (image_eh_frame(i, &r) == 0)
		inside(i, &r);
	for (unsigned n = 0; image_text(i, n, &r) == 0; n++)
		inside(i, &r);
	for (uint64_t at = 0; at < size; at += size / 16 + 1)
		if (image_vaddr(i, at, &vaddr) == 0 && image_offset(i, vaddr, &offset) == 0)
			MUST(offset < size);
	if (image_offset(i, image_entry(i), &offset) == 0)
		MUST(offset <= size);
	image_load_base(i, &vaddr);
	MUST(image_build_id(i, id) <= IMAGE_BUILD_ID_MAX);
}

static void check_names(const struct image *i, const uint8_t *data, size_t size)
{
	struct symtab_function f;
	struct symtab *t = NULL;
	uint64_t vaddr, length;

	MUST(symtab_new(i, NULL, &t) == 0);
	for (uint64_t at = 0; at < 0x5000; at += 61)
		if (symtab_at(t, at, &f)) {
			const uint8_t *name = (const uint8_t *)f.name;

			MUST(f.vaddr <= at && f.name_len >= 1);
			MUST(name >= data && f.name_len <= size &&
				(size_t)(name - data) <= size - f.name_len);
		}
	symtab_find(t, "plain", &vaddr, &length);
	symtab_free(t);
}

static void check_unwind(const struct image *i)
{
	struct unwind_table t = {0};
	struct errinfo e = {0};

	if (unwind_table_build(i, &t, &e) < 0)
		return;
	MUST(t.skipped <= t.entries);
	MUST(!t.count || t.rules[0].cfa == UNWIND_CFA_NONE);
	for (uint32_t n = 0; n < t.count; n++) {
		MUST(t.rule[n] < t.rule_count);
		MUST(n == 0 || t.address[n - 1] < t.address[n]);
		MUST(unwind_table_find(&t, t.address[n]) == &t.rules[t.rule[n]]);
	}
	unwind_table_done(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct errinfo e = {0};
	struct image *i = NULL;

	if (image_open_memory(data, size, &i, &e) < 0) {
		MUST(!i);
		return 0;
	}
	check_parts(i, data, size);
	check_names(i, data, size);
	check_unwind(i);
	image_close(i);
	return 0;
}
