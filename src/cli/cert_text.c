/* SPDX-License-Identifier: Apache-2.0 */
/* cert_text.c - see cert_text.h. */
#include "cli/cert_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "json/writer.h"

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

bool cert_is_expired(int64_t until_s)
{
	return until_s <= time(NULL);
}

/* ---- what comes next ---- */

void cert_say_made(const struct ca *ca)
{
	struct ca_authority list[CA_AUTHORITIES_MAX];
	char date[DATE_MAX];

	ca_authorities(ca, list);
	printf("CA: %s, until %s, SHA-256 %s\n"
	       "Its key is %s/ca.key: whoever has it can be any node. Keep a copy of the folder\n"
	       "where only you can read it. Next, for each node and for whoever asks them:\n"
	       "  ingero cert issue gpu-node-01 --bundle gpu-node-01.tar\n"
	       "  ingero cert issue me --client --out me\n",
		ca_dir(ca), date_of(date, list[0].until_s), list[0].fingerprint, ca_dir(ca));
}

static void say_client(const struct ca_issued *i)
{
	printf("To ask nodes with it, in ~/.config/ingero/ingero.yaml:\n"
	       "  fleet:\n"
	       "    ca_cert: %s/ca.pem\n"
	       "    client_cert: %s/cert.pem\n"
	       "    client_key: %s/key.pem\n",
		i->place, i->place, i->place);
}

/* How the files get to the node. */
static void say_copy(const struct ca_issued *i, const struct ca_request *q)
{
	const char *node = i->row.name;

	printf("Copy it, from here:\n");
	if (q->bundle) {
		const char *slash = strrchr(i->place, '/');

		printf("  scp %s %s:\n"
		       "On %s:\n"
		       "  mkdir -p -m 700 " NODE_HOME " && tar -xf %s -C " NODE_HOME " && rm %s\n",
			i->place, node, node, slash ? slash + 1 : i->place,
			slash ? slash + 1 : i->place);
	} else {
		printf("  ssh %s mkdir -p -m 700 .ingero/fleet\n"
		       "  scp -p %s/*.pem %s:.ingero/fleet/\n"
		       "On %s:\n",
			node, i->place, node, node);
	}
}

void cert_say_issued(const struct ca_issued *i, const struct ca_request *q, bool brief)
{
	char date[DATE_MAX];

	printf("%s: %s, until %s, for %s\n  SHA-256 %s\n", i->row.name, i->place,
		date_of(date, i->row.until_s), i->row.names, i->row.fingerprint);
	if (brief)
		return;
	if (i->row.client && q->bundle)
		printf("Unpack it where you ask from: mkdir -m 700 fleet && tar -xf %s -C fleet\n",
			i->place);
	else if (i->row.client)
		say_client(i);
	if (i->row.client)
		return;
	say_copy(i, q);
	if (q->rotate)
		printf("  pkill -HUP -f 'ingero dashboard'    # reads it; connections go on\n"
		       "The one before is valid until it expires.\n");
	else
		printf("  ingero dashboard --addr :8080 --tls-cert " NODE_HOME
		       "/cert.pem --tls-key " NODE_HOME "/key.pem --client-ca " NODE_HOME
		       "/ca.pem\n");
}

void cert_say_rotated(const struct ca *ca, bool finished)
{
	struct ca_authority list[CA_AUTHORITIES_MAX];
	size_t count = ca_authorities(ca, list);
	char date[DATE_MAX];

	printf("CA %u signs, until %s, SHA-256 %s\n", list[0].generation,
		date_of(date, list[0].until_s), list[0].fingerprint);
	if (finished) {
		printf("%s/ca.pem holds it alone. Copy that file to every node and to whoever asks,\n"
		       "and send SIGHUP: then certificates of the old CA are refused.\n",
			ca_dir(ca));
		return;
	}
	printf("%s/ca.pem holds %s. In this order, without an outage:\n"
	       "  1. copy that file over ca.pem on every node and to whoever asks; then there: pkill -HUP -f 'ingero dashboard'\n"
	       "  2. ingero cert rotate --all    and copy each node's files; then there: pkill -HUP -f 'ingero dashboard'\n"
	       "  3. ingero cert rotate --ca --finish    and copy ca.pem again; then there: pkill -HUP -f 'ingero dashboard'\n",
		ca_dir(ca), count > 1 ? "both, the new and the old one" : "it alone");
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

static void print_text(const struct list_row *r)
{
	char from[DATE_MAX], until[DATE_MAX];

	printf("%-20s %-6s %-12s %s  %s  %6" PRId64 "  %2u\n  SHA-256 %s  serial %s%s%s\n", r->name,
		r->kind, r->state, date_of(from, r->from_s), date_of(until, r->until_s),
		days_left(r->until_s), r->generation, r->fingerprint, r->serial,
		r->names ? "  for " : "", r->names ? r->names : "");
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

static void put_json(struct json_writer *w, const struct list_row *r)
{
	json_begin_object(w);
	json_string_member(w, "name", r->name);
	json_string_member(w, "kind", r->kind);
	json_string_member(w, "state", r->state);
	json_string_member(w, "fingerprint", r->fingerprint);
	json_string_member(w, "serial", r->serial);
	json_int_member(w, "not_before", r->from_s);
	json_int_member(w, "not_after", r->until_s);
	json_int_member(w, "days_left", days_left(r->until_s));
	json_uint_member(w, "ca", r->generation);
	if (r->names)
		put_names(w, r->names);
	json_end_object(w);
}

static void list_one(struct json_writer *w, const struct list_row *r, size_t *expired)
{
	*expired += !strcmp(r->state, "expired");
	if (w)
		put_json(w, r);
	else
		print_text(r);
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

size_t cert_list(const struct ca *ca, bool json)
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
