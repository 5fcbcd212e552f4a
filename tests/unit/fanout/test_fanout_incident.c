/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "answer/encode/report_json.h"
#include "fanout/fanout.h"
#include "incident_fixture.h"

static const struct fanout_source gpu1 = {"gpu-1:8080", "gpu1", 0},
				  gpu2 = {"gpu-2:8080", "gpu2", 1};

static int take(const char *body, const struct fanout_source *who, struct fanout_incidents *l,
	struct fanout_extent *x, struct errinfo *e)
{
	return fanout_incident_read(body, strlen(body), who, l, x, e);
}

static const char incident[] =
	"{\"incidents\":[{\"id\":\"i1\",\"node\":\"\",\"severity\":\"HIGH\",\"problem\":\"tail\","
	"\"summary\":\"sync is slow\",\"root_cause\":\"hog\",\"explanation\":\"because\","
	"\"first_seen_ns\":5,\"calls\":10,\"slow_calls\":3,\"baseline_ns\":7,\"tail_ratio\":8.5,"
	"\"excess_ns\":1000,\"explained\":0.9,\"confidence\":0.75,\"completeness\":null,"
	"\"count\":3,\"unit\":\"slow calls\",\"culprit_rank\":2,\"op\":\"cudaStreamSync\","
	"\"causes\":[{\"cause\":\"cpu_preempted\"}],"
	"\"timeline\":[{\"timestamp_ns\":42,\"duration_ns\":9,\"layer\":\"HOST\",\"op\":\"x\","
	"\"detail\":\"d\"}],\"fixes\":[\"a\",\"b\"],\"evidence\":[11,12],\"evidence_sql\":\"SELECT "
	"1\","
	"\"where\":{\"py_file\":\"train.py\",\"py_func\":\"forward\",\"py_line\":142,\"share\":0."
	"87},"
	"\"new_key\":{\"kept\":[1]}}],"
	"\"data\":{\"events\":99,\"completeness\":0.5},\"truncated\":false}";

static void an_incident_is_read(void **state)
{
	struct fanout_incidents l = {0};
	struct fanout_extent x = {0};
	struct errinfo e = {0};
	const struct fanout_incident *i;

	assert_int_equal(take(incident, &gpu1, &l, &x, &e), 0);
	assert_int_equal(l.count, 1);
	i = l.items[0];
	assert_false(i->stored);
	assert_string_equal(i->node, "gpu1"); /* it does not say: who answered */
	assert_string_equal(i->address, "gpu-1:8080");
	assert_int_equal(i->incident.severity, SEVERITY_HIGH);
	assert_string_equal(i->incident.summary, "sync is slow");
	assert_int_equal(i->incident.excess_ns, 1000);
	assert_true(i->incident.explained == 0.9);
	assert_true(i->incident.completeness == -1);
	assert_null(i->incident.unit);
	assert_int_equal(i->incident.culprit_rank, 2);
	assert_int_equal(i->incident.step_count, 1);
	assert_int_equal(i->incident.timeline[0].time.ns, 42);
	assert_int_equal(i->incident.fix_count, 2);
	assert_int_equal(i->incident.evidence_count, 2);
	assert_int_equal(i->incident.evidence[1], 12);
	assert_string_equal(i->where, "forward() at train.py:142");
	assert_true(i->where_share == 0.87);
	assert_true(x.known && x.events == 99 && x.completeness == 0.5);
	/* nothing that the node said is lost in JSON, and who said it stands in front */
	assert_ptr_equal(
		strstr(i->json, "{\"node\":\"gpu1\",\"address\":\"gpu-1:8080\",\"id\":"), i->json);
	assert_non_null(strstr(i->json, "\"new_key\":{\"kept\":[1]}"));
	assert_non_null(strstr(i->json, "\"completeness\":null"));
	fanout_incidents_done(&l);
}

/* Every field that a node writes arrives, by its own name. Source and op are names here, and stay numbers there. */
static void what_a_node_writes_is_read(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct json_writer w = json_writer_to_buf(&b);
	struct fanout_incidents l = {0};
	struct fanout_extent x = {0};
	struct errinfo e = {0};
	struct incident i;
	int compared = 0;

	incident_fill(&i);
	i.unit = "gaps";
	i.source = 1;
	i.op = 3;
	i.pids[0] = 41;
	i.pids[1] = 42;
	i.pid_count = 2;
	json_begin_object(&w);
	json_begin_array_member(&w, "incidents");
	report_json_incident(&w, &i, &(struct report_scope){.node = "gpu1"}, INCIDENT_FULL);
	json_end_array(&w);
	json_end_object(&w);
	assert_int_equal(json_finish(&w), 0);
	assert_int_equal(take(buf_str(&b), &gpu1, &l, &x, &e), 0);
	assert_int_equal(l.count, 1);
	for (int n = 0; n < INCIDENT_FIELD_COUNT; n++) {
		const struct incident_field *f = &incident_fields[n];

		if (!f->key || f->form == INCIDENT_FORM_SOURCE || f->form == INCIDENT_FORM_OP)
			continue;
		if (!incident_has_same(f, &i, &l.items[0]->incident))
			fail_msg("%s did not arrive:\n%s", f->key, buf_str(&b));
		compared++;
	}
	assert_true(compared > 25);
	assert_string_equal(l.items[0]->op, "cudaLaunchKernel");
	assert_int_equal(l.items[0]->incident.pid_count, 2);
	assert_int_equal(l.items[0]->incident.pids[1], 42);
	fanout_incidents_done(&l);
}

static void a_chain_is_read(void **state)
{
	static const char body[] =
		"{\"chains\":[{\"id\":\"c\",\"detected_at\":\"2026-03-24T13:48:44Z\",\"severity\":"
		"\"MEDIUM\",\"summary\":\"s\",\"root_cause\":\"r\",\"recommendations\":[\"f\"],"
		"\"cuda_op\":\"cuMemAlloc\",\"tail_ratio\":5,\"timeline\":[{\"layer\":\"HOST\","
		"\"detail\":\"d\",\"dur_us\":3}],\"node\":\"other\",\"address\":\"forged:1\"}]}";
	struct fanout_incidents l = {0};
	struct fanout_extent x = {0};
	struct errinfo e = {0};
	const struct fanout_incident *i;

	assert_int_equal(take(body, &gpu1, &l, &x, &e), 0);
	i = l.items[0];
	assert_true(i->stored);
	assert_string_equal(i->node, "other");
	assert_string_equal(i->address, "gpu-1:8080");
	assert_null(strstr(i->json, "forged"));
	assert_int_equal(i->detected_ns, 1774360124000000000);
	assert_string_equal(i->op, "cuMemAlloc");
	assert_string_equal(i->incident.fixes[0], "f");
	assert_int_equal(i->incident.timeline[0].dur_ns, 3000);
	assert_false(x.known);
	fanout_incidents_done(&l);
}

static void a_unit_is_kept(void **state)
{
	static const char body[] = "{\"incidents\":[{\"unit\":\"gaps\",\"count\":4}]}";
	struct fanout_incidents l = {0};
	struct fanout_extent x = {0};
	struct errinfo e = {0};

	assert_int_equal(take(body, &gpu1, &l, &x, &e), 0);
	assert_string_equal(l.items[0]->incident.unit, "gaps");
	assert_int_equal(l.items[0]->incident.count, 4);
	assert_int_equal(l.items[0]->incident.severity, SEVERITY_LOW);
	fanout_incidents_done(&l);
}

static void empty_lists_are_answers(void **state)
{
	static const char *const bodies[] = {"{\"chains\":[]}", "{\"chains\":null}",
		"{\"incidents\":[],\"data\":{\"events\":0,\"completeness\":1.0}}"};

	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		struct fanout_incidents l = {0};
		struct fanout_extent x = {0};
		struct errinfo e = {0};

		assert_int_equal(take(bodies[i], &gpu1, &l, &x, &e), 0);
		assert_int_equal(l.count, 0);
	}
}

/* A bad answer leaves what others said as it was. */
static void bad_answers_change_nothing(void **state)
{
	static const char *const bad[] = {"", "{}", "[]", "{\"chains\":{}}", "{\"chains\":[1]}",
		"{\"chains\":[{}", "{\"chains\":[{}]", "{\"chains\":[{\"id\":\"a\"},7]}",
		"{\"chains\":[{}]} {}", "{\"chains\":[],\"incidents\":[]}",
		"{\"chains\":[{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1"};
	struct fanout_incidents l = {0};
	struct fanout_extent x = {0};
	struct errinfo e = {0};

	assert_int_equal(take(incident, &gpu1, &l, &x, &e), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		e.text[0] = 0;
		if (take(bad[i], &gpu2, &l, &x, &e) != -EPROTO)
			fail_msg("taken: %s", bad[i]);
		assert_int_not_equal(strlen(e.text), 0);
		assert_int_equal(l.count, 1);
	}
	fanout_incidents_done(&l);
}

static void long_texts_are_cut_at_a_character(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct fanout_incidents l = {0};
	struct fanout_extent x = {0};
	struct errinfo e = {0};

	buf_puts(&b, "{\"chains\":[{\"summary\":\"");
	for (int i = 0; i < 400; i++)
		buf_puts(&b, "€");
	buf_puts(&b, "\"}]}");
	assert_int_equal(fanout_incident_read(buf_str(&b), b.len, &gpu1, &l, &x, &e), 0);
	assert_int_equal(strlen(l.items[0]->incident.summary), 255);
	assert_int_equal(strlen(strstr(l.items[0]->json, "€")) > 1200, 1);
	fanout_incidents_done(&l);
}

static void ceilings_hold(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(8 << 20);
	struct fanout_incidents l = {0};
	struct fanout_extent x = {0};
	struct errinfo e = {0};

	buf_puts(&b, "{\"chains\":[{}");
	for (int i = 0; i < FANOUT_INCIDENTS_MAX + 4; i++)
		buf_puts(&b, ",{}");
	buf_puts(&b, "]}");
	assert_int_equal(fanout_incident_read(buf_str(&b), b.len, &gpu1, &l, &x, &e), 0);
	assert_int_equal(l.count, FANOUT_INCIDENTS_MAX);
	assert_int_equal(l.left_out, 5);
	fanout_incidents_done(&l);

	buf_clear(&b);
	buf_puts(&b, "{\"chains\":[{\"x\":[0");
	for (int i = 0; i < FANOUT_INCIDENT_JSON; i++)
		buf_puts(&b, ",1");
	buf_puts(&b, "]}]}");
	assert_int_equal(fanout_incident_read(buf_str(&b), b.len, &gpu1, &l, &x, &e), -EPROTO);
	assert_int_equal(l.count, 0);
	fanout_incidents_done(&l);
}

static void the_worst_come_first(void **state)
{
	static const char
		one[] = "{\"chains\":[{\"id\":\"a\",\"severity\":\"MEDIUM\",\"tail_ratio\":5},"
			"{\"id\":\"b\",\"severity\":\"LOW\"},{\"id\":\"c\",\"severity\":"
			"\"MEDIUM\",\"tail_ratio\":9}]}",
		two[] = "{\"incidents\":[{\"id\":\"d\",\"severity\":\"MEDIUM\",\"excess_ns\":7},"
			"{\"id\":\"e\",\"severity\":\"CRITICAL\"},{\"id\":\"f\",\"severity\":"
			"\"HIGH\"},{\"id\":\"a2\",\"severity\":\"MEDIUM\",\"tail_ratio\":5}]}";
	static const char *const order[] = {"e", "f", "d", "c", "a", "a2", "b"};
	struct fanout_incidents l = {0};
	struct fanout_extent x = {0};
	struct errinfo e = {0};

	assert_int_equal(take(two, &gpu2, &l, &x, &e), 0);
	assert_int_equal(take(one, &gpu1, &l, &x, &e), 0);
	fanout_incident_sort(&l);
	assert_int_equal(l.count, ARRAY_SIZE(order));
	for (size_t i = 0; i < l.count; i++)
		assert_string_equal(l.items[i]->incident.id, order[i]);
	fanout_incidents_done(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_incident_is_read),
		cmocka_unit_test(what_a_node_writes_is_read),
		cmocka_unit_test(a_chain_is_read),
		cmocka_unit_test(a_unit_is_kept),
		cmocka_unit_test(empty_lists_are_answers),
		cmocka_unit_test(bad_answers_change_nothing),
		cmocka_unit_test(long_texts_are_cut_at_a_character),
		cmocka_unit_test(ceilings_hold),
		cmocka_unit_test(the_worst_come_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
