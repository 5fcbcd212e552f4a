/* SPDX-License-Identifier: Apache-2.0 */
/* rust_reader.c - see rust_reader.h. Every number is checked for overflow and every length against
 * what is left, so that nothing outside [s, s + len) is read. */
#include "demangle/rust_reader.h"

#include <string.h>

#define PUNYCODE_MAX 128 /* code points of one identifier; a longer one is shown undecoded */

char rust_peek(const struct rust_reader *r)
{
	return !r->is_bad && r->at < r->len ? r->s[r->at] : 0;
}

void rust_bad(struct rust_reader *r)
{
	r->is_bad = true;
}

char rust_next(struct rust_reader *r)
{
	char c = rust_peek(r);

	if (c)
		r->at++;
	else
		rust_bad(r);
	return c;
}

bool rust_eat(struct rust_reader *r, char c)
{
	if (rust_peek(r) != c)
		return false;
	r->at++;
	return true;
}

bool rust_enter(struct rust_reader *r)
{
	if (r->is_bad || r->out->is_full)
		return false;
	if (++r->steps > RUST_STEPS_MAX || r->depth >= RUST_DEPTH_MAX) {
		rust_bad(r);
		return false;
	}
	r->depth++;
	return true;
}

void rust_leave(struct rust_reader *r)
{
	r->depth--;
}

/* Value of a digit in base 62; -1 if it is none. */
static int digit62(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'Z')
		return c - 'A' + 36;
	return -1;
}

uint64_t rust_number62(struct rust_reader *r)
{
	uint64_t n = 0;

	if (rust_eat(r, '_'))
		return 0;
	while (!rust_eat(r, '_')) {
		int digit = digit62(rust_next(r));

		if (digit < 0 || __builtin_mul_overflow(n, 62, &n) ||
			__builtin_add_overflow(n, (uint64_t)digit, &n)) {
			rust_bad(r);
			return 0;
		}
	}
	if (__builtin_add_overflow(n, 1, &n))
		rust_bad(r);
	return n;
}

uint64_t rust_optional62(struct rust_reader *r, char tag)
{
	uint64_t n;

	if (!rust_eat(r, tag))
		return 0;
	n = rust_number62(r);
	if (__builtin_add_overflow(n, 1, &n))
		rust_bad(r);
	return n;
}

static size_t decimal(struct rust_reader *r)
{
	size_t n;
	char c = rust_next(r);

	if (c < '0' || c > '9') {
		rust_bad(r);
		return 0;
	}
	n = (size_t)(c - '0');
	if (n == 0)
		return 0;
	while ((c = rust_peek(r)) >= '0' && c <= '9') {
		n = n * 10 + (size_t)(c - '0');
		r->at++;
		if (n > r->len) {
			rust_bad(r);
			return 0;
		}
	}
	return n;
}

struct rust_ident rust_read_ident(struct rust_reader *r)
{
	struct rust_ident i = {.ascii = ""};
	bool is_punycode = rust_eat(r, 'u');
	size_t len = decimal(r);
	const char *start;

	rust_eat(r, '_');
	if (r->is_bad || len > r->len - r->at) {
		rust_bad(r);
		return i;
	}
	start = r->s + r->at;
	r->at += len;
	if (!is_punycode)
		return (struct rust_ident){.ascii = start, .ascii_len = len};
	i.punycode = memrchr(start, '_', len);
	if (i.punycode) {
		i.ascii = start;
		i.ascii_len = (size_t)(i.punycode - start);
		i.punycode++;
	} else {
		i.punycode = start;
	}
	i.punycode_len = len - (size_t)(i.punycode - start);
	if (i.punycode_len == 0)
		rust_bad(r);
	return i;
}

const char *rust_hex(struct rust_reader *r, size_t *ret_digits)
{
	const char *start = r->s + r->at;
	size_t digits = 0;

	while (!rust_eat(r, '_')) {
		char c = rust_next(r);

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
			rust_bad(r);
			break;
		}
		digits++;
	}
	while (digits > 0 && *start == '0' && !r->is_bad) {
		start++;
		digits--;
	}
	*ret_digits = digits;
	return start;
}

static bool is_mute(const struct rust_reader *r)
{
	return r->is_bad || r->is_silent;
}

void rust_put(struct rust_reader *r, const char *s)
{
	if (!is_mute(r))
		cut_text_puts(r->out, s);
}

void rust_putc(struct rust_reader *r, char c)
{
	if (!is_mute(r))
		cut_text_putc(r->out, c);
}

void rust_put_number(struct rust_reader *r, uint64_t n)
{
	if (!is_mute(r))
		cut_text_put_number(r->out, n);
}

/* RFC 3492's step between two code points. */
static size_t punycode_bias(size_t delta, size_t count, bool is_first)
{
	size_t k = 0;

	delta = is_first ? delta / 700 : delta / 2;
	delta += delta / count;
	for (; delta > 455; k += 36)
		delta /= 35;
	return k + 36 * delta / (delta + 38);
}

/* One of the numbers of RFC 3492; false if it is cut short or too large. */
static bool punycode_delta(const struct rust_ident *i, size_t *at, size_t bias, size_t *ret)
{
	size_t delta = 0, weight = 1;

	for (size_t k = 36;; k += 36) {
		size_t threshold = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
		size_t digit;
		char c;

		if (*at == i->punycode_len)
			return false;
		c = i->punycode[(*at)++];
		if (c >= 'a' && c <= 'z')
			digit = (size_t)(c - 'a');
		else if (c >= '0' && c <= '9')
			digit = (size_t)(c - '0') + 26;
		else
			return false;
		delta += digit * weight;
		if (delta > 0x10ffff * (size_t)PUNYCODE_MAX)
			return false;
		if (digit < threshold)
			break;
		weight *= 36 - threshold;
		if (weight > 0x10ffff * (size_t)PUNYCODE_MAX)
			return false;
	}
	*ret = delta;
	return true;
}

/* The identifier's code points, or 0 if it is not good punycode or too long. */
static size_t punycode_decode(const struct rust_ident *i, uint32_t out[PUNYCODE_MAX])
{
	size_t count = i->ascii_len, at = 0, bias = 72, position = 0, cp = 0x80;

	if (count >= PUNYCODE_MAX)
		return 0;
	for (size_t n = 0; n < count; n++)
		out[n] = (unsigned char)i->ascii[n];
	while (at < i->punycode_len) {
		bool is_first = at == 0;
		size_t delta;

		if (count == PUNYCODE_MAX || !punycode_delta(i, &at, bias, &delta))
			return 0;
		bias = punycode_bias(delta, count + 1, is_first);
		position += delta;
		count++;
		cp += position / count;
		position %= count;
		if (cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
			return 0;
		memmove(out + position + 1, out + position,
			(count - 1 - position) * sizeof(out[0]));
		out[position++] = (uint32_t)cp;
	}
	return count;
}

void rust_put_ident(struct rust_reader *r, const struct rust_ident *i)
{
	uint32_t decoded[PUNYCODE_MAX];
	size_t count;

	if (is_mute(r))
		return;
	if (!i->punycode) {
		cut_text_put(r->out, i->ascii, i->ascii_len);
		return;
	}
	count = punycode_decode(i, decoded);
	for (size_t n = 0; n < count; n++)
		cut_text_put_code_point(r->out, decoded[n]);
	if (count == 0) {
		rust_put(r, "punycode{");
		if (i->ascii_len > 0) {
			cut_text_put(r->out, i->ascii, i->ascii_len);
			rust_putc(r, '-');
		}
		cut_text_put(r->out, i->punycode, i->punycode_len);
		rust_putc(r, '}');
	}
}

size_t rust_back_reference(struct rust_reader *r)
{
	size_t tag = r->at - 1;
	uint64_t to = rust_number62(r);

	if (!r->is_bad && to >= tag)
		rust_bad(r);
	return is_mute(r) ? SIZE_MAX : (size_t)to;
}
