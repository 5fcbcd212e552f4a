/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_machine.c - about this machine rather than a recording: get_check, get_test_report. */
#include "serve/mcp/mcp_tool.h"

#include <stdlib.h>
#include <string.h>

#include "record/check/check.h"
#include "base/file.h"

#define REPORT_PATH  "logs/test-report.json" /* as published: under the working directory */
#define SAY_BYTES    8192
#define REPORT_BYTES (512u << 10)

static const char *state_word(enum check_state s)
{
	switch (s) {
	case CHECK_PASS: return "PASS";
	case CHECK_OPTIONAL: return "INFO";
	default: return "FAIL";
	}
}

/* Details of what is as it should be are left out of short answers. */
static void put_check(struct json_writer *w, const struct check_row *row, bool full)
{
	json_begin_object(w);
	json_string_member(w, "name", row->name);
	json_string_member(w, "state", state_word(row->state));
	json_string_member(w, "value", row->value);
	if (full || row->state != CHECK_PASS)
		json_string_member(w, "detail", row->detail);
	if (row->advice[0])
		json_string_member(w, "fix", row->advice);
	json_end_object(w);
}

static void say_check(struct buf *b, const struct check_report *r)
{
	buf_puts(b, check_exit_code(r) == EXIT_OK ? "This machine can be traced."
						  : "This machine cannot be traced as it is.");
	for (size_t i = 0; i < r->count; i++)
		if (r->rows[i].state != CHECK_PASS && r->rows[i].state != CHECK_OPTIONAL)
			buf_printf(b, "\n%s: %s. %s", r->rows[i].name, r->rows[i].detail,
				r->rows[i].advice);
}

void mcp_check(const struct call *c, const json_t *arguments, struct answer *a)
{
	_cleanup_buf_ struct buf say = BUF_INIT(SAY_BYTES);
	_cleanup_free_ struct check_report *r = calloc(1, sizeof(*r));
	const struct check_probes *known = mcp_settings_of(c)->probes;
	struct json_builder tree = mcp_builder();
	struct json_writer w = json_writer_to_tree(&tree);
	struct check_probes probes;

	if (!r) {
		answer_fail(a, "not enough memory");
		return;
	}
	if (!known)
		check_probe(&probes);
	check_run("", known ? known : &probes, r);
	json_begin_object(&w);
	json_bool_member(&w, "ready", check_exit_code(r) == EXIT_OK);
	json_begin_array_member(&w, "checks");
	for (size_t i = 0; i < r->count; i++)
		put_check(&w, &r->rows[i], json_is_false(json_object_get(arguments, "tsc")));
	json_end_array(&w);
	json_end_object(&w);
	json_finish(&w);
	say_check(&say, r);
	mcp_reply(a, tree.root, &say);
}

void mcp_test_report(
	const struct call *c _unused_, const json_t *arguments _unused_, struct answer *a)
{
	_cleanup_buf_ struct buf b = BUF_INIT(REPORT_BYTES + 1), say = BUF_INIT(256);
	struct json_builder tree = mcp_builder();
	struct json_writer w = json_writer_to_tree(&tree);
	int r = file_read(REPORT_PATH, REPORT_BYTES, &b);

	if (r < 0) {
		answer_fail(a, "no %s in the server's working directory (%s)", REPORT_PATH,
			strerror(-r));
		return;
	}
	json_begin_object(&w);
	json_key(&w, "report");
	mcp_put_json(&w, buf_str(&b));
	json_end_object(&w);
	json_finish(&w);
	buf_puts(&say, "The report of the last test run.");
	mcp_reply(a, tree.root, &say);
}
