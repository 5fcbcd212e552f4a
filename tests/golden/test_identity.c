/* SPDX-License-Identifier: Apache-2.0 */
/* test_identity.c - what must hold of the answer to every recording there is: the published ones, those of real GPUs and
 * the corpus. See ../unit/identity.h. */
#include "published.h"

#include <unistd.h>

#include "../corpus/corpus.h"
#include "../unit/identity.h"
#include "answer/explain.h"
#include "diagnose/compose/diagnose.h"

static void check(const struct recording *rec)
{
	_cleanup_free_ struct incident *list = NULL, *again = NULL;
	size_t n = 0, m = 0;

	assert_int_equal(diagnose_run(rec, &list, &n), 0);
	identity_check(rec, list, n);
	assert_int_equal(diagnose_run(rec, &again, &m), 0);
	assert_int_equal(n, m);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(list[i].id, again[i].id);
}

static void check_file(const char *path)
{
	struct nodedb_content c = {0};
	struct errinfo err = {0};
	struct recording rec;

	print_message("# %s\n", path);
	assert_int_equal(nodedb_read(path, NULL, &c, &err), 0);
	rec = explain_recording(&c);
	check(&rec);
	nodedb_content_done(&c);
}

/* xz -dc @path into @out; false: it cannot be run, or fails. */
static bool unpack(const char *path, int out)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		dup2(out, STDOUT_FILENO);
		execlp("xz", "xz", "-dc", path, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool has_end(const char *name, const char *end)
{
	size_t n = strlen(name), k = strlen(end);

	return n > k && !strcmp(name + n - k, end);
}

typedef void use(struct scratch *s, const char *path);

/* Calls @f with every file of @folder that ends with @end; how many that were. */
static int each_file(struct scratch *s, const char *folder, const char *end, use *f)
{
	struct dirent **names = NULL;
	int n = scandir(folder, &names, NULL, alphasort), used = 0;

	for (int i = 0; i < n; i++) {
		char path[1024];

		snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
		if (has_end(names[i]->d_name, end)) {
			f(s, path);
			used++;
		}
		free(names[i]);
	}
	free(names);
	return used;
}

static void use_database(struct scratch *s, const char *path)
{
	char *data;
	size_t len;

	data = scratch_bytes(path, &len);
	scratch_write(s->path, data, len);
	free(data);
	check_file(s->path);
}

static void use_packed(struct scratch *s, const char *path)
{
	int fd = open(s->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	print_message("# %s\n", path);
	assert_true(unpack(path, fd));
	close(fd);
	check_file(s->path);
}

static void use_corpus(struct scratch *s, const char *path)
{
	_cleanup_(corpus_done) struct corpus c = {0};
	int fd = open(s->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	FILE *in;

	assert_true(fd >= 0);
	assert_true(unpack(path, fd));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	in = fdopen(fd, "r");
	assert_non_null(in);
	assert_int_equal(corpus_read(in, &c), 1);
	assert_int_equal(corpus_open(&c), 0);
	check(&c.rec);
	fclose(in);
}

static bool can_unpack(void)
{
	if (access("/usr/bin/xz", X_OK) == 0)
		return true;
	print_message("# skip: there is no xz to unpack the recordings\n");
	return false;
}

static void the_published(void **state)
{
	char folder[512];

	if (!published_path(folder, sizeof(folder), ""))
		skip();
	assert_true(each_file(*state, folder, ".db", use_database) >= 6);
}

static void those_of_real_gpus(void **state)
{
	char folder[512];

	if (!published_path(folder, sizeof(folder), "h200") || !can_unpack())
		skip();
	assert_true(each_file(*state, folder, ".db.xz", use_packed) >= 8);
}

static void the_corpus(void **state)
{
	const char *root = getenv("INGERO_SOURCE_ROOT");
	char folder[512];

	if (!can_unpack())
		skip();
	snprintf(folder, sizeof(folder), "%s/tests/corpus", root ? root : ".");
	assert_true(each_file(*state, folder, ".xz", use_corpus) >= 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_published),
		TEST(those_of_real_gpus),
		TEST(the_corpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
