// SPDX-License-Identifier: Apache-2.0
/* driver_map.c - the stand-in libcuda: memory made and mapped in two steps, pools and pitches.
 *
 * An allocation made by cuMemCreate() counts as device memory; its handle is its address in that
 * pool. Reserved addresses come from a pool of their own, which is not counted; what is written
 * there is kept whether or not something is mapped. */
#include "driver.h"
#include "stream.h"

#define GRANULARITY (2ULL << 20)
#define PITCH       512

static char pools[16]; /* a pool's handle is the address of its device's byte */

static CUresult create(CUmemGenericAllocationHandle *ret, size_t size, const void *prop)
{
	uintptr_t start;
	int r;

	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	if (!ret || !prop || size % GRANULARITY != 0)
		return SIM_INVALID_VALUE;
	r = memory_alloc(&driver_device_memory, size, &start);
	if (r == 0)
		*ret = start;
	return driver_result(r);
}

SIM_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	DRIVER_BEGIN(cuMemCreate);
	DRIVER_END(create(handle, size, prop), size);
}

SIM_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	DRIVER_BEGIN(cuMemRelease);
	if (!driver_is_ready())
		DRIVER_END(SIM_NOT_INITIALIZED, 0);
	DRIVER_END(driver_result(memory_free(&driver_device_memory, (uintptr_t)handle)), 0);
}

static CUresult reserve(CUdeviceptr *ret, size_t size)
{
	uintptr_t start;
	int r;

	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	if (!ret || size % GRANULARITY != 0)
		return SIM_INVALID_VALUE;
	r = memory_alloc(&driver_address_space, size, &start);
	if (r == 0)
		*ret = start;
	return driver_result(r);
}

SIM_EXPORT CUresult cuMemAddressReserve(
	CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags)
{
	DRIVER_BEGIN(cuMemAddressReserve);
	DRIVER_END(reserve(ptr, size), 0);
}

SIM_EXPORT CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	DRIVER_BEGIN(cuMemAddressFree);
	if (!driver_is_ready())
		DRIVER_END(SIM_NOT_INITIALIZED, 0);
	DRIVER_END(driver_result(memory_free(&driver_address_space, (uintptr_t)ptr)), 0);
}

static bool is_reserved(CUdeviceptr ptr, size_t size)
{
	return size && memory_span(&driver_address_space, (uintptr_t)ptr, true) >= size;
}

SIM_EXPORT CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	DRIVER_BEGIN(cuMemMap);
	if (!driver_is_ready())
		DRIVER_END(SIM_NOT_INITIALIZED, size);
	if (offset != 0 || !is_reserved(ptr, size) ||
		memory_span(&driver_device_memory, (uintptr_t)handle, false) < size)
		DRIVER_END(SIM_INVALID_VALUE, size);
	DRIVER_END(SIM_SUCCESS, size);
}

SIM_EXPORT CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	DRIVER_BEGIN(cuMemUnmap);
	if (!driver_is_ready())
		DRIVER_END(SIM_NOT_INITIALIZED, size);
	DRIVER_END(is_reserved(ptr, size) ? SIM_SUCCESS : SIM_INVALID_VALUE, size);
}

static CUresult pitch_alloc(CUdeviceptr *ret, size_t *ret_pitch, size_t width, size_t height)
{
	size_t pitch = (width + PITCH - 1) / PITCH * PITCH, size;
	uintptr_t start;
	int r;

	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	if (!ret || !ret_pitch || pitch < width || __builtin_mul_overflow(pitch, height, &size))
		return SIM_INVALID_VALUE;
	r = memory_alloc(&driver_device_memory, size, &start);
	if (r == 0) {
		*ret = start;
		*ret_pitch = pitch;
	}
	return driver_result(r);
}

SIM_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
	size_t Height, unsigned ElementSizeBytes)
{
	DRIVER_BEGIN(cuMemAllocPitch_v2);
	DRIVER_END(pitch_alloc(dptr, pPitch, WidthInBytes, Height), WidthInBytes * Height);
}

SIM_EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
	DRIVER_BEGIN(cuDeviceGetDefaultMemPool);
	if (!driver_is_ready())
		DRIVER_END(SIM_NOT_INITIALIZED, 0);
	if (!pool_out || dev < 0 || (size_t)dev >= sizeof(pools))
		DRIVER_END(SIM_INVALID_VALUE, 0);
	*pool_out = (CUmemoryPool)&pools[dev];
	DRIVER_END(SIM_SUCCESS, 0);
}

SIM_EXPORT CUresult cuMemAllocFromPoolAsync(
	CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	uintptr_t p = (uintptr_t)pool, base = (uintptr_t)pools;
	DRIVER_BEGIN(cuMemAllocFromPoolAsync);

	if (p < base || p >= base + sizeof(pools))
		DRIVER_END(SIM_INVALID_VALUE, bytesize);
	DRIVER_END(driver_stream_alloc(dptr, bytesize, hStream), bytesize);
}
