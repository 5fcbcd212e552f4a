/* SPDX-License-Identifier: Apache-2.0 */
/* option.c - parses a command line by its described table and prints the help that follows from it.
 *
 * Forms: --name VALUE, --name=VALUE, --flag, --flag=false, -d VALUE, -dVALUE, -vj (flags together),
 * "--" ends the flags. Names are never abbreviated, so that a new flag cannot break a script.
 * Positional arguments may stand anywhere; they are moved behind the flags, in their order.
 * Every command also knows --help (-h), --debug and --config. */
#include "command/option.h"

#include <limits.h>

#include "base/log.h"
#include "base/text.h"
#include "command/config_file.h"
#include "command/program.h"

#define HELP_LEAST 24 /* columns behind a flag's name; in narrower terminals nothing is broken */
#define PID_LIMIT  4194304 /* the kernel's PID_MAX_LIMIT on 64-bit machines */

static const struct option_row *find_long(const struct command *c, const char *name, size_t len)
{
	return FIND_ROW(
		o, c->options, name, strlen(o->name) == len && strncmp(o->name, name, len) == 0);
}

static const struct option_row *find_letter(const struct command *c, char letter)
{
	return FIND_ROW(o, c->options, name, o->letter == letter);
}

static int bad_value(
	const struct option_row *o, const char *value, const char *want, struct errinfo *reterr)
{
	return errinfo_set(
		reterr, -EINVAL, "--%s: '%.100s' is not %s", o->name, TEXT_SHOWN(value), want);
}

static int parse_flag(const struct option_row *o, const char *v, bool *ret, struct errinfo *reterr)
{
	static const char *const yes[] = {"true", "1", "yes"}, *const no[] = {"false", "0", "no"};

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		if (strcmp(v, yes[i]) == 0 || strcmp(v, no[i]) == 0) {
			*ret = strcmp(v, yes[i]) == 0;
			return 0;
		}
	}
	return bad_value(o, v, "true or false", reterr);
}

static int parse_int(
	const struct option_row *o, const char *v, int64_t *ret, struct errinfo *reterr)
{
	char want[96];
	char *end;
	long long n;

	errno = 0;
	n = strtoll(v, &end, 10);
	if (errno || end == v || *end || n < o->min || n > o->max) {
		snprintf(want, sizeof(want), "a whole number from %" PRId64 " to %" PRId64, o->min,
			o->max);
		return bad_value(o, v, want, reterr);
	}
	*ret = n;
	return 0;
}

static int parse_number(
	const struct option_row *o, const char *v, double *ret, struct errinfo *reterr)
{
	double min = (double)o->min / 1000, max = (double)o->max / 1000;
	char *end;
	double n = strtod(v, &end);

	/* "0x1p3", "inf" and "nan" are numbers for strtod() */
	if (end == v || *end || strspn(v, "0123456789.-") != strlen(v) || !(n >= min && n <= max)) {
		return bad_value(o, v, FORMATTED(96, "a number from %g to %g", min, max), reterr);
	}
	*ret = n;
	return 0;
}

static int add_pid(
	const struct option_row *o, uint32_t pid, struct option_pids *list, struct errinfo *reterr)
{
	if (EXISTS(i, list->count, list->pid[i] == pid))
		return 0;
	if (list->count == ARRAY_SIZE(list->pid))
		return errinfo_set(reterr, -EINVAL, "--%s: more than %zu processes", o->name,
			ARRAY_SIZE(list->pid));
	list->pid[list->count++] = pid;
	return 0;
}

static int parse_pids(
	const struct option_row *o, const char *v, struct option_pids *list, struct errinfo *reterr)
{
	const char *p = v;

	for (;;) {
		char *end;
		unsigned long n;
		int r;

		errno = 0;
		n = *p >= '0' && *p <= '9' ? strtoul(p, &end, 10) : 0;
		if (n < 1 || n > PID_LIMIT || (*end && *end != ','))
			return bad_value(o, v, "a process id or a list like 12,34", reterr);
		r = add_pid(o, (uint32_t)n, list, reterr);
		if (r < 0 || !*end)
			return r;
		p = end + 1;
	}
}

static int add_string(const struct option_row *o, const char *v, struct option_strings *list,
	struct errinfo *reterr)
{
	if (list->count == OPTION_STRINGS_MAX)
		return errinfo_set(reterr, -EINVAL, "--%s: given more than %d times", o->name,
			OPTION_STRINGS_MAX);
	list->value[list->count++] = v;
	return 0;
}

static int refuse(const struct option_row *o, struct errinfo *reterr)
{
	return errinfo_set_exit(
		reterr, EXIT_USAGE, -EOPNOTSUPP, "--%s is not accepted: %s", o->name, o->help);
}

static int parse_value(
	const struct option_row *o, const char *v, void *settings, struct errinfo *reterr)
{
	void *field = (char *)settings + o->offset;
	int r;

	switch (o->kind) {
	case OPTION_FLAG: return parse_flag(o, v, field, reterr);
	case OPTION_STRING:
		if (!*v)
			return errinfo_set(reterr, -EINVAL, "--%s: the value is empty: give %s",
				o->name, o->value_name);
		*(const char **)field = v;
		return 0;
	case OPTION_TEXT: *(const char **)field = v; return 0;
	case OPTION_INT: return parse_int(o, v, field, reterr);
	case OPTION_NUMBER: return parse_number(o, v, field, reterr);
	case OPTION_DURATION:
		r = text_parse_duration(v, field);
		if (r == 0 && *(uint64_t *)field < (uint64_t)o->min)
			return bad_value(o, v, "longer than 0", reterr);
		return r == 0 ? 0 : bad_value(o, v, "a duration like 30s, 500ms or 1h30m", reterr);
	case OPTION_SIZE:
		r = text_parse_size(v, field);
		return r == 0 ? 0 : bad_value(o, v, "a size like 10g, 500m or 0", reterr);
	case OPTION_PIDS: return parse_pids(o, v, field, reterr);
	case OPTION_STRINGS: return add_string(o, v, field, reterr);
	case OPTION_REFUSED: return refuse(o, reterr);
	}
	return -EINVAL;
}

static int unknown_flag(
	const struct command *c, const char *typed, size_t len, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1024);
	unsigned best = UINT_MAX, distance;
	const char *near = NULL;
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)MIN(len, sizeof(name) - 1), typed);
	text_escape_terminal(&b, name);
	for (const struct option_row *o = c->options; o && o->name; o++) {
		if (!o->hidden && suggest_is_near(name, o->name, &distance) && distance < best) {
			best = distance;
			near = o->name;
		}
	}
	if (near)
		return errinfo_set(reterr, -EINVAL, "unknown flag --%s: did you mean --%s?",
			buf_str(&b), near);
	return errinfo_set(reterr, -EINVAL, "unknown flag --%s", buf_str(&b));
}

/* --config, which every command knows: it says where config_file_load() looks. */
static int parse_config(const char *value, int argc, char **argv, int *i, struct errinfo *reterr)
{
	if (!value && *i + 1 < argc)
		value = argv[++*i];
	if (!value)
		return errinfo_set(reterr, -EINVAL, "--config needs a value: PATH");
	config_file_choose(value);
	return 0;
}

/* One long option at argv[*i]; 1 for --help. */
static int parse_long(const struct command *c, int argc, char **argv, int *i, void *settings,
	struct errinfo *reterr)
{
	const char *name = argv[*i] + 2;
	size_t len = strcspn(name, "=");
	const char *value = name[len] ? name + len + 1 : NULL;
	const struct option_row *o = find_long(c, name, len);

	if (!o && strcmp(name, "help") == 0)
		return 1;
	if (!o && strcmp(name, "debug") == 0) {
		log_set_level(LOG_LEVEL_DEBUG);
		return 0;
	}
	if (!o && !program_running()->no_config && len == strlen("config") &&
		strncmp(name, "config", len) == 0)
		return parse_config(value, argc, argv, i, reterr);
	if (!o)
		return unknown_flag(c, name, len, reterr);
	if (o->kind == OPTION_REFUSED)
		return refuse(o, reterr);
	if (!value && o->kind == OPTION_FLAG)
		value = "true";
	if (!value && *i + 1 < argc)
		value = argv[++*i];
	if (!value)
		return errinfo_set(
			reterr, -EINVAL, "--%s needs a value: %s", o->name, o->value_name);
	return parse_value(o, value, settings, reterr);
}

/* The letters of argv[*i]; 1 for -h. */
static int parse_letters(const struct command *c, int argc, char **argv, int *i, void *settings,
	struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(64);
	int r;

	for (const char *p = argv[*i] + 1; *p; p++) {
		const struct option_row *o = find_letter(c, *p);
		const char *value = p[1] ? p + 1 : NULL;

		if (!o && *p == 'h')
			return 1;
		if (!o) {
			text_escape_terminal_len(&b, p, 1);
			return errinfo_set(reterr, -EINVAL, "unknown flag -%s", buf_str(&b));
		}
		if (o->kind == OPTION_FLAG) {
			r = parse_value(o, "true", settings, reterr);
			if (r < 0)
				return r;
			continue;
		}
		if (!value && *i + 1 < argc)
			value = argv[++*i];
		if (!value)
			return errinfo_set(
				reterr, -EINVAL, "-%c needs a value: %s", *p, o->value_name);
		return parse_value(o, value + (*value == '='), settings, reterr);
	}
	return 0;
}

/* Moves argv[at] to the end; what stood behind it moves one place forward. */
static void move_last(int argc, char **argv, int at)
{
	char *moved = argv[at];

	memmove(&argv[at], &argv[at + 1], (size_t)(argc - at - 1) * sizeof(*argv));
	argv[argc - 1] = moved;
}

static bool is_recording(const struct command *c, const char *path)
{
	size_t len = strlen(path);

	if (!find_long(c, "db", 2) || (c->runs_command && access(path, X_OK) == 0))
		return false;
	return access(path, F_OK) == 0 || (len > 3 && strcmp(path + len - 3, ".db") == 0);
}

int option_parse(const struct command *c, int argc, char **argv, void *settings, int *ret_first,
	struct errinfo *reterr)
{
	int left = argc - 1; /* arguments not looked at yet */
	int i = 1, args = 0, r;

	while (left > 0) {
		int before = i;

		if (strcmp(argv[i], "--") == 0 && c->runs_command && !args) {
			*ret_first = i + 1;
			return left > 1 ? 0
					: errinfo_set(reterr, -EINVAL,
						  "%s: no command given after --", c->name);
		}
		if (strcmp(argv[i], "--") == 0) {
			/* what follows is positional, behind those moved to the end already */
			i++;
			left--;
			for (; left > 0; left--, args++)
				move_last(argc, argv, i);
			break;
		}
		if (argv[i][0] != '-' || !argv[i][1]) {
			move_last(argc, argv, i);
			args++;
			left--;
			continue;
		}
		r = (argv[i][1] == '-' ? parse_long : parse_letters)(
			c, argc - args, argv, &i, settings, reterr);
		if (r != 0)
			return r;
		i++;
		left -= i - before;
	}
	if (args > c->max_args) {
		_cleanup_buf_ struct buf b = BUF_INIT(1024);

		text_escape_terminal(&b, argv[argc - args + c->max_args]);
		return errinfo_set(reterr, -EINVAL, "%s: unexpected argument '%.100s'%s", c->name,
			buf_str(&b),
			is_recording(c, argv[argc - args + c->max_args])
				? ": use --db to name a recording"
			: c->runs_command ? ": put the command to run after --"
					  : "");
	}
	*ret_first = argc - args;
	return 0;
}

static void format_names(const struct option_row *o, char *out, size_t size)
{
	char letter[8] = "    ";

	if (o->letter)
		snprintf(letter, sizeof(letter), "-%c, ", o->letter);
	snprintf(out, size, "%s--%s%s%s", letter, o->name, o->value_name ? " " : "",
		o->value_name ? o->value_name : "");
}

static const struct option_row builtins[] = {
	{.name = "config", /* the first: see option_builtins() */
		.value_name = "PATH",
		.help = "configuration file (default: $INGERO_CONFIG, else the first ingero.yaml found)"},
	{.name = "debug", .help = "log progress to stderr"},
	{.name = "help", .letter = 'h', .help = "show this help"},
	{0},
};

const struct option_row *option_builtins(void)
{
	return program_running()->no_config ? builtins + 1 : builtins;
}

void option_print_help(const char *program, const struct command *c)
{
	const struct option_row *const tables[] = {c->options, option_builtins()};
	size_t columns = (size_t)program_columns(STDOUT_FILENO), width = 0;
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 18);
	char names[96];

	for (size_t t = 0; t < ARRAY_SIZE(tables); t++)
		for (const struct option_row *o = tables[t]; o && o->name; o++) {
			format_names(o, names, sizeof(names));
			width = o->hidden ? width : MAX(width, strlen(names));
		}
	printf("%s\n\nUsage:\n  %s %s\n\nFlags:\n", c->summary, program, c->synopsis);
	for (size_t t = 0; t < ARRAY_SIZE(tables); t++)
		for (const struct option_row *o = tables[t]; o && o->name; o++) {
			format_names(o, names, sizeof(names));
			if (o->hidden)
				continue;
			buf_printf(&b, "  %-*s  ", (int)width, names);
			text_wrap(&b, width + 4, columns > width + HELP_LEAST ? columns : SIZE_MAX,
				o->help);
		}
	fputs(buf_str(&b), stdout);
	if (c->details)
		printf("\n%s\n", c->details);
}
