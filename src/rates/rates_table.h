/* SPDX-License-Identifier: Apache-2.0 */
/* rates_table.h - the table that rates_parse.c fills and rates.c looks into. Private to them. */
#pragma once

#include "rates/rates.h"

#define RATES_ROWS_MAX 4096
#define RATES_NAME_MAX 96 /* bytes of a provider's or model's name with its NUL */
#define RATES_WORD_MAX 8  /* of a currency */
#define RATES_DATE_MAX 32

struct rates_key { /* a model's name in parts: what it is, how it is built in, how much memory it has */
	char name[RATES_NAME_MAX]; /* lower case, without its maker: "h100" */
	char form[8];              /* "pcie", "nvl"; "": SXM, or not told */
	unsigned long memory_gb;   /* 0: not told */
};

struct rates_row {
	char provider[RATES_NAME_MAX]; /* "": of a model, whoever provides it */
	char model[RATES_NAME_MAX];
	struct rates_key key; /* of the model */
	double value;
	bool is_contract;
};

struct rates_list {
	struct rates_row *rows;
	size_t count, room;
};

struct rates {
	char currency[RATES_WORD_MAX], symbol[RATES_WORD_MAX];
	char as_of[RATES_DATE_MAX]; /* "": not told */
	double fallback;
	struct rates_list prices; /* in order: provider, model, contract first */
	struct rates_list watts;
};

extern const char rates_builtin_text[];

/* rates_parse_named - @name stands before what is wrong. */
int rates_parse_named(
	const char *name, const char *text, size_t len, struct rates **ret, struct errinfo *reterr);
struct rates_key rates_key(const char *model);
int rates_row_compare(const void *a, const void *b);
