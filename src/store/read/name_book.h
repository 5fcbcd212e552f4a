/* SPDX-License-Identifier: Apache-2.0 */
/* name_book.h - what events of a recording are called beyond their operation: the kernel that a launch
 * launched, the text of an NVTX range. Loaded whole; files without such tables give an empty one. */
#pragma once

#include "store/read/nodedb_reader.h"

#define NAME_BOOK_ROWS  65536
#define NAME_BOOK_BYTES (16u << 20)

struct name_book;

int name_book_load(struct reader *r, struct name_book **ret, struct errinfo *reterr);
void name_book_free(struct name_book *b);
DEFINE_CLEANUP(struct name_book *, name_book_free)

/* name_book_find - the name of @e on @node (NULL: any); NULL: it has none, or nobody told it. An
 * unknown kernel is called "unknown kernel at libx.so+0x10" where that is known. Valid as long as
 * the book. @b may be NULL. */
const char *name_book_find(
	const struct name_book *b, const struct event *e, const char *node, size_t node_len);

/* name_book_kind - what such a name is: "kernel" or "range"; NULL: events like @e have none. */
const char *name_book_kind(const struct event *e);
