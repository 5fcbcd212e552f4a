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
#include "agent/python/python.h"

#define LINES_OF_3_10_NONE (-128)

/* Line numbers are ints in Python; others come from a table that is none. */
static uint32_t line_number(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

static uint32_t line_3_9(uint32_t first_line, const uint8_t *table, size_t size, uint32_t lasti)
{
	int64_t line = first_line;
	uint64_t address = 0;

	for (size_t i = 0; i + 2 <= size; i += 2) {
		address += table[i];
		if (address > lasti)
			break;
		line += (int8_t)table[i + 1];
	}
	return line_number(line);
}

static uint32_t line_3_10(uint32_t first_line, const uint8_t *table, size_t size, uint32_t lasti)
{
	int64_t line = first_line;
	uint64_t end = 0;

	for (size_t i = 0; i + 2 <= size; i += 2) {
		int8_t delta = (int8_t)table[i + 1];

		end += table[i];
		if (delta != LINES_OF_3_10_NONE)
			line += delta;
		if (end > lasti)
			return delta == LINES_OF_3_10_NONE ? 0 : line_number(line);
	}
	return first_line;
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

static uint32_t line_3_11(uint32_t first_line, const uint8_t *table, size_t size, uint32_t lasti)
{
	int64_t line = first_line;
	uint64_t end = 0;

	for (size_t i = 0; i < size;) {
		unsigned code = table[i] >> 3 & 15;

		end += ((table[i] & 7) + 1) * 2;
		i++;
		if (code == 13 || code == 14)
			line += varint_signed(table, size, i);
		else if (code >= 10 && code <= 12)
			line += code - 10;
		if (end > lasti)
			return code == 15 ? 0 : line_number(line);
		while (i < size && !(table[i] & 0x80))
			i++;
	}
	return first_line;
}

uint32_t python_line(
	unsigned minor, uint32_t first_line, const uint8_t *table, size_t size, uint32_t lasti)
{
	if (minor < 10)
		return line_3_9(first_line, table, size, lasti);
	if (minor == 10)
		return line_3_10(first_line, table, size, lasti);
	return line_3_11(first_line, table, size, lasti);
}
