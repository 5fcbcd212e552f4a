/* SPDX-License-Identifier: Apache-2.0 */
/* spool.c - see spool.h. Files in the folder, numbers little-endian:
 *
 *   NNNNNNNNNNNNNNNN.seg  records, one behind the other: length u32, tag u32, CRC-32C u32 of both and
 *                         the data, data. NN… counts up; the last one is written to.
 *   position              segment u64, offset u64, CRC-32C u32: where the first record is that is not
 *                         acknowledged. If it is damaged, everything is read again. Then the same of the
 *                         end of those that were sent together; it may be missing.
 *
 * Invariants: segments are in order of their numbers; seg->size is where its last good record ends,
 * and records are appended there; acked <= taken <= the end; `bytes` is the sum of all sizes and
 * <= bytes_max; every record that was appended is acknowledged, dropped or waits. */
#include "deliver/spool_private.h"

#include <endian.h>
#include <fcntl.h>
#include <sys/uio.h>

#include "base/array.h"
#include "base/hash.h"

void spool_segment_name(char out[SPOOL_NAME_MAX], uint64_t id)
{
	snprintf(out, SPOOL_NAME_MAX, "%016" PRIx64 ".seg", id);
}

static uint32_t record_crc(const struct record_head *h, const void *data, size_t len)
{
	return crc32c(crc32c(0, h, offsetof(struct record_head, crc)), data, len);
}

struct segment *spool_segment_find(struct spool *s, uint64_t id)
{
	return FIND(x, s->segments, s->count, x->id == id);
}

/* ---- the position ---- */

static void position_write(struct spool *s)
{
	struct position p[] = {spool_position(&s->acked), spool_position(&s->taken)};
	_cleanup_fd_ int fd =
		openat(s->dir, "position", O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	/* If that fails, records come a second time after a restart. */
	if (fd >= 0)
		(void)!pwrite(fd, p, sizeof(p), 0);
}

struct position spool_position(const struct cursor *c)
{
	struct position p = {htole64(c->id), htole64(c->offset), 0};

	p.crc = htole32(crc32c(0, &p, offsetof(struct position, crc)));
	return p;
}

/* ---- segments ---- */

void spool_remove_first(struct spool *s)
{
	char name[SPOOL_NAME_MAX];

	spool_segment_name(name, s->segments[0].id);
	(void)unlinkat(s->dir, name, 0);
	if (s->read_fd >= 0 && s->read_id == s->segments[0].id) {
		close(s->read_fd);
		s->read_fd = -1;
	}
	s->bytes -= s->segments[0].size;
	memmove(s->segments, s->segments + 1, --s->count * sizeof(*s->segments));
}

/* The oldest one goes, read or not. What was taken of it is with who delivers it, and not lost yet. */
void spool_drop_first(struct spool *s)
{
	struct segment *first = &s->segments[0];
	bool is_taken = s->taken.id > first->id, is_being_taken = s->taken.id == first->id;
	uint64_t begin = is_taken ? first->size : is_being_taken ? s->taken.offset : 0;
	uint64_t taken = is_taken ? first->waiting : is_being_taken ? s->taken_here : 0;

	s->stats.dropped_records += first->waiting - taken;
	s->stats.dropped_bytes += first->size - begin;
	s->stats.records -= first->waiting;
	spool_remove_first(s);
	s->acked = (struct cursor){s->count ? s->segments[0].id : s->next_id, 0};
	if (is_being_taken) {
		s->taken = s->acked;
		s->taken_here = 0;
	}
	position_write(s);
}

static int segment_begin(struct spool *s)
{
	char name[SPOOL_NAME_MAX];
	int r = ARRAY_RESERVE(s->segments, s->room, s->count + 1, SPOOL_SEGMENTS_MAX);

	if (r < 0)
		return r;
	spool_segment_name(name, s->next_id);
	s->write_fd = openat(s->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (s->write_fd < 0)
		return -errno;
	(void)fsync(s->dir); /* else a power cut might forget the file, not only its end */
	if (!s->count)
		s->acked = s->taken = (struct cursor){s->next_id, 0};
	s->segments[s->count++] = (struct segment){.id = s->next_id++};
	return 0;
}

static void segment_end(struct spool *s)
{
	(void)spool_sync(s);
	close(s->write_fd);
	s->write_fd = -1;
}

/* ---- writing ---- */

/* Room for @need bytes more, in the last segment and below the ceiling. */
static int make_room(struct spool *s, uint64_t need)
{
	if (s->write_fd >= 0 && s->segments[s->count - 1].size + need > s->segment_max)
		segment_end(s);
	while (s->bytes + need > s->bytes_max && s->count > (s->write_fd >= 0 ? 1 : 0))
		spool_drop_first(s);
	return s->write_fd < 0 ? segment_begin(s) : 0;
}

int spool_append(struct spool *s, uint32_t tag, const void *data, size_t len)
{
	struct record_head h = {htole32((uint32_t)len), htole32(tag), 0};
	struct iovec parts[] = {{&h, sizeof(h)}, {(void *)data, len}};
	size_t whole = sizeof(h) + len;
	struct segment *last;
	ssize_t n;
	int r;

	if (len > s->segment_max - sizeof(h)) {
		s->stats.too_large++;
		return -E2BIG;
	}
	h.crc = htole32(record_crc(&h, data, len));
	r = make_room(s, whole);
	if (r < 0) {
		s->stats.write_errors++;
		return r;
	}
	last = &s->segments[s->count - 1];
	n = pwritev(s->write_fd, parts, ARRAY_SIZE(parts), (off_t)last->size);
	if (n != (ssize_t)whole) {
		r = n < 0 ? -errno : -ENOSPC;
		s->stats.write_errors++;
		if (ftruncate(s->write_fd, (off_t)last->size) < 0)
			segment_end(s); /* its end is cut off when it is opened again */
		return r;
	}
	last->size += whole;
	last->waiting++;
	s->bytes += whole;
	s->dirty = true;
	s->stats.appended++;
	s->stats.records++;
	return 0;
}

int spool_sync(struct spool *s)
{
	if (!s->dirty || s->write_fd < 0)
		return 0;
	if (fdatasync(s->write_fd) < 0)
		return -errno;
	s->dirty = false;
	return 0;
}

/* ---- reading ---- */

static int read_fd_of(struct spool *s, uint64_t id)
{
	char name[SPOOL_NAME_MAX];

	if (s->read_fd >= 0 && s->read_id == id)
		return s->read_fd;
	if (s->read_fd >= 0)
		close(s->read_fd);
	spool_segment_name(name, id);
	s->read_fd = openat(s->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	s->read_id = id;
	return s->read_fd;
}

/* What is left of @seg, the segment of `taken`, cannot be read. */
static void give_up_rest(struct spool *s, struct segment *seg)
{
	s->stats.damaged_bytes += seg->size - s->taken.offset;
	s->stats.records -= seg->waiting - s->taken_here;
	seg->waiting = s->taken_here;
	s->taken.offset = seg->size;
}

/* Moves `taken` to where the next record begins: its segment, or NULL at the end. */
static struct segment *skip_to_record(struct spool *s)
{
	struct segment *seg = spool_segment_find(s, s->taken.id);

	while (seg && s->taken.offset >= seg->size && seg < s->segments + s->count - 1) {
		seg++;
		s->taken = (struct cursor){seg->id, 0};
		s->taken_here = 0;
	}
	return seg && s->taken.offset < seg->size ? seg : NULL;
}

bool spool_head_read(int fd, uint64_t offset, uint64_t end, struct record_head *ret)
{
	struct record_head h;

	if (end - offset < sizeof(h) || pread(fd, &h, sizeof(h), (off_t)offset) != sizeof(h))
		return false;
	*ret = (struct record_head){le32toh(h.len), le32toh(h.tag), le32toh(h.crc)};
	return ret->len <= end - offset - sizeof(h);
}

/* The head of the next record; its segment, or NULL at the end. */
static struct segment *next_head(struct spool *s, struct record_head *ret)
{
	struct segment *seg;

	while ((seg = skip_to_record(s))) {
		if (spool_head_read(read_fd_of(s, seg->id), s->taken.offset, seg->size, ret))
			return seg;
		give_up_rest(s, seg);
	}
	return NULL;
}

bool spool_look(struct spool *s, uint32_t *ret_tag, size_t *ret_len)
{
	struct record_head h;

	if (!next_head(s, &h))
		return false;
	*ret_tag = h.tag;
	*ret_len = h.len;
	return true;
}

/* The data of the record at @offset, if it is whole. */
bool spool_data_read(int fd, uint64_t offset, const struct record_head *h, char *out)
{
	struct record_head raw = {htole32(h->len), htole32(h->tag), 0};

	return pread(fd, out, h->len, (off_t)(offset + sizeof(*h))) == (ssize_t)h->len &&
	       record_crc(&raw, out, h->len) == h->crc;
}

int spool_take(struct spool *s, struct buf *b)
{
	struct record_head h;
	struct segment *seg;

	while ((seg = next_head(s, &h))) {
		_cleanup_free_ char *data = malloc(h.len + 1);

		if (!data)
			return -ENOMEM;
		if (!spool_data_read(s->read_fd, s->taken.offset, &h, data)) {
			give_up_rest(s, seg);
			continue;
		}
		buf_append(b, data, h.len);
		if (b->err)
			return b->err;
		s->taken.offset += sizeof(h) + h.len;
		s->taken_here++;
		return 0;
	}
	return -ENOENT;
}

static int cursor_compare(const struct cursor *a, const struct cursor *b)
{
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

enum spool_bound spool_bound(struct spool *s)
{
	if (!s->sent.id)
		return SPOOL_FREE;
	if (skip_to_record(s) && cursor_compare(&s->taken, &s->sent) < 0)
		return SPOOL_JOINED;
	s->sent = (struct cursor){0};
	return SPOOL_APART;
}

void spool_send(struct spool *s)
{
	position_write(s);
}

void spool_ack(struct spool *s)
{
	struct segment *seg;

	while (s->count && s->segments[0].id < s->taken.id) {
		s->stats.records -= s->segments[0].waiting;
		spool_remove_first(s);
	}
	seg = spool_segment_find(s, s->taken.id);
	if (seg) {
		seg->waiting -= s->taken_here;
		s->stats.records -= s->taken_here;
	}
	s->taken_here = 0;
	s->acked = s->taken;
	position_write(s);
}

struct spool_stats spool_stats(const struct spool *s)
{
	struct spool_stats stats = s->stats;

	stats.bytes = s->bytes;
	if (s->count && s->segments[0].id == s->acked.id) /* a segment goes when it is done with */
		stats.bytes -= s->acked.offset;
	return stats;
}
