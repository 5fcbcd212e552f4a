/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_json.c - an incident as JSON is complete, and hostile names cannot break it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "answer/encode/report_json.h"
#include "incident_fixture.h"
#include "wire/names.h"

static const struct report_scope scope;

static void assert_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text);
}

/* Outside strings, what is opened is closed, in order: enough to tell that nothing broke out. */
static void assert_balanced(const char *json)
{
	char stack[64];
	size_t depth = 0;
	bool quoted = false;

	for (const char *s = json; *s; s++) {
		if (quoted && *s == '\\')
			s++;
		else if (*s == '"')
			quoted = !quoted;
		else if (!quoted && (*s == '{' || *s == '['))
			stack[depth++] = *s;
		else if (!quoted && (*s == '}' || *s == ']'))
			assert_int_equal(stack[--depth], *s == '}' ? '{' : '[');
		assert_true((unsigned char)*s >= ' ' || *s == '\n');
		assert_in_range(depth, 0, sizeof(stack) - 1);
	}
	assert_int_equal(depth, 0);
	assert_false(quoted);
}

static void an_incident_is_complete(void **state)
{
	static const char *const keys[] = {"\"severity\": \"HIGH\"", "\"pid\": 4821",
		"\"source\": \"cuda\"", "\"op\": \"cudaStreamSync\"", "\"completeness\": null",
		"\"causes\": [", "\"cause\": \"cpu_preempted\"", "\"culprit_pid\": 8821",
		"\"culprit\": \"sim-cpu-hog\"", "\"timeline\": [", "\"layer\": \"CUDA\"",
		"\"fixes\": [", "\"evidence\": ["};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct incident i;

	incident_fill(&i);
	i.pid = 4821;
	i.source = SOURCE_CUDA;
	i.op = CUDA_STREAM_SYNC;
	i.completeness = -1;
	i.causes[0] = (struct incident_cause){
		.cause = CAUSE_PREEMPTED, .culprit_pid = 8821, .culprit = "sim-cpu-hog"};
	i.cause_count = 1;
	i.timeline[0] = (struct incident_step){.layer = "CUDA"};
	i.step_count = 1;
	report_json(&b, &i, 1, &scope);
	assert_int_equal(b.err, 0);
	assert_balanced(buf_str(&b));
	for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
		assert_contains(buf_str(&b), keys[k]);
	for (int n = 0; n < INCIDENT_FIELD_COUNT; n++) {
		const struct incident_field *f = &incident_fields[n];
		char key[64];

		snprintf(key, sizeof(key), "\"%s\": ", f->key ? f->key : "id");
		if (n != INCIDENT_F_DETECTED) /* only of stored verdicts */
			assert_contains(buf_str(&b), key);
	}
	i.completeness = 0.5;
	buf_clear(&b);
	report_json(&b, &i, 1, &scope);
	assert_contains(buf_str(&b), "\"completeness\": 0.5");
}

/* A line of `trace --json` has less than an assistant's list, and that less than the whole. */
static void who_is_shown_what(void **state)
{
	static const struct {
		const char *key;
		enum incident_show from;
	} keys[] = {{"\"id\":", INCIDENT_LINE}, {"\"problem\":\"slow-call\"", INCIDENT_LINE},
		{"\"count\":5", INCIDENT_LINE}, {"\"fixes\":[\"stop it\"]", INCIDENT_LINE},
		{"\"comm\":", INCIDENT_BRIEF}, {"\"causes\":", INCIDENT_BRIEF},
		{"\"culprit_rank\":0", INCIDENT_BRIEF}, {"\"calls\":", INCIDENT_FULL},
		{"\"period_confidence\":", INCIDENT_FULL},
		{"\"unit\":\"slow calls\"", INCIDENT_FULL}};
	struct incident i = {.slow_calls = 5,
		.fixes = {"stop it"},
		.fix_count = 1,
		.period_steps = 3,
		.period_confidence = 0.5};

	for (enum incident_show show = INCIDENT_LINE; show <= INCIDENT_FULL; show++) {
		_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
		struct json_writer w = json_writer_to_buf(&b);

		json_begin_object(&w);
		report_json_fields(&w, &i, show);
		json_end_object(&w);
		assert_int_equal(json_finish(&w), 0);
		assert_balanced(buf_str(&b));
		for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
			if (!strstr(buf_str(&b), keys[k].key) != (show < keys[k].from))
				fail_msg("%s, shown to %d:\n%s", keys[k].key, show, buf_str(&b));
		assert_null(strstr(buf_str(&b), "since_ns")); /* there is none */
	}
}

static void names_cannot_break_out(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct incident i = {.comm = "\"}],\n", .summary = "\x1b[2J\"{", .cause_count = 1};

	memcpy(i.causes[0].culprit, "\xc3\x28\"]", 5);
	report_json(&b, &i, 1, &scope);
	assert_balanced(buf_str(&b));
	assert_contains(buf_str(&b), "\"comm\": \"\\\"}],\\u000a\"");
	assert_contains(buf_str(&b), "\\u001b[2J\\\"{");
	assert_contains(buf_str(&b), "\uFFFD(\\\"]");
}

static void nothing_is_an_empty_array(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	report_json(&b, NULL, 0, &scope);
	assert_string_equal(buf_str(&b), "[]\n");
}

static void stored_verdicts(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	const struct incident_row row = {.id = "c1",
		.detected_ns = -5,
		.severity = "HIGH",
		.summary = "slow",
		.root_cause = "disk \"x\"",
		.fixes = "one\ntwo",
		.timeline = "HOST\t5 switches\t12\nCUDA\tp99\t",
		.tail_ratio = 4.5};

	report_json_chains(&b, &row, 1);
	assert_balanced(buf_str(&b));
	assert_contains(buf_str(&b), "\"root_cause\": \"disk \\\"x\\\"\"");
	assert_contains(buf_str(&b), "\"detected_at\": -5");
	assert_contains(buf_str(&b), "\"fixes\": [\n      \"one\",\n      \"two\"\n    ]");
	assert_contains(buf_str(&b), "\"detail\": \"5 switches\",\n        \"dur_us\": 12");
	assert_contains(buf_str(&b), "\"detail\": \"p99\"\n");
	assert_contains(buf_str(&b), "\"tail_ratio\": 4.5");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_incident_is_complete),
		cmocka_unit_test(who_is_shown_what),
		cmocka_unit_test(names_cannot_break_out),
		cmocka_unit_test(nothing_is_an_empty_array),
		cmocka_unit_test(stored_verdicts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
