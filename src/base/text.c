/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - escaping, formatting and parsing of the small texts in reports and options.
 *
 * Pure: no locale, no I/O. Arithmetic is in integers, so that 9.96 µs reads 10µs and not 10.0µs and
 * an overflow is an error rather than a wrap. Outputs of the parsers are untouched on failure. */
#include "base/text.h"

#include <ctype.h>
#include <math.h>

#include "base/clock.h"

int text_utf8_next(const char *s, size_t len, uint32_t *ret_cp)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *u = (const unsigned char *)s;
	uint32_t cp;
	int n;

	if (u[0] < 0x80) {
		*ret_cp = u[0];
		return 1;
	}
	n = u[0] >= 0xf0 ? 4 : u[0] >= 0xe0 ? 3 : 2;
	if (u[0] < 0xc2 || u[0] > 0xf4 || (size_t)n > len)
		return -EILSEQ;
	cp = u[0] & (0x7f >> n);
	for (int i = 1; i < n; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return -EILSEQ;
		cp = cp << 6 | (u[i] & 0x3f);
	}
	if (cp < least[n] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		return -EILSEQ;
	*ret_cp = cp;
	return n;
}

bool text_is_deceptive(uint32_t cp)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0x0080, 0x009f}, /* C1 controls */
		{0x00ad, 0x00ad}, /* soft hyphen */
		{0x034f, 0x034f}, /* grapheme joiner */
		{0x061c, 0x061c}, /* Arabic letter mark */
		{0x115f, 0x1160}, /* Hangul fillers */
		{0x17b4, 0x17b5}, /* invisible Khmer vowels */
		{0x180b, 0x180f}, /* Mongolian selectors and separator */
		{0x200b, 0x200f}, /* zero-width characters, direction marks */
		{0x2028, 0x202e}, /* line and paragraph separator, bidi embeddings and overrides */
		{0x2060, 0x206f}, /* word joiner, invisible operators, bidi isolates */
		{0x3164, 0x3164}, /* Hangul filler */
		{0xfe00, 0xfe0f}, /* variation selectors */
		{0xfeff, 0xfeff}, /* byte order mark */
		{0xffa0, 0xffa0}, /* Hangul filler */
		{0xfff0, 0xfffb}, /* interlinear annotation */
		{0xe0000, 0xe0fff}, /* tags and more selectors */
	};

	return EXISTS(i, ARRAY_SIZE(ranges), cp >= ranges[i].first && cp <= ranges[i].last);
}

void text_put_utf8(struct buf *b, const char *s, size_t len)
{
	for (size_t i = 0; i < len;) {
		uint32_t cp;
		int n = text_utf8_next(s + i, len - i, &cp);

		if (n < 0)
			buf_puts(b, "\xef\xbf\xbd");
		else
			buf_append(b, s + i, (size_t)n);
		i += n < 0 ? 1 : (size_t)n;
	}
}

void text_escape_terminal_len(struct buf *b, const char *s, size_t len)
{
	size_t i = 0, plain;

	while (i < len) {
		uint32_t cp = 0;
		int n;

		for (plain = i; i < len && s[i] >= 0x20 && s[i] < 0x7f; i++)
			continue;
		buf_append(b, s + plain, i - plain);
		if (i == len)
			break;
		n = text_utf8_next(s + i, len - i, &cp);
		if (n < 0)
			buf_printf(b, "\\x%02x", (unsigned char)s[i]);
		else if (cp == '\n' || cp == '\t' || cp == '\r')
			buf_puts(b, cp == '\n' ? "\\n" : cp == '\t' ? "\\t" : "\\r");
		else if (cp < 0x20 || cp == 0x7f)
			buf_printf(b, "\\x%02x", cp);
		else if (text_is_deceptive(cp))
			buf_printf(b, "\\u{%04x}", cp);
		else
			buf_append(b, s + i, (size_t)n);
		i += n < 0 ? 1 : (size_t)n;
	}
}

void text_escape_terminal(struct buf *b, const char *s)
{
	text_escape_terminal_len(b, s, strlen(s));
}

/* value/unit with one decimal below ten and none above; false when it rounds to @limit or more. */
static bool format_scaled(
	char *out, uint64_t value, uint64_t unit, uint64_t limit, const char *name)
{
	uint64_t whole = value / unit + (value % unit >= unit - unit / 2);
	uint64_t tenths = value / unit < 10 ? (value * 10 + unit / 2) / unit : 100;

	if (tenths < 100)
		snprintf(
			out, TEXT_MAX, "%" PRIu64 ".%" PRIu64 "%s", tenths / 10, tenths % 10, name);
	else if (whole < limit)
		snprintf(out, TEXT_MAX, "%" PRIu64 "%s", whole, name);
	else
		return false;
	return true;
}

const char *text_format_duration(char out[TEXT_MAX], uint64_t ns)
{
	uint64_t s;

	if (ns < NS_PER_US) {
		snprintf(out, TEXT_MAX, "%" PRIu64 "%s", ns, ns ? "ns" : "");
		return out;
	}
	if (ns < NS_PER_MS && format_scaled(out, ns, NS_PER_US, 1000, "µs"))
		return out;
	if (ns < NS_PER_S && format_scaled(out, ns, NS_PER_MS, 1000, "ms"))
		return out;
	if (ns < 60 * NS_PER_S && format_scaled(out, ns, NS_PER_S, 60, "s"))
		return out;
	s = ns / NS_PER_S + (ns % NS_PER_S >= NS_PER_S / 2);
	if (s < 3600)
		snprintf(out, TEXT_MAX, "%" PRIu64 "m%" PRIu64 "s", s / 60, s % 60);
	else
		snprintf(out, TEXT_MAX, "%" PRIu64 "h%" PRIu64 "m%" PRIu64 "s", s / 3600,
			s / 60 % 60, s % 60);
	return out;
}

const char *text_format_span(char out[TEXT_MAX], uint64_t ns)
{
	char text[TEXT_MAX];
	size_t number = strspn(text_format_duration(text, ns), "0123456789.");

	if (!text[number] || strpbrk(text + number, "0123456789"))
		snprintf(out, TEXT_MAX, "%s", text);
	else
		snprintf(out, TEXT_MAX, "%.*s %s", (int)number, text, text + number);
	return out;
}

const char *text_format_count(char out[TEXT_MAX], uint64_t n)
{
	char digits[TEXT_MAX];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n);
	char *p = out;

	for (int i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			*p++ = ',';
		*p++ = digits[i];
	}
	*p = 0;
	return out;
}

/* The length of the first word of @s that ends in s, and where it is; 0 if there is none. */
static size_t plural_word(const char *s, size_t *ret_at)
{
	for (size_t at = 0; s[at]; at += strspn(s + at, " ")) {
		size_t len = strcspn(s + at, " ");

		if (len > 1 && s[at + len - 1] == 's') {
			*ret_at = at;
			return len;
		}
		at += len;
	}
	*ret_at = strlen(s);
	return 0;
}

static bool ends_in(const char *s, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len > n && !memcmp(s + len - n, end, n);
}

const char *text_format_plural(char out[TEXT_PLURAL_MAX], uint64_t n, const char *plural)
{
	char count[TEXT_MAX];
	size_t at, len, cut;
	const char *y = "";

	if (n != 1) {
		snprintf(out, TEXT_PLURAL_MAX, "%s %s", text_format_count(count, n), plural);
		return out;
	}
	len = plural_word(plural, &at);
	cut = len > 0;
	if (ends_in(plural + at, len, "ies")) {
		cut = 3;
		y = "y";
	} else if (ends_in(plural + at, len, "sses") || ends_in(plural + at, len, "xes") ||
		   ends_in(plural + at, len, "ches") || ends_in(plural + at, len, "shes")) {
		cut = 2;
	}
	snprintf(out, TEXT_PLURAL_MAX, "1 %.*s%s%s", (int)(at + len - cut), plural, y,
		plural + at + len);
	return out;
}

const char *text_format_percent(char out[TEXT_MAX], double share)
{
	double pct = share * 100;

	if (!(pct > 0))
		snprintf(out, TEXT_MAX, "0 %%");
	else if (pct < 0.05)
		snprintf(out, TEXT_MAX, "< 0.1 %%");
	else if (pct < 9.95)
		snprintf(out, TEXT_MAX, "%.1f %%", pct);
	else
		snprintf(out, TEXT_MAX, "%.0f %%", MIN(pct, 1e6));
	return out;
}

const char *text_format_hex(char out[TEXT_MAX], uint64_t n)
{
	snprintf(out, TEXT_MAX, "%016" PRIx64, n);
	return out;
}

const char *text_format_ratio(char out[TEXT_MAX], double ratio)
{
	snprintf(out, TEXT_MAX, "%.*f", ratio < 99.95 ? 1 : 0, MIN(ratio, 1e18));
	return out;
}

const char *text_format_double(char out[TEXT_MAX], double v)
{
	if (isnan(v))
		return memcpy(out, "NaN", sizeof("NaN"));
	if (isinf(v))
		return memcpy(out, v > 0 ? "+Inf" : "-Inf", sizeof("+Inf"));
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(out, TEXT_MAX, "%.*g", digits, v);
		if (strtod(out, NULL) == v)
			break;
	}
	return out;
}

const char *text_format_bytes(char out[TEXT_MAX], uint64_t bytes)
{
	static const char *const names[] = {" KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
	uint64_t unit = 1024;

	if (bytes < 1024) {
		snprintf(out, TEXT_MAX, "%" PRIu64 " B", bytes);
		return out;
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++, unit *= 1024)
		if ((i + 1 == ARRAY_SIZE(names) || bytes / 1024 < unit) &&
			format_scaled(out, bytes, unit, 1024, names[i]))
			break;
	return out;
}

/* A decimal number as whole + fraction/10^9; digits past the ninth are dropped. */
struct decimal {
	uint64_t whole, nano;
};

static int parse_decimal(const char **s, struct decimal *ret)
{
	const char *p = *s;
	struct decimal d = {0};
	uint64_t place = 100000000;

	if (!isdigit((unsigned char)*p))
		return -EINVAL;
	for (; isdigit((unsigned char)*p); p++)
		if (__builtin_mul_overflow(d.whole, 10, &d.whole) ||
			__builtin_add_overflow(d.whole, (uint64_t)(*p - '0'), &d.whole))
			return -ERANGE;
	if (*p == '.') {
		p++;
		if (!isdigit((unsigned char)*p))
			return -EINVAL;
		for (; isdigit((unsigned char)*p); p++, place /= 10)
			d.nano += (uint64_t)(*p - '0') * place;
	}
	*s = p;
	*ret = d;
	return 0;
}

/* *total += d * unit, within 0..INT64_MAX. */
static int add_scaled(uint64_t *total, struct decimal d, uint64_t unit)
{
	unsigned __int128 v = (unsigned __int128)d.whole * unit +
			      (unsigned __int128)d.nano * unit / 1000000000 + *total;

	if (v > INT64_MAX)
		return -ERANGE;
	*total = (uint64_t)v;
	return 0;
}

int text_parse_duration(const char *s, uint64_t *ret_ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {/* a longer name stands before its own beginning */
		{"ms", NS_PER_MS}, {"us", NS_PER_US}, {"µs", NS_PER_US}, {"ns", 1}, {"s", NS_PER_S},
		{"m", 60 * NS_PER_S}, {"h", 3600 * NS_PER_S}, {"d", 86400 * NS_PER_S},
		{"w", 7 * 86400 * NS_PER_S}};
	uint64_t total = 0;

	if (strcmp(s, "0") == 0) {
		*ret_ns = 0;
		return 0;
	}
	do {
		struct decimal d;
		size_t i = 0;
		int r = parse_decimal(&s, &d);

		if (r < 0)
			return r;
		while (i < ARRAY_SIZE(units) &&
			strncmp(s, units[i].name, strlen(units[i].name)) != 0)
			i++;
		if (i == ARRAY_SIZE(units))
			return -EINVAL;
		r = add_scaled(&total, d, units[i].ns);
		if (r < 0)
			return r;
		s += strlen(units[i].name);
	} while (*s);
	*ret_ns = total;
	return 0;
}

int text_parse_size(const char *s, uint64_t *ret_bytes)
{
	static const char letters[] = "kmgt";
	uint64_t total = 0, unit = 1;
	const char *letter;
	struct decimal d;
	int r = parse_decimal(&s, &d);

	if (r < 0)
		return r;
	letter = *s ? strchr(letters, tolower((unsigned char)*s)) : NULL;
	if (letter) {
		unit <<= 10 * (letter - letters + 1);
		s++;
		if (tolower((unsigned char)s[0]) == 'i' && tolower((unsigned char)s[1]) == 'b')
			s++;
	}
	if (tolower((unsigned char)*s) == 'b')
		s++;
	if (*s || (unit == 1 && d.nano))
		return -EINVAL;
	r = add_scaled(&total, d, unit);
	if (r < 0)
		return r;
	*ret_bytes = total;
	return 0;
}

const char *text_shown(char out[TEXT_SHOWN_MAX], const char *s)
{
	_cleanup_buf_ struct buf b = BUF_INIT(TEXT_SHOWN_MAX - 1);

	text_escape_terminal(&b, s);
	text_copy(out, TEXT_SHOWN_MAX, buf_str(&b), b.len);
	return out;
}

size_t text_cut(const char *s, size_t len, size_t max)
{
	if (len <= max)
		return len;
	while (max && ((unsigned char)s[max] & 0xc0) == 0x80)
		max--;
	return max;
}

void text_copy(char *out, size_t size, const char *s, size_t len)
{
	len = text_cut(s, len, size - 1);
	memcpy(out, s, len);
	out[len] = 0;
}

static int columns_of(const char *s, size_t len)
{
	int n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)s[i] & 0xc0) != 0x80;
	return n;
}

int text_columns(const char *s)
{
	return columns_of(s, strlen(s));
}

int text_clip(const char *s, int columns)
{
	int n = 0;

	for (; s[n]; n++)
		if (((unsigned char)s[n] & 0xc0) != 0x80 && columns-- == 0)
			break;
	return n;
}

/* How many bytes the word at @s has; a number and its unit are one ("1.8 %", "9.5 ms"). */
static size_t word_len(const char *s)
{
	static const char *const units[] = {
		"%", "ns", "µs", "ms", "s", "min", "h", "MB", "GB", "MHz"};
	size_t len = strcspn(s, " "), next;

	if (!len || !isdigit((unsigned char)s[len - 1]) || s[len] != ' ')
		return len;
	next = strcspn(s + len + 1, " ,;:.)");
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (next == strlen(units[i]) && memcmp(s + len + 1, units[i], next) == 0)
			return len + 1 + strcspn(s + len + 1, " ");
	return len;
}

/* The text is escaped first, so that a break never falls into an escaped byte. */
void text_wrap(struct buf *b, size_t indent, size_t width, const char *text)
{
	_cleanup_buf_ struct buf clean = BUF_INIT(1 << 16);
	size_t column = indent;

	text_escape_terminal(&clean, text);
	for (const char *s = buf_str(&clean); *s;) {
		size_t len = word_len(s), word = (size_t)columns_of(s, len);

		if (column > indent && column + 1 + word > width) {
			buf_printf(b, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			buf_putc(b, ' ');
			column++;
		}
		buf_append(b, s, len);
		column += word;
		s += len + strspn(s + len, " ");
	}
	buf_putc(b, '\n');
}
