/* SPDX-License-Identifier: Apache-2.0 */
/* cert.c - see cert.h. */
#include "net/pki/cert.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "base/path_user.h"
#include "net/secret_file.h"

#define PEM_MAX (64u << 10)

/* ---- names ---- */

void cert_names_free(char **names)
{
	for (size_t i = 0; names[i]; i++)
		free(names[i]);
	free(names);
}

static int add_name(char **names, const char *name)
{
	size_t n = 0;

	for (; names[n]; n++)
		if (strcasecmp(names[n], name) == 0)
			return 0;
	if (n == CERT_NAMES_MAX)
		return -E2BIG;
	names[n] = strdup(name);
	return names[n] ? 0 : -ENOMEM;
}

/* bare_name - of "gpu1:9443" and "https://gpu1" what a certificate holds: "gpu1". */
static int bare_name(const char *text, char *out, size_t size)
{
	const char *host = strstr(text, "://");
	size_t len;

	host = host ? host + 3 : text;
	len = cert_is_address(host) ? strlen(host) : strcspn(host, ":");
	if (host[0] == '[') {
		len = strcspn(++host, "]");
		if (!host[len])
			return -EINVAL;
	}
	if (len >= size)
		return -EINVAL;
	memcpy(out, host, len);
	out[len] = 0;
	return cert_is_address(out) || cert_is_name(out) ? 0 : -EINVAL;
}

int cert_names(const char *const *more, char ***ret, struct errinfo *reterr)
{
	_cleanup_(cert_names_freep) char **names = calloc(CERT_NAMES_MAX + 1, sizeof(*names));
	char host[HOST_NAME_MAX + 1] = "";

	if (!names || add_name(names, "localhost") < 0 || add_name(names, "127.0.0.1") < 0 ||
		add_name(names, "::1") < 0)
		return -ENOMEM;
	gethostname(host, sizeof(host) - 1);
	if (cert_is_name(host) && add_name(names, host) < 0)
		return -ENOMEM;
	for (; more && *more; more++) {
		char name[256];
		int r = bare_name(*more, name, sizeof(name));

		if (r < 0)
			return errinfo_set(
				reterr, -EINVAL, "'%.64s' is not a valid certificate name", *more);
		r = add_name(names, name);
		if (r < 0)
			return errinfo_set(reterr, r, "a certificate can have at most %d names",
				CERT_NAMES_MAX);
	}
	*ret = TAKE(names);
	return 0;
}

/* ---- making ---- */

int cert_make(
	char *const *names, int days, struct buf *cert, struct buf *key, struct errinfo *reterr)
{
	_cleanup_(EVP_PKEY_freep) EVP_PKEY *pair = EVP_EC_gen("P-256");
	_cleanup_(X509_freep) X509 *made = NULL;
	const struct cert_spec spec = {.kind = CERT_SELF,
		/* The machine's name is the fourth, if it has one that fits. */
		.name = names[3] && strlen(names[3]) <= CERT_NAME_LEN ? names[3] : names[0],
		.names = names,
		.days = days};

	if (!pair || cert_build(&spec, pair, &made) < 0 || cert_put_pem(made, cert) < 0 ||
		cert_put_key(pair, key) < 0)
		return errinfo_set(reterr, -EIO, "cannot create a certificate");
	return 0;
}

/* ---- keeping ---- */

int cert_fingerprint(const X509 *cert, char out[65])
{
	unsigned char bytes[EVP_MAX_MD_SIZE];
	unsigned len = 0;

	if (X509_digest(cert, EVP_sha256(), bytes, &len) != 1 || len != 32)
		return -EIO;
	for (unsigned i = 0; i < len; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

static bool has_names(X509 *cert, char *const *names)
{
	for (; *names; names++) {
		int ok = cert_is_address(*names)
				 ? X509_check_ip_asc(cert, *names, 0)
				 : X509_check_host(cert, *names, 0,
					   X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, NULL);

		if (ok != 1)
			return false;
	}
	return true;
}

/* is_good - whether what lies in the folder can be used for another while. */
static bool is_good(const char *cert_path, const char *key_path, char *const *names)
{
	_cleanup_buf_ struct buf cert_pem = BUF_INIT(PEM_MAX), key_pem = BUF_INIT(PEM_MAX);
	_cleanup_(EVP_PKEY_freep) EVP_PKEY *key = NULL;
	_cleanup_(X509_freep) X509 *cert = NULL;
	time_t renew = time(NULL) + CERT_RENEW_DAYS * CERT_DAY_S;

	if (file_read(cert_path, PEM_MAX, &cert_pem) < 0 ||
		secret_file_read(key_path, "key file", PEM_MAX, &key_pem, NULL) < 0)
		return false;
	cert = cert_from_pem(buf_str(&cert_pem), cert_pem.len, 0);
	key = cert_key_from_pem(buf_str(&key_pem), key_pem.len);
	cert_wipe(&key_pem);
	return cert && key && X509_check_private_key(cert, key) == 1 &&
	       X509_cmp_time(X509_get0_notAfter(cert), &renew) > 0 &&
	       X509_cmp_current_time(X509_get0_notBefore(cert)) < 0 && has_names(cert, names);
}

/* make_folder - with its parents, each for its owner alone. */
static int make_folder(const char *dir, struct errinfo *reterr)
{
	char path[PATH_MAX];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s", dir) >= (int)sizeof(path))
		return errinfo_set(reterr, -ENAMETOOLONG, "the folder's path is too long");
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		mkdir(path, 0700);
		*p = '/';
	}
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return errinfo_set_exit(reterr, EXIT_NO_CREATE, -errno,
			"cannot create the folder %s for the certificate: %s", dir,
			strerror(errno));
	if (stat(path, &st) < 0)
		return errinfo_set(
			reterr, -errno, "cannot use the folder %s: %s", dir, strerror(errno));
	if ((st.st_mode & 022) || (st.st_uid != path_user_now() && st.st_uid != 0))
		return errinfo_set_exit(reterr, EXIT_CONFIG, -EPERM,
			"other users can write to the folder %s of the certificate's key: run `chmod 700 %s` as its owner",
			dir, dir);
	return 0;
}

static int write_pair(
	const char *cert_path, const char *key_path, char *const *names, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf cert = BUF_INIT(PEM_MAX), key = BUF_INIT(PEM_MAX);
	int r = cert_make(names, CERT_DAYS, &cert, &key, reterr);

	if (r < 0)
		return r;
	/* A certificate without its key is made anew next time, so the order does not matter. */
	r = file_write_atomic(key_path, key.data, key.len, 0600);
	OPENSSL_cleanse(key.data, key.len);
	r = r ?: file_write_atomic(cert_path, cert.data, cert.len, 0644);
	if (r < 0)
		return errinfo_set_exit(reterr, EXIT_NO_CREATE, r,
			"cannot write the certificate %s: %s", cert_path, strerror(-r));
	return 0;
}

int cert_keep(const char *dir, char *const *names, struct errinfo *reterr)
{
	char cert_path[PATH_MAX], key_path[PATH_MAX];
	_cleanup_fd_ int lock = -1;
	int r = make_folder(dir, reterr);

	r = r ?: path_user_check(dir, reterr);
	if (r < 0)
		return r;
	if (file_join(cert_path, sizeof(cert_path), dir, "/cert.pem") < 0 ||
		file_join(key_path, sizeof(key_path), dir, "/key.pem") < 0)
		return errinfo_set(reterr, -ENAMETOOLONG, "the folder's path is too long");
	lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lock < 0 || flock(lock, LOCK_EX) < 0)
		return errinfo_set(
			reterr, -errno, "cannot use the folder %s: %s", dir, strerror(errno));
	if (is_good(cert_path, key_path, names))
		return 0;
	return write_pair(cert_path, key_path, names, reterr);
}

#define SERIAL_BYTES   16
#define NAMES_TEXT_MAX (64u << 10)
#define ORGANISATION   "ingero"
#define AUTHORITY      "ingero CA "

DEFINE_CLEANUP(BIO *, BIO_free_all)

bool cert_is_address(const char *name)
{
	unsigned char a[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, name, a) == 1 || inet_pton(AF_INET6, name, a) == 1;
}

bool cert_is_name(const char *s)
{
	size_t len = strlen(s);

	return len > 0 && len <= 253 &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") ==
		       len;
}

/* ---- extensions ---- */

static int add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *e;
	int ok;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	if (!e)
		return -EINVAL;
	ok = X509_add_ext(cert, e, -1);
	X509_EXTENSION_free(e);
	return ok ? 0 : -ENOMEM;
}

static int add_usage(X509 *cert, X509 *issuer, enum cert_kind kind)
{
	static const struct {
		const char *constraints, *usage, *extended;
	} rows[] = {
		[CERT_SELF] = {"critical,CA:FALSE", "critical,digitalSignature", "serverAuth"},
		[CERT_AUTHORITY] = {"critical,CA:TRUE,pathlen:0", "critical,keyCertSign,cRLSign"},
		[CERT_NODE] = {"critical,CA:FALSE", "critical,digitalSignature",
			"serverAuth,clientAuth"},
		[CERT_CLIENT] = {"critical,CA:FALSE", "critical,digitalSignature", "clientAuth"},
	};
	int r = add_extension(cert, issuer, NID_basic_constraints, rows[kind].constraints);

	r = r ?: add_extension(cert, issuer, NID_key_usage, rows[kind].usage);
	if (r == 0 && rows[kind].extended)
		r = add_extension(cert, issuer, NID_ext_key_usage, rows[kind].extended);
	r = r ?: add_extension(cert, issuer, NID_subject_key_identifier, "hash");
	return r ?: add_extension(cert, issuer, NID_authority_key_identifier, "keyid:always");
}

static int add_permit(X509 *cert, X509 *issuer, const struct cert_spec *s)
{
	int at = s->permit_as ? X509_get_ext_by_NID(s->permit_as, NID_name_constraints, -1) : -1;

	if (at >= 0)
		return X509_add_ext(cert, X509_get_ext(s->permit_as, at), -1) ? 0 : -ENOMEM;
	return s->permit ? add_extension(cert, issuer, NID_name_constraints, s->permit) : 0;
}

static int add_extensions(X509 *cert, X509 *issuer, const struct cert_spec *s)
{
	_cleanup_buf_ struct buf san = BUF_INIT(NAMES_TEXT_MAX);
	int r = add_usage(cert, issuer, s->kind);
	char *const *names = s->names;

	r = r ?: add_permit(cert, issuer, s);
	if (r < 0 || !s->names || !s->names[0])
		return r;
	/* "DNS:localhost,IP:127.0.0.1" */
	for (; *names; names++)
		buf_printf(&san, "%s%s:%s", san.len ? "," : "",
			cert_is_address(*names) ? "IP" : "DNS", *names);
	return san.err ? san.err : add_extension(cert, issuer, NID_subject_alt_name, buf_str(&san));
}

/* ---- the rest of it ---- */

static int set_serial(X509 *cert)
{
	unsigned char bytes[SERIAL_BYTES];
	BIGNUM *n;
	bool ok;

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return -EIO;
	bytes[0] &= 0x7f; /* positive, as RFC 5280 wants it */
	bytes[0] |= 0x40;
	n = BN_bin2bn(bytes, sizeof(bytes), NULL);
	ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));
	BN_free(n);
	return ok ? 0 : -ENOMEM;
}

static int add_entry(X509_NAME *name, const char *field, const char *value)
{
	return X509_NAME_add_entry_by_txt(
		       name, field, MBSTRING_ASC, (const unsigned char *)value, -1, -1, 0)
		       ? 0
		       : -ENOMEM;
}

static int set_subject(X509 *cert, const struct cert_spec *s)
{
	X509_NAME *subject = X509_get_subject_name(cert);
	int r = add_entry(subject, "O", ORGANISATION);

	if (r == 0 && s->fleet)
		r = add_entry(subject, "OU", s->fleet);
	r = r ?: add_entry(subject, "CN", s->name);
	if (r == 0 &&
		!X509_set_issuer_name(cert, s->issuer ? X509_get_subject_name(s->issuer) : subject))
		r = -ENOMEM;
	return r;
}

/* From an hour ago; a certificate that outlives its issuer would only confuse. */
static int set_dates(X509 *cert, const struct cert_spec *s)
{
	int64_t until_s = time(NULL) + s->days * CERT_DAY_S;
	bool ok;

	if (s->issuer && until_s > cert_until_s(s->issuer))
		ok = X509_set1_notAfter(cert, X509_get0_notAfter(s->issuer));
	else
		ok = X509_gmtime_adj(X509_getm_notAfter(cert), s->days * CERT_DAY_S) != NULL;
	return ok && X509_gmtime_adj(X509_getm_notBefore(cert), -3600) ? 0 : -ENOMEM;
}

int cert_build(const struct cert_spec *s, EVP_PKEY *key, X509 **ret)
{
	_cleanup_(X509_freep) X509 *cert = X509_new();
	int r;

	if (!cert || !X509_set_version(cert, 2) || !X509_set_pubkey(cert, key))
		return -ENOMEM;
	r = set_serial(cert);
	r = r ?: set_dates(cert, s);
	r = r ?: set_subject(cert, s);
	r = r ?: add_extensions(cert, s->issuer ? s->issuer : cert, s);
	if (r < 0)
		return r;
	if (!X509_sign(cert, s->issuer ? s->issuer_key : key, EVP_sha256()))
		return -EIO;
	*ret = TAKE(cert);
	return 0;
}

/* ---- PEM ---- */

static int take_pem(BIO *bio, struct buf *b)
{
	char *data;
	long len = BIO_get_mem_data(bio, &data);

	buf_append(b, data, (size_t)len);
	return b->err;
}

int cert_put_pem(const X509 *cert, struct buf *b)
{
	_cleanup_(BIO_free_allp) BIO *bio = BIO_new(BIO_s_mem());

	return bio && PEM_write_bio_X509(bio, cert) ? take_pem(bio, b) : -ENOMEM;
}

int cert_put_key(EVP_PKEY *key, struct buf *b)
{
	_cleanup_(BIO_free_allp) BIO *bio = BIO_new(BIO_s_secmem());

	return bio && PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL)
		       ? take_pem(bio, b)
		       : -ENOMEM;
}

void cert_wipe(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->cap);
	buf_done(b);
}

/* Without it OpenSSL would ask on the terminal. */
static int no_password(char *out, int size, int writing, void *arg)
{
	return 0;
}

X509 *cert_from_pem(const char *text, size_t len, size_t nth)
{
	_cleanup_(BIO_free_allp) BIO *bio = BIO_new_mem_buf(text, (int)len);
	X509 *cert = NULL;

	for (size_t i = 0; bio && i <= nth; i++) {
		X509_free(cert);
		cert = PEM_read_bio_X509(bio, NULL, no_password, NULL);
		if (!cert)
			break;
	}
	return cert;
}

EVP_PKEY *cert_key_from_pem(const char *text, size_t len)
{
	_cleanup_(BIO_free_allp) BIO *bio = BIO_new_mem_buf(text, (int)len);

	return bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;
}

/* ---- what is in one ---- */

static int64_t seconds(const ASN1_TIME *t)
{
	struct tm tm;

	return ASN1_TIME_to_tm(t, &tm) ? (int64_t)timegm(&tm) : 0;
}

int64_t cert_from_s(const X509 *cert)
{
	return seconds(X509_get0_notBefore(cert));
}

int64_t cert_until_s(const X509 *cert)
{
	return seconds(X509_get0_notAfter(cert));
}

int cert_serial(const X509 *cert, char out[CERT_HEX_MAX])
{
	const ASN1_INTEGER *n = X509_get0_serialNumber(cert);
	const unsigned char *bytes = ASN1_STRING_get0_data(n);
	int len = ASN1_STRING_length(n);

	if (len < 1 || len > 20)
		return -EINVAL;
	for (int i = 0; i < len; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

static bool entry(const X509_NAME *name, int nid, char *out, int size)
{
	int len = X509_NAME_get_text_by_NID(name, nid, out, size);

	return len > 0 && strlen(out) == (size_t)len;
}

bool cert_fleet(const X509_NAME *name, char fleet[CERT_HEX_MAX], unsigned *ret_generation)
{
	char common[CERT_NAME_LEN + 1], organisation[16], end;

	return entry(name, NID_organizationName, organisation, sizeof(organisation)) &&
	       !strcmp(organisation, ORGANISATION) &&
	       entry(name, NID_organizationalUnitName, fleet, CERT_HEX_MAX) &&
	       entry(name, NID_commonName, common, sizeof(common)) &&
	       sscanf(common, AUTHORITY "%9u%c", ret_generation, &end) == 1;
}
