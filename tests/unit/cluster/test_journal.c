/* SPDX-License-Identifier: Apache-2.0 */
/* The journal: order, groups, restarts, tails cut at every byte, damage, writes and syncs that fail,
 * trimming, readers. */
#include "journal_fixture.h"

#define SMALL 4096 /* bytes of a segment */

static void name_entry(char out[32], unsigned n)
{
	snprintf(out, 32, "entry %u", n);
}

static void append_many(struct journal_rig *r, unsigned from, unsigned count)
{
	char text[32];

	for (unsigned i = from; i < from + count; i++) {
		name_entry(text, i);
		append(r, text, strlen(text));
	}
	loop_run(r->loop);
	assert_int_equal(r->failed, 0);
}

/* Everything after @position is there, in order, to the last. */
static void expect_entries(struct journal_rig *r, uint64_t position, uint64_t last)
{
	struct journal_reader *reader = NULL;
	struct journal_entry e;
	struct errinfo err = {0};
	char text[32];

	assert_int_equal(journal_reader_new(r->journal, position, &reader, &err), 0);
	while (journal_next(reader, 0, &e, &err) == 1) {
		assert_int_equal(e.position, ++position);
		assert_true(e.wall_ns > 0);
		name_entry(text, (unsigned)position);
		assert_int_equal(e.len, strlen(text));
		assert_memory_equal(e.data, text, e.len);
	}
	assert_string_equal(err.text, "");
	assert_int_equal(position, last);
	journal_reader_free(reader);
}

static void test_order_and_restart(void **state)
{
	struct journal_rig *r = *state;
	struct journal_stats s;

	assert_int_equal(open_journal(r, SMALL, 0), 0);
	assert_int_equal(journal_stats(r->journal).durable, 0);
	append_many(r, 1, 1000);
	s = journal_stats(r->journal);
	assert_int_equal(s.first, 1);
	assert_int_equal(s.durable, 1000);
	assert_int_equal(s.appended, 1000);
	assert_true(s.syncs < 1000); /* groups */
	assert_int_equal(s.pending, 0);
	expect_entries(r, 0, 1000);
	expect_entries(r, 777, 1000);
	close_journal(r);
	assert_int_equal(open_journal(r, SMALL, 0), 0);
	assert_int_equal(journal_stats(r->journal).bytes, s.bytes);
	append_many(r, 1001, 10);
	expect_entries(r, 0, 1010);
}

static void test_second_process_is_told_who_has_it(void **state)
{
	struct journal_rig *r = *state;
	const struct journal_settings s = {.folder = r->folder};
	struct journal *other = NULL;
	struct errinfo e = {0};
	char pid[16];

	assert_int_equal(open_journal(r, 0, 0), 0);
	assert_int_equal(journal_open(r->loop, &s, &other, &e), -EAGAIN);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	assert_non_null(strstr(e.text, pid));
}

static void test_first_position(void **state)
{
	struct journal_rig *r = *state;

	assert_int_equal(open_journal(r, SMALL, 501), 0);
	assert_int_equal(journal_stats(r->journal).durable, 500);
	append_many(r, 501, 3);
	assert_int_equal(r->position, 503);
	close_journal(r);
	assert_int_equal(open_journal(r, SMALL, 502), 0); /* it is further already */
	append_many(r, 504, 1);
	expect_entries(r, 500, 504);
	close_journal(r);
	assert_int_equal(open_journal(r, SMALL, 1001), 0);
	append_many(r, 1001, 1);
	expect_entries(r, 1000, 1001);
}

/* ---- tails ---- */

static void newest_segment(struct journal_rig *r, char path[160])
{
	DIR *d = opendir(r->folder);
	struct dirent *e;
	uint64_t first, newest = 0;
	char name[SEGMENT_NAME];

	while ((e = readdir(d)))
		if (segment_parse(e->d_name, &first))
			newest = MAX(newest, first);
	closedir(d);
	segment_name(name, newest);
	snprintf(path, 160, "%s/%s", r->folder, name);
}

static void copy_file(const char *from, char *data, size_t *ret_len)
{
	FILE *f = fopen(from, "r");

	assert_non_null(f);
	*ret_len = fread(data, 1, 65536, f);
	fclose(f);
}

static void write_file(const char *to, const char *data, size_t len)
{
	FILE *f = fopen(to, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	fclose(f);
}

/* As a power cut leaves it that comes before the kernel has written the mark back. */
static void forget_mark(struct journal_rig *r)
{
	char path[160];

	snprintf(path, sizeof(path), "%s.acknowledged", r->folder);
	assert_int_equal(unlink(path), 0);
}

static void test_tail_cut_at_every_byte(void **state)
{
	struct journal_rig *r = *state;
	static char data[65536];
	char path[160];
	size_t len;

	assert_int_equal(open_journal(r, 0, 0), 0);
	for (unsigned i = 1; i <= 4; i++)
		append_many(r, i, 1);
	close_journal(r);
	newest_segment(r, path);
	copy_file(path, data, &len);
	for (size_t cut = 0; cut < len; cut++) {
		uint64_t whole = cut < SEGMENT_HEAD ? 0 : (cut - SEGMENT_HEAD) / (ENTRY_HEAD + 7);

		write_file(path, data, cut);
		forget_mark(r);
		r->position = 0;
		assert_int_equal(open_journal(r, 0, 0), 0);
		assert_int_equal(journal_stats(r->journal).durable, whole);
		append_many(r, (unsigned)whole + 1, 1);
		expect_entries(r, 0, whole + 1);
		close_journal(r);
	}
}

static void test_tail_of_zeros_or_rubbish(void **state)
{
	struct journal_rig *r = *state;
	static char data[65536];
	char path[160];
	size_t len;

	assert_int_equal(open_journal(r, 0, 0), 0);
	append_many(r, 1, 3);
	close_journal(r);
	newest_segment(r, path);
	copy_file(path, data, &len);
	for (int fill = 0; fill < 256; fill += 51) {
		memset(data + len, fill, 5000);
		write_file(path, data, len + 5000);
		assert_int_equal(open_journal(r, 0, 0), 0);
		expect_entries(r, 0, 3);
		assert_int_equal(journal_stats(r->journal).bytes, len);
		close_journal(r);
	}
}

static void mark_to(struct journal_rig *r, uint64_t position)
{
	int fd = mark_open(r->folder);

	assert_true(fd >= 0);
	mark_write(fd, position, 1);
	close(fd);
}

/* Reads all there is: the entries that are given, as a mask, and those that are told to be missing. */
static void read_mask(struct journal_rig *r, unsigned *ret_there, unsigned *ret_missing)
{
	struct journal_reader *reader = NULL;
	struct journal_entry e;
	struct errinfo err = {0};
	uint64_t position = 0;
	char text[32];

	*ret_there = *ret_missing = 0;
	assert_int_equal(journal_reader_new(r->journal, 0, &reader, &err), 0);
	while (journal_next(reader, 0, &e, &err) == 1) {
		assert_int_equal(e.first, position + 1);
		for (position = e.first; position <= e.position; position++)
			*(e.data ? ret_there : ret_missing) |= 1u << position;
		position = e.position;
		name_entry(text, (unsigned)position);
		if (e.data)
			assert_memory_equal(e.data, text, e.len);
	}
	assert_string_equal(err.text, "");
	journal_reader_free(reader);
}

/* Of entries that were acknowledged none goes without a word, and none with another: not the last one either. A
 * damaged head costs nothing. */
static void test_every_flipped_bit_is_found(void **state)
{
	struct journal_rig *r = *state;
	static char data[65536];
	unsigned there, missing;
	char path[160], newer[160];
	size_t len;

	assert_int_equal(open_journal(r, 0, 0), 0);
	for (unsigned i = 1; i <= 4; i++)
		append_many(r, i, 1);
	close_journal(r);
	newest_segment(r, path);
	copy_file(path, data, &len);
	for (size_t at = 0; at < len; at++) {
		unsigned hit = at < SEGMENT_HEAD ? 0 : 2u << (at - SEGMENT_HEAD) / (ENTRY_HEAD + 7);

		data[at] ^= (char)(1 << at % 8);
		write_file(path, data, len);
		data[at] ^= (char)(1 << at % 8);
		assert_int_equal(open_journal(r, 0, 0), 0);
		read_mask(r, &there, &missing);
		assert_int_equal(missing, hit);
		assert_int_equal(there, 0x1e & ~hit);
		r->position = 0;
		append_many(r, 5, 1); /* and it goes on behind them */
		assert_int_equal(r->position, 5);
		read_mask(r, &there, &missing);
		assert_int_equal(there | missing, 0x3e);
		close_journal(r);
		snprintf(newer, sizeof(newer), "%s/%020d.journal", r->folder, 5);
		unlink(newer);
		mark_to(r, 4);
	}
}

/* Without the mark the last group cannot be told from a write that was cut short. */
static void test_last_group_without_a_mark(void **state)
{
	struct journal_rig *r = *state;
	static char data[65536];
	char path[160];
	size_t len;

	assert_int_equal(open_journal(r, 0, 0), 0);
	for (unsigned i = 1; i <= 4; i++)
		append_many(r, i, 1);
	close_journal(r);
	newest_segment(r, path);
	copy_file(path, data, &len);
	data[len - 1] ^= 1;
	write_file(path, data, len);
	forget_mark(r);
	assert_int_equal(open_journal(r, 0, 0), 0);
	expect_entries(r, 0, 3);
}

static void count_line(void *arg, const char *sentence)
{
	int *n = arg;

	n[strstr(sentence, "missing:") ? 1 : 0]++;
}

/* A folder that somebody deleted, or a file of it, is told as what it held. */
static void test_deleted_files_are_told(void **state)
{
	struct journal_rig *r = *state;
	unsigned there, missing;
	struct errinfo err = {0};
	char path[160];
	int told[2] = {0};

	assert_int_equal(open_journal(r, 0, 0), 0);
	append_many(r, 1, 3);
	close_journal(r);
	assert_int_equal(journal_verify(r->folder, 0, count_line, told, &err), 0);
	newest_segment(r, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(journal_verify(r->folder, 1, count_line, told, &err), 1);
	assert_int_equal(told[1], 1);
	scratch_files(r->folder, true);
	rmdir(r->folder);
	assert_int_equal(journal_verify(r->folder, 3, count_line, told, &err), 0); /* sealed */
	assert_int_equal(open_journal(r, 0, 0), 0);
	read_mask(r, &there, &missing);
	assert_int_equal(missing, 0xe);
	assert_int_equal(there, 0);
	r->position = 0;
	append_many(r, 4, 1);
	assert_int_equal(r->position, 4); /* no position is given twice */
}

/* What a sender puts into its data is not taken for an entry of the journal. */
static void test_an_entry_in_an_entry(void **state)
{
	struct journal_rig *r = *state;
	static char data[65536];
	unsigned there, missing;
	struct {
		struct entry_head head;
		char text[7];
	} forged = {.text = "entry 2"};
	char path[160];
	size_t len;

	entry_seal(&forged.head, 0, 2, 2, 1, sizeof(forged.text));
	assert_int_equal(open_journal(r, 0, 0), 0);
	append_many(r, 1, 1);
	append(r, &forged, sizeof(forged.head) + sizeof(forged.text));
	loop_run(r->loop);
	append_many(r, 3, 1);
	close_journal(r);
	newest_segment(r, path);
	copy_file(path, data, &len);
	data[SEGMENT_HEAD + ENTRY_HEAD + 7] ^= 1; /* entry 2's head */
	write_file(path, data, len);
	assert_int_equal(open_journal(r, 0, 0), 0);
	read_mask(r, &there, &missing);
	assert_int_equal(there, 0xa);
	assert_int_equal(missing, 4);
}

/* A power cut may leave the end of a group without its begin. */
static void test_hole_in_the_last_group(void **state)
{
	struct journal_rig *r = *state;
	static char data[65536];
	char path[160];
	size_t len, entry = ENTRY_HEAD + 7;
	uint32_t salt;

	assert_int_equal(open_journal(r, 0, 0), 0);
	append_many(r, 1, 1);
	salt = r->journal->salt;
	assert_true(salt);
	close_journal(r);
	newest_segment(r, path);
	copy_file(path, data, &len);
	assert_int_equal(len, SEGMENT_HEAD + entry);
	for (unsigned i = 2; i <= 4; i++) { /* one group, as the thread would have sealed it */
		struct {
			struct entry_head head;
			char text[32];
		} e;

		name_entry(e.text, i);
		entry_seal(&e.head, salt, i, 2, 1, 7);
		memcpy(data + len, &e, entry);
		len += entry;
	}
	write_file(path, data, len);
	assert_int_equal(open_journal(r, 0, 0), 0);
	expect_entries(r, 0, 4);
	close_journal(r);
	memset(data + SEGMENT_HEAD + entry, 0, entry); /* entry 2 */
	write_file(path, data, len);
	assert_int_equal(open_journal(r, 0, 0), 0);
	expect_entries(r, 0, 1);
}

static void test_damage_in_an_older_segment(void **state)
{
	struct journal_rig *r = *state;
	struct journal_reader *reader = NULL;
	static char data[65536];
	struct journal_entry e;
	struct errinfo err = {0};
	char path[160];
	size_t len, entries = 0, missing = 0;

	assert_int_equal(open_journal(r, SMALL, 0), 0);
	for (unsigned i = 1; i <= 300; i++)
		append_many(r, i, 1);
	assert_true(journal_stats(r->journal).segments > 2);
	close_journal(r);
	snprintf(path, sizeof(path), "%s/%020d.journal", r->folder, 1);
	copy_file(path, data, &len);
	data[len / 2] ^= 4;
	write_file(path, data, len);
	assert_int_equal(open_journal(r, SMALL, 0), 0);
	assert_int_equal(journal_reader_new(r->journal, 0, &reader, &err), 0);
	while (journal_next(reader, 0, &e, &err) == 1)
		*(e.data ? &entries : &missing) += e.position - e.first + 1;
	assert_int_equal(missing, 1);
	assert_int_equal(entries, 299);
	journal_preserve(r->journal, 20);
	journal_trim(r->journal, 200);
	assert_int_equal(access(path, F_OK), -1);
	snprintf(path, sizeof(path), "%s/%020d.journal.damaged", r->folder, 1);
	assert_int_equal(access(path, F_OK), 0);
	journal_reader_free(reader);
}

/* ---- faults ---- */

/* Appends until one fails, then goes on: those that were acknowledged are there, and no other. */
static void try_fault(struct journal_rig *r, atomic_int *which, int n, bool cut_short)
{
	unsigned well = 0;
	char text[32];

	r->well = r->failed = 0;
	r->position = 0;
	assert_int_equal(open_journal(r, 256, 0), 0);
	*which = n;
	faults.cut_short = cut_short;
	for (unsigned i = 0; i < 20; i++) {
		name_entry(text, well + 1);
		if (append_and_wait(r, text) == 0)
			well++;
		else
			assert_int_equal(r->err, -EIO);
	}
	assert_int_equal(r->failed, 1);
	assert_int_equal(journal_stats(r->journal).fault, 0);
	assert_int_equal(journal_stats(r->journal).failed, 1);
	expect_entries(r, 0, well);
	close_journal(r);
	assert_int_equal(open_journal(r, 256, 0), 0);
	expect_entries(r, 0, well);
	close_journal(r);
	scratch_files(r->folder, true);
	forget_mark(r);
}

static void test_write_and_sync_faults(void **state)
{
	struct journal_rig *r = *state;

	for (int n = 1; n <= 16; n++) {
		try_fault(r, &faults.write_in, n, false);
		try_fault(r, &faults.write_in, n, true);
		try_fault(r, &faults.sync_in, n, false);
	}
}

/* The failed bytes cannot even be cut off: the next segment says where the old one ends. */
static void test_fault_that_cannot_be_cut_off(void **state)
{
	struct journal_rig *r = *state;

	assert_int_equal(open_journal(r, 0, 0), 0);
	append_many(r, 1, 2);
	faults.sync_in = 1;
	faults.truncate_in = 1;
	assert_int_equal(append_and_wait(r, "never kept"), -EIO);
	faults.sync_in = 0;
	assert_int_equal(append_and_wait(r, "entry 3"), 0);
	assert_int_equal(r->position, 3);
	expect_entries(r, 0, 3);
	close_journal(r);
	assert_int_equal(open_journal(r, 0, 0), 0);
	expect_entries(r, 0, 3);
}

static void test_full_disk_and_back(void **state)
{
	struct journal_rig *r = *state;

	assert_int_equal(open_journal(r, 0, 0), 0);
	append_many(r, 1, 2);
	faults.err = ENOSPC;
	faults.for_good = true;
	faults.write_in = 1;
	for (int i = 0; i < 5; i++)
		assert_int_equal(append_and_wait(r, "no room"), -ENOSPC);
	assert_int_equal(journal_stats(r->journal).fault, -ENOSPC);
	faults.write_in = 0;
	r->failed = 0;
	append_many(r, 3, 2);
	assert_int_equal(journal_stats(r->journal).fault, 0);
	expect_entries(r, 0, 4);
}

/* What is written to a file that somebody has removed is not acknowledged; in a folder that is still there it goes on. */
static void test_removed_while_it_is_written(void **state)
{
	struct journal_rig *r = *state;
	char path[160];

	assert_int_equal(open_journal(r, 0, 0), 0);
	append_many(r, 1, 2); /* control */
	newest_segment(r, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(append_and_wait(r, "nowhere"), -ENOENT);
	assert_int_equal(journal_stats(r->journal).fault, -ENOENT);
	r->failed = 0;
	assert_int_equal(append_and_wait(r, "entry 3"), 0);
	assert_int_equal(r->position, 3);
	scratch_files(r->folder, true);
	assert_int_equal(rmdir(r->folder), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(append_and_wait(r, "nowhere"), -ENOENT);
	close_journal(r);
}

/* Nothing is acknowledged into a folder that the next start would not look into, also if there is another one in its
 * place; when it has come back it goes on by itself. */
static void test_moved_while_it_is_written(void **state)
{
	struct journal_rig *r = *state;
	uint64_t until = mono_now().ns + 20 * NS_PER_S;
	char away[160];

	assert_int_equal(open_journal(r, 0, 0), 0);
	append_many(r, 1, 2); /* control */
	snprintf(away, sizeof(away), "%s-away", r->folder);
	assert_int_equal(rename(r->folder, away), 0);
	assert_int_equal(append_and_wait(r, "away"), -ENOENT);
	assert_int_equal(mkdir(r->folder, 0700), 0);
	assert_int_equal(append_and_wait(r, "away"), -ENOENT);
	assert_int_equal(journal_stats(r->journal).fault, -ENOENT);
	assert_int_equal(rmdir(r->folder), 0);
	assert_int_equal(rename(away, r->folder), 0);
	while (journal_stats(r->journal).fault && mono_now().ns < until)
		nanosleep(&(struct timespec){.tv_nsec = (long)(10 * NS_PER_MS)}, NULL);
	r->failed = 0;
	append_many(r, 3, 2);
	expect_entries(r, 0, 4);
}

/* Nobody appends while it is not ready: it finds by itself that there is room again, and, at a start, that there
 * is none. */
static void test_a_full_disk_is_probed(void **state)
{
	struct journal_rig *r = *state;
	uint64_t until = mono_now().ns + 20 * NS_PER_S;

	faults.err = ENOSPC;
	faults.for_good = true;
	faults.write_in = 1;
	assert_int_equal(open_journal(r, 0, 0), 0);
	assert_int_equal(journal_stats(r->journal).fault, -ENOSPC);
	faults.write_in = 0;
	while (journal_stats(r->journal).fault && mono_now().ns < until)
		nanosleep(&(struct timespec){.tv_nsec = (long)(10 * NS_PER_MS)}, NULL);
	assert_int_equal(journal_stats(r->journal).fault, 0);
	append_many(r, 1, 2);
	expect_entries(r, 0, 2);
}

/* ---- ceilings, trimming, readers ---- */

static void test_ceilings(void **state)
{
	struct journal_rig *r = *state;
	const struct journal_settings s = {.folder = r->folder, .bytes_max = 1000};
	struct errinfo e = {0};
	char text[500] = {0};

	assert_int_equal(journal_open(r->loop, &s, &r->journal, &e), 0);
	assert_int_equal(
		journal_append(r->journal, text, JOURNAL_ENTRY_MAX + 1u, on_result, r), -E2BIG);
	append(r, text, sizeof(text));
	assert_int_equal(journal_append(r->journal, text, sizeof(text), on_result, r), -ENOSPC);
	loop_run(r->loop);
	assert_int_equal(r->err, 0);
	r->waiting++;
	assert_int_equal(journal_append_beyond(r->journal, text, sizeof(text), on_result, r), 0);
	loop_run(r->loop);
	assert_int_equal(r->err, 0);
	assert_true(journal_stats(r->journal).segments >
		    1); /* though a segment's own size is far off */
	journal_trim(r->journal, 1);
	assert_int_equal(journal_stats(r->journal).first, 2);
}

static void test_trim(void **state)
{
	struct journal_rig *r = *state;
	struct journal_reader *reader = NULL;
	struct errinfo err = {0};
	struct journal_stats before, s;
	struct journal_entry e;

	assert_int_equal(open_journal(r, SMALL, 0), 0);
	for (unsigned i = 1; i <= 500; i++)
		append_many(r, i, 1);
	before = journal_stats(r->journal);
	journal_trim(r->journal, 250);
	s = journal_stats(r->journal);
	assert_true(s.first > 1 && s.first <= 251);
	assert_true(s.bytes < before.bytes && s.segments < before.segments);
	expect_entries(r, 250, 500);
	assert_int_equal(journal_reader_new(r->journal, 0, &reader, &err), 0);
	assert_int_equal(journal_next(reader, 0, &e, &err), 1);
	assert_null(e.data);
	assert_int_equal(e.position, s.first - 1);
	journal_reader_free(reader);
	journal_trim(r->journal, 500);
	assert_int_equal(journal_stats(r->journal).segments, 1); /* the newest stays */
	close_journal(r);
	assert_int_equal(open_journal(r, SMALL, 0), 0);
	append_many(r, 501, 1);
	assert_int_equal(r->position, 501);
}

static void *wake_soon(void *arg)
{
	journal_wake(arg);
	return NULL;
}

static void test_reader_waits(void **state)
{
	struct journal_rig *r = *state;
	struct journal_reader *reader = NULL;
	struct journal_entry e;
	struct errinfo err = {0};
	pthread_t t;

	assert_int_equal(open_journal(r, SMALL, 0), 0);
	assert_int_equal(journal_reader_new(r->journal, 0, &reader, &err), 0);
	assert_int_equal(journal_next(reader, 1, &e, &err), 0);
	append_many(r, 1, 1);
	assert_int_equal(journal_next(reader, 0, &e, &err), 1);
	pthread_create(&t, NULL, wake_soon, r->journal);
	assert_int_equal(journal_next(reader, 3600 * NS_PER_S, &e, &err), 0);
	pthread_join(t, NULL);
	journal_reader_free(reader);
}

/* Readers on threads of their own see every entry while it is written. */
static void *read_all(void *arg)
{
	struct journal_reader *reader = NULL;
	struct journal_entry e;
	struct errinfo err = {0};
	uint64_t position = 0;

	if (journal_reader_new(arg, 0, &reader, &err) < 0)
		return NULL;
	while (position < 5000 && journal_next(reader, 20 * NS_PER_S, &e, &err) == 1 &&
		e.position == position + 1)
		position++;
	journal_reader_free(reader);
	return (void *)(uintptr_t)position;
}

static void test_readers_beside_the_writer(void **state)
{
	struct journal_rig *r = *state;
	pthread_t t[3];
	void *seen;

	assert_int_equal(open_journal(r, SMALL, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		pthread_create(&t[i], NULL, read_all, r->journal);
	for (unsigned i = 0; i < 50; i++)
		append_many(r, 1 + i * 100, 100);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		pthread_join(t[i], &seen);
		assert_int_equal((uintptr_t)seen, 5000);
	}
}

static void on_finished(void *arg)
{
	struct journal_rig *r = arg;

	assert_int_equal(r->waiting, 0);
	r->position = 12345;
	loop_stop(r->loop);
}

static void on_any(void *arg, int err, uint64_t position)
{
	((struct journal_rig *)arg)->waiting--;
}

static void test_finish_and_free(void **state)
{
	struct journal_rig *r = *state;

	assert_int_equal(open_journal(r, SMALL, 0), 0);
	for (int i = 0; i < 100; i++) {
		r->waiting++;
		assert_int_equal(journal_append(r->journal, "x", 1, on_any, r), 0);
	}
	journal_finish(r->journal, on_finished, r);
	loop_run(r->loop);
	assert_int_equal(r->position, 12345);
	for (int i = 0; i < 100; i++) {
		r->waiting++;
		assert_int_equal(journal_append(r->journal, "x", 1, on_any, r), 0);
	}
	close_journal(r); /* each is told, one way or the other */
	assert_int_equal(r->waiting, 0);
}

#define JOURNAL_TEST(f) cmocka_unit_test_setup_teardown(f, journal_setup, journal_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		JOURNAL_TEST(test_order_and_restart),
		JOURNAL_TEST(test_second_process_is_told_who_has_it),
		JOURNAL_TEST(test_first_position),
		JOURNAL_TEST(test_tail_cut_at_every_byte),
		JOURNAL_TEST(test_tail_of_zeros_or_rubbish),
		JOURNAL_TEST(test_every_flipped_bit_is_found),
		JOURNAL_TEST(test_last_group_without_a_mark),
		JOURNAL_TEST(test_deleted_files_are_told),
		JOURNAL_TEST(test_an_entry_in_an_entry),
		JOURNAL_TEST(test_hole_in_the_last_group),
		JOURNAL_TEST(test_damage_in_an_older_segment),
		JOURNAL_TEST(test_write_and_sync_faults),
		JOURNAL_TEST(test_fault_that_cannot_be_cut_off),
		JOURNAL_TEST(test_full_disk_and_back),
		JOURNAL_TEST(test_removed_while_it_is_written),
		JOURNAL_TEST(test_moved_while_it_is_written),
		JOURNAL_TEST(test_a_full_disk_is_probed),
		JOURNAL_TEST(test_ceilings),
		JOURNAL_TEST(test_trim),
		JOURNAL_TEST(test_reader_waits),
		JOURNAL_TEST(test_readers_beside_the_writer),
		JOURNAL_TEST(test_finish_and_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
