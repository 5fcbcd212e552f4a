/* SPDX-License-Identifier: Apache-2.0 */
/* line_table.c - which line an instruction is of. Three formats, each a list of ranges of
 * instructions with the difference to the line of the range before:
 *
 * - 3.9: pairs: bytes to the next range (unsigned), lines to it (signed). Long distances take
 *   several pairs, so that a range ends where an address is greater than the instruction's.
 * - 3.10: pairs: the length of this range in bytes, lines from the last one; -128: no line.
 * - 3.11: a byte with the top bit set: code in bits 3 to 6, length in units of two bytes less one
 *   in bits 0 to 2; then bytes without the top bit: what the code asks for, in varints of 6 bits a
 *   byte, the lowest first. Code 15 has no line, 13 and 14 begin with the signed difference, 10 to
 *   12 mean 0 to 2 lines further, those below the same line. Columns are not wanted.
 *
 * The table is foreign: it is read to its end at most, and differences may lead anywhere. */
#include "record/python/python.h"

#include <errno.h>

#define LINES_OF_3_10_NONE (-128)

/* Line numbers are ints in Python; others come from a table that is none. */
static int line_number(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (int)line : 0;
}

/* Behind the last range that is there. */
static int behind(const struct python_lines *l)
{
	return l->is_cut ? -ENODATA : 0;
}

static int line_3_9(const struct python_lines *l, uint32_t lasti)
{
	const uint8_t *table = l->table;
	size_t size = l->size;
	int64_t line = l->first_line;
	uint64_t address = 0;

	for (size_t i = 0; i + 2 <= size; i += 2) {
		address += table[i];
		if (address > lasti)
			return line_number(line);
		line += (int8_t)table[i + 1];
	}
	return l->is_cut ? -ENODATA : line_number(line); /* the last range has no end */
}

static int line_3_10(const struct python_lines *l, uint32_t lasti)
{
	const uint8_t *table = l->table;
	size_t size = l->size;
	int64_t line = l->first_line;
	uint64_t end = 0;

	for (size_t i = 0; i + 2 <= size; i += 2) {
		int8_t delta = (int8_t)table[i + 1];

		end += table[i];
		if (delta != LINES_OF_3_10_NONE)
			line += delta;
		if (end > lasti)
			return delta == LINES_OF_3_10_NONE ? 0 : line_number(line);
	}
	return behind(l);
}

/* varint_signed - the lowest bit is the sign. More bytes than an int needs are left out. */
static int64_t varint_signed(const uint8_t *table, size_t size, size_t i)
{
	uint64_t value = 0;

	for (unsigned shift = 0; i < size && shift <= 30; shift += 6) {
		value |= (uint64_t)(table[i] & 0x3f) << shift;
		if (!(table[i++] & 0x40))
			break;
	}
	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static int line_3_11(const struct python_lines *l, uint32_t lasti)
{
	const uint8_t *table = l->table;
	int64_t line = l->first_line;
	uint64_t end = 0;
	size_t next;

	for (size_t i = 0; i < l->size; i = next) {
		unsigned code = table[i] >> 3 & 15;

		for (next = i + 1; next < l->size && !(table[next] & 0x80);)
			next++;
		if (l->is_cut && next == l->size)
			break; /* more of this range may be missing */
		end += ((table[i] & 7) + 1) * 2;
		if (code == 13 || code == 14)
			line += varint_signed(table, next, i + 1);
		else if (code >= 10 && code <= 12)
			line += code - 10;
		if (end > lasti)
			return code == 15 ? 0 : line_number(line);
	}
	return behind(l);
}

int python_line(const struct python_lines *l, uint32_t lasti)
{
	if (l->minor < 10)
		return line_3_9(l, lasti);
	if (l->minor == 10)
		return line_3_10(l, lasti);
	return line_3_11(l, lasti);
}
