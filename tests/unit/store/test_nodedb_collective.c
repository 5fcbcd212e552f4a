/* SPDX-License-Identifier: Apache-2.0 */
/* test_nodedb_collective.c - collectives and the homes of processes come back as they were written,
 * and damaged rows are counted. */
#include "store_fixture.h"

static struct collective value_of(uint64_t seq)
{
	return (struct collective){.comm_hash = UINT64_C(0xfedcba9876543210),
		.seq = seq,
		.bytes = 4096,
		.count = 1024,
		.rank = 0,
		.nranks = 8,
		.datatype = 7,
		.reduce_op = 0,
		.root = -1,
		.peer = -1,
		.wait_ns = -1};
}

static void collectives_come_back(void **state)
{
	struct scratch *s = *state;
	struct event e = {.start.ns = 20,
		.dur_ns = 5,
		.pid = 7,
		.tid = 8,
		.source = SOURCE_NCCL,
		.op = NCCL_ALL_REDUCE,
		.stream = UINT64_MAX,
		.device = 3};
	struct collective c = value_of(9), send = value_of(2);
	struct nodedb *db = scratch_open(s->path);
	struct nodedb_content got;
	struct errinfo err = {0};

	assert_int_equal(nodedb_put_collective(db, &e, &c, &err), 0);
	e.start.ns = 10;
	e.op = NCCL_SEND;
	send.peer = 5;
	send.wait_ns = 77;
	assert_int_equal(nodedb_put_collective(db, &e, &send, &err), 0);
	scratch_close(db);
	assert_int_equal(nodedb_read(s->path, NULL, &got, &err), 0);
	assert_int_equal(got.collective_count, 2);
	assert_int_equal(got.collectives[0].op, NCCL_SEND);
	assert_int_equal(got.collectives[0].c.seq, 0);
	assert_int_equal(got.collectives[0].c.peer, 5);
	assert_int_equal(got.collectives[0].c.wait_ns, 77);
	assert_int_equal(got.collectives[1].op, NCCL_ALL_REDUCE);
	assert_memory_equal(&got.collectives[1].c, &c, sizeof(c));
	assert_true(got.collectives[1].stream == UINT64_MAX);
	assert_int_equal(got.collectives[1].device, 3);
	assert_string_equal(got.collectives[1].node, "n1");
	nodedb_content_done(&got);
	assert_int_equal(nodedb_read(s->path,
				 &(struct nodedb_filter){.scope.from_ns = 15,
					 .scope.pids = (uint32_t[]){1},
					 .scope.pid_count = 1},
				 &got, &err),
		0);
	assert_int_equal(got.collective_count, 1); /* by time, not by process */
	nodedb_content_done(&got);
}

/* What a tracer that came late counts by itself stays negative, of a Send too. */
static void own_numbers_come_back(void **state)
{
	struct scratch *s = *state;
	struct event e = {.start.ns = 10, .pid = 7, .source = SOURCE_NCCL, .op = NCCL_SEND};
	struct collective c = value_of(-(UINT64_C(0xabcd) << COLLECTIVE_TAG | 5));
	struct collective send = value_of(-UINT64_C(1));
	struct nodedb *db = scratch_open(s->path);
	struct nodedb_content got;
	struct errinfo err = {0};

	c.comm_hash = 0;
	send.peer = 1;
	assert_int_equal(nodedb_put_collective(db, &e, &send, &err), 0);
	e.start.ns = 20;
	e.op = NCCL_ALL_REDUCE;
	assert_int_equal(nodedb_put_collective(db, &e, &c, &err), 0);
	scratch_close(db);
	assert_int_equal(nodedb_read(s->path, NULL, &got, &err), 0);
	assert_int_equal(got.collective_count, 2);
	assert_true(got.collectives[0].c.seq == -UINT64_C(1));
	assert_memory_equal(&got.collectives[1].c, &c, sizeof(c));
	assert_false(
		collective_is_numbered(got.collectives[1].c.comm_hash, got.collectives[1].c.seq));
	assert_false(collective_is_numbered(5, got.collectives[0].c.seq));
	assert_true(collective_is_numbered(5, 1));
	nodedb_content_done(&got);
}

static void damaged_rows_are_counted(void **state)
{
	struct scratch *s = *state;
	struct nodedb_content got;
	struct errinfo err = {0};

	scratch_close(scratch_open(s->path));
	scratch_sql(s->path,
		"INSERT INTO collectives (node,timestamp,pid,tid,comm,seq,op,rank,nranks,device,"
		"bytes,count,datatype,reduce_op,root,peer,stream,duration,wait_ns,ret_code) VALUES"
		" ('n',1,1,1,5,1,'AllReduce',0,2,0,4,1,7,0,NULL,NULL,0,1,NULL,0),"
		" ('n',2,1,1,5,1,'Nonsense',0,2,0,4,1,7,0,NULL,NULL,0,1,NULL,0),"
		" ('n',3,1,1,'x',1,'AllReduce',0,2,0,4,1,7,0,NULL,NULL,0,1,NULL,0),"
		" ('n',4,-1,1,5,1,'AllReduce',0,2,0,4,1,7,0,NULL,NULL,0,1,NULL,0),"
		" ('n',5,1,1,5,1,'AllReduce',99999999999,2,0,4,1,7,0,NULL,NULL,0,1,NULL,0),"
		" ('n',6,1,1,5,1,'AllReduce',0,2,0,4,1,7,0,NULL,NULL,0,-1,NULL,0),"
		" ('n',8,1,1,5,1,'AllReduce',0,2,99999999999,4,1,7,0,NULL,NULL,0,1,NULL,0),"
		" (x'00',7,1,1,5,1,'AllReduce',0,2,0,4,1,7,0,NULL,NULL,0,1,NULL,0)");
	assert_int_equal(nodedb_read(s->path, NULL, &got, &err), 0);
	assert_int_equal(got.collective_count, 1);
	assert_int_equal(got.skipped_rows, 7);
	nodedb_content_done(&got);
}

static void homes_are_by_pid(void **state)
{
	struct scratch *s = *state;
	struct process p = {.pid = 9, .start_ticks = 1, .seen.ns = 10};
	struct nodedb *db = scratch_open(s->path);
	struct nodedb_content got;
	struct errinfo err = {0};

	snprintf(p.identity.container_id, sizeof(p.identity.container_id), "old");
	assert_int_equal(nodedb_put_process(db, &p, NULL, &err), 0);
	p.start_ticks = 2;
	p.seen.ns = 20;
	snprintf(p.identity.container_id, sizeof(p.identity.container_id), "new");
	memset(p.identity.cgroup_path, 'a', sizeof(p.identity.cgroup_path) - 2);
	p.identity.cgroup_path[sizeof(p.identity.cgroup_path) - 2] = 'z';
	assert_int_equal(nodedb_put_process(db, &p, NULL, &err), 0);
	p.pid = 3;
	assert_int_equal(nodedb_put_process(db, &p, NULL, &err), 0);
	scratch_close(db);
	scratch_sql(s->path, "INSERT INTO processes (node,pid,start_time,comm,cmdline,first_seen,"
			     "last_seen,container_id) VALUES ('n',-4,1,'','',1,1,'x')");
	assert_int_equal(nodedb_read(s->path, NULL, &got, &err), 0);
	assert_int_equal(got.home_count, 2);
	assert_int_equal(got.skipped_rows, 1);
	assert_int_equal(got.homes[0].pid, 3);
	assert_int_equal(got.homes[1].pid, 9);
	assert_string_equal(got.homes[1].container_id, "new");
	assert_int_equal(strlen(got.homes[1].cgroup_path), sizeof(got.homes[1].cgroup_path) - 1);
	assert_int_equal(got.homes[1].cgroup_path[sizeof(got.homes[1].cgroup_path) - 2], 'z');
	nodedb_content_done(&got);
}

/* Rows that make no sense count towards the ceiling: a file full of them is not read to its end. */
static void no_more_homes_are_looked_at(void **state)
{
	struct scratch *s = *state;
	struct nodedb_content got;
	char sql[512];

	scratch_close(scratch_open(s->path));
	snprintf(sql, sizeof(sql),
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %u)"
		" INSERT INTO processes (node,pid,start_time,comm,cmdline,first_seen,last_seen)"
		" SELECT 'n',-i,1,'','',1,1 FROM n",
		NODEDB_HOMES_MAX + 100);
	scratch_sql(s->path, sql);
	assert_int_equal(nodedb_read(s->path, NULL, &got, NULL), 0);
	assert_int_equal(got.home_count, 0);
	assert_int_equal(got.skipped_rows, NODEDB_HOMES_MAX);
	nodedb_content_done(&got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(collectives_come_back),
		TEST(own_numbers_come_back),
		TEST(damaged_rows_are_counted),
		TEST(homes_are_by_pid),
		TEST(no_more_homes_are_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
