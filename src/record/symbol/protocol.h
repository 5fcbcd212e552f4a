/* SPDX-License-Identifier: Apache-2.0 */
/* protocol.h - what the agent and its symbol process say to each other.
 *
 * Messages keep their borders (SOCK_SEQPACKET) and begin with struct protocol_header. The child
 * first says that it is ready. Then it answers questions one by one in their order; every question
 * brings its file's descriptors along, so a child that was begun anew needs no history. An answer
 * bears kind, number and file of its question; it may come in several messages, of which only the
 * last has the flag. The two ends are the same program: no versions, no byte order.
 *
 * The child has read foreign files: the agent believes nothing of it before reply.c has looked. */
#pragma once

#include <fcntl.h>

#include "record/symbol/image.h"
#include "record/symbol/names.h"
#include "record/symbol/symbol.h"
#include "wire/stack.h"

#define PROTOCOL_MAGIC       0x424d5953u
#define PROTOCOL_MESSAGE_MAX (64u << 10)
#define PROTOCOL_NAME_MAX    128 /* of a symbol that is looked for, with its NUL */
#define PROTOCOL_TEXT_MAX    128
#define PROTOCOL_FILES_MAX   2 /* the file and its separate debug file */

enum protocol_kind {
	PROTOCOL_READY = 1, /* child: the doors are shut, ask */
	PROTOCOL_FAILED,    /* child: it cannot begin; a protocol_status follows */
	PROTOCOL_FORGET,    /* agent: this file will not be asked for again; no answer */
	PROTOCOL_IDENTITY,  /* the rest are questions */
	PROTOCOL_UNWIND,
	PROTOCOL_FRAMES,
	PROTOCOL_PLACES,
	PROTOCOL_HANDLES,
};

enum protocol_source { PROTOCOL_ELF, PROTOCOL_PERFMAP };

struct protocol_header {
	uint32_t magic;
	uint8_t kind;
	uint8_t source; /* question: enum protocol_source */
	uint8_t last;   /* answer: nothing follows */
	uint8_t pad;
	uint64_t number;
	uint32_t file;
	uint32_t count; /* question: offsets or names */
};

/* ---- questions: behind the header; IDENTITY, UNWIND and HANDLES have nothing there ---- */

struct protocol_offset {
	uint64_t offset;
	uint64_t is_return;
};

struct protocol_name {
	char text[PROTOCOL_NAME_MAX];
};

#define PROTOCOL_QUESTION_MAX 2048 /* of what is behind the header */

STATIC_ASSERT(SYMBOL_OFFSETS_MAX * sizeof(struct protocol_offset) <= PROTOCOL_QUESTION_MAX);
STATIC_ASSERT(SYMBOL_NAMES_MAX * sizeof(struct protocol_name) <= PROTOCOL_QUESTION_MAX);

/* ---- answers: each begins with a status, and ends there if it is an error ---- */

struct protocol_status {
	int32_t err;
	char text[PROTOCOL_TEXT_MAX];
};

struct protocol_identity {
	uint64_t load_base, eh_frame_bytes, text_bytes;
	uint32_t build_id_len;
	uint8_t has_load_base;
	uint8_t build_id[IMAGE_BUILD_ID_MAX];
};

struct protocol_place {
	uint64_t vaddr, size;
	uint8_t found, has_content;
	uint8_t content[8];
};

/* HANDLES: behind this the addresses, ascending. */
struct protocol_handles {
	uint64_t text_offset, text_vaddr;
};

/* FRAMES: for each offset the number of its frames (one byte), then that many of these, unaligned,
 * each followed by its texts with their NULs. */
#define PROTOCOL_NO_TEXT 0xffff

struct protocol_frame {
	uint64_t from_start;
	uint32_t line;
	uint16_t function_len, file_len; /* without NUL; PROTOCOL_NO_TEXT: none, not even a NUL */
};

#define PROTOCOL_FRAMES_MAX /* of one offset */                                                    \
	(1 + NAMES_INLINE_MAX * (sizeof(struct protocol_frame) + 2 * (NAMES_TEXT_MAX + 1)))

/* UNWIND: a file comes along, sealed against every change: this, the rules, the addresses, the
 * rules' numbers, without gaps. */
struct protocol_table {
	uint32_t magic;
	uint32_t count, rule_count;
	uint32_t pad;
};

#define PROTOCOL_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static inline uint64_t protocol_table_bytes(uint32_t count, uint32_t rule_count)
{
	return sizeof(struct protocol_table) + (uint64_t)rule_count * sizeof(struct unwind_rule) +
	       (uint64_t)count * (sizeof(uint32_t) + sizeof(uint16_t));
}
