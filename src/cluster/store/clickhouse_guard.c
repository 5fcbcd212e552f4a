/* SPDX-License-Identifier: Apache-2.0 */
/* clickhouse_guard.c - see clickhouse_guard.h.
 *
 * The text is cut into words, literals and signs as ClickHouse does. Where it could be read in two ways
 * (escapes in quoted names, `$`) it is refused. */
#include "cluster/store/clickhouse_guard.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_NAME, TOKEN_TEXT, TOKEN_SIGN, TOKEN_BAD };

struct token {
	enum token_kind kind;
	const char *at;
	size_t len;
};

/* Databases, and functions that read from elsewhere or hold up a server. */
static const char *const foreign[] = {"system", "information_schema", "remote", "remoteSecure",
	"cluster", "clusterAllReplicas", "merge", "file", "url", "s3", "s3Cluster", "hdfs", "mysql",
	"postgresql", "mongodb", "redis", "sqlite", "odbc", "jdbc", "input", "executable",
	"dictionary", "dictGet", "joinGet", "sleep", "sleepEachRow", "getSetting", "getMacro",
	"hostName", "fqdn", "currentUser", "user", "initialQueryID", "queryID",
	"getOSKernelVersion", "getClientHTTPHeader", "generateRandom", "view", "loop"};

static const char *skip_blanks(const char *p)
{
	for (;;) {
		const char *end;

		while (isspace((unsigned char)*p))
			p++;
		if (p[0] == '-' && p[1] == '-') {
			p += strcspn(p, "\n");
			continue;
		}
		if (p[0] != '/' || p[1] != '*')
			return p;
		end = strstr(p + 2, "*/");
		if (!end)
			return p + strlen(p);
		p = end + 2;
	}
}

static struct token quoted(const char *p)
{
	const char *q = p + 1;

	for (; *q && *q != *p; q++)
		if (*q == '\\') {
			if (*p != '\'' || !q[1])
				return (struct token){TOKEN_BAD, p, 1};
			q++;
		}
	if (!*q)
		return (struct token){TOKEN_BAD, p, 1};
	if (*p == '\'')
		return (struct token){TOKEN_TEXT, p, (size_t)(q - p) + 1};
	return (struct token){TOKEN_NAME, p + 1, (size_t)(q - p) - 1};
}

static struct token next(const char **text)
{
	const char *p = skip_blanks(*text);
	struct token t = {TOKEN_SIGN, p, 1};

	if (!*p) {
		t = (struct token){TOKEN_END, p, 0};
	} else if (*p == '\'' || *p == '"' || *p == '`') {
		t = quoted(p);
	} else if (*p == '$' || *p == '\\' || *p == '#' || (unsigned char)*p < ' ') {
		t.kind = TOKEN_BAD;
	} else if (isalnum((unsigned char)*p) || *p == '_') {
		while (isalnum((unsigned char)p[t.len]) || p[t.len] == '_')
			t.len++;
		t.kind = TOKEN_WORD;
	}
	*text = t.at + t.len + (t.kind == TOKEN_NAME);
	return t;
}

static bool is_word(const struct token *t, const char *word)
{
	return (t->kind == TOKEN_WORD || t->kind == TOKEN_NAME) && t->len == strlen(word) &&
	       !strncasecmp(t->at, word, t->len);
}

static int check_token(const struct token *t, const struct token *after, struct errinfo *reterr)
{
	static const char *const clauses[] = {"FORMAT", "SETTINGS", "INTO"};

	if (t->kind == TOKEN_BAD)
		return errinfo_set(reterr, -EINVAL,
			"the statement has a character or escape that is not allowed here: %.20s",
			t->at);
	if (t->kind == TOKEN_SIGN && *t->at == ';' && after->kind != TOKEN_END)
		return errinfo_set(reterr, -EINVAL, "only one statement is allowed");
	for (size_t i = 0; i < ARRAY_SIZE(clauses); i++)
		if (t->kind == TOKEN_WORD && is_word(t, clauses[i]) && after->kind == TOKEN_WORD)
			return errinfo_set(
				reterr, -EPERM, "%s is not allowed: leave it out", clauses[i]);
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		if (is_word(t, foreign[i]) && after->kind == TOKEN_SIGN &&
			(*after->at == '(' || (*after->at == '.' && i < 2)))
			return errinfo_set(reterr, -EPERM,
				"%s is not allowed: only the tables of this store can be read",
				foreign[i]);
	return 0;
}

int clickhouse_guard_check(const char *text, struct errinfo *reterr)
{
	struct token t, after;

	if (strlen(text) > CLICKHOUSE_TEXT_MAX)
		return errinfo_set(reterr, -E2BIG, "the statement has more than %u bytes",
			CLICKHOUSE_TEXT_MAX);
	t = next(&text);
	while (t.kind == TOKEN_SIGN && *t.at == '(')
		t = next(&text);
	if (!is_word(&t, "SELECT") && !is_word(&t, "WITH"))
		return errinfo_set(reterr, -EINVAL, "only a query is allowed: begin with SELECT");
	for (; t.kind != TOKEN_END; t = after) {
		int r;

		after = next(&text);
		r = check_token(&t, &after, reterr);
		if (r < 0)
			return r;
		if (after.kind == TOKEN_BAD)
			return check_token(&after, &after, reterr);
	}
	return 0;
}

/* ---- names ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "__" stands between clusters; in them, "_" is always followed by two digits. */
static void put_name(struct buf *b, const char *cluster)
{
	buf_puts(b, "__");
	for (; *cluster; cluster++) {
		if (isalnum((unsigned char)*cluster))
			buf_putc(b, *cluster);
		else
			buf_printf(b, "_%02x", (unsigned char)*cluster);
	}
}

int clickhouse_guard_name(
	const char *base, const struct store_scope *scope, struct buf *ret, struct errinfo *reterr)
{
	_cleanup_free_ const char **sorted = NULL;

	buf_puts(ret, base);
	if (!scope || !scope->clusters)
		return ret->err;
	if (scope->cluster_count == 0)
		return errinfo_set(reterr, -EPERM, "there is no cluster that this may be asked of");
	sorted = calloc(scope->cluster_count, sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, scope->clusters, scope->cluster_count * sizeof(*sorted));
	qsort(sorted, scope->cluster_count, sizeof(*sorted), by_text);
	for (size_t i = 0; i < scope->cluster_count; i++)
		if (i == 0 || strcmp(sorted[i - 1], sorted[i]) != 0)
			put_name(ret, sorted[i]);
	if (ret->err || ret->len > CLICKHOUSE_NAME_MAX)
		return errinfo_set(reterr, -E2BIG,
			"SQL cannot be asked of so many clusters at once: name fewer");
	return 0;
}
