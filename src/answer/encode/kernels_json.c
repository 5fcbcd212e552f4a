/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_json.c - /api/v1/kernels. */
#include "answer/answer_private.h"
#include "answer/kernels.h"

#define KERNELS     50
#define KERNELS_MAX 1000

int kernels_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table k = {0};
	size_t limit = answer_limit(q->request->limit, KERNELS, KERNELS_MAX);
	int r = answer_kernels(q, limit, &k, reterr);

	if (r < 0)
		return r;
	json_begin_object(w);
	json_begin_array_member(w, "kernels");
	for (size_t i = 0; i < k.row_count; i++) {
		json_begin_object(w);
		json_string_member(w, "name", table_text(&k, i, table_column(&k, "name")));
		json_string_member(w, "origin", table_text(&k, i, table_column(&k, "origin")));
		json_int_member(w, "launches", table_int(&k, i, table_column(&k, "launches")));
		json_int_member(w, "processes", table_int(&k, i, table_column(&k, "processes")));
		json_end_object(w);
	}
	json_end_array(w);
	json_uint_member(w, "sampled_one_in", 16);
	return answer_end(q, w, k.truncated);
}
