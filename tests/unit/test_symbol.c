/* SPDX-License-Identifier: Apache-2.0 */
/* The symbol service with its child, which is this program again (see main), reading this program's
 * own file; and with children that do not do what they should. */
#include "made_table.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "agent/symbol/child.h"
#include "agent/symbol/exchange.h"
#include "base/clock.h"

#define PATIENCE_NS   (30 * NS_PER_S) /* a busy machine; reached only by a failure */
#define HOSTILE       "hostile-"
#define ANSWERS_MAX   64
#define PERFMAP_START 0x7f0000001000

uint64_t known_data = 0x1122334455667788;
uint64_t known_zero[4];
int known_function(int n);

__attribute__((noinline)) int known_function(int n)
{
	__asm__ volatile("");
	return n + 1;
}

/* ---- what the sink got ---- */

struct seen {
	int identities, unwinds, frame_answers, place_answers;
	struct symbol_identity identity;
	struct symbol_unwind unwind; /* without its arrays */
	uint32_t first_address, last_address;
	uint64_t tickets[ANSWERS_MAX]; /* of frames and places, in order */
	size_t ticket_count;
	int err; /* of the last frames or places */
	char function[NAMES_TEXT_MAX + 8];
	uint64_t from_start;
	unsigned frame_counts[SYMBOL_OFFSETS_MAX];
	size_t count;
	struct symbol_place places[SYMBOL_NAMES_MAX];
	struct symbol_service *asks_on; /* the sink asks for unwinding when it sees an identity */
};

static void see_identity(void *arg, uint32_t file, const struct symbol_identity *i)
{
	struct seen *s = arg;

	s->identities++;
	s->identity = *i;
	if (s->asks_on) {
		assert_int_equal(symbol_ask_unwind(s->asks_on, file), 0);
		symbol_poll(s->asks_on); /* has no effect from here */
	}
}

static void see_unwind(void *arg, uint32_t file, const struct symbol_unwind *u)
{
	struct seen *s = arg;

	s->unwinds++;
	s->unwind = *u;
	if (!u->count)
		return;
	s->first_address = u->address[0];
	s->last_address = u->address[u->count - 1];
	assert_true(u->rule[u->count - 1] < u->rule_count);
}

static void see_frames(void *arg, uint32_t file, uint64_t ticket, int err,
	const struct symbol_frames *f, size_t count)
{
	struct seen *s = arg;

	s->frame_answers++;
	s->err = err;
	s->count = count;
	if (s->ticket_count < ANSWERS_MAX)
		s->tickets[s->ticket_count++] = ticket;
	for (size_t i = 0; i < count; i++)
		s->frame_counts[i] = f[i].count;
	s->function[0] = 0;
	if (f[0].count) {
		const struct names_frame *outer = &f[0].frame[f[0].count - 1];

		snprintf(s->function, sizeof(s->function), "%s", outer->function);
		s->from_start = outer->from_start;
	}
}

static void see_places(void *arg, uint32_t file, uint64_t ticket, int err,
	const struct symbol_place *p, size_t count)
{
	struct seen *s = arg;

	s->place_answers++;
	s->err = err;
	s->count = count;
	if (s->ticket_count < ANSWERS_MAX)
		s->tickets[s->ticket_count++] = ticket;
	memcpy(s->places, p, count * sizeof(*p));
}

/* ---- a service ---- */

static struct seen seen;

static struct symbol_service *start_as(const char *name, uint64_t patience_ns)
{
	const struct symbol_sink sink = {see_identity, see_unwind, see_frames, see_places, &seen};
	const struct symbol_settings settings = {
		.child_name = name,
		.patience_ns = patience_ns,
		.longest_ns = 50 * NS_PER_MS,
		.files_max = 4,
		.questions_max = 32,
	};
	struct symbol_service *s = NULL;

	seen = (struct seen){0};
	assert_int_equal(symbol_start_with(&settings, &sink, &s), 0);
	return s;
}

static struct symbol_service *start(void)
{
	return start_as(SYMBOL_CHILD_NAME, PATIENCE_NS);
}

static struct symbol_health health_of(const struct symbol_service *s)
{
	struct symbol_health h;

	symbol_health(s, &h);
	return h;
}

/* Polls until no question waits. */
static void settle(struct symbol_service *s)
{
	uint64_t end = mono_now().ns + PATIENCE_NS;

	do {
		symbol_poll(s);
		if (!health_of(s).waiting)
			return;
		poll(NULL, 0, 1);
	} while (mono_now().ns < end);
	fail_msg("no answer: %s", health_of(s).last_end);
}

static int own_file(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static uint32_t open_own(struct symbol_service *s)
{
	uint32_t file = 0;

	assert_int_equal(symbol_open(s, own_file(), -1, &file), 0);
	assert_true(file > 0);
	return file;
}

/* Where @address lies in this program's file, and where the file begins in memory. */
static uint64_t own_offset(const void *address, uint64_t *ret_begin)
{
	uint64_t start, end, offset, inode, begin = 0, at = (uintptr_t)address;
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		assert_int_equal(
			sscanf(line, "%lx-%lx %*s %lx %*s %lu", &start, &end, &offset, &inode), 4);
		if (inode && !offset) /* the last one before the address is of the same file */
			begin = start;
		if (at < start || at >= end)
			continue;
		fclose(f);
		if (ret_begin)
			*ret_begin = begin;
		return at - start + offset;
	}
	fclose(f);
	fail_msg("the address is in no mapping");
	return 0;
}

static void ask_known(struct symbol_service *s, uint32_t file, uint64_t ticket)
{
	uint64_t offset = own_offset((const void *)known_function, NULL);
	bool is_return = false;

	assert_int_equal(symbol_ask_frames(s, file, ticket, &offset, &is_return, 1), 0);
}

/* ---- answers ---- */

static void test_identity(void **state)
{
	struct symbol_service *s = start();

	open_own(s);
	assert_int_equal(seen.identities, 0); /* never from inside symbol_open() */
	settle(s);
	assert_int_equal(seen.identities, 1);
	assert_int_equal(seen.identity.err, 0);
	assert_int_equal(seen.identity.build_id_len, 20);
	assert_true(seen.identity.has_load_base);
	assert_true(seen.identity.eh_frame_bytes > 100);
	assert_true(seen.identity.text_bytes > 1000);
	symbol_stop(s);
}

static void test_unwind_asked_from_the_sink(void **state)
{
	struct symbol_service *s = start();

	seen.asks_on = s;
	open_own(s);
	settle(s);
	assert_int_equal(seen.unwinds, 1);
	assert_int_equal(seen.unwind.err, 0);
	assert_true(seen.unwind.count > 100);
	assert_true(seen.unwind.rule_count > 1);
	assert_true(seen.first_address < seen.last_address);
	symbol_stop(s);
}

static void test_frames(void **state)
{
	struct symbol_service *s = start();
	uint64_t offset = own_offset((const void *)known_function, NULL);
	uint32_t file = open_own(s);
	const uint64_t offsets[] = {offset + 4, offset, 3};
	const bool is_return[] = {true, false, false};

	assert_int_equal(symbol_ask_frames(s, file, 42, offsets, is_return, 3), 0);
	assert_int_equal(seen.frame_answers, 0);
	settle(s);
	assert_int_equal(seen.frame_answers, 1);
	assert_int_equal(seen.err, 0);
	assert_int_equal(seen.tickets[0], 42);
	assert_int_equal(seen.count, 3);
	assert_string_equal(seen.function, "known_function");
	assert_int_equal(seen.frame_counts[1], 1);
	assert_int_equal(seen.frame_counts[2], 0); /* in the ELF header is no function */
	symbol_stop(s);
}

/* So many that the answer comes in several messages. */
static void test_many_frames(void **state)
{
	struct symbol_service *s = start();
	uint64_t offset = own_offset((const void *)known_function, NULL);
	uint64_t offsets[SYMBOL_OFFSETS_MAX];
	bool is_return[SYMBOL_OFFSETS_MAX] = {false};
	uint32_t file = open_own(s);

	for (size_t i = 0; i < SYMBOL_OFFSETS_MAX; i++)
		offsets[i] = offset;
	assert_int_equal(symbol_ask_frames(s, file, 1, offsets, is_return, SYMBOL_OFFSETS_MAX), 0);
	settle(s);
	assert_int_equal(seen.count, SYMBOL_OFFSETS_MAX);
	for (size_t i = 0; i < SYMBOL_OFFSETS_MAX; i++)
		assert_int_equal(seen.frame_counts[i], 1);
	symbol_stop(s);
}

static void test_places(void **state)
{
	const char *const names[] = {"known_data", "known_zero", "known_nowhere"};
	struct symbol_service *s = start();
	uint32_t file = open_own(s);
	uint64_t begin;

	own_offset(&known_data, &begin);
	assert_int_equal(symbol_ask_places(s, file, 9, names, 3), 0);
	settle(s);
	assert_int_equal(seen.err, 0);
	assert_int_equal(seen.count, 3);
	assert_true(seen.places[0].found);
	assert_int_equal(
		begin + seen.places[0].vaddr - seen.identity.load_base, (uintptr_t)&known_data);
	assert_int_equal(seen.places[0].size, sizeof(known_data));
	assert_true(seen.places[0].has_content);
	assert_memory_equal(seen.places[0].content, &known_data, sizeof(known_data));
	assert_true(seen.places[1].found);
	assert_false(seen.places[1].has_content); /* it has no bytes in the file */
	assert_int_equal(seen.places[1].size, sizeof(known_zero));
	assert_false(seen.places[2].found);
	symbol_stop(s);
}

static void test_a_perfmap(void **state)
{
	static const char text[] = "7f0000001000 40 py::train\n";
	const uint64_t addresses[] = {PERFMAP_START + 0x10, PERFMAP_START + 0x40};
	const bool is_return[] = {false, true};
	struct symbol_service *s = start();
	int fd = memfd_create("perf.map", MFD_CLOEXEC);
	uint32_t file;

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(symbol_open_perfmap(s, fd, &file), 0);
	assert_int_equal(symbol_ask_unwind(s, file), -EINVAL);
	assert_int_equal(symbol_ask_frames(s, file, 1, addresses, is_return, 2), 0);
	settle(s);
	assert_int_equal(seen.identities, 0);
	assert_string_equal(seen.function, "py::train");
	assert_int_equal(seen.from_start, 0x10);
	assert_int_equal(seen.frame_counts[1], 1); /* a call at the function's end */
	symbol_stop(s);
}

static void test_what_is_no_elf_file(void **state)
{
	struct symbol_service *s = start();
	int fd = memfd_create("text", MFD_CLOEXEC);
	uint32_t file;

	assert_int_equal(write(fd, "text", 4), 4);
	assert_int_equal(symbol_open(s, fd, -1, &file), 0);
	assert_int_equal(symbol_ask_unwind(s, file), 0);
	ask_known(s, file, 1);
	settle(s);
	assert_int_equal(seen.identity.err, -EBADMSG);
	assert_true(seen.identity.text[0]);
	assert_int_equal(seen.unwind.err, -EBADMSG);
	assert_int_equal(seen.err, -EBADMSG);
	assert_int_equal(health_of(s).deaths, 0);
	symbol_stop(s);
}

/* ---- ceilings and wrong questions ---- */

/* A descriptor that somebody closes behind the service's back cannot be sent: an answer, no wait.
 */
static void test_a_descriptor_that_is_none(void **state)
{
	struct symbol_service *s = start();
	int fd = own_file();
	uint32_t file;

	assert_int_equal(symbol_open(s, -1, -1, &file), -EBADF);
	assert_int_equal(symbol_open_perfmap(s, -1, &file), -EBADF);
	assert_int_equal(symbol_open(s, fd, -1, &file), 0);
	close(fd);
	settle(s);
	assert_int_equal(seen.identities, 1);
	assert_int_equal(seen.identity.err, -EBADF);
	assert_true(seen.identity.text[0]);
	assert_int_equal(health_of(s).deaths, 0);
	symbol_stop(s);
}

static void test_wrong_questions(void **state)
{
	struct symbol_service *s = start();
	uint64_t offsets[SYMBOL_OFFSETS_MAX + 1] = {0};
	bool is_return[SYMBOL_OFFSETS_MAX + 1] = {0};
	char longest[PROTOCOL_NAME_MAX + 1] = {0};
	const char *const names[] = {longest};
	uint32_t file = open_own(s);

	memset(longest, 'x', PROTOCOL_NAME_MAX);
	assert_int_equal(symbol_ask_frames(s, file, 0, offsets, is_return, 0), -EINVAL);
	assert_int_equal(
		symbol_ask_frames(s, file, 0, offsets, is_return, SYMBOL_OFFSETS_MAX + 1), -EINVAL);
	assert_int_equal(symbol_ask_places(s, file, 0, names, 1), -EINVAL);
	longest[PROTOCOL_NAME_MAX - 1] = 0;
	assert_int_equal(symbol_ask_places(s, file, 0, names, 1), 0);
	assert_int_equal(symbol_ask_unwind(s, file + 1), -ENOENT);
	settle(s);
	assert_false(seen.places[0].found);
	symbol_stop(s);
}

static void test_ceilings(void **state)
{
	struct symbol_service *s = start();
	_cleanup_fd_ int spare = own_file();
	uint32_t file = 0, other;
	int asked = 0;

	for (int i = 0; i < 4; i++)
		file = open_own(s);
	assert_int_equal(symbol_open(s, spare, -1, &other), -ENOSPC);
	assert_true(fcntl(spare, F_GETFD) >= 0); /* still the caller's */
	while (symbol_ask_unwind(s, file) == 0)
		asked++;
	assert_int_equal(asked, 32 - 4);
	assert_int_equal(symbol_ask_unwind(s, file), -ENOBUFS);
	symbol_close(s, file);
	settle(s);
	assert_int_equal(seen.identities, 4);
	assert_int_equal(seen.unwinds, asked);
	assert_int_equal(seen.unwind.err, -ECANCELED);
	open_own(s); /* there is room again */
	settle(s);
	assert_int_equal(seen.identities, 5);
	symbol_stop(s);
}

static void test_quick_questions_go_first(void **state)
{
	struct symbol_service *s = start();
	uint32_t file = open_own(s);
	uint64_t end = mono_now().ns + PATIENCE_NS;

	settle(s);
	for (int i = 0; i < 16; i++)
		assert_int_equal(symbol_ask_unwind(s, file), 0);
	ask_known(s, file, 1);
	while (!seen.frame_answers && mono_now().ns < end) {
		symbol_poll(s);
		poll(NULL, 0, 1);
	}
	assert_int_equal(seen.frame_answers, 1);
	assert_true(seen.unwinds <= 1);
	settle(s);
	assert_int_equal(seen.unwinds, 16);
	symbol_stop(s);
}

static void test_stop_with_questions(void **state)
{
	struct symbol_service *s = start();
	uint32_t file = open_own(s);

	ask_known(s, file, 1);
	assert_int_equal(symbol_ask_unwind(s, file), 0);
	symbol_poll(s);
	symbol_close(s, file);
	symbol_stop(s);
	assert_int_equal(seen.frame_answers, 0);
}

/* The ceiling of files needs descriptors, which the usual soft limit does not grant. */
static void test_the_limit_of_open_files_is_raised(void **state)
{
	const struct symbol_sink sink = {.arg = NULL};
	struct symbol_service *s;
	struct rlimit before, now;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){256, before.rlim_max}), 0);
	assert_int_equal(symbol_start(&sink, &s), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
	assert_int_equal(now.rlim_cur, before.rlim_max);
	symbol_stop(s);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

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
	assert_string_equal(health_of(s).last_end, "it was ended by signal 9");
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
	assert_string_equal(health_of(s).last_end, "it was ended by signal 7");
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
		assert_true(strstr(health_of(s).last_end, "it sent what is no message") ||
			    strstr(health_of(s).last_end, "it answered what was not asked"));
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
	assert_string_equal(health_of(s).last_end, "it ended with code 3");
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
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_unwind_asked_from_the_sink),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_many_frames),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_a_perfmap),
		cmocka_unit_test(test_what_is_no_elf_file),
		cmocka_unit_test(test_a_descriptor_that_is_none),
		cmocka_unit_test(test_wrong_questions),
		cmocka_unit_test(test_ceilings),
		cmocka_unit_test(test_quick_questions_go_first),
		cmocka_unit_test(test_stop_with_questions),
		cmocka_unit_test(test_the_limit_of_open_files_is_raised),
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
