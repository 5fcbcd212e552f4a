/* SPDX-License-Identifier: Apache-2.0 */
/* framework.h - what a program computes with, known by its stacks and by how its steps were found. Advice that names
 * the function to call is only good for who has that function. */
#pragma once

#include "diagnose/recording.h"

enum framework {
	FRAMEWORK_TORCH,
	FRAMEWORK_LIGHTNING,
	FRAMEWORK_JAX,
	FRAMEWORK_CUPY,
	FRAMEWORK_TRITON,
	FRAMEWORK_TENSORFLOW,
};

#define FRAMEWORK_BIT(f) (1u << (f))

/* frameworks_find - bits of those that the stacks of @a go through; Lightning is PyTorch as well. */
unsigned frameworks_find(const struct recording *rec, const struct step_account *a);
