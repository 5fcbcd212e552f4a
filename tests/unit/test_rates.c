/* SPDX-License-Identifier: Apache-2.0 */
/* test_rates.c - the table of prices: what the built-in one holds, who is found, what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "rates/rates.h"

static void test_builtin(void **state)
{
	static const struct {
		const char *provider, *model;
		double hourly;
	} rows[] = {
		{"ec2", "NVIDIA H100 80GB HBM3", 12.29},
		{"gcp", "NVIDIA H100 80GB HBM3", 11.06},
		{"azure", "NVIDIA H100 80GB HBM3", 12.29},
		{"lambda", "NVIDIA H100 80GB HBM3", 2.49},
		{"coreweave", "NVIDIA H100 80GB HBM3", 4.25},
		{"ec2", "NVIDIA A100-SXM4-80GB", 4.10},
		{"gcp", "NVIDIA A100-SXM4-80GB", 4.12},
		{"azure", "NVIDIA A100-SXM4-80GB", 3.40},
		{"lambda", "NVIDIA A100-SXM4-80GB", 1.29},
		{"coreweave", "NVIDIA A100-SXM4-80GB", 2.39},
		{"ec2", "NVIDIA A100-SXM4-40GB", 3.27},
		{"ec2", "NVIDIA L4 24GB", 0.85},
		{"gcp", "NVIDIA L4 24GB", 0.85},
		{"lambda", "NVIDIA GH200 480GB", 2.29},
		{"lambda", "NVIDIA L40S", 1.29},
		{"coreweave", "NVIDIA L40S", 1.50},
	};
	_cleanup_(rates_freep) struct rates *r = NULL;
	struct rate found;

	assert_int_equal(rates_builtin(&r), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_true(rates_find(r, rows[i].provider, rows[i].model, &found));
		assert_float_equal(found.hourly, rows[i].hourly, 0);
		assert_true(found.watts > 0 && !found.is_contract && !found.is_fallback);
	}
	assert_true(rates_find(r, "ec2", "NVIDIA H200", &found) && found.watts == 700);
	assert_true(rates_find(r, "ec2", "NVIDIA B200", &found) && found.watts == 1000);
	assert_true(rates_find(r, "azure", "AMD Instinct MI300X", &found) && found.watts == 750);
	assert_int_equal(rates_provider_count(r), 5);
	assert_int_equal(rates_model_count(r), 9);
}

/* Detection says aws, the table ec2: that must not make it free. */
static void test_names_of_providers(void **state)
{
	_cleanup_(rates_freep) struct rates *r = NULL;
	struct rate found;

	assert_int_equal(rates_builtin(&r), 0);
	assert_true(rates_find(r, "aws", "NVIDIA H100 80GB HBM3", &found));
	assert_string_equal(found.provider, "ec2");
	assert_float_equal(found.hourly, 12.29, 0);
	assert_true(rates_find(r, "AWS", "NVIDIA H100 80GB HBM3", &found));
	assert_string_equal(rates_provider_id("google"), "gcp");
	assert_string_equal(rates_provider_id("LambdaLabs"), "lambda");
	assert_null(rates_provider_id("my-own"));
	assert_null(rates_provider_id(NULL));
	assert_false(rates_find(r, "", "NVIDIA H100 80GB HBM3", &found));
	assert_false(rates_find(r, NULL, "NVIDIA H100 80GB HBM3", &found));
	assert_false(rates_find(r, "my-own", "NVIDIA H100 80GB HBM3", &found));
}

static void test_names_of_models(void **state)
{
	_cleanup_(rates_freep) struct rates *r = NULL;
	struct rate found;

	assert_int_equal(rates_builtin(&r), 0);
	assert_true(rates_find(r, "gcp", "NVIDIA L4", &found)); /* as its driver says it */
	assert_string_equal(found.model, "NVIDIA L4 24GB");
	assert_true(found.watts == 72);
	assert_true(rates_find(r, "gcp", "nvidia h100 80gb hbm3", &found));
	assert_true(rates_find(r, "gcp", "NVIDIA H200 141GB HBM3e", &found));
	assert_string_equal(found.model, "NVIDIA H200");
	assert_false(rates_find(r, "gcp", "NVIDIA A100-SXM4-40GB", &found)); /* not the 80 GB one */
	assert_false(rates_find(r, "ec2", "NVIDIA A100-SXM4", &found));      /* which one? */
	assert_false(rates_find(r, "ec2", "NVIDIA H100 PCIe", &found));
	assert_false(rates_find(r, "ec2", "NVIDIA L40", &found));
	assert_false(rates_find(r, "ec2", "Quantum 9000", &found));
	assert_false(rates_find(r, "ec2", "", &found));
}

static int parse(const char *text, struct rates **ret, struct errinfo *e)
{
	*e = (struct errinfo){0};
	return rates_parse(text, strlen(text), ret, e);
}

static void test_contracts_win(void **state)
{
	_cleanup_(rates_freep) struct rates *r = NULL;
	struct errinfo e;
	struct rate found;

	assert_int_equal(parse("currency_name: EUR\n"
			       "currency_symbol: €\n"
			       "fallback_rate: 1.5\n"
			       "providers:\n"
			       "  aws:\n"
			       "    NVIDIA H100 80GB HBM3: 12.29\n"
			       "    NVIDIA L40S: 1.8\n"
			       "  cellar:\n"
			       "    NVIDIA H100 80GB HBM3: 0.9\n"
			       "contracts:\n"
			       "  ec2:\n"
			       "    NVIDIA H100: 5.4\n",
				 &r, &e),
		0);
	assert_true(rates_find(r, "aws", "NVIDIA H100 80GB HBM3", &found));
	assert_true(found.is_contract);
	assert_float_equal(found.hourly, 5.4, 0);
	assert_string_equal(found.currency, "EUR");
	assert_string_equal(found.symbol, "€");
	assert_true(rates_find(r, "ec2", "NVIDIA L40S", &found) && !found.is_contract);
	assert_true(rates_find(r, "Cellar", "NVIDIA H100 80GB HBM3", &found));
	assert_true(rates_find(r, "", "Quantum 9000", &found) && found.is_fallback);
	assert_float_equal(found.hourly, 1.5, 0);
	assert_true(rates_at(r, 0, &found));
	assert_string_equal(found.provider, "cellar");
	assert_true(rates_at(r, 3, &found));
	assert_false(rates_at(r, 4, &found));
	assert_int_equal(rates_provider_count(r), 2);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"", "expected a key"},
		{"- a\n", "line 1: expected a key"},
		{"providers:\n", "there is no price"},
		{"providers:\n  ec2:\n    X: -1\n", "line 3: a price must be a number"},
		{"providers:\n  ec2:\n    X: .nan\n", "line 3: a price must be a number"},
		{"providers:\n  ec2:\n    X: nan\n", "line 3: a price must be a number"},
		{"providers:\n  ec2:\n    X: inf\n", "line 3: a price must be a number"},
		{"providers:\n  ec2:\n    X: 1e9\n", "line 3: a price must be a number"},
		{"providers:\n  ec2:\n    X: 1.2.3\n", "line 3: a price must be a number"},
		{"providers:\n  ec2:\n    X: .\n", "line 3: a price must be a number"},
		{"providers:\n  ec2:\n    X:\n", "line 3: a price must be a number"},
		{"providers:\n  ec2:\n    X: [1]\n", "line 3: a price must be a number"},
		{"providers:\n  ec2:\n    X: 1000.01\n",
			"line 3: a price is 1000.01, more than 1000"},
		{"providers:\n  ec2:\n    X: 0\n", "line 3: a price is 0"},
		{"providers:\n  ec2:\n    X: 1\n    X: 2\n", "line 4: duplicate key 'X'"},
		{"providers:\n  ec2:\n    X: 1\n  aws:\n    X: 2\n", "line 5: ec2: X stands twice"},
		{"providers:\n  ec2: 5\n", "line 2: ec2 must contain names"},
		{"providers: 5\n", "line 1: providers must contain names"},
		{"providers:\n  ec2:\n    \"a\\x1bb\": 1\n",
			"line 3: a model's name holds characters"},
		{"providers:\n  ec2:\n    [a]: 1\n", "line 3: a key must be a text"},
		{"currency_name: DOUBLOONS\n", "line 1: currency_name must have 1 to 7 bytes"},
		{"colour: red\n", "line 1: unknown key 'colour'"},
		{"watts:\n  X: 1\nwatts:\n  X: 1\n", "line 3: duplicate key 'watts'"},
		{"watts:\n  X: 20000\n", "line 2: watts is 20000"},
		{"fallback_rate: -1\n", "line 1: fallback_rate must be"},
		{"providers:\n\tec2:\n", "line 2: not valid YAML"},
		{"providers: {\n", "not valid YAML"},
		{"providers: *a\n", "line 1: anchors, aliases"},
		{"providers:\n  ec2:\n    X: 1\n---\na: b\n", "only one YAML document"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rates *r = NULL;
		struct errinfo e;

		assert_int_equal(parse(cases[i].text, &r, &e), -EINVAL);
		assert_null(r);
		if (!strstr(e.text, cases[i].why))
			fail_msg("%s: %s", cases[i].why, e.text);
		assert_int_equal(e.exit_code, EXIT_BAD_DATA);
	}
}

static void test_size(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4u << 20);
	struct rates *r = NULL;
	struct errinfo e = {0};

	buf_puts(&b, "providers:\n  ec2:\n");
	for (unsigned i = 0; i < 4096; i++)
		buf_printf(&b, "    M%u: 1\n", i);
	assert_int_equal(rates_parse(b.data, b.len, &r, &e), 0);
	rates_free(TAKE(r));
	buf_puts(&b, "    one-more: 1\n");
	assert_int_equal(rates_parse(b.data, b.len, &r, &e), -EINVAL);
	assert_non_null(strstr(e.text, "more than 4096 rows"));
	while (b.len <= RATES_BYTES_MAX)
		buf_puts(&b, "# and so on and so on and so on and so on and so on\n");
	assert_int_equal(rates_parse(b.data, b.len, &r, &e), -EINVAL);
	assert_non_null(strstr(e.text, "it is over 1 MiB"));
	buf_clear(&b);
	while (b.len < RATES_BYTES_MAX) /* as deep as it can be */
		buf_puts(&b, "[[[[[[[[[[[[[[[[");
	assert_int_equal(rates_parse(b.data, b.len, &r, &e), -EINVAL);
	assert_null(r);
}

static void test_file(void **state)
{
	char path[] = "/tmp/test-rates-XXXXXX";
	struct rates *r = NULL;
	struct errinfo e = {0};
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x: 1\n", 5), 5);
	close(fd);
	assert_int_equal(rates_read(path, &r, &e), -EINVAL);
	assert_non_null(strstr(e.text, path));
	assert_non_null(strstr(e.text, "line 1: unknown key 'x'"));
	unlink(path);
	assert_int_equal(rates_read(path, &r, &e), -ENOENT);
	assert_non_null(strstr(e.text, path));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_builtin),
		cmocka_unit_test(test_names_of_providers),
		cmocka_unit_test(test_names_of_models),
		cmocka_unit_test(test_contracts_win),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
