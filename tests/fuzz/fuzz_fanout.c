/* SPDX-License-Identifier: Apache-2.0 */
/* What another node answers: rows, incidents, its time. Tables are rectangular, kept texts bounded,
 * copied JSON valid. */
#include <jansson.h>
#include <math.h>

#include "fanout/fanout.h"
#include "fanout/fanout_private.h"
#include "fuzz.h"

static void check_table(const char *body, size_t len)
{
	struct fanout_rows nodes[2] = {0};
	static const char *const names[] = {"gpu1", "gpu2"};
	struct sql_table merged = {0};
	struct errinfo e = {0};

	for (size_t i = 0; i < 2; i++)
		if (fanout_table_read(body, len, 100, 1 << 20, &nodes[i], &e) < 0)
			MUST(e.text[0]);
		else
			MUST(nodes[i].table.row_count <= 100);
	if (fanout_table_merge(nodes, names, 2, &merged) == 0)
		for (size_t i = 0; i < merged.row_count * (size_t)merged.column_count; i++)
			if (merged.cells[i].type == SQL_TEXT)
				MUST(merged.cells[i].offset + merged.cells[i].len <=
					merged.text.len);
	sql_table_done(&merged);
	fanout_rows_done(&nodes[0]);
	fanout_rows_done(&nodes[1]);
}

static void check_incidents(const char *body, size_t len)
{
	const struct fanout_source who = {"gpu-1:8080", "gpu1", 0};
	struct fanout_incidents l = {0};
	struct fanout_extent x = {0};
	struct errinfo e = {0};

	if (fanout_incident_read(body, len, &who, &l, &x, &e) < 0)
		MUST(e.text[0] && !l.count);
	fanout_incident_sort(&l);
	for (size_t i = 0; i < l.count; i++) {
		const struct fanout_incident *one = l.items[i];
		json_t *doc = json_loads(one->json, 0, NULL);

		MUST(json_is_object(doc));
		json_decref(doc);
		MUST(one->incident.severity < SEVERITY_COUNT);
		MUST(one->incident.step_count <= INCIDENT_TIMELINE &&
			one->incident.evidence_count <= INCIDENT_EVIDENCE &&
			one->incident.fix_count <= INCIDENT_FIXES);
		MUST(one->where_share >= 0 && one->where_share <= 1);
	}
	fanout_incidents_done(&l);
}

static void check_reply(const char *body, size_t len)
{
	const struct http_response r = {.status = 200,
		.head = {.field = {{"content-type", "application/json"}}, .count = 1},
		.body = body,
		.body_len = len};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct errinfo e = {0};
	int64_t ns;

	fanout_reply_check(&r, true, &e);
	fanout_reply_time(&r, &ns);
	free(fanout_reply_hint(&r));
	if (fanout_reply_copy(&r, &b, &e) == 0) {
		json_t *doc =
			json_loadb(buf_str(&b), b.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

		MUST(doc);
		json_decref(doc);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *body = fuzz_text(data, size);

	check_table(body, size);
	check_incidents(body, size);
	check_reply(body, size);
	return 0;
}
