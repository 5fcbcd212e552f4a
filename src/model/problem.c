/* SPDX-License-Identifier: Apache-2.0 */
/* problem.c - the catalogue's rows. Fixes are what can be done without figures of the case; a
 * detector that knows better says so instead. */
#include "model/problem.h"

/* One sentence a line reads better than a paragraph of string pieces. */
/* clang-format off */
static const struct problem_text texts[PROBLEM_COUNT] = {
	[PROBLEM_SLOW_CALL] = {
		"incidents of recordings that older versions explained",
		"today's incidents are of units of work, not of single calls",
		{NULL},
		"explain the incident; then read the rows its SQL finds"},
	[PROBLEM_NCCL_HANG] = {
		"collectives by (communicator, sequence) on every rank in the recording: which ranks called, which did not, which called something else",
		"ranks that are not in the recording are only known to be missing",
		{"Inspect the rank that did not call: `py-spy dump --pid PID`, or its last stack here",
		 "Let the job abort on a hang: TORCH_NCCL_ASYNC_ERROR_HANDLING=1 and a timeout in init_process_group()",
		 "Compare the code paths of the ranks: a collective inside an `if` that some ranks skip"},
		"ask for the last collectives of each rank and the stack of the one that is missing"},
	[PROBLEM_STARVATION] = {
		"the account of every unit of work: time that the thread which feeds the GPU spends asleep, reading, or waiting for its data loader's workers, and what these do meanwhile",
		"a program with nothing to do waits the same way, so only loops with a steady pace and training are judged; memory that is read through a mapping shows as copying or host code",
		{"Prepare batches ahead: more DataLoader workers, prefetch_factor, pin_memory",
		 "Move preprocessing off the training thread",
		 "Keep the data set closer: page cache, local disk, /dev/shm"},
		"ask what the calling thread and its workers were blocked on in the gaps"},
	[PROBLEM_GPU_MEMORY] = {
		"failed allocations; free memory at that time, from the GPU samples around it and the process's earlier peak",
		"memory held in a framework's pool is not visible; free memory is sampled once a second",
		{"Allocate once and reuse: expandable_segments:True in PYTORCH_CUDA_ALLOC_CONF reduces fragmentation",
		 "Lower the peak: smaller batch, gradient checkpointing, free unused tensors",
		 "List other processes with GPU memory: `nvidia-smi`"},
		"ask for the allocations before the failure and who else was on the GPU"},
	[PROBLEM_CORRUPTION] = {
		"uncorrectable memory errors of the GPU, and XID errors that report them, during the recording",
		"a wrong result without a reported error is not detected",
		{"Take the GPU out of service and run `dcgmi diag -r 3`",
		 "Repeat the last steps from a checkpoint on another GPU and compare"},
		"ask for the GPU's error counters over time"},
	[PROBLEM_AGENT_COST] = {
		"the account of every unit of work: most of the time goes into waiting for answers over sockets",
		"tokens and requests are not traced",
		{"Batch requests of several agents together",
		 "Reuse the prefix: keep the KV cache between calls of one agent"},
		"ask for the share of time between bursts and what the thread waited for"},
	[PROBLEM_KV_CACHE] = {
		"a process that uses the network: allocations that fail and are retried, or are made and freed while memory is over 95 % full",
		"indirect evidence: a cache inside one large allocation is not visible, only its effects",
		{"Give the cache less room or more memory: gpu_memory_utilization, max_num_seqs",
		 "Limit the length of a request: max_model_len"},
		"ask for allocations, frees and free memory over time"},
	[PROBLEM_GRAPH_RECAPTURE] = {
		"captures and instantiations of CUDA graphs after warm-up against their launches, what they cost, and captures that fail",
		"graphs that are made and never launched are not reported",
		{"Keep shapes fixed: pad batches to a few sizes and capture one graph for each",
		 "Update instead of re-instantiating: cudaGraphExecUpdate()"},
		"ask for graph events by process"},
	[PROBLEM_HARDWARE_DRIFT] = {
		"growing corrected memory errors, XID errors, a PCIe link that became narrower, or slower under load",
		"only changes during the recording count: a slow drift needs a long recording",
		{"Run `dcgmi diag -r 3` on the GPU and plan to replace it",
		 "Reseat the card or its riser if the PCIe link became narrower"},
		"ask for the GPU's samples over the whole recording"},
	[PROBLEM_CPU_CONTENTION] = {
		"the account of every unit of work: time in which a thread that the unit waits for is ready to run without a CPU, or waits for Python's interpreter lock, and who held them",
		"waits below 50 µs have no culprit",
		{NULL},
		"ask which processes used the CPUs"},
	[PROBLEM_TOOL_CALLS] = {
		"the account of every unit of work: waiting for an answer over a socket, and who answers: a process of this machine or an address",
		"individual requests are not identified: payloads are not read",
		{"Make the calls concurrently, or while the GPU serves other requests",
		 "Give slow endpoints a timeout and a cache"},
		"ask for socket waits by process and peer"},
	[PROBLEM_MEMORY_LEAK] = {
		"allocations minus frees per process, by address, over time; the driver's readings of memory in use, and who allocated while they grow",
		"a growing framework pool looks the same; its contents are not traced, so the line that allocates need not be the one that keeps the memory",
		{"Check the allocating stack: is something held in a list, a closure or a graph?",
		 "Detach values used for logging: loss.item(), tensor.detach()"},
		"ask for the stacks of allocations without a free"},
	[PROBLEM_AMP] = {
		"annotations that the training script sends (amp_scale, loss, grad_norm)",
		"values inside tensors are not visible to the host: without annotations nothing is reported",
		{"Log the scaler: `ingero annotate --label amp_scale=…` in the training loop"},
		"ask for annotations with the label amp_scale or loss"},
	[PROBLEM_GOODPUT] = {
		"the account of every unit of work: what slow ones have more of than ordinary ones, or what all have too much of, if no other row fits: host code by line, garbage collection, locks, waits for another process, more or other work on the GPU",
		"what the GPU does in a unit is not timed; a larger batch is reported as more work, LOW; a rank on another node needs its recording merged",
		{"See which part of a step grew, whose it is and where: `ingero explain --steps`"},
		"ask for step durations around the change and for what else changed then"},
	[PROBLEM_ORCHESTRATION] = {
		"how processes that made CUDA calls ended: the kernel's OOM killer, signals, exit codes, and restarts",
		"the sender of a signal is not recorded; a restart is recognised by the program's name; killed after another incident blamed it for slowing a job down: LOW, and a line in that incident",
		{"Raise the memory limit of the container, or lower its use",
		 "Find out why it was moved: `kubectl describe pod`, the scheduler's log"},
		"ask for process events and host memory before"},
	[PROBLEM_MODEL_SWAP] = {
		"slow units that copy at least 64 MiB and 8 times the usual bytes to the GPU",
		"the directions of a unit's copies are not distinguished",
		{"Keep both models on the GPU, or a copy in pinned host memory",
		 "Use a memory-mapped format (safetensors) and warm the page cache"},
		"ask for bytes copied and read in the gap"},
	[PROBLEM_DEVICE_ASSERT] = {
		"error codes that CUDA and NCCL calls return, and XID errors that a program causes",
		"an asynchronous error is returned by a later call than the one that failed; queries are not probed",
		{"Find the kernel: run once with CUDA_LAUNCH_BLOCKING=1, or `compute-sanitizer`",
		 "An assert in an index kernel is an index out of range: check labels and embeddings"},
		"ask for the first failed call and its stack"},
	[PROBLEM_VERSION_MISMATCH] = {
		"error codes that report a mismatch",
		"a mismatch that shows as a crash or a missing library is not detected",
		{"Install a driver that supports this CUDA version: `nvidia-smi` shows the supported version",
		 "Or use a build of the framework for an older CUDA"},
		"ask which libraries the process has mapped"},
	[PROBLEM_THROTTLE] = {
		"clocks lowered by a limit, power or heat while units wait longer for the GPU; or, from the first unit on, clocks below the GPU's maximum",
		"sampled once a second: shorter periods are missed; GPUs are matched by number, which CUDA_VISIBLE_DEVICES may change",
		{"Check cooling and the power limit: `nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE`",
		 "Spread the load: neighbours in the same chassis heat each other"},
		"ask for clocks, power and temperature over time"},
	[PROBLEM_NOISY_NEIGHBOUR] = {
		"processes of another container that used the CPU or the disk while a unit waited for it",
		"",
		{"Reserve CPUs for the job (cpuset, guaranteed QoS)",
		 "Limit the neighbour: cpu.max, io.max"},
		"ask which container the culprit is in"},
	[PROBLEM_COLD_START] = {
		"first calls of a process, and first launches of each kernel, that are far slower than later ones",
		"initialisation inside functions that are not probed (cudaStreamCreate, cudaSetDevice) is not traced",
		{"Warm up before serving: one request of each shape",
		 "Load kernels early: CUDA_MODULE_LOADING=EAGER",
		 "Keep the driver loaded: nvidia-persistenced"},
		"ask for the first calls of the process"},
	[PROBLEM_STRAGGLER] = {
		"which ranks take longer for the same work than their peers, one or several together, in which steps, by how much, and how long the others waited; links and collectives that are slow while all ranks are on time, without naming a rank",
		"arrival is the call on the host: a rank with a slow GPU looks like the others unless it waits before it calls; ranks on other nodes need their recordings merged, or the cluster service",
		{"Check the late rank's own incidents: what delayed it",
		 "Balance the work: the rank with more data is late every time"},
		"ask for arrival times by rank and for the late rank's host"},
	[PROBLEM_GPU_SHARING] = {
		"other processes on the GPU, by their calls or the driver's count, while units wait longer for the GPU or for copies of as many bytes as before",
		"processes that are not traced are only counted and named by the driver; without readings of the GPUs it is known by CUDA_VISIBLE_DEVICES and cudaSetDevice() alone which one a process uses, and never HIGH that two of them use the same",
		{"Move one of them to another GPU: CUDA_VISIBLE_DEVICES",
		 "Share by design: MPS or MIG"},
		"ask for operations by process on that GPU"},
	[PROBLEM_CHECKPOINT] = {
		"units that save: by their stacks, or because the thread waits for what it writes, occasionally or every N units",
		"a checkpoint that is written in the background costs nothing here",
		{"Write checkpoints in the background: torch.distributed.checkpoint.async_save(), or a thread with a copy",
		 "Write to a faster disk first and move the file afterwards"},
		"ask for the bytes written in the gaps and how often they come"},
	[PROBLEM_PCIE] = {
		"the account of every unit of work: time in calls that copy, without what they wait for the GPU or the disk",
		"copies from pinned memory that overlap kernels take no visible time",
		{"Copy from pinned memory and overlap it: pin_memory=True, non_blocking=True",
		 "Copy less: convert and crop on the GPU, send uint8 instead of float",
		 "Check the width of the link: `nvidia-smi -q -d PCIE`"},
		"ask for bytes per second by direction"},
	[PROBLEM_LOSS_SPIKE] = {
		"annotations that the training script sends (loss)",
		"the loss is not visible to the host: without annotations nothing is reported",
		{"Log it: `ingero annotate --label loss=…` in the training loop"},
		"ask for annotations with the label loss around the incident"},
	[PROBLEM_KERNEL_COMPILER] = {
		"the account of every unit of work: time in compilers and in libraries that choose or build kernels, by stacks and by the compilers' processes; launches that fail because resources or loadable code are missing",
		"a kernel that computes a wrong result is not detected",
		{"Compile ahead: warm up each shape, keep the cache (TRITON_CACHE_DIR) on a local disk",
		 "Lower the kernel's resource use: num_stages, num_warps, block sizes"},
		"ask for failed launches and for module loads"},
};
/* clang-format on */

static const struct problem_row rows[PROBLEM_COUNT] = {
#define X(NAME, number, id, worst, title)                                                          \
	[PROBLEM_##NAME] = {number, id, title, SEVERITY_##worst, &texts[PROBLEM_##NAME]},
	PROBLEMS(X)
#undef X
};

const struct problem_row *problem_row(enum problem p)
{
	return p < PROBLEM_COUNT ? &rows[p] : &rows[PROBLEM_SLOW_CALL];
}
