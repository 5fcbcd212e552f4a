/* SPDX-License-Identifier: Apache-2.0 */
/* test_image.c - real programs against what the loader made of them; damaged objects in memory. */
#include "elf_fixture.h"

#include <fcntl.h>
#include <link.h>
#include <stdio.h>

#include "record/symbol/image.h"

#define _cleanup_image_ _cleanup_(image_closep)

static struct image *open_path(const char *path)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct errinfo err = {0};
	struct image *i;

	assert_true(fd >= 0);
	if (image_open(fd, &i, &err) < 0)
		fail_msg("%s: %s", path, err.text);
	return i; /* the mapping outlives the descriptor */
}

static int open_fixture(const struct fixture *f, struct image **ret)
{
	return image_open_memory(f->file.data, f->file.size, ret, NULL);
}

static void make(struct fixture *f)
{
	_cleanup_bytes_ struct bytes text = {0}, eh = {0};

	put_zeros(&text, 0x200);
	put_fde(&eh, put_cie(&eh, EM_AARCH64), FIXTURE_TEXT, 0x200, "", 0);
	fixture_make(f, EM_AARCH64, &text, &eh);
}

/* ---- real files ---- */

/* Where the loader put this program: the first object is the program itself. */
static int own_base(struct dl_phdr_info *info, size_t size, void *arg)
{
	*(uint64_t *)arg = info->dlpi_addr;
	return 1;
}

/* The file offset of @address, by the kernel's list of mappings. */
static uint64_t mapped_offset(uint64_t address)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t start, end, offset, found = UINT64_MAX;
	char line[4096];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 &&
			address >= start && address < end)
			found = address - start + offset;
	fclose(maps);
	assert_true(found != UINT64_MAX);
	return found;
}

static void test_position_independent_program(void **state)
{
	_cleanup_image_ struct image *i = open_path("/proc/self/exe");
	static const char constant[] = "some read-only data";
	const uint64_t addresses[] = {(uintptr_t)&open_path, (uintptr_t)constant};
	uint64_t base, offset, vaddr;
	size_t size;

	dl_iterate_phdr(own_base, &base);
	assert_true(base != 0);
	for (size_t k = 0; k < ARRAY_SIZE(addresses); k++) {
		assert_int_equal(image_offset(i, addresses[k] - base, &offset), 0);
		assert_int_equal(offset, mapped_offset(addresses[k]));
		assert_int_equal(image_vaddr(i, offset, &vaddr), 0);
		assert_int_equal(vaddr, addresses[k] - base);
	}
	assert_int_equal(image_offset(i, addresses[1] - base, &offset), 0);
	assert_memory_equal(image_data(i, &size) + offset, constant, sizeof(constant));
	assert_int_equal(image_load_base(i, &vaddr), 0);
	assert_int_equal(vaddr, 0);
#if defined(__aarch64__)
	assert_int_equal(image_machine(i), EM_AARCH64);
#else
	assert_int_equal(image_machine(i), EM_X86_64);
#endif
}

static void test_program_at_a_fixed_address(void **state)
{
	_cleanup_image_ struct image *i = open_path(FIXED_PROGRAM);
	struct image_range text, segment;
	uint64_t offset, vaddr, base;
	Elf64_Ehdr h;
	size_t size;

	memcpy(&h, image_data(i, &size), sizeof(h));
	assert_int_equal(h.e_type, ET_EXEC);
	assert_int_equal(image_load_base(i, &base), 0);
	assert_true(base >= 0x10000);
	assert_int_equal(image_section(i, ".text", &text), 0);
	assert_true(text.vaddr > base);
	assert_int_equal(image_offset(i, text.vaddr + 4, &offset), 0);
	assert_ptr_equal(image_data(i, &size) + offset, text.data + 4);
	assert_int_equal(image_vaddr(i, offset, &vaddr), 0);
	assert_int_equal(vaddr, text.vaddr + 4);
	assert_int_equal(image_text(i, 0, &segment), 0);
	assert_true(text.vaddr >= segment.vaddr &&
		    text.vaddr + text.size <= segment.vaddr + segment.size);
	assert_int_equal(image_offset(i, 0, &offset), -ENOENT);
}

static void test_build_id_of_a_library(void **state)
{
	_cleanup_image_ struct image *i = open_path(FIXTURE_LIBRARY);
	static const uint8_t expected[20] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01,
		0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67};
	uint8_t id[IMAGE_BUILD_ID_MAX];

	assert_int_equal(image_build_id(i, id), 20);
	assert_memory_equal(id, expected, 20);
}

static void test_not_an_object(void **state)
{
	_cleanup_fd_ int folder = open("/", O_RDONLY | O_CLOEXEC);
	_cleanup_fd_ int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct errinfo err = {0};
	struct image *i = NULL;

	assert_int_equal(image_open(folder, &i, &err), -EBADMSG);
	assert_string_not_equal(err.text, "");
	assert_int_equal(image_open(empty, &i, NULL), -EBADMSG);
	assert_int_equal(image_open(-1, &i, NULL), -EBADF);
	assert_null(i);
}

/* ---- sections and segments ---- */

static void test_sections(void **state)
{
	_cleanup_fixture_ struct fixture f;
	_cleanup_image_ struct image *i = NULL;
	struct image_range r, linked;

	make(&f);
	assert_int_equal(open_fixture(&f, &i), 0);
	assert_int_equal(image_section(i, ".text", &r), 0);
	assert_ptr_equal(r.data, f.file.data + FIXTURE_TEXT_OFFSET);
	assert_int_equal(r.size, 0x200);
	assert_int_equal(r.vaddr, FIXTURE_TEXT);
	assert_int_equal(image_section(i, ".bss", &r), 0);
	assert_null(r.data);
	assert_int_equal(r.size, 0x1000);
	assert_int_equal(r.vaddr, FIXTURE_BSS);
	assert_int_equal(image_section_linked(i, ".symtab", &r, &linked), 0);
	assert_string_equal((const char *)r.data, "symbols");
	assert_string_equal((const char *)linked.data + 1, "strings");
	assert_int_equal(r.vaddr, 0);
	assert_int_equal(image_section_linked(i, ".text", &r, &linked), -EBADMSG);
	assert_int_equal(image_section(i, ".packed", &r), -EOPNOTSUPP);
	assert_int_equal(image_section(i, ".tex", &r), -ENOENT);
	assert_int_equal(image_section(i, ".text.", &r), -ENOENT);
	assert_int_equal(image_section(i, "", &r), -ENOENT);
}

static void test_segments(void **state)
{
	_cleanup_fixture_ struct fixture f;
	_cleanup_image_ struct image *i = NULL;
	struct image_range r;
	uint64_t v;

	make(&f);
	assert_int_equal(open_fixture(&f, &i), 0);
	assert_int_equal(image_text(i, 0, &r), 0);
	assert_ptr_equal(r.data, f.file.data + FIXTURE_TEXT_OFFSET);
	assert_int_equal(image_text(i, 1, &r), -ENOENT);
	assert_int_equal(image_offset(i, FIXTURE_TEXT + 0x1ff, &v), 0);
	assert_int_equal(v, FIXTURE_TEXT_OFFSET + 0x1ff);
	assert_int_equal(image_offset(i, FIXTURE_TEXT + 0x200, &v), -ENOENT);
	assert_int_equal(image_offset(i, FIXTURE_TEXT - 1, &v), -ENOENT);
	assert_int_equal(image_vaddr(i, FIXTURE_TEXT_OFFSET, &v), 0);
	assert_int_equal(v, FIXTURE_TEXT);
	assert_int_equal(image_vaddr(i, 0x800, &v), -ENOENT);
	assert_int_equal(image_load_base(i, &v), 0);
	assert_int_equal(v, FIXTURE_BASE);
	f.segments[FIXTURE_LOAD_HEADERS].p_type = PT_NULL;
	image_close(TAKE(i));
	assert_int_equal(open_fixture(&f, &i), 0);
	assert_int_equal(image_load_base(i, &v), -ENOENT);
}

static void test_eh_frame_without_sections(void **state)
{
	_cleanup_fixture_ struct fixture f;
	_cleanup_image_ struct image *with = NULL, *without = NULL;
	struct image_range a, b;

	make(&f);
	assert_int_equal(open_fixture(&f, &with), 0);
	assert_int_equal(image_eh_frame(with, &a), 0);
	fixture_strip_sections(&f);
	assert_int_equal(open_fixture(&f, &without), 0);
	assert_int_equal(image_section(without, ".eh_frame", &b), -ENOENT);
	assert_int_equal(image_eh_frame(without, &b), 0);
	assert_ptr_equal(a.data, b.data);
	assert_int_equal(a.size, b.size); /* up to and with the terminator */
	assert_int_equal(a.vaddr, FIXTURE_REST);
	assert_int_equal(b.vaddr, FIXTURE_REST);
	image_close(TAKE(without));

	f.file.data[f.segments[FIXTURE_EH_FRAME_HDR].p_offset + 7] ^= 0x70; /* leads nowhere */
	assert_int_equal(open_fixture(&f, &without), 0);
	assert_int_equal(image_eh_frame(without, &b), -EBADMSG);
	image_close(TAKE(without));
	f.segments[FIXTURE_EH_FRAME_HDR].p_type = PT_NULL;
	assert_int_equal(open_fixture(&f, &without), 0);
	assert_int_equal(image_eh_frame(without, &b), -ENOENT);
}

static void test_build_id(void **state)
{
	static const uint8_t expected[] = {0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4};
	_cleanup_fixture_ struct fixture f;
	_cleanup_image_ struct image *i = NULL;
	uint8_t id[IMAGE_BUILD_ID_MAX], *note;

	make(&f);
	note = f.file.data + f.segments[FIXTURE_NOTE].p_offset;
	assert_int_equal(open_fixture(&f, &i), 0);
	assert_int_equal(image_build_id(i, id), 8);
	assert_memory_equal(id, expected, 8);
	image_close(TAKE(i));
	fixture_strip_sections(&f);
	assert_int_equal(open_fixture(&f, &i), 0);
	assert_int_equal(image_build_id(i, id), 8);
	note[4] = 9; /* longer than the note */
	assert_int_equal(image_build_id(i, id), -ENOENT);
	memset(note, 0xff, 8); /* sizes that would wrap */
	assert_int_equal(image_build_id(i, id), -ENOENT);
	memcpy(note, "\x04\0\0\0\x08\0\0\0", 8);
	assert_int_equal(image_build_id(i, id), 8);
	note[12] = 'X';
	assert_int_equal(image_build_id(i, id), -ENOENT);
}

/* ---- damage ---- */

static void test_truncated(void **state)
{
	_cleanup_fixture_ struct fixture f;
	struct image_range r;
	size_t whole, headers;
	uint8_t id[IMAGE_BUILD_ID_MAX];
	int opened = 0;

	make(&f);
	whole = f.file.size;
	headers = f.header->e_shoff + FIXTURE_SECTIONS * sizeof(Elf64_Shdr);
	for (size_t size = 0; size <= whole; size++) {
		/* a copy of just this size, so that a sanitizer sees a read behind it */
		_cleanup_free_ uint8_t *copy = malloc(size + 1);
		_cleanup_image_ struct image *i = NULL;

		assert_non_null(copy);
		memcpy(copy + 1, f.file.data, size);
		if (image_open_memory(copy + 1, size, &i, NULL) < 0) {
			assert_null(i);
			continue;
		}
		opened++;
		assert_true(size >= headers);
		image_build_id(i, id);
		if (image_section(i, ".text", &r) == 0)
			assert_true(size >= FIXTURE_TEXT_OFFSET + 0x200);
		if (image_eh_frame(i, &r) == 0)
			assert_true(r.data + r.size <= copy + 1 + size);
	}
	assert_int_equal(opened, 1); /* the names of sections are at the end */
	fixture_strip_sections(&f);
	for (size_t size = 0; size <= whole; size++) {
		_cleanup_free_ uint8_t *copy = malloc(size + 1);
		_cleanup_image_ struct image *i = NULL;

		assert_non_null(copy);
		memcpy(copy + 1, f.file.data, size);
		if (image_open_memory(copy + 1, size, &i, NULL) < 0)
			continue;
		opened++;
		image_build_id(i, id);
		if (image_text(i, 0, &r) == 0)
			assert_true(r.data + r.size <= copy + 1 + size);
		if (image_eh_frame(i, &r) == 0)
			assert_true(r.data + r.size <= copy + 1 + size);
	}
	assert_true(opened > 0x1000);
}

static void test_sections_that_lead_out(void **state)
{
	_cleanup_fixture_ struct fixture f;
	_cleanup_image_ struct image *i = NULL;
	struct image_range r, linked;

	make(&f);
	assert_int_equal(open_fixture(&f, &i), 0);
	f.sections[FIXTURE_SECTION_TEXT].sh_offset = f.file.size - 1;
	assert_int_equal(image_section(i, ".text", &r), -EBADMSG);
	f.sections[FIXTURE_SECTION_TEXT].sh_offset = UINT64_MAX - 0x10; /* would wrap */
	assert_int_equal(image_section(i, ".text", &r), -EBADMSG);
	f.sections[FIXTURE_SECTION_TEXT].sh_offset = FIXTURE_TEXT_OFFSET;
	f.sections[FIXTURE_SECTION_TEXT].sh_size = UINT64_MAX;
	assert_int_equal(image_section(i, ".text", &r), -EBADMSG);
	f.sections[FIXTURE_SECTION_TEXT].sh_size = 0x200;
	assert_int_equal(image_section(i, ".text", &r), 0);
	f.sections[FIXTURE_SECTION_TEXT].sh_name = UINT32_MAX;
	assert_int_equal(image_section(i, ".text", &r), -ENOENT);
	f.sections[FIXTURE_SECTION_SYMTAB].sh_link = FIXTURE_SECTIONS;
	assert_int_equal(image_section_linked(i, ".symtab", &r, &linked), -EBADMSG);
	f.sections[FIXTURE_SECTION_EH_FRAME].sh_size = UINT64_MAX;
	assert_int_equal(image_eh_frame(i, &r), -EBADMSG);
	f.sections[FIXTURE_SECTION_EH_FRAME].sh_type = SHT_NOBITS; /* as in a debug file */
	assert_int_equal(image_eh_frame(i, &r), -ENOENT);
}

/* Each damage alone makes the object unreadable. */
static void test_bad_headers(void **state)
{
	_cleanup_fixture_ struct fixture f;
	_cleanup_image_ struct image *i = NULL;
	Elf64_Ehdr good;

	make(&f);
	good = *f.header;
#define REFUSED(damage)                                                                            \
	do {                                                                                       \
		Elf64_Ehdr *h = f.header;                                                          \
		damage;                                                                            \
		assert_int_equal(open_fixture(&f, &i), -EBADMSG);                                  \
		*h = good;                                                                         \
	} while (0)
	REFUSED(h->e_ident[0] = 0);
	REFUSED(h->e_ident[EI_CLASS] = ELFCLASS32);
	REFUSED(h->e_ident[EI_DATA] = ELFDATA2MSB);
	REFUSED(h->e_type = ET_REL);
	REFUSED(h->e_machine = EM_386);
	REFUSED(h->e_phoff = f.file.size - 8);
	REFUSED(h->e_phoff = UINT64_MAX - 8);
	REFUSED(h->e_phnum = 257);
	REFUSED(h->e_phentsize = 32);
	REFUSED(h->e_shoff = f.file.size - 8);
	REFUSED(h->e_shoff = UINT64_MAX - 8);
	REFUSED(h->e_shnum = 0xfeff);
	REFUSED(h->e_shentsize = 32);
	REFUSED(h->e_shstrndx = FIXTURE_SECTIONS);
	REFUSED(h->e_shstrndx = FIXTURE_SECTION_TEXT);
#undef REFUSED
	assert_int_equal(open_fixture(&f, &i), 0);
}

/* Numbers too large for the header stand in section 0. */
static void test_many_sections(void **state)
{
	_cleanup_fixture_ struct fixture f;
	_cleanup_image_ struct image *i = NULL;
	struct image_range r;

	make(&f);
	f.header->e_shnum = 0;
	f.header->e_shstrndx = SHN_XINDEX;
	f.sections[0].sh_size = FIXTURE_SECTIONS;
	f.sections[0].sh_link = FIXTURE_SECTION_NAMES;
	assert_int_equal(open_fixture(&f, &i), 0);
	assert_int_equal(image_section(i, ".text", &r), 0);
	image_close(TAKE(i));
	f.sections[0].sh_size = UINT64_MAX / sizeof(Elf64_Shdr) + 2; /* would wrap */
	assert_int_equal(open_fixture(&f, &i), -EBADMSG);
}

static void test_segments_that_lead_out(void **state)
{
	_cleanup_fixture_ struct fixture f;
	_cleanup_image_ struct image *i = NULL;
	struct image_range r;
	uint64_t v;

	make(&f);
	f.segments[FIXTURE_LOAD_TEXT].p_filesz = UINT64_MAX;
	f.segments[FIXTURE_LOAD_TEXT].p_memsz = UINT64_MAX;
	f.segments[FIXTURE_LOAD_REST].p_offset = UINT64_MAX - 1;
	f.segments[FIXTURE_LOAD_HEADERS].p_vaddr = UINT64_MAX - 1;
	assert_int_equal(open_fixture(&f, &i), 0);
	assert_int_equal(image_text(i, 0, &r), 0);
	assert_int_equal(r.size, f.file.size - FIXTURE_TEXT_OFFSET);
	assert_int_equal(image_offset(i, FIXTURE_REST, &v), -ENOENT);
	assert_int_equal(image_offset(i, UINT64_MAX, &v), -ENOENT);
	assert_int_equal(image_load_base(i, &v), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_position_independent_program),
		cmocka_unit_test(test_program_at_a_fixed_address),
		cmocka_unit_test(test_build_id_of_a_library),
		cmocka_unit_test(test_not_an_object),
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_eh_frame_without_sections),
		cmocka_unit_test(test_build_id),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_sections_that_lead_out),
		cmocka_unit_test(test_bad_headers),
		cmocka_unit_test(test_many_sections),
		cmocka_unit_test(test_segments_that_lead_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
