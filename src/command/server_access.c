/* SPDX-License-Identifier: Apache-2.0 */
/* server_access.c - see server_access.h. */
#include "command/server_access.h"

#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/notify.h"
#include "base/path_user.h"
#include "base/text.h"
#include "command/program.h"
#include "net/address.h"

#define SERVER_TOKEN_FILE "token" /* in ~/.ingero */

#define TRUST_FILE "known_nodes" /* in ~/.ingero */

/* Runs on the loop's thread. */

void server_life_over(void *arg)
{
	struct server_life *l = arg;

	loop_stop(l->loop);
}

void server_life_tell_reload(const char *what, int r, const struct errinfo *e)
{
	const char *program = program_running()->name;

	if (r < 0)
		fprintf(stderr, "%s%s: reload failed, the previous values stay in use: %s\n",
			log_mark(LOG_LEVEL_ERROR), program, e->text[0] ? e->text : strerror(-r));
	else
		fprintf(stderr, "%s%s: %s reloaded\n", log_mark(LOG_LEVEL_INFO), program, what);
}

static void on_stop(void *arg)
{
	struct server_life *l = arg;

	if (l->stopping) {
		loop_stop(l->loop);
		return;
	}
	l->stopping = true;
	notify_stopping();
	loop_timer_set(l->patience, l->patience_ns);
	l->drain(l->arg);
}

static void on_hangup(void *arg)
{
	struct server_life *l = arg;

	notify_reloading();
	l->reload(l->arg);
	l->ready(l->arg);
}

int server_life_watch(struct server_life *l, struct errinfo *reterr)
{
	int r = loop_signal(l->loop, SIGTERM, on_stop, l);

	r = r ?: loop_signal(l->loop, SIGINT, on_stop, l);
	r = r ?: loop_signal(l->loop, SIGHUP, on_hangup, l);
	r = r ?: loop_timer_new(l->loop, server_life_over, l, &l->patience);
	return r == 0 ? 0 : errinfo_set(reterr, r, "cannot handle signals: %s", strerror(-r));
}

int server_life_run(struct server_life *l, struct errinfo *reterr)
{
	int r = loop_notify(l->loop);

	l->ready(l->arg);
	r = r ?: loop_run(l->loop);
	return r == 0 ? 0 : errinfo_set(reterr, r, "event loop failed: %s", strerror(-r));
}

void server_life_done(struct server_life *l)
{
	if (l->patience)
		loop_timer_free(l->patience);
	l->patience = NULL;
}

int trust_known_path(char **ret, struct errinfo *reterr)
{
	return owner_home_file(TRUST_FILE, ret, reterr);
}

/* Only "yes" is yes: the answer is worth a look at the fingerprint. */
static bool ask_one(const struct tls_stranger *s)
{
	_cleanup_buf_ struct buf node = BUF_INIT(4096);
	char hex[2 * TLS_PIN_BYTES + 1], answer[16];

	tls_pin_text(&s->pin, hex);
	text_escape_terminal(&node, s->node);
	fprintf(stderr,
		"The certificate of %s is unknown, and no trusted CA has signed it.\n"
		"  SHA-256 %s\n"
		"The node prints this when its dashboard starts. Trust it from now on? [yes/no] ",
		buf_str(&node), hex);
	fflush(stderr);
	if (!fgets(answer, sizeof(answer), stdin)) {
		fputc('\n', stderr);
		return false;
	}
	answer[strcspn(answer, "\r\n")] = 0;
	return !strcmp(answer, "yes");
}

int trust_ask(struct tls *tls, struct errinfo *reterr)
{
	const struct tls_stranger *list;
	size_t count = tls ? tls_strangers(tls, &list) : 0;
	int r, trusted = 0;

	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (!ask_one(&list[i]))
			continue;
		r = tls_trust(tls, &list[i], reterr);
		if (r < 0)
			return r;
		trusted++;
	}
	if (tls)
		tls_forget_strangers(tls);
	return trusted;
}

void trust_warn(const struct tls *tls)
{
	_cleanup_buf_ struct buf b = BUF_INIT(16384);

	if (!tls)
		return;
	tls_expiry(tls, &b);
	for (const char *line = buf_str(&b); *line;) {
		size_t len = strcspn(line, "\n");

		log_warning("%.*s", (int)len, line);
		line += len + (line[len] == '\n');
	}
}

/* As root: $STATE_DIRECTORY, which systemd sets, or the program's own folder. */
static int root_folder(char **ret, struct errinfo *reterr)
{
	const char *set = getenv("STATE_DIRECTORY");
	const char *path = set && set[0] == '/' ? set : program_running()->root_folder;
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	int r = path_user_enter(path, &before, reterr);

	if (r < 0)
		return r;
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return errinfo_set_exit(reterr, EXIT_NO_CREATE, -errno,
			"cannot make the folder %s: %s", path, strerror(errno));
	*ret = strdup(path);
	return *ret ? 0 : -ENOMEM;
}

bool state_folder_is_roots(void)
{
	return program_running()->root_folder && geteuid() == 0 && !getenv("INGERO_DB");
}

int state_folder(char **ret, struct errinfo *reterr)
{
	_cleanup_free_ char *db = NULL;
	bool made;
	int r;

	if (state_folder_is_roots())
		return root_folder(ret, reterr);
	r = store_default_path(&db, reterr);
	r = r ?: owner_make_folder(db, &made, reterr);
	if (r < 0)
		return r;
	*ret = strdup(dirname(db));
	return *ret ? 0 : -ENOMEM;
}

int server_tls_check(const struct tls_server_settings *s, const char *off, struct errinfo *reterr)
{
	if (off && (s->cert || s->key || s->client_ca))
		return errinfo_set(reterr, -EINVAL,
			"%s cannot be combined with --tls-cert, --tls-key or --client-ca", off);
	if (!s->cert != !s->key)
		return errinfo_set(reterr, -EINVAL, "give both --tls-cert and --tls-key");
	return 0;
}

int server_tls_open(const struct tls_server_settings *s, struct tls **ret, struct errinfo *reterr)
{
	_cleanup_free_ char *home = NULL, *folder = NULL;
	struct tls_server_settings t = *s;
	int r;

	if (!t.cert) {
		r = state_folder(&home, reterr);
		if (r < 0)
			return r;
		if (asprintf(&folder, "%s/tls", home) < 0) {
			folder = NULL;
			return -ENOMEM;
		}
		t.state_dir = folder;
	}
	return tls_server_new(&t, ret, reterr);
}

int server_access_check(const struct server_access_options *o, struct errinfo *reterr)
{
	if (o->no_token && o->token_file)
		return errinfo_set(
			reterr, -EINVAL, "--no-token cannot be combined with --token-file");
	if (o->no_token && !address_text_is_loopback(o->address) && !o->client_ca)
		return errinfo_set(reterr, -EINVAL,
			"--no-token: %s is reachable from other machines; use a loopback address such as 127.0.0.1:8080",
			o->address);
	return 0;
}

/* A folder that others can write to is no place for a token: they could put theirs there. */
static int open_folder(const char *path, struct errinfo *reterr)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	uid_t uid = geteuid();
	struct stat st;
	gid_t gid;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return errinfo_set(reterr, -errno, "%s: %s", path, strerror(errno));
	path_user_invoking(&uid, &gid);
	if ((st.st_mode & 022) || (st.st_uid != uid && st.st_uid != 0))
		return errinfo_set(reterr, -EPERM, "other users can write to the folder %s", path);
	r = fd;
	fd = -1;
	return r;
}

static int keep_token(struct server_access *a, struct errinfo *reterr)
{
	_cleanup_free_ char *folder = NULL;
	_cleanup_fd_ int fd = -1;
	int r = state_folder(&folder, reterr);

	if (r < 0)
		return r;
	fd = open_folder(folder, reterr);
	if (fd < 0)
		return fd;
	r = token_keep(fd, SERVER_TOKEN_FILE, state_folder_is_roots() ? NULL : owner_give, &a->made,
		reterr);
	if (r == 0 && asprintf(&a->path, "%s/" SERVER_TOKEN_FILE, folder) < 0) {
		a->path = NULL;
		r = -ENOMEM;
	}
	return r;
}

int server_access_open(
	const struct server_access_options *o, struct server_access *ret, struct errinfo *reterr)
{
	struct errinfo e = {0};
	int r = 0;
	uid_t uid;
	gid_t gid;

	*ret = (struct server_access){0};
	if (!o->no_token)
		r = token_set_new(o->token_file, o->variable, &ret->tokens, reterr);
	if (r < 0 || ret->tokens || o->no_token || o->client_ca ||
		!address_text_is_loopback(o->address))
		return r;
	r = keep_token(ret, &e);
	if (r < 0) {
		fprintf(stderr,
			"%s%s: cannot store the token, it is valid until this server stops: %s\n",
			log_mark(LOG_LEVEL_WARNING), program_running()->name,
			e.text[0] ? e.text : strerror(-r));
		if (!ret->made)
			r = token_make(&ret->made);
	}
	ret->owners[ret->owner_count++] = geteuid();
	if (geteuid() != 0)
		ret->owners[ret->owner_count++] = 0;
	if (path_user_invoking(&uid, &gid))
		ret->owners[ret->owner_count++] = uid;
	return ret->made ? token_set_of(ret->made, &ret->tokens, reterr) : r;
}

int server_access_reload(struct server_access *a, const struct server_access_options *o,
	struct tls *tls, struct errinfo *reterr)
{
	_cleanup_(token_set_freep) struct token_set *trial = NULL;
	int r = 0;

	if (o->token_file) /* tried on a set of their own before anything is replaced */
		r = token_set_new(o->token_file, o->variable, &trial, reterr);
	if (r == 0 && tls)
		r = tls_reload(tls, reterr);
	if (r == 0 && a->tokens)
		r = token_set_reload(a->tokens, reterr);
	return r;
}

void server_access_done(struct server_access *a)
{
	token_set_freep(&a->tokens);
	if (a->made)
		explicit_bzero(a->made, strlen(a->made));
	free(a->made);
	free(a->path);
}

void server_access_say(const struct server_access *a, FILE *out, const char *url)
{
	if (!a->tokens) {
		fprintf(out, "Token: not required: anyone who can reach this address can read\n");
		return;
	}
	if (!a->made) {
		fprintf(out, "Token: required (Authorization: Bearer …)\n");
		return;
	}
	fprintf(out, "Token: required for other users of this machine; not for you and root\n");
	if (a->path)
		fprintf(out, "  Stored in %s\n", a->path);
	/* What is not a terminal may be a log that others read. */
	if (url && isatty(fileno(out)))
		fprintf(out, "  Link with the token: %s#token=%s\n", url, a->made);
}
