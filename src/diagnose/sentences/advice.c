/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/sentences/advice.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/macros.h"

#define ANY_KIND     DELAY_KINDS
#define ANY_RESOURCE RESOURCE_COUNT

/* clang-format off */
const struct advice_row advice_rows[] =
	{
		/* The tracer and stopped processes: nothing else matters then. */
		{ANY_KIND, ANY_RESOURCE, IS_OF_TRACER, 0,
			"Record at less cost: `ingero trace --stack=false`, or a smaller `--overhead-budget`"},
		{ANY_KIND, ANY_RESOURCE, IS_OF_TRACER, 0,
			"Keep tracer and job on different CPUs: start `ingero trace` under `taskset -c CPUS`"},
		{ANY_KIND, ANY_RESOURCE, IS_STOPPED | BY_STOPPER, 0,
			"Keep {who} from stopping it with SIGSTOP, a debugger or a freezer"},
		{ANY_KIND, ANY_RESOURCE, IS_STOPPED | HAS_PID, BY_STOPPER,
			"Find out what stopped {who} (SIGSTOP, a debugger, a frozen container); `kill -CONT {pid}` resumes it"},
		{ANY_KIND, ANY_RESOURCE, IS_STOPPED, HAS_PID | BY_STOPPER,
			"Find out what stops it: a batch system that suspends jobs, `docker pause`, a debugger, SIGSTOP"},

		/* The GPU and who has it. */
		{ANY_KIND, RESOURCE_GPU_CLOCK, 0, 0,
			"Unlock the clocks: `nvidia-smi -rgc` (locked), `nvidia-smi -rac` (application clocks); `nvidia-smi -q -d CLOCK` shows them"},
		{ANY_KIND, RESOURCE_GPU_POWER, 0, 0,
			"Raise the power limit (`nvidia-smi -pl WATTS`), or find out why it was lowered: `nvidia-smi -q -d POWER`"},
		{ANY_KIND, RESOURCE_GPU_HEAT, 0, 0,
			"Check cooling: fans, airflow, dust, neighbours in the chassis (`nvidia-smi -q -d TEMPERATURE`)"},
		{ANY_KIND, RESOURCE_GPU_PERHAPS, 0, 0,
			"Find out which GPU each uses (`nvidia-smi`), and record where NVML can be loaded: then it is known"},
		{ANY_KIND, RESOURCE_GPU_PERHAPS, 0, 0,
			"Give each a GPU of its own by CUDA_VISIBLE_DEVICES, which is recorded"},
		{ANY_KIND, RESOURCE_GPU_PROCESS, HAS_PID, IS_OWN,
			"Stop {who}, or move it to another GPU (CUDA_VISIBLE_DEVICES)"},
		{ANY_KIND, RESOURCE_GPU_PROCESS, 0, IS_OWN | HAS_PID,
			"Stop the other processes on this GPU (`nvidia-smi` lists them), or move them to another one (CUDA_VISIBLE_DEVICES)"},
		{ANY_KIND, RESOURCE_GPU_PROCESS, 0, 0,
			"If sharing is intended, divide the GPU: MIG, or MPS with limits"},
		{ANY_KIND, RESOURCE_PRECISION, HAS_TORCH, 0,
			"Use a narrower type where its precision suffices: bf16 (torch.autocast), or TF32 (torch.set_float32_matmul_precision('high'))"},
		{ANY_KIND, RESOURCE_PRECISION, HAS_JAX, HAS_TORCH,
			"Use float32 or bfloat16 where that precision suffices: switch jax_enable_x64 off, set jax_default_matmul_precision"},
		{ANY_KIND, RESOURCE_PRECISION, 0, HAS_TORCH | HAS_JAX,
			"Use a narrower type where its precision suffices: float32 instead of float64, TF32, bf16 or fp16"},
		{ANY_KIND, RESOURCE_ATTENTION, HAS_TORCH, 0,
			"Cast q, k and v back to the model's type before attention: a rotary embedding, a norm or a mask in float32 makes them float32"},
		{ANY_KIND, RESOURCE_ATTENTION, 0, HAS_TORCH,
			"Give attention its inputs in the model's type (bf16 or fp16)"},
		{DELAY_BY_GPU, RESOURCE_NONE, NEW_TYPES | HAS_TORCH, 0,
			"Find what changed the precision: torch.autocast (enabled, dtype), .float(), .to(dtype), a GradScaler, allow_tf32"},
		{DELAY_BY_GPU, RESOURCE_NONE, NEW_TYPES, HAS_TORCH,
			"Find what changed the precision of the computation"},
		{DELAY_BY_GPU, RESOURCE_NONE, NEW_KERNELS, 0,
			"Find what changed: batch size, sequence length, type, memory layout, deterministic mode and code path select the kernels"},
		{DELAY_BY_GPU, RESOURCE_NONE, NEW_CALLS | ON_DEFAULT_STREAM, 0,
			"Run these calls on a separate stream, or create the other streams with cudaStreamNonBlocking: the default stream waits for all others"},
		{DELAY_BY_GPU, RESOURCE_NONE, NEW_CALLS, ON_DEFAULT_STREAM,
			"Move these calls out of the step, or find out what they make the GPU wait for"},
		{DELAY_BY_GPU, RESOURCE_NONE, HELD_BY_THREAD, 0,
			"In that thread, wait for the GPU before taking the lock or after releasing it"},
		{DELAY_BY_GPU, RESOURCE_NONE, MORE_WORK, 0,
			"Check whether the extra work is intended: larger batches or sequences, extra evaluation, retries"},

		{ANY_KIND, RESOURCE_RANKS, 0, 0,
			"Find the late rank: `ingero merge` the recordings of all nodes and explain the result, or ask the cluster service (`ingero-cluster blame`)"},

		/* Synchronisation and copies. */
		{DELAY_BY_SYNC, ANY_RESOURCE, HAS_TORCH, 0,
			"Avoid a sync in every step (.item(), .cpu(), print, `if tensor`): keep values on the GPU and read them every N steps"},
		{ANY_KIND, RESOURCE_NONE, MANY_WAITS | HAS_TORCH, 0,
			"Avoid a sync in every step (.item(), .cpu(), print, `if tensor`): keep values on the GPU and read them every N steps"},
		{DELAY_BY_SYNC, ANY_RESOURCE, HAS_JAX, HAS_TORCH,
			"Avoid a sync in every step: block_until_ready(), float() or print of a result; read metrics every N steps"},
		{DELAY_BY_SYNC, ANY_RESOURCE, HAS_CUPY, HAS_TORCH,
			"Avoid a sync in every step: .get(), float() or `if` on an array; read values every N steps"},
		{DELAY_BY_SYNC, ANY_RESOURCE, 0, HAS_TORCH | HAS_JAX | HAS_CUPY,
			"Do not wait for the GPU in every step: keep values there and read them every N steps"},
		{ANY_KIND, RESOURCE_NONE, MANY_WAITS, HAS_TORCH,
			"Do not wait for the GPU in every step: keep values there and read them every N steps"},
		{DELAY_BY_COPY, RESOURCE_NONE, HAS_TORCH | HAS_LOADER, FROM_GPU,
			"Use pinned memory and asynchronous copies: DataLoader(pin_memory=True), .to(device, non_blocking=True)"},
		{DELAY_BY_COPY, RESOURCE_NONE, HAS_TORCH, FROM_GPU | HAS_LOADER,
			"Use pinned memory and asynchronous copies: tensor.pin_memory(), .to(device, non_blocking=True)"},
		{DELAY_BY_COPY, RESOURCE_NONE, HAS_TORCH | FROM_GPU, 0,
			"Copy less to the host: .cpu(), .numpy() and .item() wait for the GPU; keep results there and read them every N steps"},
		{DELAY_BY_COPY, RESOURCE_NONE, HAS_JAX, FROM_GPU | HAS_TORCH,
			"Transfer the next batch ahead (jax.device_put while this step runs) and keep arrays on the device"},
		{DELAY_BY_COPY, RESOURCE_NONE, HAS_JAX | FROM_GPU, HAS_TORCH,
			"Copy less to the host: np.asarray(), float() and print of a result wait for the GPU; read them every N steps"},
		{DELAY_BY_COPY, RESOURCE_NONE, HAS_CUPY, FROM_GPU | HAS_TORCH,
			"Use pinned host memory (cupyx.empty_pinned) and a stream, or keep arrays on the GPU between steps"},
		{DELAY_BY_COPY, RESOURCE_NONE, HAS_CUPY | FROM_GPU, HAS_TORCH,
			"Copy less to the host: .get() and cupy.asnumpy() wait for the GPU; keep results there"},
		{DELAY_BY_COPY, RESOURCE_NONE, 0, HAS_FRAMEWORK,
			"Use pinned host memory and asynchronous copies (cudaMallocHost, cudaMemcpyAsync), so copies do not block"},
		{DELAY_BY_COPY, RESOURCE_NONE, HAS_TENSORFLOW, 0,
			"Copy batches ahead: tf.data.experimental.prefetch_to_device()"},
		{DELAY_BY_COPY, RESOURCE_NONE, HAS_TRITON,
			HAS_TORCH | HAS_JAX | HAS_CUPY | HAS_TENSORFLOW,
			"Use pinned host memory and asynchronous copies, so copies do not block"},

		/* Launches, memory, graphs. */
		{DELAY_BY_LAUNCH, ANY_RESOURCE, HAS_TORCH, 0,
			"Launch fewer, larger kernels: torch.compile, CUDA graphs, fused or foreach optimizers, a larger batch"},
		{DELAY_BY_LAUNCH, ANY_RESOURCE, HAS_JAX, HAS_TORCH,
			"Put the whole step into one jax.jit, with lax.scan for its loops"},
		{DELAY_BY_LAUNCH, ANY_RESOURCE, HAS_CUPY, HAS_TORCH,
			"Launch fewer, larger kernels: cupy.fuse, an ElementwiseKernel or RawKernel, larger arrays"},
		{DELAY_BY_LAUNCH, ANY_RESOURCE, HAS_TENSORFLOW, HAS_TORCH,
			"Launch fewer, larger kernels: tf.function(jit_compile=True), a larger batch"},
		{DELAY_BY_LAUNCH, ANY_RESOURCE, 0, HAS_TORCH | HAS_JAX | HAS_CUPY | HAS_TENSORFLOW,
			"Launch fewer, larger kernels: fuse them, capture a CUDA graph, or process larger batches"},
		{DELAY_BY_GRAPH, ANY_RESOURCE, 0, 0,
			"Capture larger graphs and launch fewer of them; update a graph instead of capturing it again"},
		{DELAY_BY_ALLOCATION, ANY_RESOURCE, PINS_MEMORY, 0,
			"Allocate pinned buffers once and reuse them instead of pinning each batch"},
		{DELAY_BY_ALLOCATION, ANY_RESOURCE, HAS_TORCH, PINS_MEMORY,
			"Do not call torch.cuda.empty_cache() in the loop; if sizes change, set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
		{DELAY_BY_ALLOCATION, ANY_RESOURCE, HAS_CUPY, HAS_TORCH | PINS_MEMORY,
			"Let CuPy's memory pool keep its blocks: do not call free_all_blocks() in the loop or switch the pool off"},
		{DELAY_BY_ALLOCATION, ANY_RESOURCE, HAS_JAX, HAS_TORCH | PINS_MEMORY,
			"Let JAX allocate ahead: leave XLA_PYTHON_CLIENT_PREALLOCATE on and XLA_PYTHON_CLIENT_ALLOCATOR at its default"},
		{DELAY_BY_ALLOCATION, ANY_RESOURCE, 0, HAS_TORCH | HAS_CUPY | HAS_JAX | PINS_MEMORY,
			"Allocate GPU memory once and reuse it, or use a pool (cudaMallocAsync)"},
		{DELAY_BY_COLLECTIVE, ANY_RESOURCE, 0, 0,
			"Find the rank that enters last and what holds it up: `ingero-cluster blame`"},
		{DELAY_BY_CALL, ANY_RESOURCE, 0, MANY_WAITS,
			"Make these calls once, before the loop, or less often"},

		/* Compilers. */
		{DELAY_BY_COMPILE, ANY_RESOURCE, HAS_TORCH, 0,
			"Keep shapes the same (pad to a few sizes), or compile with torch.compile(dynamic=True); TORCH_LOGS=recompiles shows why"},
		{DELAY_BY_COMPILE, ANY_RESOURCE, HAS_JAX, HAS_TORCH,
			"Keep shapes and static arguments the same (pad to a few sizes); JAX_LOG_COMPILES=1 shows what is compiled"},
		{DELAY_BY_COMPILE, ANY_RESOURCE, HAS_CUPY, HAS_TORCH,
			"Create kernels once, outside the loop, from constant source; keep CUPY_CACHE_DIR on persistent storage"},
		{DELAY_BY_COMPILE, ANY_RESOURCE, HAS_TENSORFLOW, HAS_TORCH,
			"Avoid retracing: a fixed input_signature, or tf.function(reduce_retracing=True)"},
		{DELAY_BY_COMPILE, ANY_RESOURCE, HAS_TRITON, HAS_TORCH | HAS_JAX,
			"Keep Triton's constexpr arguments and autotune keys the same; keep TRITON_CACHE_DIR on persistent storage"},
		{DELAY_BY_COMPILE, ANY_RESOURCE, 0, HAS_FRAMEWORK,
			"Compile once, before the loop, and keep shapes the same"},
		{DELAY_BY_COMPILE, ANY_RESOURCE, 0, 0,
			"Compile every shape while warming up, and keep the compiler's cache between runs"},

		/* CPUs. */
		{ANY_KIND, RESOURCE_CPU_PROGRAM, AMONG_OTHERS, IS_OF_TRACER,
			"Reserve CPUs for the job: a cpuset, `taskset`, or a Guaranteed pod with the static CPU manager"},
		{ANY_KIND, RESOURCE_CPU_PROGRAM, HAS_PID, IS_OF_TRACER | IS_OWN | IS_OF_KERNEL,
			"Stop {name}, lower its priority (`renice 19 -p {pid}`) or move it to other CPUs (`taskset -cp CPUS {pid}`)"},
		{ANY_KIND, RESOURCE_CPU_PROGRAM, 0, IS_OF_TRACER | IS_OWN | HAS_PID | IS_OF_KERNEL,
			"Stop {name}, lower its priority (`renice`) or run it on other CPUs (`taskset`) or elsewhere"},
		{ANY_KIND, RESOURCE_CPU_PROGRAM, IS_OWN, IS_OF_TRACER | IS_OF_KERNEL,
			"Run fewer processes of {name} at a time, or give each its own CPUs (`taskset`, a cpuset)"},
		{ANY_KIND, RESOURCE_CPU_PROGRAM,
			IS_OF_KERNEL, 0, "Keep kernel work off the job's CPUs: interrupt affinity, workqueue cpumasks, isolcpus; see what causes it (disk, network)"},
		{ANY_KIND, RESOURCE_CPU_PROGRAM, 0, IS_OF_TRACER,
			"Reserve CPUs for the job: a cpuset, `taskset`, or a Guaranteed pod with the static CPU manager"},
		{ANY_KIND, RESOURCE_CPU_OWN, HAS_TORCH | HAS_LOADER, 0,
			"Use fewer threads and workers than CPUs: OMP_NUM_THREADS, torch.set_num_threads(), num_workers"},
		{ANY_KIND, RESOURCE_CPU_OWN, HAS_TORCH, HAS_LOADER,
			"Use fewer threads than CPUs: OMP_NUM_THREADS, torch.set_num_threads(), fewer background threads"},
		{ANY_KIND, RESOURCE_CPU_OWN, 0, HAS_TORCH,
			"Use fewer threads than CPUs: OMP_NUM_THREADS, fewer background threads"},
		{ANY_KIND, RESOURCE_CPU_OWN, 0, 0, "Give the job more CPUs"},
		{ANY_KIND, RESOURCE_CPU_QUOTA, IN_CONTAINER, 0,
			"Raise or remove the container's CPU limit (cpu.max, resources.limits.cpu, docker --cpus)"},
		{ANY_KIND, RESOURCE_CPU_QUOTA, HAS_PID, IN_CONTAINER,
			"Raise or remove the CPU limit of the job's control group, which `cat /proc/{pid}/cgroup` names: cpu.max, in cgroup v1 cpu.cfs_quota_us; CPUQuota= of a systemd unit"},
		{ANY_KIND, RESOURCE_CPU_QUOTA, 0, 0,
			"Use no more threads than the CPU limit allows: OMP_NUM_THREADS"},
		{ANY_KIND, RESOURCE_CPU_MASK, HAS_PID, IS_OWN | IS_OF_TRACER | IS_OF_KERNEL,
			"Move {name} to other CPUs (`taskset -cp CPUS {pid}`), or stop it"},
		{ANY_KIND, RESOURCE_CPU_MASK, 0, 0,
			"Allow the job and its workers, which inherit a mask, more CPUs: its cpuset, `taskset -cp`, os.sched_setaffinity(), Slurm's --cpus-per-task or --cpu-bind"},
		{DELAY_BY_CPU, RESOURCE_NONE, 0, IS_OF_TRACER,
			"Reserve CPUs for the job (a cpuset, `taskset`), and check the container's CPU limit"},
		{ANY_KIND, RESOURCE_PICKLE, 0, 0,
			"Do not pass large objects with each task: pass them once (Pool(initializer=…)), share them (multiprocessing.shared_memory), or pass an index"},
		{ANY_KIND, RESOURCE_FRESH_MEMORY, 0, 0,
			"Keep large buffers and reuse them, instead of allocating and freeing them in each step"},
		{ANY_KIND, RESOURCE_FRESH_MEMORY, 0, 0,
			"Let malloc keep freed memory: MALLOC_TRIM_THRESHOLD_ and MALLOC_MMAP_THRESHOLD_ above the largest buffer, or jemalloc"},
		{ANY_KIND, RESOURCE_COPIED_MEMORY, 0, 0,
			"Do not fork a process that keeps writing to much memory: copy what is to be saved into a buffer that is kept, and give that to a thread or to a process that was started early"},
		{ANY_KIND, RESOURCE_COPIED_MEMORY, 0, 0,
			"If it must fork, keep what changes small, or in shared memory (mmap with MAP_SHARED), which is not copied; huge pages (madvise) take fewer faults"},
		{DELAY_BY_HOST, ANY_RESOURCE, IS_AWAITED, STARTS_PROCESSES,
			"Do this work outside the lock, or use its result a step later: the thread that feeds the GPU waits for it"},
		{ANY_KIND, RESOURCE_WORK, HAS_LOADER, 0,
			"Move this work into the loader's workers, do it once before training, or less often"},
		{ANY_KIND, RESOURCE_WORK, 0, HAS_LOADER,
			"Do it ahead of the step in other processes, only once (keep the result), or in larger batches"},
		{ANY_KIND, RESOURCE_CALLBACK, HAS_JAX, 0,
			"Take callbacks out of the loop (jax.debug.callback, io_callback, pure_callback): return the values from lax.scan and read them once"},
		{ANY_KIND, RESOURCE_CALLBACK, 0, HAS_JAX,
			"Take callbacks out of the compiled code: return the values and read them once"},
		{ANY_KIND, RESOURCE_TRACEBACK, HAS_TORCH, 0,
			"Switch anomaly mode off: torch.autograd.set_detect_anomaly(False), in Lightning detect_anomaly=False; it also waits for the GPU at each gradient"},
		{ANY_KIND, RESOURCE_TRACEBACK, 0, HAS_TORCH,
			"Do not record stacks in the loop: logging with stack_info, warnings, traceback.extract_stack()"},
		{DELAY_BY_NETWORK, ANY_RESOURCE, MANY_WAITS, 0,
			"Ask for many at a time (a batch, MGET, a pipeline), or ahead of the step in another thread"},
		{DELAY_BY_PROCESS, RESOURCE_PROCESS, MANY_WAITS, 0,
			"Ask for many at a time (a batch, MGET, a pipeline), or ahead of the step in another thread"},
		{ANY_KIND, RESOURCE_DELAYED_ACK, 0, 0,
			"Set TCP_NODELAY on both ends, or send header and body in one write"},
		{ANY_KIND, RESOURCE_TIMEOUT, 0, 0,
			"Find who does not answer (a name server, a dead replica, a proxy) and take it off the list, or keep its answers; in a loop that polls, wait for the event itself"},
		{ANY_KIND, RESOURCE_TIMER, 0, 0,
			"Wait for the event itself instead of polling: `await queue.get()` or an asyncio.Event, not asyncio.sleep() in a loop"},
		{DELAY_BY_GIL, RESOURCE_LOCK, 0, 0,
			"Move that thread's work to another process, or into code that releases the interpreter lock"},
		{DELAY_BY_GIL, RESOURCE_NONE, 0, 0,
			"Move that thread's work to another process, or into code that releases the interpreter lock"},
		{DELAY_BY_PROCESS, RESOURCE_LOCK, 0, 0,
			"Hold the lock only while shared values are read or written, and do the work outside it"},
		{DELAY_BY_LOADER, RESOURCE_LOCK, 0, 0,
			"Hold the lock only while shared values are read or written, and do the work outside it"},
		{DELAY_BY_LOCK, RESOURCE_LOCK, 0, 0,
			"Hold the lock for less time: move slow work out of it, or give each thread its own data"},
		{ANY_KIND, RESOURCE_FILE_LOCK, HAS_PID, 0,
			"Let {name} hold the lock for less time: do slow work before taking it, or replace the file in one step (rename)"},
		{ANY_KIND, RESOURCE_FILE_LOCK, 0, HAS_PID,
			"Find its holder (`lslocks`); write to a separate file, less often, or in a background thread"},
		{ANY_KIND, RESOURCE_DATABASE_LOCK, 0, 0,
			"Let whoever holds it commit sooner: no slow work in a transaction, no BEGIN IMMEDIATE for what only reads, WAL mode"},
		{ANY_KIND, RESOURCE_DATABASE_LOCK, 0, 0,
			"Write rows in batches from a background thread, or to a database of its own"},
		{DELAY_BY_GC, ANY_RESOURCE, 0, 0,
			"Call gc.freeze() after set-up and gc.disable() in the loop, with gc.collect() where a pause does not matter"},
		{DELAY_BY_GC, ANY_RESOURCE, 0, 0,
			"Create fewer objects that refer to each other in every step"},

		/* Disks, memory, the network, other processes. */
		{ANY_KIND, RESOURCE_DISK_READ, HAS_PID, IS_OWN,
			"Stop {name} or lower its disk priority (`ionice -c3 -p {pid}`), or put its files on another disk"},
		{ANY_KIND, RESOURCE_DISK_READ, 0, IS_OWN | HAS_PID,
			"Read ahead of the step or cache the files in memory or on a faster disk"},
		{ANY_KIND, RESOURCE_DISK_READ, IS_OWN, 0,
			"Read ahead of the step, in fewer and larger pieces, or cache the files in memory or on a faster disk"},
		{ANY_KIND, RESOURCE_DISK_WRITE, HAS_PID, IS_OWN,
			"Stop {name} or lower its disk priority (`ionice -c3 -p {pid}`), or let it write to another disk"},
		{DELAY_BY_DISK, RESOURCE_DISK_WRITE, 0, 0,
			"Write in a background thread or less often, and without fsync in the step"},
		{ANY_KIND, RESOURCE_MEMORY_LIMIT, 0, 0,
			"Raise the container's memory limit (memory.max, memory.high, resources.limits.memory; memory.limit_in_bytes of cgroup v1), or use less memory"},
		{ANY_KIND, RESOURCE_MEMORY, 0, 0,
			"Free host memory: fewer workers, smaller caches; `ps aux --sort=-rss` shows the largest processes"},
		{ANY_KIND, RESOURCE_ADDRESS, 0, 0,
			"Check {who} and the network to it; send requests ahead or in the background, or cache the answers"},
		{ANY_KIND, RESOURCE_PIPE_FULL, 0, 0,
			"Let {name} read faster: empty the pipe first, and process what it read afterwards"},
		{ANY_KIND, RESOURCE_PIPE_FULL, 0, 0,
			"Write less, or from a background thread with a queue (logging.handlers.QueueHandler); a larger pipe (F_SETPIPE_SZ) helps with bursts only"},
		{DELAY_BY_PROCESS, RESOURCE_PROCESS, 0, STARTS_PROCESSES | IS_STOPPED,
			"Call {name} ahead, in the background or less often, or make it faster: the steps wait for its answer"},
		{DELAY_BY_PROCESS, RESOURCE_NONE, 0, STARTS_PROCESSES | IS_STOPPED,
			"Call {name} ahead, in the background or less often, or make it faster: the steps wait for its answer"},
		{ANY_KIND, ANY_RESOURCE, STARTS_PROCESSES | HAS_TORCH | HAS_LOADER, 0,
			"Keep the workers between epochs: DataLoader(persistent_workers=True)"},
		{DELAY_BY_PROCESS, RESOURCE_PROCESS, STARTS_PROCESSES, 0,
			"Start {name} once for many items, or do its work in the program itself: the steps wait for each start"},
		{DELAY_BY_HOST, ANY_RESOURCE, STARTS_PROCESSES | HAS_TORCH, HAS_LOADER,
			"Start processes once and keep them; for a DataLoader: persistent_workers=True"},
		{DELAY_BY_LOCK, ANY_RESOURCE, STARTS_PROCESSES | HAS_TORCH, HAS_LOADER,
			"Start processes once and keep them; for a DataLoader: persistent_workers=True"},
		{ANY_KIND, ANY_RESOURCE, STARTS_PROCESSES, HAS_TORCH,
			"Start processes once and keep them instead of starting new ones each time"},

		/* Loaders. */
		{DELAY_BY_LOADER, ANY_RESOURCE, BY_HOST | HAS_TORCH, 0,
			"Use more DataLoader workers (num_workers) if CPUs are free"},
		{DELAY_BY_LOADER, ANY_RESOURCE, BY_HOST, HAS_TORCH,
			"Use more workers for loading if CPUs are free"},
		{DELAY_BY_LOADER, ANY_RESOURCE, BY_HOST, 0,
			"Do less for each sample: prepare or resize the data once, use a faster decoder, or decode on the GPU"},
		{DELAY_BY_LOADER, ANY_RESOURCE, BY_DISK, 0,
			"Keep the data on a fast local disk or in memory, in fewer and larger files"},
		{DELAY_BY_LOADER, ANY_RESOURCE, BY_NETWORK, 0,
			"Copy the data to a local disk first, or cache what was read"},
		{DELAY_BY_LOADER, ANY_RESOURCE, HAS_TORCH, BY_HOST | IS_STOPPED,
			"Load further ahead to hide waits: a larger prefetch_factor and more workers"},

		/* Own code, and what is saved. */
		{DELAY_BY_CHECKPOINT, ANY_RESOURCE, HAS_LIGHTNING, 0,
			"Save in the background: Trainer(plugins=[AsyncCheckpointIO()]); or less often: ModelCheckpoint(every_n_train_steps=N)"},
		{DELAY_BY_CHECKPOINT, ANY_RESOURCE, HAS_TORCH, HAS_LIGHTNING,
			"Save in the background: torch.distributed.checkpoint.async_save(), or a thread with a copy on the host"},
		{DELAY_BY_CHECKPOINT, ANY_RESOURCE, HAS_JAX, HAS_TORCH,
			"Save in the background: orbax.checkpoint.AsyncCheckpointer"},
		{DELAY_BY_CHECKPOINT, ANY_RESOURCE, 0, HAS_TORCH | HAS_JAX,
			"Save in the background: copy to host memory, then write in a thread"},
		{DELAY_BY_CHECKPOINT, ANY_RESOURCE, 0, 0,
			"Save less often, save only what changes, or save to a faster disk"},
		{DELAY_BY_HOST, RESOURCE_NONE, IS_PERIODIC, STARTS_PROCESSES,
			"Do it less often, or in a background thread or process"},
		{DELAY_BY_HOST, RESOURCE_NONE, HAS_LOADER, STARTS_PROCESSES,
			"Move this work into the loader's workers, do it once before training, or less often"},
		{DELAY_BY_HOST, RESOURCE_NONE, 0, HAS_LOADER | IS_PERIODIC | STARTS_PROCESSES,
			"Move this work out of the thread that feeds the GPU: prepare it ahead in other processes, do it once, or vectorise it"},
		{DELAY_BY_DISK, RESOURCE_NONE, 0, STARTS_PROCESSES,
			"Do file I/O outside the step: in a background thread, less often, or on a faster disk"},
		{DELAY_BY_MEMORY, RESOURCE_NONE, 0, 0,
			"Give the job more host memory, or let it use less: the kernel frees memory while it waits"},
		{DELAY_BY_NETWORK, RESOURCE_NONE, 0, 0,
			"Do it ahead or in the background, or cache the answers"},
		{DELAY_BY_LOCK, RESOURCE_NONE, 0, STARTS_PROCESSES,
			"See what the other thread does meanwhile: `ingero explain --steps`"},
		{ANY_KIND, RESOURCE_POLL, 0, 0,
			"Wait with cudaEventSynchronize() (cudaEventBlockingSync leaves the CPU to others), or sleep for less at a time"},
		{DELAY_BY_ASLEEP, RESOURCE_NONE, 0, STARTS_PROCESSES,
			"Wait for what the line sleeps for (a file, a lock, a queue, a service) by a call that returns when it is there, instead of looking again after a while"},
		{DELAY_BY_ASLEEP, RESOURCE_NONE, 0, STARTS_PROCESSES,
			"If the pause is meant (a retry, a rate limit, debugging), take it out of the loop that feeds the GPU: into a thread of its own"},
		{ANY_KIND, ANY_RESOURCE, NO_LEDGER, 0,
			"Record again with `sudo ingero trace`"},
		{DELAY_BY_UNKNOWN, ANY_RESOURCE, 0, NO_LEDGER,
			"See where the time of the steps goes: `ingero explain --steps`"},
		{ANY_KIND, ANY_RESOURCE, 0, 0, NULL},
};

/* What a library does for the program, by its name in host_code.c; the rows above say the rest. */
static const struct {
	const char *work, *text;
} work_rows[] = {
	{"SQLite queries",
		"Add an index for what the queries look up, query a whole batch at once, or cache the answers"},
	{"Regular expressions",
		"Simplify the pattern (nested or trailing repeats backtrack), or use string methods"},
	{"Python tracing or profiling",
		"Remove the profiler or tracer (sys.settrace, cProfile, coverage, a debugger) from the run"},
	{"Python signal handlers",
		"Let the handler only set a flag, and send the signal less often (setitimer, faulthandler, a sampling profiler)"},
	{"Logging",
		"Log less in the loop, or hand records to a thread (logging.handlers.QueueHandler)"},
};
/* clang-format on */

static bool holds(const struct advice_row *r, const struct advice_case *c)
{
	return (r->kind == ANY_KIND || r->kind == c->kind) &&
	       (r->resource == ANY_RESOURCE || r->resource == c->resource) &&
	       (c->facts & r->needs) == r->needs && !(c->facts & r->lacks);
}

static void fill(const struct advice_row *r, const struct advice_case *c, struct buf *b)
{
	for (const char *p = r->text; *p; p++) {
		if (!strncmp(p, "{who}", 5)) {
			buf_puts(b, c->who[0] ? c->who : "it");
			p += 4;
		} else if (!strncmp(p, "{name}", 6)) {
			buf_puts(b, c->name[0] ? c->name : "it");
			p += 5;
		} else if (!strncmp(p, "{pid}", 5)) {
			buf_printf(b, "%u", c->pid);
			p += 4;
		} else {
			buf_putc(b, *p);
		}
	}
}

static bool is_told(const struct incident *inc, const char *text)
{
	for (int i = 0; i < inc->fix_count; i++)
		if (!strcmp(inc->fixes[i], text))
			return true;
	return false;
}

void advice_put(const struct advice_case *c, struct incident *inc)
{
	int told = 0;

	for (size_t i = 0; c->resource == RESOURCE_WORK && i < ARRAY_SIZE(work_rows); i++)
		if (!strcmp(work_rows[i].work, c->name))
			snprintf(
				inc->fixes[told++], sizeof(inc->fixes[0]), "%s", work_rows[i].text);
	if (told)
		inc->fix_count = told;
	for (const struct advice_row *r = advice_rows; r->text && told < ADVICE_MAX; r++) {
		_cleanup_buf_ struct buf b = BUF_INIT(sizeof(inc->fixes[0]));

		if (!holds(r, c))
			continue;
		if (!told)
			inc->fix_count = 0;
		fill(r, c, &b);
		if (b.err || is_told(inc, buf_str(&b)))
			continue;
		snprintf(inc->fixes[told++], sizeof(inc->fixes[0]), "%s", buf_str(&b));
		inc->fix_count = told;
	}
}

static const struct {
	enum framework framework;
	const char *part; /* of a Python file's path, or of a library's name */
} marks[] = {
	{FRAMEWORK_TORCH, "/torch/"},
	{FRAMEWORK_TORCH, "libtorch"},
	{FRAMEWORK_TORCH, "libc10"},
	{FRAMEWORK_LIGHTNING, "/lightning/"},
	{FRAMEWORK_LIGHTNING, "/pytorch_lightning/"},
	{FRAMEWORK_JAX, "/jax/"},
	{FRAMEWORK_JAX, "/jaxlib/"},
	{FRAMEWORK_JAX, "/flax/"},
	{FRAMEWORK_JAX, "libjax"},
	{FRAMEWORK_CUPY, "/cupy/"},
	{FRAMEWORK_CUPY, "/cupyx/"},
	{FRAMEWORK_CUPY, "cupy_backends"},
	{FRAMEWORK_TRITON, "/triton/"},
	{FRAMEWORK_TRITON, "libtriton"},
	{FRAMEWORK_TENSORFLOW, "/tensorflow/"},
	{FRAMEWORK_TENSORFLOW, "/keras/"},
	{FRAMEWORK_TENSORFLOW, "libtensorflow"},
};

/* Of an installed package the part from its own folder on: whoever keeps CuPy below /opt/torch has no PyTorch. */
static const char *path_of(const struct stack_frame *f)
{
	const char *path = stack_frame_is_python(f) ? f->py_file : f->file;
	const char *installed = path ? strstr(path, "-packages/") : NULL;

	return installed ? installed + strlen("-packages") : path;
}

static unsigned of_frame(const struct stack_frame *f)
{
	const char *file = path_of(f);
	unsigned found = 0;

	for (size_t i = 0; file && i < ARRAY_SIZE(marks); i++)
		if (strstr(file, marks[i].part))
			found |= FRAMEWORK_BIT(marks[i].framework);
	return found;
}

static unsigned of_stack(const struct recording *rec, uint64_t hash)
{
	const struct stack *s = stack_find(rec->stacks, hash);
	unsigned found = 0;

	for (size_t i = 0; s && i < s->count; i++)
		found |= of_frame(&s->frames[i]);
	return found;
}

static unsigned of_origin(enum step_origin o)
{
	switch (o) {
	case STEP_BY_OPTIMIZER:
	case STEP_BY_BACKWARD:
	case STEP_BY_LOADER: return FRAMEWORK_BIT(FRAMEWORK_TORCH);
	case STEP_BY_EXECUTE: return FRAMEWORK_BIT(FRAMEWORK_JAX);
	default: return 0;
	}
}

unsigned frameworks_find(const struct recording *rec, const struct step_account *a)
{
	unsigned found = of_origin(a->origin);

	for (int i = 0; i < a->entry_count; i++)
		if (a->entries[i].owner != OWNER_PROCESS)
			found |= of_stack(rec, a->entries[i].stack_hash) |
				 of_stack(rec, a->entries[i].wait_hash);
	if (found & FRAMEWORK_BIT(FRAMEWORK_LIGHTNING))
		found |= FRAMEWORK_BIT(FRAMEWORK_TORCH);
	return found;
}
