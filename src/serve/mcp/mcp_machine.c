/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_machine.c - about this machine rather than a recording: get_check, get_test_report. */
#include "serve/mcp/mcp_tool.h"

#include <stdlib.h>
#include <string.h>

#include "record/check/check.h"
#include "serve/mcp/mcp_clean.h"
#include "serve/mcp/mcp_tsc.h"
#include "base/file.h"
#include "mcp/rpc.h"

#define REPORT_PATH  "logs/test-report.json" /* as published: under the working directory */
#define REPORT_BYTES (512u << 10)

static const char *state_word(enum check_state s)
{
	switch (s) {
	case CHECK_PASS: return "PASS";
	case CHECK_OPTIONAL: return "INFO";
	default: return "FAIL";
	}
}

/* Details of what is as it should be are left out of compact answers. */
static json_t *check_json(const struct check_row *row, bool compact)
{
	bool brief = compact && row->state == CHECK_PASS;

	return json_pack("{s:s, s:s, s:o, s:o, s:o}", "name", row->name, "state",
		state_word(row->state), "value", mcp_clean_string(row->value, MCP_CLEAN_NAME),
		"detail", mcp_clean_string(brief ? "" : row->detail, MCP_CLEAN_TEXT),
		"recommendation", mcp_clean_string(row->advice, MCP_CLEAN_TEXT));
}

void mcp_check(const struct call *c, const json_t *arguments, struct answer *a)
{
	_cleanup_free_ struct check_report *r = calloc(1, sizeof(*r));
	json_t *checks = json_array();
	const struct check_probes *known = mcp_settings_of(c)->probes;
	struct check_probes probes;

	if (!r) {
		json_decref(checks);
		answer_fail(a, "not enough memory");
		return;
	}
	if (!known)
		check_probe(&probes);
	check_run("", known ? known : &probes, r);
	for (size_t i = 0; i < r->count; i++)
		json_array_append_new(checks, check_json(&r->rows[i], mcp_arg_compact(arguments)));
	mcp_reply(a, arguments,
		json_pack("{s:b, s:o}", "ready", check_exit_code(r) == EXIT_OK, "checks", checks));
}

void mcp_test_report(const struct call *c, const json_t *arguments, struct answer *a)
{
	_cleanup_buf_ struct buf b = BUF_INIT(REPORT_BYTES + 1);
	_cleanup_(rpc_error_done) struct rpc_error e = {0};
	_cleanup_json_ json_t *report = NULL;
	int r = file_read(REPORT_PATH, REPORT_BYTES, &b);

	if (r < 0) {
		answer_fail(a, "no %s in the server's working directory (%s)", REPORT_PATH,
			strerror(-r));
		return;
	}
	if (rpc_parse(buf_str(&b), b.len, &report, &e) < 0) {
		answer_fail(a, "%s: %s", REPORT_PATH, e.message);
		return;
	}
	mcp_reply(a, arguments, json_pack("{s:o}", "report", mcp_tsc_full(report)));
}
