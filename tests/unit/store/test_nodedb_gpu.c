/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

#include "store/write/writer.h"

static struct gpu_sample sample_of(int64_t ns, int64_t index)
{
	struct gpu_sample s;

	gpu_sample_init(&s);
	s.time.ns = ns;
	s.index = index;
	snprintf(s.uuid, sizeof(s.uuid), "GPU-%d", (int)index);
	snprintf(s.name, sizeof(s.name), "NVIDIA H200");
	snprintf(s.pci, sizeof(s.pci), "00000000:01:00.0");
	s.power_mw = 612345;
	s.throttle_reasons = 68;
	s.mem_total_bytes = 150754820096;
	s.nvml_error = 0;
	return s;
}

static void test_samples_come_back_as_they_were(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb_content c;
	struct gpu_sample a = sample_of(20, 1), b = sample_of(20, 0), d = sample_of(10, 0);
	struct nodedb *db = scratch_open(s->path);

	assert_int_equal(nodedb_put(db, &a, &err), 0);
	assert_int_equal(nodedb_put(db, &b, &err), 0);
	assert_int_equal(nodedb_put(db, &d, &err), 0);
	b.temperature_c = 83;
	assert_int_equal(nodedb_put(db, &b, &err), 0); /* the same moment again */
	scratch_close(db);
	assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0);
	assert_int_equal(c.gpu_sample_count, 3);
	assert_memory_equal(&c.gpu_samples[0], &d, sizeof(d));
	assert_memory_equal(&c.gpu_samples[1], &b, sizeof(b));
	assert_memory_equal(&c.gpu_samples[2], &a, sizeof(a));
	nodedb_content_done(&c);
	assert_int_equal(
		scratch_int(s->path, "SELECT count(*) FROM gpu_samples WHERE node = 'n1' AND"
				     " throttle_reasons & 64 AND sm_clock_mhz IS NULL"),
		3);
	assert_int_equal(
		nodedb_read(s->path, &(struct nodedb_filter){.scope.from_ns = 15}, &c, &err), 0);
	assert_int_equal(c.gpu_sample_count, 2);
	nodedb_content_done(&c);
}

static void test_damaged_rows_are_left_out(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb_content c;
	struct gpu_sample a = sample_of(20, 1);
	struct nodedb *db = scratch_open(s->path);

	assert_int_equal(nodedb_put(db, &a, &err), 0);
	scratch_close(db);
	scratch_sql(s->path,
		"INSERT INTO gpu_samples (node,timestamp,gpu,uuid,name,pci,power_mw) VALUES"
		" ('n1',1,0,'u','n','p','much'), ('n1',2,-1,'u','n','p',1), "
		"('n1',3,0,'u','n','p',-5),"
		" ('n1','x',0,'u','n','p',1), ('n1',4,0,x'00','n','p',1)");
	assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0);
	assert_int_equal(c.gpu_sample_count, 1);
	assert_int_equal(c.skipped_rows, 5);
	nodedb_content_done(&c);
}

static void test_the_writer_stores_both(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct session session = {.started.ns = 1, .gpu_driver = "from /proc", .cuda_version = "x"};
	struct gpu_sample a = sample_of(20, 1);
	struct nodedb *db = scratch_open(s->path);
	struct store_writer *w = NULL;
	char *text;

	assert_int_equal(nodedb_session_begin(db, &session, &err), 0);
	assert_int_equal(store_writer_start(db, session.id, NULL, &w, &err), 0);
	assert_true(store_writer_push_row(w, &a));
	assert_true(store_writer_push_gpu(w, "NVIDIA H200", "580.65.06", ""));
	assert_int_equal(store_writer_stop(w, NULL, NULL, (wall_time){9}, &err), 0);
	assert_int_equal(scratch_int(s->path, "SELECT power_mw FROM gpu_samples"), 612345);
	text = scratch_text(s->path, "SELECT gpu_model || '|' || gpu_driver || '|' || cuda_ver FROM"
				     " sessions");
	assert_string_equal(text, "NVIDIA H200|580.65.06|x"); /* "" leaves what is there */
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_samples_come_back_as_they_were),
		TEST(test_damaged_rows_are_left_out),
		TEST(test_the_writer_stores_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
