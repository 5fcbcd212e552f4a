/* SPDX-License-Identifier: Apache-2.0 */
/* bare_runtime.c - a libcudart.so.12 that needs nothing, not even a C library, so that interpreters
 * with another one can load it. Its calls do nothing and succeed. */

int cudaMalloc(void **out, unsigned long size);
int cudaFree(void *p);
int cudaStreamSynchronize(void *stream);

static volatile unsigned long calls;

int cudaMalloc(void **out, unsigned long size)
{
	calls++;
	*out = (void *)(4096 + size);
	return 0;
}

int cudaFree(void *p)
{
	calls++;
	return 0;
}

int cudaStreamSynchronize(void *stream)
{
	calls++;
	return 0;
}
