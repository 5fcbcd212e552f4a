/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

#include "store/schema/incident_table.h"

static void assert_valid_json(const char *text)
{
	struct errinfo err = {0};
	sql_stmt *stmt = NULL;
	sql_db *db = NULL;

	assert_int_equal(sql_open_memory(&db, &err), 0);
	assert_int_equal(sql_prepare(db, "SELECT json_valid(?1)", &stmt, &err), 0);
	assert_int_equal(SQL_BIND(stmt, &err, SQL_S(text)), 0);
	assert_int_equal(sql_step(stmt, &err), 1);
	assert_int_equal(sql_column_int(stmt, 0), 1);
	sql_finalize(stmt);
	sql_close(db);
}

static void test_lists(void **state)
{
	struct incident i = {
		.cause_count = 2, .evidence_count = 2, .step_count = 1, .fix_count = 2};
	_cleanup_buf_ struct buf out = BUF_INIT(4096);

	i.causes[0] = (struct incident_cause){.cause = CAUSE_PREEMPTED,
		.culprit_pid = 7,
		.culprit = "stress",
		.culprit_share = 0.5,
		.ns = 1000,
		.calls = 3};
	i.causes[1] = (struct incident_cause){.cause = CAUSE_UNEXPLAINED, .ns = 10, .calls = 1};
	i.evidence[0] = 5;
	i.evidence[1] = UINT64_MAX;
	i.timeline[0] = (struct incident_step){.time.ns = 99,
		.dur_ns = 1500,
		.layer = "HOST",
		.op = "sched_switch",
		.detail = "x"};
	strcpy(i.fixes[0], "taskset");
	strcpy(i.fixes[1], "nice");
	incident_json_causes(&i, &out);
	assert_string_equal(buf_str(&out),
		"[{\"cause\":\"cpu_preempted\",\"layer\":\"HOST\",\"ns\":1000,\"calls\":3,"
		"\"culprit_pid\":7,\"culprit\":\"stress\",\"culprit_share\":0.5},"
		"{\"cause\":\"unexplained\",\"layer\":\"CUDA\",\"ns\":10,\"calls\":1}]");
	assert_valid_json(buf_str(&out));
	buf_clear(&out);
	incident_json_evidence(&i, "n1", &out);
	assert_string_equal(buf_str(&out), "[\"n1:5\",\"n1:18446744073709551615\"]");
	buf_clear(&out);
	incident_json_timeline(&i, &out);
	assert_string_equal(buf_str(&out), "[{\"layer\":\"HOST\",\"op\":\"sched_switch\","
					   "\"detail\":\"x\",\"dur_us\":1,\"timestamp\":99}]");
	buf_clear(&out);
	incident_json_fixes(&i, &out);
	assert_string_equal(buf_str(&out), "[\"taskset\",\"nice\"]");
	buf_clear(&out);
	incident_json_fixes(&(struct incident){0}, &out);
	assert_string_equal(buf_str(&out), "[]");
}

static void test_any_bytes_give_valid_json(void **state)
{
	_cleanup_buf_ struct buf out = BUF_INIT(1 << 20);
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"\"\\", "[\"\\\"\\\\\"]"}, {"\x01\x7f\n", "[\"\\u0001\\u007f\\u000a\"]"},
		{"\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80",
			"[\"\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80\"]"},
		{"\xff", "[\"\xef\xbf\xbd\"]"}, {"\xc3", "[\"\xef\xbf\xbd\"]"}, /* cut */
		{"\xc0\xaf", "[\"\xef\xbf\xbd\xef\xbf\xbd\"]"},                 /* overlong */
		{"\xed\xa0\x80", "[\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"]"}, /* surrogate */
	};

	for (size_t n = 0; n < ARRAY_SIZE(cases); n++) {
		struct incident i = {.fix_count = 1};

		strcpy(i.fixes[0], cases[n].in);
		buf_clear(&out);
		incident_json_fixes(&i, &out);
		assert_string_equal(buf_str(&out), cases[n].out);
		assert_valid_json(buf_str(&out));
	}
	for (int a = 1; a < 256; a++)
		for (int b = 1; b < 256; b += 7) {
			struct incident i = {.fix_count = 1};

			i.fixes[0][0] = (char)a;
			i.fixes[0][1] = (char)b;
			buf_clear(&out);
			incident_json_fixes(&i, &out);
			assert_int_equal(out.err, 0);
			for (size_t k = 0; k < out.len; k++)
				assert_true((unsigned char)out.data[k] >= 0x20);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_any_bytes_give_valid_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
