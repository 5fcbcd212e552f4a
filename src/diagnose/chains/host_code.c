/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/chains/host_code.h"

#include <string.h>

/* Files of Python that work for the GPU passes through, and those that work on the CPU does. */
static const char *const driving_files[] = {"/torch/nn/", "/torch/optim/", "/torch/autograd/",
	"/torch/_tensor.py", "/torch/amp/", "/torch/_ops.py", "/torch/_inductor/",
	"/torch/_dynamo/", "/torch/cuda/", "/torch/distributed/", "/torch/utils/checkpoint.py",
	"/transformers/models/", "/transformers/modeling_utils", "/transformers/integrations/",
	"/torchvision/models/", "/torch_geometric/nn/", "/jax/_src/", "/jaxlib/", "/cupy/",
	"/triton/runtime/", "/triton/backends/", "/flax/", "/tensorflow/python/eager/", NULL};
static const char *const cpu_files[] = {"/torchvision/transforms/", "/torchvision/io/",
	"/torch/utils/data/", "/PIL/", "/numpy/", "/scipy/", "/cv2/", "/pandas/", "/tokenizers/",
	"/transformers/tokenization", "/json/", "/re/", "/sklearn/", "/torchaudio/", NULL};

/* Libraries whose code is there to drive the GPU, and names of what their code for the CPU is called. */
static const char *const driving_libraries[] = {"libtorch_cuda", "libc10_cuda", "libcudart",
	"libcuda.so", "libcublas", "libcudnn", "libnccl", "libtorch", "libc10", "xla_cuda_plugin",
	"pjrt_c_api_gpu", NULL};
static const char *const cpu_symbols[] = {"wrapper_CPU", "CPUKernel", "cpu_kernel", "::CPU", "AVX2",
	"AVX512", "DEFAULT::", "mkldnn", "mkl_", "gomp", "GOMP_", "omp_", NULL};

static bool has_any(const char *text, const char *const *parts)
{
	for (; text && *parts; parts++)
		if (strstr(text, *parts))
			return true;
	return false;
}

bool host_code_drives_gpu(const struct stack *s)
{
	const struct stack_frame *user = stack_user_frame(s);
	bool drives = false;

	/* Beyond the user's frame is who called the user. */
	for (size_t i = 0; i < s->count && &s->frames[i] != user; i++) {
		const struct stack_frame *f = &s->frames[i];

		if (stack_frame_is_python(f)) {
			if (has_any(f->py_file, driving_files)) /* also jax/_src/numpy/ */
				drives = true;
			else if (has_any(f->py_file, cpu_files))
				return false;
		} else {
			if (has_any(f->symbol, cpu_symbols))
				return false;
			drives = drives || has_any(f->file, driving_libraries);
		}
	}
	return drives;
}
