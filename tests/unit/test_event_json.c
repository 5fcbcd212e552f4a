/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/event_json.h"

static char *text;
static size_t len;

static struct json_writer begin(FILE **ret)
{
	free(text);
	*ret = open_memstream(&text, &len);
	assert_non_null(*ret);
	return json_writer_to_file(*ret);
}

static void print(const struct event *e, const char *container)
{
	FILE *f;
	struct json_writer w = begin(&f);

	event_json(&w, e, NULL, "n1", container);
	fclose(f);
}

#define HAS(s)   assert_non_null(strstr(text, s))
#define LACKS(s) assert_null(strstr(text, s))

static void rank_0_is_printed_and_none_is_not(void **state)
{
	struct event e = {.start.ns = 1, .pid = 7, .source = SOURCE_CUDA, .op = 3, .comm = "py\"3"};

	print(&e, "");
	HAS("\"node\":\"n1\"");
	HAS("\"process_name\":\"py\\\"3\"");
	LACKS("rank");
	LACKS("world_size");
	LACKS("container_id");
	e.place.known = PLACEMENT_RANK;
	print(&e, "abc");
	HAS("\"rank\":0,");
	LACKS("local_rank");
	HAS("\"container_id\":\"abc\"");
	e.place = (struct placement){.rank = 3, .local_rank = 1, .world_size = 8, .known = 7};
	print(&e, "");
	HAS("\"rank\":3,\"local_rank\":1,\"world_size\":8,");
	assert_int_equal(text[len - 1], '\n');
}

static void coverage_names_every_layer(void **state)
{
	struct process_layers l = {.rows[LAYER_DRIVER] = {.state = LAYER_COVERED, .detail = "x"}};
	FILE *f;
	struct json_writer w = begin(&f);

	event_json_coverage(&w, (wall_time){1}, "n1", 7, "py", &l);
	l.rows[LAYER_RUNTIME].state = LAYER_UNCOVERED;
	event_json_coverage(&w, (wall_time){1}, "n1", 7, "py", &l);
	fclose(f);
	HAS("\"source\":\"ingero\",\"op\":\"coverage\",\"complete\":true,");
	HAS("\"complete\":false");
	HAS("\"driver\":{\"state\":\"covered\",\"detail\":\"x\"}");
	HAS("\"runtime\":{\"state\":\"not_covered\"");
	HAS("\"nccl\":{\"state\":\"absent\"");
	free(text);
	text = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rank_0_is_printed_and_none_is_not),
		cmocka_unit_test(coverage_names_every_layer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
