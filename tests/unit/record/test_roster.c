/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

#include "record/trace/roster.h"
#include "tree.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char root[TREE_MAX];
static struct process_table *table;
static struct roster *r;
static struct {
	int count;
	uint32_t pid;
	struct process_layers layers;
} told;

static void sink(void *arg, uint32_t pid, const char *comm, const struct process_layers *l)
{
	told.count++;
	told.pid = pid;
	told.layers = *l;
}

/* A stage before the roster: whoever is entered ends before it can be read. */
static bool ends_at_once;
static void gone(uint32_t pid);

static void end_at_once(void *arg, struct process_entry *p, uint32_t parent, wall_time at)
{
	if (ends_at_once)
		gone(p->pid);
}

static const struct process_stage ending = {.on_enter = end_at_once};

static int setup(void **state)
{
	ends_at_once = false;
	tree_init(root);
	memset(&told, 0, sizeof(told));
	assert_int_equal(process_table_new(root, &table), 0);
	assert_int_equal(roster_new(root, table, sink, NULL, &r), 0);
	process_table_add(table, &ending, NULL);
	process_table_add(table, &roster_stage, r);
	return scratch_setup(state);
}

static int teardown(void **state)
{
	process_table_free(table);
	roster_free(r);
	tree_done(root);
	return scratch_teardown(state);
}

static void put(uint32_t pid, unsigned start, const char *env)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	snprintf(text, sizeof(text),
		"%u (train) S 1 1 1 0 -1 0 1 0 0 0 3 4 0 0 20 0 1 0 %u 4096 42\n", pid, start);
	tree_write(root, path, text);
	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	tree_write(root, path, "Name:\ttrain\nUid:\t0\t0\t0\t0\n");
	snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
	tree_write(root, path, "0::/docker/" ID "\n");
	snprintf(path, sizeof(path), "/proc/%u/environ", pid);
	tree_write(root, path, env);
}

static void gone(uint32_t pid)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/proc/%u/stat", root, pid);
	unlink(path);
}

static void enter(uint32_t pid, uint32_t parent, int64_t at)
{
	if (parent)
		process_table_fork(table, parent, pid, (wall_time){at});
	else
		process_table_found(table, pid, 0, (wall_time){at});
}

static void leave(uint32_t pid, int64_t at)
{
	process_table_exit(table, pid, (wall_time){at});
}

static void tick(void)
{
	roster_tick(r);
	process_table_tick(table);
}

static struct event at(uint32_t pid, int64_t ns)
{
	struct event e = {.pid = pid, .start.ns = ns, .source = SOURCE_CUDA, .cgroup_id = 50};

	roster_place(r, &e);
	return e;
}

static void exec_and_end_hold_from_their_time_on(void **state)
{
	struct event e;

	put(7, 100, "RANK=3");
	enter(7, 0, 1000);
	e = at(7, 900); /* before it was read: the same process */
	assert_int_equal(e.place.known, PLACEMENT_RANK);
	assert_int_equal(e.place.rank, 3);
	put(7, 100, "RANK=4");
	process_table_exec(table, 7, (wall_time){2000});
	assert_int_equal(at(7, 1999).place.rank, 3); /* read from another ring, later */
	assert_int_equal(at(7, 2000).place.rank, 4);
	gone(7);
	leave(7, 2400);
	assert_int_equal(at(7, 2500).place.rank, 4);
	tick();
	assert_int_equal(at(7, 2500).place.rank, 4);
	tick();
	assert_int_equal(at(7, 2500).place.known, 0); /* forgotten */
}

static void a_reused_pid_is_another(void **state)
{
	put(7, 100, "RANK=3");
	enter(7, 0, 1000);
	leave(7, 1600);
	put(7, 200, "A=1");
	enter(7, 0, 2000);
	assert_int_equal(at(7, 1500).place.rank, 3);
	assert_int_equal(at(7, 2500).place.known, 0);
	for (int i = 0; i < 5; i++)
		tick(); /* the end of the first does not end the second */
	put(7, 200, "RANK=9");
	assert_int_equal(at(7, 2500).place.known, 0);
}

static void a_child_is_what_its_parent_was(void **state)
{
	struct event e;

	put(7, 100, "RANK=0");
	enter(7, 0, 1000);
	enter(8, 7, 2000); /* ended before it could be read */
	e = at(8, 2000);
	assert_int_equal(e.place.known, PLACEMENT_RANK);
	assert_int_equal(e.place.rank, 0);
	put(9, 300, "RANK=5"); /* and one that could be */
	enter(9, 7, 2000);
	assert_int_equal(at(9, 2000).place.rank, 5);
}

static void calls_bring_in_who_was_missed(void **state)
{
	struct event block = {.pid = 11, .start.ns = 5, .source = SOURCE_IO};
	struct event sched = {
		.pid = 10, .start.ns = 5, .source = SOURCE_HOST, .op = HOST_SCHED_SWITCH};
	struct event call = {.pid = 10, .start.ns = 5, .source = SOURCE_DRIVER, .cgroup_id = 77};

	put(10, 100, "RANK=6");
	put(11, 100, "RANK=7");
	assert_string_equal(roster_place(r, &block), "");
	assert_int_equal(block.place.known, 0); /* block requests of others are recorded too */
	assert_string_equal(roster_place(r, &call), ID);
	assert_int_equal(call.place.rank, 6);
	roster_place(r, &sched);
	assert_int_equal(sched.place.rank, 6);
	assert_int_equal(sched.cgroup_id, 77);      /* the scheduler's records do not have it */
	assert_int_equal(at(12, 5).place.known, 0); /* nobody there */
}

static void groups_are_listed_once(void **state)
{
	struct roster_group groups[4];
	struct event root_call = {
		.pid = 15, .start.ns = 5, .source = SOURCE_DRIVER, .cgroup_id = 1};

	assert_int_equal(roster_groups(r, groups, 4), 0);
	for (uint32_t pid = 12; pid <= 16; pid++) {
		put(pid, 100, "RANK=6");
		enter(pid, 0, 1);
	}
	assert_int_equal(
		roster_groups(r, groups, 4), 0); /* no call yet: their numbers are not known */
	at(12, 5);
	at(13, 5);
	assert_int_equal(roster_groups(r, groups, 4), 1);
	assert_int_equal(groups[0].cgroup_id, 50);
	assert_string_equal(groups[0].path, "/docker/" ID);
	roster_place(r, &root_call);
	roster_place(r,
		&(struct event){.pid = 16, .start.ns = 5, .source = SOURCE_CUDA, .cgroup_id = 51});
	assert_int_equal(roster_groups(r, groups, 4), 2);
	assert_int_equal(roster_groups(r, groups, 1), 1);
	gone(16);
	leave(16, 9);
	assert_int_equal(roster_groups(r, groups, 4), 1);
}

static void move(uint32_t pid, const char *groups)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
	tree_write(root, path, groups);
}

/* To the kernel's number all are in the root; and who is moved is noticed. */
static void groups_of_version_1(void **state)
{
	struct event e = {.pid = 12, .start.ns = 5, .source = SOURCE_CUDA, .cgroup_id = 1};
	struct roster_group groups[4];
	uint64_t first;

	for (uint32_t pid = 12; pid <= 14; pid++) {
		put(pid, 100, "RANK=6");
		move(pid, pid == 14 ? "1:cpu:/\n0::/\n" : "1:cpu:/job-1\n0::/\n");
		enter(pid, 0, 1);
		e = (struct event){
			.pid = pid, .start.ns = 5, .source = SOURCE_CUDA, .cgroup_id = 1};
		roster_place(r, &e);
		assert_true(pid == 14 ? e.cgroup_id == 1 : e.cgroup_id > UINT32_MAX);
	}
	assert_int_equal(roster_groups(r, groups, 4), 1);
	first = groups[0].cgroup_id;
	assert_string_equal(groups[0].path, "/job-1");
	assert_true(groups[0].is_v1);
	move(13, "1:cpu:/job-2\n0::/\n");
	tick();
	assert_int_equal(roster_groups(r, groups, 4), 2);
	e = (struct event){.pid = 13, .start.ns = 6, .source = SOURCE_CUDA, .cgroup_id = 1};
	roster_place(r, &e);
	assert_int_not_equal(e.cgroup_id, first);
	assert_int_equal(e.cgroup_id, groups[groups[0].cgroup_id == first].cgroup_id);
	move(13, "1:cpu:/\n0::/\n");
	tick();
	assert_int_equal(roster_groups(r, groups, 4), 1);
	assert_null(groups[0].memory_path);
	move(14, "4:memory:/job-3\n1:cpu:/\n0::/\n");
	tick();
	assert_int_equal(roster_groups(r, groups, 4), 2);
	first = groups[0].cgroup_id == first;
	assert_null(groups[first].path);
	assert_string_equal(groups[first].memory_path, "/job-3");
}

static struct store_writer *open_store(const char *path)
{
	struct session session = {.started.ns = 1};
	struct nodedb *db = scratch_open(path);
	struct errinfo err = {0};
	struct store_writer *w;

	assert_int_equal(nodedb_session_begin(db, &session, &err), 0);
	assert_int_equal(store_writer_start(db, session.id, NULL, &w, &err), 0);
	roster_store(r, w);
	return w;
}

static void close_store(struct store_writer *w)
{
	struct errinfo err = {0};

	roster_finish(r);
	roster_store(r, NULL);
	assert_int_equal(store_writer_stop(w, NULL, NULL, (wall_time){9}, &err), 0);
}

static void what_is_known_is_stored(void **state)
{
	struct scratch *s = *state;
	struct store_writer *w = open_store(s->path);
	struct process_layers l = {.rows[LAYER_RUNTIME].state = LAYER_UNCOVERED};

	put(7, 100, "RANK=0");
	put(8, 100, "RANK=0");
	enter(7, 0, 1000);
	enter(8, 7, 1000);
	at(7, 1000);
	at(8, 1000);
	roster_judged(r, 7, &l); /* once: told at the end */
	close_store(w);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM processes WHERE rank = 0 AND"
					      " launcher = 'torchrun' AND container_id = '" ID "'"),
		2);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM cgroup_metadata WHERE"
					      " cgroup_id = 50 AND container_id = '" ID "'"),
		1);
	assert_int_equal(scratch_int(s->path, "SELECT rank FROM sessions"), 0);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM coverage WHERE pid = 7 AND"
					      " layer = 'runtime' AND state = 'not_covered'"),
		1);
}

static const struct process_layers covered = {.rows[LAYER_RUNTIME].state = LAYER_COVERED};

/* In a second store everything is there again. */
static void a_new_store_is_told_again(void **state)
{
	struct scratch *s = *state;
	struct store_writer *w = open_store(s->path);
	char second[sizeof(s->path) + 8];

	snprintf(second, sizeof(second), "%s.2", s->path);
	put(7, 100, "RANK=0");
	enter(7, 0, 1000);
	at(7, 1000);
	roster_judged(r, 7, &covered);
	close_store(w);
	w = open_store(second);
	close_store(w);
	assert_int_equal(scratch_int(second, "SELECT count(*) FROM processes"), 0); /* control */
	w = open_store(second);
	roster_renew(r, (wall_time){3000});
	close_store(w);
	assert_int_equal(scratch_int(second, "SELECT count(*) FROM processes WHERE rank = 0"), 1);
	assert_int_equal(scratch_int(second, "SELECT count(*) FROM cgroup_metadata"), 1);
	assert_int_equal(scratch_int(second, "SELECT rank FROM sessions WHERE id = 2"), 0);
	assert_int_equal(scratch_int(second, "SELECT count(*) FROM coverage WHERE session_id = 2"
					     " AND layer = 'runtime' AND state = 'covered'"),
		1);
}

/* Whose records may still come gets its row in the second store from what is kept of it: told of its
 * end or not. */
static void the_dead_are_in_a_new_store_too(void **state)
{
	struct scratch *s = *state;
	struct store_writer *w = open_store(s->path);
	char second[sizeof(s->path) + 8];

	snprintf(second, sizeof(second), "%s.2", s->path);
	for (uint32_t pid = 7; pid <= 9; pid++) {
		put(pid, 100, "RANK=0");
		enter(pid, 0, 1000);
		at(pid, 1000);
		roster_judged(r, pid, &covered);
		gone(pid);
	}
	leave(7, 2000);
	leave(9, 2000);
	close_store(w);
	w = open_store(second);
	roster_renew(r, (wall_time){3000});
	close_store(w);
	assert_int_equal(scratch_int(second, "SELECT count(*) FROM processes WHERE rank = 0 AND"
					     " start_time = 100 AND comm = 'train' AND"
					     " launcher = 'torchrun' AND container_id = '" ID "'"),
		3);
	assert_int_equal(scratch_int(second, "SELECT count(*) FROM cgroup_metadata"), 1);
	assert_int_equal(scratch_int(second, "SELECT count(DISTINCT pid) FROM coverage WHERE"
					     " layer = 'runtime' AND state = 'covered'"),
		3);
}

static void two_ranks_are_none_of_the_session(void **state)
{
	struct scratch *s = *state;
	struct store_writer *w = open_store(s->path);

	put(7, 100, "RANK=0");
	put(8, 100, "RANK=1");
	enter(7, 0, 1000);
	enter(8, 0, 1000);
	close_store(w);
	assert_int_equal(
		scratch_int(s->path, "SELECT count(*) FROM sessions WHERE rank IS NULL"), 1);
	assert_int_equal(scratch_int(s->path, "SELECT count(DISTINCT rank) FROM processes"), 2);
}

static void gaps_are_told_when_they_last(void **state)
{
	struct process_layers gap = {.rows[LAYER_RUNTIME].state = LAYER_UNCOVERED}, full = {0};
	const struct roster_gap *g;
	uint64_t more;
	size_t n;

	full.rows[LAYER_RUNTIME].state = LAYER_COVERED;
	put(7, 100, "A=1");
	roster_judged(r, 7, &gap); /* not under trace */
	enter(7, 0, 1);
	roster_judged(r, 7, &gap);
	assert_int_equal(told.count, 0);
	roster_judged(r, 7, &gap);
	assert_int_equal(told.count, 1);
	assert_int_equal(told.pid, 7);
	assert_int_equal(told.layers.rows[LAYER_IDENTITY].state, LAYER_COVERED);
	roster_judged(r, 7, &gap);
	assert_int_equal(told.count, 1); /* once */
	g = roster_gaps(r, &n, &more);
	assert_int_equal(n, 1);
	assert_int_equal(g[0].pid, 7);
	assert_false(g[0].ended);
	roster_judged(r, 7, &full); /* at once */
	assert_int_equal(told.count, 2);
	roster_gaps(r, &n, &more);
	assert_int_equal(n, 0);
	roster_judged(r, 7, &gap);
	leave(7, 5); /* it will not be judged again */
	assert_int_equal(told.count, 3);
	g = roster_gaps(r, &n, &more);
	assert_int_equal(n, 1);
	assert_true(g[0].ended);
	for (uint32_t pid = 100; pid < 100 + ROSTER_GAPS_MAX + 5; pid++) {
		put(pid, 100, "A=1");
		enter(pid, 0, 1);
		roster_judged(r, pid, &gap);
		roster_judged(r, pid, &gap);
	}
	roster_gaps(r, &n, &more);
	assert_int_equal(n, ROSTER_GAPS_MAX);
	assert_int_equal(more, 6);
}

static void an_unreadable_environment_is_a_gap(void **state)
{
	struct process_layers full = {.rows[LAYER_RUNTIME].state = LAYER_COVERED};
	char path[512];

	put(7, 100, "RANK=1");
	snprintf(path, sizeof(path), "%s/proc/7/environ", root);
	unlink(path);
	enter(7, 0, 1);
	roster_judged(r, 7, &full);
	roster_judged(r, 7, &full);
	assert_int_equal(told.layers.rows[LAYER_IDENTITY].state, LAYER_FAILED);
}

/* The library is mapped, the process read too late, its end noticed: then comes the kernel's word
 * that it has made a call. */
static void what_the_kernel_says_of_the_dead_is_told(void **state)
{
	struct scratch *s = *state;
	struct store_writer *w = open_store(s->path);
	struct event e = {.pid = 7,
		.start.ns = 1500,
		.source = SOURCE_HOST,
		.op = HOST_TARGET_FOUND,
		.arg0 = 100 * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK)),
		.comm = "short"};

	put(7, 100, "RANK=3");
	ends_at_once = true;
	process_table_enter(table, 7, (wall_time){1000});
	leave(7, 2000);
	assert_int_equal(told.count, 0);
	process_table_found(table, 7, roster_found_start(&e), e.start);
	roster_found(r, &e);
	assert_int_equal(process_table_alive(table), 0);
	assert_int_equal(told.count, 1);
	assert_int_equal(told.layers.rows[LAYER_IDENTITY].state, LAYER_FAILED);
	roster_found(r, &e);
	assert_int_equal(told.count, 1); /* once */
	close_store(w);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM processes WHERE pid = 7 AND"
					      " start_time = 100 AND comm = 'short'"),
		1);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM coverage WHERE pid = 7 AND"
					      " layer = 'identity' AND state = 'failed'"),
		1);
}

/* Likewise if its first call was not news to the kernel, because it was entered before it. */
static void a_call_of_one_that_was_never_read_tells_of_it(void **state)
{
	put(7, 100, "RANK=3");
	ends_at_once = true;
	process_table_enter(table, 7, (wall_time){1000});
	leave(7, 2000);
	assert_int_equal(told.count, 0); /* who makes no call is not missed */
	assert_int_equal(at(7, 1500).place.known, 0);
	assert_int_equal(told.count, 1);
	assert_int_equal(told.layers.rows[LAYER_IDENTITY].state, LAYER_FAILED);
	at(7, 1600);
	assert_int_equal(told.count, 1);
}

/* Entered between fork and exec, it was its parent's program: that it was read then is not said of the one that made the call. */
static void one_that_ends_after_exec_is_not_what_it_was_before(void **state)
{
	struct scratch *s = *state;
	struct store_writer *w = open_store(s->path);

	put(7, 100, "A=1");
	enter(7, 0, 1000);
	at(7, 1100);
	assert_int_equal(told.count, 0); /* control: it is known */
	gone(7);
	process_table_exec(table, 7, (wall_time){2000});
	leave(7, 2200);
	at(7, 2100);
	assert_int_equal(told.count, 1);
	assert_int_equal(told.layers.rows[LAYER_IDENTITY].state, LAYER_FAILED);
	close_store(w);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM coverage WHERE pid = 7 AND"
					      " layer = 'identity' AND state = 'failed'"),
		1);
}

static void many_processes_come_and_go(void **state)
{
	for (uint32_t pid = 1000; pid < 2000; pid++)
		enter(pid, 0, 1);
	for (uint32_t pid = 1000; pid < 2000; pid++)
		leave(pid, 5);
	for (int i = 0; i < 3; i++)
		tick();
	put(1500, 9, "RANK=2");
	assert_int_equal(at(1500, 5).place.rank, 2); /* read anew: all were forgotten */
}

#undef TEST
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(exec_and_end_hold_from_their_time_on),
		TEST(a_reused_pid_is_another),
		TEST(a_child_is_what_its_parent_was),
		TEST(calls_bring_in_who_was_missed),
		TEST(groups_are_listed_once),
		TEST(groups_of_version_1),
		TEST(what_is_known_is_stored),
		TEST(a_new_store_is_told_again),
		TEST(the_dead_are_in_a_new_store_too),
		TEST(two_ranks_are_none_of_the_session),
		TEST(gaps_are_told_when_they_last),
		TEST(an_unreadable_environment_is_a_gap),
		TEST(what_the_kernel_says_of_the_dead_is_told),
		TEST(a_call_of_one_that_was_never_read_tells_of_it),
		TEST(one_that_ends_after_exec_is_not_what_it_was_before),
		TEST(many_processes_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
