/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - the symbol process's answers: reads what was asked from the file and sends it.
 *
 * Every function sends one whole answer, errors included. */
#pragma once

#include "record/symbol/image.h"
#include "record/symbol/names.h"
#include "record/symbol/protocol.h"

/* The files whose tables the symbol process keeps open, so that the next question about
 * one finds it read. Those not used for longest are closed when there are too many or their tables
 * grow too large; a later question opens them anew. */

#define IMAGE_CACHE_ITEMS_MAX  64
#define IMAGE_CACHE_HEAP_MAX   (256ull << 20) /* bytes allocated in the whole process */
#define IMAGE_CACHE_MAPPED_MAX (3ull << 30)   /* bytes of the files; libdw maps them once more */

struct image_cache_item { /* either image and names, or perfmap */
	uint32_t file;
	int fd, debug_fd;
	struct image *image;
	struct names *names;
	struct perfmap *perfmap;
	uint64_t mapped_bytes;
	uint64_t used; /* the later the larger */
};

struct image_cache {
	struct image_cache_item items[IMAGE_CACHE_ITEMS_MAX];
	size_t count;
	uint64_t clock;
	uint64_t heap_max, mapped_max;
};

#define IMAGE_CACHE_INIT                                                                           \
	((struct image_cache){                                                                     \
		.heap_max = IMAGE_CACHE_HEAP_MAX, .mapped_max = IMAGE_CACHE_MAPPED_MAX})
void image_cache_done(struct image_cache *s);

/* image_cache_get - the item of @file, opened from @fds (the file, its debug file or -1) if it is not
 * there. What it keeps of @fds it replaces by -1. *ret is the shelf's, valid until its next call.
 * Of image_open(), names_open() and perfmap_read(). */
int image_cache_get(struct image_cache *s, uint32_t file, enum protocol_source source,
	int fds[PROTOCOL_FILES_MAX], const struct image_cache_item **ret, struct errinfo *reterr);

void image_cache_forget(struct image_cache *s, uint32_t file);

/* image_cache_tidy - close items until the ceilings are kept. The last one used may stay above them. */
void image_cache_tidy(struct image_cache *s);

struct answer { /* one being sent; .socket and .header are set by the caller */
	int socket;
	struct protocol_header header;
	size_t size; /* of what waits in message */
	bool gone;   /* the agent is: nothing more can be sent */
	uint8_t message[PROTOCOL_MESSAGE_MAX];
};

/* answer_begin - to the question @q, or with @q's kind on the child's own account. */
void answer_begin(struct answer *a, const struct protocol_header *q);

void answer_error(struct answer *a, int err, const char *text);
void answer_ready(struct answer *a, const char *text);
void answer_identity(struct answer *a, int fd);
void answer_unwind(struct answer *a, int fd);
void answer_handles(struct answer *a, int fd);
void answer_frames(struct answer *a, const struct image_cache_item *item,
	const struct protocol_offset *offsets, size_t count);
void answer_places(struct answer *a, const struct image_cache_item *item,
	const struct protocol_name *names, size_t count);
