/* SPDX-License-Identifier: Apache-2.0 */
/* framework.h - what a program computes with, known by its stacks and by how its steps were found. Advice that names
 * the function to call is only good for who has that function. */
#pragma once

#include "diagnose/compose/correlate.h"

/* X(NAME, name) */
#define FRAMEWORKS(X)                                                                              \
	X(TORCH, "PyTorch")                                                                        \
	X(LIGHTNING, "Lightning")                                                                  \
	X(JAX, "JAX")                                                                              \
	X(CUPY, "CuPy")                                                                            \
	X(TRITON, "Triton")                                                                        \
	X(TENSORFLOW, "TensorFlow")

enum framework {
#define X(NAME, name) FRAMEWORK_##NAME,
	FRAMEWORKS(X)
#undef X
		FRAMEWORK_COUNT
};

#define FRAMEWORK_BIT(f) (1u << (f))

/* frameworks_find - bits of those that the stacks of @a go through; Lightning is PyTorch as well. */
unsigned frameworks_find(const struct recording *rec, const struct step_account *a);

const char *framework_name(enum framework f);
