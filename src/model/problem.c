/* SPDX-License-Identifier: Apache-2.0 */
/* problem.c - the catalogue's rows. Fixes are what can be done without figures of the case; a
 * detector that knows better says so instead. */
#include "model/problem.h"

#include <stddef.h>

/* One sentence a line reads better than a paragraph of string pieces. */
/* clang-format off */
static const struct problem_text texts[PROBLEM_COUNT] = {
	[PROBLEM_SLOW_CALL] = {
		"calls far above their own ordinary duration, and what their thread was kept by meanwhile",
		"what happens on the GPU itself is seen through the waits for it",
		{NULL},
		"explain the incident; then read the rows its SQL finds"},
	[PROBLEM_NCCL_HANG] = {
		"collectives by (communicator, sequence) on every rank in the recording: who called, who did not, who called something else",
		"ranks that are not in the recording are only known to be missing",
		{"Look at the rank that did not call: `py-spy dump --pid PID`, or its last stack here",
		 "Let the job end by itself next time: TORCH_NCCL_ASYNC_ERROR_HANDLING=1 and a timeout in init_process_group()",
		 "Compare the code paths of the ranks: a collective inside an `if` that not all of them take"},
		"ask for the last collectives of each rank and the stack of the one that is missing"},
	[PROBLEM_STARVATION] = {
		"pauses from a wait for the GPU that returned to the thread's next call, beyond 1 ms and 5 % of a step, and what the thread did meanwhile",
		"work on streams that were not waited for may still run; what a sleeping thread waits for is not recorded; garbage collection and the interpreter's lock show as host code; while the budget keeps launches untraced, and in published files, pauses are not seen",
		{"Prepare batches ahead: more DataLoader workers, prefetch_factor, pin_memory",
		 "Move preprocessing off the training thread",
		 "Keep the data set closer: page cache, local disk, /dev/shm"},
		"ask what the calling thread and its workers were blocked on in the gaps"},
	[PROBLEM_GPU_MEMORY] = {
		"allocations that failed; how much was free then, by the GPU's readings around it and by what the process itself had held before",
		"a framework's own pool hides what it holds back; free memory is sampled once a second",
		{"Allocate once and reuse: expandable_segments:True in PYTORCH_CUDA_ALLOC_CONF lessens fragmentation",
		 "Lower the peak: smaller batch, gradient checkpointing, freeing what is no longer needed",
		 "See who else has memory on the GPU: `nvidia-smi`"},
		"ask for the allocations before the failure and who else was on the GPU"},
	[PROBLEM_CORRUPTION] = {
		"memory errors that the GPU could not correct, and XID errors that say so, during the recording",
		"a wrong result without such a sign cannot be seen from the host",
		{"Take the GPU out of service and run `dcgmi diag -r 3`",
		 "Repeat the last steps from a checkpoint on another GPU and compare"},
		"ask for the GPU's error counters over time"},
	[PROBLEM_AGENT_COST] = {
		"how much of a process's GPU time passes while it waits for the network between short bursts of work",
		"tokens and requests are not seen: only bursts and waits",
		{"Batch requests of several agents together",
		 "Reuse the prefix: keep the KV cache between calls of one agent"},
		"ask for the share of time between bursts and what was waited for"},
	[PROBLEM_KV_CACHE] = {
		"a process that talks over the network: allocations that are refused and asked for again, or made and freed while memory is over 95 % full",
		"a sign, no proof: a cache inside one large allocation is not seen, only its consequences",
		{"Give the cache less room or more memory: gpu_memory_utilization, max_num_seqs",
		 "Limit the length of a request: max_model_len"},
		"ask for allocations, frees and free memory over time"},
	[PROBLEM_GRAPH_RECAPTURE] = {
		"captures and instantiations of CUDA graphs after warm-up against their launches, what they cost, and captures that fail",
		"that a graph was never launched is only told where every launch is a stored row",
		{"Keep shapes fixed: pad batches to a few sizes and capture one graph for each",
		 "Update instead of instantiating anew: cudaGraphExecUpdate()"},
		"ask for graph events by process"},
	[PROBLEM_HARDWARE_DRIFT] = {
		"corrected memory errors that grow, XID errors, a PCIe link that became narrower, or slower while busy",
		"only what changes during the recording counts: a slow drift shows in a long one",
		{"Run `dcgmi diag -r 3` on the GPU and plan its exchange",
		 "Reseat the card or its riser if the PCIe link is narrower than it was"},
		"ask for the GPU's samples over the whole recording"},
	[PROBLEM_CPU_CONTENTION] = {
		"time in which a calling thread could have run and did not, and who ran instead",
		"",
		{NULL},
		"ask who had the CPUs meanwhile"},
	[PROBLEM_TOOL_CALLS] = {
		"gaps without GPU work in which the process waited in socket calls",
		"which request it was is not seen: payloads are not read",
		{"Do the calls concurrently, or while the GPU has other requests to serve",
		 "Give slow endpoints a timeout and a cache"},
		"ask for socket waits by process and peer"},
	[PROBLEM_MEMORY_LEAK] = {
		"allocations minus frees per process, by address, over time",
		"a framework's pool that grows looks the same; what it holds inside is not seen",
		{"Look at the stack that allocates: is something kept in a list, a closure, a graph?",
		 "Detach what is kept for logging: loss.item(), tensor.detach()"},
		"ask for the stacks of allocations without a free"},
	[PROBLEM_AMP] = {
		"annotations that the training script sends (amp_scale, loss, grad_norm)",
		"numbers inside tensors cannot be seen from the host: without annotations nothing is reported",
		{"Log the scaler: `ingero annotate --label amp_scale=…` in the training loop"},
		"ask for annotations with the label amp_scale or loss"},
	[PROBLEM_GOODPUT] = {
		"duration of steps, found from the stream of calls, before and after it changed, and how much longer they wait for collectives since",
		"what a step computes is not seen: a larger batch is a slower step too; a wait for a rank of another node looks like one for a slower GPU until the recordings are merged; a program without regular waits, or of whose waits only a selection is stored, has no steps",
		{"Look at the incidents that began at the same time"},
		"ask for step durations around the change and for what else changed then"},
	[PROBLEM_ORCHESTRATION] = {
		"how processes that made CUDA calls ended: the kernel's OOM killer, signals, error codes, and a start anew",
		"who sent a signal is not seen; a restart is recognised by the program's name",
		{"Raise the memory limit of the container, or lower its use",
		 "See why it was moved: `kubectl describe pod`, the scheduler's log"},
		"ask for process events and host memory before"},
	[PROBLEM_MODEL_SWAP] = {
		"steps in which many times the ordinary bytes go to the GPU, after pauses to read them",
		"a program without regular waits has no steps to compare",
		{"Keep both models on the GPU, or a copy in pinned host memory",
		 "Load with a format that maps: safetensors, and warm the page cache"},
		"ask for bytes copied and read in the gap"},
	[PROBLEM_DEVICE_ASSERT] = {
		"error codes that CUDA and NCCL calls return, and XID errors that a program causes",
		"an asynchronous error is returned by a later call than the one that failed; queries are not probed",
		{"Find the kernel: run once with CUDA_LAUNCH_BLOCKING=1, or `compute-sanitizer`",
		 "An assert in an index kernel is an index out of range: check labels and embeddings"},
		"ask for the first failed call and its stack"},
	[PROBLEM_VERSION_MISMATCH] = {
		"error codes that say so",
		"a mismatch that shows as a crash or a missing library is not seen",
		{"Install a driver that is new enough for this CUDA: `nvidia-smi` shows which it supports",
		 "Or use a build of the framework for an older CUDA"},
		"ask which libraries the process has mapped"},
	[PROBLEM_THROTTLE] = {
		"reasons for lowered clocks that the driver gives, and waits for the GPU that became longer at the same time",
		"sampled once a second: shorter spells are missed; GPUs are matched by number, which CUDA_VISIBLE_DEVICES may change",
		{"Look at cooling and at the power limit: `nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE`",
		 "Spread the load: neighbours in the same chassis heat each other"},
		"ask for clocks, power and temperature over time"},
	[PROBLEM_NOISY_NEIGHBOUR] = {
		"who had the CPU or the disk instead of a calling thread, when that is in another container",
		"",
		{"Give the job CPUs of its own (cpuset, guaranteed QoS)",
		 "Limit the neighbour: cpu.max, io.max"},
		"ask which container the culprit is in"},
	[PROBLEM_COLD_START] = {
		"first calls of a process and of each function that are far slower than later ones",
		"initialisation inside functions that are not probed (cudaStreamCreate, cudaSetDevice) is not seen",
		{"Warm up before serving: one request of each shape",
		 "Load kernels early: CUDA_MODULE_LOADING=EAGER",
		 "Keep the driver loaded: nvidia-persistenced"},
		"ask for the first calls of the process"},
	[PROBLEM_STRAGGLER] = {
		"who came last to each collective, by how much, and what the others lost by waiting",
		"arrival is when the host calls: a rank whose GPU alone is slow looks like the others unless it waits before it calls; ranks on other nodes need their recordings merged, or the cluster service",
		{"Look at the late rank's own incidents: what it was kept by",
		 "Balance the work: the rank with more data is late every time"},
		"ask for arrival times by rank and for the late rank's host"},
	[PROBLEM_GPU_SHARING] = {
		"other processes with a context on the same GPU, and calls that are slower while they are active",
		"processes that are not traced are only counted by the driver; with CUDA_VISIBLE_DEVICES two GPUs may have one number, which only the driver's count can tell",
		{"Move one of them to another GPU: CUDA_VISIBLE_DEVICES",
		 "Share by design: MPS or MIG"},
		"ask for operations by process on that GPU"},
	[PROBLEM_CHECKPOINT] = {
		"writes and flushes of the calling thread in pauses without work for the GPU that come back every so many steps",
		"a checkpoint that comes once is told as starvation by writes",
		{"Write checkpoints in the background: torch.distributed.checkpoint.async_save(), or a thread with a copy",
		 "Write to a faster disk first and move the file afterwards"},
		"ask for the bytes written in the gaps and how often they come"},
	[PROBLEM_PCIE] = {
		"bytes and time of copies by direction, the link's width and speed",
		"asynchronous copies return before they are done, so of these only the bytes count, against what the link can do; a copy may wait for kernels before it, which is told apart by the fastest copy",
		{"Copy from pinned memory and overlap it: pin_memory=True, non_blocking=True",
		 "Copy less: convert and crop on the GPU, send uint8 instead of float",
		 "See whether the link is as wide as it should be: `nvidia-smi -q -d PCIE`"},
		"ask for bytes per second by direction"},
	[PROBLEM_LOSS_SPIKE] = {
		"annotations that the training script sends (loss)",
		"the loss itself cannot be seen from the host: without annotations nothing is reported",
		{"Log it: `ingero annotate --label loss=…` in the training loop"},
		"ask for annotations with the label loss around the incident"},
	[PROBLEM_KERNEL_COMPILER] = {
		"launches that fail for want of resources or of code that can be loaded",
		"compiling and loading modules is not recorded; a kernel that computes a wrong result is not seen",
		{"Compile ahead: warm up each shape, keep the cache (TRITON_CACHE_DIR) on a local disk",
		 "Lower what the kernel asks for: num_stages, num_warps, block sizes"},
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
