/* SPDX-License-Identifier: Apache-2.0 */
/* One flipped bit at a time, at random places of a small store's parts, manifests and journal: what it changes in
 * an answer is told with the answer, and found by verify before. FLIPS and SEED in the environment: more of them,
 * or the same again. */
#include "store_duck_fixture.h"

#include <fcntl.h>
#include <unistd.h>

#include "cluster/journal/journal_private.h"
#include "duck/duck_worker.h"

#define SEALED    40 /* entries, 122 rows, in two parts */
#define FILES_MAX 32

static const char *const questions[] = {
	"SELECT count(*) FROM {events}",
	"SELECT sum(value_int + length(node_id) + length(kind)) FROM {events}",
	"SELECT count(id) FROM {causal_chains}",
	"SELECT sum(sum) FROM {node_metrics}",
};

struct answers {
	int64_t value[ARRAY_SIZE(questions)];
	uint64_t missing[ARRAY_SIZE(questions)]; /* rows, as it is told with each of them */
	uint64_t entries, lost;                  /* of the journal that the store does not have */
};

struct files {
	char paths[FILES_MAX][200];
	size_t count;
};
static struct files files;

static int add_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)at;
	if (type == FTW_F && st->st_size && !strstr(path, "/lock") && files.count < FILES_MAX)
		snprintf(files.paths[files.count++], sizeof(files.paths[0]), "%s", path);
	return 0;
}

static void copy_tree(const char *from, const char *to)
{
	char command[400];

	snprintf(command, sizeof(command), "rm -rf '%s' && cp -r '%s' '%s'", to, from, to);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): names of our own */
}

static void count_line(void *arg, const char *sentence)
{
	(void)sentence;
	++*(int *)arg;
}

/* What verify finds, of parts, manifest and journal; -1: it cannot even be looked at. */
static int verify_all(const char *folder)
{
	struct store_report report = {0};
	struct errinfo e = {0};
	char journal[128];
	int found = 0, r = store_duck_verify(folder, &report, &e);

	if (r < 0 && r != -EBADMSG)
		return -1;
	snprintf(journal, sizeof(journal), "%s/journal", folder);
	if (journal_verify(journal, SEALED, count_line, &found, &e) < 0)
		return -1;
	return found + (int)report.findings + (r < 0 && !report.findings);
}

static void read_journal(const char *folder, struct answers *ret)
{
	struct journal_reader *reader = NULL;
	struct journal *j = NULL;
	struct journal_entry e;
	char path[128];

	snprintf(path, sizeof(path), "%s/journal", folder);
	assert_int_equal(journal_open_to_read(path, &j, NULL), 0);
	assert_int_equal(journal_reader_new(j, SEALED, &reader, NULL), 0);
	while (journal_next(reader, 0, &e, NULL) == 1) {
		if (e.data) {
			char text[16];

			snprintf(text, sizeof(text), "%d", (int)e.position);
			assert_int_equal(e.len, strlen(text));
			assert_memory_equal(e.data, text, e.len);
		}
		*(e.data ? &ret->entries : &ret->lost) += e.position - e.first + 1;
	}
	journal_reader_free(reader);
	journal_free(j);
}

/* As whoever starts the store and asks; false: it does not start. */
static bool ask_all(struct scratch_store *s, struct answers *ret)
{
	struct errinfo e = {0};

	*ret = (struct answers){0};
	read_journal(s->folder, ret);
	if (store_duck_open(&s->settings, &s->store, &e) < 0) {
		print_message("# does not start: %s\n", e.text);
		return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(questions); i++) {
		struct store_missing m;

		ret->value[i] = ask_number(s->store, NULL, questions[i]);
		store_missing(s->store, NULL, &m);
		ret->missing[i] = m.rows;
	}
	store_end(s);
	return true;
}

static void ignore_result(void *arg, int err, uint64_t position)
{
	(void)arg, (void)err, (void)position;
}

static void append_entries(const char *folder)
{
	const struct journal_settings s = {.folder = folder};
	struct journal *j = NULL;
	struct loop *l = NULL;
	struct errinfo e = {0};
	char text[16];

	assert_int_equal(loop_new(&l), 0);
	assert_int_equal(journal_open(l, &s, &j, &e), 0);
	for (int i = 1; i <= SEALED + 10; i++) {
		uint64_t until = mono_now().ns + 20 * NS_PER_S;

		snprintf(text, sizeof(text), "%d", i);
		assert_int_equal(journal_append(j, text, strlen(text), ignore_result, NULL), 0);
		while (journal_stats(j).durable < (uint64_t)i && mono_now().ns < until)
			nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	}
	journal_free(j);
	loop_free(l);
}

static void flip(const char *path, unsigned *seed, char what[240])
{
	int fd = open(path, O_RDWR);
	struct stat st;
	off_t at;
	uint8_t byte;
	int bit = rand_r(seed) % 8;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	at = rand_r(seed) % st.st_size;
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= (uint8_t)(1 << bit);
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
	snprintf(what, 240, "%s byte %lld bit %d", path, (long long)at, bit);
}

/* An answer is the truth, or says what it lacks. */
static bool is_honest(const struct answers *got, const struct answers *truth)
{
	for (size_t i = 0; i < ARRAY_SIZE(questions); i++)
		if (got->value[i] != truth->value[i] && !got->missing[i])
			return false;
	/* Rows of the two parts, without and with what is missing. */
	if (got->missing[0] && (uint64_t)got->value[0] + got->missing[0] != 3 * SEALED &&
		(uint64_t)got->value[0] + got->missing[0] != 3 * SEALED + SEALED / 10)
		return false;
	return got->entries + got->lost == truth->entries;
}

static void test_every_flip_that_changes_an_answer_is_found(void **state)
{
	struct scratch_store *s = *state;
	const char *text = getenv("FLIPS");
	unsigned count = text ? (unsigned)atoi(text) : 60, seed, changed = 0, found = 0, told = 0;
	struct answers truth, got;
	char whole[96], path[128];

	text = getenv("SEED");
	seed = text ? (unsigned)atoi(text) : 20261117u;
	snprintf(whole, sizeof(whole), "%s/whole", s->root);
	s->settings.folder = whole;
	s->settings.threads = 1;
	store_begin(s);
	fill_up_to(s->store, SEALED);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	store_end(s);
	snprintf(path, sizeof(path), "%s/journal", whole);
	append_entries(path);
	s->settings.folder = s->folder;

	copy_tree(whole, s->folder);
	assert_int_equal(verify_all(s->folder), 0); /* the control */
	assert_true(ask_all(s, &truth));
	assert_int_equal(truth.value[0], 3 * SEALED);
	assert_int_equal(truth.entries, 10);
	assert_int_equal(truth.missing[3] + truth.lost, 0);
	for (unsigned i = 0; i < count; i++) {
		char what[240];
		bool started, differs;
		int verified;

		copy_tree(whole, s->folder);
		files.count = 0;
		nftw(s->folder, add_file, 16, FTW_PHYS);
		flip(files.paths[(unsigned)rand_r(&seed) % files.count], &seed, what);
		verified = verify_all(s->folder);
		started = ask_all(s, &got);
		differs = !started || memcmp(&got, &truth, sizeof(got)) != 0;
		changed += differs;
		found += differs && verified != 0;
		told += verified != 0;
		if (!started || (differs && verified == 0) || !is_honest(&got, &truth))
			fail_msg(
				"%s: verify tells %d, starts %d, events %d, missing %d, entries %d, lost %d",
				what, verified, started, (int)got.value[0], (int)got.missing[0],
				(int)got.entries, (int)got.lost);
	}
	print_message("# %u flips: verify tells of %u; %u change an answer, %u of them are found\n",
		count, told, changed, found);
	assert_int_equal(found, changed);
	assert_true(changed > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_every_flip_that_changes_an_answer_is_found,
			scratch_setup, scratch_teardown),
	};

	if (duck_worker_is_meant(argc, argv))
		duck_worker_main();
	if (!duck_fixture_has())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
