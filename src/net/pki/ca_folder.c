/* SPDX-License-Identifier: Apache-2.0 */
/* ca_folder.c - the folder of a CA: made, opened, locked, and its own keys replaced. See ca.h.
 *
 * ca.key holds the key and its certificate in one file, so that they change at one moment; ca.pem
 * follows from it. Killed between the two, the next one who opens the folder writes ca.pem. */
#include <fcntl.h>
#include <glob.h>
#include <libgen.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "base/path_user.h"
#include "net/pki/ca_private.h"
#include "net/pki/cert.h"
#include "net/secret_file.h"

#define FLEET_BYTES 8

/* @dir/@name, -ENAMETOOLONG with a sentence. */
static int ca_path(const char *dir, const char *name, char out[PATH_MAX], struct errinfo *reterr)
{
	if (snprintf(out, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX)
		return errinfo_set(reterr, -ENAMETOOLONG, "the path of the CA is too long");
	return 0;
}

void ca_free(struct ca *ca)
{
	EVP_PKEY_free(ca->key);
	for (size_t i = 0; i < ca->cert_count; i++)
		X509_free(ca->certs[i]);
	ca_index_done(&ca->index);
	if (ca->lock >= 0)
		close(ca->lock);
	free(ca->dir);
	free(ca);
}

static int write_file(
	const char *dir, const char *name, const struct buf *b, mode_t mode, struct errinfo *reterr)
{
	char path[PATH_MAX];
	int r = ca_path(dir, name, path, reterr);

	if (r < 0)
		return r;
	r = b->err ? b->err : file_write_atomic(path, b->data, b->len, mode);
	if (r < 0)
		return errinfo_set_exit(reterr, r == -ENOSPC ? EXIT_IO : EXIT_NO_CREATE, r,
			"cannot write %s: %s; nothing was changed", path, strerror(-r));
	return 0;
}

/* ---- making ---- */

/* permit_text - "critical,permitted;DNS:example.org,permitted;IP:10.0.0.0/255.0.0.0". */
static int permit_text(const char *const *permit, struct buf *b, struct errinfo *reterr)
{
	for (; permit && *permit; permit++) {
		char address[64], mask[64] = "";
		unsigned bits, of;
		char end;

		buf_puts(b, b->len ? "," : "critical,");
		if (cert_is_name(*permit) && !cert_is_address(*permit)) {
			buf_printf(b, "permitted;DNS:%s", *permit);
			continue;
		}
		if (sscanf(*permit, "%60[0-9a-fA-F:.]/%3u%c", address, &bits, &end) != 2 ||
			!cert_is_address(address) || bits > (of = strchr(address, ':') ? 128 : 32))
			return errinfo_set(reterr, -EINVAL,
				"--permit: '%.64s' is neither a domain nor a network such as 10.0.0.0/8",
				*permit);
		for (unsigned at = 0, step = of == 32 ? 8 : 16; at < of; at += step) {
			unsigned ones = bits > at ? MIN(bits - at, step) : 0;
			unsigned part = ((1U << step) - 1) & ~((1U << (step - ones)) - 1);

			snprintf(mask + strlen(mask), sizeof(mask) - strlen(mask),
				of == 32 ? "%s%u" : "%s%x",
				!at        ? ""
				: of == 32 ? "."
					   : ":",
				part);
		}
		buf_printf(b, "permitted;IP:%s/%s", address, mask);
	}
	return b->err;
}

/* make_authority - a key and its certificate, and both as ca.key. */
static int make_authority(struct cert_spec s, unsigned generation, struct buf *pem,
	EVP_PKEY **ret_key, X509 **ret_cert, struct errinfo *reterr)
{
	_cleanup_(EVP_PKEY_freep) EVP_PKEY *key = EVP_EC_gen("P-256");
	_cleanup_(X509_freep) X509 *cert = NULL;
	char name[32];
	int r;

	snprintf(name, sizeof(name), "ingero CA %u", generation);
	s.kind = CERT_AUTHORITY;
	s.name = name;
	r = key ? cert_build(&s, key, &cert) : -ENOMEM;
	r = r ?: cert_put_key(key, pem);
	r = r ?: cert_put_pem(cert, pem);
	if (r < 0)
		return errinfo_set(reterr, r, "cannot create the CA's certificate");
	*ret_key = TAKE(key);
	*ret_cert = TAKE(cert);
	return 0;
}

static int fill_folder(const char *dir, const struct cert_spec *s, struct errinfo *reterr)
{
	_cleanup_key_ struct buf key_pem = BUF_INIT(CERT_PEM_MAX);
	_cleanup_buf_ struct buf pem = BUF_INIT(CERT_PEM_MAX), index = BUF_INIT(4096);
	_cleanup_(EVP_PKEY_freep) EVP_PKEY *key = NULL;
	_cleanup_(X509_freep) X509 *cert = NULL;
	const struct ca_index none = {0};
	int r = make_authority(*s, 1, &key_pem, &key, &cert, reterr);

	if (r < 0)
		return r;
	cert_put_pem(cert, &pem);
	ca_index_write(&none, &index);
	r = write_file(dir, "ca.key", &key_pem, 0600, reterr);
	r = r ?: write_file(dir, "ca.pem", &pem, 0644, reterr);
	return r ?: write_file(dir, "index", &index, 0600, reterr);
}

static void remove_made(const char *dir)
{
	static const char *const files[] = {"ca.key", "ca.pem", "index"};
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (ca_path(dir, files[i], path, NULL) == 0)
			unlink(path);
	rmdir(dir);
}

int ca_init(const char *dir, const char *const *permit, int days, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf permitted = BUF_INIT(16384);
	unsigned char id[FLEET_BYTES];
	char fleet[2 * FLEET_BYTES + 1], copy[PATH_MAX], tmp[PATH_MAX];
	struct cert_spec s = {.fleet = fleet, .days = days};
	int r = permit_text(permit, &permitted, reterr);

	if (r < 0)
		return r;
	if (strlen(dir) > PATH_MAX - 64)
		return errinfo_set(reterr, -ENAMETOOLONG, "the path of the CA is too long");
	if (RAND_bytes(id, sizeof(id)) != 1)
		return errinfo_set(reterr, -EIO, "cannot create the CA's certificate");
	for (size_t i = 0; i < sizeof(id); i++)
		snprintf(fleet + 2 * i, 3, "%02x", id[i]);
	s.permit = permitted.len ? buf_str(&permitted) : NULL;
	snprintf(copy, sizeof(copy), "%s", dir);
	snprintf(tmp, sizeof(tmp), "%.4000s/.ca-XXXXXX", dirname(copy));
	if (!mkdtemp(tmp))
		return errinfo_set_exit(reterr, EXIT_NO_CREATE, -errno, "cannot create %s: %s", dir,
			strerror(errno));
	r = fill_folder(tmp, &s, reterr);
	/* Onto an empty folder, or where there is none: a CA that is there stays. */
	if (r == 0 && rename(tmp, dir) < 0)
		r = errinfo_set_exit(reterr, EXIT_NO_CREATE, -errno,
			errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR
				? "%s exists already and is not changed (%s): see `ingero cert list`, or give another folder with --dir"
				: "cannot create %s: %s",
			dir, strerror(errno));
	if (r < 0)
		remove_made(tmp);
	else
		file_sync(dirname(copy));
	return r;
}

/* ---- opening ---- */

/* One who reads and one who reads may do so at once. */
static int lock_folder(struct ca *ca, bool write, struct errinfo *reterr)
{
	struct stat st;

	ca->lock = open(ca->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ca->lock < 0 && (errno == ENOENT || errno == ENOTDIR))
		return errinfo_set_exit(reterr, EXIT_NO_INPUT, -ENOENT,
			"there is no CA in %s: make one with `ingero cert init`", ca->dir);
	if (ca->lock < 0 || flock(ca->lock, write ? LOCK_EX : LOCK_SH) < 0)
		return errinfo_set(
			reterr, -errno, "cannot use the folder %s: %s", ca->dir, strerror(errno));
	if (fstat(ca->lock, &st) < 0)
		return -errno;
	if ((st.st_mode & 077) || (st.st_uid != path_user_now() && st.st_uid != geteuid()))
		return errinfo_set_exit(reterr, EXIT_NO_PERMISSION, -EPERM,
			"other users can access the CA's folder %s: run `chmod 700 %s` as its owner",
			ca->dir, ca->dir);
	return 0;
}

static int read_signer(struct ca *ca, struct errinfo *reterr)
{
	_cleanup_key_ struct buf b = BUF_INIT(CERT_PEM_MAX);
	char path[PATH_MAX];
	int r = ca_path(ca->dir, "ca.key", path, reterr);

	r = r ?: secret_file_read(path, "key file", CERT_PEM_MAX, &b, reterr);
	if (r == -ENOENT)
		return errinfo_set_exit(reterr, EXIT_NO_INPUT, -ENOENT,
			"there is no CA in %s: make one with `ingero cert init`", ca->dir);
	if (r < 0)
		return r;
	ca->key = cert_key_from_pem(buf_str(&b), b.len);
	ca->certs[0] = cert_from_pem(buf_str(&b), b.len, 0);
	ca->cert_count = ca->certs[0] != NULL;
	if (!ca->key || !ca->certs[0] || X509_check_private_key(ca->certs[0], ca->key) != 1 ||
		X509_check_ca(ca->certs[0]) != 1 ||
		!cert_fleet(X509_get_subject_name(ca->certs[0]), ca->fleet, &ca->generation))
		return errinfo_set_exit(reterr, EXIT_BAD_DATA, -EBADMSG,
			"%s is damaged: restore it from a backup", path);
	return 0;
}

/* read_bundle - what is in ca.pem beside the one that signs, unless it has expired. *ret_stale: the
 * file should be written anew. */
static int read_bundle(struct ca *ca, bool *ret_stale, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(CERT_PEM_MAX);
	bool has_signer = false, has_expired = false;
	char path[PATH_MAX];
	int r = ca_path(ca->dir, "ca.pem", path, reterr);

	r = r ?: file_read(path, CERT_PEM_MAX, &b);
	if (r < 0 && r != -ENOENT)
		return errinfo_set(reterr, r, "cannot read %s: %s", path, strerror(-r));
	for (size_t i = 0; ca->cert_count < CA_AUTHORITIES_MAX; i++) {
		_cleanup_(X509_freep) X509 *cert = cert_from_pem(buf_str(&b), b.len, i);

		if (!cert)
			break;
		if (X509_cmp(cert, ca->certs[0]) == 0)
			has_signer = true;
		else if (cert_until_s(cert) <= time(NULL))
			has_expired = true;
		else
			ca->certs[ca->cert_count++] = TAKE(cert);
	}
	*ret_stale = !has_signer || has_expired;
	return 0;
}

static int read_index(struct ca *ca, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(CA_INDEX_BYTES_MAX);
	char path[PATH_MAX];
	int r = ca_path(ca->dir, "index", path, reterr);

	if (r < 0)
		return r;
	r = file_read(path, CA_INDEX_BYTES_MAX, &b);
	if (r < 0)
		return errinfo_set(reterr, r, "cannot read %s: %s", path, strerror(-r));
	return ca_index_parse(path, buf_str(&b), b.len, &ca->index, reterr);
}

int ca_put_bundle(const struct ca *ca, struct buf *b)
{
	for (size_t i = 0; i < ca->cert_count; i++)
		cert_put_pem(ca->certs[i], b);
	return b->err;
}

static int save_bundle(const struct ca *ca, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(CERT_PEM_MAX);

	ca_put_bundle(ca, &b);
	return write_file(ca->dir, "ca.pem", &b, 0644, reterr);
}

int ca_save_index(const struct ca *ca, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(CA_INDEX_BYTES_MAX);

	ca_index_write(&ca->index, &b);
	return write_file(ca->dir, "index", &b, 0600, reterr);
}

/* sweep - files that a run was killed in the midst of writing, one of them perhaps with a key. */
static void sweep(const char *dir)
{
	static const char *const files[] = {"ca.key.??????", "ca.pem.??????", "index.??????"};
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		glob_t found;

		if (ca_path(dir, files[i], path, NULL) < 0 ||
			glob(path, GLOB_NOSORT, NULL, &found) != 0)
			continue;
		for (size_t k = 0; k < found.gl_pathc; k++)
			unlink(found.gl_pathv[k]);
		globfree(&found);
	}
}

int ca_open(const char *dir, bool write, struct ca **ret, struct errinfo *reterr)
{
	_cleanup_(ca_freep) struct ca *ca = calloc(1, sizeof(*ca));
	bool stale = false;
	int r;

	if (!ca)
		return -ENOMEM;
	ca->lock = -1;
	ca->dir = strdup(dir);
	if (!ca->dir)
		return -ENOMEM;
	r = lock_folder(ca, write, reterr);
	if (r == 0 && write)
		sweep(dir);
	r = r ?: read_signer(ca, reterr);
	r = r ?: read_bundle(ca, &stale, reterr);
	r = r ?: read_index(ca, reterr);
	if (r == 0 && write && stale)
		r = save_bundle(ca, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(ca);
	return 0;
}

/* ---- a new CA ---- */

int ca_rotate(struct ca *ca, int days, struct errinfo *reterr)
{
	_cleanup_key_ struct buf pem = BUF_INIT(CERT_PEM_MAX);
	struct cert_spec s = {.fleet = ca->fleet, .days = days, .permit_as = ca->certs[0]};
	X509 *cert;
	EVP_PKEY *key;
	int r;

	if (ca->cert_count > 1)
		return errinfo_set_exit(reterr, EXIT_TRY_AGAIN, -EBUSY,
			"the CA is being rotated already: when every node has a certificate of the new one, run `ingero cert rotate --ca --finish`");
	r = make_authority(s, ca->generation + 1, &pem, &key, &cert, reterr);
	if (r < 0)
		return r;
	r = write_file(ca->dir, "ca.key", &pem, 0600, reterr);
	if (r < 0) {
		EVP_PKEY_free(key);
		X509_free(cert);
		return r;
	}
	EVP_PKEY_free(ca->key);
	ca->key = key;
	ca->certs[1] = ca->certs[0];
	ca->certs[0] = cert;
	ca->cert_count = 2;
	ca->generation++;
	if (cert_until_s(ca->certs[1]) <= time(NULL)) /* nobody trusts it any more */
		X509_free(ca->certs[--ca->cert_count]);
	return save_bundle(ca, reterr);
}

int ca_finish(struct ca *ca, bool force, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf left = BUF_INIT(300);
	size_t count = 0;

	if (ca->cert_count < 2)
		return errinfo_set(reterr, -EINVAL,
			"there is no rotation of the CA to finish: begin one with `ingero cert rotate --ca`");
	for (size_t i = 0; i < ca->index.count; i++) {
		const struct ca_row *row = &ca->index.rows[i];

		if (!ca_index_is_current(&ca->index, i) || row->generation == ca->generation ||
			row->until_s <= time(NULL))
			continue;
		if (++count <= 4)
			buf_printf(&left, "%s%s", count > 1 ? ", " : "", row->name);
	}
	if (count && !force)
		return errinfo_set_exit(reterr, EXIT_TRY_AGAIN, -EBUSY,
			"still with a certificate of the old CA: %s%s; rotate them first (`ingero cert rotate --all`), or cut them off with --force",
			buf_str(&left), count > 4 ? ", …" : "");
	while (ca->cert_count > 1)
		X509_free(ca->certs[--ca->cert_count]);
	return save_bundle(ca, reterr);
}

/* ---- looking ---- */

size_t ca_authorities(const struct ca *ca, struct ca_authority out[CA_AUTHORITIES_MAX])
{
	char fleet[CERT_HEX_MAX];

	for (size_t i = 0; i < ca->cert_count; i++) {
		out[i] = (struct ca_authority){
			.from_s = cert_from_s(ca->certs[i]), .until_s = cert_until_s(ca->certs[i])};
		cert_serial(ca->certs[i], out[i].serial);
		cert_fingerprint(ca->certs[i], out[i].fingerprint);
		cert_fleet(X509_get_subject_name(ca->certs[i]), fleet, &out[i].generation);
	}
	return ca->cert_count;
}

const struct ca_index *ca_issued(const struct ca *ca)
{
	return &ca->index;
}

const char *ca_dir(const struct ca *ca)
{
	return ca->dir;
}
