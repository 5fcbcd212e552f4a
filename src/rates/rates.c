/* SPDX-License-Identifier: Apache-2.0 */
/* rates.c - see rates.h. Tables are small (at most 4096 rows), so they are walked. */
#include "rates/rates.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

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

	if (r == 0)
		r = strcmp(x->model, y->model);
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

/* A model's name without its memory: words in lower case, one after the other. "80GB" and "HBM3" are
 * about memory. */
struct model_key {
	char name[RATES_NAME_MAX];
	unsigned long memory_gb; /* 0: not told */
};

static bool is_memory(const char *word, size_t len, unsigned long *ret_gb)
{
	char *end;
	unsigned long gb;

	if (len >= 4 && strncasecmp(word, "HBM", 3) == 0 && isdigit((unsigned char)word[3]))
		return true;
	if (!isdigit((unsigned char)word[0]))
		return false;
	gb = strtoul(word, &end, 10);
	if ((size_t)(end - word) + 2 != len || strncasecmp(end, "GB", 2) != 0)
		return false;
	*ret_gb = gb;
	return true;
}

static struct model_key key_of(const char *model)
{
	struct model_key k = {0};
	size_t at = 0;

	for (const char *p = model; *p;) {
		size_t len = strcspn(p, " -_");

		if (!is_memory(p, len, &k.memory_gb))
			for (size_t i = 0; i < len && at < sizeof(k.name) - 1; i++)
				k.name[at++] = (char)tolower((unsigned char)p[i]);
		p += len + (p[len] != 0);
	}
	return k;
}

/* Of two that both tell their memory it must be the same: 40 GB are not priced as 80. */
static bool keys_fit(const struct model_key *a, const struct model_key *b)
{
	return strcmp(a->name, b->name) == 0 &&
	       (!a->memory_gb || !b->memory_gb || a->memory_gb == b->memory_gb);
}

static const struct rates_row *find_model(
	const struct rates_list *l, const char *provider, bool is_contract, const char *model)
{
	struct model_key key = key_of(model);
	const struct rates_row *near = NULL;
	size_t fits = 0;

	for (size_t i = 0; i < l->count; i++) {
		const struct rates_row *row = &l->rows[i];
		struct model_key other;

		if (row->is_contract != is_contract || strcasecmp(row->provider, provider) != 0)
			continue;
		if (strcmp(row->model, model) == 0)
			return row;
		other = key_of(row->model);
		if (keys_fit(&key, &other)) {
			near = row;
			fits++;
		}
	}
	return fits == 1 ? near : NULL;
}

static double watts_of(const struct rates *r, const char *model)
{
	const struct rates_row *row = find_model(&r->watts, "", false, model);

	return row ? row->value : 0;
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
	const struct rates_row *row = NULL;

	id = id ? id : provider;
	if (!model || !*model)
		return false;
	if (id && *id)
		row = find_model(&r->prices, id, true, model);
	if (!row && id && *id)
		row = find_model(&r->prices, id, false, model);
	if (row) {
		*ret = rate_of(r, row);
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

static bool is_first_of_provider(const struct rates_list *l, size_t i)
{
	return i == 0 || strcmp(l->rows[i].provider, l->rows[i - 1].provider) != 0;
}

size_t rates_provider_count(const struct rates *r)
{
	size_t count = 0;

	for (size_t i = 0; i < r->prices.count; i++)
		count += is_first_of_provider(&r->prices, i);
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
