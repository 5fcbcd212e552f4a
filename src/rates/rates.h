/* SPDX-License-Identifier: Apache-2.0 */
/* rates.h - what an hour of a GPU costs, by provider and model. An unknown model has no price, which
 * is not the price 0. */
#pragma once

#include "base/errinfo.h"
#include "base/macros.h"

#define RATES_BYTES_MAX (1u << 20)

struct rates;

int rates_builtin(struct rates **ret);
/* rates_parse - YAML (gpu_rates.yaml). -EINVAL with line and reason, exit code 65. */
int rates_parse(const char *text, size_t len, struct rates **ret, struct errinfo *reterr);
int rates_read(const char *path, struct rates **ret, struct errinfo *reterr);
DECLARE_FREE(struct rates, rates_free)

struct rate {
	double hourly;        /* of one GPU */
	const char *currency; /* "USD", "$" */
	const char *symbol;
	const char *provider; /* the table's name of it: "ec2" for "aws"; "": none in particular */
	const char *model;    /* the row that was used, or one of them */
	double watts;         /* of one GPU at full load; 0: not known */
	bool is_contract;     /* not a list price */
	bool is_middle;   /* the middle of several rows: the provider, or its price, is not known */
	bool is_fallback; /* the table's fallback_rate, which somebody has set above 0 */
};

/* rates_find - false: no row is of that model, and no fallback is set: unpriced. @model verbatim from the driver.
 * The first of these that there is: the row of @provider, as agents or people say it (aws, ec2, gcp, …); the
 * middle of what the others list; the fallback. A name fits without regard to case, maker, form (SXM, PCIe) and
 * memory where no row has the same; contracts win over list prices. "" or NULL: the provider is not known. */
bool rates_find(const struct rates *r, const char *provider, const char *model, struct rate *ret);
const char *rates_provider_id(const char *name); /* "aws" -> "ec2"; NULL: none of the known */
const char *rates_as_of(
	const struct rates *r); /* date of the list prices, as the file says it; "" */
size_t rates_provider_count(const struct rates *r);
size_t rates_model_count(const struct rates *r);
/* rates_at - the i-th row, by provider and model; false at the end. */
bool rates_at(const struct rates *r, size_t i, struct rate *ret);
