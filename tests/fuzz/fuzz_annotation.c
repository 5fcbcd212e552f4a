/* SPDX-License-Identifier: Apache-2.0 */
/* A line of the annotation socket, and of its answers: what is accepted is an object of strings that
 * is accepted again as it was stored. */
#include <jansson.h>
#include <stdio.h>

#include "record/annotate/annotate.h"
#include "fuzz.h"

static const wall_time now = {1700000000000000000};

static void check_stored(const struct annotation *a)
{
	json_t *labels = json_loads(a->labels, JSON_REJECT_DUPLICATES, NULL), *value;
	_cleanup_buf_ struct buf line = BUF_INIT(2 * ANNOTATION_LINE_MAX);
	_cleanup_free_ struct annotation *again = calloc(1, sizeof(*again));
	struct errinfo e = {0};
	const char *key;

	MUST(again && json_is_object(labels) && json_object_size(labels) > 0);
	json_object_foreach (labels, key, value)
		MUST(json_is_string(value) && strlen(key) <= ANNOTATION_KEY_MAX &&
			json_string_length(value) <= ANNOTATION_VALUE_MAX);
	json_decref(labels);
	MUST(a->time.ns > 0 && a->span_end_ns >= a->span_start_ns);
	buf_printf(&line, "{\"labels\":%s}", a->labels);
	if (line.len >= ANNOTATION_LINE_MAX)
		return;
	MUST(annotate_line_parse(line.data, line.len, now, again, &e) == 0);
	MUST(strcmp(again->labels, a->labels) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ struct annotation *a = malloc(sizeof(*a));
	struct errinfo e = {0};
	int64_t id = -7;
	int r;

	MUST(a);
	memset(a, 0xa5, sizeof(*a));
	r = annotate_line_parse((const char *)data, size, now, a, &e);
	MUST(r == 0 || e.text[0]);
	if (r == 0)
		check_stored(a);
	e = (struct errinfo){0};
	r = annotate_line_parse_answer((const char *)data, size, &id, &e);
	MUST(r == 0 || (id == -7 && e.text[0]));
	return 0;
}
