/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_type.c - see kernel_type.h. Names of libraries follow no standard: these are the words that
 * PyTorch, cuBLAS, cuDNN, CUTLASS and Triton put into theirs. A word that is not there says nothing. */
#include "diagnose/chains/kernel_type.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "wire/op_kind.h"

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

#define ANONYMOUS "(anonymous namespace)"
#define NAMED     2 /* kernels that a sentence names */

/* CUTLASS has a few kernels that are given what they do as their template's argument. */
static const char *skip_wrapper(const char *name)
{
	static const char *const wrappers[] = {"cutlass::Kernel", "cutlass::device_kernel"};
	const char *inner = strchr(name, '<');

	for (size_t i = 0; inner && i < ARRAY_SIZE(wrappers); i++)
		if (strncmp(name, wrappers[i], strlen(wrappers[i])) == 0)
			return inner + 1;
	return name;
}

const char *kernel_name_short(const char *name, char out[KERNEL_SHORT_MAX])
{
	size_t n = 0;

	if (strncmp(name, "void ", 5) == 0)
		name += 5;
	name = skip_wrapper(name);
	while (*name && *name != '<' && n + 4 < KERNEL_SHORT_MAX) {
		size_t skip = strlen(ANONYMOUS "::");

		if (strncmp(name, ANONYMOUS "::", skip) == 0) {
			name += skip;
			continue;
		}
		if (*name == '(' || *name == '>')
			break;
		out[n++] = *name++;
	}
	out[n] = 0;
	if (*name && !strchr("<>(", *name))
		snprintf(out + n, KERNEL_SHORT_MAX - n, "…");
	return out;
}

/* Most launches first. */
void kernel_note(struct incident *inc, const struct event *e)
{
	struct incident_launch *l = inc->launches;
	int i = 0;

	if (!op_kind_is_launch(e->source, e->op) || !e->arg0 || e->flags & WIRE_NESTED)
		return;
	while (i < inc->launch_count && l[i].function != e->arg0)
		i++;
	if (i == INCIDENT_EVIDENCE)
		return;
	if (i == inc->launch_count)
		l[inc->launch_count++] = (struct incident_launch){.function = e->arg0};
	l[i].calls++;
	for (; i && l[i].calls > l[i - 1].calls; i--) {
		struct incident_launch more = l[i];

		l[i] = l[i - 1];
		l[i - 1] = more;
	}
}

/* "Kernel of the launches that show it: softmax_warp_forward (12 of 16)." */
void kernel_sentence_put(struct incident *inc, kernel_namer *name_of, void *arg)
{
	size_t used = strlen(inc->explanation), named = 0, n = 0;
	char text[NAMED * (KERNEL_SHORT_MAX + 64)] = "", name[KERNEL_SHORT_MAX];
	unsigned total = 0;

	for (int i = 0; i < inc->launch_count; i++)
		total += inc->launches[i].calls;
	for (int i = 0; i < inc->launch_count && named < NAMED; i++) {
		const struct incident_launch *l = &inc->launches[i];
		const char *full = name_of(arg, inc->pid, l->function);

		if (!full || !*full || 2 * l->calls < total)
			continue; /* one among many tells nothing */
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s (%u of %u)",
			named ? ", " : "", kernel_name_short(full, name), l->calls, total);
		named++;
	}
	if (named)
		snprintf(inc->explanation + used, sizeof(inc->explanation) - used,
			"%sKernel%s of the launches that show it: %s.", used ? " " : "",
			named > 1 ? "s" : "", text);
}
