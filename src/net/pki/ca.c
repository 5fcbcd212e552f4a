/* SPDX-License-Identifier: Apache-2.0 */
/* ca.c - a CA issues a certificate: it is made, staged, written down, and only then published, so
 * that no certificate exists which the index does not know. See ca.h. */
#include "net/pki/ca.h"

#include <ctype.h>
#include <openssl/ec.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include "net/pki/ca_private.h"

DEFINE_CLEANUP(X509_STORE *, X509_STORE_free)
DEFINE_CLEANUP(X509_STORE_CTX *, X509_STORE_CTX_free)

/* ---- what is asked for ---- */

struct making { /* a certificate that is being made */
	struct ca_row row;
	char *list[CERT_NAMES_MAX + 1]; /* its names */
	struct buf names;               /* of the row */
	struct buf cert, key, ca;       /* PEM */
	struct ca_output output;
	int days;
};

static void making_done(struct making *m)
{
	ca_output_drop(&m->output);
	for (size_t i = 0; m->list[i]; i++)
		free(m->list[i]);
	buf_done(&m->names);
	buf_done(&m->cert);
	buf_done(&m->ca);
	cert_wipe(&m->key);
}

static int add_name(struct making *m, const char *name, size_t len, struct errinfo *reterr)
{
	_cleanup_free_ char *copy = strndup(name, len);
	size_t n = 0;

	if (!copy)
		return -ENOMEM;
	if (!cert_is_address(copy) && (!cert_is_name(copy) || copy[0] == '.'))
		return errinfo_set(
			reterr, -EINVAL, "'%.64s' is neither a DNS name nor an IP address", copy);
	for (; m->list[n]; n++)
		if (!strcasecmp(m->list[n], copy))
			return 0;
	if (n == CERT_NAMES_MAX)
		return errinfo_set(
			reterr, -E2BIG, "a certificate can have at most %d names", CERT_NAMES_MAX);
	m->list[n] = TAKE(copy);
	buf_printf(&m->names, "%s%s", n ? "," : "", m->list[n]);
	return m->names.err;
}

/* A list with commas. */
static int add_names(struct making *m, const char *list, struct errinfo *reterr)
{
	int r = 0;

	while (r == 0 && *list) {
		size_t len = strcspn(list, ",");

		r = add_name(m, list, len, reterr);
		list += len + (list[len] == ',');
	}
	return r;
}

static int collect_names(struct making *m, const struct ca_request *q, const struct ca_row *old,
	struct errinfo *reterr)
{
	int r = add_names(m, q->name, reterr);

	for (size_t i = 0; r == 0 && q->names && q->names[i]; i++)
		r = add_names(m, q->names[i], reterr);
	if (r == 0 && old && !q->names)
		r = add_names(m, old->names, reterr);
	return r;
}

static void write_date(char out[32], int64_t at_s)
{
	time_t t = (time_t)at_s;
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(out, 32, "%Y-%m-%d", &tm);
}

static int check_request(const struct ca *ca, const struct ca_request *q, const struct ca_row *old,
	struct errinfo *reterr)
{
	char date[32];

	if (!ca_name_is_good(q->name))
		return errinfo_set(reterr, -EINVAL,
			"'%.64s' is not a name for a certificate: letters, digits, '-', '.' and '_', at most 64",
			q->name);
	if (cert_until_s(ca->certs[0]) <= time(NULL))
		return errinfo_set_exit(reterr, EXIT_CONFIG, -EKEYEXPIRED,
			"the CA has expired: make a new one with `ingero cert rotate --ca`");
	if (q->rotate && !old)
		return errinfo_set_exit(reterr, EXIT_NO_INPUT, -ENOENT,
			"there is no certificate of %s to rotate: make one with `ingero cert issue %s`",
			q->name, q->name);
	if (q->rotate || !old || old->until_s <= time(NULL))
		return 0;
	write_date(date, old->until_s);
	return errinfo_set_exit(reterr, EXIT_NO_CREATE, -EEXIST,
		"%s has a certificate until %s: replace it with `ingero cert rotate %s`", q->name,
		date, q->name);
}

/* ---- making ---- */

/* verify - as the fleet will: an authority may be limited to some names. */
static int verify(const struct ca *ca, X509 *cert, const char *name, struct errinfo *reterr)
{
	_cleanup_(X509_STORE_freep) X509_STORE *store = X509_STORE_new();
	_cleanup_(X509_STORE_CTX_freep) X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	int why;

	if (!store || !ctx || !X509_STORE_add_cert(store, ca->certs[0]) ||
		!X509_STORE_CTX_init(ctx, store, cert, NULL))
		return -ENOMEM;
	if (X509_verify_cert(ctx) == 1)
		return 0;
	why = X509_STORE_CTX_get_error(ctx);
	if (why == X509_V_ERR_PERMITTED_VIOLATION)
		return errinfo_set(reterr, -EINVAL,
			"the CA may not sign for a name of %s: it was limited with `ingero cert init --permit`",
			name);
	if (why == X509_V_ERR_CERT_NOT_YET_VALID)
		return errinfo_set_exit(reterr, EXIT_CONFIG, -EBADMSG,
			"the CA is not valid yet: set the clock of this machine");
	return errinfo_set_exit(reterr, EXIT_BUG, -EBADMSG, "the new certificate is not valid: %s",
		X509_verify_cert_error_string(why));
}

static int fill_row(const struct ca *ca, X509 *cert, struct making *m)
{
	m->row.from_s = cert_from_s(cert);
	m->row.until_s = cert_until_s(cert);
	m->row.generation = ca->generation;
	m->row.names = m->names.data;
	if (cert_serial(cert, m->row.serial) < 0 || cert_fingerprint(cert, m->row.fingerprint) < 0)
		return -EIO;
	return 0;
}

static int make(const struct ca *ca, struct making *m, struct errinfo *reterr)
{
	_cleanup_(EVP_PKEY_freep) EVP_PKEY *key = EVP_EC_gen("P-256");
	_cleanup_(X509_freep) X509 *cert = NULL;
	const struct cert_spec s = {.kind = m->row.client ? CERT_CLIENT : CERT_NODE,
		.name = m->row.name,
		.names = m->list,
		.days = m->days,
		.issuer = ca->certs[0],
		.issuer_key = ca->key};
	int r = key ? cert_build(&s, key, &cert) : -ENOMEM;

	r = r ?: verify(ca, cert, m->row.name, reterr);
	r = r ?: fill_row(ca, cert, m);
	r = r ?: cert_put_pem(cert, &m->cert);
	r = r ?: cert_put_key(key, &m->key);
	r = r ?: ca_put_bundle(ca, &m->ca);
	if (r < 0 && reterr && !reterr->text[0])
		return errinfo_set(reterr, r, "cannot create a certificate");
	return r;
}

/* ---- where it goes ---- */

/* own_place - nodes/NAME/SERIAL, with the folders above it. */
static int own_place(
	const struct ca *ca, const struct ca_row *row, char out[PATH_MAX], struct errinfo *reterr)
{
	int n = snprintf(out, PATH_MAX, "%s/nodes/%s/%s", ca->dir, row->name, row->serial);

	if (n >= PATH_MAX)
		return errinfo_set(reterr, -ENAMETOOLONG, "the path of the CA is too long");
	for (char *p = out + strlen(ca->dir) + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		if (mkdir(out, 0700) < 0 && errno != EEXIST)
			return errinfo_set_exit(reterr, EXIT_NO_CREATE, -errno,
				"cannot create %s: %s", out, strerror(errno));
		*p = '/';
	}
	return 0;
}

static int stage(
	const struct ca *ca, const struct ca_request *q, struct making *m, struct errinfo *reterr)
{
	char place[PATH_MAX];
	int r;

	if (q->bundle)
		return ca_output_bundle(
			&m->output, q->bundle, q->rotate, &m->ca, &m->cert, &m->key, reterr);
	if (q->out)
		return ca_output_folder(&m->output, q->out, &m->ca, &m->cert, &m->key, reterr);
	ca_output_sweep(ca->dir, m->row.name);
	r = own_place(ca, &m->row, place, reterr);
	return r < 0 ? r : ca_output_folder(&m->output, place, &m->ca, &m->cert, &m->key, reterr);
}

/* write_down - into the index, then to its place. If that fails, it is taken out again. */
static int write_down(
	struct ca *ca, const struct ca_request *q, struct making *m, struct errinfo *reterr)
{
	int r = ca_index_add(&ca->index, &m->row);

	if (r < 0)
		return errinfo_set(reterr, r, "the CA has issued too many certificates");
	/* Those that were replaced and have expired are forgotten, with their folders. */
	for (size_t i = ca->index.count; i-- > 0;) {
		const struct ca_row *row = &ca->index.rows[i];

		if (ca_index_is_current(&ca->index, i) || row->until_s > time(NULL))
			continue;
		ca_output_remove(ca->dir, row->name, row->serial);
		ca_index_remove(&ca->index, i);
	}
	r = ca_save_index(ca, reterr);
	if (r < 0)
		return r;
	r = ca_output_publish(&m->output, reterr);
	if (r < 0) {
		ca_index_remove(&ca->index, ca->index.count - 1);
		ca_save_index(ca, NULL);
		return r;
	}
	return q->out || q->bundle ? 0
				   : ca_output_link(ca->dir, m->row.name, m->row.serial, reterr);
}

static int days_for(const struct ca_request *q, const struct ca_row *old)
{
	if (q->days)
		return q->days;
	/* The hour before it was made is not part of it. */
	return old ? (int)MAX((old->until_s - old->from_s) / CERT_DAY_S, INT64_C(1)) : CA_NODE_DAYS;
}

int ca_issue(
	struct ca *ca, const struct ca_request *q, struct ca_issued *ret, struct errinfo *reterr)
{
	_cleanup_(making_done) struct making m = {.names = BUF_INIT(CERT_NAMES_MAX * 256),
		.cert = BUF_INIT(CERT_PEM_MAX),
		.key = BUF_INIT(CERT_PEM_MAX),
		.ca = BUF_INIT(CERT_PEM_MAX)};
	const struct ca_row *old = ca_index_find(&ca->index, q->name);
	int r = check_request(ca, q, old, reterr);

	if (r < 0)
		return r;
	snprintf(m.row.name, sizeof(m.row.name), "%s", q->name);
	m.row.client = q->rotate ? old->client : q->client;
	m.days = days_for(q, q->rotate ? old : NULL);
	r = collect_names(&m, q, q->rotate ? old : NULL, reterr);
	r = r ?: make(ca, &m, reterr);
	r = r ?: stage(ca, q, &m, reterr);
	r = r ?: write_down(ca, q, &m, reterr);
	if (r < 0)
		return r;
	ret->row = *ca_index_find(&ca->index, q->name);
	if (q->out || q->bundle) {
		_cleanup_free_ char *real = realpath(q->out ? q->out : q->bundle, NULL);

		snprintf(ret->place, sizeof(ret->place), "%s",
			real     ? real
			: q->out ? q->out
				 : q->bundle);
	} else {
		snprintf(ret->place, sizeof(ret->place), "%.3900s/nodes/%s/current", ca->dir,
			q->name);
	}
	return 0;
}

/* See ca.h. The file is ours, but may have been edited: each field is checked. */

#define HEAD   "# ingero certificates 1"
#define FIELDS 8

void ca_index_done(struct ca_index *x)
{
	for (size_t i = 0; i < x->count; i++)
		free(x->rows[i].names);
	free(x->rows);
	*x = (struct ca_index){0};
}

bool ca_name_is_good(const char *name)
{
	return cert_is_name(name) && strlen(name) <= CERT_NAME_LEN &&
	       isalnum((unsigned char)name[0]);
}

static bool is_hex(const char *s, size_t min, size_t max)
{
	size_t len = strlen(s);

	return len >= min && len <= max && strspn(s, "0123456789abcdef") == len;
}

static bool read_number(const char *s, uint64_t max, uint64_t *ret)
{
	char *end;

	if (!isdigit((unsigned char)s[0]) || strlen(s) > 18)
		return false;
	*ret = strtoull(s, &end, 10);
	return !*end && *ret <= max;
}

/* names_are_good - a list with commas. */
static bool names_are_good(const char *list)
{
	while (*list) {
		size_t len = strcspn(list, ",");
		char name[256];

		if (snprintf(name, sizeof(name), "%.*s", (int)len, list) >= (int)sizeof(name) ||
			(!cert_is_address(name) && !cert_is_name(name)))
			return false;
		list += len + (list[len] == ',');
	}
	return true;
}

/* parse_line - changes @line. */
static bool parse_line(char *line, struct ca_row *row)
{
	char *field[FIELDS + 1] = {NULL}, *save = NULL;
	uint64_t from, until, generation;
	size_t n = 0;

	for (char *s = strtok_r(line, " ", &save); s && n <= FIELDS; s = strtok_r(NULL, " ", &save))
		field[n++] = s;
	if (n != FIELDS || !is_hex(field[0], 2, 40) || !is_hex(field[1], 64, 64) ||
		!read_number(field[2], INT64_MAX, &from) ||
		!read_number(field[3], INT64_MAX, &until) ||
		!read_number(field[4], UINT32_MAX, &generation) || !ca_name_is_good(field[6]) ||
		!names_are_good(field[7]))
		return false;
	*row = (struct ca_row){.from_s = (int64_t)from,
		.until_s = (int64_t)until,
		.generation = (unsigned)generation,
		.client = !strcmp(field[5], "client"),
		.names = field[7]};
	snprintf(row->serial, sizeof(row->serial), "%s", field[0]);
	snprintf(row->fingerprint, sizeof(row->fingerprint), "%s", field[1]);
	snprintf(row->name, sizeof(row->name), "%s", field[6]);
	return row->client || !strcmp(field[5], "both");
}

int ca_index_parse(const char *path, const char *text, size_t len, struct ca_index *ret,
	struct errinfo *reterr)
{
	_cleanup_(ca_index_done) struct ca_index x = {0};
	const char *p = text, *end = text + len;

	for (size_t number = 1; p < end; number++) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		_cleanup_free_ char *line = strndup(p, (size_t)((newline ? newline : end) - p));
		struct ca_row row;
		int r;

		if (!line)
			return errinfo_set(reterr, -ENOMEM, "not enough memory to read %s", path);
		p = newline ? newline + 1 : end;
		if (number == 1 ? strcmp(line, HEAD) != 0 : !newline || !parse_line(line, &row))
			return errinfo_set_exit(reterr, EXIT_BAD_DATA, -EBADMSG,
				"%s: line %zu is not a certificate's: restore the file from a backup",
				path, number);
		r = number == 1 ? 0 : ca_index_add(&x, &row);
		if (r < 0)
			return errinfo_set(reterr, r,
				r == -ENOMEM ? "not enough memory to read %s"
					     : "%s has too many lines",
				path);
	}
	*ret = x;
	x = (struct ca_index){0};
	return 0;
}

int ca_index_write(const struct ca_index *x, struct buf *b)
{
	buf_puts(b, HEAD "\n");
	for (size_t i = 0; i < x->count; i++) {
		const struct ca_row *r = &x->rows[i];

		buf_printf(b, "%s %s %" PRId64 " %" PRId64 " %u %s %s %s\n", r->serial,
			r->fingerprint, r->from_s, r->until_s, r->generation,
			r->client ? "client" : "both", r->name, r->names);
	}
	return b->err;
}

int ca_index_add(struct ca_index *x, const struct ca_row *row)
{
	struct ca_row *p;

	if (x->count == CA_INDEX_ROWS_MAX)
		return -E2BIG;
	p = realloc(x->rows, (x->count + 1) * sizeof(*p));
	if (!p)
		return -ENOMEM;
	x->rows = p;
	p[x->count] = *row;
	p[x->count].names = strdup(row->names);
	if (!p[x->count].names)
		return -ENOMEM;
	x->count++;
	return 0;
}

void ca_index_remove(struct ca_index *x, size_t at)
{
	free(x->rows[at].names);
	memmove(&x->rows[at], &x->rows[at + 1], (x->count - at - 1) * sizeof(*x->rows));
	x->count--;
}

const struct ca_row *ca_index_find(const struct ca_index *x, const char *name)
{
	for (size_t i = x->count; i-- > 0;)
		if (!strcmp(x->rows[i].name, name))
			return &x->rows[i];
	return NULL;
}

bool ca_index_is_current(const struct ca_index *x, size_t at)
{
	return ca_index_find(x, x->rows[at].name) == &x->rows[at];
}
