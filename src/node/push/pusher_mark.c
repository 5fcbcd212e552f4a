/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_mark.c - what was delivered, on disk: see pusher_private.h. */
#include "node/push/pusher_private.h"

#include <fcntl.h>
#include <sys/file.h>
#include <time.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/path_user.h"

#define RETRY_NS (100 * NS_PER_MS)

struct head {
	char magic[7], version;
	uint64_t serial;
	struct pusher_note note;
	uint32_t len; /* of the batch behind it */
	uint32_t sum; /* of the head, with 0 here, and the batch */
};
STATIC_ASSERT(sizeof(struct head) == 96);
static const char magic[8] = {'I', 'N', 'G', 'M', 'A', 'R', 'K', 1};

static uint32_t sum_of(const struct head *h, const void *batch)
{
	struct head zero = *h;

	zero.sum = 0;
	return crc32c(crc32c(0, &zero, sizeof(zero)), batch, h->len);
}

/* read_slot - whether slot @i is whole; its batch replaces what is in @b. */
static bool read_slot(int fd, int i, struct head *ret, struct buf *b)
{
	off_t at = (off_t)i * PUSHER_MARK_SLOT;
	_cleanup_free_ char *batch = NULL;
	struct head h;

	if (pread(fd, &h, sizeof(h), at) != sizeof(h) || memcmp(&h, magic, sizeof(magic)) != 0 ||
		h.len > PUSHER_MARK_SLOT - sizeof(h))
		return false;
	batch = malloc(h.len + 1);
	if (!batch || pread(fd, batch, h.len, at + (off_t)sizeof(h)) != (ssize_t)h.len ||
		sum_of(&h, batch) != h.sum)
		return false;
	buf_clear(b);
	buf_append(b, batch, h.len);
	*ret = h;
	return !b->err;
}

/* Whether @fd is no mark: a damaged one begins with most of its magic, one that was cut off in its first write with
 * zeros. */
static bool is_foreign(int fd)
{
	char start[sizeof(magic)];
	size_t same = 0, zeros = 0;

	if (pread(fd, start, sizeof(start), 0) != sizeof(start))
		return false;
	for (size_t i = 0; i < sizeof(start); i++) {
		same += start[i] == magic[i];
		zeros += start[i] == 0;
	}
	return same <= sizeof(start) / 2 && zeros < sizeof(start);
}

static int load(struct pusher_mark *m, const char *path, struct pusher_note *ret, struct buf *batch)
{
	_cleanup_buf_ struct buf other = BUF_INIT(PUSHER_MARK_SLOT);
	struct head h[2] = {0};
	bool is_whole[2] = {read_slot(m->fd, 0, &h[0], batch), read_slot(m->fd, 1, &h[1], &other)};
	int newest = is_whole[1] && (!is_whole[0] || h[1].serial > h[0].serial);

	if (!is_whole[newest] && is_foreign(m->fd))
		return -EEXIST;
	if (!is_whole[newest]) {
		if (lseek(m->fd, 0, SEEK_END) > 0)
			log_warning(
				"%s is damaged: calls of the last minute may be sent twice", path);
		return 0;
	}
	if (newest == 1) {
		buf_clear(batch);
		buf_append(batch, other.data, other.len);
	}
	m->serial = h[newest].serial;
	m->has_note = true;
	*ret = h[newest].note;
	return batch->err ? batch->err : 1;
}

static int lock(int fd, uint64_t wait_ns)
{
	const struct timespec pause = {.tv_nsec = RETRY_NS};

	for (uint64_t waited = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; waited += RETRY_NS) {
		if (errno != EWOULDBLOCK || waited >= wait_ns)
			return -errno;
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* A new file is in its folder after a power cut only if that was synced, too. Not every folder may be read, or can be
 * synced: then the file system writes it within seconds. */
static void sync_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_fd_ int fd = -1;

	fd = open(FORMATTED(4096, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : "."),
		O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		(void)fsync(fd);
}

static int open_file(const char *path, int *ret, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	_cleanup_fd_ int fd = -1;
	int r = path_user_enter(path, &before, reterr);

	if (r < 0)
		return r;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (fd < 0)
		return errinfo_set(reterr, -errno, "%.300s: %s", path, strerror(errno));
	r = owner_give(fd);
	if (r < 0)
		return errinfo_set(reterr, r, "%.300s: %s", path, strerror(-r));
	sync_folder(path);
	*ret = fd;
	fd = -1;
	return 0;
}

int pusher_mark_open(struct pusher_mark *m, const char *path, uint64_t wait_ns,
	struct pusher_note *ret, struct buf *ret_batch, struct errinfo *reterr)
{
	_cleanup_fd_ int fd = -1;
	int r;

	*m = (struct pusher_mark){.fd = -1};
	r = open_file(path, &fd, reterr);
	if (r < 0)
		return r;
	r = lock(fd, wait_ns);
	if (r == -EWOULDBLOCK)
		return errinfo_set(reterr, -EBUSY,
			"another fleet-push sends this recording to the same place as the same node (it holds %.300s)",
			path);
	if (r < 0)
		return errinfo_set(reterr, r, "cannot lock %.300s: %s", path, strerror(-r));
	m->fd = fd;
	fd = -1;
	r = load(m, path, ret, ret_batch);
	if (r != -EEXIST)
		return r;
	pusher_mark_close(m);
	return errinfo_set(reterr, r, "%.300s is another file and is not written to", path);
}

void pusher_mark_close(struct pusher_mark *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

int pusher_mark_peek(const char *path, struct pusher_note *ret, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	_cleanup_buf_ struct buf batch = BUF_INIT(PUSHER_MARK_SLOT);
	struct pusher_mark m = {.fd = -1};
	int r = path_user_enter(path, &before, reterr);

	if (r < 0)
		return r;
	m.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (m.fd < 0)
		return errno == ENOENT
			       ? 0
			       : errinfo_set(reterr, -errno, "%.300s: %s", path, strerror(errno));
	r = load(&m, path, ret, &batch);
	pusher_mark_close(&m);
	return r;
}

int pusher_mark_write(struct pusher_mark *m, const struct pusher_note *n, const struct buf *batch)
{
	struct head h = {
		.serial = m->serial + 1, .note = *n, .len = batch ? (uint32_t)batch->len : 0};
	off_t at = (off_t)(h.serial % 2) * PUSHER_MARK_SLOT;
	const void *data = batch ? batch->data : NULL;

	if (m->fd < 0)
		return 0;
	memcpy(&h, magic, sizeof(magic));
	h.sum = sum_of(&h, data);
	errno = ENOSPC; /* what a short write is about */
	if ((h.len && pwrite(m->fd, data, h.len, at + (off_t)sizeof(h)) != (ssize_t)h.len) ||
		pwrite(m->fd, &h, sizeof(h), at) != sizeof(h))
		return -errno;
	if (batch && fdatasync(m->fd) < 0)
		return -errno;
	m->serial = h.serial;
	m->has_note = true;
	return 0;
}
