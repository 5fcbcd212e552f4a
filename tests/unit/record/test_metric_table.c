/* SPDX-License-Identifier: Apache-2.0 */
/* test_metric_table.c - the tables of metrics keep the rules of both worlds, and docs/metrics.md
 * says what they say. With INGERO_PRINT_METRICS set it prints the document's rows. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "record/trace/metrics/metric_table.h"
#include "notify/telemetry/telemetry.h"
#include "base/buf.h"

#define ALL (METRIC_COUNT + EXPORT_METRIC_COUNT)

static const struct metric_desc *row_at(size_t i)
{
	return i < METRIC_COUNT ? &metric_table[i] : &export_metric_table[i - METRIC_COUNT];
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

static void test_every_row_is_filled(void **state)
{
	for (size_t i = 0; i < ALL; i++) {
		const struct metric_desc *d = row_at(i);

		if (!d->help || !d->unit || (!d->otlp && !d->prometheus))
			fail_msg("row %zu has holes", i);
		if (d->kind == METRIC_HISTOGRAM && !(d->unit_ns > 0))
			fail_msg("%s: no unit of time", d->prometheus);
		if (strchr(d->help, '|') || ends_with(d->help, "."))
			fail_msg("%s: help", d->prometheus ? d->prometheus : d->otlp);
		for (unsigned k = 0; k < metric_key_count(d); k++)
			if (!d->keys[k].label)
				fail_msg("%s: key %u has no label", d->prometheus, k);
	}
}

static void test_names_are_names(void **state)
{
	for (size_t i = 0; i < ALL; i++) {
		const struct metric_desc *d = row_at(i);

		for (const char *c = d->prometheus; c && *c; c++)
			if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) && *c != '_')
				fail_msg("%s", d->prometheus);
		for (const char *c = d->otlp; c && *c; c++)
			if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) &&
				*c != '_' && *c != '.')
				fail_msg("%s", d->otlp);
	}
}

/* Nor may a histogram's samples meet another metric. */
static void test_no_name_is_used_twice(void **state)
{
	for (size_t i = 0; i < ALL; i++)
		for (size_t k = 0; k < ALL; k++) {
			const struct metric_desc *a = row_at(i), *b = row_at(k);
			char sample[200];

			if (i != k && a->prometheus && b->prometheus)
				assert_string_not_equal(a->prometheus, b->prometheus);
			if (i != k && a->otlp && b->otlp)
				assert_string_not_equal(a->otlp, b->otlp);
			if (a->kind != METRIC_HISTOGRAM || !a->prometheus || !b->prometheus)
				continue;
			snprintf(sample, sizeof(sample), "%s_count", a->prometheus);
			assert_string_not_equal(sample, b->prometheus);
		}
}

/* Ours keep the conventions; a published name that does not has one of ours beside it. */
static void test_our_names_keep_the_conventions(void **state)
{
	for (size_t i = 0; i < ALL; i++) {
		const struct metric_desc *d = row_at(i);
		const char *n = d->prometheus;

		if (!n || strncmp(n, "ingero_", 7) || !strcmp(n, "ingero_anomaly_count"))
			continue;
		if ((d->kind == METRIC_COUNTER) != ends_with(n, "_total"))
			fail_msg("%s: _total is for counters", n);
		if (!strcmp(d->unit, "s") && !ends_with(n, "_seconds") &&
			!ends_with(n, "_seconds_total"))
			fail_msg("%s: its unit is the second", n);
		if (!strcmp(d->unit, "By") && !strstr(n, "_bytes"))
			fail_msg("%s: its unit is the byte", n);
		if (!strcmp(d->unit, "ms") || !strcmp(d->unit, "us") || !strcmp(d->unit, "ns"))
			fail_msg("%s: not a base unit", n);
	}
}

/* ---- the document ---- */

static void put_name(struct buf *b, const char *name)
{
	if (name)
		buf_printf(b, " `%s` |", name);
	else
		buf_puts(b, " |");
}

static void document_row(struct buf *b, const struct metric_desc *d)
{
	static const char *const kinds[] = {"gauge", "counter", "histogram"};

	buf_puts(b, "|");
	put_name(b, d->prometheus);
	put_name(b, d->otlp);
	buf_printf(b, " %s | %s |", kinds[d->kind], d->unit);
	for (unsigned i = 0; i < metric_key_count(d); i++) {
		const struct metric_key *k = &d->keys[i];

		buf_printf(b, "%s `%s`", i ? "," : "", d->prometheus ? k->label : k->otlp);
		if (d->prometheus && d->otlp && strcmp(k->label, k->otlp) != 0)
			buf_printf(b, " (`%s`)", k->otlp);
	}
	buf_printf(b, " | %s |\n", d->help);
}

static char *document(void)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	FILE *f = fopen(METRICS_DOC, "r");
	char piece[4096];
	size_t n;

	assert_non_null(f);
	while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
		buf_append(&b, piece, n);
	fclose(f);
	return buf_take(&b);
}

static void test_the_document_says_so(void **state)
{
	_cleanup_free_ char *text = document();
	unsigned rows = 0, missing = 0;

	for (size_t i = 0; i < ALL; i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(4096);

		document_row(&b, row_at(i));
		if (getenv("INGERO_PRINT_METRICS"))
			printf("%s", buf_str(&b));
		if (!strstr(text, buf_str(&b))) {
			print_message("docs/metrics.md lacks: %s", buf_str(&b));
			missing++;
		}
	}
	assert_int_equal(missing, 0);
	/* Rows of metrics have five further columns; those of what is not told have one. */
	for (const char *line = text; line; line = strchr(line, '\n')) {
		unsigned bars = 0;

		line += *line == '\n';
		for (const char *c = line; *c && *c != '\n'; c++)
			bars += *c == '|';
		rows += bars == 7 && strstr(line, " | ") && line[2] != '-' &&
			strncmp(line, "| Prometheus", 12) != 0 && line[1] != '-';
	}
	assert_int_equal(rows, ALL); /* nothing that is no more */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_row_is_filled),
		cmocka_unit_test(test_names_are_names),
		cmocka_unit_test(test_no_name_is_used_twice),
		cmocka_unit_test(test_our_names_keep_the_conventions),
		cmocka_unit_test(test_the_document_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
