/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_cert.c - `ingero cert`: a small CA for the nodes of a fleet. Everything that matters is in
 * net/pki/ca.h; here are the flags, and what to do next is said. */
#include <time.h>

#include "base/path_user.h"
#include "cli/commands.h"
#include "command/program.h"
#include "json/writer.h"
#include "net/pki/ca.h"

/* What `ingero cert` prints: lists, and the commands that come next. */

#define DATE_MAX  32
#define LIST_MAX  (32u << 20)
#define NODE_HOME "~/.ingero/fleet" /* where a node keeps its three files */

static const char *date_of(char out[DATE_MAX], int64_t at_s)
{
	time_t t = (time_t)at_s;
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(out, DATE_MAX, "%Y-%m-%d", &tm);
	return out;
}

static int64_t days_left(int64_t until_s)
{
	return (until_s - time(NULL)) / CERT_DAY_S;
}

static bool cert_is_expired(int64_t until_s)
{
	return until_s <= time(NULL);
}

/* ---- what comes next ---- */

/* How the files get to the node. */
static void say_copy(const struct ca_issued *i, const struct ca_request *q)
{
	const char *node = i->row.name;

	printf("Copy it, from here:\n");
	if (q->bundle) {
		const char *file = basename(i->place);

		printf("  scp %s %s:\n"
		       "On %s:\n"
		       "  mkdir -p -m 700 " NODE_HOME " && tar -xf %s -C " NODE_HOME " && rm %s\n",
			i->place, node, node, file, file);
	} else {
		printf("  ssh %s mkdir -p -m 700 .ingero/fleet\n"
		       "  scp -p %s/*.pem %s:.ingero/fleet/\n"
		       "On %s:\n",
			node, i->place, node, node);
	}
}

/* cert_say_issued - @brief: one of many, without what comes next. */
static void cert_say_issued(const struct ca_issued *i, const struct ca_request *q, bool brief)
{
	char date[DATE_MAX];

	printf("%s: %s, until %s, for %s\n  SHA-256 %s\n", i->row.name, i->place,
		date_of(date, i->row.until_s), i->row.names, i->row.fingerprint);
	if (brief)
		return;
	if (i->row.client && q->bundle)
		printf("Unpack it on the machine you query from: mkdir -m 700 fleet && tar -xf %s -C fleet\n",
			i->place);
	else if (i->row.client)
		printf("To query nodes with it, add to ~/.config/ingero/ingero.yaml:\n"
		       "  fleet:\n"
		       "    ca_cert: %s/ca.pem\n"
		       "    client_cert: %s/cert.pem\n"
		       "    client_key: %s/key.pem\n",
			i->place, i->place, i->place);
	if (i->row.client)
		return;
	say_copy(i, q);
	if (q->rotate)
		printf("  pkill -HUP -f 'ingero dashboard'    # reloads it; connections continue\n"
		       "The previous one stays valid until it expires.\n");
	else
		printf("  ingero dashboard --addr :8080 --tls-cert " NODE_HOME
		       "/cert.pem --tls-key " NODE_HOME "/key.pem --client-ca " NODE_HOME
		       "/ca.pem\n");
}

static void cert_say_rotated(const struct ca *ca, bool finished)
{
	struct ca_authority list[CA_AUTHORITIES_MAX];
	size_t count = ca_authorities(ca, list);
	char date[DATE_MAX];

	printf("CA %u signs, until %s, SHA-256 %s\n", list[0].generation,
		date_of(date, list[0].until_s), list[0].fingerprint);
	if (finished) {
		printf("%s/ca.pem holds only this CA. Copy that file to every node and every client,\n"
		       "and send SIGHUP: then certificates of the old CA are refused.\n",
			ca_dir(ca));
		return;
	}
	printf("%s/ca.pem holds %s. In this order, without an outage:\n"
	       "  1. copy that file over ca.pem on every node and every client; then there: pkill -HUP -f 'ingero dashboard'\n"
	       "  2. ingero cert rotate --all    and copy each node's files; then there: pkill -HUP -f 'ingero dashboard'\n"
	       "  3. ingero cert rotate --ca --finish    and copy ca.pem again; then there: pkill -HUP -f 'ingero dashboard'\n",
		ca_dir(ca), count > 1 ? "both the new and the old one" : "only this one");
}

/* ---- the list ---- */

struct list_row {
	const char *kind, *name, *serial, *fingerprint, *names, *state;
	int64_t from_s, until_s;
	unsigned generation;
};

static const char *state_of(bool in_use, const char *otherwise, int64_t until_s)
{
	if (!in_use)
		return otherwise;
	if (cert_is_expired(until_s))
		return "expired";
	return days_left(until_s) < CA_WARN_DAYS ? "expires soon" : "valid";
}

static void put_names(struct json_writer *w, const char *list)
{
	json_begin_array_member(w, "names");
	while (*list) {
		size_t len = strcspn(list, ",");
		_cleanup_free_ char *name = strndup(list, len);

		json_put_string(w, name ? name : "");
		list += len + (list[len] == ',');
	}
	json_end_array(w);
}

static void list_one(struct json_writer *w, const struct list_row *r, size_t *expired)
{
	*expired += !strcmp(r->state, "expired");
	if (w) {
		json_begin_object(w);
		JSON_PUT(w, JSON_S("name", r->name), JSON_S("kind", r->kind),
			JSON_S("state", r->state), JSON_S("fingerprint", r->fingerprint),
			JSON_S("serial", r->serial), JSON_I("not_before", r->from_s),
			JSON_I("not_after", r->until_s), JSON_I("days_left", days_left(r->until_s)),
			JSON_U("ca", r->generation));
		if (r->names)
			put_names(w, r->names);
		json_end_object(w);
	} else {
		char from[DATE_MAX], until[DATE_MAX];

		printf("%-20s %-6s %-12s %s  %s  %6" PRId64 "  %2u\n  SHA-256 %s  serial %s%s%s\n",
			r->name, r->kind, r->state, date_of(from, r->from_s),
			date_of(until, r->until_s), days_left(r->until_s), r->generation,
			r->fingerprint, r->serial, r->names ? "  for " : "",
			r->names ? r->names : "");
	}
}

static void list_all(const struct ca *ca, struct json_writer *w, size_t *expired)
{
	struct ca_authority authority[CA_AUTHORITIES_MAX];
	size_t count = ca_authorities(ca, authority);
	const struct ca_index *x = ca_issued(ca);

	for (size_t i = 0; i < count; i++) {
		const struct ca_authority *a = &authority[i];
		char name[32];

		snprintf(name, sizeof(name), "CA %u", a->generation);
		list_one(w,
			&(struct list_row){.kind = "ca",
				.name = name,
				.serial = a->serial,
				.fingerprint = a->fingerprint,
				.state = state_of(i == 0, "old", a->until_s),
				.from_s = a->from_s,
				.until_s = a->until_s,
				.generation = a->generation},
			expired);
	}
	for (size_t i = 0; i < x->count; i++) {
		const struct ca_row *r = &x->rows[i];

		list_one(w,
			&(struct list_row){.kind = r->client ? "client" : "node",
				.name = r->name,
				.serial = r->serial,
				.fingerprint = r->fingerprint,
				.names = r->names,
				.state =
					state_of(ca_index_is_current(x, i), "replaced", r->until_s),
				.from_s = r->from_s,
				.until_s = r->until_s,
				.generation = r->generation},
			expired);
	}
}

/* cert_list - everything that the CA has issued, and itself. Returns how many of those in use have
 * expired. */
static size_t cert_list(const struct ca *ca, bool json)
{
	_cleanup_buf_ struct buf b = BUF_INIT(LIST_MAX);
	struct json_writer w = json_writer_to_buf(&b);
	size_t expired = 0;

	if (!json) {
		printf("%-20s %-6s %-12s %-10s  %-10s  %6s  %s\n", "NAME", "KIND", "STATE", "FROM",
			"UNTIL", "DAYS", "CA");
		list_all(ca, NULL, &expired);
		return expired;
	}
	json_begin_array(&w);
	list_all(ca, &w, &expired);
	json_end_array(&w);
	json_finish(&w);
	fputs(buf_str(&b), stdout);
	return expired;
}

#define FOLDER "ca" /* in ~/.ingero */

struct cert_settings {
	const char *dir, *out, *bundle;
	struct option_strings names, permit;
	int64_t days;
	bool client, ca, all, finish, force, json;
};

#define OPTION(field) offsetof(struct cert_settings, field)
static const struct option_row cert_options[] = {
	OPTION_ROW(STRING, "dir", OPTION(dir), "DIR", "folder of the CA (default: ~/.ingero/ca)"),
	OPTION_WITHIN(INT, "days", OPTION(days), "N", 1, CA_DAYS_MAX,
		"validity (default: of a CA 3650, of a node 365, rotated as before)"),
	OPTION_ROW(STRINGS, "permit", OPTION(permit), "NAME",
		"init: sign only for names below this domain, or in this network (10.0.0.0/8); may be repeated"),
	OPTION_ROW(STRINGS, "san", OPTION(names), "NAME",
		"issue, rotate: further DNS names and IP addresses of the node; may be repeated"),
	OPTION_ROW(FLAG, "client", OPTION(client), NULL,
		"issue: for a client that queries nodes, not for a node"),
	OPTION_ROW(STRING, "out", OPTION(out), "DIR",
		"issue, rotate: put ca.pem, cert.pem and key.pem into this new folder (default: below --dir)"),
	OPTION_ROW(STRING, "bundle", OPTION(bundle), "FILE",
		"issue, rotate: put them into this tar archive"),
	OPTION_ROW(FLAG, "all", OPTION(all), NULL,
		"rotate: every node whose certificate has not expired"),
	OPTION_ROW(FLAG, "ca", OPTION(ca), NULL, "rotate: the CA; both are trusted until --finish"),
	OPTION_ROW(FLAG, "finish", OPTION(finish), NULL,
		"rotate --ca: the old CA is no longer trusted"),
	OPTION_ROW(FLAG, "force", OPTION(force), NULL,
		"rotate --ca --finish: even if nodes still have certificates of it"),
	OPTION_ROW(FLAG, "json", OPTION(json), NULL, "list: print JSON"),
	OPTION_END,
};

/* ---- what goes with what ---- */

static int rotate(
	const struct cert_settings *s, struct ca *ca, const char *name, struct errinfo *reterr);

static int check_flags(
	const struct cert_settings *s, const char *action, int args, struct errinfo *reterr)
{
	bool init = !strcmp(action, "init"), issue = !strcmp(action, "issue"),
	     rotate = !strcmp(action, "rotate"), list = !strcmp(action, "list");
	bool node = issue || (rotate && !s->ca);
	const struct {
		bool given, allowed;
		const char *name;
	} rows[] = {
		{s->days, init || issue || rotate, "--days"},
		{s->permit.count, init, "--permit"},
		{s->names.count, node && !s->all, "--san"},
		{s->client, issue, "--client"},
		{s->out, node && !s->all, "--out"},
		{s->bundle, node && !s->all, "--bundle"},
		{s->all, rotate && !s->ca, "--all"},
		{s->ca, rotate, "--ca"},
		{s->finish, rotate && s->ca, "--finish"},
		{s->force, rotate && s->finish, "--force"},
		{s->json, list, "--json"},
	};

	if (!init && !issue && !rotate && !list)
		return errinfo_set(reterr, -EINVAL,
			"unknown action '%.60s': use init, issue, list or rotate", action);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].given && !rows[i].allowed)
			return errinfo_set(reterr, -EINVAL,
				"%s cannot be combined with `cert %s%s`", rows[i].name, action,
				s->ca    ? " --ca"
				: s->all ? " --all"
					 : "");
	if (s->out && s->bundle)
		return errinfo_set(reterr, -EINVAL, "give either --out or --bundle");
	if (node && !s->all && args != 1)
		return errinfo_set(reterr, -EINVAL, "give one name: `ingero cert %s gpu-node-01`%s",
			action, rotate ? ", or --all, or --ca" : "");
	if ((!node || s->all) && args)
		return errinfo_set(reterr, -EINVAL, "`cert %s%s` takes no name", action,
			s->ca    ? " --ca"
			: s->all ? " --all"
				 : "");
	return 0;
}

/* ---- the actions ---- */

static int init(const struct cert_settings *s, const char *dir, struct errinfo *reterr)
{
	_cleanup_(ca_freep) struct ca *ca = NULL;
	int r = ca_init(dir, s->permit.value, s->days ? (int)s->days : CA_DAYS, reterr);

	r = r ?: ca_open(dir, false, &ca, reterr);
	if (r == 0) {
		struct ca_authority list[CA_AUTHORITIES_MAX];
		char date[DATE_MAX];

		ca_authorities(ca, list);
		printf("CA: %s, until %s, SHA-256 %s\n"
		       "Its key is %s/ca.key: whoever has it can impersonate any node. Keep a copy of the folder\n"
		       "where only you can read it. Next, for each node and each client:\n"
		       "  ingero cert issue gpu-node-01 --bundle gpu-node-01.tar\n"
		       "  ingero cert issue me --client --out me\n",
			ca_dir(ca), date_of(date, list[0].until_s), list[0].fingerprint,
			ca_dir(ca));
	}
	return r;
}

static int make(const struct cert_settings *s, struct ca *ca, const char *name, bool rotate,
	struct errinfo *reterr)
{
	const struct ca_request q = {.name = name,
		.names = rotate && !s->names.count ? NULL : s->names.value,
		.client = s->client,
		.days = (int)s->days,
		.rotate = rotate,
		.out = s->out,
		.bundle = s->bundle};
	struct ca_issued issued;
	int r = ca_issue(ca, &q, &issued, reterr);

	if (r == 0)
		cert_say_issued(&issued, &q, s->all);
	return r;
}

static int rotate_all(const struct cert_settings *s, struct ca *ca, struct errinfo *reterr)
{
	const struct ca_index *x = ca_issued(ca);
	_cleanup_free_ char(*names)[CERT_NAME_LEN + 1] = calloc(x->count + 1, sizeof(*names));
	size_t count = 0;
	int r = 0;

	if (!names)
		return -ENOMEM;
	for (size_t i = 0; i < x->count; i++)
		if (ca_index_is_current(x, i) && !cert_is_expired(x->rows[i].until_s))
			memcpy(names[count++], x->rows[i].name, sizeof(*names));
	if (!count)
		return errinfo_set_exit(reterr, EXIT_NO_INPUT, -ENOENT,
			"there is no certificate to rotate in %s", ca_dir(ca));
	for (size_t i = 0; r == 0 && i < count; i++)
		r = make(s, ca, names[i], true, reterr);
	return r;
}

static int rotate(
	const struct cert_settings *s, struct ca *ca, const char *name, struct errinfo *reterr)
{
	int r;

	if (s->all)
		return rotate_all(s, ca, reterr);
	if (!s->ca)
		return make(s, ca, name, true, reterr);
	r = s->finish ? ca_finish(ca, s->force, reterr)
		      : ca_rotate(ca, s->days ? (int)s->days : CA_DAYS, reterr);
	if (r == 0)
		cert_say_rotated(ca, s->finish);
	return r;
}

static int act(const struct cert_settings *s, const char *action, const char *name, const char *dir,
	int *ret_code, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	_cleanup_(ca_freep) struct ca *ca = NULL;
	bool list = !strcmp(action, "list");
	int r = path_user_enter(dir, &before, reterr);

	if (r < 0)
		return r;
	if (!strcmp(action, "init"))
		return init(s, dir, reterr);
	r = ca_open(dir, !list, &ca, reterr);
	if (r < 0)
		return r;
	if (list)
		*ret_code = cert_list(ca, s->json) ? EXIT_FAILED : EXIT_OK;
	else if (!strcmp(action, "issue"))
		r = make(s, ca, name, false, reterr);
	else
		r = rotate(s, ca, name, reterr);
	return r;
}

/* find_dir - --dir without slashes at its end, or ~/.ingero/ca; @make: with ~/.ingero there. */
static int find_dir(const struct cert_settings *s, bool make, char **ret, struct errinfo *reterr)
{
	bool made;
	int r;

	if (!s->dir) {
		r = owner_home_file(FOLDER, ret, reterr);
		return r < 0 || !make ? r : owner_make_folder(*ret, &made, reterr);
	}
	*ret = strdup(s->dir);
	if (!*ret)
		return -ENOMEM;
	for (size_t len = strlen(*ret); len > 1 && (*ret)[len - 1] == '/'; len--)
		(*ret)[len - 1] = 0;
	return 0;
}

static int cert_run(const struct command *c, void *settings, int argc, char **argv)
{
	const struct cert_settings *s = settings;
	_cleanup_free_ char *dir = NULL;
	struct errinfo e = {0};
	int r, code = EXIT_OK;

	(void)c;
	r = !argc ? errinfo_set(&e, -EINVAL, "name an action: init, issue, list or rotate")
		  : check_flags(s, argv[0], argc - 1, &e);
	r = r ?: find_dir(s, !strcmp(argv[0], "init"), &dir, &e);
	r = r ?: act(s, argv[0], argc > 1 ? argv[1] : NULL, dir, &code, &e);
	return r < 0 ? dispatch_fail(&e, r) : code;
}

const struct command cmd_cert = {
	.name = "cert",
	.synopsis = "cert init|issue|list|rotate [NAME] [flags]",
	.summary = "Make certificates for the nodes of a fleet",
	.details =
		"  ingero cert init                                   a CA, in ~/.ingero/ca\n"
		"  ingero cert issue gpu-node-01 --bundle gpu-node-01.tar\n"
		"  ingero cert issue alice --client --out alice       for a client of the nodes\n"
		"  ingero cert list                                   exits 1 if one has expired\n"
		"  ingero cert rotate gpu-node-01 --bundle gpu-node-01.tar\n"
		"  ingero cert rotate --ca                            then --all, then --ca --finish\n"
		"Keep the folder of the CA on a machine that you trust. docs/certificates.md has the\nrecipe for a fleet.",
	.options = cert_options,
	.settings_size = sizeof(struct cert_settings),
	.max_args = 2,
	.run = cert_run,
};
