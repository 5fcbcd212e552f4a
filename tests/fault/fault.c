/* SPDX-License-Identifier: Apache-2.0 */
/* fault.c - see fault.h. Counts in one variable for all threads; a scenario that starts threads is
 * tortured all the same, only not reproducibly. */
#include "fault.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SAMPLED         64     /* from here on not every allocation fails, but one of n / 64 */
#define ALLOCATIONS_MAX 100000 /* of a scenario: beyond it does too much for this kind of test */

static _Atomic uint64_t left; /* 0: none fails any more */
static _Atomic uint64_t seen;
static _Atomic bool armed, has_failed;

void fault_arm(uint64_t nth)
{
	left = nth;
	seen = 0;
	has_failed = false;
	armed = true;
}

bool fault_disarm(void)
{
	armed = false;
	return has_failed;
}

void fault_suspend(void)
{
	armed = false;
}

void fault_resume(void)
{
	armed = true;
}

uint64_t fault_allocations(void)
{
	return seen;
}

static bool fails(void)
{
	if (!armed)
		return false;
	seen++;
	if (!left || --left)
		return false;
	has_failed = true;
	errno = ENOMEM;
	return true;
}

/* What the linker calls the real ones. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t count, size_t size);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t len);
int __real_vasprintf(char **ret, const char *fmt, va_list ap);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t count, size_t size);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t len);
int __wrap_vasprintf(char **ret, const char *fmt, va_list ap);
int __wrap_asprintf(char **ret, const char *fmt, ...);

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

void *__wrap_reallocarray(void *p, size_t count, size_t size)
{
	return fails() ? NULL : __real_reallocarray(p, count, size);
}

char *__wrap_strdup(const char *s)
{
	return fails() ? NULL : __real_strdup(s);
}

char *__wrap_strndup(const char *s, size_t len)
{
	return fails() ? NULL : __real_strndup(s, len);
}

int __wrap_vasprintf(char **ret, const char *fmt, va_list ap)
{
	return fails() ? -1 : __real_vasprintf(ret, fmt, ap);
}

int __wrap_asprintf(char **ret, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = __wrap_vasprintf(ret, fmt, ap);
	va_end(ap);
	return r;
}

static int open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

uint64_t fault_torture(fault_scenario *run, void *arg)
{
	const bool is_full = getenv("FAULT") && strcmp(getenv("FAULT"), "all") == 0;
	int before = open_descriptors();

	for (uint64_t n = 1; n < ALLOCATIONS_MAX; n += 1 + (is_full ? 0 : n / SAMPLED)) {
		bool failed;
		int r;

		fault_arm(n);
		r = run(arg);
		failed = fault_disarm();
		if (open_descriptors() != before)
			fail_msg("allocation %llu: a descriptor is left open",
				(unsigned long long)n);
		if (!failed) {
			assert_int_equal(r, 0);
			print_message("# %llu allocations\n", (unsigned long long)seen);
			return seen;
		}
		if (r != 0 && r != -ENOMEM)
			fail_msg("allocation %llu: %s (%d) instead of ENOMEM",
				(unsigned long long)n, strerror(-r), r);
	}
	fail_msg("more than %d allocations", ALLOCATIONS_MAX);
	return 0;
}
