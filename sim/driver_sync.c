// SPDX-License-Identifier: Apache-2.0
/* driver_sync.c - the stand-in libcuda: streams, events and waiting. */
#include "driver.h"
#include "event.h"
#include "stream.h"

static CUresult create(CUstream *ret, unsigned flags)
{
	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	if (!ret || (flags & ~CU_STREAM_NON_BLOCKING))
		return SIM_INVALID_VALUE;
	return driver_result(stream_create(!(flags & CU_STREAM_NON_BLOCKING), ret));
}

SIM_EXPORT CUresult cuStreamCreate(CUstream *phStream, unsigned Flags)
{
	DRIVER_BEGIN(cuStreamCreate);
	DRIVER_END(create(phStream, Flags), 0);
}

/* A made stream only: the default one cannot be destroyed. */
static CUresult destroy(CUstream handle)
{
	struct stream *s = stream_of(handle);

	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	if (!s || s == stream_of(NULL))
		return SIM_INVALID_HANDLE;
	stream_destroy(s);
	return SIM_SUCCESS;
}

SIM_EXPORT CUresult cuStreamDestroy_v2(CUstream hStream)
{
	DRIVER_BEGIN(cuStreamDestroy_v2);
	DRIVER_END(destroy(hStream), 0);
}

CUresult driver_stream_sync(CUstream handle)
{
	struct stream *s = stream_of(handle);

	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	if (!s)
		return SIM_INVALID_HANDLE;
	if (driver_breaks_capture(s))
		return SIM_CAPTURE_UNSUPPORTED;
	stream_wait(s, stream_last(s));
	return SIM_SUCCESS;
}

SIM_EXPORT CUresult cuStreamSynchronize(CUstream hStream)
{
	DRIVER_BEGIN(cuStreamSynchronize);
	DRIVER_END(driver_stream_sync(hStream), 0);
}

static CUresult query(CUstream handle)
{
	struct stream *s = stream_of(handle);

	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	if (!s)
		return SIM_INVALID_HANDLE;
	if (driver_breaks_capture(s))
		return SIM_CAPTURE_UNSUPPORTED;
	return stream_has_ended(s, stream_last(s)) ? SIM_SUCCESS : SIM_NOT_READY;
}

SIM_EXPORT CUresult cuStreamQuery(CUstream hStream)
{
	DRIVER_BEGIN(cuStreamQuery);
	DRIVER_END(query(hStream), 0);
}

static CUresult delay(CUstream handle, CUevent event)
{
	struct stream *s = stream_of(handle);

	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	if (!s || event_delay(event, s) < 0)
		return SIM_INVALID_HANDLE;
	return SIM_SUCCESS;
}

SIM_EXPORT CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned Flags)
{
	DRIVER_BEGIN(cuStreamWaitEvent);
	DRIVER_END(delay(hStream, hEvent), 0);
}

SIM_EXPORT CUresult cuCtxSynchronize(void)
{
	DRIVER_BEGIN(cuCtxSynchronize);
	if (!driver_is_ready())
		DRIVER_END(SIM_NOT_INITIALIZED, 0);
	stream_wait_all();
	DRIVER_END(SIM_SUCCESS, 0);
}

SIM_EXPORT CUresult cuEventCreate(CUevent *phEvent, unsigned Flags)
{
	DRIVER_BEGIN(cuEventCreate);
	if (!driver_is_ready())
		DRIVER_END(SIM_NOT_INITIALIZED, 0);
	DRIVER_END(phEvent ? driver_result(event_create(phEvent)) : SIM_INVALID_VALUE, 0);
}

static CUresult record(CUevent event, CUstream handle)
{
	struct stream *s = stream_of(handle);

	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	if (!s || event_record(event, s) < 0)
		return SIM_INVALID_HANDLE;
	return SIM_SUCCESS;
}

SIM_EXPORT CUresult cuEventRecord(CUevent hEvent, CUstream hStream)
{
	DRIVER_BEGIN(cuEventRecord);
	DRIVER_END(record(hEvent, hStream), 0);
}

SIM_EXPORT CUresult cuEventSynchronize(CUevent hEvent)
{
	DRIVER_BEGIN(cuEventSynchronize);
	if (!driver_is_ready())
		DRIVER_END(SIM_NOT_INITIALIZED, 0);
	DRIVER_END(event_wait(hEvent) < 0 ? SIM_INVALID_HANDLE : SIM_SUCCESS, 0);
}

SIM_EXPORT CUresult cuEventQuery(CUevent hEvent)
{
	int r;
	DRIVER_BEGIN(cuEventQuery);

	if (!driver_is_ready())
		DRIVER_END(SIM_NOT_INITIALIZED, 0);
	r = event_query(hEvent);
	DRIVER_END(r < 0 ? SIM_INVALID_HANDLE : r ? SIM_SUCCESS : SIM_NOT_READY, 0);
}

SIM_EXPORT CUresult cuEventDestroy_v2(CUevent hEvent)
{
	DRIVER_BEGIN(cuEventDestroy_v2);
	if (!driver_is_ready())
		DRIVER_END(SIM_NOT_INITIALIZED, 0);
	DRIVER_END(event_destroy(hEvent) < 0 ? SIM_INVALID_HANDLE : SIM_SUCCESS, 0);
}
