/* SPDX-License-Identifier: Apache-2.0 */
/* made_table.h - unwind tables as the symbol process hands them over, made by hand, right and
 * wrong. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/symbol/protocol.h"
#include "base/buf.h"

/* What can be wrong with a table. */
enum table_fault {
	TABLE_RIGHT,
	TABLE_UNSEALED,
	TABLE_HALF_SEALED, /* can be written still */
	TABLE_HUGE_COUNT,
	TABLE_HUGE_RULE_COUNT,
	TABLE_SHORT,
	TABLE_LONG,
	TABLE_EMPTY,
	TABLE_DESCENDING,
	TABLE_REPEATED,
	TABLE_END_ADDRESS,
	TABLE_BAD_RULE, /* a row's */
	TABLE_BAD_CFA,
	TABLE_BAD_REGISTER,
	TABLE_BAD_FIRST_RULE,
	TABLE_BAD_MAGIC,
	TABLE_FAULTS
};

#define TABLE_ROWS  4
#define TABLE_RULES 2

struct made_table {
	struct protocol_table head;
	struct unwind_rule rules[TABLE_RULES];
	uint32_t address[TABLE_ROWS];
	uint16_t rule[TABLE_ROWS];
};

static inline void table_break(struct made_table *t, enum table_fault fault)
{
	switch (fault) {
	case TABLE_HUGE_COUNT: t->head.count = 0x40000000; break;
	case TABLE_HUGE_RULE_COUNT: t->head.rule_count = UNWIND_RULES_MAX + 1; break;
	case TABLE_DESCENDING: t->address[2] = 0x50; break;
	case TABLE_REPEATED: t->address[2] = t->address[1]; break;
	case TABLE_END_ADDRESS: t->address[3] = UNWIND_END; break;
	case TABLE_BAD_RULE: t->rule[3] = TABLE_RULES; break;
	case TABLE_BAD_CFA: t->rules[1].cfa = UNWIND_CFA_SIGNAL + 1; break;
	case TABLE_BAD_REGISTER: t->rules[1].ra = UNWIND_AT_FP + 1; break;
	case TABLE_BAD_FIRST_RULE: t->rules[0].cfa = UNWIND_CFA_SP; break;
	case TABLE_BAD_MAGIC: t->head.magic++; break;
	default: break;
	}
}

static inline int table_make(enum table_fault fault)
{
	struct made_table t = {
		.head = {.magic = PROTOCOL_MAGIC, .count = TABLE_ROWS, .rule_count = TABLE_RULES},
		.rules = {{.cfa = UNWIND_CFA_NONE},
			{.cfa = UNWIND_CFA_SP, .cfa_offset = 16, .ra = UNWIND_AT_CFA}},
		.address = {0x40, 0x80, 0xc0, 0x100},
		.rule = {1, 0, 1, 0},
	};
	int fd = memfd_create("table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	ssize_t size = sizeof(t);

	table_break(&t, fault);
	if (fault == TABLE_SHORT)
		size -= 2;
	if (fault == TABLE_EMPTY)
		size = 0;
	if (fd < 0 || write(fd, &t, (size_t)size) != size)
		return -1;
	if (fault == TABLE_LONG && write(fd, "", 1) != 1)
		return -1;
	if (fault == TABLE_HALF_SEALED)
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
	else if (fault != TABLE_UNSEALED)
		fcntl(fd, F_ADD_SEALS, PROTOCOL_SEALS);
	return fd;
}

_Static_assert(sizeof(struct made_table) == sizeof(struct protocol_table) +
						    TABLE_RULES * sizeof(struct unwind_rule) +
						    TABLE_ROWS * 6,
	"made_table");
