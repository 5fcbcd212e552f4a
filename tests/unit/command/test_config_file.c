/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "command/config_file.h"

static struct config *good(const char *text)
{
	struct config *c = NULL;
	struct errinfo e = {0};

	if (config_file_read("/etc/x/ingero.yaml", text, strlen(text), &c, &e) < 0)
		fail_msg("%s\n%s", e.text, text);
	return c;
}

static void every_key_is_read(void **state)
{
	_cleanup_(config_freep) struct config *c =
		good("# a comment\n"
		     "agent:\n  node: gpu-node-01\n"
		     "fleet:\n"
		     "  nodes:\n    - gpu-node-01:8080\n    - 'gpu-node-02:8080'\n"
		     "  timeout: 2s\n  clock_skew_threshold: 0\n"
		     "  ca_cert: ca.pem\n  client_cert: /abs/c.pem\n  client_key: sub/k.pem\n"
		     "  token_file: ~/token\n  fingerprint: \"ab12\"\n  no_tls: true\n"
		     "dashboard:\n  addr: 0.0.0.0:8080\n  tls_cert: a\n  tls_key: b\n"
		     "  client_ca: c\n  token_file: d\n  names: [gpu1, gpu1.lan]\n");

	assert_string_equal(c->path, "/etc/x/ingero.yaml");
	assert_string_equal(c->node, "gpu-node-01");
	assert_int_equal(c->fleet_nodes.count, 2);
	assert_string_equal(c->fleet_nodes.items[1], "gpu-node-02:8080");
	assert_int_equal(c->fleet_timeout_ns, 2 * NS_PER_S);
	assert_int_equal(c->fleet_clock_skew_ns, 0);
	assert_string_equal(c->fleet_ca_cert, "/etc/x/ca.pem"); /* beside the file */
	assert_string_equal(c->fleet_client_cert, "/abs/c.pem");
	assert_string_equal(c->fleet_client_key, "/etc/x/sub/k.pem");
	assert_string_equal(c->fleet_token_file, "/home/me/token");
	assert_int_equal(c->fleet_fingerprint.count, 1); /* one alone is a list of one */
	assert_string_equal(c->fleet_fingerprint.items[0], "ab12");
	assert_true(c->fleet_no_tls);
	assert_string_equal(c->dashboard_addr, "0.0.0.0:8080");
	assert_string_equal(c->dashboard_tls_key, "/etc/x/b");
	assert_string_equal(c->dashboard_client_ca, "/etc/x/c");
	assert_string_equal(c->dashboard_token_file, "/etc/x/d");
	assert_int_equal(c->dashboard_names.count, 2);
	assert_string_equal(c->dashboard_names.items[0], "gpu1");
}

static void nothing_is_nothing(void **state)
{
	static const char *const texts[] = {"", "\n# only words\n", "---\n", "fleet:\n",
		"fleet: {}\n", "fleet:\n  nodes:\n  timeout: ~\n", "fleet: {nodes: []}"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_(config_freep) struct config *c = good(texts[i]);

		assert_null(c->node);
		assert_int_equal(c->fleet_nodes.count, 0);
		assert_true(c->fleet_timeout_ns == CONFIG_UNSET);
	}
}

/* What is wrong, where, and the words that help. */
static void faults_are_told_with_their_place(void **state)
{
	static const struct {
		const char *text, *where, *what;
	} bad[] = {
		{"fleet:\n  nodez: []\n", "line 2, column 3", "did you mean nodes?"},
		{"flet:\n  nodes: []\n", "line 1, column 1", "did you mean fleet?"},
		{"fleet:\n  timeout: 5\n", "line 2, column 3", "a duration like"},
		{"fleet:\n  timeout: [1s]\n", "line 2, column 3", "must be a single value"},
		{"fleet:\n  no_tls: maybe\n", "line 2, column 3", "true or false"},
		{"fleet:\n  nodes: {a: b}\n", "line 2, column 3", "must be a list"},
		{"fleet:\n  nodes: [[a]]\n", "line 2, column 11", "a list of strings"},
		{"fleet: 7\n", "line 1, column 1", "must contain keys"},
		{"- fleet\n", "line 1, column 1", "expected a section"},
		{"fleet:\n  timeout: 1s\n  timeout: 2s\n", "line 3: ", "duplicate"},
		{"fleet: &a\n  nodes: []\n", "line 1: ", "anchors"},
		{"agent: *a\n", "line 1: ", "anchors"},
		{"fleet:\n\tnodes: []\n", "line 2: ", "indent with spaces, not tabs"},
		{"fleet: {\n", "line 2: ", "not valid YAML"},
		{"agent: {node: a}\n---\nagent: {node: b}\n", "line 2: ", "only one YAML document"},
		{"agent:\n  node: \"a\\0b\"\n", "line 2: ", "NUL"},
		{"agent:\n  node: \xff\n", "line ", "not valid YAML"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct config *c = NULL;
		struct errinfo e = {0};
		int r = config_file_read("f.yaml", bad[i].text, strlen(bad[i].text), &c, &e);

		if (r >= 0 || !strstr(e.text, bad[i].where) || !strstr(e.text, bad[i].what))
			fail_msg("%s\ngave %d: %s", bad[i].text, r, e.text);
		assert_int_equal(strncmp(e.text, "f.yaml: ", 8), 0);
		assert_int_equal(errinfo_exit_code(&e, r), EXIT_CONFIG);
		assert_null(c);
	}
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	assert_int_equal(file_write_atomic(path, text, strlen(text), mode), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void the_order_of_places(void **state)
{
	char dir[] = "/tmp/ingero-config-XXXXXX", path[64], back[4096];
	struct errinfo e = {0};
	struct config *c = NULL;

	assert_non_null(mkdtemp(dir));
	assert_non_null(getcwd(back, sizeof(back)));
	assert_int_equal(chdir(dir), 0);
	unsetenv("INGERO_CONFIG");
	write_file("ingero.yaml", "agent: {node: here}\n", 0644);
	assert_int_equal(config_file_load(&c, &e), 0);
	assert_string_equal(c->node, "here");
	config_free(c);

	write_file("other.yaml", "agent: {node: other}\n", 0644);
	setenv("INGERO_CONFIG", "other.yaml", 1);
	assert_int_equal(config_file_load(&c, &e), 0);
	assert_string_equal(c->node, "other");
	config_free(c);

	snprintf(path, sizeof(path), "%s/named.yaml", dir);
	config_file_choose(path);
	assert_int_equal(config_file_load(&c, &e), -ENOENT); /* named, so it must be there */
	assert_int_equal(errinfo_exit_code(&e, -ENOENT), EXIT_CONFIG);
	write_file(path, "agent: {node: named}\n", 0644);
	assert_int_equal(config_file_load(&c, &e), 0);
	assert_string_equal(c->node, "named");
	config_free(c);
	config_file_choose(NULL);
	unsetenv("INGERO_CONFIG");

	chmod("ingero.yaml", 0666); /* anybody may have written it */
	assert_int_equal(config_file_load(&c, &e), 0);
	assert_true(!c->node || strcmp(c->node, "here") != 0);
	config_free(c);

	assert_int_equal(chdir(back), 0);
	for (int i = 0; i < 3; i++) {
		static const char *const names[] = {"ingero.yaml", "other.yaml", "named.yaml"};

		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(dir), 0);
}

static void a_file_has_a_ceiling(void **state)
{
	char path[] = "/tmp/ingero-config-XXXXXX";
	struct config *c = NULL;
	struct errinfo e = {0};
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, CONFIG_BYTES_MAX + 1), 0);
	close(fd);
	assert_int_equal(config_file_read(path, NULL, 0, &c, &e), -EFBIG);
	assert_non_null(strstr(e.text, "256 KiB"));
	unlink(path);
	assert_int_equal(config_file_read("/dev/zero", NULL, 0, &c, &e), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_is_read),
		cmocka_unit_test(nothing_is_nothing),
		cmocka_unit_test(faults_are_told_with_their_place),
		cmocka_unit_test(the_order_of_places),
		cmocka_unit_test(a_file_has_a_ceiling),
	};

	setenv("HOME", "/home/me", 1);
	unsetenv("XDG_CONFIG_HOME");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
