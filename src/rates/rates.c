/* SPDX-License-Identifier: Apache-2.0 */
/* rates.c - see rates.h. Tables are small (at most 4096 rows), so they are walked. */
#include "rates/rates.h"

#include <ctype.h>
#include <strings.h>

#include "base/search.h"
#include "base/file.h"
#include "base/path_user.h"
#include "rates/rates_table.h"

/* What agents and people call a provider, and what the table does. */
static const struct {
	const char *name, *id;
} aliases[] = {
	{"ec2", "ec2"},
	{"aws", "ec2"},
	{"amazon", "ec2"},
	{"gcp", "gcp"},
	{"gce", "gcp"},
	{"google", "gcp"},
	{"azure", "azure"},
	{"microsoft", "azure"},
	{"lambda", "lambda"},
	{"lambdalabs", "lambda"},
	{"lambda-labs", "lambda"},
	{"coreweave", "coreweave"},
	{"cw", "coreweave"},
	{"oracle", "oracle"},
	{"oci", "oracle"},
	{"runpod", "runpod"},
	{"nebius", "nebius"},
	{"hyperstack", "hyperstack"},
};

const char *rates_provider_id(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(aliases); i++)
		if (strcasecmp(aliases[i].name, name) == 0)
			return aliases[i].id;
	return NULL;
}

int rates_row_compare(const void *a, const void *b)
{
	const struct rates_row *x = a, *y = b;
	int r = strcmp(x->provider, y->provider);

	r = r ?: strcmp(x->model, y->model);
	return r ? r : (int)y->is_contract - (int)x->is_contract;
}

int rates_builtin(struct rates **ret)
{
	return rates_parse(rates_builtin_text, strlen(rates_builtin_text), ret, NULL);
}

int rates_read(const char *path, struct rates **ret, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(RATES_BYTES_MAX + 1);
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	int r = path_user_enter(path, &before, reterr);

	if (r < 0)
		return r;
	r = file_read(path, RATES_BYTES_MAX, &b);
	if (r < 0)
		return errinfo_set(reterr, r, "%s cannot be read: %s", path,
			r == -EFBIG    ? "it is over 1 MiB"
			: r == -EINVAL ? "it is not a regular file"
				       : strerror(-r));
	return rates_parse_named(path, buf_str(&b), b.len, ret, reterr);
}

void rates_free(struct rates *r)
{
	if (!r)
		return;
	free(r->prices.rows);
	free(r->watts.rows);
	free(r);
}

/* How well a row fits, best last. 40 GB are not priced as 80 while some row has 40. */
enum fit { FIT_NONE, FIT_NAME, FIT_MEMORY, FIT_FORM, FIT_EXACT };

static bool is_memory(const char *word, size_t len, unsigned long *ret_gb)
{
	char *end;
	unsigned long gb;

	if (len >= 4 && strncasecmp(word, "HBM", 3) == 0 && isdigit((unsigned char)word[3]))
		return true;
	if (!isdigit((unsigned char)word[0]))
		return false;
	gb = strtoul(word, &end, 10);
	if (strncasecmp(end, "GB", (size_t)(word + len - end)) != 0 || end == word + len)
		return false;
	*ret_gb = gb;
	return true;
}

/* Makers, product lines and kinds of modules, of which prices do not speak. */
static bool is_idle_word(const char *word, size_t len)
{
	static const char *const idle[] = {
		"nvidia", "amd", "tesla", "geforce", "instinct", "oam", "vf", "ac", "lc"};

	return (len == 4 && strncasecmp(word, "SXM", 3) == 0) ||
	       EXISTS(i, ARRAY_SIZE(idle),
		       strlen(idle[i]) == len && strncasecmp(idle[i], word, len) == 0);
}

static bool is_form(const char *word, size_t len, char form[8])
{
	static const char *const forms[] = {"pcie", "nvl"};

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		if (strlen(forms[i]) == len && strncasecmp(forms[i], word, len) == 0) {
			snprintf(form, 8, "%s", forms[i]);
			return true;
		}
	return false;
}

struct rates_key rates_key(const char *model)
{
	struct rates_key k = {0};
	size_t at = 0;

	for (const char *p = model; *p;) {
		size_t len = strcspn(p, " -_");

		if (!is_memory(p, len, &k.memory_gb) && !is_idle_word(p, len) &&
			!is_form(p, len, k.form))
			for (size_t i = 0; i < len && at < sizeof(k.name) - 1; i++)
				k.name[at++] = (char)tolower((unsigned char)p[i]);
		p += len + (p[len] != 0);
	}
	return k;
}

static enum fit fit_of(const char *model, const struct rates_key *key, const struct rates_row *row)
{
	if (!key->name[0] || strcmp(key->name, row->key.name) != 0)
		return FIT_NONE;
	if (strcmp(model, row->model) == 0)
		return FIT_EXACT;
	if (key->memory_gb && row->key.memory_gb && key->memory_gb != row->key.memory_gb)
		return FIT_NAME;
	return strcmp(key->form, row->key.form) == 0 ? FIT_FORM : FIT_MEMORY;
}

struct found {
	const struct rates_row *row; /* the first of them */
	size_t count;
	double middle;
};

ORDER(by_value, double, COMPARE(*x, *y))

/* Those rows of @provider, NULL: of all, that fit @model best, at least as well as @least. */
static struct found find_rows(const struct rates_list *l, const char *provider, bool is_contract,
	const char *model, enum fit least)
{
	struct rates_key key = rates_key(model);
	double values[RATES_ROWS_MAX];
	enum fit best = least;
	struct found f = {0};

	for (size_t i = 0; i < l->count; i++) {
		const struct rates_row *row = &l->rows[i];
		enum fit fit;

		if (row->is_contract != is_contract ||
			(provider && strcasecmp(row->provider, provider) != 0))
			continue;
		fit = fit_of(model, &key, row);
		if (fit < best)
			continue;
		if (fit > best || !f.count)
			f = (struct found){.row = row};
		best = fit;
		values[f.count++] = row->value;
	}
	SORT(values, f.count, by_value);
	if (f.count)
		f.middle = (values[(f.count - 1) / 2] + values[f.count / 2]) / 2;
	return f;
}

/* What is asked for, from the most to the least that is known of it. Memory comes before the provider: another
 * provider's 40 GB are nearer than this one's 80. */
static struct found find_price(const struct rates_list *l, const char *provider, const char *model)
{
	static const enum fit fits[] = {FIT_MEMORY, FIT_NAME};
	struct found f = {0};

	for (size_t i = 0; i < ARRAY_SIZE(fits) && !f.count; i++)
		for (int step = 0; step < 4 && !f.count; step++) {
			bool is_own = step < 2;

			if (!is_own || provider)
				f = find_rows(
					l, is_own ? provider : NULL, step % 2 == 0, model, fits[i]);
		}
	return f;
}

static double watts_of(const struct rates *r, const char *model)
{
	struct found f = find_rows(&r->watts, "", false, model, FIT_NAME);

	return f.middle;
}

static struct rate rate_of(const struct rates *r, const struct rates_row *row)
{
	return (struct rate){.hourly = row->value,
		.currency = r->currency,
		.symbol = r->symbol,
		.provider = row->provider,
		.model = row->model,
		.watts = watts_of(r, row->model),
		.is_contract = row->is_contract};
}

bool rates_find(const struct rates *r, const char *provider, const char *model, struct rate *ret)
{
	const char *id = rates_provider_id(provider);
	struct found f;

	id = id ? id : provider && *provider ? provider : NULL;
	if (!model || !*model)
		return false;
	f = find_price(&r->prices, id, model);
	if (f.count) {
		*ret = rate_of(r, f.row);
		ret->watts = watts_of(r, model);
		ret->hourly = f.middle;
		ret->is_middle = f.count > 1 || !id || strcasecmp(f.row->provider, id) != 0;
		ret->provider = ret->is_middle ? "" : f.row->provider;
		return true;
	}
	if (r->fallback <= 0)
		return false;
	*ret = (struct rate){.hourly = r->fallback,
		.currency = r->currency,
		.symbol = r->symbol,
		.provider = "",
		.model = "",
		.watts = watts_of(r, model),
		.is_fallback = true};
	return true;
}

const char *rates_as_of(const struct rates *r)
{
	return r->as_of;
}

size_t rates_provider_count(const struct rates *r)
{
	size_t count = 0;

	for (size_t i = 0; i < r->prices.count; i++)
		count += i == 0 ||
			 strcmp(r->prices.rows[i].provider, r->prices.rows[i - 1].provider) != 0;
	return count;
}

size_t rates_model_count(const struct rates *r)
{
	size_t count = 0;

	for (size_t i = 0; i < r->prices.count; i++) {
		size_t j = 0;

		while (strcmp(r->prices.rows[j].model, r->prices.rows[i].model) != 0)
			j++;
		count += j == i;
	}
	return count;
}

bool rates_at(const struct rates *r, size_t i, struct rate *ret)
{
	if (i >= r->prices.count)
		return false;
	*ret = rate_of(r, &r->prices.rows[i]);
	return true;
}
