/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "push/push_wire.h"

struct seen {
	size_t count;
	char name[64], node[64], cluster[64], workload[64], event[64], scope[64];
	uint64_t start_ns, end_ns;
	int kind, status;
	uint8_t trace[16], id[8];
};

static void copy(const struct otlp_attributes *a, const char *key, char out[64])
{
	const struct otlp_value *v = otlp_attribute_get(a, key);

	assert_non_null(v);
	assert_int_equal(v->kind, OTLP_TEXT);
	assert_true(v->len < 64);
	memcpy(out, v->text, v->len);
}

static int take(void *arg, const struct otlp_span *s)
{
	struct seen *seen = arg;

	seen->count++;
	memcpy(seen->name, s->name, s->name_len);
	memcpy(seen->scope, s->scope, s->scope_len);
	copy(s->resource, "ingero.node.id", seen->node);
	copy(s->attributes, "ingero.cluster.id", seen->cluster);
	copy(s->attributes, "ingero.workload_type", seen->workload);
	copy(s->attributes, "ingero.event.id", seen->event);
	seen->start_ns = s->start_ns;
	seen->end_ns = s->end_ns;
	seen->kind = s->kind;
	seen->status = s->status;
	memcpy(seen->trace, s->trace, sizeof(seen->trace));
	memcpy(seen->id, s->id, sizeof(seen->id));
	return 0;
}

static const struct push_span episode = {
	.who = {.cluster = "c1", .node = "n1", .rank = 3, .world_size = 8},
	.is_straggler = true,
	.start_ns = 1000,
	.end_ns = 5000,
	.resolved = true,
	.event = "11111111-2222-4333-8444-555555555555",
	.workload = "training",
	.cohort = "0123456789abcdef",
	.trace = {1, 2, 3},
	.id = {4, 5},
};

static struct seen read_back(const struct push_span *s, struct buf *b)
{
	struct seen seen = {0};
	const struct otlp_visitor v = {.arg = &seen, .span = take};
	struct otlp_walk walk = {0};

	push_span_protobuf(b, s);
	assert_int_equal(b->err, 0);
	assert_int_equal(otlp_read(OTLP_TRACES, false, b->data, b->len, &v, &walk, NULL), 0);
	assert_int_equal(walk.taken, 1);
	return seen;
}

static void an_episode_is_a_span(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct seen seen = read_back(&episode, &b);

	assert_int_equal(seen.count, 1);
	assert_string_equal(seen.name, "ingero.detection.straggler");
	assert_string_equal(seen.scope, "ingero.health");
	assert_string_equal(seen.node, "n1");
	assert_string_equal(seen.cluster, "c1");
	assert_string_equal(seen.workload, "training");
	assert_string_equal(seen.event, episode.event);
	assert_int_equal(seen.start_ns, 1000);
	assert_int_equal(seen.end_ns, 5000);
	assert_int_equal(seen.kind, 1);
	assert_memory_equal(seen.trace, episode.trace, 16);
	assert_memory_equal(seen.id, episode.id, 8);
	assert_non_null(memmem(b.data, b.len, "resolved", 8));
}

static void one_that_was_cut_off_has_no_outcome(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct push_span s = episode;
	struct seen seen;

	s.is_straggler = s.resolved = false;
	seen = read_back(&s, &b);
	assert_string_equal(seen.name, "ingero.detection.degradation");
	assert_null(memmem(b.data, b.len, "resolved", 8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_episode_is_a_span),
		cmocka_unit_test(one_that_was_cut_off_has_no_outcome),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
