/* SPDX-License-Identifier: Apache-2.0 */
/* cut_text.h - text written piece by piece into a buffer of fixed size, which ends in "…" if it did
 * not fit.
 *
 * The content is always a string. Once something did not fit, is_full is set and nothing more is
 * taken, so that a writer may go on without harm and stop when it sees that. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cut_text {
	char *data;
	size_t size, len; /* len < size */
	bool is_full;
};

/* cut_text_on - empty text in @out, @size at least 1. */
struct cut_text cut_text_on(char *out, size_t size);
void cut_text_clear(struct cut_text *t);
void cut_text_put(struct cut_text *t, const char *s, size_t len);
void cut_text_puts(struct cut_text *t, const char *s);
void cut_text_putc(struct cut_text *t, char c);
void cut_text_put_number(struct cut_text *t, uint64_t n);
void cut_text_put_code_point(struct cut_text *t, uint32_t cp); /* as UTF-8; at most 0x10ffff */
