/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_audit.c - `ingero-cluster audit verify`: whether an audit file is whole. */

#include "base/text.h"
#include "cluster/cli/commands.h"
#include "cluster/tenant/audit.h"
#include "command/program.h"

struct audit_flags {
	const char *noted;
};

#define OPTION(field) offsetof(struct audit_flags, field)
static const struct option_row audit_options[] = {
	OPTION_ROW(STRING, "noted", OPTION(noted), "HEX",
		"fail unless a line has this SHA-256, noted at an earlier check"),
	{NULL, 0, OPTION_FLAG, 0, NULL, NULL, 0, 0, false},
};

static void print_span(const char *path, const struct audit_span *s)
{
	_cleanup_buf_ struct buf b = BUF_INIT(8192);

	text_escape_terminal(&b, path);
	if (!s->first) {
		printf("%s: no lines\n", buf_str(&b));
		return;
	}
	printf("%s: %s, numbers %llu to %llu, complete and in order\n", buf_str(&b),
		TEXT_PLURAL(s->last - s->first + 1, "lines"), (unsigned long long)s->first,
		(unsigned long long)s->last);
	if (s->is_torn)
		printf("  An incomplete line follows: it is being written, or a crash interrupted it\n");
}

/* check_joint - the file with @s follows the one that ended with @last. */
static int check_joint(const char *path, const struct audit_span *last, const struct audit_span *s,
	struct errinfo *reterr)
{
	if (!last->first || !s->first ||
		(s->first == last->last + 1 && !strcmp(s->before, last->head)))
		return 0;
	return errinfo_set_exit(reterr, EXIT_BAD_DATA, -EBADMSG,
		"%s does not follow the file before it: name the files from the oldest to the newest",
		path);
}

static int verify(const struct audit_flags *f, int count, char **paths, struct errinfo *reterr)
{
	struct audit_span last = {0}, s;
	uint64_t first = 0;
	bool has_noted = !f->noted;

	for (int i = 0; i < count; i++) {
		int r = audit_verify(paths[i], f->noted, &s, reterr);

		r = r ?: check_joint(paths[i], &last, &s, reterr);
		if (r < 0)
			return r;
		print_span(paths[i], &s);
		has_noted |= s.has_noted;
		first = first ? first : s.first;
		last = s.first ? s : last;
	}
	if (first > 1)
		printf("Lines before number %llu are in older files\n", (unsigned long long)first);
	if (last.first)
		printf("SHA-256 of the last line: %s\n", last.head);
	if (!has_noted)
		return errinfo_set_exit(reterr, EXIT_BAD_DATA, -EBADMSG,
			"no line has the SHA-256 that was noted: lines at the end were removed or changed, or are in another file");
	return 0;
}

static int audit_run(const struct command *cmd _unused_, void *settings, int argc, char **argv)
{
	struct errinfo e = {0};
	int r;

	if (argc < 2 || strcmp(argv[0], "verify") != 0)
		r = errinfo_set(&e, -EINVAL, "name the files: ingero-cluster audit verify FILE");
	else
		r = verify(settings, argc - 1, argv + 1, &e);
	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_audit = {
	.name = "audit",
	.synopsis = "audit verify [--noted HEX] FILE…",
	.summary = "Check that no line of an audit file was changed or removed",
	.details =
		"Every line of the audit file of `ingero-cluster echo` contains the SHA-256 of the line before\n"
		"it. Lines removed from the end cannot be detected that way: write down the last SHA-256\n"
		"that is printed, and give it with --noted at the next check. Name several files from the\n"
		"oldest to the newest. Exits 65 if something is wrong.\n"
		"  ingero-cluster audit verify audit.log\n"
		"  ingero-cluster audit verify audit.log.2 audit.log.1 audit.log",
	.options = audit_options,
	.settings_size = sizeof(struct audit_flags),
	.max_args = 65,
	.run = audit_run,
};
