/* SPDX-License-Identifier: Apache-2.0 */
/* test_kernel_sentence.c - kernels that an incident's launches were of. */
#include "verdict.h"

#include "diagnose/chains/kernel_type.h"
#include "base/macros.h"

static void test_short_names(void **state)
{
	static const struct {
		const char *full, *brief;
	} rows[] = {
		{"softmax_warp_forward", "softmax_warp_forward"},
		{"triton_poi_fused_add_0", "triton_poi_fused_add_0"},
		{"void at::native::elementwise_k<float, 4>(float*, int)",
			"at::native::elementwise_k"},
		{"jit_scale(float*, int)", "jit_scale"},
		{"void at::native::(anonymous namespace)::gather<int>(int)", "at::native::gather"},
		{"void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256>(cutlass_80_simt::Params)",
			"cutlass_80_simt_sgemm_128x256"},
		{"void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<int> >(int)",
			"cutlass::gemm::kernel::GemmUniversal"},
		{"cutlass::Kernel", "cutlass::Kernel"},
		{"", ""},
	};
	char out[KERNEL_SHORT_MAX], longest[400];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(kernel_name_short(rows[i].full, out), rows[i].brief);
	memset(longest, 'k', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	kernel_name_short(longest, out);
	assert_true(strlen(out) < KERNEL_SHORT_MAX);
	assert_non_null(strstr(out, "k…"));
}

static struct event launch(uint64_t function)
{
	return (struct event){.source = SOURCE_CUDA, .op = CUDA_LAUNCH, .pid = 7, .arg0 = function};
}

static const char *name_of(void *arg, uint32_t pid, uint64_t function)
{
	assert_int_equal(pid, 7);
	return function == 0x30 ? "void softmax<float>(float*)" : function == 0x10 ? "add" : NULL;
}

/* Whether rows have numbers (a file) or not yet (live), the sentence is the same. */
static void test_the_sentence(void **state)
{
	static const uint64_t functions[] = {0x10, 0x20, 0x30, 0x30, 0x20, 0x30, 0x30};
	struct event nested = launch(0x10),
		     other = {.source = SOURCE_CUDA, .op = CUDA_MALLOC, .arg0 = 64};
	struct incident inc = {.pid = 7, .explanation = "Slow."};

	nested.flags = WIRE_NESTED;
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		struct event e = launch(functions[i]);

		kernel_note(&inc, &e);
		kernel_note(&inc, &nested);
		kernel_note(&inc, &other);
	}
	assert_int_equal(inc.launch_count, 3);
	kernel_sentence_put(&inc, name_of, NULL);
	assert_string_equal(
		inc.explanation, "Slow. Kernel of the launches that show it: softmax (4 of 7).");
}

/* Launches that fail, as a file has them, and as the tracer sees them before they are stored. */
static struct incident failed_launches(bool is_live)
{
	SCENE;
	for (int i = 0; i < 400; i++) {
		struct event *e = scene_call(&s, CUDA_LAUNCH, i * 50000, 20);

		e->arg0 = 0x30;
		e->ret = i < 200 ? 0 : 700;
		e->seq = is_live ? 0 : e->seq;
	}
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_int_equal(v.count, 1);
	return v.list[0];
}

static void test_live_as_from_the_file(void **state)
{
	struct incident file = failed_launches(false), live = failed_launches(true);

	assert_true(file.evidence_count == INCIDENT_EVIDENCE && !file.unnumbered);
	assert_true(!live.evidence_count && live.unnumbered == INCIDENT_EVIDENCE);
	assert_int_equal(file.launch_count, 1);
	assert_int_equal(file.launches[0].function, 0x30);
	assert_int_equal(live.launch_count, 1);
	assert_int_equal(live.launches[0].function, 0x30);
	assert_int_equal(live.launches[0].calls, file.launches[0].calls);
}

static void test_nothing_to_name(void **state)
{
	struct incident inc = {.pid = 7, .explanation = "Slow."};
	struct event unnamed = launch(0x20);

	kernel_sentence_put(&inc, name_of, NULL);
	assert_string_equal(inc.explanation, "Slow.");
	kernel_note(&inc, &unnamed);
	kernel_sentence_put(&inc, name_of, NULL);
	assert_string_equal(inc.explanation, "Slow.");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_names),
		cmocka_unit_test(test_the_sentence),
		cmocka_unit_test(test_live_as_from_the_file),
		cmocka_unit_test(test_nothing_to_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
