/* SPDX-License-Identifier: Apache-2.0 */
/* image_cache.c - a small list in no order; the oldest goes first.
 *
 * How large an item's tables are only the allocator knows, so the ceiling holds for the process as
 * a whole: it has one thread and keeps nothing else. Sanitizers' allocators do not tell; there the
 * ceilings of items and of mapped bytes hold alone. */
#include "record/symbol/image_cache.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macros.h"

static void item_done(struct image_cache_item *i)
{
	if (i->names)
		names_close(i->names);
	if (i->image)
		image_close(i->image);
	if (i->perfmap)
		perfmap_free(i->perfmap);
	fd_closep(&i->fd);
	fd_closep(&i->debug_fd);
}

static void take_off(struct image_cache *s, size_t at)
{
	item_done(&s->items[at]);
	s->items[at] = s->items[--s->count];
}

void image_cache_done(struct image_cache *s)
{
	while (s->count)
		take_off(s, 0);
}

static struct image_cache_item *find(struct image_cache *s, uint32_t file)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].file == file)
			return &s->items[i];
	return NULL;
}

void image_cache_forget(struct image_cache *s, uint32_t file)
{
	struct image_cache_item *i = find(s, file);

	if (i)
		take_off(s, (size_t)(i - s->items));
}

static void take_off_oldest(struct image_cache *s)
{
	size_t oldest = 0;

	for (size_t i = 1; i < s->count; i++)
		if (s->items[i].used < s->items[oldest].used)
			oldest = i;
	take_off(s, oldest);
}

static uint64_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static uint64_t mapped_bytes(const struct image_cache *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->count; i++)
		sum += s->items[i].mapped_bytes;
	return sum;
}

static bool is_too_large(const struct image_cache *s, uint64_t more_bytes)
{
	return heap_bytes() > s->heap_max || mapped_bytes(s) + more_bytes > s->mapped_max;
}

void image_cache_tidy(struct image_cache *s)
{
	size_t before = s->count;

	while (s->count > 1 && is_too_large(s, 0))
		take_off_oldest(s);
	if (s->count < before)
		malloc_trim(0);
}

/* For one more with @bytes of files, before it is mapped: address space has a hard limit. */
static void make_room(struct image_cache *s, uint64_t bytes)
{
	while (s->count && (s->count == IMAGE_CACHE_ITEMS_MAX || is_too_large(s, bytes)))
		take_off_oldest(s);
}

static uint64_t file_bytes(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

static int item_open(
	struct image_cache_item *i, enum protocol_source source, struct errinfo *reterr)
{
	int r;

	if (source == PROTOCOL_PERFMAP) {
		r = perfmap_read(i->fd, &i->perfmap);
		return r < 0 ? errinfo_set(reterr, r, "cannot read its map: %s", strerror(-r)) : 0;
	}
	r = image_open(i->fd, &i->image, reterr);
	if (r < 0)
		return r;
	r = names_open(i->image, i->fd, i->debug_fd, &i->names);
	return r < 0 ? errinfo_set(reterr, r, "cannot read its symbols: %s", strerror(-r)) : 0;
}

int image_cache_get(struct image_cache *s, uint32_t file, enum protocol_source source,
	int fds[PROTOCOL_FILES_MAX], const struct image_cache_item **ret, struct errinfo *reterr)
{
	struct image_cache_item fresh = {.file = file, .fd = -1, .debug_fd = -1};
	struct image_cache_item *i = find(s, file);
	int r;

	if (i && i->debug_fd < 0 && fds[1] >= 0) { /* its debug information was found later */
		take_off(s, (size_t)(i - s->items));
		i = NULL;
	}
	if (!i) {
		fresh.fd = fds[0];
		fresh.debug_fd = fds[1];
		if (source == PROTOCOL_ELF)
			fresh.mapped_bytes = file_bytes(fds[0]) + file_bytes(fds[1]);
		make_room(s, fresh.mapped_bytes);
		fds[0] = fds[1] = -1;
		r = item_open(&fresh, source, reterr);
		if (r < 0) {
			item_done(&fresh);
			return r;
		}
		i = &s->items[s->count++];
		*i = fresh;
	}
	i->used = ++s->clock;
	*ret = i;
	return 0;
}
