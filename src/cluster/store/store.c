/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - what engines share: literals, and questions in their own SQL. See store.h. */
#include "cluster/store/store.h"

#include "base/text.h"

#define WORD_MAX  256
#define WORDS_MAX 3

void store_quote(struct buf *b, const char *text)
{
	size_t left = strlen(text);
	uint32_t cp;

	buf_putc(b, '\'');
	while (left) {
		int n = text_utf8_next(text, left, &cp);

		if (n <= 0) {
			buf_puts(b, "\xef\xbf\xbd");
			n = 1;
		} else if (*text == '\'') {
			buf_puts(b, "''");
		} else if (*text == '\\') { /* one engine unescapes, the other does not */
			buf_puts(b, "\xef\xbf\xbd");
		} else {
			buf_append(b, text, (size_t)n);
		}
		text += n;
		left -= (size_t)n;
	}
	buf_putc(b, '\'');
}

static bool put_table(const struct store_dialect *d, void *arg, const char *name,
	const struct store_scope *scope, struct buf *ret)
{
	for (int t = 0; t < TABLE_COUNT; t++)
		if (!strcmp(name, store_tables[t].name)) {
			d->table(arg, ret, t, scope);
			return true;
		}
	return false;
}

static bool put_function(
	const struct store_dialect *d, char words[WORDS_MAX][WORD_MAX], int count, struct buf *ret)
{
	const struct {
		const char *name;
		int count;
		const char *format;
	} rows[] = {
		{"quantile", 3, d->quantile},
		{"last", 3, d->last},
		{"div", 3, d->div},
		{"text", 2, d->text},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *f = rows[i].format;

		if (strcmp(words[0], rows[i].name) != 0 || count != rows[i].count)
			continue;
		for (; *f; f++) { /* @1 and @2 are the arguments */
			if (*f == '@' && (f[1] == '1' || f[1] == '2'))
				buf_puts(ret, words[*++f - '0']);
			else
				buf_putc(ret, *f);
		}
		return true;
	}
	return false;
}

int store_expand(const struct store_dialect *d, void *arg, const char *question,
	const struct store_scope *scope, struct buf *ret, struct errinfo *reterr)
{
	for (const char *p = question; *p; p++) {
		char words[WORDS_MAX][WORD_MAX] = {{0}};
		const char *end;
		int count = 0;

		if (*p == '\'') { /* a literal is left alone */
			end = p + 1;
			while (*end && *end != '\'')
				end++;
			buf_append(ret, p, (size_t)(end - p) + (*end != 0));
			if (!*end)
				break;
			p = end;
			continue;
		}
		if (*p != '{') {
			buf_putc(ret, *p);
			continue;
		}
		end = strchr(p, '}');
		for (const char *w = p + 1; end && w <= end && count < WORDS_MAX; count++) {
			size_t n = strcspn(w, count < WORDS_MAX - 1 ? ":}" : "}");

			snprintf(words[count], WORD_MAX, "%.*s", (int)n, w);
			w += n + 1;
		}
		if (!end || (!put_table(d, arg, words[0], scope, ret) &&
				    !put_function(d, words, count, ret)))
			return errinfo_set(
				reterr, -EINVAL, "unknown placeholder in a query: %.40s", p);
		p = end;
	}
	return ret->err;
}
