/* SPDX-License-Identifier: Apache-2.0 */
/* losses.c - see losses.h. */
#include "answer/losses.h"

#include "base/text.h"

#define ROWS_MAX 5000

struct completeness completeness_of(const struct accounting *books)
{
	struct completeness c = {.known = books != NULL};

	if (!books)
		return c;
	c.books = *books;
	for (unsigned i = 0; i < WIRE_SOURCE_MAX; i++) {
		c.hits += books->source[i].hits;
		c.stored += books->source[i].stored;
		c.aggregated += books->source[i].aggregated;
		c.lost += account_lost(&books->source[i]);
	}
	return c;
}

double completeness_share(const struct completeness *c)
{
	double seen = (double)c->stored + (double)c->aggregated, all = seen + (double)c->lost;

	if (!c->known || c->books.unclean)
		return -1;
	return all > 0 ? seen / all : 1;
}

void completeness_text(struct buf *b, const struct completeness *c)
{
	char unseen[CALL_GAP_SENTENCE_MAX];

	if (!c->known) {
		buf_puts(b, "losses unknown");
		return;
	}
	if (accounting_put_unclean(&c->books, b))
		return;
	buf_printf(b, "%s of %s lost", c->lost ? TEXT_COUNT(c->lost) : "none",
		TEXT_PLURAL(c->hits, "events"));
	if (c->books.launch_error > 0) {
		buf_puts(b, "; ");
		accounting_put_launches(&c->books, b);
	}
	if (c->books.unseen.processes) {
		buf_puts(b, "; ");
		text_escape_terminal(
			b, call_gap_sentence(&c->books.unseen, unseen, sizeof(unseen)));
	}
	if (c->books.missing[0]) {
		buf_puts(b, "; not available on this kernel: ");
		text_escape_terminal(b, c->books.missing);
	}
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
		{NODEDB_CPU_LOSSES, &a.cpus}, {NODEDB_CALL_GAPS, &a.unseen},
		{NODEDB_PRUNED, &a.pruned}};
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
	a.total.books.source[0] = (struct account){
		.hits = a.total.hits, .stored = a.total.stored + a.total.aggregated + a.total.lost};
	r = nodedb_snapshot_caveats(q->snapshot, &a.total.books, reterr);
	if (r < 0)
		return r;
	*ret = a;
	a = (struct losses_answer){0};
	return 0;
}

void losses_answer_done(struct losses_answer *a)
{
	sql_table_done(&a->books);
	sql_table_done(&a->losses);
	sql_table_done(&a->cpus);
	sql_table_done(&a->unseen);
	sql_table_done(&a->pruned);
}
