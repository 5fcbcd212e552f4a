/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_check.c - `ingero check`: prints the rows of check.h for people or as JSON. */

#include "base/text.h"
#include "record/check/check.h"
#include "cli/commands.h"
#include "cli/support_bundle.h"
#include "command/program.h"
#include "json/writer.h"

struct check_settings {
	bool json;
	const char *bundle, *db, *log;
};

static const struct option_row check_options[] = {
	{.name = "json",
		.kind = OPTION_FLAG,
		.offset = offsetof(struct check_settings, json),
		.help = "print one JSON object"},
	{.name = "support-bundle",
		.kind = OPTION_STRING,
		.offset = offsetof(struct check_settings, bundle),
		.value_name = "PATH",
		.help = "also write a tar file for a bug report, without secrets, and list its contents"},
	{.name = "db",
		.kind = OPTION_STRING,
		.offset = offsetof(struct check_settings, db),
		.value_name = "PATH",
		.help = "recording whose counts of events and losses go into the bundle (default: $INGERO_DB, else ~/.ingero/ingero.db)"},
	{.name = "log",
		.kind = OPTION_STRING,
		.offset = offsetof(struct check_settings, log),
		.value_name = "PATH",
		.help = "log (`trace --log`) whose last lines go into the bundle"},
	{0},
};

static bool is_utf8_terminal(void)
{
	static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	if (!isatty(STDOUT_FILENO))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		const char *v = getenv(variables[i]);

		if (v && *v)
			return strcasestr(v, "utf-8") || strcasestr(v, "utf8");
	}
	return false;
}

static const char *mark(const struct check_row *row, bool utf8)
{
	switch (row->state) {
	case CHECK_PASS: return utf8 ? "✓ " : "ok";
	case CHECK_OPTIONAL: return utf8 ? "~ " : "--";
	case CHECK_NO_FEATURE:
	case CHECK_NO_PRIVILEGE: break;
	}
	return utf8 ? "✗ " : "!!";
}

static void print_escaped(const char *prefix, const char *s, size_t len)
{
	_cleanup_buf_ struct buf b = BUF_INIT(16384);

	text_escape_terminal_len(&b, s, len);
	printf("%s%s\n", prefix, buf_str(&b));
}

static void print_row(const struct check_row *row, bool utf8)
{
	print_escaped(FORMATTED(64, "%s  %-20s ", mark(row, utf8), row->name), row->value,
		strlen(row->value));
	for (const char *p = row->detail; *p;) {
		size_t len = strcspn(p, "\n");

		print_escaped("      ", p, len);
		p += len + (p[len] != 0);
	}
	if (row->advice[0])
		print_escaped("      -> ", row->advice, strlen(row->advice));
}

static void print_verdict(const struct check_report *r, enum exit_code code)
{
	const char *separator = "";

	if (code == EXIT_OK) {
		printf("\nready to trace%s\n",
			r->has_gpu ? "" : " (no GPU: only the stand-in GPU can be traced)");
		return;
	}
	printf("\nnot ready to trace: ");
	for (size_t i = 0; i < r->count; i++) {
		if (r->rows[i].state < CHECK_NO_FEATURE)
			continue;
		printf("%s%s", separator, r->rows[i].name);
		separator = ", ";
	}
	printf("%s\n", code == EXIT_NO_PERMISSION
			       ? " (only privileges are missing: try sudo; in a container "
				 "`--user 0 --privileged --pid=host`)"
			       : "");
}

static void put_text(struct json_writer *w, const char *key, const char *value)
{
	if (!value[0])
		return;
	json_string_member(w, key, value);
}

static void put_json(struct json_writer *to, const struct check_report *r, enum exit_code code)
{
	struct json_writer w = *to;
	bool all = true;

	for (size_t i = 0; i < r->count; i++)
		all &= r->rows[i].state == CHECK_PASS;
	w.indent = true;
	json_begin_object(&w);
	JSON_PUT(&w, JSON_B("all_passed", all), JSON_B("ready", code == EXIT_OK));
	json_begin_array_member(&w, "checks");
	for (size_t i = 0; i < r->count; i++) {
		const struct check_row *row = &r->rows[i];

		json_begin_object(&w);
		put_text(&w, "name", row->name);
		json_bool_member(&w, "pass", row->state == CHECK_PASS);
		if (row->optional || row->state == CHECK_OPTIONAL)
			json_bool_member(&w, "optional", true);
		put_text(&w, "value", row->value);
		put_text(&w, "detail", row->detail);
		put_text(&w, "recommendation", row->advice);
		json_end_object(&w);
	}
	json_end_array(&w);
	json_end_object(&w);
	json_finish(&w); /* a failed stdout is reported once, at exit */
}

static int write_bundle(const struct check_settings *s, const struct check_report *r,
	enum exit_code code, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf json = BUF_INIT(1 << 20);
	struct json_writer w = json_writer_to_buf(&json);

	put_json(&w, r, code);
	buf_putc(&json, '\n');
	fflush(stdout); /* its lines first, then what the bundle says of itself */
	return support_bundle_write(&(struct support_bundle){.path = s->bundle,
					    .check_json = buf_str(&json),
					    .db = s->db,
					    .log = s->log},
		reterr);
}

static int check_command(const struct command *c, void *settings, int argc, char **argv)
{
	const struct check_settings *s = settings;
	_cleanup_free_ struct check_report *r = calloc(1, sizeof(*r));
	bool utf8 = is_utf8_terminal();
	struct check_probes probes;
	struct json_writer w = json_writer_to_file(stdout);
	struct errinfo e = {0};
	enum exit_code code;
	int q;

	if (!r)
		return EXIT_FAILED;
	if (!s->bundle && (s->db || s->log)) {
		q = errinfo_set(&e, -EINVAL, "--db and --log require --support-bundle");
		return dispatch_fail(&e, q);
	}
	check_probe(&probes);
	check_try(&probes);
	check_run("", &probes, r);
	code = check_exit_code(r);
	if (s->json)
		put_json(&w, r, code);
	for (size_t i = 0; !s->json && i < r->count; i++)
		print_row(&r->rows[i], utf8);
	if (!s->json)
		print_verdict(r, code);
	if (!s->bundle)
		return code;
	q = write_bundle(s, r, code, &e);
	return q < 0 ? dispatch_fail(&e, q) : (int)code;
}

const struct command cmd_check = {
	.name = "check",
	.synopsis = "check [flags]",
	.summary = "Check whether this machine can be traced, and how to fix it if not",
	.details =
		"The programs of a trace are loaded for a moment, and one is run. Exit codes: 0\n"
		"tracing can work; 69 the kernel lacks a required feature; 77 only privileges are\n"
		"missing. A missing GPU, driver, library or process does not count.",
	.options = check_options,
	.settings_size = sizeof(struct check_settings),
	.tells_updates = true,
	.run = check_command,
};
