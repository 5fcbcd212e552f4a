/* SPDX-License-Identifier: Apache-2.0 */
/* host_code.h - what host code does: drive the GPU, or something else while the GPU has nothing to do. */
#pragma once

#include "diagnose/recording.h"
#include "model/step_account.h"

/* host_code_drives_gpu - whether the thread prepares or starts work for the GPU there: it is in a framework's layers,
 * its dispatcher or the CUDA libraries. Work that a framework does on the CPU (transforms of images, kernels for the
 * CPU) is not, nor is what has no stack (NULL). host_code_drives - whether an entry's thread does; NULL: it does not. */
bool host_code_drives_gpu(const struct stack *s);
bool host_code_drives(const struct recording *rec, const struct account_entry *e);
