/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <unistd.h>

#include "base/file.h"
#include "cluster/tenant/tenants.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

#define DAY_NS (86400 * (int64_t)NS_PER_S)

static char dir[64], path[80];

static int make_folder(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/test-tenants-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/acl.yaml", dir);
	unsetenv("INGERO_TLS_ALLOW_LOOSE_KEY_PERMS");
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

static void write_file(const char *text)
{
	assert_int_equal(file_write_atomic(path, text, strlen(text), 0600), 0);
}

static struct tenants *read_file(const char *text)
{
	struct tenants *t = NULL;
	struct errinfo e = {0};

	write_file(text);
	if (tenants_read(path, &t, &e) < 0)
		fail_msg("%s", e.text);
	return t;
}

static uint64_t number(const char *token)
{
	return token_number(token, strlen(token));
}

/* shown - what a server makes of it. */
static uint64_t shown(struct tenants *t, const char *token)
{
	char line[600];

	snprintf(line, sizeof(line), "Bearer %s", token);
	return token_set_find(tenants_tokens(t), line);
}

static const struct tenant *who(struct tenants *t, const char *token)
{
	uint64_t credential = shown(t, token);

	return credential ? tenants_find(t, credential, wall_now().ns) : NULL;
}

static bool sees(struct tenants *t, const char *token, const char *cluster)
{
	return tenant_may_see(who(t, token), cluster, strlen(cluster));
}

static const char list[] = "# teams\n"
			   "- key_name: training\n"
			   "  token: " A "\n"
			   "  allowed_clusters: [prod-a, prod-b]\n"
			   "  verbs: [read, sql]\n"
			   "- key_name: all\n"
			   "  token: " B "\n"
			   "  allowed_clusters: []\n";

static void test_scopes(void **state)
{
	_cleanup_(tenants_freep) struct tenants *t = read_file(list);
	const struct tenant *a, *b;

	(void)state;
	a = who(t, A);
	assert_string_equal(a->name, "training");
	assert_int_equal(a->credential, number(A));
	assert_int_equal(a->verbs, TENANT_READ | TENANT_SQL);
	assert_int_equal(a->cluster_count, 2);
	assert_true(sees(t, A, "prod-a"));
	assert_true(sees(t, A, "prod-b"));
	assert_false(sees(t, A, "prod-c"));
	assert_false(sees(t, A, "prod"));
	assert_false(sees(t, A, "prod-aa"));
	assert_false(sees(t, A, ""));
	assert_false(tenant_may_see(a, "prod-a\0", 7));
	b = who(t, B);
	assert_string_equal(b->name, "all");
	assert_null(b->clusters);
	assert_true(sees(t, B, "anything"));
	assert_int_equal(b->verbs, TENANT_INGEST | TENANT_READ | TENANT_SQL | TENANT_ADMIN);
	assert_int_equal(shown(t, C), 0);
	assert_null(tenants_find(t, number(C), 1));
	assert_false(tenant_may_see(NULL, "prod-a", 6));
	/* who needs no token, and where none is asked for */
	assert_true(tenant_may_see(tenants_find(t, 0, 1), "x", 1));
	assert_true(tenant_may_see(tenants_find(NULL, number(C), 1), "x", 1));
}

static void test_json_and_hashes(void **state)
{
	/* SHA-256 of A */
	static const char json[] =
		"[\n\t{\"key_name\": \"a\",\n\t \"token_sha256\": "
		"\"FFE054FE7AE0CB6DC65C3AF9B61D5209F439851DB43D0BA5997337DF154668EB\",\n"
		"\t \"allowed_clusters\": [\"x/\\u00e9\"], \"requests_per_second\": 7}\n]\n";
	_cleanup_(tenants_freep) struct tenants *t = read_file(json);

	(void)state;
	assert_true(sees(t, A, "x/\xc3\xa9"));
	assert_false(sees(t, A, "x/e"));
	assert_null(who(t, B));
}

static void test_plain_tokens(void **state)
{
	_cleanup_(tenants_freep) struct tenants *t = read_file("# one\n" A "\n" B " # two\n");

	(void)state;
	assert_string_equal(who(t, A)->name, "");
	assert_true(sees(t, A, "x"));
	assert_true(sees(t, B, "y"));
	assert_null(who(t, C));
}

static void test_what_is_refused(void **state)
{
#define ENTRY "- key_name: a\n  token: " A "\n"
	static const struct {
		const char *text, *said;
	} rows[] = {
		{"", "contains no token"},
		{"---\n", "expected a list"},
		{"[]", "expected a list"},
		{"{\"key_name\":\"a\",\"token\":\"" A "\"}", "expected a list"},
		{"key_name: a\ntoken: " A "\n", "expected a list"},
		{"- " A "\n", "must have keys"},
		{"- key_name: a\n", "either token or token_sha256"},
		{"- token: " A "\n", "needs key_name"},
		{ENTRY "  token_sha256: " A "\n", "either token or token_sha256"},
		{ENTRY "  clusters: [a]\n", "line 3: an entry has an unknown key"},
		{ENTRY "  allowed_clusters: prod\n", "must be a list"},
		{ENTRY "  allowed_clusters: ['']\n", "must have 1 to"},
		{ENTRY "  allowed_clusters: ['prod-*']\n", "patterns are not supported"},
		{ENTRY "  allowed_clusters: [\"a\\eb\"]\n", "cannot be shown"},
		{ENTRY "  verbs: []\n", "leave it out for all"},
		{ENTRY "  verbs: [write]\n", "ingest, read, sql or admin"},
		{ENTRY "  expires: soon\n", "a time such as"},
		{ENTRY "  expires: '13:48'\n", "a time such as"},
		{ENTRY "  expires: 2027-13-01\n", "a time such as"},
		{ENTRY "  requests_per_second: 0\n", "requests_per_second"},
		{ENTRY "  ingest_rows_per_second: 0\n", "ingest_rows_per_second"},
		{ENTRY "  ingest_bytes_per_second: lots\n", "ingest_bytes_per_second"},
		{ENTRY "  ingest_bytes_per_second: 2t\n", "at most 1t"},
		{ENTRY "  max_size_percent: 101\n", "max_size_percent"},
		{ENTRY "  max_size_percent: 5\n", "needs allowed_clusters"},
		{ENTRY "  allowed_clusters: [x]\n  verbs: [read]\n  max_size_percent: 5\n",
			"the verb ingest"},
		{ENTRY "  allowed_clusters: [x]\n  max_size_percent: 60\n- key_name: b\n  token: " B
		       "\n  allowed_clusters: [y]\n  max_size_percent: 60\n",
			"adds up to 120"},
		{ENTRY ENTRY, "is given twice"},
		{ENTRY "  token: " B "\n", "duplicate key"},
		{"- key_name: a\n  token: short-one\n", "fewer than 16"},
		{"- key_name: a\n  token: 'secretsecret secretsecret'\n", "blanks"},
		{"- key_name: a\n  token_sha256: 12\n", "64 hex digits"},
		{"- key_name: \"a\\nb\"\n  token: " A "\n", "cannot be shown"},
		{"key: " A "\n", "blanks"},
		{"\xef\xbb\xbf[{\"key_name\":\"a\",\"token\":\"" A "\"}]", "not allowed in HTTP"},
		{"[{\"key_name\":\"a\",\"token\":\"" A "\"}", "not valid YAML"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct tenants *t = NULL;
		struct errinfo e = {0};

		write_file(rows[i].text);
		assert_true(tenants_read(path, &t, &e) < 0);
		if (!strstr(e.text, rows[i].said))
			fail_msg("%zu: %s", i, e.text);
		assert_null(t);
		assert_null(strstr(e.text, A)); /* a token is never repeated */
		assert_null(strstr(e.text, "short-one"));
		assert_null(strstr(e.text, "secretsecret"));
	}
	/* a positive control: what all of them are made of is good */
	tenants_free(read_file(ENTRY));
	write_file(ENTRY);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(
		tenants_read(path, &(struct tenants *){NULL}, &(struct errinfo){0}), -EPERM);
}

static void test_expiry(void **state)
{
	_cleanup_(tenants_freep) struct tenants *t =
		read_file("- key_name: a\n  token: " A "\n  expires: 2020-01-01T00:00:00Z\n"
			  "- key_name: b\n  token: " B "\n  expires: 2100-01-01T00:00:00Z\n");
	int64_t y2100 = 47482 * DAY_NS;

	(void)state;
	assert_int_equal(shown(t, A), 0);
	assert_null(tenants_find(t, number(A), wall_now().ns));
	assert_non_null(tenants_find(t, number(A), DAY_NS)); /* control: it is there */
	assert_non_null(who(t, B));
	assert_int_equal(who(t, B)->expires_ns, y2100);
	assert_non_null(tenants_find(t, number(B), y2100 - 1));
	assert_null(tenants_find(t, number(B), y2100));
}

static void reload(struct tenants *t, const char *text, uint64_t now_ns)
{
	struct errinfo e = {0};

	write_file(text);
	if (tenants_reload(t, now_ns, &e) < 0)
		fail_msg("%s", e.text);
}

static void test_grace(void **state)
{
	_cleanup_(tenants_freep) struct tenants *t = read_file(list);
	struct token_set *tokens = tenants_tokens(t);
	uint64_t now_ns = mono_now().ns;

	(void)state;
	/* A goes, but not at once, and with what it could see; B is narrowed at once; C comes. */
	reload(t,
		"- key_name: b\n  token: " B "\n  allowed_clusters: [one]\n"
		"- key_name: c\n  token: " C "\n",
		now_ns);
	assert_ptr_equal(tenants_tokens(t), tokens);
	assert_true(sees(t, A, "prod-a"));
	assert_false(sees(t, A, "one"));
	assert_true(sees(t, B, "one"));
	assert_false(sees(t, B, "prod-a"));
	assert_true(sees(t, C, "one"));
	/* Other reloads do not make a grace longer. */
	reload(t, "- key_name: c\n  token: " C "\n", now_ns + TENANTS_GRACE_NS - 1);
	assert_true(sees(t, A, "prod-a"));
	assert_true(sees(t, B, "one"));
	reload(t, "- key_name: c2\n  token: " C "\n", now_ns + TENANTS_GRACE_NS);
	assert_int_equal(shown(t, A), 0);
	assert_true(sees(t, B, "one"));
	assert_string_equal(who(t, C)->name, "c2");
}

static void test_grace_is_over(void **state)
{
	_cleanup_(tenants_freep) struct tenants *t = read_file(list);
	uint64_t now_ns = mono_now().ns;

	(void)state;
	/* as if it had been reloaded a grace ago */
	if (now_ns > TENANTS_GRACE_NS) {
		reload(t, "- key_name: b\n  token: " B "\n", now_ns - TENANTS_GRACE_NS);
		assert_int_equal(shown(t, A), 0);
		assert_true(sees(t, B, "prod-a"));
		/* who comes back has the rights that it comes back with */
		reload(t, "- key_name: a\n  token: " A "\n  allowed_clusters: [x]\n", now_ns);
		assert_true(sees(t, A, "x"));
		assert_false(sees(t, A, "prod-a"));
	} else {
		print_message("the machine has just been started: nothing can lie in the past\n");
	}
	/* ended at once */
	reload(t, "- key_name: a\n  token: " A "\n  expires: 2020-01-01T00:00:00Z\n", now_ns);
	assert_int_equal(shown(t, A), 0);
}

static void test_failed_reload(void **state)
{
	_cleanup_(tenants_freep) struct tenants *t = read_file(list);
	struct errinfo e = {0};

	(void)state;
	write_file("- key_name: a\n  token: " C "\n  nonsense: 1\n");
	assert_int_equal(tenants_reload(t, mono_now().ns, &e), -EINVAL);
	unlink(path);
	assert_int_equal(tenants_reload(t, mono_now().ns, &e), -ENOENT);
	assert_true(sees(t, A, "prod-a"));
	assert_int_equal(shown(t, C), 0);
}

/* What was found stays valid over reloads; there is an end to them, and time opens it again. */
static void test_many_reloads(void **state)
{
	_cleanup_(tenants_freep) struct tenants *t = read_file(list);
	const struct tenant *before = who(t, A);
	uint64_t now_ns = mono_now().ns;
	struct errinfo e = {0};
	int done = 0, r = 0;

	(void)state;
	while (r == 0 && done < 1000) {
		char text[200];

		snprintf(text, sizeof(text), "- key_name: k%d\n  token: " B "%d\n", done, done);
		write_file(text);
		r = tenants_reload(t, now_ns, &e);
		done += r == 0;
	}
	assert_int_equal(r, -EAGAIN);
	assert_int_equal(done, 64);
	assert_string_equal(before->name, "training");
	assert_true(tenant_may_see(before, "prod-a", 6));
	reload(t, list, now_ns + TENANTS_VALID_NS + 1);
	for (int i = 0; i < 1000; i++) /* the same again is none */
		reload(t, list, now_ns + TENANTS_VALID_NS + 1);
	assert_true(sees(t, A, "prod-a"));
}

/* take - a question; 0: it may be asked, else the seconds to wait. */
static unsigned take(struct tenants *t, const char *token, uint64_t now_ns)
{
	struct tenant_refusal no = {0};

	if (tenants_admit(t, token ? number(token) : 0, TENANT_READ, now_ns, 1, &no))
		return 0;
	assert_int_equal(no.status, 429);
	return no.retry_s;
}

static void test_rates(void **state)
{
	_cleanup_(tenants_freep) struct tenants *t =
		read_file("- key_name: a\n  token: " A "\n  requests_per_second: 2\n"
			  "- key_name: b\n  token: " B "\n");
	uint64_t now_ns = 1000 * NS_PER_S;
	int taken = 0;

	(void)state;
	for (int i = 0; i < 100; i++)
		taken += !take(t, A, now_ns);
	assert_int_equal(taken, 8);
	assert_int_equal(take(t, A, now_ns), 1);
	assert_int_equal(take(t, A, now_ns + NS_PER_S / 2 - 1), 1);
	assert_int_equal(take(t, A, now_ns + NS_PER_S / 2), 0);
	/* others have their own, nobody's is without end, and a reload gives nothing back */
	for (taken = 0; !take(t, B, now_ns);)
		taken++;
	assert_int_equal(taken, 4 * TENANTS_ASK_RATE);
	reload(t, "- key_name: a\n  token: " A "\n  requests_per_second: 2\n", mono_now().ns);
	assert_int_equal(take(t, A, now_ns + NS_PER_S / 2), 1);
	assert_int_equal(take(t, B, now_ns), 1);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(take(t, NULL, now_ns), 0);
}

static void test_admission(void **state)
{
	_cleanup_(tenants_freep) struct tenants *t =
		read_file("- key_name: a\n  token: " A "\n  requests_per_second: 1\n"
			  "  ingest_per_second: 3\n  verbs: [read, ingest]\n");
	uint64_t now_ns = 1000 * NS_PER_S;
	struct tenant_refusal no = {0};
	int taken = 0;

	(void)state;
	assert_null(tenants_admit(t, number(A), TENANT_SQL, now_ns, 1, &no));
	assert_int_equal(no.status, 403);
	assert_string_equal(no.code, "tenant_scoped_bearer_refused");
	assert_null(tenants_admit(t, number(B), TENANT_READ, now_ns, 1, &no));
	assert_int_equal(no.status, 403);
	while (tenants_admit(t, number(A), TENANT_READ, now_ns, 1, &no))
		taken++;
	assert_int_equal(taken, 4); /* what was refused has used nothing */
	assert_int_equal(no.status, 429);
	assert_int_equal(no.retry_s, 2);
	assert_string_equal(no.code, "rate_limited");
	for (taken = 0; tenants_admit(t, number(A), TENANT_INGEST, now_ns, 1, &no);)
		taken++;
	assert_int_equal(taken, 12);
	assert_non_null(tenants_admit(t, 0, TENANT_ADMIN, now_ns, 1, &no));
	assert_non_null(tenants_admit(t, number(A), 0, now_ns + NS_PER_S, 1, &no));
	assert_non_null(tenants_admit(NULL, number(B), TENANT_ADMIN, now_ns, 1, &no));
}

/* A batch was let in as one request: all of it is counted before the next. */
static void test_batches_of_questions(void **state)
{
	_cleanup_(tenants_freep) struct tenants *t =
		read_file("- key_name: a\n  token: " A "\n  requests_per_second: 2\n"
			  "- key_name: b\n  token: " B "\n  requests_per_second: 2\n");
	uint64_t now_ns = 1000 * NS_PER_S;
	struct tenant_refusal no = {0};

	(void)state;
	assert_non_null(tenants_admit(t, number(A), 0, now_ns, 1, &no));
	tenants_charge_asked(t, number(A), 63, now_ns);
	assert_null(tenants_admit(t, number(A), 0, now_ns + 28 * NS_PER_S, 1, &no));
	assert_int_equal(no.status, 429);
	assert_non_null(tenants_admit(t, number(A), 0, now_ns + 29 * NS_PER_S, 1, &no));
	for (int i = 0; i < 8; i++) /* control: as many as its burst */
		assert_non_null(tenants_admit(t, number(B), 0, now_ns, 1, &no));
	tenants_charge_asked(NULL, 1, 1, now_ns);
}

static void test_rows_and_bytes(void **state)
{
	_cleanup_(tenants_freep) struct tenants *t =
		read_file("- key_name: a\n  token: " A "\n  ingest_rows_per_second: 100\n"
			  "- key_name: b\n  token: " B "\n  ingest_bytes_per_second: 1k\n");
	uint64_t now_ns = 1000 * NS_PER_S;
	struct tenant_refusal no = {0};

	(void)state;
	tenants_charge(t, number(A), 400, 1 << 30, now_ns); /* four seconds' worth at once */
	assert_non_null(tenants_admit(t, number(A), TENANT_INGEST, now_ns, 1, &no));
	tenants_charge(t, number(A), 250, 0, now_ns);
	assert_null(tenants_admit(t, number(A), TENANT_INGEST, now_ns, 1, &no));
	assert_int_equal(no.status, 429);
	assert_int_equal(no.retry_s, 3);
	assert_non_null(strstr(no.text, "too many rows"));
	assert_non_null(
		tenants_admit(t, number(A), TENANT_READ, now_ns, 1, &no)); /* asking goes on */
	assert_null(tenants_admit(t, number(A), TENANT_INGEST, now_ns + 2 * NS_PER_S, 1, &no));
	reload(t,
		"- key_name: a\n  token: " A "\n  ingest_rows_per_second: 100\n"
		"- key_name: b\n  token: " B "\n  ingest_bytes_per_second: 1k\n# other\n",
		now_ns); /* gives nothing back */
	assert_null(tenants_admit(t, number(A), TENANT_INGEST, now_ns + 2 * NS_PER_S, 1, &no));
	assert_non_null(tenants_admit(t, number(A), TENANT_INGEST, now_ns + 3 * NS_PER_S, 1, &no));

	assert_non_null(tenants_admit(t, number(B), TENANT_INGEST, now_ns, 1, &no)); /* its own */
	tenants_charge(t, number(B), UINT64_MAX, 5 * 1024, now_ns);
	assert_null(tenants_admit(t, number(B), TENANT_INGEST, now_ns, 1, &no));
	assert_non_null(strstr(no.text, "too many bytes"));
	tenants_charge(t, number(B), 0, UINT64_MAX, now_ns);
	assert_null(tenants_admit(t, number(B), TENANT_INGEST, now_ns + 100 * NS_PER_S, 1, &no));
	assert_in_range(no.retry_s, 3000, 3600);
	tenants_charge(NULL, 0, 1, 1, now_ns);
}

static void test_parts(void **state)
{
	_cleanup_(tenants_freep) struct tenants *t = read_file(
		"- key_name: a\n  token: " A "\n  allowed_clusters: [x, y]\n"
		"- key_name: readers\n  token: 0123456789abcdefg\n  allowed_clusters: [x]\n"
		"  verbs: [read]\n- key_name: all\n  token: 0123456789abcdefh\n"
		"- key_name: a\n  token: " B "\n  allowed_clusters: [z]\n  max_size_percent: 30\n");
	_cleanup_free_ struct tenant_part *parts = NULL;
	char seen[4] = "";
	size_t count = 0;

	(void)state;
	assert_int_equal(tenants_parts(t, &parts, &count), 0);
	assert_int_equal(count, 3);
	for (size_t i = 0; i < count;
		i++) { /* both tokens of a name are one owner, with one share */
		seen[parts[i].cluster[0] - 'x'] = parts[i].cluster[0];
		assert_int_equal(parts[i].owner, 1);
		assert_int_equal(parts[i].percent, 30);
	}
	assert_string_equal(seen, "xyz");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scopes),
		cmocka_unit_test(test_json_and_hashes),
		cmocka_unit_test(test_plain_tokens),
		cmocka_unit_test(test_batches_of_questions),
		cmocka_unit_test(test_rows_and_bytes),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_expiry),
		cmocka_unit_test(test_grace),
		cmocka_unit_test(test_grace_is_over),
		cmocka_unit_test(test_failed_reload),
		cmocka_unit_test(test_many_reloads),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_admission),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
