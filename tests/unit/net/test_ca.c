/* SPDX-License-Identifier: Apache-2.0 */
/* A CA in a folder: what it signs, what it refuses, what is left of it when something fails. */
#include "cert_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <sys/wait.h>
#include <time.h>

#include "net/pki/ca.h"
#include "net/pki/cert.h"

static char base[64], dir[96], out[96];

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	return remove(path);
}

static int make_folder(void **state)
{
	snprintf(base, sizeof(base), "/tmp/test-ca-XXXXXX");
	if (!mkdtemp(base))
		return -1;
	snprintf(dir, sizeof(dir), "%s/ca", base);
	snprintf(out, sizeof(out), "%s/out", base);
	return 0;
}

static int remove_folder(void **state)
{
	return nftw(base, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static struct ca *opened(bool write)
{
	struct errinfo e = {0};
	struct ca *ca = NULL;
	int r = ca_open(dir, write, &ca, &e);

	if (r < 0)
		print_message("    %s\n", e.text);
	assert_int_equal(r, 0);
	return ca;
}

static struct ca *made(void)
{
	assert_int_equal(ca_init(dir, NULL, CA_DAYS, NULL), 0);
	return opened(true);
}

static int issue(struct ca *ca, const char *name, const char *further, bool rotate,
	struct ca_issued *ret, struct errinfo *e)
{
	const char *names[] = {further, NULL};
	struct ca_request q = {.name = name, .names = further ? names : NULL, .rotate = rotate};

	return ca_issue(ca, &q, ret, e);
}

static X509 *read_cert(const char *folder, const char *file, size_t nth)
{
	_cleanup_buf_ struct buf b = BUF_INIT(CERT_PEM_MAX);
	char path[4200];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	assert_int_equal(file_read(path, CERT_PEM_MAX, &b), 0);
	return cert_from_pem(buf_str(&b), b.len, nth);
}

static size_t count_names(const char *folder)
{
	DIR *d = opendir(folder);
	size_t n = 0;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	closedir(d);
	return n;
}

/* ---- what it makes ---- */

static void test_what_it_is(void **state)
{
	struct ca *ca = made();
	X509 *cert = read_cert(dir, "ca.pem", 0);
	struct ca_authority a[CA_AUTHORITIES_MAX];
	char path[128];
	struct stat st;

	assert_int_equal(X509_check_ca(cert), 1);
	assert_int_equal(X509_get_pathlen(cert), 0);
	assert_int_equal(EVP_PKEY_get_bits(X509_get0_pubkey(cert)), 256);
	assert_int_equal(X509_get_key_usage(cert), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	snprintf(path, sizeof(path), "%s/ca.key", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(ca_authorities(ca, a), 1);
	assert_int_equal(a[0].generation, 1);
	assert_in_range(
		a[0].until_s - time(NULL), (CA_DAYS - 1) * CERT_DAY_S, CA_DAYS * CERT_DAY_S);
	X509_free(cert);
	ca_free(ca);
}

static void test_what_it_signs(void **state)
{
	struct ca *ca = made();
	struct ca_issued i, j;
	X509 *cert, *authority;

	assert_int_equal(issue(ca, "gpu-1", "gpu-1.example,10.0.0.7,::1", false, &i, NULL), 0);
	cert = read_cert(i.place, "cert.pem", 0);
	authority = read_cert(i.place, "ca.pem", 0);
	assert_int_equal(X509_verify(cert, X509_get0_pubkey(authority)), 1);
	assert_int_equal(X509_check_host(cert, "gpu-1", 0, 0, NULL), 1);
	assert_int_equal(X509_check_host(cert, "gpu-1.example", 0, 0, NULL), 1);
	assert_int_equal(X509_check_ip_asc(cert, "10.0.0.7", 0), 1);
	assert_int_equal(X509_check_ip_asc(cert, "::1", 0), 1);
	assert_int_equal(X509_check_host(cert, "localhost", 0, 0, NULL), 0);
	assert_int_equal(X509_check_ca(cert), 0);
	assert_int_equal(X509_get_extended_key_usage(cert), XKU_SSL_SERVER | XKU_SSL_CLIENT);
	assert_string_equal(i.row.names, "gpu-1,gpu-1.example,10.0.0.7,::1");
	assert_int_equal(issue(ca, "gpu-2", NULL, false, &j, NULL), 0);
	assert_string_not_equal(ca_issued(ca)->rows[0].serial, ca_issued(ca)->rows[1].serial);
	X509_free(cert);
	X509_free(authority);
	ca_free(ca);
}

static void test_client(void **state)
{
	struct ca *ca = made();
	struct ca_request q = {.name = "me", .client = true, .days = 3, .out = out};
	struct ca_issued i;
	X509 *cert;

	assert_int_equal(ca_issue(ca, &q, &i, NULL), 0);
	cert = read_cert(out, "cert.pem", 0);
	assert_int_equal(X509_get_extended_key_usage(cert), XKU_SSL_CLIENT);
	assert_int_equal(count_names(out), 3);
	X509_free(cert);
	q.rotate = true; /* keeps what it was, and for how long */
	q.client = false;
	q.days = 0;
	q.out = NULL;
	assert_int_equal(ca_issue(ca, &q, &i, NULL), 0);
	assert_true(i.row.client);
	assert_in_range(i.row.until_s - time(NULL), 2 * CERT_DAY_S, 3 * CERT_DAY_S);
	ca_free(ca);
}

/* A certificate never outlives its CA. */
static void test_ends_with_the_ca(void **state)
{
	struct ca_issued i;
	struct ca_authority a[CA_AUTHORITIES_MAX];
	struct ca *ca;

	assert_int_equal(ca_init(dir, NULL, 10, NULL), 0);
	ca = opened(true);
	ca_authorities(ca, a);
	assert_int_equal(issue(ca, "gpu-1", NULL, false, &i, NULL), 0);
	assert_int_equal(i.row.until_s, a[0].until_s);
	ca_free(ca);
}

static void test_limited(void **state)
{
	static const char *const permit[] = {"example.org", "10.0.0.0/9", "fd00::/12", NULL};
	static const char *const bad[] = {"10.0.0.0/33", NULL}, *const worse[] = {"a b", NULL};
	struct errinfo e = {0};
	struct ca_issued i;
	struct ca *ca;

	assert_int_equal(ca_init(dir, bad, CA_DAYS, &e), -EINVAL);
	assert_non_null(strstr(e.text, "10.0.0.0/33"));
	assert_int_equal(ca_init(dir, worse, CA_DAYS, &e), -EINVAL);
	assert_int_equal(count_names(base), 0);
	assert_int_equal(ca_init(dir, permit, CA_DAYS, NULL), 0);
	ca = opened(true);
	assert_int_equal(issue(ca, "a.example.org", "10.127.0.1,fd01::1", false, &i, NULL), 0);
	assert_int_equal(issue(ca, "b.example.org", "10.128.0.1", false, &i, &e), -EINVAL);
	assert_non_null(strstr(e.text, "--permit"));
	assert_int_equal(issue(ca, "a.example.net", NULL, false, &i, &e), -EINVAL);
	assert_int_equal(issue(ca, "c.example.org", "fe00::1", false, &i, &e), -EINVAL);
	assert_int_equal(ca_issued(ca)->count, 1);
	/* Its successor is limited as well. */
	assert_int_equal(ca_rotate(ca, CA_DAYS, &e), 0);
	assert_int_equal(issue(ca, "a.example.net", NULL, false, &i, &e), -EINVAL);
	assert_int_equal(issue(ca, "d.example.org", NULL, false, &i, &e), 0);
	ca_free(ca);
}

/* ---- rotation ---- */

static void test_node_rotation(void **state)
{
	struct ca_issued first, second;
	struct ca *ca = made();
	struct errinfo e = {0};
	char old[4300];

	assert_int_equal(issue(ca, "gpu-1", NULL, true, &first, &e), -ENOENT);
	assert_int_equal(issue(ca, "gpu-1", "10.0.0.7", false, &first, NULL), 0);
	snprintf(old, sizeof(old), "%s/nodes/gpu-1/%s/key.pem", dir, first.row.serial);
	assert_int_equal(issue(ca, "gpu-1", NULL, false, &second, &e), -EEXIST);
	assert_non_null(strstr(e.text, "cert rotate gpu-1"));
	assert_int_equal(issue(ca, "gpu-1", NULL, true, &second, NULL), 0);
	assert_string_equal(second.row.names, "gpu-1,10.0.0.7");
	assert_string_not_equal(first.row.fingerprint, second.row.fingerprint);
	assert_int_equal(access(old, F_OK), 0); /* the one before is kept */
	assert_false(ca_index_is_current(ca_issued(ca), 0));
	assert_true(ca_index_is_current(ca_issued(ca), 1));
	assert_int_equal(issue(ca, "gpu-1", "10.0.0.8", true, &second, NULL), 0);
	assert_string_equal(second.row.names, "gpu-1,10.0.0.8"); /* names that are given win */
	ca_free(ca);
}

static void test_ca_rotation(void **state)
{
	struct ca_authority a[CA_AUTHORITIES_MAX];
	struct ca *ca = made();
	struct errinfo e = {0};
	struct ca_issued i;
	X509 *cert;

	assert_int_equal(issue(ca, "gpu-1", NULL, false, &i, NULL), 0);
	assert_int_equal(ca_finish(ca, false, &e), -EINVAL);
	assert_int_equal(ca_rotate(ca, CA_DAYS, &e), 0);
	assert_int_equal(ca_rotate(ca, CA_DAYS, &e), -EBUSY);
	ca_free(ca);
	ca = opened(true);
	assert_int_equal(ca_authorities(ca, a), 2);
	assert_int_equal(a[0].generation, 2);
	assert_int_equal(a[1].generation, 1);
	assert_int_equal(ca_finish(ca, false, &e), -EBUSY);
	assert_non_null(strstr(e.text, "gpu-1"));
	assert_int_equal(issue(ca, "gpu-1", NULL, true, &i, NULL), 0);
	assert_int_equal(i.row.generation, 2);
	cert = read_cert(i.place, "ca.pem", 1); /* the node is given both */
	assert_non_null(cert);
	X509_free(cert);
	assert_int_equal(ca_finish(ca, false, &e), 0);
	ca_free(ca);
	ca = opened(false);
	assert_int_equal(ca_authorities(ca, a), 1);
	assert_int_equal(a[0].generation, 2);
	ca_free(ca);
}

static void test_force(void **state)
{
	struct ca *ca = made();
	struct ca_issued i;

	assert_int_equal(issue(ca, "lost", NULL, false, &i, NULL), 0);
	assert_int_equal(ca_rotate(ca, CA_DAYS, NULL), 0);
	assert_int_equal(ca_finish(ca, true, NULL), 0);
	ca_free(ca);
}

/* Killed after ca.key and before ca.pem: who opens it next writes ca.pem. */
static void test_interrupted_rotation(void **state)
{
	_cleanup_buf_ struct buf before = BUF_INIT(CERT_PEM_MAX);
	struct ca_authority a[CA_AUTHORITIES_MAX];
	struct ca *ca = made();
	char path[128];
	X509 *cert;

	snprintf(path, sizeof(path), "%s/ca.pem", dir);
	assert_int_equal(file_read(path, CERT_PEM_MAX, &before), 0);
	assert_int_equal(ca_rotate(ca, CA_DAYS, NULL), 0);
	ca_free(ca);
	assert_int_equal(file_write_atomic(path, before.data, before.len, 0644), 0);
	ca = opened(false);
	assert_int_equal(ca_authorities(ca, a), 2);
	ca_free(ca);
	assert_null(read_cert(dir, "ca.pem", 1)); /* one who only looks writes nothing */
	ca_free(opened(true));
	cert = read_cert(dir, "ca.pem", 1);
	assert_non_null(cert);
	X509_free(cert);
}

/* ---- what it refuses ---- */

static void refused(int err, const char *says)
{
	struct errinfo e = {0};
	struct ca *ca = NULL;

	assert_int_equal(ca_open(dir, true, &ca, &e), err);
	print_message("    %s\n", e.text);
	assert_null(ca);
	assert_non_null(strstr(e.text, says));
}

static void write_text(const char *name, const char *text, mode_t mode)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(file_write_atomic(path, text, strlen(text), mode), 0);
}

static void test_folders(void **state)
{
	struct errinfo e = {0};

	refused(-ENOENT, "cert init");
	ca_free(made());
	assert_int_equal(ca_init(dir, NULL, CA_DAYS, &e), -ENOTEMPTY);
	assert_int_equal(count_names(base), 1); /* and nothing beside it */
	assert_int_equal(chmod(dir, 0750), 0);
	refused(-EPERM, "chmod 700");
	assert_int_equal(chmod(dir, 0700), 0);
	write_text("ca.key", "x", 0640);
	refused(-EPERM, "chmod 600");
}

static void test_damaged_files(void **state)
{
	static const char *const pems[] = {"", "x",
		"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
		"-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n",
		"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"};
	static const char *const indexes[] = {
		"", "x\n", "# ingero certificates 2\n", "# ingero certificates 1\nx\n"};
	_cleanup_key_ struct buf key = BUF_INIT(CERT_PEM_MAX);
	char path[128];

	ca_free(made());
	snprintf(path, sizeof(path), "%s/ca.key", dir);
	assert_int_equal(file_read(path, CERT_PEM_MAX, &key), 0);
	for (size_t i = 0; i < ARRAY_SIZE(pems); i++) {
		write_text("ca.key", pems[i], 0600);
		refused(-EBADMSG, "damaged");
	}
	write_text("ca.key", buf_str(&key), 0600);
	for (size_t i = 1; i < ARRAY_SIZE(indexes); i++) {
		write_text("index", indexes[i], 0600);
		refused(-EBADMSG, "line");
	}
}

static void test_names(void **state)
{
	static const char *const bad[] = {"", ".", "..", "a/b", "-x", "a b", "a\n", "é"};
	struct ca *ca = made();
	struct errinfo e = {0};
	struct ca_issued i;

	for (size_t n = 0; n < ARRAY_SIZE(bad); n++)
		assert_int_equal(issue(ca, bad[n], NULL, false, &i, &e), -EINVAL);
	assert_int_equal(issue(ca, "ok", "a/b", false, &i, &e), -EINVAL);
	assert_int_equal(issue(ca, "ok", "*.example", false, &i, &e), -EINVAL);
	assert_int_equal(ca_issued(ca)->count, 0);
	ca_free(ca);
}

/* A place that cannot be written: nothing is issued, nothing is left over. */
static void test_places(void **state)
{
	struct ca_request q = {.name = "gpu-1", .out = base};
	struct ca *ca = made();
	struct errinfo e = {0};
	struct ca_issued i;
	char missing[128];

	assert_int_equal(ca_issue(ca, &q, &i, &e), -EEXIST);
	snprintf(missing, sizeof(missing), "%s/none/x", base);
	q.out = missing;
	assert_int_equal(ca_issue(ca, &q, &i, &e), -ENOENT);
	q.out = NULL;
	q.bundle = missing;
	assert_int_equal(ca_issue(ca, &q, &i, &e), -ENOENT);
	q.bundle = base;
	assert_int_equal(ca_issue(ca, &q, &i, &e), -EEXIST);
	assert_int_equal(ca_issued(ca)->count, 0);
	assert_int_equal(count_names(base), 1);
	ca_free(ca);
}

/* Several at once: each waits for the other, and all are in the index. */
static void test_at_once(void **state)
{
	enum { MANY = 4 };
	struct ca *ca;
	int status;

	ca_free(made());
	for (int n = 0; n < MANY; n++) {
		if (fork() == 0) {
			struct ca_issued i;
			char name[16];
			int r;

			snprintf(name, sizeof(name), "gpu-%d", n);
			r = ca_open(dir, true, &ca, NULL);
			if (r == 0)
				r = issue(ca, name, NULL, false, &i, NULL);
			_exit(r < 0);
		}
	}
	for (int n = 0; n < MANY; n++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	ca = opened(false);
	assert_int_equal(ca_issued(ca)->count, MANY);
	ca_free(ca);
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
	const struct CMUnitTest tests[] = {
		ROW(test_what_it_is),
		ROW(test_what_it_signs),
		ROW(test_client),
		ROW(test_ends_with_the_ca),
		ROW(test_limited),
		ROW(test_node_rotation),
		ROW(test_ca_rotation),
		ROW(test_force),
		ROW(test_interrupted_rotation),
		ROW(test_folders),
		ROW(test_damaged_files),
		ROW(test_names),
		ROW(test_places),
		ROW(test_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
