// SPDX-License-Identifier: Apache-2.0
/* cursor.c - see cursor.h. Invariant: at <= end, and a bad cursor has at == end, so that loops over
 * what is left come to an end. */
#include "record/symbol/cursor.h"

#include <string.h>

static void spoil(struct cursor *c)
{
	c->bad = true;
	c->at = c->end;
}

static void take(struct cursor *c, void *out, size_t size)
{
	if (cursor_left(c) < size) {
		spoil(c);
		memset(out, 0, size);
		return;
	}
	memcpy(out, c->at, size);
	c->at += size;
}

#define NUMBER(bits)                                                                               \
	uint##bits##_t cursor_u##bits(struct cursor *c)                                            \
	{                                                                                          \
		uint##bits##_t v;                                                                  \
                                                                                                   \
		take(c, &v, sizeof(v));                                                            \
		return v;                                                                          \
	}

NUMBER(8)
NUMBER(16)
NUMBER(32)
NUMBER(64)

/* The bits of a LEB128 number and how many there were; the tenth byte has room for one bit only. */
static uint64_t leb(struct cursor *c, unsigned *ret_bits, uint8_t *ret_last)
{
	uint64_t v = 0;
	unsigned bits = 0;
	uint8_t byte;

	do {
		if (bits > 63) {
			spoil(c);
			break;
		}
		byte = cursor_u8(c);
		v |= (uint64_t)(byte & 0x7f) << bits;
		bits += 7;
	} while (byte & 0x80);
	*ret_bits = bits;
	*ret_last = c->bad ? 0 : byte;
	return c->bad ? 0 : v;
}

uint64_t cursor_uleb(struct cursor *c)
{
	unsigned bits;
	uint8_t last;
	uint64_t v = leb(c, &bits, &last);

	if (bits > 63 && last > 1) {
		spoil(c);
		return 0;
	}
	return v;
}

int64_t cursor_sleb(struct cursor *c)
{
	unsigned bits;
	uint8_t last;
	uint64_t v = leb(c, &bits, &last);

	if (bits > 63) {
		if (last != 0 && last != 0x7f) {
			spoil(c);
			return 0;
		}
	} else if (last & 0x40) {
		v |= UINT64_MAX << bits;
	}
	return (int64_t)v;
}

struct cursor cursor_block(struct cursor *c, uint64_t size)
{
	struct cursor block;

	if (cursor_left(c) < size)
		spoil(c);
	if (c->bad)
		return (struct cursor){.at = c->end, .end = c->end, .bad = true};
	block = cursor_of(c->at, size);
	c->at += size;
	return block;
}

uint64_t cursor_value(struct cursor *c, uint8_t encoding)
{
	switch (encoding & EH_FORMAT) {
	case EH_ABSOLUTE:
	case EH_UDATA8:
	case EH_SDATA8: return cursor_u64(c);
	case EH_ULEB: return cursor_uleb(c);
	case EH_UDATA2: return cursor_u16(c);
	case EH_UDATA4: return cursor_u32(c);
	case EH_SLEB: return (uint64_t)cursor_sleb(c);
	case EH_SDATA2: return (uint64_t)(int64_t)(int16_t)cursor_u16(c);
	case EH_SDATA4: return (uint64_t)(int64_t)(int32_t)cursor_u32(c);
	default: spoil(c); return 0;
	}
}

uint64_t cursor_pointer(
	struct cursor *c, uint8_t encoding, uint64_t vaddr, const uint64_t *data_base)
{
	uint64_t base = 0;

	if ((encoding & EH_BASE) == EH_PC_RELATIVE)
		base = vaddr;
	else if ((encoding & EH_BASE) == EH_DATA_RELATIVE && data_base)
		base = *data_base;
	else if (encoding & EH_BASE)
		spoil(c);
	if (encoding & EH_INDIRECT)
		spoil(c);
	return cursor_value(c, encoding) + base; /* addresses wrap, as in the linker */
}
