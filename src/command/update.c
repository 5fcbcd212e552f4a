/* SPDX-License-Identifier: Apache-2.0 */
/* update.c - see update.h. The file holds "SECONDS VERSION": when it was last tried, and what was
 * found before; the time is written before the fetch, so that an address that is away is not asked more
 * often. */
#include "command/update.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path_user.h"
#include "command/config_file.h"
#include "command/program.h"
#include "config.h"
#include "json/reader.h"
#include "json/writer.h"
#include "net/client/client.h"

/* `version` of each program: what it is and what it runs on. */

#if defined(__x86_64__)
#define BUILD_ARCH "x86_64"
#elif defined(__aarch64__)
#define BUILD_ARCH "aarch64"
#else
#error "supported: x86_64 and aarch64"
#endif

#define ASK_NS (10 * NS_PER_S)

struct version_settings {
	bool json, check;
};

static const struct option_row version_options[] = {
	{.name = "json",
		.kind = OPTION_FLAG,
		.offset = offsetof(struct version_settings, json),
		.help = "print one JSON object"},
	{.name = "check",
		.kind = OPTION_FLAG,
		.offset = offsetof(struct version_settings, check),
		.help = "ask update.url of ingero.yaml whether there is a newer version"},
	{0},
};

static int print_json(const struct utsname *u, const char *newest)
{
	struct json_writer w = json_writer_to_file(stdout);

	w.indent = true;
	json_begin_object(&w);
	JSON_PUT(&w, JSON_S("version", INGERO_VERSION), JSON_S("arch", BUILD_ARCH),
		JSON_S("kernel", u->release));
	if (newest)
		JSON_PUT(&w, JSON_S("newest", newest),
			JSON_B("update_available", update_is_newer(newest, INGERO_VERSION)));
	json_end_object(&w);
	json_finish(&w); /* a failed stdout is reported once, at exit */
	return EXIT_OK;
}

static int update_ask(uint64_t timeout_ns, char ret[UPDATE_VERSION_MAX], struct errinfo *reterr);

static int version_run(const struct command *c, void *settings, int argc, char **argv)
{
	const struct version_settings *s = settings;
	char newest[UPDATE_VERSION_MAX] = "";
	struct errinfo e = {0};
	struct utsname u;
	int r = s->check ? update_ask(ASK_NS, newest, &e) : 0;

	if (r < 0)
		return dispatch_fail(&e, r);
	uname(&u);
	if (s->json)
		return print_json(&u, s->check ? newest : NULL);
	printf("%s %s (built for %s, on %s %s)\n", program_running()->name, INGERO_VERSION,
		BUILD_ARCH, u.sysname, u.release);
	if (s->check)
		printf(update_is_newer(newest, INGERO_VERSION) ? "%s is available\n"
							       : "The newest version is %s\n",
			newest);
	return EXIT_OK;
}

const struct command cmd_version = {
	.name = "version",
	.synopsis = "version [--json] [--check]",
	.summary = "Show the version, the architecture it was built for and the running kernel",
	.options = version_options,
	.settings_size = sizeof(struct version_settings),
	.run = version_run,
};

#define FILE_NAME   "update-check"
#define ANSWER_MAX  (64u << 10)
#define EVERY_S     (24 * 3600)
#define FETCH_NS    (10 * NS_PER_S)
#define PATIENCE_S  15 /* of the process in the background, with everything */
#define NUMBERS_MAX 4

/* ---- versions ---- */

static bool is_version(const char *text)
{
	size_t len = strlen(text);

	if (*text == 'v')
		text++;
	return len && len < UPDATE_VERSION_MAX && *text >= '0' && *text <= '9' &&
	       strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz.-+~") == strlen(text);
}

bool update_is_newer(const char *a, const char *b)
{
	char *at = (char *)a + (*a == 'v'), *bt = (char *)b + (*b == 'v');

	for (int i = 0; i < NUMBERS_MAX; i++) {
		unsigned long x = strtoul(at, &at, 10), y = strtoul(bt, &bt, 10);

		if (x != y)
			return x > y;
		at += *at == '.';
		bt += *bt == '.';
	}
	return *at != '-' && *bt == '-';
}

/* Of an object's own members, the first that is a version. */
static bool parse_object(const char *text, char ret[UPDATE_VERSION_MAX])
{
	struct json_reader r;
	enum json_read token;
	bool found = false, is_key;

	json_reader_init(&r, text, strlen(text), ANSWER_MAX);
	token = json_read(&r);
	while (token == JSON_READ_OBJECT && !found && json_read(&r) == JSON_READ_KEY) {
		is_key = json_read_is(&r, "tag_name") || json_read_is(&r, "version");
		if (is_key && json_read(&r) == JSON_READ_STRING) {
			snprintf(ret, UPDATE_VERSION_MAX, "%s", buf_str(&r.text));
			found = is_version(ret);
		} else if (is_key || !json_skip(&r, json_read(&r))) {
			break;
		}
	}
	json_reader_done(&r);
	return found;
}

int update_parse(const char *text, char ret[UPDATE_VERSION_MAX])
{
	char word[UPDATE_VERSION_MAX];
	size_t len;

	text += strspn(text, " \t\r\n");
	if (*text == '{' && parse_object(text, word)) {
		memcpy(ret, word, sizeof(word));
		return 0;
	}
	len = strcspn(text, " \t\r\n");
	snprintf(word, sizeof(word), "%.*s", (int)MIN(len, sizeof(word)), text);
	if (len >= sizeof(word) || !is_version(word))
		return -EBADMSG;
	memcpy(ret, word, sizeof(word));
	return 0;
}

/* ---- asking ---- */

static int ask(const struct config *c, uint64_t timeout_ns, char ret[UPDATE_VERSION_MAX],
	struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(ANSWER_MAX);
	int r = https_fetch(c->update_url, c->update_ca_cert, timeout_ns, &b, reterr);

	if (r < 0)
		return r;
	r = update_parse(buf_str(&b), ret);
	return r < 0 ? errinfo_set_exit(reterr, EXIT_BAD_DATA, r, "%s did not return a version",
			       c->update_url)
		     : 0;
}

/* update_ask - fetches it from update.url, within @timeout_ns. -EINVAL with a sentence if
 * there is no such key. */
static int update_ask(uint64_t timeout_ns, char ret[UPDATE_VERSION_MAX], struct errinfo *reterr)
{
	_cleanup_(config_freep) struct config *c = NULL;
	int r = config_file_load(&c, reterr);

	if (r < 0)
		return r;
	if (!c->update_url)
		return errinfo_set_exit(reterr, EXIT_CONFIG, -EINVAL,
			"there is no default address to ask for newer versions: set update.url in "
			"ingero.yaml");
	return ask(c, timeout_ns, ret, reterr);
}

/* ---- the file ---- */

struct known {
	int64_t tried_s;
	char version[UPDATE_VERSION_MAX]; /* "": none yet */
};

/* A file that makes no sense is as good as none. */
static void read_known(const char *path, struct known *ret)
{
	_cleanup_buf_ struct buf b = BUF_INIT(256);
	char version[UPDATE_VERSION_MAX] = "";
	int64_t tried_s = 0;

	*ret = (struct known){0};
	if (file_read(path, 255, &b) < 0 ||
		sscanf(buf_str(&b), "%" SCNd64 " %63s", &tried_s, version) < 1)
		return;
	ret->tried_s = tried_s;
	if (is_version(version))
		memcpy(ret->version, version, sizeof(version));
}

static void write_known(const char *path, const struct known *k)
{
	char text[UPDATE_VERSION_MAX + 32];
	int n = snprintf(text, sizeof(text), "%" PRId64 " %s\n", k->tried_s, k->version);

	(void)file_write_atomic(path, text, (size_t)n, 0644);
}

/* ---- the notice ---- */

static bool is_due(const struct known *k)
{
	int64_t now = time(NULL);

	return now < k->tried_s || now - k->tried_s >= EVERY_S;
}

static void fetch(const struct config *c, const char *path, struct known *k)
{
	struct errinfo e = {0};
	bool made;

	if (owner_make_folder(path, &made, &e) < 0)
		return;
	k->tried_s = time(NULL);
	write_known(path, k);
	if (ask(c, FETCH_NS, k->version, &e) == 0)
		write_known(path, k);
}

/* A grandchild, so that nobody has to wait for it or hears of its end. */
static void fetch_behind(const struct config *c, const char *path, struct known *k)
{
	pid_t child = fork();
	int null;

	if (child != 0) {
		while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
		return;
	}
	if (setsid() < 0 || fork() != 0)
		_exit(EXIT_OK);
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	close_range(STDERR_FILENO + 1, ~0u, 0);
	signal(SIGALRM, SIG_DFL);
	alarm(PATIENCE_S);
	fetch(c, path, k);
	_exit(EXIT_OK);
}

/* Whether somebody who wants it is there to read it; then *ret_path is the caller's. */
static bool is_wanted(struct config **ret, char **ret_path)
{
	_cleanup_(config_freep) struct config *c = NULL;
	struct errinfo e = {0};

	if (getenv("INGERO_NO_UPDATE_NOTIFIER") || !isatty(STDERR_FILENO) ||
		config_file_load(&c, &e) < 0 || !c->update_check || !c->update_url ||
		owner_home_file(FILE_NAME, ret_path, &e) < 0)
		return false;
	*ret = TAKE(c);
	return true;
}

void update_begin(void)
{
	_cleanup_(config_freep) struct config *c = NULL;
	_cleanup_free_ char *path = NULL;
	struct known k;

	if (geteuid() == 0 || !is_wanted(&c, &path))
		return; /* root fetches nothing: what its user has found is said */
	read_known(path, &k);
	if (is_due(&k))
		fetch_behind(c, path, &k);
}

void update_end(void)
{
	_cleanup_(config_freep) struct config *c = NULL;
	_cleanup_free_ char *path = NULL;
	struct known k;

	if (!is_wanted(&c, &path))
		return;
	read_known(path, &k);
	if (k.version[0] && update_is_newer(k.version, INGERO_VERSION))
		fprintf(stderr, "\n%s %s is available; this is %s.\n", program_running()->name,
			k.version, INGERO_VERSION);
}
