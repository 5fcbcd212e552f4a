/* SPDX-License-Identifier: Apache-2.0 */
/* losses.c - see losses.h. */
#include "agent/answer/losses.h"

#include "base/text.h"

#define ROWS_MAX 5000

struct completeness completeness_of(const struct accounting *books)
{
	struct completeness c = {.known = books != NULL};

	for (unsigned i = 0; books && i < WIRE_SOURCE_MAX; i++) {
		c.hits += books->source[i].hits;
		c.stored += books->source[i].stored;
		c.aggregated += books->source[i].aggregated;
		c.lost += account_lost(&books->source[i]);
	}
	return c;
}

double completeness_share(const struct completeness *c)
{
	return c->hits ? MAX(1 - (double)c->lost / (double)c->hits, 0.0) : 1;
}

void completeness_text(struct buf *b, const struct completeness *c)
{
	char text[TEXT_MAX], of[TEXT_MAX];

	if (c->known)
		buf_printf(b, "%s of %s events lost",
			c->lost ? text_format_count(text, c->lost) : "none",
			text_format_count(of, c->hits));
	else
		buf_puts(b, "losses not known");
}

/* Absurd numbers of a damaged file must not overflow a sum. */
static uint64_t sum_of(const struct sql_table *t, int column)
{
	double sum = 0;

	for (size_t i = 0; i < t->row_count; i++)
		sum += table_real(t, i, column);
	return sum > 0 && sum < 9e18 ? (uint64_t)sum : 0;
}

bool losses_balance(const struct sql_table *books, size_t row)
{
	return table_real(books, row, LOSSES_HITS) ==
	       table_real(books, row, LOSSES_STORED) + table_real(books, row, LOSSES_AGGREGATED) +
		       table_real(books, row, LOSSES_LOST);
}

int answer_losses(const struct question *q, struct losses_answer *ret, struct errinfo *reterr)
{
	_cleanup_(losses_answer_done) struct losses_answer a = {.balances = true};
	struct scope scope = {.node = q->scope.node};
	const struct {
		enum nodedb_list list;
		struct sql_table *table;
	} tables[] = {{NODEDB_ACCOUNTING, &a.books}, {NODEDB_LOSSES, &a.losses},
		{NODEDB_CPU_LOSSES, &a.cpus}, {NODEDB_PRUNED, &a.pruned}};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(tables); i++) {
		r = nodedb_snapshot_list(
			q->snapshot, tables[i].list, &scope, ROWS_MAX, tables[i].table, reterr);
		a.truncated = a.truncated || tables[i].table->truncated;
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < a.books.row_count; i++)
		a.balances = a.balances && losses_balance(&a.books, i);
	a.total = (struct completeness){.known = a.books.row_count > 0,
		.hits = sum_of(&a.books, LOSSES_HITS),
		.stored = sum_of(&a.books, LOSSES_STORED),
		.aggregated = sum_of(&a.books, LOSSES_AGGREGATED),
		.lost = sum_of(&a.books, LOSSES_LOST)};
	*ret = a;
	a = (struct losses_answer){0};
	return 0;
}

void losses_answer_done(struct losses_answer *a)
{
	sql_table_done(&a->books);
	sql_table_done(&a->losses);
	sql_table_done(&a->cpus);
	sql_table_done(&a->pruned);
}
