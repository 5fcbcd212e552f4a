/* SPDX-License-Identifier: Apache-2.0 */
/* eh_frame.c - see eh_frame.h. A record is: length (4 bytes; 0xffffffff and 8 more if it is long),
 * then 4 bytes that are 0 in a CIE, and in an entry the distance back to its CIE; then its content.
 *
 * An entry names a CIE directly and a CIE names nothing, so there are no chains to follow. CIEs are
 * bounded because many entries may name one: the work stays linear in the section. */
#include "record/symbol/eh_frame.h"

/* Invariant of a cursor: at <= end, and a bad one has at == end, so that loops over what is left come to an
 * end. */
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

/* cursor_value - the bare number of a pointer in format @encoding & EH_FORMAT. */
static uint64_t cursor_value(struct cursor *c, uint8_t encoding)
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

#define TERMINATOR_BYTES 4

struct eh_frame eh_frame_of(const struct image_range *section)
{
	return (struct eh_frame){.section = *section};
}

/* The content of the record at @offset, from the id on. A record of length 0 is an empty one: it
 * ends one object's part of the section. */
static struct cursor record_at(const struct eh_frame *f, uint64_t offset)
{
	struct cursor c = cursor_of(f->section.data + offset, f->section.size - offset);
	uint64_t length = cursor_u32(&c);

	if (length == UINT32_MAX)
		length = cursor_u64(&c);
	return cursor_block(&c, length);
}

int eh_frame_next(struct eh_frame *f, uint64_t *ret_record)
{
	while (f->next < f->section.size) {
		uint64_t record = f->next;
		struct cursor c;

		if (f->section.size - record < TERMINATOR_BYTES)
			break; /* padding */
		c = record_at(f, record);
		f->next = (uint64_t)(c.end - f->section.data);
		if (c.bad)
			return -EBADMSG;
		if (cursor_left(&c) == 0)
			continue;
		if (cursor_u32(&c) != 0 && !c.bad) {
			*ret_record = record;
			return 1;
		}
	}
	return 0;
}

uint64_t eh_frame_address(const struct eh_frame *f, const struct eh_cie *cie, struct cursor *c)
{
	uint64_t vaddr = f->section.vaddr + (uint64_t)(c->at - f->section.data);

	return cursor_pointer(c, cie->encoding, vaddr, NULL);
}

/* The letters of an augmentation "z…" and the data behind each. */
static bool read_augmentation(struct eh_cie *cie, struct cursor *letters, struct cursor *data)
{
	while (cursor_left(letters)) {
		uint8_t encoding;

		switch (cursor_u8(letters)) {
		case 'R': cie->encoding = cursor_u8(data); break;
		case 'P':
			encoding = cursor_u8(data);
			if ((encoding & EH_BASE) == EH_ALIGNED && encoding != EH_OMITTED)
				return false;
			if (encoding != EH_OMITTED)
				cursor_value(data, encoding);
			break;
		case 'L': cursor_u8(data); break;
		case 'S': cie->is_signal = true; break;
		case 'B': break; /* arm64: return addresses are signed with key B */
		case 'G': break; /* arm64: the frame's memory is tagged */
		default: return false;
		}
	}
	return !data->bad;
}

static int read_cie(const struct eh_frame *f, uint64_t offset, struct eh_cie *ret)
{
	struct cursor c = record_at(f, offset), letters, data;
	struct eh_cie cie = {.encoding = EH_ABSOLUTE};
	uint8_t version;

	if (c.bad || cursor_left(&c) > EH_FRAME_CIE_MAX || cursor_u32(&c) != 0)
		return -EBADMSG;
	version = cursor_u8(&c);
	if (version != 1 && version != 3 && version != 4)
		return -EBADMSG;
	letters = c;
	while (cursor_u8(&c))
		;
	if (c.bad)
		return -EBADMSG;
	letters.end = c.at - 1;
	/* size of an address, size of a segment's number */
	if (version == 4 && (cursor_u8(&c) != 8 || cursor_u8(&c) != 0))
		return -EBADMSG;
	cie.code_align = cursor_uleb(&c);
	cie.data_align = cursor_sleb(&c);
	cie.return_register = version == 1 ? cursor_u8(&c) : cursor_uleb(&c);
	if (cursor_left(&letters)) {
		if (cursor_u8(&letters) != 'z')
			return -EBADMSG;
		cie.sized = true;
		data = cursor_block(&c, cursor_uleb(&c));
		if (!read_augmentation(&cie, &letters, &data))
			return -EBADMSG;
	}
	if (c.bad)
		return -EBADMSG;
	cie.program = c;
	*ret = cie;
	return 0;
}

int eh_frame_entry(const struct eh_frame *f, uint64_t record, struct eh_entry *ret)
{
	struct cursor c = record_at(f, record);
	uint64_t id_at = (uint64_t)(c.at - f->section.data), back = cursor_u32(&c);
	struct eh_entry e;
	int r;

	if (c.bad || back == 0 || back > id_at)
		return -EBADMSG;
	r = read_cie(f, id_at - back, &e.cie);
	if (r < 0)
		return r;
	e.start = eh_frame_address(f, &e.cie, &c);
	e.size = cursor_value(&c, e.cie.encoding);
	if (e.cie.sized)
		cursor_block(&c, cursor_uleb(&c));
	if (c.bad || e.size == 0 || e.start + e.size < e.start)
		return -EBADMSG;
	e.program = c;
	*ret = e;
	return 0;
}
