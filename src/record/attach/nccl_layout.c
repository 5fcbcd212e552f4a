/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_layout.c - see nccl_layout.h. */
#include "record/attach/nccl_layout.h"

#include "base/macros.h"
#include "record/attach/accessor.h"

#define VERSION_BYTES 128   /* of ncclGetVersion() */
#define NAMED_SINCE   21800 /* commHash stands before rank */
#define MAGIC_SINCE   22105 /* startMagic is the first word */
#define NEIGHBOURS    64    /* bytes between fields that belong together */
#define COUNTER_NEAR  1024  /* the counter of collectives is so far behind rank, at most */
#define COUNTER_BYTES                                                                              \
	512 /* of the function that advances it: it does so soon, and none was seen that is shorter */
#define COPIES_MAX 8

/* A field of the communicator, by the code of the function that returns it; 0 if it cannot be told. */
static uint32_t field_of(struct elfsym *elf, const char *function)
{
	uint8_t code[ACCESSOR_BYTES];
	uint64_t offset;
	uint32_t at;

	if (elfsym_offset(elf, function, &offset) < 0 ||
		elfsym_read(elf, offset, code, sizeof(code)) < 0 ||
		accessor_field(elfsym_machine(elf), code, sizeof(code), &at) < 0)
		return 0;
	return at;
}

/* 22809 for 2.28.9; 0 if it cannot be told. Until 2.8 the code was 2804 for 2.8.4. */
static uint32_t version_of(struct elfsym *elf)
{
	uint8_t code[VERSION_BYTES];
	uint64_t offset;
	uint32_t version;

	if (elfsym_offset(elf, "ncclGetVersion", &offset) < 0 ||
		elfsym_read(elf, offset, code, sizeof(code)) < 0 ||
		accessor_constant(elfsym_machine(elf), code, sizeof(code), 2000, 99999, &version) <
			0)
		return 0;
	return version;
}

/* The counter of launched collectives, by the code that advances it, which may be a copy that the compiler made. */
static uint32_t counter_of(struct elfsym *elf, uint32_t rank_at)
{
	static const char *const functions[] = {
		"_ZL14uploadProxyOpsP8ncclCommP14ncclKernelPlan",
		"_ZL18hostStreamPlanTaskP8ncclCommP14ncclKernelPlan", /* where the other is part of it */
	};
	uint64_t offsets[COPIES_MAX];
	uint32_t which[COPIES_MAX], at;
	uint8_t code[COUNTER_BYTES];
	int n = elfsym_search(elf, functions, ARRAY_SIZE(functions), offsets, which, COPIES_MAX);

	for (int i = 0; i < n; i++)
		if (elfsym_read(elf, offsets[i], code, sizeof(code)) == 0 &&
			accessor_counter(elfsym_machine(elf), code, sizeof(code), rank_at + 8,
				rank_at + COUNTER_NEAR, &at) == 0)
			return at;
	return 0;
}

void nccl_layout_read(struct elfsym *elf, struct wire_nccl_layout *ret)
{
	uint32_t version = version_of(elf);
	struct wire_nccl_layout l = {
		.rank_at = field_of(elf, "ncclCommUserRank"),
		.size_at = field_of(elf, "ncclCommCount"),
		.device_at = field_of(elf, "ncclCommCuDevice"),
	};

	/* rank and size are neighbours in every version; offsets far apart are a wrong guess */
	l.valid = l.rank_at && l.size_at &&
		  MAX(l.rank_at, l.size_at) - MIN(l.rank_at, l.size_at) <= NEIGHBOURS;
	if (l.device_at < l.rank_at || l.device_at - l.rank_at > NEIGHBOURS)
		l.device_at = 0;
	/* An identity is believed only where all three accessors show the structure that has one. */
	if (version >= NAMED_SINCE && l.size_at == l.rank_at + 4 && l.device_at == l.rank_at + 8) {
		l.hash_at = l.rank_at - 8;
		l.has_magic = version >= MAGIC_SINCE;
		l.count_at = counter_of(elf, l.rank_at);
	}
	*ret = l;
}
