// SPDX-License-Identifier: Apache-2.0
/* driver_graph.c - the stand-in libcuda: capture, graphs and their launches. */
#include <errno.h>

#include "driver.h"
#include "graph.h"

enum { UPDATE_SUCCESS = 0, UPDATE_TOPOLOGY_CHANGED = 2 };

static CUresult capture_begin(CUstream handle, int mode)
{
	struct stream *s = stream_of(handle);
	int r;

	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	if (mode < 0 || mode > 2)
		return SIM_INVALID_VALUE;
	if (!s)
		return SIM_INVALID_HANDLE;
	if (s == stream_of(NULL))
		return SIM_CAPTURE_UNSUPPORTED; /* the legacy stream cannot be captured */
	r = stream_capture_begin(s);
	return r == -EBUSY ? SIM_ILLEGAL_STATE : driver_result(r);
}

SIM_EXPORT CUresult cuStreamBeginCapture_v2(CUstream hStream, int mode)
{
	DRIVER_BEGIN(cuStreamBeginCapture_v2);
	DRIVER_END(capture_begin(hStream, mode), 0);
}

/* A new handle for the caller's reference; on failure the reference is given up. */
static CUresult handle_make(enum graph_kind kind, struct graph_body *b, void **ret)
{
	int r = graph_put(kind, b, ret);

	if (r < 0)
		graph_body_unref(b);
	return driver_result(r);
}

static CUresult capture_end(CUstream handle, CUgraph *ret)
{
	struct stream *s = stream_of(handle);
	struct graph_body *body;
	int r;

	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	if (!ret)
		return SIM_INVALID_VALUE;
	if (!s)
		return SIM_INVALID_HANDLE;
	r = stream_capture_end(s, &body);
	if (r == -ECANCELED)
		return SIM_CAPTURE_INVALIDATED;
	return r < 0 ? SIM_ILLEGAL_STATE : handle_make(GRAPH_TEMPLATE, body, (void **)ret);
}

SIM_EXPORT CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
	DRIVER_BEGIN(cuStreamEndCapture);
	DRIVER_END(capture_end(hStream, phGraph), 0);
}

static CUresult instantiate(CUgraphExec *ret, CUgraph graph)
{
	struct graph_body *b;

	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	b = graph_get(GRAPH_TEMPLATE, graph);
	if (!ret || !b) {
		graph_body_unref(b);
		return SIM_INVALID_VALUE;
	}
	return handle_make(GRAPH_INSTANCE, b, (void **)ret);
}

SIM_EXPORT CUresult cuGraphInstantiateWithFlags(
	CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
	DRIVER_BEGIN(cuGraphInstantiateWithFlags);
	DRIVER_END(instantiate(phGraphExec, hGraph), 0);
}

SIM_EXPORT CUresult cuGraphInstantiateWithParams(
	CUgraphExec *phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	CUresult r;
	DRIVER_BEGIN(cuGraphInstantiateWithParams);

	if (!instantiateParams)
		DRIVER_END(SIM_INVALID_VALUE, 0);
	r = instantiate(phGraphExec, hGraph);
	instantiateParams->hErrNode_out = NULL;
	instantiateParams->result_out = r != SIM_SUCCESS;
	DRIVER_END(r, 0);
}

static CUresult launch(CUgraphExec exec, CUstream handle)
{
	struct stream *s = stream_of(handle);
	struct graph_body *b;
	int r;

	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	if (!s)
		return SIM_INVALID_HANDLE;
	b = graph_get(GRAPH_INSTANCE, exec);
	if (!b)
		return SIM_INVALID_VALUE;
	r = graph_body_launch(b, s);
	graph_body_unref(b);
	return driver_result(r);
}

SIM_EXPORT CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
	DRIVER_BEGIN(cuGraphLaunch);
	DRIVER_END(launch(hGraphExec, hStream), 0);
}

/* Launches under way keep the former body; only later ones run the new. */
static CUresult update(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *ret_info)
{
	struct graph_body *former, *b;
	bool alike;

	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	if (!ret_info)
		return SIM_INVALID_VALUE;
	former = graph_get(GRAPH_INSTANCE, exec);
	b = graph_get(GRAPH_TEMPLATE, graph);
	alike = former && b && graph_body_is_alike(former, b);
	graph_body_unref(former);
	if (!former || !b) {
		graph_body_unref(b);
		return SIM_INVALID_VALUE;
	}
	*ret_info = (CUgraphExecUpdateResultInfo){
		.result = alike ? UPDATE_SUCCESS : UPDATE_TOPOLOGY_CHANGED};
	if (!alike || graph_set(exec, b) < 0) {
		graph_body_unref(b);
		return SIM_GRAPH_UPDATE_FAILURE;
	}
	return SIM_SUCCESS;
}

SIM_EXPORT CUresult cuGraphExecUpdate_v2(
	CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo)
{
	DRIVER_BEGIN(cuGraphExecUpdate_v2);
	DRIVER_END(update(hGraphExec, hGraph, resultInfo), 0);
}

static CUresult drop(enum graph_kind kind, const void *handle)
{
	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	return graph_drop(kind, handle) < 0 ? SIM_INVALID_VALUE : SIM_SUCCESS;
}

SIM_EXPORT CUresult cuGraphDestroy(CUgraph hGraph)
{
	DRIVER_BEGIN(cuGraphDestroy);
	DRIVER_END(drop(GRAPH_TEMPLATE, hGraph), 0);
}

SIM_EXPORT CUresult cuGraphExecDestroy(CUgraphExec hGraphExec)
{
	DRIVER_BEGIN(cuGraphExecDestroy);
	DRIVER_END(drop(GRAPH_INSTANCE, hGraphExec), 0);
}

/* The graph that the capture's end gives is another one. */
SIM_EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
	const CUgraphNode *dependencies, const void *dependencyData, size_t numDependencies,
	int mode)
{
	DRIVER_BEGIN(cuStreamBeginCaptureToGraph);
	DRIVER_END(hGraph ? capture_begin(hStream, mode) : SIM_INVALID_VALUE, 0);
}

static CUresult check_exec(CUgraphExec exec)
{
	struct graph_body *b = driver_is_ready() ? graph_get(GRAPH_INSTANCE, exec) : NULL;

	graph_body_unref(b);
	return b ? SIM_SUCCESS : SIM_INVALID_VALUE;
}

SIM_EXPORT CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream)
{
	DRIVER_BEGIN(cuGraphUpload);
	DRIVER_END(stream_of(hStream) ? check_exec(hGraphExec) : SIM_INVALID_HANDLE, 0);
}

SIM_EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(
	CUgraphExec hGraphExec, CUgraphNode hNode, const void *nodeParams)
{
	DRIVER_BEGIN(cuGraphExecKernelNodeSetParams_v2);
	DRIVER_END(check_exec(hGraphExec), 0);
}
