/* SPDX-License-Identifier: Apache-2.0 */
/* stack_archive.h - a function that is linked from a static library; see stack_objects.cpp. */
#pragma once

#include <cstddef>

/* sim/cuda_sim.h is for C */
extern "C" int cudaMalloc(void **out, std::size_t size);
extern "C" int cudaFree(void *p);

namespace archive
{
void fetch(std::size_t size);
}
