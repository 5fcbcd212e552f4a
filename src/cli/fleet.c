/* SPDX-License-Identifier: Apache-2.0 */
/* fleet.c - see fleet.h. */
#include "cli/fleet.h"

#include "base/log.h"
#include "base/text.h"
#include "command/program.h"
#include "command/server_access.h"
#include "cli/progress.h"
#include "net/server/token.h"

void fleet_done(struct fleet *f)
{
	fanout_freep(&f->fanout);
	loop_freep(&f->loop);
	config_freep(&f->config);
	if (f->bearer)
		explicit_bzero(f->bearer, strlen(f->bearer));
	free(f->bearer);
	free(f->known);
	*f = (struct fleet){0};
}

static bool has_other_flags(const struct fleet_options *w)
{
	return w->ca_cert || w->client_cert || w->client_key || w->token_file ||
	       w->fingerprints.count || w->first_use || w->skew_ns != CONFIG_UNSET || w->no_tls ||
	       !w->require_tls;
}

static int list_nodes(const struct fleet_options *w, bool tls, struct fleet *f,
	struct fanout_nodes *nodes, struct errinfo *reterr)
{
	struct errinfo e = {0};
	int r = 0;

	if (!f->from_config) {
		for (size_t i = 0; r == 0 && i < w->nodes.count; i++)
			r = fanout_nodes_add(nodes, w->nodes.value[i], tls, &e);
		return r < 0 ? errinfo_set(reterr, r, "--nodes: %s", e.text) : 0;
	}
	for (size_t i = 0; r == 0 && i < f->config->fleet_nodes.count; i++)
		r = fanout_nodes_add(nodes, f->config->fleet_nodes.items[i], tls, &e);
	return r < 0 ? config_file_blame(f->config, "fleet.nodes", r, e.text, reterr) : 0;
}

static const char *either(const char *given, const char *configured)
{
	return given ? given : configured;
}

/* Whether @e is about a value of ingero.yaml: then that is said. Whose file others can read is told
 * by its name alone: the value is right. */
static int blame(const struct fleet_options *w, const struct config *c, int err,
	const struct errinfo *e, struct errinfo *reterr)
{
	const struct {
		const char *key, *given, *configured, *word;
	} rows[] = {
		{"fleet.fingerprint", w->fingerprints.count ? "" : NULL,
			c->fleet_fingerprint.count ? "" : NULL, "fingerprint has"},
		{"fleet.ca_cert", w->ca_cert, c->fleet_ca_cert, c->fleet_ca_cert},
		{"fleet.client_key", w->client_key, c->fleet_client_key, c->fleet_client_key},
		{"fleet.client_cert", w->client_cert, c->fleet_client_cert, c->fleet_client_cert},
		{"fleet.token_file", w->token_file, c->fleet_token_file, c->fleet_token_file},
	};

	if (reterr)
		*reterr = *e;
	for (size_t i = 0; e->exit_code != EXIT_NO_PERMISSION && i < ARRAY_SIZE(rows); i++)
		if (!rows[i].given && rows[i].configured && strstr(e->text, rows[i].word))
			return config_file_blame(c, rows[i].key, err, e->text, reterr);
	return err;
}

/* Who named authorities is not asked about strangers, unless that is wanted too. */
static int set_trust(const struct fleet_options *w, struct fleet *f, struct tls_client_settings *s,
	struct errinfo *reterr)
{
	const struct config *c = f->config;

	s->ca = either(w->ca_cert, c->fleet_ca_cert);
	s->cert = either(w->client_cert, c->fleet_client_cert);
	s->key = either(w->client_key, c->fleet_client_key);
	s->pins = w->fingerprints.value;
	s->pin_count = w->fingerprints.count;
	if (!s->pin_count) {
		s->pins = (const char *const *)c->fleet_fingerprint.items;
		s->pin_count = c->fleet_fingerprint.count;
	}
	s->first_use = w->first_use || c->fleet_trust_on_first_use;
	if (s->ca && !s->first_use)
		return 0;
	s->known = trust_known_path(&f->known, NULL) == 0 ? f->known : NULL;
	if (s->first_use && !s->known)
		return trust_known_path(&f->known, reterr);
	return 0;
}

static int connect_nodes(const struct fleet_options *w, struct fleet *f,
	const struct fanout_nodes *nodes, struct errinfo *reterr)
{
	const struct config *c = f->config;
	struct fanout_settings s = {
		.nodes = nodes, .allow_plain = !w->require_tls, .skew_ns = FANOUT_SKEW_NS};
	struct errinfo e = {0};
	int r = token_read(
		either(w->token_file, c->fleet_token_file), FANOUT_TOKEN_VARIABLE, &f->bearer, &e);

	if (r < 0)
		return blame(w, c, r, &e, reterr);
	r = set_trust(w, f, &s.tls, reterr);
	if (r < 0)
		return r;
	if (!s.tls.cert != !s.tls.key)
		return errinfo_set(
			reterr, -EINVAL, "--client-cert and --client-key must be given together");
	s.bearer = f->bearer;
	if (w->timeout_ns)
		s.timeout_ns = w->timeout_ns;
	else if (c->fleet_timeout_ns != CONFIG_UNSET)
		s.timeout_ns = c->fleet_timeout_ns;
	else
		s.timeout_ns = w->usual_ns;
	if (w->skew_ns != CONFIG_UNSET)
		s.skew_ns = w->skew_ns;
	else if (c->fleet_clock_skew_ns != CONFIG_UNSET)
		s.skew_ns = c->fleet_clock_skew_ns;
	r = loop_new(&f->loop);
	if (r < 0)
		return errinfo_set(reterr, r, "cannot create an event loop: %s", strerror(-r));
	r = fanout_new(f->loop, &s, &f->fanout, &e);
	return r < 0 ? blame(w, c, r, &e, reterr) : 0;
}

/* Whoever did not name nodes is told whose these are. */
static void print_origin(const struct fleet *f)
{
	fprintf(stderr, "ingero: querying the %s in %s; use --db to read a local recording\n",
		TEXT_PLURAL(f->node_count, "nodes"), TEXT_SHOWN(f->config->path));
}

int fleet_open(
	const struct fleet_options *w, const char *db, struct fleet *ret, struct errinfo *reterr)
{
	_cleanup_(fanout_nodes_done) struct fanout_nodes nodes = {0};
	_cleanup_(fleet_done) struct fleet f = {0};
	int r;

	if (w->nodes.count && db)
		return errinfo_set(reterr, -EINVAL, "give either --db or --nodes");
	r = config_file_load(&f.config, reterr);
	if (r < 0)
		return r;
	f.from_config = !w->nodes.count && !db && f.config->fleet_nodes.count;
	r = list_nodes(w, !w->no_tls && !f.config->fleet_no_tls, &f, &nodes, reterr);
	if (r < 0)
		return r;
	f.node_count = nodes.count;
	if (!nodes.count && has_other_flags(w))
		return errinfo_set(reterr, -EINVAL,
			"fleet flags require nodes: use --nodes, or fleet.nodes in ingero.yaml");
	if (nodes.count)
		r = connect_nodes(w, &f, &nodes, reterr);
	if (r < 0)
		return r;
	if (f.from_config)
		print_origin(&f);
	*ret = f;
	f = (struct fleet){0};
	return 0;
}

int fleet_ask(struct fleet *f, const struct fanout_question *q, struct fanout_result *ret,
	struct errinfo *reterr)
{
	_cleanup_(progress_done) struct progress progress = PROGRESS_INIT;
	int r;

	progress_begin(&progress, STDERR_FILENO, "querying the nodes");
	r = fanout_wait(f->fanout, q, ret, reterr);
	progress_done(&progress);
	r = r ?: trust_ask(fanout_tls(f->fanout), reterr);
	if (r > 0) {
		fanout_result_done(ret);
		*ret = (struct fanout_result){0};
		r = fanout_wait(f->fanout, q, ret, reterr);
	}
	if (r == 0) {
		for (size_t i = 0; i < ret->count; i++) {
			const struct fanout_answer *a = &ret->answers[i];

			if (a->clock.known)
				log_debug("node %s: clock offset %s%s ± %s", a->address,
					a->clock.offset_ns < 0 ? "-" : "+",
					TEXT_DURATION((uint64_t)llabs(a->clock.offset_ns)),
					TEXT_DURATION(a->clock.error_ns));
		}
	}
	return r;
}

static bool is_alike(const struct fanout_result *r)
{
	for (size_t i = 1; i < r->count; i++)
		if (strcmp(r->answers[i].why, r->answers[0].why) != 0)
			return false;
	return true;
}

/* A stranger's words, line by line. */
static void print_hint(const char *hint)
{
	while (*hint) {
		_cleanup_buf_ struct buf line = BUF_INIT(8192), b = BUF_INIT(32768);
		size_t len = strcspn(hint, "\n");

		buf_append(&line, hint, len);
		text_escape_terminal(&b, buf_str(&line));
		fprintf(stderr, "%s\n", buf_str(&b));
		hint += len + (hint[len] == '\n');
	}
}

int fleet_print(const struct fanout_result *r)
{
	bool none = r->ok_count == 0, alike = none && is_alike(r);
	struct errinfo e = {0};
	int code;

	for (size_t i = 0; i < r->warning_count; i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(8192);

		if (alike && (r->warnings[i].note == FANOUT_NOTE_FAILED ||
				     r->warnings[i].note == FANOUT_NOTE_COLUMNS))
			continue; /* one sentence says it for all */
		text_escape_terminal(&b, r->warnings[i].text);
		fprintf(stderr, "WARNING: %s\n", buf_str(&b));
	}
	if (!none)
		return (int)fanout_verdict(r);
	fanout_why(r, &e);
	code = dispatch_fail(&e, -EIO);
	if (alike && r->answers[0].hint)
		print_hint(r->answers[0].hint);
	return code;
}
