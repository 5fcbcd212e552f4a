/* SPDX-License-Identifier: Apache-2.0 */
/* test_flame.c - stacks become one tree; and what is made of it as folded lines. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "base/macros.h"
#include "answer/flame.h"
#include "export/export.h"
#include "stack_fixture.h"
#include "wire/ids.h"

static void fill(struct flame *f)
{
	assert_int_equal(flame_add(f, &stack_a, SOURCE_CUDA, CUDA_STREAM_SYNC, 5000), 0);
	assert_int_equal(flame_add(f, &stack_b, SOURCE_CUDA, CUDA_LAUNCH, 3000), 0);
	assert_int_equal(flame_add(f, &stack_b, SOURCE_CUDA, CUDA_LAUNCH, 1499), 0);
	assert_int_equal(flame_add(f, &stack_c, SOURCE_CUDA, CUDA_MALLOC, 20), 0);
	assert_int_equal(flame_add(f, NULL, SOURCE_NCCL, NCCL_ALL_REDUCE, 9000), 0);
	assert_int_equal(flame_finish(f), 0);
}

/* The call is the leaf: as it stands in the stack, or added. Names hold no ';' and no control. */
static void folded_lines(void **state)
{
	_cleanup_(flame_done) struct flame f = FLAME_INIT;
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	fill(&f);
	folded_text(&b, &f, 1000);
	assert_string_equal(buf_str(&b),
		"train.py:9 <module>;train.py:142 forward;[libfoo.so];"
		"at::native::copy_(at::Tensor&);cudaStreamSynchronize 5\n"
		"train.py:9 <module>;train.py:142 forward;at::native::sum;cudaLaunchKernel 4\n"
		"[no stack];ncclAllReduce 9\n"
		"[unknown];load,\\x1b[2J<b>&\\n;cudaMalloc 1\n");
	buf_clear(&b);
	folded_text(&b, &f, 1);
	assert_non_null(strstr(buf_str(&b), ";cudaLaunchKernel 4499\n"));
}

static void totals_and_order(void **state)
{
	_cleanup_(flame_done) struct flame f = FLAME_INIT;
	uint32_t first;
	size_t seen = 0;

	fill(&f);
	assert_int_equal(f.nodes[0].total, 5000 + 4499 + 20 + 9000);
	first = flame_next(&f, 0, false);
	assert_int_equal(f.nodes[first].total, 9499);
	assert_string_equal(flame_name_of(&f, first)->text, "train.py:9 <module>");
	assert_int_equal(flame_name_of(&f, first)->kind, FLAME_PYTHON);
	/* over its children to its sibling */
	assert_string_equal(flame_name_of(&f, flame_next(&f, first, true))->text, "[no stack]");
	for (uint32_t n = flame_next(&f, 0, false); n; n = flame_next(&f, n, false)) {
		assert_true(f.nodes[n].total <= f.nodes[f.nodes[n].parent].total);
		assert_int_equal(f.nodes[n].depth, f.nodes[f.nodes[n].parent].depth + 1);
		seen++;
	}
	assert_int_equal(seen, f.count - 1);
}

static void kinds(void **state)
{
	static const struct {
		const char *text;
		enum flame_kind kind;
	} wanted[] = {{"forward (train.py:142)", FLAME_PYTHON}, {"[libfoo.so]", FLAME_NATIVE},
		{"cudaStreamSynchronize", FLAME_CALL}, {"cudaLaunchKernel", FLAME_CALL},
		{"at::native::sum", FLAME_NATIVE}};
	_cleanup_(flame_done) struct flame f = FLAME_INIT;

	f.function_first = true;
	fill(&f);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		int found = 0;

		for (size_t k = 0; k < f.name_count; k++)
			found += !strcmp(f.names[k]->text, wanted[i].text) &&
				 f.names[k]->kind == wanted[i].kind;
		if (found != 1)
			fail_msg("%s: %d names", wanted[i].text, found);
	}
}

/* A function that is no probed one keeps its name although it looks like a call. */
static void a_like_named_caller_is_no_call(void **state)
{
	static const struct stack_frame frames[] = {{.symbol = "cudaMallocWrapper"}};
	_cleanup_(flame_done) struct flame f = FLAME_INIT;
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct stack s = {1, frames, 1, ""}, none = {2, frames, 0, ""};

	assert_int_equal(flame_add(&f, &s, SOURCE_CUDA, CUDA_MALLOC, 1), 0);
	assert_int_equal(flame_add(&f, &none, SOURCE_CUDA, CUDA_MALLOC, 2), 0);
	assert_int_equal(flame_finish(&f), 0);
	folded_text(&b, &f, 1);
	assert_string_equal(
		buf_str(&b), "[no stack];cudaMalloc 2\ncudaMallocWrapper;cudaMalloc 1\n");
}

static void ceilings(void **state)
{
	static struct stack_frame frames[STACK_FRAMES_MAX];
	static char names[STACK_FRAMES_MAX][3000];
	_cleanup_(flame_done) struct flame f = FLAME_INIT;
	_cleanup_buf_ struct buf b = BUF_INIT(4 << 20);
	struct stack s = {1, frames, STACK_FRAMES_MAX, ""};

	for (int i = 0; i < STACK_FRAMES_MAX; i++) {
		memset(names[i], 'a' + i % 26, sizeof(names[i]) - 1);
		frames[i].symbol = names[i];
	}
	assert_int_equal(flame_add(&f, &s, SOURCE_CUDA, CUDA_MALLOC, UINT64_MAX), 0);
	assert_int_equal(flame_add(&f, &s, SOURCE_CUDA, CUDA_FREE, UINT64_MAX), 0);
	assert_int_equal(flame_finish(&f), 0);
	assert_true(f.nodes[0].total == UINT64_MAX);
	folded_text(&b, &f, 1000);
	assert_int_equal(b.err, 0);
	assert_in_range(b.len, 2 * STACK_FRAMES_MAX * FLAME_NAME_MAX, 2 * STACK_FRAMES_MAX * 1040);
}

static void an_empty_tree(void **state)
{
	_cleanup_(flame_done) struct flame f = FLAME_INIT;
	_cleanup_buf_ struct buf b = BUF_INIT(16);

	assert_int_equal(flame_finish(&f), 0);
	assert_int_equal(flame_next(&f, 0, false), 0);
	folded_text(&b, &f, 1);
	assert_int_equal(b.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folded_lines),
		cmocka_unit_test(totals_and_order),
		cmocka_unit_test(kinds),
		cmocka_unit_test(a_like_named_caller_is_no_call),
		cmocka_unit_test(ceilings),
		cmocka_unit_test(an_empty_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
