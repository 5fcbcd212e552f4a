/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - samples of the host over a time. Where there are more than are asked for, the
 * worst of each step stands for it: a peak must not vanish because the page is narrow. */
#include "answer/answer_private.h"

#define POINTS     600
#define POINTS_MAX 5000

static void put_sample(struct json_writer *w, const struct sql_table *s, size_t row)
{
	for (int c = 0; c < s->column_count; c++) {
		const char *key = sql_table_name(s, c);
		enum sql_type type = sql_table_cell(s, row, c)->type;

		if (type == SQL_NULL || (!strcmp(key, "node") && !table_text(s, row, c)[0]))
			continue;
		json_key(w, key);
		table_cell(w, s, row, c);
	}
}

int answer_host(const struct question *q, struct host_answer *ret, struct errinfo *reterr)
{
	struct scope scope = {.to_ns = q->scope.to_ns, .node = q->scope.node};
	_cleanup_(sql_table_done) struct sql_table s = {0};
	int r = nodedb_snapshot_list(q->snapshot, NODEDB_SNAPSHOTS, &scope, 1, &s, reterr);

	if (r < 0)
		return r;
	*ret = (struct host_answer){.known = s.row_count > 0};
	if (!s.row_count)
		return 0;
	ret->cpu_pct = table_real(&s, 0, table_column(&s, "cpu_percent"));
	ret->mem_pct = table_real(&s, 0, table_column(&s, "mem_percent"));
	ret->load1 = table_real(&s, 0, table_column(&s, "load_avg"));
	ret->swap_mb = table_int(&s, 0, table_column(&s, "swap_mb"));
	return 0;
}

int put_system(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	struct scope scope = {.to_ns = q->scope.to_ns, .node = q->scope.node};
	_cleanup_(sql_table_done) struct sql_table s = {0};
	int r = nodedb_snapshot_list(q->snapshot, NODEDB_SNAPSHOTS, &scope, 1, &s, reterr);

	if (r < 0 || !s.row_count)
		return r;
	json_begin_object_member(w, "system");
	put_sample(w, &s, 0);
	json_end_object(w);
	return 0;
}

/* Row @from becomes part of what row @to stands for. */
static void fold(struct sql_table *s, size_t to, size_t from)
{
	int lowest = table_column(s, "mem_avail_mb");

	for (int c = 2; c < s->column_count; c++) { /* after time and node */
		double old = table_real(s, to, c), new = table_real(s, from, c);
		struct sql_cell *cell = &s->cells[to * (size_t)s->column_count + (size_t)c];

		if (sql_table_cell(s, from, c)->type == SQL_NULL)
			continue;
		if (cell->type == SQL_NULL || (c == lowest ? new < old : new > old))
			*cell = *sql_table_cell(s, from, c);
	}
}

/* Newest first in; what is left stands at the front, oldest first. */
static void thin(struct sql_table *s, int64_t first_ns, int64_t step_ns)
{
	size_t columns = (size_t)s->column_count, kept = 0;

	for (size_t i = 0; i < s->row_count / 2; i++)
		for (size_t c = 0; c < columns; c++) {
			struct sql_cell *a = &s->cells[i * columns + c];
			struct sql_cell *b = &s->cells[(s->row_count - 1 - i) * columns + c];
			struct sql_cell swap = *a;

			*a = *b;
			*b = swap;
		}
	for (size_t i = 0; i < s->row_count; i++) {
		int64_t step = (table_int(s, i, 0) - first_ns) / step_ns;
		size_t k = kept;

		while (k > 0 && (table_int(s, k - 1, 0) - first_ns) / step_ns == step &&
			strcmp(table_text(s, k - 1, 1), table_text(s, i, 1)) != 0)
			k--;
		if (k > 0 && (table_int(s, k - 1, 0) - first_ns) / step_ns == step) {
			fold(s, k - 1, i);
			continue;
		}
		memmove(&s->cells[kept * columns], &s->cells[i * columns],
			columns * sizeof(*s->cells));
		kept++;
	}
	s->row_count = kept;
}

int64_t answer_step(const struct question *q, size_t points)
{
	int64_t span = q->scope.to_ns - q->scope.from_ns, second = (int64_t)NS_PER_S;
	int64_t step = span / (int64_t)points + 1;

	return MAX((step + second - 1) / second, INT64_C(1)) * second;
}

int snapshots_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	size_t points = answer_limit(q->request->points, POINTS, POINTS_MAX);
	int64_t step = answer_step(q, points);
	_cleanup_(sql_table_done) struct sql_table s = {0};
	int r = nodedb_snapshot_list(q->snapshot, NODEDB_SNAPSHOTS, &q->scope, 0, &s, reterr);

	if (r < 0)
		return r;
	if (s.row_count)
		thin(&s, q->scope.from_ns, step);
	json_begin_object(w);
	json_int_member(w, "step_ns", step);
	json_begin_array_member(w, "snapshots");
	for (size_t i = 0; i < s.row_count; i++) {
		json_begin_object(w);
		put_sample(w, &s, i);
		json_end_object(w);
	}
	json_end_array(w);
	return answer_end(q, w, s.truncated);
}
