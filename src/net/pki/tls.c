/* SPDX-License-Identifier: Apache-2.0 */
/* tls.c - what servers' and clients' TLS have in common. See tls.h. */
#include <ctype.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <strings.h>
#include <time.h>

#include "base/file.h"
#include "base/path_user.h"
#include "net/pki/cert.h"
#include "net/pki/tls.h"
#include "net/pki/tls_private.h"
#include "net/secret_file.h"

#define KEY_MAX   (64u << 10)
#define WARN_DAYS 30

void tls_free(struct tls *t)
{
	SSL_CTX_free(t->ctx);
	free(t->ca);
	free(t->cert);
	free(t->key);
	tls_pins_done(&t->pins);
	free(t->known_path);
	known_nodes_done(&t->known);
	free(t->strangers);
	free(t->state_dir);
	cert_names_freep(&t->names);
	free(t);
}

int tls_reload(struct tls *t, struct errinfo *reterr)
{
	SSL_CTX *ctx = NULL;
	int r = t->load(t, &ctx, reterr);

	if (r < 0)
		return r;
	SSL_CTX_free(t->ctx); /* connections that use it hold it on */
	t->ctx = ctx;
	return 0;
}

int tls_key_check(const char *path, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(KEY_MAX);
	int r = secret_file_read(path, "key file", KEY_MAX, &b, reterr);

	if (b.data)
		OPENSSL_cleanse(b.data, b.len);
	return r;
}

const char *tls_reason(void)
{
	const char *text = ERR_reason_error_string(ERR_peek_last_error());
	unsigned long first = ERR_peek_error();

	/* Of a file that cannot be read the last words are "system lib"; the errno came before. */
	if (ERR_SYSTEM_ERROR(first))
		return strerror(ERR_GET_REASON(first));
	return text ? text : "unknown reason";
}

const char *tls_fingerprint(const struct tls *t)
{
	return t->fingerprint;
}

const char *tls_cert_path(const struct tls *t)
{
	return t->cert;
}

bool tls_is_self_signed(const struct tls *t)
{
	return t->state_dir != NULL;
}

/* ---- what of the files will soon be too old ---- */

/* A certificate for a few days is not always about to expire. */
static bool is_near(const X509 *cert, int64_t now_s)
{
	int64_t until_s = cert_until_s(cert), life_s = until_s - cert_from_s(cert);
	int64_t warn_s = MIN((int64_t)WARN_DAYS * CERT_DAY_S, life_s / 4);

	return until_s - now_s < warn_s;
}

static void put(struct buf *b, const char *what, const char *path, const X509 *cert, int64_t now_s,
	const char *advice)
{
	int64_t until_s = cert_until_s(cert), left_s = until_s - now_s;
	time_t t = (time_t)until_s;
	char date[32];
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", &tm);
	if (left_s <= 0)
		buf_printf(b, "the %s %s has expired (%s): %s\n", what, path, date, advice);
	else
		buf_printf(b, "the %s %s expires in %lld %s (%s): %s\n", what, path,
			(long long)(left_s >= 2 * CERT_DAY_S ? left_s / CERT_DAY_S : left_s / 3600),
			left_s >= 2 * CERT_DAY_S ? "days" : "hours", date, advice);
}

void tls_expiry(const struct tls *t, struct buf *b)
{
	_cleanup_buf_ struct buf pem = BUF_INIT(CERT_PEM_MAX);
	_cleanup_(X509_freep) X509 *ca = NULL;
	X509 *own = SSL_CTX_get0_certificate(t->ctx);
	int64_t now_s = time(NULL);

	if (own && t->cert && is_near(own, now_s))
		put(b, "certificate", t->cert, own, now_s,
			t->state_dir
				? "restart to create a new one"
				: "make a new one with `ingero cert rotate`, and copy it here");
	if (!t->ca || file_read(t->ca, CERT_PEM_MAX, &pem) < 0)
		return;
	/* The first one signs; the one before it may well expire while a fleet moves on. */
	ca = cert_from_pem(buf_str(&pem), pem.len, 0);
	if (ca && is_near(ca, now_s))
		put(b, "CA certificate", t->ca, ca, now_s, "see `ingero cert rotate --ca`");
}

int tls_pin_parse(const char *s, size_t len, struct tls_pin *ret)
{
	struct tls_pin f = {0};
	size_t digits = 0;

	for (size_t i = 0; i < len; i++) {
		int c = tolower((unsigned char)s[i]);

		if (c == ':' && digits && digits % 2 == 0 && i + 1 < len && s[i - 1] != ':')
			continue;
		if (!isxdigit(c) || digits == 2 * sizeof(f.bytes))
			return -EINVAL;
		f.bytes[digits / 2] = (unsigned char)(f.bytes[digits / 2] << 4 |
						      (c <= '9' ? c - '0' : c - 'a' + 10));
		digits++;
	}
	if (digits != 2 * sizeof(f.bytes))
		return -EINVAL;
	*ret = f;
	return 0;
}

void tls_pin_text(const struct tls_pin *p, char out[2 * TLS_PIN_BYTES + 1])
{
	for (size_t i = 0; i < sizeof(p->bytes); i++)
		snprintf(out + 2 * i, 3, "%02x", p->bytes[i]);
}

bool tls_pin_equal(const struct tls_pin *a, const struct tls_pin *b)
{
	return CRYPTO_memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

void tls_pins_done(struct tls_pins *p)
{
	free(p->rows);
	*p = (struct tls_pins){0};
}

int tls_pins_add(struct tls_pins *p, const char *text, struct errinfo *reterr)
{
	const char *equals = strrchr(text, '='), *hex = equals ? equals + 1 : text;
	size_t node_len = equals ? (size_t)(equals - text) : 0;
	struct tls_pin_row row = {0}, *grown;

	if (tls_pin_parse(hex, strlen(hex), &row.pin) < 0 || (equals && !node_len) ||
		node_len >= sizeof(row.node))
		return errinfo_set(reterr, -EINVAL,
			"a fingerprint has 64 hexadecimal digits (SHA-256), with NODE= in front if it is for one node; the server prints it when it starts");
	if (p->count == TLS_PINS_MAX)
		return errinfo_set(
			reterr, -E2BIG, "there can be at most %d fingerprints", TLS_PINS_MAX);
	memcpy(row.node, text, node_len);
	grown = realloc(p->rows, (p->count + 1) * sizeof(*grown));
	if (!grown)
		return errinfo_set(reterr, -ENOMEM, "out of memory for TLS");
	p->rows = grown;
	p->rows[p->count++] = row;
	return 0;
}

/* is_for - "gpu1" and "gpu1:8080" are for the endpoint "gpu1:8080", "[::1]" for "[::1]:8080". */
static bool is_for(const char *node, const char *endpoint)
{
	size_t len = strlen(node);
	const char *port = strrchr(endpoint, ':');

	return !strcasecmp(node, endpoint) ||
	       (port && len == (size_t)(port - endpoint) && !strncasecmp(node, endpoint, len));
}

enum tls_pins_verdict tls_pins_judge(
	const struct tls_pins *p, const char *endpoint, const struct tls_pin *shown)
{
	bool own = false, general = false, own_match = false, general_match = false;

	for (size_t i = 0; i < p->count; i++) {
		const struct tls_pin_row *row = &p->rows[i];
		bool match = tls_pin_equal(&row->pin, shown);

		if (!row->node[0]) {
			general = true;
			general_match = general_match || match;
		} else if (is_for(row->node, endpoint)) {
			own = true;
			own_match = own_match || match;
		}
	}
	if (own)
		return own_match ? TLS_PINS_MATCH : TLS_PINS_DIFFER;
	if (general)
		return general_match ? TLS_PINS_MATCH : TLS_PINS_DIFFER;
	return TLS_PINS_SILENT;
}

/* What a server shows and what it demands of clients.
 *
 * Invariant: a context is complete before it takes the place of the one in use; a file that cannot
 * be read changes nothing. Sessions are not resumed: a full handshake each time is what makes the
 * client's certificate be looked at each time, and connections are kept. */

DEFINE_CLEANUP(SSL_CTX *, SSL_CTX_free)
DEFINE_CLEANUP(BIO *, BIO_free_all)

/* Without it OpenSSL would ask on the terminal. */
static int no_password(char *out, int size, int writing, void *arg)
{
	return 0;
}

static int use_key(SSL_CTX *ctx, const char *path, const char *cert, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(KEY_MAX);
	_cleanup_(BIO_free_allp) BIO *bio = NULL;
	_cleanup_(EVP_PKEY_freep) EVP_PKEY *key = NULL;
	int r = secret_file_read(path, "key file", KEY_MAX, &b, reterr);

	if (r < 0)
		return r;
	bio = BIO_new_mem_buf(buf_str(&b), (int)b.len);
	key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;
	if (b.data)
		OPENSSL_cleanse(b.data, b.len);
	if (!key)
		return errinfo_set_exit(reterr, EXIT_CONFIG, -EINVAL,
			"cannot read a key from %s: it must be a PEM file without a password",
			path);
	if (SSL_CTX_use_PrivateKey(ctx, key) != 1 || SSL_CTX_check_private_key(ctx) != 1)
		return errinfo_set_exit(reterr, EXIT_CONFIG, -EINVAL,
			"%s is not the key of the certificate in %s", path, cert);
	return 0;
}

/* How OpenSSL is to open @path: by a descriptor of a regular file, since a pipe that nobody writes to would keep it, and the
 * loop that reads certificates again, waiting. Returns the descriptor. */
static int open_for_openssl(const char *path, char name[32])
{
	int fd = file_open_regular(path);

	if (fd >= 0)
		snprintf(name, 32, "/proc/self/fd/%d", fd);
	return fd;
}

static const char *why_unreadable(int fd)
{
	return fd >= 0 ? tls_reason() : fd == -EINVAL ? "it is not a regular file" : strerror(-fd);
}

static int use_certificate(struct tls *t, SSL_CTX *ctx, char *fingerprint, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	_cleanup_fd_ int fd = -1;
	char name[32];
	const X509 *cert;
	int r = path_user_enter(t->cert, &before, reterr);

	if (r < 0)
		return r;
	fd = open_for_openssl(t->cert, name);
	ERR_clear_error();
	if (fd < 0 || SSL_CTX_use_certificate_chain_file(ctx, name) != 1)
		return errinfo_set_exit(reterr, EXIT_CONFIG, fd < 0 ? fd : -EINVAL,
			"cannot read the certificate %s: %s", t->cert, why_unreadable(fd));
	cert = SSL_CTX_get0_certificate(ctx);
	if (X509_cmp_current_time(X509_get0_notAfter(cert)) < 0)
		return errinfo_set_exit(reterr, EXIT_CONFIG, -EKEYEXPIRED,
			"the certificate %s has expired: renew it", t->cert);
	if (cert_fingerprint(cert, fingerprint) < 0)
		return errinfo_set(reterr, -EIO,
			"cannot compute the fingerprint of the certificate %s", t->cert);
	return use_key(ctx, t->key, t->cert, reterr);
}

/* demand_client - connections without a certificate of the authority end in the handshake. */
static int demand_client(SSL_CTX *ctx, const char *ca, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	_cleanup_fd_ int fd = -1;
	char name[32];
	STACK_OF(X509_NAME) *names = NULL;
	int r = path_user_enter(ca, &before, reterr);

	if (r < 0)
		return r;
	fd = open_for_openssl(ca, name);
	ERR_clear_error();
	if (fd >= 0)
		names = SSL_load_client_CA_file(name);
	if (!names || SSL_CTX_load_verify_file(ctx, name) != 1) {
		sk_X509_NAME_pop_free(names, X509_NAME_free);
		return errinfo_set_exit(reterr, EXIT_CONFIG, fd < 0 ? fd : -EINVAL,
			"cannot read the CA for client certificates %s: %s", ca,
			why_unreadable(fd));
	}
	SSL_CTX_set_client_CA_list(ctx, names);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	return 0;
}

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
	const unsigned char *in, unsigned in_len, void *arg)
{
	static const unsigned char spoken[] = "\x02h2\x08http/1.1";
	unsigned char *chosen;

	if (SSL_select_next_proto(&chosen, out_len, spoken, sizeof(spoken) - 1, in, in_len) !=
		OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

/* Made if need be, and read, with the rights of whoever may change the folder. */
static int use_kept_certificate(
	struct tls *t, SSL_CTX *ctx, char fingerprint[TLS_FINGERPRINT_LEN], struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	int r = path_user_enter(t->state_dir, &before, reterr);

	r = r ?: cert_keep(t->state_dir, t->names, reterr);
	return r < 0 ? r : use_certificate(t, ctx, fingerprint, reterr);
}

static int load(struct tls *t, SSL_CTX **ret, struct errinfo *reterr)
{
	_cleanup_(SSL_CTX_freep) SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	char fingerprint[TLS_FINGERPRINT_LEN];
	int r;

	if (!ctx || !SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) ||
		!SSL_CTX_set1_groups_list(ctx, "X25519:P-256"))
		return errinfo_set(reterr, -ENOMEM, "out of memory for TLS");
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				      SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
	r = t->state_dir ? use_kept_certificate(t, ctx, fingerprint, reterr)
			 : use_certificate(t, ctx, fingerprint, reterr);
	if (r == 0 && t->ca)
		r = demand_client(ctx, t->ca, reterr);
	if (r < 0)
		return r;
	memcpy(t->fingerprint, fingerprint, sizeof(fingerprint));
	*ret = TAKE(ctx);
	return 0;
}

static int copy(const char *s, char **ret)
{
	*ret = s ? strdup(s) : NULL;
	return s && !*ret ? -ENOMEM : 0;
}

/* take_paths - the files of the certificate: those given, or those in the folder. */
static int take_paths(struct tls *t, const struct tls_server_settings *s, struct errinfo *reterr)
{
	if (!s->cert != !s->key)
		return errinfo_set_exit(
			reterr, EXIT_CONFIG, -EINVAL, "certificate and key must be given together");
	if (copy(s->client_ca, &t->ca) < 0)
		return -ENOMEM;
	if (s->cert)
		return copy(s->cert, &t->cert) || copy(s->key, &t->key) ? -ENOMEM : 0;
	if (!s->state_dir)
		return errinfo_set(reterr, -EINVAL, "no folder for the certificate");
	if (copy(s->state_dir, &t->state_dir) < 0 ||
		asprintf(&t->cert, "%s/cert.pem", s->state_dir) < 0 ||
		asprintf(&t->key, "%s/key.pem", s->state_dir) < 0)
		return -ENOMEM;
	return cert_names(s->names, &t->names, reterr);
}

int tls_server_new(const struct tls_server_settings *s, struct tls **ret, struct errinfo *reterr)
{
	_cleanup_(tls_freep) struct tls *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	r = take_paths(t, s, reterr);
	if (r < 0)
		return r;
	t->load = load;
	r = load(t, &t->ctx, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(t);
	return 0;
}

bool tls_has_name(const struct tls *t, const char *name)
{
	X509 *cert = SSL_CTX_get0_certificate(t->ctx);

	/* OpenSSL takes ".example" for every name below it. */
	if (!cert || name[0] == '.' || strchr(name, '*'))
		return false;
	return X509_check_ip_asc(cert, name, 0) == 1 ||
	       X509_check_host(cert, name, strlen(name),
		       X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS,
		       NULL) == 1;
}

bool tls_demands_client(const struct tls *t)
{
	return SSL_CTX_get_verify_mode(t->ctx) & SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
}
