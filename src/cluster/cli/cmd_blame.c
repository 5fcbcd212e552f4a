/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_blame.c - `ingero-cluster blame`: asks a running service who makes the others wait. */

#include "base/clock.h"
#include "base/text.h"
#include "cluster/cli/commands.h"
#include "command/program.h"
#include "command/server_access.h"
#include "deliver/endpoint.h"
#include "json/tree.h"
#include "net/server/token.h"

#define TOKEN_VARIABLE "INGERO_TOKEN"
#define PORT           8080

/* Where the services listen by default: `fleet` in plain text, `all` with TLS. */
static const char *const near_endpoints[] = {"http://127.0.0.1:8080", "https://127.0.0.1:8080"};

struct blame_flags {
	const char *endpoint, *cluster, *ca_cert, *client_cert, *client_key, *token_file;
	struct option_strings fingerprints;
	uint64_t timeout_ns;
	bool json, first_use;
};

static const struct blame_flags defaults = {.timeout_ns = 10 * NS_PER_S};

#define OPTION(field) offsetof(struct blame_flags, field)
static const struct option_row blame_options[] = {
	OPTION_ROW(STRING, "endpoint", OPTION(endpoint), "URL",
		"API address of the service (default: 127.0.0.1:8080, with TLS or without)"),
	OPTION_ROW(
		STRING, "cluster-id", OPTION(cluster), "NAME", "only this cluster (default: all)"),
	OPTION_ROW(FLAG, "json", OPTION(json), NULL, "print the answer of /api/v1/blame"),
	OPTION_ROW(STRING, "ca-cert", OPTION(ca_cert), "FILE",
		"CA certificates to trust (default: the system's; on this machine the one that the service made)"),
	OPTION_ROW(STRINGS, "fingerprint", OPTION(fingerprints), "HEX",
		"trust only the certificate with this SHA-256 fingerprint; may be repeated"),
	OPTION_ROW(FLAG, "trust-on-first-use", OPTION(first_use), NULL,
		"trust an unknown certificate, and remember it in ~/.ingero/known_nodes"),
	OPTION_ROW(STRING, "client-cert", OPTION(client_cert), "FILE", "client certificate (mTLS)"),
	OPTION_ROW(STRING, "client-key", OPTION(client_key), "FILE",
		"private key of the client certificate"),
	OPTION_ROW(STRING, "token-file", OPTION(token_file), "FILE",
		"file with the bearer token (default: $" TOKEN_VARIABLE ")"),
	{"timeout", 0, OPTION_DURATION, OPTION(timeout_ns), "TIME", "timeout (default: 10s)", 1, 0,
		false},
	{NULL, 0, OPTION_FLAG, 0, NULL, NULL, 0, 0, false},
};

/* A connection to @text, the service's address. */
struct asking {
	const struct blame_flags *flags;
	const char *text;
	struct http_endpoint endpoint;
	struct loop *loop;
	struct tls *tls;
	struct http_client *client;
	char *bearer, *known, *own;
	int status;
	struct buf answer;
};

static void asking_done(struct asking *a)
{
	http_client_freep(&a->client);
	tls_freep(&a->tls);
	loop_freep(&a->loop);
	free(a->bearer);
	free(a->known);
	free(a->own);
	buf_done(&a->answer);
}

static int ask(struct asking *a, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf path = BUF_INIT(4096);
	const struct blame_flags *f = a->flags;
	struct question q = {.loop = a->loop,
		.client = a->client,
		.endpoint = &a->endpoint,
		.timeout_ns = f->timeout_ns};

	buf_puts(&path, "/api/v1/blame");
	if (f->cluster) {
		buf_puts(&path, "?cluster_id=");
		http_escape(&path, f->cluster);
	}
	if (path.err)
		return errinfo_set(reterr, -EINVAL, "--cluster-id: too long");
	q.path = buf_str(&path);
	return question_ask(&q, &a->status, &a->answer, reterr);
}

/* The sentence of a refusal; the service's own words are its. */
static int check_status(const struct asking *a, struct errinfo *reterr)
{
	if (a->status == 200)
		return 0;
	if (a->status == 401)
		return errinfo_set_exit(reterr, EXIT_NO_PERMISSION, -EPERM,
			a->bearer
				? "%s refused the token: it is not one of the tokens that the service accepts"
				: "%s requires a token: give --token-file or $" TOKEN_VARIABLE,
			a->text);
	if (a->status == 403)
		return errinfo_set_exit(reterr, EXIT_NO_PERMISSION, -EPERM,
			"%s refused this: the token is for other clusters, or not for reading",
			a->text);
	return errinfo_set_exit(reterr, EXIT_FAILED, -EPROTO,
		"%s answered with status %d: is it the API address of `ingero-cluster fleet`?",
		a->text, a->status);
}

static int print(const struct asking *a, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(QUESTION_ANSWER_MAX);
	int r = check_status(a, reterr);

	if (r < 0)
		return r;
	if (a->flags->json) {
		fwrite(buf_str(&a->answer), 1, a->answer.len, stdout);
		return 0;
	}
	r = blame_text(&b, buf_str(&a->answer), a->answer.len, a->flags->cluster);
	if (r < 0)
		return errinfo_set_exit(reterr, r == -EBADMSG ? EXIT_FAILED : 0, r,
			"%s is not a cluster service: its reply cannot be read", a->text);
	fputs(buf_str(&b), stdout);
	return 0;
}

static int asking_open(struct asking *a, struct errinfo *reterr)
{
	const struct blame_flags *f = a->flags;
	struct tls_client_settings trust = {.ca = f->ca_cert,
		.cert = f->client_cert,
		.key = f->client_key,
		.pins = f->fingerprints.value,
		.pin_count = f->fingerprints.count,
		.first_use = f->first_use};
	struct http_client_settings s = {0};
	int r = token_read(f->token_file, TOKEN_VARIABLE, &a->bearer, reterr);

	if (r == 0 && (!f->ca_cert || f->first_use))
		r = trust_known_path(&a->known, reterr);
	trust.known = a->known;
	if (r == 0 && !trust.ca && !trust.pin_count) {
		r = question_own_ca(&a->endpoint, &a->own);
		trust.ca = a->own;
	}
	r = r ?: tls_client_new(&trust, &a->tls, reterr);
	r = r ?: loop_new(&a->loop);
	s.tls = a->tls;
	s.bearer = a->bearer;
	return r < 0 ? r : http_client_new(a->loop, &s, &a->client, reterr);
}

static int ask_at(const struct blame_flags *f, const char *text, struct errinfo *reterr)
{
	_cleanup_(asking_done) struct asking a = {
		.flags = f, .text = text, .answer = BUF_INIT(QUESTION_ANSWER_MAX)};
	int r = http_endpoint_parse(text, false, PORT, &a.endpoint, reterr);

	r = r ?: asking_open(&a, reterr);
	r = r ?: ask(&a, reterr);
	if (r == -EKEYREJECTED && trust_ask(a.tls, NULL) > 0)
		r = ask(&a, reterr);
	return r < 0 ? r : print(&a, reterr);
}

static int run_blame(const struct blame_flags *f, struct errinfo *reterr)
{
	int r;

	if (f->endpoint)
		return ask_at(f, f->endpoint, reterr);
	r = ask_at(f, near_endpoints[0], reterr);
	/* A server that expects TLS says so or hangs up. */
	return r == -EPROTOTYPE || r == -ECONNRESET ? ask_at(f, near_endpoints[1], reterr) : r;
}

static int blame_run(const struct command *cmd _unused_, void *settings, int argc, char **argv)
{
	const struct blame_flags *f = settings;
	struct errinfo e = {0};
	int r;

	(void)argc;
	(void)argv;
	if (!f->client_cert != !f->client_key)
		r = errinfo_set(&e, -EINVAL, "give both --client-cert and --client-key");
	else
		r = run_blame(f, &e);
	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_blame = {
	.name = "blame",
	.synopsis = "blame [--endpoint URL] [--cluster-id NAME] [flags]",
	.summary = "Show which rank makes the others wait, for what, why, and what it costs",
	.details =
		"Asks a running `ingero-cluster fleet` or `all`. Exits 0 if it answered, 1 if not.\n"
		"  ingero-cluster blame\n"
		"  ingero-cluster blame --endpoint https://fleet:8080 --ca-cert ca.pem --json",
	.options = blame_options,
	.settings_size = sizeof(struct blame_flags),
	.defaults = &defaults,
	.run = blame_run,
};

int question_own_ca(const struct http_endpoint *e, char **ret)
{
	_cleanup_free_ char *folder = NULL, *path = NULL;

	if (!endpoint_is_near(e) || state_folder(&folder, NULL) < 0)
		return 0;
	if (asprintf(&path, "%s/tls/cert.pem", folder) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	if (access(path, R_OK) == 0)
		*ret = TAKE(path);
	return 0;
}

struct reply { /* on its way */
	struct loop *loop;
	struct buf *body;
	int status, err;
	struct errinfo e;
};

static void on_answer(void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	struct reply *y = arg;

	y->err = err;
	if (err < 0) {
		y->e = *e;
	} else {
		y->status = r->status;
		buf_append(y->body, r->body, r->body_len);
	}
	loop_stop(y->loop);
}

int question_ask(
	const struct question *q, int *ret_status, struct buf *answer, struct errinfo *reterr)
{
	struct reply y = {.loop = q->loop, .body = answer};
	struct http_ask a = {.endpoint = q->endpoint,
		.method = q->body ? "POST" : "GET",
		.path = q->path,
		.body = q->body,
		.body_len = q->body ? strlen(q->body) : 0,
		.timeout_ns = q->timeout_ns,
		.body_max = QUESTION_ANSWER_MAX};
	int r = http_ask(q->client, &a, on_answer, &y, NULL);

	r = r ?: loop_run(q->loop);
	if (r < 0)
		return r;
	if (y.err < 0) {
		*reterr = y.e;
		reterr->exit_code = EXIT_FAILED;
		return y.err;
	}
	*ret_status = y.status;
	return answer->err;
}

static void tree_done(json_t **t)
{
	json_decref(*t);
}

static void put_escaped(struct buf *b, const json_t *value)
{
	const char *text = json_string_value(value);

	if (text)
		text_escape_terminal(b, text);
}

static uint64_t number(const json_t *object, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(object, key));

	return n > 0 ? (uint64_t)n : 0;
}

static void put_name(struct buf *b, const json_t *e, bool named)
{
	if (named) {
		put_escaped(b, json_object_get(e, "cluster_id"));
		buf_puts(b, ": ");
	}
	put_escaped(b, json_object_get(e, "text"));
}

static void put_episode(struct buf *b, const json_t *e, bool named)
{
	const json_t *fix = json_object_get(e, "fix");

	put_name(b, e, named);
	buf_printf(b, "\n  for %s", TEXT_DURATION(number(e, "lasts_ns")));
	buf_printf(b, ", confidence %s\n",
		TEXT_PERCENT(json_number_value(json_object_get(e, "confidence"))));
	if (json_is_string(fix)) {
		buf_puts(b, "  fix: ");
		put_escaped(b, fix);
		buf_putc(b, '\n');
	}
}

static void put_nobody(struct buf *b, const char *cluster)
{
	if (!cluster) {
		buf_puts(b,
			"No agent has pushed anything yet: start `ingero fleet-push` on the nodes.\n");
		return;
	}
	buf_puts(b, "No agent has pushed anything for cluster ");
	text_escape_terminal(b, cluster);
	buf_puts(b,
		": check the name, leave --cluster-id out to see all clusters, or start `ingero fleet-push`.\n");
}

static void put_last(struct buf *b, const json_t *tree, bool named)
{
	const json_t *last = json_object_get(tree, "last");
	char ago[TEXT_MAX], lasted[TEXT_MAX];

	if (!json_is_object(last))
		return;
	buf_printf(b, "The last incident ended %s ago, after %s: ",
		text_format_duration(ago, number(tree, "now_ns") - number(last, "until_ns")),
		text_format_duration(lasted, number(last, "lasts_ns")));
	put_name(b, last, named);
	buf_putc(b, '\n');
}

static void put_nothing(struct buf *b, const json_t *examined, const char *cluster)
{
	if (!number(examined, "nodes") && !number(examined, "ranks")) {
		put_nobody(b, cluster);
		return;
	}
	buf_printf(b, "No straggler found. Examined: %s, %s, %s.\n",
		TEXT_PLURAL(number(examined, "nodes"), "nodes"),
		TEXT_PLURAL(number(examined, "ranks"), "ranks"),
		TEXT_PLURAL(number(examined, "collectives"), "collectives"));
	if (number(examined, "without_communicator_id"))
		buf_printf(b,
			"%s without communicator id, not matched between ranks: their tracers started late.\n",
			TEXT_PLURAL(number(examined, "without_communicator_id"), "collectives"));
	else if (!number(examined, "collectives"))
		buf_puts(b, "No collectives were seen: only the nodes' scores were compared.\n");
}

int blame_text(struct buf *b, const char *body, size_t len, const char *cluster)
{
	_cleanup_(tree_done) json_t *tree = NULL;
	const json_t *examined, *episodes, *e;
	int r = json_tree_read(body, len, 0, &tree, NULL);
	uint64_t total;
	size_t i;

	if (r < 0)
		return r == -ENOMEM ? r : -EBADMSG;
	examined = json_object_get(tree, "examined");
	episodes = json_object_get(tree, "episodes");
	if (!json_is_object(examined) || !json_is_array(episodes))
		return -EBADMSG;
	if (!json_array_size(episodes)) {
		put_nothing(b, examined, cluster);
		put_last(b, tree, number(examined, "clusters") > 1);
	}
	json_array_foreach (episodes, i, e)
		put_episode(b, e, number(examined, "clusters") > 1);
	total = number(tree, "total");
	if (total > json_array_size(episodes))
		buf_printf(b, "%zu more: see /api/v1/episodes.\n",
			(size_t)total - json_array_size(episodes));
	return b->err;
}
