/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that were met before, and the fingerprints that users give. */
#include "cert_fixture.h"

#include <errno.h>
#include <sys/wait.h>

#include "net/pki/known_nodes.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

static char dir[64], folder[96], path[128];

static int make_folder(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/test-known-XXXXXX");
	snprintf(folder, sizeof(folder), "%s/.ingero", mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/known_nodes", folder);
	return 0;
}

static int remove_folder(void **state)
{
	unlink(path);
	rmdir(folder);
	return rmdir(dir);
}

static struct tls_pin pin(const char *hex)
{
	struct tls_pin p;

	assert_int_equal(tls_pin_parse(hex, strlen(hex), &p), 0);
	return p;
}

static int parse(const char *text, struct known_nodes *k, struct errinfo *e)
{
	return known_nodes_parse("known", text, strlen(text), k, e);
}

static void test_lines(void **state)
{
	static const char text[] = "# nodes\n\n  gpu-1:8080   " A "  \r\n\tgpu-1:8080 " B
				   "\n[::1]:8080\t" A "\ngpu-2:1 "
				   "CC:CC:CC:CC:CC:CC:CC:CC:CC:CC:CC:CC:CC:CC:CC:CC:CC:CC:CC:CC:CC:"
				   "CC:CC:CC:CC:CC:CC:CC:CC:CC:CC:CC";
	struct tls_pin a = pin(A), b = pin(B), c = pin(C);
	struct known_nodes k = {0};
	size_t line = 0;

	assert_int_equal(parse(text, &k, NULL), 0);
	assert_int_equal(k.count, 4);
	assert_int_equal(known_nodes_judge(&k, "gpu-1:8080", &a, &line), KNOWN_MATCH);
	assert_int_equal(known_nodes_judge(&k, "GPU-1:8080", &b, &line), KNOWN_MATCH);
	assert_int_equal(known_nodes_judge(&k, "gpu-1:8080", &c, &line), KNOWN_CHANGED);
	assert_int_equal(line, 3);
	assert_int_equal(known_nodes_judge(&k, "gpu-1:8081", &a, &line), KNOWN_STRANGER);
	assert_int_equal(known_nodes_judge(&k, "gpu-2:1", &c, &line), KNOWN_MATCH);
	assert_int_equal(known_nodes_judge(&k, "[::1]:8080", &b, &line), KNOWN_CHANGED);
	assert_int_equal(line, 5);
	known_nodes_done(&k);
}

static void test_bad_lines(void **state)
{
	static const char *const bad[] = {"gpu-1:8080\n", "gpu-1:8080 abc\n", A "\n",
		"gpu-1:8080 " A "0\n", "gpu-1:8080 " A " x\n", "gpu-1:8080 zz" A "\n",
		"gpu\x1b[1m:80 " A "\n", "gpu-\xff:80 " A "\n", ": :\n"};
	char longer[600];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct known_nodes k = {0};
		struct errinfo e = {0};
		char text[700];

		snprintf(text, sizeof(text), "# first\n%s", bad[i]);
		assert_int_equal(parse(text, &k, &e), -EBADMSG);
		assert_non_null(strstr(e.text, "known: line 2"));
		assert_int_equal(k.count, 0);
	}
	memset(longer, 'a', 300);
	snprintf(longer + 300, sizeof(longer) - 300, " " A "\n");
	assert_int_equal(parse(longer, &(struct known_nodes){0}, NULL), -EBADMSG);
	assert_int_equal(
		known_nodes_parse("known", "a\0b " A "\n", 70, &(struct known_nodes){0}, NULL),
		-EBADMSG);
}

static void test_remember(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct tls_pin a = pin(A), other = pin(B);
	struct known_nodes k = {0};
	struct errinfo e = {0};
	struct stat st;

	assert_int_equal(known_nodes_load(path, &k, NULL), 0); /* there is none yet */
	assert_int_equal(k.count, 0);
	assert_int_equal(known_nodes_remember(path, "gpu-1:8080", &a, NULL), 0);
	assert_int_equal(known_nodes_remember(path, "gpu-1:8080", &a, NULL), 0); /* once */
	assert_int_equal(known_nodes_remember(path, "gpu-2:8080", &other, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(file_read(path, 4096, &b), 0);
	assert_string_equal(buf_str(&b), "gpu-1:8080 " A "\ngpu-2:8080 " B "\n");
	assert_int_equal(known_nodes_remember(path, "a b", &a, &e), -EINVAL);
	assert_int_equal(known_nodes_remember(path, "a\nb:1", &a, &e), -EINVAL);
	/* What it cannot read it does not replace. */
	assert_int_equal(file_write_atomic(path, "junk", 4, 0600), 0);
	assert_int_equal(known_nodes_remember(path, "gpu-3:8080", &a, &e), -EBADMSG);
	buf_clear(&b);
	assert_int_equal(file_read(path, 4096, &b), 0);
	assert_string_equal(buf_str(&b), "junk");
	assert_int_equal(file_write_atomic(path, "# mine", 6, 0600), 0); /* no end of line */
	assert_int_equal(known_nodes_remember(path, "gpu-3:8080", &a, &e), 0);
	buf_clear(&b);
	assert_int_equal(file_read(path, 4096, &b), 0);
	assert_string_equal(buf_str(&b), "# mine\ngpu-3:8080 " A "\n");
	assert_int_equal(chmod(path, 0620), 0);
	assert_int_equal(known_nodes_load(path, &k, &e), -EPERM);
	assert_non_null(strstr(e.text, "chmod 600"));
}

static void test_at_once(void **state)
{
	enum { MANY = 8 };
	struct tls_pin a = pin(A);
	struct known_nodes k = {0};
	int status;

	for (int n = 0; n < MANY; n++) {
		char node[32];

		snprintf(node, sizeof(node), "gpu-%d:8080", n);
		if (fork() == 0)
			_exit(known_nodes_remember(path, node, &a, NULL) < 0);
	}
	for (int n = 0; n < MANY; n++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(known_nodes_load(path, &k, NULL), 0);
	assert_int_equal(k.count, MANY);
	known_nodes_done(&k);
}

static void test_pins(void **state)
{
	static const char *const bad[] = {"", "abc", "=" A, "gpu-1=", "gpu-1=abc", A ":", ":" A};
	struct tls_pin a = pin(A), b = pin(B), c = pin(C);
	struct tls_pins p = {0};
	struct errinfo e = {0};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(tls_pins_add(&p, bad[i], &e), -EINVAL);
	assert_int_equal(tls_pins_judge(&p, "gpu-1:80", &a), TLS_PINS_SILENT);
	assert_int_equal(tls_pins_add(&p, "gpu-1=" A, NULL), 0);
	assert_int_equal(tls_pins_add(&p, "gpu-2:80=" B, NULL), 0);
	assert_int_equal(tls_pins_judge(&p, "gpu-1:80", &a), TLS_PINS_MATCH);
	assert_int_equal(tls_pins_judge(&p, "gpu-1:81", &a), TLS_PINS_MATCH); /* any port */
	assert_int_equal(tls_pins_judge(&p, "gpu-1:80", &b), TLS_PINS_DIFFER);
	assert_int_equal(tls_pins_judge(&p, "gpu-2:80", &b), TLS_PINS_MATCH);
	assert_int_equal(tls_pins_judge(&p, "gpu-2:81", &b), TLS_PINS_SILENT);
	assert_int_equal(tls_pins_judge(&p, "gpu-10:80", &a), TLS_PINS_SILENT);
	assert_int_equal(tls_pins_add(&p, C, NULL), 0); /* of any node that has none */
	assert_int_equal(tls_pins_judge(&p, "gpu-3:80", &c), TLS_PINS_MATCH);
	assert_int_equal(tls_pins_judge(&p, "gpu-3:80", &a), TLS_PINS_DIFFER);
	assert_int_equal(tls_pins_judge(&p, "gpu-1:80", &c), TLS_PINS_DIFFER);
	assert_int_equal(tls_pins_add(&p, "gpu-1=" C, NULL), 0); /* several for one */
	assert_int_equal(tls_pins_judge(&p, "gpu-1:80", &c), TLS_PINS_MATCH);
	assert_int_equal(tls_pins_judge(&p, "gpu-1:80", &a), TLS_PINS_MATCH);
	tls_pins_done(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test_setup_teardown(test_remember, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_at_once, make_folder, remove_folder),
		cmocka_unit_test(test_pins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
