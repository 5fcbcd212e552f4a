// SPDX-License-Identifier: Apache-2.0
/* stack_archive.cpp - becomes a static library; see stack_objects.cpp. */
#include "stack_archive.hpp"

namespace archive
{
void fetch(std::size_t size)
{
	void *p = nullptr;

	cudaMalloc(&p, size); /* @fetch */
	cudaFree(p);
	__asm__ volatile("" ::: "memory");
}
} // namespace archive
