/* SPDX-License-Identifier: Apache-2.0 */
#include "cert_fixture.h"

#include <errno.h>
#include <stdbool.h>

#include "net/pki/cert.h"

static char dir[64], state_dir[96], cert_path[128], key_path[128];

static int make_folder(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/test-cert-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(state_dir, sizeof(state_dir), "%s/a/b", dir);
	snprintf(cert_path, sizeof(cert_path), "%s/cert.pem", state_dir);
	snprintf(key_path, sizeof(key_path), "%s/key.pem", state_dir);
	return 0;
}

static int remove_folder(void **state)
{
	char parent[96];

	unlink(cert_path);
	unlink(key_path);
	rmdir(state_dir);
	snprintf(parent, sizeof(parent), "%s/a", dir);
	rmdir(parent);
	return rmdir(dir);
}

static char **names_of(const char *more)
{
	const char *const list[] = {more, NULL};
	char **names = NULL;

	assert_int_equal(cert_names(list, &names, NULL), 0);
	return names;
}

static X509 *read_cert(void)
{
	FILE *f = fopen(cert_path, "r");
	X509 *cert;

	assert_non_null(f);
	cert = PEM_read_X509(f, NULL, NULL, NULL);
	fclose(f);
	assert_non_null(cert);
	return cert;
}

static void fingerprint(char out[65])
{
	X509 *cert = read_cert();

	assert_int_equal(cert_fingerprint(cert, out), 0);
	X509_free(cert);
}

static void test_names(void **state)
{
	static const char *const more[] = {"localhost", "gpu1", "GPU1", "gpu2:9443",
		"https://gpu3.example", "http://gpu4:80", "[2001:db8::1]:443", "2001:db8::2", NULL};
	static const char *const bad[] = {"", "a b", "a/b", "[::1", "*"};
	char **names = NULL;
	size_t n;

	assert_int_equal(cert_names(more, &names, NULL), 0);
	for (n = 0; names[n]; n++)
		;
	assert_true(n >= 9);
	assert_string_equal(names[0], "localhost");
	assert_string_equal(names[1], "127.0.0.1");
	assert_string_equal(names[2], "::1");
	assert_string_equal(names[n - 6], "gpu1");
	assert_string_equal(names[n - 5], "gpu2");
	assert_string_equal(names[n - 4], "gpu3.example");
	assert_string_equal(names[n - 3], "gpu4");
	assert_string_equal(names[n - 2], "2001:db8::1");
	assert_string_equal(names[n - 1], "2001:db8::2");
	cert_names_free(names);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *const list[] = {bad[i], NULL};
		struct errinfo e = {0};

		assert_int_equal(cert_names(list, &names, &e), -EINVAL);
		assert_non_null(strstr(e.text, "valid certificate name"));
	}
}

static void test_what_is_in_it(void **state)
{
	char **names = names_of("gpu1");
	struct stat st;
	X509 *cert;

	assert_int_equal(cert_keep(state_dir, names, NULL), 0);
	assert_int_equal(stat(state_dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(stat(key_path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	cert = read_cert();
	assert_int_equal(X509_check_host(cert, "localhost", 0, 0, NULL), 1);
	assert_int_equal(X509_check_host(cert, "gpu1", 0, 0, NULL), 1);
	assert_int_equal(X509_check_host(cert, "gpu2", 0, 0, NULL), 0);
	assert_int_equal(X509_check_ip_asc(cert, "127.0.0.1", 0), 1);
	assert_int_equal(X509_check_ip_asc(cert, "::1", 0), 1);
	assert_int_equal(EVP_PKEY_get_bits(X509_get0_pubkey(cert)), 256);
	assert_int_equal(X509_check_ca(cert), 0);
	assert_int_equal(X509_verify(cert, X509_get0_pubkey(cert)), 1);
	assert_true(X509_cmp_current_time(X509_get0_notBefore(cert)) < 0);
	assert_true(X509_cmp_current_time(X509_get0_notAfter(cert)) > 0);
	X509_free(cert);
	cert_names_free(names);
}

static void test_it_is_kept(void **state)
{
	char **names = names_of("gpu1"), **more = names_of("gpu2");
	char first[65], again[65], other[65];

	assert_int_equal(cert_keep(state_dir, names, NULL), 0);
	fingerprint(first);
	assert_int_equal(cert_keep(state_dir, names, NULL), 0);
	fingerprint(again);
	assert_string_equal(first, again);
	assert_int_equal(cert_keep(state_dir, more, NULL), 0); /* a name that it lacks */
	fingerprint(other);
	assert_string_not_equal(first, other);
	cert_names_free(names);
	cert_names_free(more);
}

/* replaced - whether another one is there after looking. */
static bool replaced(char **names)
{
	char before[65] = "", after[65];

	if (access(cert_path, F_OK) == 0) {
		FILE *f = fopen(cert_path, "r");
		X509 *cert = PEM_read_X509(f, NULL, NULL, NULL);

		fclose(f);
		if (cert)
			cert_fingerprint(cert, before);
		X509_free(cert);
	}
	assert_int_equal(cert_keep(state_dir, names, NULL), 0);
	fingerprint(after);
	return strcmp(before, after) != 0;
}

static void put(const char *path, const struct buf *b)
{
	assert_int_equal(file_write_atomic(path, b->data, b->len, 0600), 0);
}

static void test_it_is_renewed(void **state)
{
	_cleanup_buf_ struct buf cert = BUF_INIT(1 << 16), key = BUF_INIT(1 << 16);
	char **names = names_of("gpu1");

	assert_int_equal(cert_keep(state_dir, names, NULL), 0);
	assert_false(replaced(names));
	/* a good one of somebody else's making, with time left: kept */
	assert_int_equal(cert_make(names, CERT_RENEW_DAYS + 2, &cert, &key, NULL), 0);
	put(cert_path, &cert);
	put(key_path, &key);
	assert_false(replaced(names));
	/* nearly expired */
	buf_clear(&cert);
	buf_clear(&key);
	assert_int_equal(cert_make(names, CERT_RENEW_DAYS - 1, &cert, &key, NULL), 0);
	put(cert_path, &cert);
	put(key_path, &key);
	assert_true(replaced(names));
	/* a certificate that is not its key's, as a crash between the two writes leaves it */
	put(cert_path, &cert);
	assert_true(replaced(names));
	/* damaged, empty, away, readable by others */
	buf_clear(&key);
	buf_puts(&key, "-----BEGIN PRIVATE KEY-----\nnothing");
	put(key_path, &key);
	assert_true(replaced(names));
	assert_int_equal(truncate(cert_path, 0), 0);
	assert_true(replaced(names));
	assert_int_equal(unlink(key_path), 0);
	assert_true(replaced(names));
	assert_int_equal(chmod(key_path, 0644), 0);
	assert_true(replaced(names));
	assert_false(replaced(names));
	cert_names_free(names);
}

static void test_bad_folders(void **state)
{
	char **names = names_of("gpu1");
	struct errinfo e = {0};

	assert_int_equal(cert_keep(state_dir, names, NULL), 0);
	assert_int_equal(chmod(state_dir, 0777), 0);
	assert_int_equal(cert_keep(state_dir, names, &e), -EPERM);
	assert_non_null(strstr(e.text, "chmod 700"));
	assert_int_equal(chmod(state_dir, 0700), 0);
	assert_true(cert_keep("/proc/none/here", names, &e) < 0);
	assert_non_null(strstr(e.text, "cannot create the folder"));
	cert_names_free(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test_setup_teardown(test_what_is_in_it, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_it_is_kept, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_it_is_renewed, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_bad_folders, make_folder, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
