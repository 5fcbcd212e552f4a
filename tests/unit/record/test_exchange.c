/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the symbol service's child, which is this program again (see main); and children that
 * do not do what they should. */
#include "made_table.h"
#include "service_fixture.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define HOSTILE "hostile-"

/* ---- the child's life ---- */

static uint64_t status_field(int pid, const char *name, int base)
{
	char path[64], line[256];
	uint64_t value = UINT64_MAX;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
			value = strtoull(line + strlen(name) + 1, NULL, base);
	fclose(f);
	return value;
}

static void test_the_child_is_confined(void **state)
{
	struct symbol_service *s = start();
	int pid;

	open_own(s);
	settle(s);
	pid = health_of(s).pid;
	assert_true(pid > 0);
	assert_int_equal(status_field(pid, "CapEff", 16), 0);
	assert_int_equal(status_field(pid, "CapPrm", 16), 0);
	assert_int_equal(status_field(pid, "CapBnd", 16),
		geteuid() == 0 ? 0 : status_field(getpid(), "CapBnd", 16));
	assert_int_equal(status_field(pid, "NoNewPrivs", 10), 1);
	assert_int_equal(
		status_field(getpid(), "NoNewPrivs", 10), 0); /* the field is the right one */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	printf("# no filter of system calls under sanitizers: it is not looked for\n");
#else
	assert_int_equal(status_field(pid, "Seccomp", 10), 2);
#endif
	if (geteuid() == 0) {
		assert_int_equal(status_field(pid, "Uid", 10), 65534);
		assert_int_equal(status_field(pid, "Gid", 10), 65534);
	} else {
		printf("# not root: that the child becomes nobody is not looked at\n");
	}
	symbol_stop(s);
}

static void test_a_killed_child_is_replaced(void **state)
{
	struct symbol_service *s = start();
	uint32_t file = open_own(s);
	uint64_t begin;
	int pid;

	settle(s);
	pid = health_of(s).pid;
	begin = mono_now().ns;
	assert_int_equal(kill(pid, SIGKILL), 0);
	ask_known(s, file, 5);
	settle(s);
	printf("# answered %llu ms after the child was killed\n",
		(unsigned long long)((mono_now().ns - begin) / NS_PER_MS));
	assert_int_equal(seen.frame_answers, 1);
	assert_int_equal(seen.err, 0);
	assert_string_equal(seen.function, "known_function");
	assert_int_equal(health_of(s).deaths, 1);
	assert_int_not_equal(health_of(s).pid, pid);
	assert_string_equal(health_of(s).last_end, "it was killed by signal 9");
	assert_int_equal(health_of(s).given_up, 0);
	symbol_stop(s);
}

/* A file that is cut while it is mapped: reading it is a SIGBUS, which is the child's alone. */
static void test_a_file_cut_under_the_child(void **state)
{
	const char *const names[] = {"known_data"};
	struct symbol_service *s = start();
	_cleanup_fd_ int own = own_file();
	int copy = memfd_create("copy", MFD_CLOEXEC);
	_cleanup_fd_ int also = fcntl(copy, F_DUPFD_CLOEXEC, 0);
	struct stat st;
	uint32_t file;

	assert_int_equal(fstat(own, &st), 0);
	while (lseek(copy, 0, SEEK_CUR) < st.st_size) {
		static char part[1 << 16];
		ssize_t n = read(own, part, sizeof(part));

		assert_true(n > 0);
		assert_int_equal(write(copy, part, (size_t)n), n);
	}
	assert_int_equal(symbol_open(s, copy, -1, &file), 0);
	assert_int_equal(symbol_ask_places(s, file, 1, names, 1), 0);
	settle(s);
	assert_true(seen.places[0].has_content);
	assert_int_equal(ftruncate(also, 0), 0);
	assert_int_equal(symbol_ask_places(s, file, 2, names, 1), 0);
	settle(s);
	assert_int_equal(health_of(s).deaths, 1);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they make an exit of it */
	assert_string_equal(health_of(s).last_end, "it was killed by signal 7");
#endif
	assert_int_equal(seen.place_answers, 2);
	assert_int_equal(seen.err, -EBADMSG); /* the next child finds no ELF file */
	symbol_stop(s);
}

static void test_back_off(void **state)
{
	static const uint64_t ms[] = {0, 50, 100, 200, 400, 800, 1000, 1000};

	for (unsigned i = 0; i < ARRAY_SIZE(ms); i++)
		assert_int_equal(reader_backoff_ns(i, READER_LONGEST_NS), ms[i] * NS_PER_MS);
	assert_int_equal(reader_backoff_ns(UINT32_MAX, READER_LONGEST_NS), NS_PER_S);
}

/* ---- children that do what they should not ---- */

enum { FORMS = 6 };
static const char *const forms[FORMS] = {
	"noise", "wrong-number", "early-answer", "many-files", "endless", "stray-file"};

static void hostile_send(const void *data, size_t size, const int *fds, size_t count)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(8 * sizeof(int))] = {0};
	struct iovec part = {(void *)data, size};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

	if (count) {
		struct cmsghdr *c = (struct cmsghdr *)room;

		m.msg_control = room;
		m.msg_controllen = CMSG_SPACE(count * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	if (sendmsg(SYMBOL_CHILD_FD, &m, MSG_NOSIGNAL) < 0)
		_exit(0);
}

struct hostile_answer {
	struct protocol_header header;
	struct protocol_status status;
	uint8_t more[32 << 10];
};

static void hostile_answer(const char *form, struct hostile_answer *a)
{
	int fds[4] = {0, 1, 2, 3};
	size_t size = sizeof(a->header) + sizeof(a->status);

	a->header.last = 1;
	if (!strncmp(form, "table-", 6)) {
		fds[0] = table_make((enum table_fault)atoi(form + 6));
		hostile_send(a, size, fds, a->header.kind == PROTOCOL_UNWIND);
	} else if (!strcmp(form, "noise")) {
		memset(a, 0xa5, size);
		hostile_send(a, size, NULL, 0);
	} else if (!strcmp(form, "wrong-number")) {
		a->header.number++;
		hostile_send(a, size, NULL, 0);
	} else if (!strcmp(form, "many-files")) {
		hostile_send(a, size, fds, 4);
	} else if (!strcmp(form, "stray-file")) {
		a->header.last = 0;
		hostile_send(a, size, fds, 1);
	} else if (!strcmp(form, "endless")) {
		a->header.last = 0;
		for (;;)
			hostile_send(a, sizeof(*a), NULL, 0);
	}
}

/* @form: what it does wrong. */
static int hostile_main(const char *form)
{
	static struct hostile_answer a;
	struct {
		struct protocol_header header;
		uint8_t body[PROTOCOL_QUESTION_MAX];
	} q;

	if (!strcmp(form, "stillborn"))
		_exit(3); /* without the leak check of a sanitizer, which takes seconds */
	if (!strcmp(form, "unready"))
		pause();
	a.header = (struct protocol_header){.magic = PROTOCOL_MAGIC, .kind = PROTOCOL_READY};
	hostile_send(&a, sizeof(a.header) + sizeof(a.status), NULL, 0);
	if (!strcmp(form, "early-answer")) {
		a.header.kind = PROTOCOL_IDENTITY;
		hostile_send(&a, sizeof(a.header) + sizeof(a.status), NULL, 0);
	}
	while (recv(SYMBOL_CHILD_FD, &q, sizeof(q), 0) > 0) {
		a = (struct hostile_answer){.header = q.header};
		hostile_answer(form, &a);
	}
	return 0;
}

/* A perfmap has no identity to be asked for, so the one question is the one that is meant. */
static void ask_hostile(struct symbol_service *s)
{
	static const uint64_t offset = 1;
	static const bool is_return = false;
	uint32_t file;

	assert_int_equal(symbol_open_perfmap(s, own_file(), &file), 0);
	assert_int_equal(symbol_ask_frames(s, file, 1, &offset, &is_return, 1), 0);
	settle(s);
}

static void test_what_is_no_answer(void **state)
{
	for (size_t i = 0; i < FORMS; i++) {
		char name[64];
		struct symbol_service *s;

		snprintf(name, sizeof(name), HOSTILE "%s", forms[i]);
		s = start_as(name, PATIENCE_NS);
		ask_hostile(s);
		assert_int_equal(seen.frame_answers, 1);
		assert_int_equal(seen.count, 1);
		assert_int_equal(seen.frame_counts[0], 0);
		if (!strcmp(forms[i], "early-answer")) {
			/* The question may have been sent or not when the child is found out. */
			assert_true(seen.err == -EIO || seen.err == -ECHILD);
			assert_true(health_of(s).deaths >= 2);
		} else {
			assert_int_equal(seen.err, -EIO);
			assert_int_equal(health_of(s).deaths, 2);
			assert_int_equal(health_of(s).given_up, 1);
		}
		assert_true(strstr(health_of(s).last_end, "it sent an invalid message") ||
			    strstr(health_of(s).last_end, "unexpected answer"));
		symbol_stop(s);
	}
}

static void test_wrong_tables(void **state)
{
	static const enum table_fault faults[] = {
		TABLE_RIGHT, TABLE_UNSEALED, TABLE_HUGE_COUNT, TABLE_DESCENDING, TABLE_BAD_RULE};

	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		struct symbol_service *s;
		uint32_t file;
		char name[64];

		snprintf(name, sizeof(name), HOSTILE "table-%d", faults[i]);
		s = start_as(name, PATIENCE_NS);
		assert_int_equal(symbol_open_perfmap(s, own_file(), &file), 0);
		((struct question_file *)idmap_get(&s->files, file))->source = PROTOCOL_ELF;
		assert_int_equal(symbol_ask_unwind(s, file), 0);
		settle(s);
		assert_int_equal(seen.unwinds, 1);
		if (faults[i] == TABLE_RIGHT) { /* the control */
			assert_int_equal(seen.unwind.err, 0);
			assert_int_equal(seen.unwind.count, TABLE_ROWS);
			assert_int_equal(health_of(s).deaths, 0);
		} else {
			assert_int_equal(seen.unwind.err, -EIO);
			assert_int_equal(seen.unwind.count, 0);
			assert_non_null(strstr(health_of(s).last_end, "table"));
			assert_int_equal(health_of(s).given_up, 1);
		}
		symbol_stop(s);
	}
}

static void test_a_child_that_hangs(void **state)
{
	struct symbol_service *s = start_as(HOSTILE "hang", 100 * NS_PER_MS);

	ask_hostile(s);
	assert_int_equal(seen.frame_answers, 1);
	assert_int_equal(seen.err, -EIO);
	assert_int_equal(health_of(s).deaths, 2);
	assert_string_equal(health_of(s).last_end, "it did not answer within 100 ms");
	symbol_stop(s);
}

/* A file that was given up is not asked about again; another one is. */
static void test_a_file_given_up(void **state)
{
	struct symbol_service *s = start_as(HOSTILE "noise", PATIENCE_NS);
	uint32_t file, other;
	uint64_t offset = 1;
	bool is_return = false;

	assert_int_equal(symbol_open_perfmap(s, own_file(), &file), 0);
	assert_int_equal(symbol_open_perfmap(s, own_file(), &other), 0);
	for (uint64_t i = 1; i <= 3; i++)
		assert_int_equal(symbol_ask_frames(s, file, i, &offset, &is_return, 1), 0);
	settle(s);
	assert_int_equal(seen.frame_answers, 3); /* two deaths, and no more for the others */
	assert_int_equal(health_of(s).deaths, 2);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(seen.tickets[i], i + 1);
	assert_int_equal(symbol_ask_frames(s, other, 4, &offset, &is_return, 1), 0);
	settle(s);
	assert_int_equal(health_of(s).deaths, 4);
	assert_int_equal(health_of(s).given_up, 2);
	symbol_close(s, file);
	symbol_poll(s);
	assert_int_equal(health_of(s).given_up, 1);
	symbol_stop(s);
}

/* No child that can be asked: no file is to blame, and questions are not kept for ever. */
static void test_children_that_do_not_begin(void **state)
{
	struct symbol_service *s = start_as(HOSTILE "stillborn", PATIENCE_NS);

	ask_hostile(s);
	assert_int_equal(seen.frame_answers, 1);
	assert_int_equal(seen.err, -ECHILD);
	assert_int_equal(health_of(s).deaths, READER_UNASKED_MAX);
	assert_int_equal(health_of(s).given_up, 0);
	assert_string_equal(health_of(s).last_end, "it exited with code 3");
	symbol_stop(s);
	s = start_as(HOSTILE "unready", 20 * NS_PER_MS);
	ask_hostile(s);
	assert_int_equal(seen.err, -ECHILD);
	assert_string_equal(health_of(s).last_end, "it did not answer within 20 ms");
	symbol_stop(s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_child_is_confined),
		cmocka_unit_test(test_a_killed_child_is_replaced),
		cmocka_unit_test(test_a_file_cut_under_the_child),
		cmocka_unit_test(test_back_off),
		cmocka_unit_test(test_what_is_no_answer),
		cmocka_unit_test(test_wrong_tables),
		cmocka_unit_test(test_a_child_that_hangs),
		cmocka_unit_test(test_a_file_given_up),
		cmocka_unit_test(test_children_that_do_not_begin),
	};

	if (symbol_child_is_meant(argc, argv))
		return symbol_child_main(argc, argv);
	if (argc > 0 && !strncmp(argv[0], HOSTILE, strlen(HOSTILE)))
		return hostile_main(argv[0] + strlen(HOSTILE));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
