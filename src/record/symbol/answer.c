/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - asks the readers (image, unwind_table, names, perfmap) and writes protocol.h's
 * answers.
 *
 * Invariants:
 *  1. An offset's frames fit one message, so a message is sent before it could become too long.
 *  2. Nothing here trusts the file: a reader's error is an answer, its crash the process's. */
#include "record/symbol/answer.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/file.h"
#include "record/symbol/handles.h"
#include "record/symbol/unwind_table.h"

/* A small list in no order; the oldest goes first.
 *
 * How large an item's tables are only the allocator knows, so the ceiling holds for the process as
 * a whole: it has one thread and keeps nothing else. Sanitizers' allocators do not tell; there the
 * ceilings of items and of mapped bytes hold alone. */

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
	return FIND(x, s->items, s->count, x->file == file);
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

STATIC_ASSERT(
	sizeof(struct protocol_header) + sizeof(struct protocol_status) + PROTOCOL_FRAMES_MAX <=
	PROTOCOL_MESSAGE_MAX);

/* ---- sending ---- */

static void put(struct answer *a, const void *data, size_t size)
{
	memcpy(a->message + a->size, data, size);
	a->size += size;
}

void answer_begin(struct answer *a, const struct protocol_header *q)
{
	a->header = *q;
	a->header.magic = PROTOCOL_MAGIC;
	a->header.last = 0;
	a->size = sizeof(a->header); /* its place */
}

static void put_status(struct answer *a, int err, const char *text)
{
	struct protocol_status status = {.err = err};

	snprintf(status.text, sizeof(status.text), "%s", text);
	put(a, &status, sizeof(status));
}

static void attach_file(struct msghdr *m, void *room, size_t size, int fd)
{
	struct cmsghdr *c;

	m->msg_control = room;
	m->msg_controllen = size;
	c = CMSG_FIRSTHDR(m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
}

static void flush(struct answer *a, bool last, int fd)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec part = {a->message, a->size};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t n;

	a->header.last = last;
	memcpy(a->message, &a->header, sizeof(a->header));
	if (fd >= 0)
		attach_file(&m, room, sizeof(room), fd);
	do
		n = sendmsg(a->socket, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	a->gone = n != (ssize_t)a->size;
	a->size = sizeof(a->header);
}

void answer_error(struct answer *a, int err, const char *text)
{
	put_status(a, err, text[0] ? text : strerror(-err));
	flush(a, true, -1);
}

void answer_ready(struct answer *a, const char *text)
{
	put_status(a, 0, text);
	flush(a, true, -1);
}

/* ---- identity ---- */

static uint64_t text_bytes(const struct image *i)
{
	struct image_range r;
	uint64_t sum = 0;

	for (unsigned n = 0; image_text(i, n, &r) == 0; n++)
		sum += r.size;
	return sum;
}

void answer_identity(struct answer *a, int fd)
{
	_cleanup_(image_closep) struct image *image = NULL;
	struct protocol_identity id = {0};
	struct image_range eh;
	struct errinfo e = {0};
	int r = image_open(fd, &image, &e);

	if (r < 0) {
		answer_error(a, r, e.text);
		return;
	}
	r = image_build_id(image, id.build_id);
	id.build_id_len = r > 0 ? (uint32_t)r : 0;
	id.has_load_base = image_load_base(image, &id.load_base) == 0;
	id.eh_frame_bytes = image_eh_frame(image, &eh) == 0 ? eh.size : 0;
	id.text_bytes = text_bytes(image);
	put_status(a, 0, "");
	put(a, &id, sizeof(id));
	flush(a, true, -1);
}

/* ---- unwind table ---- */

/* The table as a file that nobody can change any more. */
static int table_file(const struct unwind_table *t)
{
	const struct protocol_table head = {
		.magic = PROTOCOL_MAGIC, .count = t->count, .rule_count = t->rule_count};
	int fd = memfd_create("unwind-table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return -errno;
	r = file_write_all(fd, &head, sizeof(head));
	r = r ?: file_write_all(fd, t->rules, t->rule_count * sizeof(t->rules[0]));
	r = r ?: file_write_all(fd, t->address, t->count * sizeof(t->address[0]));
	r = r ?: file_write_all(fd, t->rule, t->count * sizeof(t->rule[0]));
	if (r == 0 && fcntl(fd, F_ADD_SEALS, PROTOCOL_SEALS) < 0)
		r = -errno;
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

static int build_table_file(int fd, const char **ret_text, struct errinfo *reterr)
{
	_cleanup_(image_closep) struct image *image = NULL;
	struct unwind_table t = {0};
	int r = image_open(fd, &image, reterr);

	r = r ?: unwind_table_build(image, &t, reterr);
	if (r < 0)
		return r;
	*ret_text = t.cut ? "its table was too long and was truncated" : "";
	r = table_file(&t);
	unwind_table_done(&t);
	return r;
}

void answer_unwind(struct answer *a, int fd)
{
	struct errinfo e = {0};
	const char *text;
	int table = build_table_file(fd, &text, &e);

	if (table < 0) {
		answer_error(a, table, e.text);
		return;
	}
	put_status(a, 0, text);
	flush(a, true, table);
	close(table);
}

/* ---- handles ---- */

void answer_handles(struct answer *a, int fd)
{
	_cleanup_(image_closep) struct image *image = NULL;
	_cleanup_free_ uint64_t *vaddrs = NULL;
	struct protocol_handles h = {0};
	struct image_range text;
	struct errinfo e = {0};
	int r = image_open(fd, &image, &e), count = 0;

	r = r ?: image_text(image, 0, &text);
	r = r ?: image_offset(image, text.vaddr, &h.text_offset);
	if (r == 0)
		r = count = handles_list(image, &vaddrs);
	if (r < 0) {
		answer_error(a, r, e.text);
		return;
	}
	h.text_vaddr = text.vaddr;
	put_status(a, 0, "");
	put(a, &h, sizeof(h));
	for (int i = 0; i < count; i++) {
		if (a->size + sizeof(*vaddrs) > sizeof(a->message))
			flush(a, false, -1);
		put(a, &vaddrs[i], sizeof(*vaddrs));
	}
	flush(a, true, -1);
}

/* ---- frames ---- */

static uint16_t text_length(const char *text)
{
	return text ? (uint16_t)strnlen(text, NAMES_TEXT_MAX) : PROTOCOL_NO_TEXT;
}

static void put_text(struct answer *a, const char *text, uint16_t len)
{
	if (!text)
		return;
	put(a, text, len);
	put(a, "", 1);
}

static void put_frames(struct answer *a, const struct names_frame *frames, uint8_t count)
{
	put(a, &count, 1);
	for (uint8_t i = 0; i < count; i++) {
		struct protocol_frame f = {
			.from_start = frames[i].from_start,
			.line = frames[i].line,
			.function_len = text_length(frames[i].function),
			.file_len = text_length(frames[i].file),
		};

		put(a, &f, sizeof(f));
		put_text(a, frames[i].function, f.function_len);
		put_text(a, frames[i].file, f.file_len);
	}
}

static uint8_t frames_at(const struct image_cache_item *item, const struct protocol_offset *o,
	struct names_frame out[NAMES_INLINE_MAX])
{
	int n;

	if (item->perfmap) {
		uint64_t from_start = 0;
		const char *name =
			perfmap_at(item->perfmap, o->offset - (o->is_return ? 1 : 0), &from_start);

		out[0] = (struct names_frame){.function = name, .from_start = from_start};
		return name ? 1 : 0;
	}
	n = o->offset & SYMBOL_HANDLE ? names_handle(item->names, o->offset & ~SYMBOL_HANDLE, out)
				      : names_at(item->names, o->offset, o->is_return, out);
	return (uint8_t)MAX(0, MIN(n, NAMES_INLINE_MAX));
}

void answer_frames(struct answer *a, const struct image_cache_item *item,
	const struct protocol_offset *offsets, size_t count)
{
	struct names_frame frames[NAMES_INLINE_MAX];

	put_status(a, 0, "");
	for (size_t i = 0; i < count; i++) {
		if (a->size + PROTOCOL_FRAMES_MAX > sizeof(a->message))
			flush(a, false, -1);
		put_frames(a, frames, frames_at(item, &offsets[i], frames));
	}
	flush(a, true, -1);
}

/* ---- places ---- */

/* The first bytes at @vaddr, if all of them are in the file. */
static bool read_content(const struct image *image, uint64_t vaddr, uint8_t *out, size_t size)
{
	uint64_t first, last;
	size_t bytes;
	const uint8_t *data = image_data(image, &bytes);

	if (image_offset(image, vaddr, &first) < 0 ||
		image_offset(image, vaddr + size - 1, &last) < 0 || last - first != size - 1 ||
		last < first || last >= bytes)
		return false;
	memcpy(out, data + first, size);
	return true;
}

void answer_places(struct answer *a, const struct image_cache_item *item,
	const struct protocol_name *names, size_t count)
{
	if (item->perfmap) {
		answer_error(a, -EOPNOTSUPP, "a JIT's map has no symbols");
		return;
	}
	put_status(a, 0, "");
	for (size_t i = 0; i < count; i++) {
		struct protocol_place p = {0};

		if (names_symbol(item->names, names[i].text, &p.vaddr, &p.size) == 0) {
			p.found = 1;
			p.has_content =
				read_content(item->image, p.vaddr, p.content, sizeof(p.content));
		}
		put(a, &p, sizeof(p));
	}
	flush(a, true, -1);
}
