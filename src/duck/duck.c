/* SPDX-License-Identifier: Apache-2.0 */
/* duck.c - a database, its settings, its connections, and statements without rows. See duck.h. */
#include "duck/duck.h"

#include <ctype.h>
#include <dlfcn.h>
#include <limits.h>

#include "base/mutex.h"
#include "duck/duck_api.h"

struct duck {
	duck_handle handle;
};

/* What DuckDB's kinds of errors are; they begin its messages. */
static int error_of(const char *message)
{
	static const struct {
		const char *kind;
		int err;
	} rows[] = {
		{"INTERRUPT Error", -ECANCELED},
		{"Out of Memory Error", -ENOMEM},
		{"Permission Error", -EPERM},
		{"IO Error", -EIO},
		{"FATAL Error", -EIO},
		{"INTERNAL Error", -EIO},
		{"TransactionContext Error", -EIO},
	};
	int err = -EINVAL;

	for (size_t i = 0; i < ARRAY_SIZE(rows) && err == -EINVAL; i++)
		if (!strncmp(message, rows[i].kind, strlen(rows[i].kind)))
			err = rows[i].err;
	if (err == -EIO && strstr(message, "read-only mode"))
		return -EPERM;
	if (err == -EIO && (strstr(message, "No space left") || strstr(message, "Disk quota") ||
				   strstr(message, "File too large")))
		return -ENOSPC;
	return err == -EIO && strstr(message, "Out of Memory") ? -ENOMEM : err;
}

/* Whether what follows is not for a sentence: the statement with a mark under the place, which the asker
 * has, and of memory what to set, which is ours to decide. */
static bool is_rest(const char *at, int err)
{
	return *at == '\n' && (err == -ENOMEM || !strncmp(at, "\nLINE ", 6));
}

int duck_error(const char *message, struct errinfo *reterr)
{
	char line[sizeof(reterr->text) - 32];
	size_t n = 0;
	int err;

	if (!message || !*message)
		message = "DuckDB gave no reason";
	err = error_of(message);
	for (const char *at = message; *at && !is_rest(at, err) && n < sizeof(line) - 1; at++) {
		bool blank = *at == ' ' || iscntrl((unsigned char)*at);

		if (!blank || (n && line[n - 1] != ' '))
			line[n++] = blank ? ' ' : *at;
	}
	while (n && line[n - 1] == ' ')
		n--;
	line[n] = 0;
	return errinfo_set(reterr, err, "%s", line);
}

/* "256MB", "256.0 MiB", "0 bytes" in bytes; negative: it is no size. */
static double size_of(const char *text)
{
	static const char letters[] = "KMGT";
	double step, n;
	const char *letter;
	char *end;

	if (!isdigit((unsigned char)*text))
		return -1;
	n = strtod(text, &end);
	end += *end == ' ';
	if (!strcasecmp(end, "bytes"))
		return n;
	letter = *end ? strchr(letters, toupper((unsigned char)*end)) : NULL;
	if (!letter)
		return -1;
	step = strcasecmp(end + 1, "iB") ? 1000 : 1024;
	for (const char *l = letters; l <= letter; l++)
		n *= step;
	return n;
}

/* Whether a setting reads back as it was asked for. DuckDB writes sizes with one digit behind the point. */
static bool is_as_asked(const char *asked, const char *found)
{
	double want = size_of(asked), have = size_of(found);

	if (want >= 0)
		return have >= want * 0.9 && have <= want * 1.1;
	return !strcasecmp(asked, found) || (!strcmp(asked, "true") && !strcmp(found, "1")) ||
	       (!strcmp(asked, "false") && !strcmp(found, "0"));
}

static int read_back(
	struct duck_connection *c, const struct duck_setting *s, struct errinfo *reterr)
{
	static const struct duck_limits limits = {.rows_max = 1, .bytes_max = 4096};
	char text[160], found[128] = "";
	struct sql_table t;
	int r;

	snprintf(text, sizeof(text), "SELECT CAST(current_setting('%s') AS VARCHAR)", s->name);
	r = duck_select(c, text, &limits, &t, reterr);
	if (r < 0)
		return r;
	if (t.row_count && sql_table_cell(&t, 0, 0)->type == SQL_TEXT)
		snprintf(found, sizeof(found), "%s", sql_table_bytes(&t, sql_table_cell(&t, 0, 0)));
	sql_table_done(&t);
	if (is_as_asked(s->value, found))
		return 0;
	return errinfo_set(
		reterr, -EPERM, "DuckDB's setting %s is '%s', not '%s'", s->name, found, s->value);
}

int duck_check(
	struct duck_connection *c, const struct duck_setting *settings, struct errinfo *reterr)
{
	int r = 0;

	for (size_t i = 0; r == 0 && settings && settings[i].name; i++)
		r = read_back(c, &settings[i], reterr);
	return r;
}

static int check_opened(struct duck *d, const struct duck_setting *settings, struct errinfo *reterr)
{
	_cleanup_(duck_disconnectp) struct duck_connection *c = NULL;
	int r = duck_connect(d, &c, reterr);

	return r < 0 ? r : duck_check(c, settings, reterr);
}

static int open_configured(const char *path, const struct duck_setting *settings,
	duck_handle config, duck_handle *ret, struct errinfo *reterr)
{
	char *message = NULL;
	int r;

	for (size_t i = 0; settings && settings[i].name; i++)
		if (duck_api.set_config(config, settings[i].name, settings[i].value))
			return errinfo_set(reterr, -EINVAL, "DuckDB has no setting %s = %s",
				settings[i].name, settings[i].value);
	if (!duck_api.open_ext(path, ret, config, &message))
		return 0;
	r = duck_error(message, reterr);
	duck_api.free(message);
	return r;
}

int duck_open(const char *path, const struct duck_setting *settings, struct duck **ret,
	struct errinfo *reterr)
{
	_cleanup_(duck_closep) struct duck *d = calloc(1, sizeof(*d));
	duck_handle config = NULL;
	int r = duck_load(reterr);

	if (r < 0)
		return r;
	if (!d || duck_api.create_config(&config))
		return -ENOMEM;
	r = open_configured(path, settings, config, &d->handle, reterr);
	duck_api.destroy_config(&config);
	r = r ?: check_opened(d, settings, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(d);
	return 0;
}

void duck_close(struct duck *d)
{
	if (d->handle)
		duck_api.close(&d->handle);
	free(d);
}

int duck_connect(struct duck *d, struct duck_connection **ret, struct errinfo *reterr)
{
	struct duck_connection *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	if (duck_api.connect(d->handle, &c->handle)) {
		free(c);
		return errinfo_set(reterr, -EIO, "cannot connect to DuckDB");
	}
	*ret = c;
	return 0;
}

void duck_disconnect(struct duck_connection *c)
{
	duck_api.disconnect(&c->handle);
	free(c);
}

void duck_interrupt(struct duck_connection *c)
{
	duck_api.interrupt(c->handle);
}

int duck_exec(struct duck_connection *c, const char *text, struct errinfo *reterr)
{
	struct duck_result result = {0};
	int r = 0;

	if (duck_api.query(c->handle, text, &result))
		r = duck_error(duck_api.result_error(&result), reterr);
	duck_api.destroy_result(&result);
	return r;
}

/* ---- finds libduckdb.so and its functions ---- */

struct duck_api duck_api;

static struct {
	pthread_mutex_t mutex;
	bool tried;
	int result;
	struct errinfo err;
} load = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* The folder of this program, with its slash; "" if it cannot be told. */
static void own_folder(char out[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
	char *slash;

	out[n > 0 ? n : 0] = 0;
	slash = strrchr(out, '/');
	out[slash ? slash + 1 - out : 0] = 0;
}

static void *open_library(void)
{
	static const char *const beside[] = {
		"libduckdb.so", "duckdb/libduckdb.so", "../lib/ingero/libduckdb.so"};
	const char *named = getenv("INGERO_DUCKDB_LIB");
	char folder[PATH_MAX], path[PATH_MAX + 32];
	void *library = NULL;

	if (named && *named)
		return dlopen(named, RTLD_NOW | RTLD_LOCAL);
	own_folder(folder);
	for (size_t i = 0; !library && *folder && i < ARRAY_SIZE(beside); i++) {
		snprintf(path, sizeof(path), "%s%s", folder, beside[i]);
		library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		if (!library && access(path, F_OK) == 0)
			return NULL; /* why this one cannot be loaded is the reason to be told */
	}
	return library ? library : dlopen("libduckdb.so", RTLD_NOW | RTLD_LOCAL);
}

static int load_library(struct errinfo *reterr)
{
	static const struct {
		const char *name;
		size_t offset;
	} rows[] = {
#define X(result, name, arguments) {"duckdb_" #name, offsetof(struct duck_api, name)},
		DUCK_FUNCTIONS(X)
#undef X
	};
	void *library = open_library();

	if (!library)
		return errinfo_set_exit(reterr, EXIT_NO_FEATURE, -ENOENT,
			"libduckdb.so cannot be loaded (%.200s): install the package ingero-duckdb, or name the library in $INGERO_DUCKDB_LIB (`make duckdb` fetches it)",
			dlerror());
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		void *f = dlsym(library, rows[i].name);

		if (!f)
			return errinfo_set_exit(reterr, EXIT_NO_FEATURE, -ENOSYS,
				"libduckdb.so lacks %s: the package ingero-duckdb has one that does not (`make duckdb` fetches it)",
				rows[i].name);
		memcpy((char *)&duck_api + rows[i].offset, &f, sizeof(f));
	}
	return 0;
}

int duck_load(struct errinfo *reterr)
{
	MUTEX_HELD(&load.mutex);

	if (!load.tried)
		load.result = load_library(&load.err);
	load.tried = true;
	if (load.result < 0 && reterr)
		*reterr = load.err;
	return load.result;
}

const char *duck_version(void)
{
	return duck_api.library_version ? duck_api.library_version() : NULL;
}
