/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "model/step_account.h"
#include "web/web.h"

#define PAGE_BYTES_MAX (250u << 10)

static struct web_site *site;

static int show_dashboard(void **state)
{
	site = &web_dashboard;
	return 0;
}

static int show_cluster(void **state)
{
	site = &web_cluster;
	return 0;
}

static bool holds(const struct web_file *f, const char *text)
{
	return memmem(f->data, f->len, text, strlen(text));
}

static void files_are_found_and_whole(void **state)
{
	const struct web_file *f = NULL;
	size_t sum = 0;
	int count = 0;

	while ((f = web_next(site, f))) {
		const struct web_file *other = f;

		assert_ptr_equal(web_find(site, f->path), f);
		assert_true(f->len > 0);
		assert_int_equal(((const char *)f->data)[f->len - 1], '\n');
		assert_true(f->etag[0] == '"' && f->etag[strlen(f->etag) - 1] == '"');
		while ((other = web_next(site, other)))
			assert_string_not_equal(other->etag, f->etag);
		sum += f->len;
		count++;
	}
	print_message("# %zu bytes in %d files\n", sum, count);
	assert_true(count >= 4);
	assert_true(sum <= PAGE_BYTES_MAX);
	f = web_find(site, "/");
	assert_non_null(f);
	assert_true(f->len > 20 && !memcmp(f->data, "<!doctype html>", 15));
	assert_string_equal(f->type, "text/html; charset=utf-8");
	assert_ptr_equal(web_find(site, "/index.html"), f);
	assert_null(web_find(site, "/nothere"));
	assert_null(web_find(site, ""));
	assert_null(web_find(site, "/js/"));
}

/* What the page's policy forbids is not in it: a browser would leave it out silently. */
static void nothing_against_the_policy(void **state)
{
	static const char *const bad[] = {" style=\"", " onclick", " onload", "<style", "<script>",
		"javascript:", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write",
		"eval(", "new Function", "@import", "localhost"};
	static const struct web_file planted = {.data = "x.innerHTML = y;", .len = 16};
	const struct web_file *f = NULL;

	assert_true(holds(&planted, "innerHTML"));
	while ((f = web_next(site, f)))
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
			if (holds(f, bad[i]))
				fail_msg("%s has %s", f->path, bad[i]);
}

/* check_references - every path between @before and a quotation mark in @f, put after @base, is a
 * file, or a place in the same document. Returns how many there are. */
static int check_references(const struct web_file *f, const char *before, const char *base)
{
	const char *p = f->data, *end = p + f->len;
	int count = 0;

	while ((p = memmem(p, (size_t)(end - p), before, strlen(before)))) {
		const char *stop;
		char path[128];

		p += strlen(before);
		stop = memchr(p, '"', (size_t)(end - p));
		assert_non_null(stop);
		snprintf(path, sizeof(path), "%s%.*s", base, (int)(stop - p), p);
		if (path[0] != '#' && !web_find(site, path))
			fail_msg("%s refers to %s, which is not there", f->path, path);
		count++;
	}
	return count;
}

static void references_lead_somewhere(void **state)
{
	const struct web_file *f = web_find(site, "/");
	int imports = 0;

	assert_true(check_references(f, "href=\"", "") >= 2);
	assert_true(check_references(f, "src=\"", "") >= 1);
	for (f = NULL; (f = web_next(site, f));)
		imports += check_references(f, " from \"./", "/js/");
	assert_true(imports >= 5);
}

/* The page knows the lines of a step by their names, in the order of the model's list, and has a colour
 * for each. */
static void every_line_of_a_step_is_drawn(void **state)
{
	const struct web_file *page = web_find(site, "/js/steps.js"),
			      *style = web_find(site, "/style.css");
	const char *at, *found;
	char text[64];

	assert_non_null(page);
	at = memmem(page->data, page->len, "const ORDER = [", strlen("const ORDER = ["));
	assert_non_null(at);
	for (int i = 0; i < ACCOUNT_LINES; i++) {
		size_t rest = page->len - (size_t)(at - (const char *)page->data);

		snprintf(text, sizeof(text), "\"%s\"", account_line_id((enum account_line)i));
		found = memmem(at, rest, text, strlen(text));
		assert_true(found && found - at < 32); /* the next of the list */
		at = found + strlen(text);
		snprintf(text, sizeof(text), ".part-%s {", account_line_id((enum account_line)i));
		assert_true(holds(style, text));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(files_are_found_and_whole, show_dashboard),
		cmocka_unit_test_setup(files_are_found_and_whole, show_cluster),
		cmocka_unit_test_setup(nothing_against_the_policy, show_dashboard),
		cmocka_unit_test_setup(nothing_against_the_policy, show_cluster),
		cmocka_unit_test_setup(references_lead_somewhere, show_dashboard),
		cmocka_unit_test_setup(references_lead_somewhere, show_cluster),
		cmocka_unit_test_setup(every_line_of_a_step_is_drawn, show_dashboard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
