// SPDX-License-Identifier: Apache-2.0
/* runtime_graph.c - the stand-in libcudart: capture, graphs and their launches. */
#include "runtime.h"

SIM_EXPORT cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode)
{
	RUNTIME_BEGIN(cudaStreamBeginCapture, 0);
	RUNTIME_END(DRIVER(cuStreamBeginCapture_v2(stream, mode)), 0);
}

SIM_EXPORT cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph)
{
	RUNTIME_BEGIN(cudaStreamEndCapture, 0);
	RUNTIME_END(DRIVER(cuStreamEndCapture(stream, pGraph)), 0);
}

SIM_EXPORT cudaError_t cudaGraphInstantiate(
	cudaGraphExec_t *pGraphExec, cudaGraph_t graph, unsigned long long flags)
{
	RUNTIME_BEGIN(cudaGraphInstantiate, 0);
	RUNTIME_END(DRIVER(cuGraphInstantiateWithFlags(pGraphExec, graph, flags)), 0);
}

SIM_EXPORT cudaError_t cudaGraphInstantiateWithFlags(
	cudaGraphExec_t *pGraphExec, cudaGraph_t graph, unsigned long long flags)
{
	RUNTIME_BEGIN(cudaGraphInstantiateWithFlags, 0);
	RUNTIME_END(DRIVER(cuGraphInstantiateWithFlags(pGraphExec, graph, flags)), 0);
}

SIM_EXPORT cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *pGraphExec,
	cudaGraph_t graph, cudaGraphInstantiateParams *instantiateParams)
{
	RUNTIME_BEGIN(cudaGraphInstantiateWithParams, 0);
	RUNTIME_END(DRIVER(cuGraphInstantiateWithParams(pGraphExec, graph, instantiateParams)), 0);
}

SIM_EXPORT cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream)
{
	RUNTIME_BEGIN(cudaGraphLaunch, 0);
	RUNTIME_END(DRIVER(cuGraphLaunch(graphExec, stream)), 0);
}

SIM_EXPORT cudaError_t cudaGraphExecUpdate(
	cudaGraphExec_t hGraphExec, cudaGraph_t hGraph, cudaGraphExecUpdateResultInfo *resultInfo)
{
	RUNTIME_BEGIN(cudaGraphExecUpdate, 0);
	RUNTIME_END(DRIVER(cuGraphExecUpdate_v2(hGraphExec, hGraph, resultInfo)), 0);
}

SIM_EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	RUNTIME_BEGIN(cudaGraphDestroy, 0);
	RUNTIME_END(DRIVER(cuGraphDestroy(graph)), 0);
}

SIM_EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec)
{
	RUNTIME_BEGIN(cudaGraphExecDestroy, 0);
	RUNTIME_END(DRIVER(cuGraphExecDestroy(graphExec)), 0);
}

SIM_EXPORT cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
	const CUgraphNode *dependencies, const void *dependencyData, size_t numDependencies,
	int mode)
{
	RUNTIME_BEGIN(cudaStreamBeginCaptureToGraph, 0);
	RUNTIME_END(DRIVER(cuStreamBeginCaptureToGraph(
			    stream, graph, dependencies, dependencyData, numDependencies, mode)),
		0);
}

SIM_EXPORT cudaError_t cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream)
{
	RUNTIME_BEGIN(cudaGraphUpload, 0);
	RUNTIME_END(DRIVER(cuGraphUpload(graphExec, stream)), 0);
}

SIM_EXPORT cudaError_t cudaGraphExecKernelNodeSetParams(
	cudaGraphExec_t hGraphExec, CUgraphNode node, const void *nodeParams)
{
	RUNTIME_BEGIN(cudaGraphExecKernelNodeSetParams, 0);
	RUNTIME_END(DRIVER(cuGraphExecKernelNodeSetParams_v2(hGraphExec, node, nodeParams)), 0);
}
