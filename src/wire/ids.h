/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* ids.h - the one list of event sources, operations and loss reasons.
 *
 * Freestanding: the BPF programs and the agent include it. Enums, display names and the rows of the
 * SQL tables `sources` and `ops` all derive from these lists. Numbers are stored in databases and
 * published, so a number is never reused and new ones go at the end of their list.
 *
 * To add an operation: one line in its source's list, one row in the probe's function table
 * (record/probe/<source>/), one call in sim/ so that the tally test covers it. */
#pragma once

/* X(id, NAME, json, sql, description); id 2 is a hole in the published numbering. */
#define WIRE_SOURCES(X)                                                                            \
	X(1, CUDA, "cuda", "CUDA", "CUDA runtime API calls")                                       \
	X(2, NVIDIA, "nvidia", "NVIDIA", "reserved")                                               \
	X(3, HOST, "host", "HOST", "Linux scheduler, memory and process events")                   \
	X(4, DRIVER, "driver", "DRIVER", "CUDA driver API calls")                                  \
	X(5, IO, "io", "IO", "block device requests")                                              \
	X(6, TCP, "tcp", "TCP", "TCP retransmits")                                                 \
	X(7, NET, "net", "NET", "socket sends and receives")                                       \
	X(8, GRAPH, "cuda_graph", "CUDA_GRAPH",                                                    \
		"CUDA graph life cycle, by the runtime or the driver")                             \
	X(9, NCCL, "nccl", "NCCL", "NCCL communicators and collectives")                           \
	X(10, NVTX, "nvtx", "NVTX", "ranges and marks that a program names itself")
#define WIRE_SOURCE_MAX 16 /* array size for tables indexed by source id */
#define WIRE_OP_MAX     64 /* likewise by op id */

/* X(id, NAME, name, description) */
#define WIRE_OPS_CUDA(X)                                                                           \
	X(1, MALLOC, "cudaMalloc", "device allocation; arg0 bytes, arg1 pointer")                  \
	X(2, FREE, "cudaFree", "device free; arg0 pointer")                                        \
	X(3, LAUNCH, "cudaLaunchKernel", "kernel launch; arg0 function, arg1 stream")              \
	X(4, MEMCPY, "cudaMemcpy", "copy; arg0 bytes, arg1 kind")                                  \
	X(5, STREAM_SYNC, "cudaStreamSync", "wait for a stream; arg0 stream")                      \
	X(6, DEVICE_SYNC, "cudaDeviceSync", "wait for the device")                                 \
	X(7, MEMCPY_ASYNC, "cudaMemcpyAsync", "enqueued copy; arg0 bytes, arg1 kind")              \
	X(8, MALLOC_MANAGED, "cudaMallocManaged", "managed allocation; arg0 bytes, arg1 pointer")  \
	X(9, MEMCPY_2D, "cudaMemcpy2D", "2D copy; arg0 bytes (width x height), arg1 kind")         \
	X(10, MEMCPY_2D_ASYNC, "cudaMemcpy2DAsync", "enqueued 2D copy; as cudaMemcpy2D")           \
	X(11, MEMCPY_PEER, "cudaMemcpyPeer", "copy between devices; arg0 bytes")                   \
	X(12, MEMCPY_PEER_ASYNC, "cudaMemcpyPeerAsync", "enqueued copy between devices")           \
	X(13, LAUNCH_EXC, "cudaLaunchKernelExC", "kernel launch with attributes; arg0 function")   \
	X(14, LAUNCH_COOP, "cudaLaunchCooperativeKernel", "cooperative launch; arg0 function")     \
	X(15, MEMSET, "cudaMemset", "fill; arg0 bytes, arg1 pointer")                              \
	X(16, MEMSET_ASYNC, "cudaMemsetAsync", "enqueued fill; arg0 bytes, arg1 pointer")          \
	X(17, EVENT_SYNC, "cudaEventSync", "wait for an event; arg0 event")                        \
	X(18, STREAM_WAIT_EVENT, "cudaStreamWaitEvent", "stream waits for event; arg0 event")      \
	X(19, MALLOC_ASYNC, "cudaMallocAsync", "stream-ordered allocation; arg0 bytes")            \
	X(20, FREE_ASYNC, "cudaFreeAsync", "stream-ordered free; arg0 pointer")                    \
	X(21, HOST_ALLOC, "cudaHostAlloc", "pinned host allocation; arg0 bytes, arg1 pointer")     \
	X(22, HOST_FREE, "cudaFreeHost", "pinned host free; arg0 pointer")                         \
	X(23, MEMCPY_3D, "cudaMemcpy3D", "3D copy")                                                \
	X(24, MEMCPY_3D_ASYNC, "cudaMemcpy3DAsync", "enqueued 3D copy")                            \
	X(25, MALLOC_PITCH, "cudaMallocPitch",                                                     \
		"pitched allocation; arg0 width x height, arg1 pointer")                           \
	X(26, MALLOC_FROM_POOL, "cudaMallocFromPoolAsync", "allocation from a pool; arg0 bytes")   \
	X(27, MEMCPY_BATCH, "cudaMemcpyBatchAsync", "enqueued copies; arg0 how many")              \
	X(28, MALLOC_ARRAY, "cudaMallocArray", "array allocation")                                 \
	X(29, EVENT_RECORD, "cudaEventRecord", "event recorded; arg0 event")                       \
	X(30, LAUNCH_HOST, "cudaLaunchHostFunc", "host function enqueued; arg0 function")          \
	X(31, LAUNCH_MULTI, "cudaLaunchCooperativeKernelMultiDevice",                              \
		"launch on several devices; arg0 how many")                                        \
	X(32, MEMCPY_ATTRIBUTES, "cudaMemcpyWithAttributesAsync", "enqueued copy; arg0 bytes")     \
	X(33, PREFETCH, "cudaMemPrefetchAsync",                                                    \
		"managed memory moved ahead; arg0 bytes, arg1 pointer")                            \
	X(34, PREFETCH_BATCH, "cudaMemPrefetchBatchAsync",                                         \
		"the same for several ranges; arg0 how many")                                      \
	X(35, HOST_REGISTER, "cudaHostRegister", "host memory pinned; arg0 bytes, arg1 pointer")   \
	X(36, HOST_UNREGISTER, "cudaHostUnregister", "host memory no longer pinned; arg0 pointer")

#define WIRE_OPS_HOST(X)                                                                           \
	X(1, SCHED_SWITCH, "sched_switch", "thread off the CPU; arg0 run-queue ns, arg1 who ran")  \
	X(2, SCHED_WAKEUP, "sched_wakeup", "thread woken; arg1 wakee")                             \
	X(3, PAGE_ALLOC, "mm_page_alloc", "page allocation; arg0 bytes")                           \
	X(4, OOM_KILL, "oom_kill", "out-of-memory kill; arg1 victim")                              \
	X(5, PROCESS_EXEC, "process_exec", "program started")                                      \
	X(6, PROCESS_EXIT, "process_exit", "process ended; arg0 exit code")                        \
	X(7, PROCESS_FORK, "process_fork", "process created; arg1 child")                          \
	X(10, POD_RESTART, "pod_restart", "Kubernetes pod restarted")                              \
	X(11, POD_EVICTION, "pod_eviction", "Kubernetes pod evicted")                              \
	X(12, POD_OOM_KILL, "pod_oom_kill", "Kubernetes pod out of memory")                        \
	X(20, PAGE_ALLOC_SUMMARY, "mm_page_alloc_summary", "arg0 count, arg1 bytes")               \
	X(21, SCHED_SWITCH_SUMMARY, "sched_switch_summary", "arg0 count, arg1 off-CPU ns")         \
	X(30, TARGET_FOUND, "target_found",                                                        \
		"process came under trace at its first CUDA call; arg0 its start, ns since boot")  \
	X(31, DIRECT_RECLAIM, "mm_direct_reclaim", "thread freed memory itself; arg0 pages")       \
	X(32, COMPACTION, "mm_compaction", "thread moved pages together itself")                   \
	X(33, FILE_FAULT, "mm_filemap_fault",                                                      \
		"a page of a mapped file was not in memory or not mapped")                         \
	X(34, CPU_SAMPLE, "cpu_sample", "thread on a CPU; arg0 its line of the ledger")            \
	X(35, LEDGER, "ledger", "rows of table ledger; none in events")                            \
	X(36, SHORT_STAYS, "short_stays",                                                          \
		"blocked intervals without their own row, ended by the same thread; arg0 line of"  \
		" the ledger, arg1 ns")

#define WIRE_OPS_DRIVER(X)                                                                         \
	X(1, LAUNCH, "cuLaunchKernel", "kernel launch; arg0 function, arg1 stream")                \
	X(2, MEMCPY, "cuMemcpy", "copy; arg0 bytes")                                               \
	X(3, MEMCPY_ASYNC, "cuMemcpyAsync", "enqueued copy; arg0 bytes")                           \
	X(4, CTX_SYNC, "cuCtxSynchronize", "wait for the context")                                 \
	X(5, MALLOC, "cuMemAlloc", "device allocation; arg0 bytes, arg1 pointer")                  \
	X(6, MALLOC_MANAGED, "cuMemAllocManaged", "managed allocation; arg0 bytes, arg1 pointer")  \
	X(7, LAUNCH_EX, "cuLaunchKernelEx", "kernel launch with attributes; arg0 function")        \
	X(8, FREE, "cuMemFree", "device free; arg0 pointer")                                       \
	X(9, MEMCPY_HTOD, "cuMemcpyHtoD", "host to device; arg0 bytes")                            \
	X(10, MEMCPY_DTOH, "cuMemcpyDtoH", "device to host; arg0 bytes")                           \
	X(11, MEMCPY_DTOD, "cuMemcpyDtoD", "device to device; arg0 bytes")                         \
	X(12, MEMCPY_HTOD_ASYNC, "cuMemcpyHtoDAsync", "enqueued host to device; arg0 bytes")       \
	X(13, MEMCPY_DTOH_ASYNC, "cuMemcpyDtoHAsync", "enqueued device to host; arg0 bytes")       \
	X(14, MEMCPY_DTOD_ASYNC, "cuMemcpyDtoDAsync", "enqueued device to device; arg0 bytes")     \
	X(15, MEMSET, "cuMemsetD8", "fill by 8, 16 or 32 bits; arg0 bytes, arg1 pointer")          \
	X(16, MEMSET_ASYNC, "cuMemsetD8Async", "enqueued fill likewise; arg0 bytes, arg1 pointer") \
	X(17, STREAM_SYNC, "cuStreamSynchronize", "wait for a stream; arg0 stream")                \
	X(18, EVENT_SYNC, "cuEventSynchronize", "wait for an event; arg0 event")                   \
	X(19, LAUNCH_COOP, "cuLaunchCooperativeKernel", "cooperative launch; arg0 function")       \
	X(20, MALLOC_ASYNC, "cuMemAllocAsync", "stream-ordered allocation; arg0 bytes")            \
	X(21, FREE_ASYNC, "cuMemFreeAsync", "stream-ordered free; arg0 pointer")                   \
	X(22, HOST_ALLOC, "cuMemHostAlloc", "pinned host allocation; arg0 bytes, arg1 pointer")    \
	X(23, HOST_FREE, "cuMemFreeHost", "pinned host free; arg0 pointer")                        \
	X(24, STREAM_WAIT_EVENT, "cuStreamWaitEvent", "stream waits for event; arg0 event")        \
	X(25, MEM_CREATE, "cuMemCreate", "physical memory made; arg0 bytes")                       \
	X(26, MEM_MAP, "cuMemMap", "memory mapped; arg0 bytes, arg1 address")                      \
	X(27, MEM_UNMAP, "cuMemUnmap", "memory unmapped; arg0 bytes, arg1 address")                \
	X(28, MEM_RELEASE, "cuMemRelease", "physical memory released; arg0 handle")                \
	X(29, MEMCPY_3D, "cuMemcpy3D", "3D copy")                                                  \
	X(30, MEMCPY_3D_ASYNC, "cuMemcpy3DAsync", "enqueued 3D copy")                              \
	X(31, MALLOC_PITCH, "cuMemAllocPitch",                                                     \
		"pitched allocation; arg0 width x height, arg1 pointer")                           \
	X(32, MALLOC_FROM_POOL, "cuMemAllocFromPoolAsync", "allocation from a pool; arg0 bytes")   \
	X(33, MEMCPY_BATCH, "cuMemcpyBatchAsync", "enqueued copies; arg0 how many")                \
	X(34, MEMCPY_2D, "cuMemcpy2D", "2D copy")                                                  \
	X(35, MEMCPY_2D_ASYNC, "cuMemcpy2DAsync", "enqueued 2D copy")                              \
	X(36, MEMCPY_PEER, "cuMemcpyPeer", "copy between devices; arg0 bytes")                     \
	X(37, MEMCPY_PEER_ASYNC, "cuMemcpyPeerAsync", "enqueued copy between devices; arg0 bytes") \
	X(38, GRAPH_LAUNCH, "cuGraphLaunch",                                                       \
		"graph launched; arg0 it; in older files, now graphLaunch")                        \
	X(39, LAUNCH_HOST, "cuLaunchHostFunc", "host function enqueued; arg0 function")            \
	X(40, PREFETCH, "cuMemPrefetchAsync",                                                      \
		"managed memory moved ahead; arg0 bytes, arg1 pointer")                            \
	X(41, PREFETCH_BATCH, "cuMemPrefetchBatchAsync",                                           \
		"the same for several ranges; arg0 how many")                                      \
	X(42, HOST_REGISTER, "cuMemHostRegister", "host memory pinned; arg0 bytes, arg1 pointer")  \
	X(43, HOST_UNREGISTER, "cuMemHostUnregister",                                              \
		"host memory no longer pinned; arg0 pointer")                                      \
	X(44, STREAM_WAIT_VALUE, "cuStreamWaitValue",                                              \
		"stream waits for a value in memory; arg0 it, arg1 address")                       \
	X(45, STREAM_BATCH, "cuStreamBatchMemOp",                                                  \
		"stream waits for and writes values; arg0 how many")

#define WIRE_OPS_IO(X)                                                                             \
	X(1, READ, "block_read", "block read; arg0 sectors, arg1 first sector")                    \
	X(2, WRITE, "block_write", "block write; arg0 sectors, arg1 first sector")                 \
	X(3, DISCARD, "block_discard", "block discard; arg0 sectors, arg1 first sector")           \
	X(4, FLUSH, "block_flush", "device cache flush")

#define WIRE_OPS_TCP(X) X(1, RETRANSMIT, "tcp_retransmit", "segment sent again")

#define WIRE_OPS_NET(X)                                                                            \
	X(1, SEND, "net_send", "socket send; arg0 fd, arg1 bytes, detail peer")                    \
	X(2, RECV, "net_recv", "socket receive; arg0 fd, arg1 bytes, detail peer")

#define WIRE_OPS_GRAPH(X)                                                                          \
	X(1, BEGIN_CAPTURE, "graphBeginCapture", "stream capture begun; arg0 stream, arg1 mode")   \
	X(2, END_CAPTURE, "graphEndCapture", "stream capture ended; arg0 stream, arg1 graph")      \
	X(3, INSTANTIATE, "graphInstantiate", "executable graph made; arg0 graph, arg1 it")        \
	X(4, LAUNCH, "graphLaunch", "executable graph launched; arg0 it")                          \
	X(5, DESTROY, "graphDestroy", "graph destroyed; arg0 graph")                               \
	X(6, EXEC_UPDATE, "graphExecUpdate", "executable graph updated; arg0 graph, arg1 it")      \
	X(7, EXEC_DESTROY, "graphExecDestroy", "executable graph destroyed; arg0 it")              \
	X(8, UPLOAD, "graphUpload", "executable graph uploaded to the GPU; arg0 it")               \
	X(9, NODE_SET_PARAMS, "graphExecNodeSetParams",                                            \
		"node of an executable graph changed; arg0 node, arg1 it")

#define WIRE_OPS_NCCL(X)                                                                           \
	X(1, COMM_INIT_RANK, "ncclCommInitRank", "communicator created")                           \
	X(2, COMM_DESTROY, "ncclCommDestroy", "communicator destroyed")                            \
	X(3, ALL_REDUCE, "ncclAllReduce", "all-reduce; arg0 bytes, arg1 sequence number")          \
	X(4, ALL_GATHER, "ncclAllGather", "all-gather; arg0 bytes, arg1 sequence number")          \
	X(5, REDUCE_SCATTER, "ncclReduceScatter", "reduce-scatter; arg0 bytes, arg1 sequence")     \
	X(6, BCAST, "ncclBcast", "in-place broadcast; arg0 bytes, arg1 sequence number")           \
	X(7, SEND, "ncclSend", "point-to-point send; arg0 bytes")                                  \
	X(8, RECV, "ncclRecv", "point-to-point receive; arg0 bytes")                               \
	X(9, COMM_INIT_ALL, "ncclCommInitAll", "communicators created in one process")             \
	X(10, REDUCE, "ncclReduce", "reduce; arg0 bytes, arg1 sequence number")                    \
	X(11, BROADCAST, "ncclBroadcast", "broadcast; arg0 bytes, arg1 sequence number")           \
	X(12, ALL_TO_ALL, "ncclAlltoAll", "all-to-all; arg0 bytes, arg1 sequence number")          \
	X(13, GATHER, "ncclGather", "gather; arg0 bytes, arg1 sequence number")                    \
	X(14, SCATTER, "ncclScatter", "scatter; arg0 bytes, arg1 sequence number")                 \
	X(15, GROUP_START, "ncclGroupStart", "group of calls begun")                               \
	X(16, GROUP_END, "ncclGroupEnd", "group of calls submitted")                               \
	X(17, COMM_SPLIT, "ncclCommSplit", "communicator made from a part of another")             \
	X(18, COMM_INIT_CONFIG, "ncclCommInitRankConfig", "communicator created with options")     \
	X(19, COMM_INIT_SCALABLE, "ncclCommInitRankScalable", "communicator created by many ids")  \
	X(20, COMM_SHRINK, "ncclCommShrink", "communicator made without some ranks")               \
	X(21, COMM_ABORT, "ncclCommAbort", "communicator aborted")                                 \
	X(22, COMM_FINALIZE, "ncclCommFinalize", "communicator flushed before its end")            \
	X(23, PUT_SIGNAL, "ncclPutSignal", "write to a peer's memory and signal; arg0 bytes")      \
	X(24, SIGNAL, "ncclSignal", "signal to a peer")                                            \
	X(25, WAIT_SIGNAL, "ncclWaitSignal", "stream waits for signals of peers")                  \
	X(26, COMM_GROW, "ncclCommGrow", "communicator made with more ranks")                      \
	X(27, COMM_REVOKE, "ncclCommRevoke", "communicator's operations stopped")                  \
	X(28, COMM_SUSPEND, "ncclCommSuspend", "communicator's resources released")                \
	X(29, COMM_RESUME, "ncclCommResume", "communicator's resources taken again")

/* arg1 is the hash of the name, whose text is in table names. */
#define WIRE_OPS_NVTX(X)                                                                           \
	X(1, RANGE, "nvtxRange", "range of a thread; arg0 level from 0, arg1 name")                \
	X(2, SPAN, "nvtxSpan", "range from a start to an end on any thread; arg1 name")            \
	X(3, MARK, "nvtxMark", "moment; arg1 name")

/* Why something that was hit did not become a row. X(NAME, name, description). Kernel reasons come
 * first; the order is free (only names are stored). */
#define WIRE_LOSSES(X)                                                                             \
	X(RING_FULL, "ring_full", "the ring to the agent had no room")                             \
	X(NO_STORAGE, "no_storage", "the kernel gave no per-thread storage")                       \
	X(TOO_DEEP, "too_deep", "calls nested deeper than the per-thread stack")                   \
	X(UNWOUND, "unwound", "the call was left by longjmp or an exception")                      \
	X(THREAD_EXIT, "thread_exit", "the thread ended inside the call")                          \
	X(COMM_FULL, "comm_full", "the table of communicators was full")                           \
	X(INFLIGHT_FULL, "inflight_full", "the table of requests in progress was full")            \
	X(TARGET_FULL, "target_full", "the table of traced processes, or a user's half, was full") \
	X(RATE_LIMITED, "rate_limited", "more arrived in a second than are kept")                  \
	X(GOVERNOR, "governor", "the probe was removed inside the call, to keep the budget")       \
	X(BAD_RECORD, "bad_record", "the agent could not read the record")                         \
	X(QUEUE_FULL, "queue_full", "the queue to the store was full")                             \
	X(WRITE_FAILED, "write_failed", "the store refused the row")                               \
	X(AT_STOP, "at_stop", "still in progress when tracing stopped")

enum wire_source {
#define X(id, NAME, ...) SOURCE_##NAME = id,
	WIRE_SOURCES(X)
#undef X
};

enum wire_op_cuda {
#define X(id, NAME, ...) CUDA_##NAME = id,
	WIRE_OPS_CUDA(X)
#undef X
};

enum wire_op_host {
#define X(id, NAME, ...) HOST_##NAME = id,
	WIRE_OPS_HOST(X)
#undef X
};

enum wire_op_driver {
#define X(id, NAME, ...) DRIVER_##NAME = id,
	WIRE_OPS_DRIVER(X)
#undef X
};

enum wire_op_io {
#define X(id, NAME, ...) IO_##NAME = id,
	WIRE_OPS_IO(X)
#undef X
};

enum wire_op_graph {
#define X(id, NAME, ...) GRAPH_##NAME = id,
	WIRE_OPS_GRAPH(X)
#undef X
};

enum wire_op_nccl {
#define X(id, NAME, ...) NCCL_##NAME = id,
	WIRE_OPS_NCCL(X)
#undef X
};

enum wire_op_nvtx {
#define X(id, NAME, ...) NVTX_##NAME = id,
	WIRE_OPS_NVTX(X)
#undef X
};

enum wire_op_net {
#define X(id, NAME, ...) NET_##NAME = id,
	WIRE_OPS_NET(X)
#undef X
};

enum wire_op_tcp {
#define X(id, NAME, ...) TCP_##NAME = id,
	WIRE_OPS_TCP(X)
#undef X
};

enum wire_loss {
#define X(NAME, ...) LOSS_##NAME,
	WIRE_LOSSES(X)
#undef X
		LOSS_COUNT
};
