/* SPDX-License-Identifier: Apache-2.0 */
/* rates_parse.c - gpu_rates.yaml: what it may hold is the table of keys below. Everything is checked,
 * because money is reckoned with it: an unknown key, a name or price that makes no sense, a row that
 * stands twice are errors with their line. */

#include "base/array.h"
#include "base/search.h"
#include "base/text.h"
#include "rates/rates_table.h"
#include "yaml/yaml_tree.h"

#define PRICE_MAX 1000 /* an hour of one GPU */
#define WATTS_MAX 10000

/* A name must be plain text: it is shown to people and sent on. */
static int take_text(
	const struct yaml_value *at, const char *what, const char *text, char *out, size_t size)
{
	_cleanup_buf_ struct buf shown = BUF_INIT(4096);
	size_t len = strlen(text);

	if (!len || len >= size)
		return yaml_fail(at, "%s must have 1 to %zu bytes", what, size - 1);
	text_escape_terminal(&shown, text);
	if (shown.err || shown.len != len)
		return yaml_fail(at, "%s holds characters that cannot be shown", what);
	memcpy(out, text, len + 1);
	return 0;
}

/* Digits and a point: no sign, exponent, inf or nan. */
static int read_number(
	const struct yaml_value *v, const char *what, bool zero_ok, double max, double *ret)
{
	const char *s = v->kind == YAML_TEXT ? v->text : "";
	size_t len = strlen(s);
	char *end;
	double n;

	if (!len || len > 20 || strspn(s, "0123456789.") != len)
		return yaml_fail(v, "%s must be a number such as 2.49, not negative", what);
	n = strtod(s, &end);
	if (*end || end == s)
		return yaml_fail(v, "%s must be a number such as 2.49", what);
	if (n > max)
		return yaml_fail(v, "%s is %s, more than %g is not believed", what, s, max);
	if (n <= 0 && !zero_ok)
		return yaml_fail(v, "%s is 0: leave the row out if it is unknown", what);
	*ret = n;
	return 0;
}

static int row_add(const struct yaml_value *at, struct rates_list *l, const struct rates_row *row)
{
	int r;

	if (EXISTS(i, l->count, rates_row_compare(&l->rows[i], row) == 0))
		return yaml_fail(at, "%s: %s stands twice", row->provider, row->model);
	r = ARRAY_RESERVE(l->rows, l->room, l->count + 1, RATES_ROWS_MAX);
	if (r == -ENOBUFS)
		return yaml_fail(at, "there are more than %d rows", RATES_ROWS_MAX);
	if (r < 0)
		return r;
	l->rows[l->count] = *row;
	l->rows[l->count++].key = rates_key(row->model);
	return 0;
}

/* read_map - @v has names with values, or nothing behind it. */
static int read_map(const struct yaml_value *v)
{
	if (v->kind == YAML_MAP || v->kind == YAML_NOTHING)
		return 0;
	return yaml_fail(v, "%s must contain names with values", v->key);
}

/* read_rows - models and their numbers, which are @what. */
static int read_rows(const struct yaml_value *v, const char *what, double max, struct rates_list *l,
	const struct rates_row *like)
{
	int r = read_map(v);

	for (const struct yaml_value *m = v->first; m && r == 0; m = m->next) {
		struct rates_row row = *like;

		r = take_text(m, "a model's name", m->key, row.model, sizeof(row.model));
		r = r ?: read_number(m, what, false, max, &row.value);
		r = r ?: row_add(m, l, &row);
	}
	return r;
}

static int read_prices(struct rates *rates, const struct yaml_value *v, bool is_contract)
{
	int r = read_map(v);

	for (const struct yaml_value *m = v->first; m && r == 0; m = m->next) {
		struct rates_row like = {.is_contract = is_contract};
		const char *id = rates_provider_id(m->key);

		r = take_text(m, "a provider's name", id ? id : m->key, like.provider,
			sizeof(like.provider));
		r = r ?: read_rows(m, "a price", PRICE_MAX, &rates->prices, &like);
	}
	return r;
}

static const struct key {
	const char *name;
	enum { TEXT, FALLBACK, PROVIDERS, CONTRACTS, WATTS } what;
	size_t offset, size; /* of a text: where it goes */
} keys[] = {
#define PLACE(field) offsetof(struct rates, field), sizeof(((struct rates *)0)->field)
	{"currency_name", TEXT, PLACE(currency)},
	{"currency_symbol", TEXT, PLACE(symbol)},
	{"as_of", TEXT, PLACE(as_of)},
#undef PLACE
	{"fallback_rate", FALLBACK, 0, 0},
	{"providers", PROVIDERS, 0, 0},
	{"contracts", CONTRACTS, 0, 0},
	{"watts", WATTS, 0, 0},
};

static int read_key(struct rates *rates, const struct yaml_value *v)
{
	const struct key *k = keys;
	const char *text;
	int r;

	while (k < keys + ARRAY_SIZE(keys) && strcmp(k->name, v->key) != 0)
		k++;
	if (k == keys + ARRAY_SIZE(keys))
		return yaml_fail(v, "unknown key '%.60s'", v->key);
	switch (k->what) {
	case FALLBACK: return read_number(v, v->key, true, PRICE_MAX, &rates->fallback);
	case PROVIDERS:
	case CONTRACTS: return read_prices(rates, v, k->what == CONTRACTS);
	case WATTS: return read_rows(v, "watts", WATTS_MAX, &rates->watts, &(struct rates_row){0});
	case TEXT: break;
	}
	r = yaml_text(v, &text);
	return r ?: take_text(v, v->key, text, (char *)rates + k->offset, k->size);
}

static int read_root(struct rates *rates, const struct yaml_value *root)
{
	int r = 0;

	if (root->kind != YAML_MAP)
		return yaml_fail(root, "expected a key such as `providers:` here");
	for (const struct yaml_value *v = root->first; v && r == 0; v = v->next)
		r = read_key(rates, v);
	if (r == 0 && !rates->prices.count)
		return yaml_fail(root, "there is no price in it");
	return r;
}

int rates_parse_named(
	const char *name, const char *text, size_t len, struct rates **ret, struct errinfo *reterr)
{
	_cleanup_(rates_freep) struct rates *rates = calloc(1, sizeof(*rates));
	_cleanup_(yaml_tree_freep) struct yaml_tree *tree = NULL;
	struct errinfo e = {0};
	int r;

	if (len > RATES_BYTES_MAX)
		return errinfo_set_exit(
			reterr, EXIT_BAD_DATA, -EINVAL, "%s: it is over 1 MiB", name);
	if (!rates)
		return errinfo_set(reterr, -ENOMEM, "not enough memory");
	snprintf(rates->currency, sizeof(rates->currency), "USD");
	snprintf(rates->symbol, sizeof(rates->symbol), "$");
	r = yaml_tree_read(name, text, len, &tree, &e);
	r = r ?: read_root(rates, yaml_tree_root(tree));
	if (r == -EINVAL) /* it is data, not configuration */
		return errinfo_set_exit(reterr, EXIT_BAD_DATA, r, "%s", e.text);
	if (r < 0)
		return errinfo_set(reterr, r, "%s", e.text[0] ? e.text : "not enough memory");
	SORT(rates->prices.rows, rates->prices.count, rates_row_compare);
	*ret = TAKE(rates);
	return 0;
}

int rates_parse(const char *text, size_t len, struct rates **ret, struct errinfo *reterr)
{
	return rates_parse_named("gpu_rates.yaml", text, len, ret, reterr);
}
