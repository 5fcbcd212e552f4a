/* SPDX-License-Identifier: Apache-2.0 */
/* test_neighbours.c - who kept a traced thread waiting gets a row, once, with its home and nothing
 * else of it; traced processes, kernel threads and short waits do not. */
#include "store_fixture.h"

#include <time.h>

#include "record/trace/neighbours.h"
#include "tree.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char root[TREE_MAX];
static struct neighbours *n;
static struct process_table *traced;

static int setup(void **state)
{
	tree_init(root);
	assert_int_equal(process_table_new(root, &traced), 0);
	assert_int_equal(neighbours_new(root, &n), 0);
	return scratch_setup(state);
}

static int teardown(void **state)
{
	neighbours_free(n);
	process_table_free(traced);
	tree_done(root);
	return scratch_teardown(state);
}

static void put(uint32_t pid, unsigned vsize)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	snprintf(text, sizeof(text), "%u (hog) S 1 1 1 0 -1 0 1 0 0 0 3 4 0 0 20 0 1 0 100 %u 42\n",
		pid, vsize);
	tree_write(root, path, text);
	snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
	tree_write(root, path, "0::/docker/" ID "\n");
}

static void see(struct store_writer *w, uint32_t peer, uint64_t wait_ns)
{
	struct event e = {.source = SOURCE_HOST,
		.op = HOST_SCHED_SWITCH,
		.pid = 1,
		.peer_pid = peer,
		.wait_ns = wait_ns,
		.start.ns = 5};

	neighbours_see(n, &e, traced, w);
}

static void rows_of_those_who_matter(void **state)
{
	struct scratch *s = *state;
	struct session session = {.started.ns = 1};
	struct event io = {.source = SOURCE_IO, .op = IO_WRITE, .pid = 14, .start.ns = 6};
	struct gpu_sample gpu;
	struct nodedb *db = scratch_open(s->path);
	struct store_writer *w = NULL;
	struct errinfo err = {0};

	assert_int_equal(nodedb_session_begin(db, &session, &err), 0);
	assert_int_equal(store_writer_start(db, session.id, NULL, &w, &err), 0);
	for (uint32_t pid = 10; pid <= 16; pid++)
		put(pid, pid == 13 ? 0 : 4096);
	tree_write(root, "/proc/10/cmdline", "python3 -u /srv/burn.py --password secret");
	tree_write(root, "/proc/10/status", "Name:\thog\nCpus_allowed:\t00000000,0000000f\n");
	assert_non_null(process_table_enter(traced, 12, (wall_time){1}));
	see(w, 10, 2000000);
	see(w, 10, 3000000); /* again */
	see(w, 11, 900000);  /* short */
	see(w, 12, 2000000); /* traced */
	see(w, 13, 2000000); /* kernel thread */
	see(w, 99, 2000000); /* gone */
	neighbours_see(n, &io, traced, w);
	io.pid = 15;
	io.flags = WIRE_TARGET;
	neighbours_see(n, &io, traced, w);
	gpu_sample_init(&gpu);
	gpu.process_1 = 12; /* traced */
	gpu.process_2 = 16;
	neighbours_share(n, &gpu, traced, w);
	see(NULL, 15, 2000000); /* nowhere to write to */
	assert_int_equal(store_writer_stop(w, NULL, NULL, (wall_time){9}, &err), 0);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM processes"), 3);
	assert_int_equal(
		scratch_int(s->path, "SELECT count(*) FROM processes WHERE pid IN (10, 14, 16)"
				     " AND container_id = '" ID "' AND rank IS NULL AND"
				     " cmdline = '' AND comm = 'hog'"),
		3);
	assert_int_equal(scratch_int(s->path, "SELECT cpus FROM processes WHERE pid = 10 AND"
					      " script = 'burn.py'"),
		4);
	assert_int_equal(
		scratch_int(s->path,
			"SELECT cpus IS NULL AND script = '' FROM processes WHERE pid = 14"),
		1);
}

/* The other end of a socket of this machine is found by its port, and gets a row as well. */
static void who_listens(void **state)
{
	static const char line[] =
		" 0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 13 1\n";
	struct scratch *s = *state;
	struct session session = {.started.ns = 1};
	struct event e = {
		.source = SOURCE_NET, .op = NET_RECV, .pid = 1, .dev = 8080, .wait_ns = 2000000};
	struct event away = e, other = e;
	struct nodedb *db = scratch_open(s->path);
	struct store_writer *w = NULL;
	struct errinfo err = {0};

	assert_int_equal(nodedb_session_begin(db, &session, &err), 0);
	assert_int_equal(store_writer_start(db, session.id, NULL, &w, &err), 0);
	put(72, 4096);
	tree_write(root, "/proc/72/cmdline", "python3");
	tree_write(root, "/proc/1/net/tcp", line);
	tree_link(root, "/proc/72/fd/7", "socket:[13]");
	e.start.ns = away.start.ns = other.start.ns = 5;
	event_peer_set(&e, "127.0.0.1:8080");
	event_peer_set(&away, "10.0.0.1:8080");
	event_peer_set(&other, "[::1]:99");
	other.dev = 99;
	neighbours_see(n, &away, traced, w);
	assert_int_equal(away.peer_pid, 0);
	neighbours_see(n, &e, traced, w);
	assert_int_equal(e.peer_pid, 72);
	e.peer_pid = 0;
	neighbours_see(n, &e, traced, w); /* known by now */
	assert_int_equal(e.peer_pid, 72);
	neighbours_see(n, &other, traced, w); /* one port a second is looked for */
	neighbours_tick(n);
	neighbours_see(n, &other, traced, w);
	assert_int_equal(other.peer_pid, 0);
	assert_int_equal(store_writer_stop(w, NULL, NULL, (wall_time){9}, &err), 0);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM processes WHERE pid = 72"), 1);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM processes"), 1);
}

static void so_many_a_second(void **state)
{
	struct scratch *s = *state;
	struct session session = {.started.ns = 1};
	struct nodedb *db = scratch_open(s->path);
	struct store_writer *w = NULL;
	struct errinfo err = {0};

	assert_int_equal(nodedb_session_begin(db, &session, &err), 0);
	assert_int_equal(store_writer_start(db, session.id, NULL, &w, &err), 0);
	for (uint32_t pid = 100; pid < 140; pid++) {
		put(pid, 4096);
		see(w, pid, 2000000);
	}
	neighbours_tick(n);
	see(w, 139, 2000000);
	assert_int_equal(store_writer_stop(w, NULL, NULL, (wall_time){9}, &err), 0);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM processes"), 33);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM processes WHERE pid = 139"), 1);
}

static void put_as(uint32_t pid, const char *comm, uint64_t start_ticks)
{
	char path[64], text[256];

	put(pid, 4096);
	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	snprintf(text, sizeof(text),
		"%u (%s) S 1 1 1 0 -1 0 1 0 0 0 3 4 0 0 20 0 1 0 %" PRIu64 " 4096 42\n", pid, comm,
		start_ticks);
	tree_write(root, path, text);
}

/* One that has just been forked is read again when it is met in another second: it has become another program. */
static void a_young_one_is_read_again(void **state)
{
	struct scratch *s = *state;
	struct session session = {.started.ns = 1};
	struct nodedb *db = scratch_open(s->path);
	struct store_writer *w = NULL;
	struct errinfo err = {0};
	struct timespec up = {0};
	uint64_t now;

	clock_gettime(CLOCK_BOOTTIME, &up);
	now = ((uint64_t)up.tv_sec + 1) * (uint64_t)sysconf(_SC_CLK_TCK);
	assert_int_equal(nodedb_session_begin(db, &session, &err), 0);
	assert_int_equal(store_writer_start(db, session.id, NULL, &w, &err), 0);
	put_as(10, "launcher", now);
	put_as(11, "launcher", 100);
	see(w, 10, 2000000);
	see(w, 11, 2000000);
	put_as(10, "hog", now);
	put_as(11, "hog", 100); /* control: an old one is what it was */
	neighbours_tick(n);
	see(w, 10, 2000000);
	see(w, 11, 2000000);
	put_as(10, "other", now);
	see(w, 10, 2000000); /* in the same second */
	assert_int_equal(store_writer_stop(w, NULL, NULL, (wall_time){9}, &err), 0);
	assert_int_equal(
		scratch_int(s->path, "SELECT comm = 'hog' FROM processes WHERE pid = 10"), 1);
	assert_int_equal(
		scratch_int(s->path, "SELECT comm = 'launcher' FROM processes WHERE pid = 11"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rows_of_those_who_matter, setup, teardown),
		cmocka_unit_test_setup_teardown(who_listens, setup, teardown),
		cmocka_unit_test_setup_teardown(so_many_a_second, setup, teardown),
		cmocka_unit_test_setup_teardown(a_young_one_is_read_again, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
