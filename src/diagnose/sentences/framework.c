/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/sentences/framework.h"

#include <string.h>

#include "base/macros.h"

static const struct {
	enum framework framework;
	const char *part; /* of a Python file's path, or of a library's name */
} marks[] = {
	{FRAMEWORK_TORCH, "/torch/"},
	{FRAMEWORK_TORCH, "libtorch"},
	{FRAMEWORK_TORCH, "libc10"},
	{FRAMEWORK_LIGHTNING, "/lightning/"},
	{FRAMEWORK_LIGHTNING, "/pytorch_lightning/"},
	{FRAMEWORK_JAX, "/jax/"},
	{FRAMEWORK_JAX, "/jaxlib/"},
	{FRAMEWORK_JAX, "/flax/"},
	{FRAMEWORK_JAX, "libjax"},
	{FRAMEWORK_CUPY, "/cupy/"},
	{FRAMEWORK_CUPY, "/cupyx/"},
	{FRAMEWORK_CUPY, "cupy_backends"},
	{FRAMEWORK_TRITON, "/triton/"},
	{FRAMEWORK_TRITON, "libtriton"},
	{FRAMEWORK_TENSORFLOW, "/tensorflow/"},
	{FRAMEWORK_TENSORFLOW, "/keras/"},
	{FRAMEWORK_TENSORFLOW, "libtensorflow"},
};

/* Of an installed package the part from its own folder on: whoever keeps CuPy below /opt/torch has no PyTorch. */
static const char *path_of(const struct stack_frame *f)
{
	const char *path = stack_frame_is_python(f) ? f->py_file : f->file;
	const char *installed = path ? strstr(path, "-packages/") : NULL;

	return installed ? installed + strlen("-packages") : path;
}

static unsigned of_frame(const struct stack_frame *f)
{
	const char *file = path_of(f);
	unsigned found = 0;

	for (size_t i = 0; file && i < ARRAY_SIZE(marks); i++)
		if (strstr(file, marks[i].part))
			found |= FRAMEWORK_BIT(marks[i].framework);
	return found;
}

static unsigned of_stack(const struct recording *rec, uint64_t hash)
{
	const struct stack *s = hash && rec->stacks ? stack_find(rec->stacks, hash) : NULL;
	unsigned found = 0;

	for (size_t i = 0; s && i < s->count; i++)
		found |= of_frame(&s->frames[i]);
	return found;
}

static unsigned of_origin(enum step_origin o)
{
	switch (o) {
	case STEP_BY_OPTIMIZER:
	case STEP_BY_BACKWARD:
	case STEP_BY_LOADER: return FRAMEWORK_BIT(FRAMEWORK_TORCH);
	case STEP_BY_EXECUTE: return FRAMEWORK_BIT(FRAMEWORK_JAX);
	default: return 0;
	}
}

unsigned frameworks_find(const struct recording *rec, const struct step_account *a)
{
	unsigned found = of_origin(a->origin);

	for (int i = 0; i < a->entry_count; i++)
		if (a->entries[i].owner != OWNER_PROCESS)
			found |= of_stack(rec, a->entries[i].stack_hash) |
				 of_stack(rec, a->entries[i].wait_hash);
	if (found & FRAMEWORK_BIT(FRAMEWORK_LIGHTNING))
		found |= FRAMEWORK_BIT(FRAMEWORK_TORCH);
	return found;
}
