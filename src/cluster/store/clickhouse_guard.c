/* SPDX-License-Identifier: Apache-2.0 */
/* clickhouse_guard.c - see store_clickhouse_private.h.
 *
 * The text is cut into words, literals and signs as ClickHouse does. Where it could be read in two ways
 * (escapes in quoted names, `$`) it is refused. Then every place is found where a table can be named, after FROM, JOIN,
 * their commas and IN: there only our tables stand, without a database, and queries. Every function is a known one. */
#include "base/search.h"
#include "cluster/store/store_clickhouse_private.h"

#include <ctype.h>
#include <strings.h>

#include "base/macros.h"

/* What is here computes from its arguments alone: it reads no file, table,
 * setting or other server, tells nothing of the server or who asks, and waits for nothing. */

/* Aggregates; with If behind them likewise. */
static const char *const aggregates[] = {"any", "anyLast", "argMax", "argMin", "avg", "avgWeighted",
	"corr", "count", "covarPop", "covarSamp", "groupArray", "groupUniqArray", "kurtPop", "max",
	"median", "medianExact", "min", "quantile", "quantileDeterministic", "quantileExact",
	"quantileExactInclusive", "quantileExactWeighted", "quantileTDigest", "quantileTiming",
	"quantiles", "quantilesExact", "quantilesTDigest", "simpleLinearRegression", "skewPop",
	"stddevPop", "stddevSamp", "sum", "sumKahan", "sumWithOverflow", "topK", "uniq",
	"uniqCombined", "uniqExact", "uniqHLL12", "varPop", "varSamp"};

static const char *const functions[] = {
	/* numbers */
	"abs", "cbrt", "ceil", "ceiling", "divide", "exp", "exp2", "floor", "greatest", "intDiv",
	"intDivOrZero", "isFinite", "isInfinite", "isNaN", "least", "ln", "log", "log10", "log2",
	"minus", "modulo", "moduloOrZero", "multiply", "negate", "plus", "pow", "power", "round",
	"roundToExp2", "sign", "sqrt", "trunc", "truncate", "widthBucket", "bar",
	"runningDifference", "bitAnd", "bitOr", "bitShiftLeft", "bitShiftRight", "bitXor",
	/* conditions */
	"and", "assumeNotNull", "coalesce", "equals", "greater", "greaterOrEquals", "if", "ifNull",
	"isNotNull", "isNull", "less", "lessOrEquals", "multiIf", "not", "notEquals", "nullIf",
	"or", "toNullable", "xor",
	/* types */
	"CAST", "toBool", "toDecimal64", "toFixedString", "toFloat32", "toFloat32OrNull",
	"toFloat32OrZero", "toFloat64", "toFloat64OrNull", "toFloat64OrZero", "toInt16", "toInt32",
	"toInt32OrNull", "toInt32OrZero", "toInt64", "toInt64OrNull", "toInt64OrZero", "toInt8",
	"toString", "toTypeName", "toUInt16", "toUInt32", "toUInt64", "toUInt64OrNull",
	"toUInt64OrZero", "toUInt8", "tuple", "tupleElement",
	/* texts */
	"char_length", "concat", "empty", "endsWith", "extractAll", "formatReadableQuantity",
	"formatReadableSize", "formatReadableTimeDelta", "hex", "ilike", "length", "lengthUTF8",
	"like", "lower", "lowerUTF8", "match", "multiSearchAny", "notEmpty", "notLike", "position",
	"positionCaseInsensitive", "replace", "replaceAll", "replaceOne", "replaceRegexpAll",
	"replaceRegexpOne", "reverse", "splitByChar", "splitByString", "startsWith", "substring",
	"substringUTF8", "trim", "trimBoth", "trimLeft", "trimRight", "upper", "upperUTF8",
	"JSONExtractBool", "JSONExtractFloat", "JSONExtractInt", "JSONExtractRaw",
	"JSONExtractString", "JSONHas", "JSONLength", "JSONType", "visitParamExtractBool",
	"visitParamExtractFloat", "visitParamExtractInt", "visitParamExtractRaw",
	"visitParamExtractString", "visitParamHas",
	/* times */
	"addDays", "addHours", "addMinutes", "addSeconds", "dateDiff", "date_diff", "date_trunc",
	"dateTrunc", "formatDateTime", "fromUnixTimestamp", "fromUnixTimestamp64Micro",
	"fromUnixTimestamp64Milli", "fromUnixTimestamp64Nano", "now", "now64",
	"parseDateTimeBestEffort", "subtractDays", "subtractHours", "subtractMinutes",
	"subtractSeconds", "timeSlot", "toDate", "toDateTime", "toDateTime64", "toDayOfMonth",
	"toDayOfWeek", "toHour", "toIntervalDay", "toIntervalHour", "toIntervalMinute",
	"toIntervalSecond", "toMinute", "toMonth", "toSecond", "toStartOfDay",
	"toStartOfFifteenMinutes", "toStartOfFiveMinute", "toStartOfFiveMinutes", "toStartOfHour",
	"toStartOfInterval", "toStartOfMinute", "toStartOfMonth", "toStartOfSecond",
	"toStartOfWeek", "toUnixTimestamp", "toUnixTimestamp64Milli", "toUnixTimestamp64Nano",
	"toYear", "today", "yesterday",
	/* lists and hashes */
	"array", "arrayAvg", "arrayCount", "arrayDistinct", "arrayElement", "arrayFilter",
	"arrayJoin", "arrayMap", "arrayMax", "arrayMin", "arrayReverse", "arraySort",
	"arrayStringConcat", "arraySum", "arrayUniq", "cityHash64", "has", "indexOf", "range",
	"sipHash64", "xxHash64",
	/* over windows */
	"dense_rank", "first_value", "lag", "lagInFrame", "last_value", "lead", "leadInFrame",
	"nth_value", "ntile", "percent_rank", "rank", "row_number"};

/* Words of the language that may stand before a parenthesis. */
static const char *const keywords[] = {"ALL", "AND", "ANY", "AS", "ASC", "BETWEEN", "BY", "CASE",
	"DESC", "DISTINCT", "DIV", "ELSE", "END", "EXCEPT", "EXISTS", "FILTER", "FROM", "HAVING",
	"ILIKE", "IN", "INTERSECT", "INTERVAL", "JOIN", "LIKE", "LIMIT", "MOD", "NOT", "OFFSET",
	"ON", "OR", "OVER", "PREWHERE", "QUALIFY", "SELECT", "THEN", "UNION", "USING", "WHEN",
	"WHERE", "WITH"};

static bool has(const char *const *list, size_t count, const char *word, size_t len)
{
	return EXISTS(i, count, strlen(list[i]) == len && !strncasecmp(list[i], word, len));
}

static bool clickhouse_known_keyword(const char *word, size_t len)
{
	return has(keywords, ARRAY_SIZE(keywords), word, len);
}

static bool clickhouse_known_function(const char *name, size_t len)
{
	bool is_if = len > 2 && !memcmp(name + len - 2, "If", 2);

	return has(functions, ARRAY_SIZE(functions), name, len) ||
	       has(aggregates, ARRAY_SIZE(aggregates), name, len) ||
	       (is_if && has(aggregates, ARRAY_SIZE(aggregates), name, len - 2));
}

enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_NAME, TOKEN_TEXT, TOKEN_SIGN, TOKEN_BAD };

struct token {
	enum token_kind kind;
	const char *at;
	size_t len;
};

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
	} else if (strchr("$\\#{", *p) || (unsigned char)*p < ' ' || (unsigned char)*p > '~') {
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

static bool is_sign(const struct token *t, char sign)
{
	return t->kind == TOKEN_SIGN && *t->at == sign;
}

static bool is_one_of(const struct token *t, const char *const *words, size_t count)
{
	return EXISTS(i, count, t->kind == TOKEN_WORD && is_word(t, words[i]));
}

/* ---- one statement ---- */

#define DEPTH_MAX 256 /* of parentheses */
#define NAMES_MAX 64  /* of subqueries by WITH */

/* What must come next. */
enum expected {
	ANYTHING,
	TABLE,   /* one of ours, or a query in parentheses */
	QUERY,   /* after its parenthesis */
	SET,     /* after IN: a list, a query or, without parentheses, a table */
	ELEMENT, /* the first of a list; a name alone is a table there, too */
};

struct statement {
	struct token t, after, before[3]; /* the last ones first */
	enum expected expected;
	size_t depth;
	bool in_from[DEPTH_MAX]; /* a comma is followed by a table */
	struct {
		struct token t;
		size_t depth; /* of parentheses in which it is known */
	} names[NAMES_MAX];
	size_t name_count;
	struct errinfo *reterr;
};

static int refuse_name(struct statement *s, const char *what)
{
	return errinfo_set(s->reterr, -EPERM, "%.*s is not allowed: %s",
		(int)MIN(s->t.len, (size_t)60), s->t.at, what);
}

static bool is_table(const struct statement *s)
{
	for (int i = 0; i < TABLE_COUNT; i++)
		if (s->t.len == strlen(store_tables[i].name) &&
			!memcmp(s->t.at, store_tables[i].name, s->t.len))
			return true;
	return EXISTS(i, s->name_count,
		s->t.len == s->names[i].t.len && !memcmp(s->t.at, s->names[i].t.at, s->t.len));
}

static int check_table(struct statement *s)
{
	if (s->t.kind != TOKEN_WORD && s->t.kind != TOKEN_NAME)
		return errinfo_set(s->reterr, -EINVAL, "the name of a table is missing");
	if (is_sign(&s->after, '.') || is_sign(&s->after, '(') || !is_table(s))
		return refuse_name(s,
			"only events, causal_chains, node_metrics, collectives, "
			"incidents and steps can be read, without a database before them");
	return 0;
}

static bool is_literal(const struct token *t)
{
	static const char *const values[] = {"NULL", "TRUE", "FALSE"};

	return t->kind == TOKEN_TEXT || t->kind == TOKEN_SIGN ||
	       (t->kind == TOKEN_WORD && isdigit((unsigned char)*t->at)) ||
	       is_one_of(t, values, ARRAY_SIZE(values));
}

/* What was expected is there. */
static int meet(struct statement *s)
{
	static const char *const queries[] = {"SELECT", "WITH"};
	bool begins = is_one_of(&s->t, queries, ARRAY_SIZE(queries)), opens = is_sign(&s->t, '(');
	enum expected expected = s->expected;

	s->expected = ANYTHING;
	switch (expected) {
	case ANYTHING: return 0;
	case TABLE:
	case QUERY:
		if (opens)
			s->expected = QUERY;
		else if (expected == QUERY && !begins)
			return errinfo_set(s->reterr, -EINVAL,
				"a query is needed after the parenthesis: begin with SELECT");
		return opens || begins ? 0 : check_table(s);
	case SET:
	case ELEMENT:
		if (opens)
			s->expected = ELEMENT;
		return begins || is_literal(&s->t) || is_sign(&s->after, '(') ? 0 : check_table(s);
	}
	return 0;
}

/* As an operator it stands behind a value; before one it would be a function, whose arguments may be tables. */
static bool is_operator(const struct statement *s)
{
	const struct token *t = s->before;
	size_t i = 0;

	while (i < 2 && t->kind == TOKEN_WORD && (is_word(t, "NOT") || is_word(t, "GLOBAL")))
		t = &s->before[++i];
	if (t->kind == TOKEN_SIGN)
		return *t->at == ')' || *t->at == ']';
	return t->kind != TOKEN_END && (t->kind != TOKEN_WORD || is_word(t, "END") ||
					       !clickhouse_known_keyword(t->at, t->len));
}

static int check_word(struct statement *s)
{
	static const char *const clauses[] = {"FORMAT", "SETTINGS", "INTO", "APPLY"};
	static const char *const after_from[] = {"WHERE", "PREWHERE", "GROUP", "ORDER", "HAVING",
		"LIMIT", "OFFSET", "UNION", "INTERSECT", "EXCEPT", "WINDOW", "QUALIFY", "SELECT"};
	const struct token *t = &s->t;
	bool is_keyword = t->kind == TOKEN_WORD;

	if (is_one_of(t, clauses, ARRAY_SIZE(clauses)) &&
		(s->after.kind == TOKEN_WORD || s->after.kind == TOKEN_NAME))
		return refuse_name(s, "leave it out");
	if (is_keyword && is_word(t, "IN")) {
		if (!is_operator(s))
			return refuse_name(s, "as a function; write x IN (…)");
		s->expected = SET;
		return 0;
	}
	if (is_keyword && (is_word(t, "FROM") || is_word(t, "JOIN"))) {
		s->expected = TABLE;
		s->in_from[s->depth] = true;
		return 0;
	}
	if (is_one_of(t, after_from, ARRAY_SIZE(after_from)))
		s->in_from[s->depth] = false;
	if (is_sign(&s->after, '(') && !(is_keyword && clickhouse_known_keyword(t->at, t->len)) &&
		!clickhouse_known_function(t->at, t->len))
		return refuse_name(
			s, "it is none of the functions that are known to read nothing else");
	return 0;
}

static int check_sign(struct statement *s)
{
	switch (*s->t.at) {
	case ';':
		return s->after.kind == TOKEN_END
			       ? 0
			       : errinfo_set(s->reterr, -EINVAL, "only one statement is allowed");
	case '(':
		if (++s->depth == DEPTH_MAX)
			return errinfo_set(s->reterr, -EINVAL, "it has too many parentheses");
		s->in_from[s->depth] = false;
		return 0;
	case ')':
		s->depth -= s->depth > 0;
		while (s->name_count && s->names[s->name_count - 1].depth > s->depth)
			s->name_count--;
		return 0;
	case ',':
		if (s->in_from[s->depth])
			s->expected = TABLE;
		return 0;
	default: return 0;
	}
}

/* `x AS (SELECT` and `x AS (WITH` name a table, up to the parenthesis around them. */
static int note_name(struct statement *s, const char *text)
{
	struct token t = next(&text);

	if (!is_word(&s->after, "AS") || s->after.kind != TOKEN_WORD || !is_sign(&t, '('))
		return 0;
	do
		t = next(&text);
	while (is_sign(&t, '('));
	if (!is_word(&t, "SELECT") && !is_word(&t, "WITH"))
		return 0;
	if (s->name_count == NAMES_MAX)
		return errinfo_set(s->reterr, -EINVAL, "it names more than %d queries", NAMES_MAX);
	s->names[s->name_count].t = s->t;
	s->names[s->name_count++].depth = s->depth;
	return 0;
}

static int check_token(struct statement *s, const char *rest)
{
	int r;

	if (s->t.kind == TOKEN_BAD)
		return errinfo_set(s->reterr, -EINVAL,
			"the statement has a character or escape that is not allowed here: %.20s",
			s->t.at);
	r = meet(s);
	if (r < 0)
		return r;
	if (s->t.kind == TOKEN_SIGN)
		return check_sign(s);
	if (s->t.kind != TOKEN_WORD && s->t.kind != TOKEN_NAME)
		return 0;
	r = note_name(s, rest);
	return r < 0 ? r : check_word(s);
}

int clickhouse_guard_check(const char *text, struct errinfo *reterr)
{
	struct statement s = {.reterr = reterr};
	struct token first;
	const char *begin = text;
	int r = 0;

	if (strlen(text) > CLICKHOUSE_TEXT_MAX)
		return errinfo_set(reterr, -E2BIG, "the statement has more than %u bytes",
			CLICKHOUSE_TEXT_MAX);
	do
		first = next(&begin);
	while (is_sign(&first, '('));
	if (!is_word(&first, "SELECT") && !is_word(&first, "WITH"))
		return errinfo_set(reterr, -EINVAL, "only a query is allowed: begin with SELECT");
	for (s.t = next(&text); r == 0 && s.t.kind != TOKEN_END; s.t = s.after) {
		s.after = s.t.kind == TOKEN_BAD ? s.t : next(&text);
		r = check_token(&s, text);
		memmove(s.before + 1, s.before, 2 * sizeof(s.before[0]));
		s.before[0] = s.t;
	}
	if (r == 0 && s.expected != ANYTHING)
		r = errinfo_set(reterr, -EINVAL, "the statement is incomplete");
	return r;
}

/* ---- names ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int clickhouse_guard_name(
	const char *base, const struct store_scope *scope, struct buf *ret, struct errinfo *reterr)
{
	_cleanup_free_ const char **sorted = NULL;

	buf_puts(ret, base);
	if (!scope || !scope->clusters)
		return ret->err;
	if (scope->cluster_count == 0)
		return errinfo_set(reterr, -EPERM, "no cluster may be queried with this token");
	sorted = calloc(scope->cluster_count, sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, scope->clusters, scope->cluster_count * sizeof(*sorted));
	SORT(sorted, scope->cluster_count, by_text);
	for (size_t i = 0; i < scope->cluster_count; i++)
		if (i == 0 || strcmp(sorted[i - 1], sorted[i]) != 0) {
			const char *cluster = sorted[i];

			/* "__" stands between clusters; in them, "_" is always followed by two digits. */
			buf_puts(ret, "__");
			for (; *cluster; cluster++) {
				if (isalnum((unsigned char)*cluster))
					buf_putc(ret, *cluster);
				else
					buf_printf(ret, "_%02x", (unsigned char)*cluster);
			}
		}
	if (ret->err || ret->len > CLICKHOUSE_NAME_MAX)
		return errinfo_set(
			reterr, -E2BIG, "SQL cannot query so many clusters at once: give fewer");
	return 0;
}
