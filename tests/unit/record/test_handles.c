/* SPDX-License-Identifier: Apache-2.0 */
/* test_handles.c - names of the variables that hold kernels' handles, and their list in a library
 * (tests/programs/kernel_handles.c). */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "record/symbol/handles.h"
#include "symbol_fixture.h"

static void a_name_is_parsed_or_refused(void **state)
{
	static const struct {
		const char *variable, *kernel;
	} rows[] = {
		{"_ZZ53__device_stub__Z33ncclProgressCounterCaptureGpuTimePmPmE8__handle",
			"_Z33ncclProgressCounterCaptureGpuTimePm"},
		{"_ZZL31__device_stub__Z9mul_floatPfS_iPfS_iE8__handle", "_Z9mul_floatPfS_i"},
		{"_ZZ31__device_stub__Z9mul_floatPfS_iPfS_iE8__handles", NULL},
		{"_ZZ31__other_stub___Z9mul_floatPfS_iPfS_iE8__handle", NULL},
		{"_ZZ14__device_stub_PfS_iE8__handle", NULL},                  /* no name */
		{"_ZZ99__device_stub__Z9mul_floatPfS_iPfS_iE8__handle", NULL}, /* out of it */
		{"_ZZ99999999999999999999999__device_stub__Z1kvvE8__handle", NULL},
		{"_ZZ__device_stub__Z1kvvE8__handle", NULL},
		{"_ZZE8__handle", NULL},
		{"E8__handle", NULL},
		{"", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t len = strlen(rows[i].variable), got = 0;
		char *exact = malloc(len + 1); /* nothing beside it may be read */
		const char *kernel;

		memcpy(exact, rows[i].variable, len + 1);
		kernel = handles_parse(exact, len, &got);
		assert_int_equal(!kernel, !rows[i].kernel);
		if (kernel) {
			assert_int_equal(got, strlen(rows[i].kernel));
			assert_memory_equal(kernel, rows[i].kernel, got);
		}
		free(exact);
	}
}

static void a_library_is_listed(void **state)
{
	size_t size, len, found = 0;
	_cleanup_free_ uint8_t *data = fixture_read(KERNEL_HANDLES, &size);
	_cleanup_(image_closep) struct image *image = NULL;
	_cleanup_free_ uint64_t *vaddrs = NULL;
	int n;

	assert_int_equal(image_open_memory(data, size, &image, NULL), 0);
	n = handles_list(image, &vaddrs);
	assert_int_equal(n, 3);
	for (int i = 0; i < n; i++) {
		const char *kernel = handles_kernel(image, vaddrs[i], &len);

		assert_non_null(kernel);
		found += len == 17 && !memcmp(kernel, "_Z9mul_floatPfS_i", 17);
		assert_true(!i || vaddrs[i] > vaddrs[i - 1]);
	}
	assert_int_equal(found, 1);
	assert_null(handles_kernel(image, vaddrs[0] + 1, &len));
}

static void one_without_has_none(void **state)
{
	size_t size, len;
	_cleanup_free_ uint8_t *data = fixture_read(NAMES_FIXTURE, &size);
	_cleanup_(image_closep) struct image *image = NULL;
	_cleanup_free_ uint64_t *vaddrs = NULL;

	assert_int_equal(image_open_memory(data, size, &image, NULL), 0);
	assert_int_equal(handles_list(image, &vaddrs), 0);
	assert_null(handles_kernel(image, 0, &len));
}

/* What an answer says is looked at before it is used: see test_reply.c. Here the file is damaged. */
static void a_damaged_library_does_no_harm(void **state)
{
	size_t size, len;
	_cleanup_free_ uint8_t *data = fixture_read(KERNEL_HANDLES, &size);

	for (size_t at = 0; at < size; at += 61) {
		struct image *image = NULL;
		uint64_t *vaddrs = NULL;
		uint8_t was = data[at];

		data[at] ^= 0xff;
		if (image_open_memory(data, size, &image, NULL) == 0) {
			assert_true(handles_list(image, &vaddrs) >= 0);
			(void)handles_kernel(image, vaddrs ? vaddrs[0] : 0, &len);
			free(vaddrs);
			image_close(image);
		}
		data[at] = was;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_parsed_or_refused),
		cmocka_unit_test(a_library_is_listed),
		cmocka_unit_test(one_without_has_none),
		cmocka_unit_test(a_damaged_library_does_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
