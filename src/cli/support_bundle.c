/* SPDX-License-Identifier: Apache-2.0 */
/* support_bundle.c - see support_bundle.h. Each part is a row of a table: the README in the bundle is written from
 * it, so that it says what is there. A part that cannot be had says why in its place. */
#include "cli/support_bundle.h"

#include <ctype.h>
#include <strings.h>
#include <sys/utsname.h>

#include "answer/encode/report_json.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/output.h"
#include "base/path_user.h"
#include "base/text.h"
#include "cli/recording_option.h"
#include "command/config_file.h"
#include "config.h"
#include "sql/sql_worker.h"
#include "store/nodedb.h"

/* By lines, not by YAML, so that also a file that is not valid can be shown: what
 * is in doubt is masked. */

#define MASK "***"

static bool ends_with(const char *s, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && !strncasecmp(s + len - n, end, n);
}

static bool is_secret(const char *key, size_t len)
{
	static const char *const words[] = {"token", "secret", "password", "passwd", "key",
		"bearer", "auth", "credential", "header"};
	static const char *const names[] = {"_file", "_env", "_cert", "client_key", "tls_key"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (ends_with(key, len, names[i]))
			return false; /* where it is, not what it is */
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		for (size_t at = 0; at + strlen(words[i]) <= len; at++)
			if (!strncasecmp(key + at, words[i], strlen(words[i])))
				return true;
	return false;
}

/* The value, with what may be secret in URLs masked: "//user:password@" and "?query". */
static void put_value(struct buf *b, const char *s, size_t len)
{
	const char *end = s + len, *slashes = memmem(s, len, "//", 2);
	const char *at = slashes ? memchr(slashes, '@', (size_t)(end - slashes)) : NULL;
	const char *query;

	if (at) {
		buf_append(b, s, (size_t)(slashes + 2 - s));
		buf_puts(b, MASK);
		s = at;
	}
	query = slashes ? memchr(s, '?', (size_t)(end - s)) : NULL;
	buf_append(b, s, (size_t)((query ? query : end) - s));
	if (query)
		buf_puts(b, "?" MASK);
}

/* Where a comment begins: '#' at the start or after a blank. In quotes too: what is cut off is not shown. */
static size_t without_comment(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (s[i] == '#' && (i == 0 || isblank((unsigned char)s[i - 1])))
			return i;
	return len;
}

/* What stands deeper than a secret key is its value, on lines of its own. */
void mask_yaml(struct buf *b, const char *text)
{
	size_t hidden_below = SIZE_MAX;

	while (*text) {
		size_t whole = strcspn(text, "\n"), len = without_comment(text, whole);
		size_t indent = strspn(text, " -"), key;
		const char *colon;

		colon = len > indent ? memchr(text + indent, ':', len - indent) : NULL;
		key = colon ? (size_t)(colon - text) - indent : 0;
		if (indent < len && indent <= hidden_below)
			hidden_below = SIZE_MAX;
		if (hidden_below != SIZE_MAX && indent < len) {
			buf_append(b, text, indent);
			buf_puts(b, MASK);
		} else if (key && is_secret(text + indent, key)) {
			buf_append(b, text, (size_t)(colon + 1 - text));
			buf_puts(b, " " MASK);
			hidden_below = indent;
		} else {
			put_value(b, text, len);
		}
		buf_putc(b, '\n');
		text += whole + (text[whole] == '\n');
	}
}

#define BUNDLE_MAX (16u << 20)
#define PART_MAX   (2u << 20)
#define LOG_LINES  200
#define LOG_READ   (256u << 10)

typedef void part_fn(const struct support_bundle *s, struct buf *b);

static void put_failure(struct buf *b, const struct errinfo *e, int err)
{
	buf_printf(b, "not available: %s\n", e->text[0] ? e->text : strerror(-err));
}

static void put_check(const struct support_bundle *s, struct buf *b)
{
	buf_puts(b, s->check_json);
}

static void put_version(const struct support_bundle *s _unused_, struct buf *b)
{
	struct utsname u;
	int r;

	uname(&u);
	buf_printf(b, "ingero %s\n%s %s %s %s\n\n", INGERO_VERSION, u.sysname, u.release, u.version,
		u.machine);
	r = file_read("/etc/os-release", 16384, b);
	if (r < 0)
		put_failure(b, &(struct errinfo){0}, r);
}

/* Only the options that tracing depends on. */
static void put_options(struct buf *b, const char *release)
{
	static const char *const words[] = {"CONFIG_BPF", "CONFIG_DEBUG_INFO_BTF", "CONFIG_UPROBE",
		"CONFIG_KPROBE", "CONFIG_FPROBE", "CONFIG_FTRACE", "CONFIG_PERF_EVENTS",
		"CONFIG_SECURITY_LOCKDOWN", "CONFIG_SECURITY_LANDLOCK", "CONFIG_SECCOMP",
		"CONFIG_SCHEDSTATS", "CONFIG_PSI", "CONFIG_CGROUPS", "CONFIG_HZ"};
	_cleanup_buf_ struct buf text = BUF_INIT(PART_MAX);
	char path[512];
	int r;

	snprintf(path, sizeof(path), "/boot/config-%s", release);
	r = file_read(path, PART_MAX, &text);
	if (r < 0) {
		buf_printf(b, "%s: %s\n", path, strerror(-r));
		return;
	}
	for (const char *p = buf_str(&text); *p;) {
		size_t len = strcspn(p, "\n");
		const char *name = strncmp(p, "# ", 2) ? p : p + 2;

		for (size_t i = 0; i < ARRAY_SIZE(words); i++)
			if (!strncmp(name, words[i], strlen(words[i]))) {
				buf_printf(b, "%.*s\n", (int)len, p);
				break;
			}
		p += len + (p[len] == '\n');
	}
}

static void put_kernel(const struct support_bundle *s _unused_, struct buf *b)
{
	static const char *const files[] = {"/proc/sys/kernel/perf_event_paranoid",
		"/proc/sys/kernel/unprivileged_bpf_disabled", "/proc/sys/kernel/kptr_restrict",
		"/proc/sys/kernel/yama/ptrace_scope", "/proc/sys/net/core/bpf_jit_enable",
		"/sys/kernel/security/lockdown", "/sys/kernel/security/lsm",
		"/sys/fs/cgroup/cgroup.controllers"};
	char line[512];
	struct utsname u;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		int r = file_read_line("", files[i], line, sizeof(line));

		buf_printf(b, "%s: %s\n", files[i], r < 0 ? strerror(-r) : line);
	}
	buf_printf(b, "/sys/kernel/btf/vmlinux: %s\n",
		access("/sys/kernel/btf/vmlinux", R_OK) == 0 ? "there" : strerror(errno));
	buf_printf(b, "CPUs: %ld\nmemory: %ld MiB\n\n", sysconf(_SC_NPROCESSORS_ONLN),
		sysconf(_SC_PHYS_PAGES) / 256 * (sysconf(_SC_PAGESIZE) / 4096));
	uname(&u);
	put_options(b, u.release);
}

static void put_config(const struct support_bundle *s _unused_, struct buf *b)
{
	_cleanup_(config_freep) struct config *c = NULL;
	_cleanup_buf_ struct buf text = BUF_INIT(CONFIG_BYTES_MAX);
	struct errinfo e = {0};
	int r = config_file_load(&c, &e);

	if (r == 0 && !c->path) {
		buf_puts(b, "# there is no ingero.yaml\n");
		return;
	}
	r = r ?: file_read(c->path, CONFIG_BYTES_MAX, &text);
	if (r < 0) {
		buf_puts(b, "# ");
		put_failure(b, &e, r);
		return;
	}
	buf_printf(b, "# %s, without comments and secrets\n", c->path);
	mask_yaml(b, buf_str(&text));
}

/* What the recording says of itself: tables without names of programs or arguments. */
static void put_recording(const struct support_bundle *s, struct buf *b)
{
	static const char *const questions[] = {
		"SELECT key, value FROM schema_info WHERE key IN ('version', 'last_seq')",
		"SELECT id, started_at, stopped_at, gpu_model, gpu_driver, cpu_model, cpu_cores, "
		"mem_total, kernel, os_release, cuda_ver, ingero_ver FROM sessions ORDER BY id DESC LIMIT 50",
		"SELECT * FROM accounting ORDER BY session_id DESC LIMIT 200",
		"SELECT * FROM losses WHERE count > 0 ORDER BY session_id DESC LIMIT 200",
		"SELECT * FROM pruned ORDER BY session_id DESC LIMIT 200",
		"SELECT * FROM overhead ORDER BY timestamp DESC LIMIT 300"};
	_cleanup_free_ char *default_path = NULL;
	struct errinfo e = {0};
	const char *path = NULL;
	int r = db_option_path(s->db, &default_path, &path, &e);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(questions); i++) {
		struct sql_guard_rules rules = {.timeout_ns = 10 * NS_PER_S, .rows_max = 1000};
		_cleanup_(sql_table_done) struct sql_table table = {0};
		_cleanup_buf_ struct buf hint = BUF_INIT(1 << 14);
		struct errinfo why = {0};
		int q = nodedb_ask(path, questions[i], &rules, &table, &hint, &why);

		buf_printf(b, "-- %s\n", questions[i]);
		if (q < 0) /* an older recording lacks some */
			put_failure(b, &why, q);
		else
			sql_output_write(b, &table, SQL_OUTPUT_JSON, false);
		buf_putc(b, '\n');
	}
	if (r < 0)
		put_failure(b, &e, r);
}

static void put_log(const struct support_bundle *s, struct buf *b)
{
	_cleanup_buf_ struct buf text = BUF_INIT(LOG_READ);
	FILE *f = s->log ? fopen(s->log, "re") : NULL;
	const char *from;
	size_t n, lines = 0;

	if (!f) {
		buf_printf(b, "not available: %s\n",
			s->log ? strerror(errno)
			       : "name it with --log, or look at `journalctl -t ingero`");
		return;
	}
	if (fseeko(f, -(off_t)LOG_READ + 1, SEEK_END) < 0)
		rewind(f); /* it is shorter */
	for (char piece[4096]; (n = fread(piece, 1, sizeof(piece), f)) > 0;)
		buf_append(&text, piece, n);
	fclose(f);
	for (from = buf_str(&text) + text.len; from > buf_str(&text) && lines <= LOG_LINES;)
		lines += *--from == '\n';
	buf_puts(b, from + (*from == '\n'));
}

static const struct part {
	const char *name, *what;
	part_fn *put;
} parts[] = {
	{"check.json", "what `ingero check` found", put_check},
	{"version.txt", "versions of ingero, the kernel and the distribution", put_version},
	{"kernel.txt", "settings and options of the kernel that tracing depends on", put_kernel},
	{"ingero.yaml", "the configuration, without comments and secrets", put_config},
	{"recording.txt",
		"of the recording: schema, sessions (machine, versions), accounting, losses, overhead; no events, no names",
		put_recording},
	{"log.txt", "the last lines of the log that --log names; they may name programs", put_log},
};

static void tell(const char *path, size_t bytes)
{
	fprintf(stderr, "\nSupport bundle: %s (%zu KiB)\n", TEXT_SHOWN(path),
		(bytes + 1023) / 1024);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		fprintf(stderr, "  %-14s %s\n", parts[i].name, parts[i].what);
	fprintf(stderr, "Look through it before you send it.\n");
}

int support_bundle_write(const struct support_bundle *s, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	_cleanup_buf_ struct buf tar = BUF_INIT(BUNDLE_MAX), readme = BUF_INIT(PART_MAX);
	int64_t now = wall_now().ns / (int64_t)NS_PER_S;
	int r;

	if (access(s->path, F_OK) == 0)
		return errinfo_set_exit(reterr, EXIT_NO_CREATE, -EEXIST,
			"%s already exists: give another name", s->path);
	buf_puts(&readme,
		"Made by `ingero check --support-bundle`. Look through it before you send it.\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		buf_printf(&readme, "%-14s %s\n", parts[i].name, parts[i].what);
	(void)tar_put(
		&tar, "README.txt", 0600, now, buf_str(&readme), readme.len); /* its errors stay */
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(PART_MAX);

		parts[i].put(s, &b);
		(void)tar_put(&tar, parts[i].name, 0600, now, buf_str(&b), b.len);
	}
	r = tar_end(&tar);
	r = r ?: path_user_enter(s->path, &before, reterr);
	if (r == 0) {
		r = file_write_atomic(s->path, tar.data, tar.len, 0600);
		if (r < 0)
			errinfo_set_exit(reterr, EXIT_NO_CREATE, r, "%s cannot be written: %s",
				s->path, strerror(-r));
	}
	if (r < 0)
		return r;
	tell(s->path, tar.len);
	return 0;
}
