/* SPDX-License-Identifier: Apache-2.0 */
/* clickhouse_known.c - see clickhouse_known.h. What is here computes from its arguments alone: it reads no file, table,
 * setting or other server, tells nothing of the server or who asks, and waits for nothing. */
#include "cluster/store/clickhouse_known.h"

#include <string.h>
#include <strings.h>

#include "base/macros.h"

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
	for (size_t i = 0; i < count; i++)
		if (strlen(list[i]) == len && !strncasecmp(list[i], word, len))
			return true;
	return false;
}

bool clickhouse_known_keyword(const char *word, size_t len)
{
	return has(keywords, ARRAY_SIZE(keywords), word, len);
}

bool clickhouse_known_function(const char *name, size_t len)
{
	bool is_if = len > 2 && !memcmp(name + len - 2, "If", 2);

	return has(functions, ARRAY_SIZE(functions), name, len) ||
	       has(aggregates, ARRAY_SIZE(aggregates), name, len) ||
	       (is_if && has(aggregates, ARRAY_SIZE(aggregates), name, len - 2));
}
