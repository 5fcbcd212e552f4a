/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of .eh_frame: records follow each other, and the rows of an entry cover it without gaps.
 * The first byte of the input chooses the machine. */
#include <elf.h>

#include "record/symbol/eh_frame.h"
#include "fuzz.h"

#define SECTION_VADDR 0x10000
#define ROWS_MAX      100000

static void check_entry(const struct eh_frame *f, unsigned machine, const struct eh_entry *e)
{
	uint64_t at = e->start, rows = 0;
	struct cfi_row row;
	struct cfi run;
	int r;

	MUST(e->size && e->start + e->size > e->start);
	if (cfi_begin(&run, machine, f, e) < 0)
		return;
	while ((r = cfi_next(&run, &row)) == 1) {
		MUST(row.start == at && row.end > row.start);
		MUST(row.end <= e->start + e->size);
		MUST(row.rule.cfa <= UNWIND_CFA_SIGNAL);
		at = row.end;
		MUST(++rows < ROWS_MAX);
	}
	MUST(r < 0 || at == e->start + e->size);
	MUST(cfi_next(&run, &row) <= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image_range section = {.vaddr = SECTION_VADDR};
	struct eh_frame f;
	struct eh_entry e;
	uint64_t record, before = 0, count = 0;
	unsigned machine;
	int r;

	if (size < 1)
		return 0;
	machine = data[0] & 1 ? EM_AARCH64 : EM_X86_64;
	section.data = data + 1;
	section.size = size - 1;
	f = eh_frame_of(&section);
	while ((r = eh_frame_next(&f, &record)) == 1) {
		MUST(record < section.size && (count == 0 || record > before));
		before = record;
		count++;
		if (eh_frame_entry(&f, record, &e) == 0)
			check_entry(&f, machine, &e);
	}
	/* After a fault there is no further record. */
	if (r < 0)
		MUST(eh_frame_next(&f, &record) <= 0);
	return 0;
}
