/* SPDX-License-Identifier: Apache-2.0 */
/* cert.c - see cert.h. */
#include "net/pki/cert.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/path_user.h"
#include "net/pki/cert_build.h"
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
	if (r == 0)
		r = file_write_atomic(cert_path, cert.data, cert.len, 0644);
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

	if (r == 0)
		r = path_user_check(dir, reterr);
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
