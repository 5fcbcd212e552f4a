/* SPDX-License-Identifier: Apache-2.0 */
/* symbol_fixture.h - files under test: open, read whole, damaged in a way that repeats. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macros.h"

static inline int fixture_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* The file's bytes in memory of just that size, so that a read behind its end is seen. */
static inline uint8_t *fixture_read(const char *path, size_t *ret_size)
{
	_cleanup_fd_ int fd = fixture_open(path);
	struct stat st;
	uint8_t *data;

	assert_int_equal(fstat(fd, &st), 0);
	data = malloc((size_t)st.st_size);
	assert_non_null(data);
	assert_int_equal(read(fd, data, (size_t)st.st_size), st.st_size);
	*ret_size = (size_t)st.st_size;
	return data;
}

static inline uint64_t fixture_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

/* Changes up to 8 bytes in [from, from + size). */
static inline void fixture_damage(uint8_t *data, size_t from, size_t size, uint64_t *seed)
{
	static const uint8_t hard[] = {0, 1, 0x7f, 0x80, 0xfe, 0xff};

	for (uint64_t n = fixture_random(seed) % 8 + 1; n > 0; n--) {
		uint64_t value = fixture_random(seed);

		data[from + fixture_random(seed) % size] =
			value & 1 ? hard[(value >> 1) % sizeof(hard)] : (uint8_t)(value >> 8);
	}
}
