/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

static struct process process(uint32_t pid, uint64_t start, const char *comm, int64_t seen)
{
	struct process p = {.pid = pid, .start_ticks = start, .seen.ns = seen};

	snprintf(p.comm, sizeof(p.comm), "%s", comm);
	p.identity.launcher = "";
	return p;
}

static void test_processes_tell_reused_pids_apart(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(s->path);
	struct process old = process(7, 100, "old", 10), renamed = process(7, 100, "renamed", 30),
		       new = process(7, 900, "new", 40);
	char *text;

	assert_int_equal(nodedb_put_process(db, &old, "old -x", &err), 0);
	assert_int_equal(nodedb_put_process(db, &renamed, NULL, &err), 0);
	assert_int_equal(nodedb_put_process(db, &new, "new", &err), 0);
	scratch_close(db);
	assert_int_equal(
		scratch_int(s->path, "SELECT count(*) FROM processes WHERE node = 'n1'"), 2);
	text = scratch_text(s->path, "SELECT comm || '|' || cmdline || '|' || first_seen || '|' ||"
				     " last_seen FROM processes WHERE start_time = 100");
	assert_string_equal(text, "renamed|old -x|10|30");
	free(text);
	text = scratch_text(s->path, "SELECT name FROM process_names WHERE pid = 7");
	assert_string_equal(text, "new");
	free(text);
}

static void test_rank_0_is_a_value_and_none_is_null(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(s->path);
	struct process zero = process(1, 1, "a", 1), none = process(2, 1, "b", 1);
	struct identity *i = &zero.identity;
	char *text;

	i->place =
		(struct placement){.world_size = 8, .known = PLACEMENT_RANK | PLACEMENT_WORLD_SIZE};
	i->launcher = "torchrun";
	snprintf(i->job, sizeof(i->job), "slurm:4711");
	snprintf(i->container_id, sizeof(i->container_id), "c1");
	snprintf(i->pod, sizeof(i->pod), "train-0");
	snprintf(i->namespace, sizeof(i->namespace), "ml");
	snprintf(i->pod_uid, sizeof(i->pod_uid), "u-1");
	snprintf(i->cgroup_path, sizeof(i->cgroup_path), "/kubepods/x");
	snprintf(i->exe, sizeof(i->exe), "/usr/bin/python3");
	assert_int_equal(nodedb_put_process(db, &zero, "", &err), 0);
	assert_int_equal(nodedb_put_process(db, &none, "", &err), 0);
	scratch_close(db);
	text = scratch_text(s->path,
		"SELECT rank || '|' || ifnull(local_rank, 'none') || '|' || world_size || '|' ||"
		" launcher || '|' || job || '|' || container_id || '|' || pod || '|' || namespace"
		" || '|' || pod_uid || '|' || cgroup_path || '|' || exe FROM processes"
		" WHERE pid = 1");
	assert_string_equal(text,
		"0|none|8|torchrun|slurm:4711|c1|train-0|ml|u-1|/kubepods/x|/usr/bin/python3");
	free(text);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM processes WHERE pid = 2 AND"
					      " rank IS NULL AND launcher = ''"),
		1);
}

static void test_an_exec_replaces_the_identity(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(s->path);
	struct process p = process(1, 1, "a", 1);

	p.identity.place = (struct placement){.rank = 3, .known = PLACEMENT_RANK};
	p.identity.launcher = "slurm";
	assert_int_equal(nodedb_put_process(db, &p, "a", &err), 0);
	p.identity.place.known = 0;
	p.identity.launcher = "";
	assert_int_equal(nodedb_put_process(db, &p, "b", &err), 0);
	scratch_close(db);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM processes WHERE rank IS NULL"
					      " AND launcher = '' AND cmdline = 'b'"),
		1);
}

static void test_a_script_and_its_cpus(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(s->path);
	struct process train = process(1, 1, "python3", 1), old = process(2, 1, "python3", 1),
		       shell = process(3, 1, "bash", 1);
	struct nodedb_content c;

	snprintf(train.script, sizeof(train.script), "train.py");
	train.cpus = 3;
	snprintf(train.identity.visible_gpus, sizeof(train.identity.visible_gpus), "0,1");
	assert_int_equal(nodedb_put_process(db, &train, "python3 train.py", &err), 0);
	train.script[0] = 0;
	train.cpus = 0;
	train.identity.visible_gpus[0] = 0;
	assert_int_equal(nodedb_put_process(db, &train, NULL, &err), 0); /* no more is known */
	assert_int_equal(nodedb_put_process(db, &old, "python3 -u /w/serve.py --key x", &err), 0);
	snprintf(shell.script, sizeof(shell.script), "job.sh");
	assert_int_equal(nodedb_put_process(db, &shell, "bash job.sh", &err), 0);
	shell.script[0] = 0; /* it has become another program */
	assert_int_equal(nodedb_put_process(db, &shell, "xz -9", &err), 0);
	scratch_close(db);
	assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0);
	assert_int_equal(c.home_count, 3);
	assert_string_equal(c.homes[0].script, "train.py");
	assert_string_equal(c.homes[0].comm, "python3");
	assert_int_equal(c.homes[0].cpus, 3);
	assert_string_equal(c.homes[0].visible_gpus, "0,1");
	assert_string_equal(c.homes[1].visible_gpus, "");
	assert_string_equal(c.homes[1].script, "serve.py"); /* of its command line */
	assert_int_equal(c.homes[1].cpus, 0);
	assert_string_equal(c.homes[2].script, "");
	nodedb_content_done(&c);
}

/* A rank that is NULL because nobody could look is told from one that there is not. */
static void test_an_environment_that_could_not_be_read(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(s->path);
	struct process closed = process(1, 1, "a", 1), open = process(2, 1, "b", 1);

	closed.identity.environ_unreadable = true;
	assert_int_equal(nodedb_put_process(db, &closed, "a", &err), 0);
	assert_int_equal(nodedb_put_process(db, &open, "b", &err), 0);
	scratch_close(db);
	assert_int_equal(
		scratch_int(s->path, "SELECT environ_unreadable FROM processes WHERE pid = 1"), 1);
	assert_int_equal(
		scratch_int(s->path, "SELECT environ_unreadable FROM processes WHERE pid = 2"), 0);
	assert_int_equal(
		scratch_int(s->path, "SELECT count(*) FROM schema_info WHERE key = 'processes_note'"
				     " AND value LIKE '%; environ_unreadable: 1:%'"),
		1);
}

static void test_a_group_keeps_what_is_known(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(s->path);
	struct cgroup_row a = {.id = 5, .container_id = "c", .path = "/p"},
			  b = {.id = 5, .path = "/p", .pod = "train-0", .namespace = "ml"};
	char *text;

	assert_int_equal(nodedb_put(db, &a, &err), 0);
	assert_int_equal(nodedb_put(db, &b, &err), 0);
	scratch_close(db);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM cgroup_metadata"), 1);
	text = scratch_text(s->path, "SELECT container_id || '|' || cgroup_path || '|' || pod_name"
				     " || '|' || namespace FROM cgroup_metadata");
	assert_string_equal(text, "c|/p|train-0|ml");
	free(text);
}

static void test_coverage_rows_are_replaced(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(s->path);
	struct process_layers l = {0};
	char *text;

	l.rows[LAYER_RUNTIME] =
		(struct layer_row){.state = LAYER_FAILED, .detail = "it's\n\"closed\""};
	assert_int_equal(nodedb_put_layers(db, 1, 7, 100, &l, &err), 0);
	l.rows[LAYER_DRIVER] = (struct layer_row){.state = LAYER_COVERED, .since.ns = 42};
	assert_int_equal(nodedb_put_layers(db, 1, 7, 100, &l, &err), 0);
	scratch_close(db);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM coverage"), LAYER_COUNT);
	text = scratch_text(
		s->path, "SELECT state || '|' || detail FROM coverage WHERE layer = 'runtime'");
	assert_string_equal(text, "failed|it's\n\"closed\"");
	free(text);
	assert_int_equal(
		scratch_int(s->path, "SELECT since FROM coverage WHERE layer = 'driver'"), 42);
}

static void test_events_carry_their_place(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(s->path);
	struct event e = {.start.ns = 1000, .pid = 7, .source = 1, .op = 1};
	struct nodedb_content c;

	assert_int_equal(nodedb_put_event(db, &e, &err), 0);
	e.start.ns = 2000;
	e.place = (struct placement){.rank = 0,
		.local_rank = 0,
		.world_size = 2,
		.known = PLACEMENT_RANK | PLACEMENT_LOCAL_RANK | PLACEMENT_WORLD_SIZE};
	assert_int_equal(nodedb_put_event(db, &e, &err), 0);
	e.start.ns = 3000;
	e.place = (struct placement){0}; /* nothing of the row before is left in the statement */
	assert_int_equal(nodedb_put_event(db, &e, &err), 0);
	scratch_close(db);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM events WHERE rank IS NULL AND"
					      " local_rank IS NULL AND world_size IS NULL"),
		2);
	assert_int_equal(scratch_int(s->path, "SELECT timestamp FROM events WHERE rank = 0 AND"
					      " local_rank = 0 AND world_size = 2"),
		2000);
	scratch_sql(s->path, "UPDATE events SET rank = -5, local_rank = 'x' WHERE seq = 2");
	assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0);
	assert_int_equal(c.event_count, 3);
	assert_int_equal(c.skipped_rows, 0);
	assert_int_equal(c.events[0].place.known, 0);
	assert_int_equal(c.events[1].place.known, PLACEMENT_WORLD_SIZE);
	assert_int_equal(c.events[1].place.world_size, 2);
	nodedb_content_done(&c);
}

static void test_a_session_has_a_place(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(s->path);
	struct session one = {.started.ns = 1}, two = {.started.ns = 2};
	struct placement p = {
		.rank = 0, .world_size = 4, .known = PLACEMENT_RANK | PLACEMENT_WORLD_SIZE};

	assert_int_equal(nodedb_session_begin(db, &one, &err), 0);
	assert_int_equal(nodedb_session_begin(db, &two, &err), 0);
	assert_int_equal(nodedb_session_place(db, two.id, p, &err), 0);
	scratch_close(db);
	assert_int_equal(
		scratch_int(s->path, "SELECT count(*) FROM sessions WHERE rank IS NULL"), 1);
	assert_int_equal(scratch_int(s->path, "SELECT world_size FROM sessions WHERE rank = 0"), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_processes_tell_reused_pids_apart),
		TEST(test_rank_0_is_a_value_and_none_is_null),
		TEST(test_an_exec_replaces_the_identity),
		TEST(test_a_script_and_its_cpus),
		TEST(test_an_environment_that_could_not_be_read),
		TEST(test_a_group_keeps_what_is_known),
		TEST(test_coverage_rows_are_replaced),
		TEST(test_events_carry_their_place),
		TEST(test_a_session_has_a_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
