/* SPDX-License-Identifier: Apache-2.0 */
/* test_notify_config.c - who is told: what is understood, what is refused with its line, and that no
 * secret is in a sentence. */
#include "store_fixture.h"

#include "cluster/notify/notify.h"

#define SECRET "s3cr3t-words"

static void secret_write(struct scratch *s, const char *name, const char *text, mode_t mode)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", s->folder, name);
	scratch_write(path, text, strlen(text));
	assert_int_equal(chmod(path, mode), 0);
}

static int read_text(
	struct scratch *s, const char *text, struct notify_config **ret, struct errinfo *e)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/notify.yaml", s->folder);
	return notify_config_read(path, text, strlen(text), ret, e);
}

static void test_everything(void **state)
{
	struct notify_config *c = NULL;
	const struct forward_target *t;
	const struct alert_receiver *a;
	struct errinfo e = {0};
	size_t count;

	secret_write(*state, "url", "https://hooks.slack.com/services/T/B/" SECRET "\n", 0600);
	secret_write(*state, "headers", "authorization=Bearer%20" SECRET "\n", 0600);
	setenv("TEST_PD_KEY", SECRET, 1);
	if (read_text(*state,
		    "alerts:\n"
		    "  - type: slack\n"
		    "    url_file: url\n"
		    "    channel: \"#gpu\"\n"
		    "  - type: pagerduty\n"
		    "    routing_key_env: TEST_PD_KEY\n"
		    "    severity: critical\n"
		    "    per_minute: 5\n"
		    "  - type: alertmanager\n"
		    "    url: http://127.0.0.1:9093/am/\n"
		    "    bearer_env: TEST_PD_KEY\n"
		    "    repeat: 30s\n"
		    "  - type: webhook\n"
		    "    url: http://far:80/hook?x=1\n"
		    "    insecure: true\n"
		    "    secret_env: TEST_PD_KEY\n"
		    "forward:\n"
		    "  - endpoint: grpcs://collector:4317\n"
		    "    headers_file: headers\n"
		    "    spool: spool\n"
		    "    spool_size: 64m\n"
		    "  - endpoint: https://other/otlp\n",
		    &c, &e) < 0)
		fail_msg("%s", e.text);
	a = notify_config_alerts(c, &count);
	assert_int_equal(count, 4);
	assert_true(a[0].type == ALERT_SLACK && a[0].endpoint.tls && a[0].endpoint.port == 443);
	assert_string_equal(a[0].endpoint.host, "hooks.slack.com");
	assert_string_equal(a[0].path, "/services/T/B/" SECRET);
	assert_string_equal(a[0].look.channel, "#gpu");
	assert_string_equal(a[1].endpoint.host, "events.pagerduty.com");
	assert_string_equal(a[1].path, "/v2/enqueue");
	assert_string_equal(a[1].look.routing_key, SECRET);
	assert_string_equal(a[1].look.severity, "critical");
	assert_int_equal(a[1].per_minute, 5);
	assert_string_equal(a[2].path, "/am/api/v2/alerts");
	assert_string_equal(a[2].bearer, SECRET);
	assert_int_equal(a[2].repeat_ns, 30 * NS_PER_S);
	assert_string_equal(a[3].path, "/hook?x=1");
	assert_string_equal(a[3].sign_secret, SECRET);
	t = notify_config_forward(c, &count);
	assert_int_equal(count, 2);
	assert_int_equal(t[0].endpoint->protocol, OTLP_GRPC);
	assert_string_equal(t[0].fields->field[0].value, "Bearer " SECRET);
	assert_int_equal(t[0].spool_bytes, 64 << 20);
	assert_true(t[0].spool[0] == '/' && strstr(t[0].spool, "/spool"));
	assert_string_equal(t[1].endpoint->path[OTLP_LOGS], "/otlp/v1/logs");
	assert_null(t[1].spool);
	notify_config_free(c);
}

static void refuses(struct scratch *s, const char *text, const char *words)
{
	struct notify_config *c = NULL;
	struct errinfo e = {0};

	assert_int_equal(read_text(s, text, &c, &e), -EINVAL);
	assert_int_equal(e.exit_code, EXIT_CONFIG);
	assert_null(c);
	if (!strstr(e.text, words) || !strstr(e.text, "notify.yaml: line "))
		fail_msg("'%s' lacks '%s'", e.text, words);
	assert_null(strstr(e.text, SECRET));
}

static void test_secrets_stay_out(void **state)
{
	struct notify_config *c = NULL;

	refuses(*state, "alerts:\n  - type: slack\n    url: https://h/" SECRET "\n",
		"line 3: url is a secret");
	refuses(*state, "alerts:\n  - type: pagerduty\n    routing_key: " SECRET "\n",
		"line 3: routing_key is a secret");
	refuses(*state, "alerts:\n  - type: webhook\n    url: https://h\n    secret: " SECRET "\n",
		"secret_file");
	refuses(*state, "forward:\n  - endpoint: https://h\n    headers: a=" SECRET "\n",
		"headers_env");
	secret_write(*state, "loose", SECRET, 0644);
	refuses(*state, "alerts:\n  - type: pagerduty\n    routing_key_file: loose\n",
		"line 3: other users can read");
	secret_write(*state, "bad-url", "hooks/" SECRET, 0600);
	refuses(*state, "alerts:\n  - type: slack\n    url_file: bad-url\n", "https://");
	secret_write(*state, "two", SECRET "\n" SECRET, 0600);
	refuses(*state, "alerts:\n  - type: pagerduty\n    routing_key_file: two\n", "one line");
	secret_write(*state, "tight", SECRET "\n", 0600); /* control */
	assert_int_equal(
		read_text(*state, "alerts:\n  - type: pagerduty\n    routing_key_file: tight\n", &c,
			NULL),
		0);
	notify_config_free(c);
}

static void test_refusals(void **state)
{
	unsetenv("TEST_NOT_SET");
	refuses(*state, "alert: []\n", "line 1: unknown key 'alert'");
	refuses(*state, "alerts: 7\n", "line 1: alerts must be a list");
	refuses(*state, "alerts:\n  - 7\n", "line 2: an entry of alerts must have keys");
	refuses(*state, "alerts:\n  - type: email\n", "line 2: type must be");
	refuses(*state, "alerts:\n  - url: https://x\n", "type must be");
	refuses(*state, "alerts:\n  - type: slack\n", "url_file or url_env");
	refuses(*state, "alerts:\n  - type: pagerduty\n", "routing_key_file");
	refuses(*state, "alerts:\n  - type: webhook\n    url: https://h\n    chanel: x\n",
		"line 4: unknown key 'chanel'");
	refuses(*state, "alerts:\n  - type: webhook\n    url: https://h\n    repeat: 1m\n",
		"line 4: unknown key 'repeat'");
	refuses(*state, "alerts:\n  - type: webhook\n    url: http://far\n", "not encrypted");
	refuses(*state, "alerts:\n  - type: webhook\n    url: ftp://far\n", "https://");
	refuses(*state, "alerts:\n  - type: webhook\n    url: https://h:x/\n", "host and port");
	refuses(*state,
		"alerts:\n  - type: webhook\n    url: https://h\n    secret_env: TEST_NOT_SET\n",
		"TEST_NOT_SET is not set");
	refuses(*state, "alerts:\n  - type: alertmanager\n    url: https://h\n    severity: bad\n",
		"line 4: severity");
	refuses(*state, "forward:\n  - spool: x\n", "needs endpoint");
	refuses(*state, "forward:\n  - endpoint: http://far:4318\n", "not encrypted");
	refuses(*state, "forward:\n  - endpoint: https://h\n    spool_size: 10\n",
		"line 3: spool_size");
	refuses(*state, "forward:\n  - endpoint: https://h\n    client_cert: x\n", "together");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_everything),
		TEST(test_secrets_stay_out),
		TEST(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
