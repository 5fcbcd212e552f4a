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
		{"ec2", "NVIDIA H100 80GB HBM3", 6.88},
		{"azure", "NVIDIA H100 80GB HBM3", 12.29},
		{"lambda", "NVIDIA H100 PCIe", 3.29},
		{"runpod", "NVIDIA H100 NVL", 3.19},
		{"nebius", "NVIDIA H200", 4.50},
		{"coreweave", "NVIDIA GB200", 10.50},
		{"ec2", "NVIDIA A100-SXM4-40GB", 2.74},
		{"ec2", "NVIDIA A100-SXM4-80GB", 3.43},
		{"ec2", "Tesla T4", 0.53},
		{"oracle", "Tesla V100-SXM2-16GB", 2.95},
		{"azure", "AMD Instinct MI300X", 6.00},
		{"lambda", "NVIDIA GH200 480GB", 2.29},
	};
	_cleanup_(rates_freep) struct rates *r = NULL;
	struct rate found;

	assert_int_equal(rates_builtin(&r), 0);
	assert_string_equal(rates_as_of(r), "2026-11");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_true(rates_find(r, rows[i].provider, rows[i].model, &found));
		assert_float_equal(found.hourly, rows[i].hourly, 0);
		assert_true(found.watts > 0);
		assert_false(found.is_contract || found.is_fallback || found.is_middle);
		assert_string_equal(found.provider, rows[i].provider);
	}
	assert_int_equal(rates_provider_count(r), 9);
	assert_true(rates_model_count(r) >= 20);
}

/* As NVML and ROCm give them, on machines of which the provider is not known: all have a price and a power. */
static void test_names_of_drivers(void **state)
{
	static const char *const models[] = {"NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe",
		"NVIDIA H100 NVL", "NVIDIA H200", "NVIDIA H200 NVL", "NVIDIA B200",
		"NVIDIA B300 SXM6 AC", "NVIDIA GB200", "NVIDIA GH200 480GB",
		"NVIDIA GH200 144G HBM3e", "NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB",
		"NVIDIA A100-PCIE-40GB", "NVIDIA A100 80GB PCIe", "A100-SXM4-80GB", "NVIDIA L40S",
		"NVIDIA L40", "NVIDIA L4", "NVIDIA A10", "NVIDIA A10G", "NVIDIA A40", "Tesla T4",
		"NVIDIA T4", "Tesla V100-SXM2-16GB", "Tesla V100-SXM2-32GB", "Tesla V100-PCIE-32GB",
		"AMD Instinct MI300X", "AMD Instinct MI300X OAM", "NVIDIA GeForce RTX 4090"};
	static const char *const providers[] = {NULL, "", "lambda", "my-own"};
	_cleanup_(rates_freep) struct rates *r = NULL;
	struct rate found;

	assert_int_equal(rates_builtin(&r), 0);
	for (size_t i = 0; i < ARRAY_SIZE(models); i++)
		for (size_t k = 0; k < ARRAY_SIZE(providers); k++) {
			if (!rates_find(r, providers[k], models[i], &found))
				fail_msg("%s of %s has no price", models[i], providers[k]);
			assert_true(found.hourly > 0 && found.watts > 0 && !found.is_fallback);
			assert_true(found.is_middle == !found.provider[0]);
		}
	/* control: what nobody rents out */
	assert_false(rates_find(r, NULL, "Quantum 9000", &found));
	assert_false(rates_find(r, NULL, "NVIDIA", &found));
	assert_false(rates_find(r, "ec2", "", &found));
}

/* The middle of what is listed for that very model. */
static void test_middle(void **state)
{
	_cleanup_(rates_freep) struct rates *r = NULL;
	struct rate found;

	assert_int_equal(rates_builtin(&r), 0);
	assert_true(rates_find(r, NULL, "NVIDIA H200", &found) && found.is_middle);
	assert_float_equal(
		found.hourly, 7.11, 0.001); /* 3.99 4.50 4.59 6.31 7.91 10.00 10.60 10.60 */
	assert_string_equal(found.provider, "");
	assert_true(rates_find(r, "lambda", "NVIDIA H200", &found) && found.is_middle);
	/* not the 80 GB one, though this provider has it */
	assert_true(rates_find(r, "coreweave", "NVIDIA A100-SXM4-40GB", &found) && found.is_middle);
	assert_float_equal(found.hourly, 3.05, 0.001); /* 1.99 2.74 3.05 3.40 3.67 */
}

/* Detection says aws, the table ec2: that must not make it free. */
static void test_names_of_providers(void **state)
{
	_cleanup_(rates_freep) struct rates *r = NULL;
	struct rate found;

	assert_int_equal(rates_builtin(&r), 0);
	assert_true(rates_find(r, "aws", "NVIDIA H100 80GB HBM3", &found));
	assert_string_equal(found.provider, "ec2");
	assert_float_equal(found.hourly, 6.88, 0);
	assert_true(rates_find(r, "AWS", "NVIDIA H100 80GB HBM3", &found));
	assert_string_equal(rates_provider_id("google"), "gcp");
	assert_string_equal(rates_provider_id("LambdaLabs"), "lambda");
	assert_string_equal(rates_provider_id("oci"), "oracle");
	assert_null(rates_provider_id("my-own"));
	assert_null(rates_provider_id(NULL));
}

static void test_names_of_models(void **state)
{
	_cleanup_(rates_freep) struct rates *r = NULL;
	struct rate found;

	assert_int_equal(rates_builtin(&r), 0);
	assert_true(rates_find(r, "gcp", "nvidia h100 80gb hbm3", &found) && !found.is_middle);
	assert_true(rates_find(r, "gcp", "NVIDIA H200 141GB HBM3e", &found));
	assert_string_equal(found.model, "NVIDIA H200");
	/* a form that the provider does not list is priced as the one that it does */
	assert_true(rates_find(r, "ec2", "NVIDIA H100 PCIe", &found) && !found.is_middle);
	assert_float_equal(found.hourly, 6.88, 0);
	assert_float_equal(found.watts, 350, 0);
	/* which one of two: the middle of both */
	assert_true(rates_find(r, "ec2", "NVIDIA A100-SXM4", &found) && found.is_middle);
	assert_float_equal(found.hourly, 3.085, 0.001);
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
	/* without a provider, the middle of one's own contracts rather than of lists */
	assert_true(rates_find(r, NULL, "NVIDIA H100 80GB HBM3", &found) && found.is_middle);
	assert_float_equal(found.hourly, 5.4, 0);
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
		cmocka_unit_test(test_names_of_drivers),
		cmocka_unit_test(test_middle),
		cmocka_unit_test(test_names_of_providers),
		cmocka_unit_test(test_names_of_models),
		cmocka_unit_test(test_contracts_win),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
