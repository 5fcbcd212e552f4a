/* SPDX-License-Identifier: Apache-2.0 */
/* test_kernel_type.c - what names of kernels, as libraries give them, say about their numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/chains/kernel_type.h"
#include "base/macros.h"

static void test_types(void **state)
{
	static const struct {
		const char *name, *type;
		bool is_matrix;
	} rows[] = {
		{"cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_nt_align2", "bf16", true},
		{"void at::native::reduce_kernel<128, 4, at::native::ReduceOp<c10::BFloat16, float> >()",
			"bf16", false},
		{"sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32", "fp16", true},
		{"void softmax_warp_forward<c10::Half, float, float, 7>()", "fp16", false},
		{"sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x64x16", "tf32", true},
		{"sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_ffma", "fp32", true},
		{"cutlass_80_simt_sgemm_128x256_8x4_nt_align1", "fp32", true},
		{"sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n", "fp8", true},
		{"void layer_norm<float, float, false>(int)", "fp32", false},
		{"nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTN", "bf16", true},
		{"fmha_cutlassF_f32_aligned_64x64_rf_sm80()", "fp32", true},
		{"triton_poi_fused_add_0", "", false},
		{"", "", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_string_equal(kernel_type_text(kernel_type_of(rows[i].name)), rows[i].type);
		assert_int_equal(kernel_is_matrix(rows[i].name), rows[i].is_matrix);
	}
	assert_int_equal(kernel_type_of(NULL), KERNEL_OF_UNKNOWN);
	assert_false(kernel_is_matrix(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_types)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
