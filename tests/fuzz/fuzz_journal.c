/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the journal: as somebody made them, and as we have written them, with a few bytes changed. What
 * reads as an entry is one that was written, in its place. */
#include <errno.h>

#include "cluster/journal/journal_private.h"
#include "cluster/keep/keeper.h"
#include "fuzz.h"

#define ENTRIES_MAX 64

/* read_all - how many entries there are before the first bad one. */
static size_t read_all(int fd, uint64_t size, struct journal_entry *ret, char **ret_data)
{
	_cleanup_(window_done) struct window w = {.fd = fd};
	uint64_t at = SEGMENT_HEAD, group;
	size_t count = 0;

	while (count < ENTRIES_MAX) {
		struct journal_entry e;
		struct entry parts;
		int r = segment_entry(&w, at, &e, &group);

		MUST(r == 0 || r == -EBADMSG);
		if (r < 0)
			break;
		MUST(e.position && group <= e.position);
		MUST(e.len <= size && at + ENTRY_HEAD + e.len <= size);
		if (entry_get(e.data, e.len, &parts) == 0)
			MUST(parts.key_count * SEEN_KEY + parts.len <= e.len);
		ret_data[count] = malloc(e.len + 1);
		MUST(ret_data[count]);
		memcpy(ret_data[count], e.data, e.len);
		ret[count++] = e;
		at += ENTRY_HEAD + e.len;
	}
	return count;
}

static void free_all(char **data, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(data[i]);
}

/* write_all - the input as entries of up to 255 bytes, behind a head that nobody looks at here. */
static size_t write_entries(struct fuzz_input *in, struct buf *b)
{
	size_t count = 0;

	buf_append(b, (char[SEGMENT_HEAD]){0}, SEGMENT_HEAD);
	while (in->size && count < ENTRIES_MAX) {
		struct {
			struct entry_head head;
			char data[256];
		} e;
		size_t len = fuzz_u8(in);

		len = MIN(len, in->size);
		memcpy(e.data, in->data, len);
		in->data += len;
		in->size -= len;
		entry_seal(&e.head, 0, count + 1, count + 1, 1, (uint32_t)len);
		buf_append(b, &e, ENTRY_HEAD + len);
		count++;
	}
	return count;
}

static void check_written(struct fuzz_input *in)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct journal_entry first[ENTRIES_MAX], second[ENTRIES_MAX];
	char *data[ENTRIES_MAX], *damaged[ENTRIES_MAX];
	uint32_t at = fuzz_u32(in);
	uint8_t change = fuzz_u8(in);
	size_t count = write_entries(in, &b), left;
	int fd = fuzz_file(b.data, b.len);

	MUST(read_all(fd, b.len, first, data) == count);
	close(fd);
	at = SEGMENT_HEAD + at % (uint32_t)MAX(b.len - SEGMENT_HEAD, (size_t)1);
	if (at < b.len)
		b.data[at] ^= (char)change;
	fd = fuzz_file(b.data, b.len);
	left = read_all(fd, b.len, second, damaged);
	close(fd);
	MUST(change || left == count);
	MUST(left <= count);
	for (size_t i = 0; i < left; i++)
		MUST(second[i].position == first[i].position && second[i].len == first[i].len &&
			memcmp(data[i], damaged[i], first[i].len) == 0);
	free_all(data, count);
	free_all(damaged, left);
}

static void check_foreign(const uint8_t *data, size_t size)
{
	struct journal_entry entries[ENTRIES_MAX];
	char *copies[ENTRIES_MAX];
	int fd = fuzz_file(data, size);
	_cleanup_(window_done) struct window w = {.fd = fd};
	int r = segment_check(&w, 1);

	MUST(r == 0 || r == -EBADMSG || r == -ENODATA);
	free_all(copies, read_all(fd, size, entries, copies));
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};

	if (fuzz_u8(&in) & 1)
		check_written(&in);
	else
		check_foreign(in.data, in.size);
	return 0;
}
