/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - the words of reports: escaping foreign names, and durations, counts and sizes as people
 * write them.
 *
 * Names that come from traced processes are data: whatever is printed to a terminal or a log goes
 * through text_escape_terminal() first. */
#pragma once

#include "base/buf.h"

#define TEXT_MAX 32 /* room for any formatted duration, count or size */

#define TEXT_PLURAL_MAX 96 /* room for a count and what is counted; longer ones are cut */

/* text_utf8_next - decodes one code point of @s (@len bytes, at least 1).
 * Returns its length in bytes, or -EILSEQ (overlong, surrogate, truncated, stray byte). */
int text_utf8_next(const char *s, size_t len, uint32_t *ret_cp);

/* text_is_deceptive - @cp is a C1 control, or printed but not seen, or changes the order of what is seen. */
bool text_is_deceptive(uint32_t cp);

/* text_put_utf8 - appends @s, with U+FFFD for bytes that are not UTF-8. */
void text_put_utf8(struct buf *b, const char *s, size_t len);

/* text_escape_terminal - appends @s so that it cannot act on a terminal or mislead a reader:
 * control bytes become \n, \t, \xNN; C1 controls, bidirectional and invisible code points \u{NNNN};
 * bytes that are not UTF-8 \xNN. Everything printable stays, the backslash too. */
void text_escape_terminal(struct buf *b, const char *s);
void text_escape_terminal_len(struct buf *b, const char *s, size_t len);

/* TEXT_SHOWN - the same as an expression, for the arguments of a call; it lives until its block ends. */
#define TEXT_SHOWN_MAX 8192
#define TEXT_SHOWN(s)  text_shown((char[TEXT_SHOWN_MAX]){0}, s)
const char *text_shown(char out[TEXT_SHOWN_MAX], const char *s);

/* text_cut - how many of the @len bytes of @s, at most @max, are whole characters. */
size_t text_cut(const char *s, size_t len, size_t max);

/* text_copy - as many of them as fit into @out, and a NUL. */
void text_copy(char *out, size_t size, const char *s, size_t len);

/* text_columns - how many columns @s takes: continuation bytes of UTF-8 take none. */
int text_columns(const char *s);

/* text_clip - how many bytes of @s its first @columns columns take. */
int text_clip(const char *s, int columns);

/* text_wrap - appends @text, escaped for a terminal, broken at @width columns (SIZE_MAX: never) but not between a
 * number and its unit, with @indent columns before every line but the first, and a line feed. */
void text_wrap(struct buf *b, size_t indent, size_t width, const char *text);

/* text_format_duration - "0", "850ns", "5.3µs", "53ms", "9.8s", "59s", "1m30s", "2h0m5s". */
const char *text_format_duration(char out[TEXT_MAX], uint64_t ns);

/* text_format_span - the same for sentences, with a space where there is one unit: "53 ms", "9.8 s", "1m30s". */
const char *text_format_span(char out[TEXT_MAX], uint64_t ns);

/* text_format_count - "12,345". */
const char *text_format_count(char out[TEXT_MAX], uint64_t n);

/* text_format_plural - how many of what, which is given in the plural: "12 failed calls", "1 failed
 * call", "1 process on the GPU". The first word with an s at its end is the one that changes. */
const char *text_format_plural(char out[TEXT_PLURAL_MAX], uint64_t n, const char *plural);

/* text_format_bytes - binary units: "512 B", "1.5 KiB", "10 GiB". */
const char *text_format_bytes(char out[TEXT_MAX], uint64_t bytes);

/* text_format_percent - a share 0..1 as "71 %", "3.2 %", "0 %"; "< 0.1 %" for a trace of it. */
const char *text_format_percent(char out[TEXT_MAX], double share);

/* text_format_ratio - "8.5" below 100, "340" above. */
const char *text_format_ratio(char out[TEXT_MAX], double ratio);

/* text_format_hex - 16 digits. */
const char *text_format_hex(char out[TEXT_MAX], uint64_t n);

/* The same as expressions, for the arguments of a call: each text lives until its block ends. */
#define TEXT_DURATION(ns)    text_format_duration((char[TEXT_MAX]){0}, ns)
#define TEXT_SPAN(ns)        text_format_span((char[TEXT_MAX]){0}, ns)
#define TEXT_COUNT(n)        text_format_count((char[TEXT_MAX]){0}, n)
#define TEXT_PLURAL(n, what) text_format_plural((char[TEXT_PLURAL_MAX]){0}, n, what)
#define TEXT_SIZE(n)         text_format_bytes((char[TEXT_MAX]){0}, n)
#define TEXT_PERCENT(share)  text_format_percent((char[TEXT_MAX]){0}, share)
#define TEXT_RATIO(ratio)    text_format_ratio((char[TEXT_MAX]){0}, ratio)
#define TEXT_HEX(n)          text_format_hex((char[TEXT_MAX]){0}, n)

/* text_format_double - the shortest text that reads back equal; "NaN", "+Inf", "-Inf". */
const char *text_format_double(char out[TEXT_MAX], double v);

/* text_parse_duration - "30s", "500ms", "1h30m", "1w2d", "1.5h", "0"; units w d h m s ms us µs ns.
 * -EINVAL if it is not a duration (a bare number other than 0 has no unit); -ERANGE past 2^63 ns.
 */
int text_parse_duration(const char *s, uint64_t *ret_ns);

/* text_parse_size - "64k", "500m", "10g", "1t", "10GB", "1.5g", "4096", "0"; multiples of 1024.
 * -EINVAL if it is not a size; -ERANGE past 2^63 bytes. */
int text_parse_size(const char *s, uint64_t *ret_bytes);
