/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_type.c - see kernel_type.h. Names of libraries follow no standard: these are the words that
 * PyTorch, cuBLAS, cuDNN, CUTLASS and Triton put into theirs. A word that is not there says nothing. */
#include "diagnose/chains/kernel_type.h"

#include <stddef.h>
#include <string.h>

#include "base/macros.h"

static const struct {
	const char *word;
	enum kernel_type type;
} words[] = {
	{"e4m3", KERNEL_OF_FP8},
	{"e5m2", KERNEL_OF_FP8},
	{"fp8", KERNEL_OF_FP8},
	{"bf16", KERNEL_OF_BF16},
	{"bfloat16", KERNEL_OF_BF16},
	{"BFloat16", KERNEL_OF_BF16},
	{"fp16", KERNEL_OF_FP16},
	{"f16f16", KERNEL_OF_FP16},
	{"_f16", KERNEL_OF_FP16},
	{"_h16816gemm", KERNEL_OF_FP16},
	{"hgemm", KERNEL_OF_FP16},
	{"__half", KERNEL_OF_FP16},
	{"c10::Half", KERNEL_OF_FP16},
	{"_tst_", KERNEL_OF_BF16}, /* cuBLAS's nvjet kernels: of in- and output */
	{"_tss_", KERNEL_OF_BF16},
	{"_hsh_", KERNEL_OF_FP16},
	{"_hss_", KERNEL_OF_FP16},
	{"tf32", KERNEL_OF_TF32},
	{"dgemm", KERNEL_OF_FP64},
	{"d884", KERNEL_OF_FP64},
	{"f64f64", KERNEL_OF_FP64},
	{"<double", KERNEL_OF_FP64},
	{"sgemm", KERNEL_OF_FP32},
	{"f32f32", KERNEL_OF_FP32},
	{"fp32", KERNEL_OF_FP32},
	{"_f32", KERNEL_OF_FP32},
	{"<float", KERNEL_OF_FP32},
	{" float", KERNEL_OF_FP32},
};

enum kernel_type kernel_type_of(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(words); i++)
		if (strstr(name, words[i].word))
			return words[i].type;
	return KERNEL_OF_UNKNOWN;
}

const char *kernel_type_text(enum kernel_type t)
{
	static const char *const texts[] = {
#define X(NAME, text) [KERNEL_OF_##NAME] = text,
		KERNEL_TYPES(X)
#undef X
	};

	return texts[t];
}

bool kernel_is_attention(const char *name)
{
	return name && (strstr(name, "fmha") || strstr(name, "flash") || strstr(name, "ttention") ||
			       strstr(name, "sdpa"));
}

bool kernel_is_matrix(const char *name)
{
	static const char *const marks[] = {"gemm", "cutlass", "nvjet", "conv", "wgrad", "dgrad"};

	for (size_t i = 0; name && i < ARRAY_SIZE(marks); i++)
		if (strstr(name, marks[i]))
			return true;
	return kernel_is_attention(name);
}
