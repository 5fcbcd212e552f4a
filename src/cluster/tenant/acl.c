/* SPDX-License-Identifier: Apache-2.0 */
/* acl.c - see acl.h. A file is read as a list of entries if it begins like one, else as plain tokens; a
 * list is never taken for tokens, because those have no blanks and are not JSON. */
#include "cluster/tenant/acl.h"

#include <ctype.h>

#include "base/array.h"
#include "base/search.h"
#include "base/text.h"
#include "net/secret_file.h"
#include "yaml/yaml_tree.h"

#define NAME_BYTES    127 /* of a key_name or a cluster */
#define RATE_MAX      1000000
#define BYTE_RATE_MAX (UINT64_C(1) << 40)
#define VERBS_ALL     (TENANT_INGEST | TENANT_READ | TENANT_SQL | TENANT_ADMIN)

static void entry_done(struct acl_entry *e)
{
	for (size_t i = 0; i < e->tenant.cluster_count; i++)
		free((char *)e->tenant.clusters[i]);
	free((void *)e->tenant.clusters);
	free((char *)e->tenant.name);
}

void acl_free(struct acl *a)
{
	for (size_t i = 0; i < a->count; i++)
		entry_done(&a->entries[i]);
	free(a->entries);
	free(a);
}

/* ---- values ---- */

struct key {
	const char *name;
	int (*read)(const struct key *k, struct acl_entry *e, const struct yaml_value *v);
	size_t offset, high; /* of a number: where it goes, and its highest value */
};

/* copy_name - @v as text that can be shown anywhere as it is. */
static int copy_name(const struct yaml_value *v, const char *what, const char **ret)
{
	_cleanup_buf_ struct buf shown = BUF_INIT(4096);
	size_t len = v->kind == YAML_TEXT ? strlen(v->text) : 0;

	if (!len || len > NAME_BYTES)
		return yaml_fail(v, "%s must have 1 to %d bytes", what, NAME_BYTES);
	text_escape_terminal(&shown, v->text);
	if (shown.err == -ENOMEM)
		return shown.err;
	if (shown.err || shown.len != len)
		return yaml_fail(v, "%s contains characters that cannot be shown", what);
	*ret = strdup(v->text);
	return *ret ? 0 : -ENOMEM;
}

static int read_name(const struct key *k _unused_, struct acl_entry *e, const struct yaml_value *v)
{
	return copy_name(v, "key_name", &e->tenant.name);
}

static int read_token(const struct key *k _unused_, struct acl_entry *e, const struct yaml_value *v)
{
	struct errinfo why = {0};
	int r;

	if (v->kind != YAML_TEXT)
		return yaml_fail(v, "token must be a string");
	r = token_hash_of("the entry", v->text, strlen(v->text), &e->hash, &why);
	return r == -EINVAL ? yaml_fail(v, "%s", why.text) : r;
}

static int read_token_sha256(
	const struct key *k _unused_, struct acl_entry *e, const struct yaml_value *v)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char *out = e->hash.sha256;
	size_t n = v->kind == YAML_TEXT ? strlen(v->text) : 0;

	if (n != 2 * sizeof(e->hash.sha256) || strspn(v->text, "0123456789abcdefABCDEF") != n)
		return yaml_fail(
			v, "token_sha256 must have 64 hex digits: printf %%s TOKEN | sha256sum");
	for (size_t i = 0; i < n; i++) {
		const char *d = strchr(digits, tolower((unsigned char)v->text[i]));

		out[i / 2] = (unsigned char)(out[i / 2] << 4 | (d - digits));
	}
	return 0;
}

static int read_clusters(
	const struct key *k _unused_, struct acl_entry *e, const struct yaml_value *v)
{
	struct tenant *t = &e->tenant;
	const char **names;
	int r = 0;

	if (v->kind == YAML_NOTHING || (v->kind == YAML_LIST && !v->count))
		return 0;
	if (v->kind != YAML_LIST || v->count > ACL_CLUSTERS_MAX)
		return yaml_fail(
			v, "allowed_clusters must be a list of at most %d names", ACL_CLUSTERS_MAX);
	names = calloc(v->count, sizeof(*names));
	if (!names)
		return -ENOMEM;
	t->clusters = names;
	for (const struct yaml_value *m = v->first; m && r == 0; m = m->next) {
		r = copy_name(m, "a cluster's name", &names[t->cluster_count]);
		t->cluster_count += r == 0;
		if (r == 0 && strchr(m->text, '*'))
			r = yaml_fail(m,
				"patterns are not supported: name each cluster, or leave allowed_clusters out for all");
	}
	return r;
}

static unsigned verb_of(const char *id)
{
#define X(NAME, text, bit)                                                                         \
	if (!strcmp(id, text))                                                                     \
		return bit;
	TENANT_VERBS(X)
#undef X
	return 0;
}

static int read_verbs(const struct key *k _unused_, struct acl_entry *e, const struct yaml_value *v)
{
	unsigned verbs = 0;

	if (v->kind != YAML_LIST || !v->count)
		return yaml_fail(v,
			"verbs must be a list of ingest, read, sql and admin: leave it out for all");
	for (const struct yaml_value *m = v->first; m; m = m->next) {
		unsigned bit = m->kind == YAML_TEXT ? verb_of(m->text) : 0;

		if (!bit)
			return yaml_fail(m, "a verb must be ingest, read, sql or admin");
		verbs |= bit;
	}
	e->tenant.verbs = verbs;
	return 0;
}

static int read_expires(
	const struct key *k _unused_, struct acl_entry *e, const struct yaml_value *v)
{
	const char *text = v->kind == YAML_TEXT ? v->text : "";
	int64_t ns = 0;

	if (strspn(text, "0123456789") != 4 || text[4] != '-' ||
		when_parse(text, NULL, false, &ns) < 0 || ns == 0)
		return yaml_fail(v, "expires must be a time such as 2027-01-01T00:00:00Z");
	e->tenant.expires_ns = e->hash.expires_ns = ns;
	return 0;
}

static int read_number(const struct key *k, struct acl_entry *e, const struct yaml_value *v)
{
	double n = 0;
	int r = yaml_number(v, 1, k->high, &n);

	*(unsigned *)((char *)e + k->offset) = (unsigned)n;
	return r;
}

static int read_byte_rate(
	const struct key *k _unused_, struct acl_entry *e, const struct yaml_value *v)
{
	int r = yaml_size(v, &e->byte_rate);

	return r == 0 && (!e->byte_rate || e->byte_rate > BYTE_RATE_MAX)
		       ? yaml_fail(v,
				 "ingest_bytes_per_second must be a size such as 10m, at most 1t")
		       : r;
}

/* In this order: a token is read before what is noted beside its hash. */
static const struct key keys[] = {
	{"token", read_token, 0, 0},
	{"token_sha256", read_token_sha256, 0, 0},
	{"key_name", read_name, 0, 0},
	{"allowed_clusters", read_clusters, 0, 0},
	{"verbs", read_verbs, 0, 0},
	{"expires", read_expires, 0, 0},
	{"requests_per_second", read_number, offsetof(struct acl_entry, ask_rate), RATE_MAX},
	{"ingest_per_second", read_number, offsetof(struct acl_entry, ingest_rate), RATE_MAX},
	{"ingest_rows_per_second", read_number, offsetof(struct acl_entry, row_rate), RATE_MAX},
	{"ingest_bytes_per_second", read_byte_rate, 0, 0},
	{"max_size_percent", read_number, offsetof(struct acl_entry, share_percent), 100},
};

/* ---- entries ---- */

static int fail_unknown(const struct yaml_value *v)
{
	_cleanup_buf_ struct buf known = BUF_INIT(1024);

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		buf_printf(&known, "%s%s", i ? ", " : "", keys[i].name);
	return yaml_fail(v, "an entry has an unknown key: expected %s", buf_str(&known));
}

static int check_share(const struct acl_entry *e, const struct yaml_value *entry)
{
	return e->share_percent && (!e->tenant.clusters || !(e->tenant.verbs & TENANT_INGEST))
		       ? yaml_fail(entry,
				 "max_size_percent applies to clusters: it needs allowed_clusters and the verb ingest")
		       : 0;
}

static int check_keys(const struct yaml_value *entry)
{
	if (entry->kind != YAML_MAP)
		return yaml_fail(
			entry, "an entry must have keys: key_name, token, allowed_clusters");
	for (const struct yaml_value *v = entry->first; v; v = v->next) {
		size_t i = 0;

		while (i < ARRAY_SIZE(keys) && strcmp(keys[i].name, v->key) != 0)
			i++;
		if (i == ARRAY_SIZE(keys))
			return fail_unknown(v);
	}
	if (!yaml_member(entry, "key_name"))
		return yaml_fail(entry, "an entry needs key_name");
	if (!yaml_member(entry, "token") == !yaml_member(entry, "token_sha256"))
		return yaml_fail(entry, "an entry needs either token or token_sha256");
	return 0;
}

static struct acl_entry *add_entry(struct acl *a)
{
	if (ARRAY_RESERVE(a->entries, a->room, a->count + 1, ACL_ENTRIES_MAX) < 0)
		return NULL;
	a->entries[a->count] = (struct acl_entry){.tenant = {.verbs = VERBS_ALL},
		.ask_rate = TENANTS_ASK_RATE,
		.ingest_rate = TENANTS_INGEST_RATE};
	return &a->entries[a->count++];
}

static int read_entry(struct acl *a, const struct yaml_value *entry)
{
	int r = check_keys(entry);
	struct acl_entry *e = r < 0 ? NULL : add_entry(a);

	if (!e)
		return r ?: -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(keys) && r == 0; i++) {
		const struct yaml_value *v = yaml_member(entry, keys[i].name);

		r = v ? keys[i].read(&keys[i], e, v) : 0;
	}
	r = r ?: check_share(e, entry);
	e->tenant.credential = token_hash_number(&e->hash);
	for (size_t i = 0; i + 1 < a->count && r == 0; i++)
		if (a->entries[i].tenant.credential == e->tenant.credential)
			r = yaml_fail(
				entry, "the same token is given twice: give every entry its own");
	return r;
}

/* Entries of one name are one owner, with the largest share that one of them has. */
static int find_owners(struct acl *a, const struct yaml_value *root)
{
	uint32_t owners = 0;
	unsigned sum = 0;

	for (size_t i = 0; i < a->count; i++) {
		struct acl_entry *e = &a->entries[i];

		if (e->owner)
			continue;
		e->owner = ++owners;
		for (size_t j = i + 1; j < a->count; j++)
			if (!strcmp(a->entries[j].tenant.name, e->tenant.name)) {
				a->entries[j].owner = e->owner;
				e->share_percent =
					MAX(e->share_percent, a->entries[j].share_percent);
			}
		for (size_t j = i + 1; j < a->count; j++)
			if (a->entries[j].owner == e->owner)
				a->entries[j].share_percent = e->share_percent;
		sum += e->share_percent;
	}
	return sum <= 100 ? 0 : yaml_fail(root, "max_size_percent adds up to %u: at most 100", sum);
}

static int read_list(
	struct acl *a, const char *path, const struct buf *text, struct errinfo *reterr)
{
	_cleanup_(yaml_tree_freep) struct yaml_tree *tree = NULL;
	const struct yaml_value *root;
	int r = yaml_tree_read(path, buf_str(text), text->len, &tree, reterr);

	if (r < 0)
		return r;
	root = yaml_tree_root(tree);
	if (root->kind != YAML_LIST || !root->count || root->count > ACL_ENTRIES_MAX)
		return yaml_fail(root,
			"expected a list of 1 to %d entries, each beginning with `- key_name:`",
			ACL_ENTRIES_MAX);
	for (const struct yaml_value *v = root->first; v && r == 0; v = v->next)
		r = read_entry(a, v);
	return r < 0 ? r : find_owners(a, root);
}

static int read_plain(
	struct acl *a, const char *path, const struct buf *text, struct errinfo *reterr)
{
	_cleanup_(token_set_freep) struct token_set *set = NULL;
	const struct token_hash *hashes;
	size_t count;
	int r = token_set_of_lines(path, buf_str(text), &set, reterr);

	if (r < 0)
		return r;
	hashes = token_set_hashes(set, &count);
	for (size_t i = 0; i < count; i++) {
		struct acl_entry *e = add_entry(a);

		if (!e)
			return -ENOMEM;
		e->hash = hashes[i];
		e->tenant.credential = token_hash_number(&hashes[i]);
		e->tenant.name = strdup("");
		if (!e->tenant.name)
			return -ENOMEM;
	}
	return 0;
}

/* ---- the file ---- */

static bool is_list(const char *text)
{
	static const char *const begins[] = {"- ", "-\n", "---", "[", "{", "key_name", "%YAML"};

	for (text += strspn(text, " \t\r\n"); *text == '#'; text += strspn(text, " \t\r\n"))
		text += strcspn(text, "\n");
	return EXISTS(i, ARRAY_SIZE(begins), !strncmp(text, begins[i], strlen(begins[i])));
}

ORDER(compare_entries, struct acl_entry, ASCENDING(tenant.credential))

int acl_read(const char *path, struct acl **ret, struct errinfo *reterr)
{
	_cleanup_(acl_freep) struct acl *a = calloc(1, sizeof(*a));
	_cleanup_buf_ struct buf b = BUF_INIT(YAML_BYTES_MAX + 1);
	int r = a ? secret_file_read(path, "token file", YAML_BYTES_MAX, &b, reterr) : -ENOMEM;

	if (r == 0 && strlen(buf_str(&b)) != b.len)
		r = errinfo_set_exit(reterr, EXIT_CONFIG, -EINVAL, "%s is not a text file", path);
	r = r ?: digest_sha256(buf_str(&b), b.len, a->digest);
	r = r
		    ?: is_list(buf_str(&b)) ? read_list(a, path, &b, reterr)
					    : read_plain(a, path, &b, reterr);
	if (b.data)
		explicit_bzero(b.data, b.len);
	if (r == -ENOMEM)
		return errinfo_set(reterr, r, "not enough memory to read %s", path);
	if (r < 0)
		return r;
	SORT(a->entries, a->count, compare_entries);
	*ret = TAKE(a);
	return 0;
}

struct acl_entry *acl_find(const struct acl *a, uint64_t credential)
{
	struct acl_entry key = {.tenant = {.credential = credential}};

	return bsearch(&key, a->entries, a->count, sizeof(key), compare_entries);
}
