/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/sentences/delay_sentence.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/macros.h"
#include "diagnose/sentences/advice.h"

#define ANY RESOURCE_COUNT

/* clang-format off: a table */
const struct delay_sentence delay_sentences[] = {
	/* What has the GPU. */
	{DELAY_BY_GPU, RESOURCE_GPU_CLOCK, 0, "GPU clock at {clock}",
		"The GPU does the same work at a lower clock. Neither power nor temperature limits it: the clocks are locked, or application clocks are set"},
	{DELAY_BY_GPU, RESOURCE_GPU_POWER, 0, "GPU held back by its power limit (clock at {clock})",
		"The GPU lowers its clock to stay within its power limit[: {detail}]"},
	{DELAY_BY_GPU, RESOURCE_GPU_HEAT, 0, "GPU too hot (clock at {clock})",
		"The GPU lowers its clock because of its temperature[: {detail}]"},
	{DELAY_BY_GPU, RESOURCE_GPU_PROCESS, 0, "GPU shared with {who}",
		"Kernels of both processes take turns on the GPU[ (the other one: {detail})]"},
	{DELAY_BY_GPU, RESOURCE_GPU_PERHAPS, 0, "GPU perhaps shared with {who}",
		"{who} uses a GPU at the same time[ ({detail})]. Whether it is the same one is unknown: no readings name the processes on it, and the numbers that programs use for their GPUs do not tell"},
	{DELAY_BY_COPY, RESOURCE_GPU_PERHAPS, 0, "GPU perhaps shared with {who}, copies included",
		"{who} uses a GPU at the same time[ ({detail})]. Whether it is the same one is unknown: no readings name the processes on it, and the numbers that programs use for their GPUs do not tell"},
	{DELAY_BY_COPY, RESOURCE_GPU_PROCESS, 0, "GPU shared with {who}, copies included",
		"Copies of the same size take longer: the link and the GPU's copy engines are shared[; {detail}]"},
	{DELAY_BY_GPU, RESOURCE_RANKS, 0,
		"Waiting for other ranks, not in this recording, in {who}",
		"Ranks of other nodes enter {who} later, or the network to them is slow ({detail})"},
	{DELAY_BY_COLLECTIVE, RESOURCE_RANKS, 0,
		"Waiting for other ranks, not in this recording, in {who}",
		"Ranks of other nodes enter {who} later, or the network to them is slow ({detail})"},
	{DELAY_BY_GPU, RESOURCE_PRECISION, 0, "GPU matrix products in {who}[ {at}]",
		"The GPU is much faster with narrower types[: {detail} are in {who}]"},
	{DELAY_BY_GPU, RESOURCE_ATTENTION, 0, "GPU attention in {who}[ {at}]",
		"The fast attention kernels take 16-bit types, not {who}[; {detail} of the other matrix products are in 16 bits]"},
	{DELAY_BY_GPU, ANY, NEW_TYPES, "GPU kernels in {types}",
		"The precision has changed[: {kernels}]"},
	{DELAY_BY_GPU, ANY, NEW_KERNELS, "Different GPU kernels than before[ {at}]",
		"Slow {units} run kernels that ordinary ones do not[: {kernels}]"},
	{DELAY_BY_GPU, ANY, NEW_CALLS, "New GPU calls: {call}[, {at}]",
		"Ordinary {units} do not make these calls; the GPU runs them, or waits for them, between its kernels"},
	{DELAY_BY_GPU, ANY, HELD_BY_THREAD,
		"Thread {thread} blocks the {units} while it waits for the GPU",
		"The {units} wait for that thread: for a lock that it holds, or for its result"},
	{DELAY_BY_GPU, ANY, MORE_WORK, "More GPU work[ {at}]", "The GPU has more to do[: {work}]"},
	{DELAY_BY_GPU, ANY, MANY_WAITS, "GPU synchronisation[ {at}]",
		"The program waits for the GPU {waits}, so the CPU no longer prepares work ahead"},
	{DELAY_BY_GPU, ANY, 0, "Waiting for the GPU[ {at}]", "Cause unknown: the GPU takes longer"},

	/* CUDA calls. */
	{DELAY_BY_SYNC, ANY, 0, "GPU synchronisation in the middle of the {unit}[ {at}]",
		"The program waits for the GPU[ {waits}], so the CPU no longer prepares work ahead"},
	{DELAY_BY_COPY, RESOURCE_DISK_READ, IS_OWN, "Copies from a file on disk[ {at}]",
		"The data is not in memory yet: the copy waits until it has been read from disk[; {detail}]"},
	{DELAY_BY_COPY, RESOURCE_DISK_READ, 0,
		"Copies from a file on a disk that is busy[ with reads by {who}][ {at}]",
		"The data is not in memory yet: the copy waits until it has been read from disk, behind other reads[; {detail}]"},
	{DELAY_BY_COPY, RESOURCE_DISK_WRITE, 0,
		"Copies from a file on a disk that is busy[ with writes by {who}][ {at}]",
		"The data is not in memory yet: the copy waits until it has been read from disk, behind the writes[; {detail}]"},
	{DELAY_BY_COPY, ANY, TO_GPU, "Copies to the GPU[ {at}]",
		"The thread waits for its copies[ of {bytes} per {unit}]: they are synchronous, or their memory is not pinned"},
	{DELAY_BY_COPY, ANY, FROM_GPU, "Copies from the GPU[ {at}]",
		"The thread waits until the GPU has finished and the data[ ({bytes} per {unit})] is on the host"},
	{DELAY_BY_COPY, ANY, 0, "Copies to and from the GPU[ {at}]",
		"The thread waits for its copies[ of {bytes} per {unit}]: they are synchronous, or their memory is not pinned"},
	{DELAY_BY_LAUNCH, ANY, 0, "Launching kernels[ {at}]",
		"The CPU launches kernels[ ({launches} per {unit})] more slowly than the GPU runs them"},
	{DELAY_BY_ALLOCATION, ANY, PINS_MEMORY, "Allocating pinned host memory[ {at}]",
		"Pinned memory is allocated and freed in the loop[: {calls}]; each page is locked, and such calls wait for the GPU"},
	{DELAY_BY_ALLOCATION, ANY, 0, "Allocating GPU memory[ {at}]",
		"GPU memory is freed and allocated again[: {calls}; no pool keeps it (switched off, or emptied in the loop)]; such calls wait for the GPU"},
	{DELAY_BY_GRAPH, ANY, 0, "Launching CUDA graphs[ {at}]",
		"The thread spends its time launching CUDA graphs"},
	{DELAY_BY_COLLECTIVE, ANY, 0, "Collective communication[ {at}]",
		"The thread waits in collectives: other ranks are late, or the network is slow"},
	{DELAY_BY_CALL, ANY, 0, "Other CUDA calls[ {at}]",
		"The thread spends its time in CUDA calls other than launches, copies and waits"},

	/* Code of the program. */
	{DELAY_BY_COMPILE, RESOURCE_COMPILER, 0, "Compiling with {who}[ {at}]",
		"The {units} wait while code is compiled for a new shape, type or program[ ({detail})]"},
	{DELAY_BY_COMPILE, ANY, 0, "Compiling kernels[ {at}]",
		"The {units} wait while code is compiled for a new shape, type or program"},
	{DELAY_BY_CHECKPOINT, ANY, 0, "Saving a checkpoint[ {at}]",
		"Training stops until the checkpoint is written[; {detail}]"},
	{DELAY_BY_HOST, ANY, STARTS_PROCESSES, "Starting processes[ {at}]",
		"The {units} wait for processes to start"},
	{DELAY_BY_HOST, RESOURCE_CALLBACK, 0, "Callbacks to Python from compiled code[ {at}]",
		"The GPU is idle while the compiled program calls Python on the host and waits for the result"},
	{DELAY_BY_HOST, RESOURCE_TRACEBACK, 0, "Taking stack traces[ {at}]",
		"The program keeps recording Python stacks: autograd's anomaly mode (one for each operation), or logging with stacks"},
	{DELAY_BY_HOST, RESOURCE_WORK, IS_AWAITED, "{who} in another thread[ {at}]",
		"The thread that feeds the GPU waits {wait} for that thread: for a lock that it holds, or for its result"},
	{DELAY_BY_HOST, RESOURCE_WORK, 0, "{who} on the CPU[ {at}]",
		"The GPU waits while the thread that feeds it does this on the CPU"},
	{DELAY_BY_HOST, RESOURCE_FRESH_MEMORY, 0, "Page faults on new memory[ {at}]",
		"The kernel allocates, clears and maps every page on first use[: {detail} in each {unit}]"},
	{DELAY_BY_HOST, RESOURCE_MEMORY_LIMIT, 0,
		"Page faults on files read again for lack of memory[ ({detail})][ {at}]",
		"The control group is at its memory limit: pages of mapped files are dropped, and read again when they are needed"},
	{DELAY_BY_HOST, RESOURCE_COPIED_MEMORY, 0,
		"Page faults (copy-on-write) on memory shared with a forked process[ {at}]",
		"After fork() both processes share their memory: the kernel copies each page that is written to[: {detail} in each {unit}]"},
	{DELAY_BY_HOST, RESOURCE_PICKLE, 0, "Pickling for other processes[ {at}]",
		"Data passed between processes is pickled, sent through a pipe and unpickled"},
	{DELAY_BY_GIL, RESOURCE_PICKLE, 0, "Pickling for other processes[ {at}]",
		"A thread pickles data for other processes and holds the interpreter lock meanwhile"},
	{DELAY_BY_LOCK, RESOURCE_PICKLE, 0, "Pickling for other processes[ {at}]",
		"Data passed between processes is pickled, sent through a pipe and unpickled"},
	{DELAY_BY_PROCESS, RESOURCE_PICKLE, 0, "Pickling for {who}[ {wait}]",
		"Data passed between processes is pickled, sent through a pipe and unpickled: the {units} wait for that, not for the work itself"},
	{DELAY_BY_GIL, RESOURCE_CPU_OWN, 0, "Too many threads[ ({detail})][ {at}]",
		"More threads of the job are ready to run than it has CPUs: the holder of the interpreter lock waits for a CPU too"},
	{DELAY_BY_LOCK, RESOURCE_CPU_OWN, 0, "Too many threads[ ({detail})][ {at}]",
		"More threads of the job are ready to run than it has CPUs: the other thread waits for a CPU itself"},
	{DELAY_BY_HOST, ANY, MANY_WAITS, "GPU synchronisation and host code[ {at}]",
		"The program waits for the GPU {waits}; each wait also costs CPU time"},
	{DELAY_BY_HOST, ANY, IS_AWAITED, "Host code of another thread[ {at}]",
		"The thread that feeds the GPU waits {wait} for that thread: for a lock that it holds, or for its result"},
	{DELAY_BY_HOST, ANY, 0, "Host code[ {at}]",
		"The GPU waits while the thread that feeds it runs code on the CPU"},
	{DELAY_BY_GC, ANY, 0, "Python garbage collection[ {at}]",
		"The program stops while the collector goes through all live objects"},
	{DELAY_BY_GIL, ANY, 0, "Python's interpreter lock (GIL)[ held by thread {thread}][ {at}]",
		"One thread at a time runs Python code: the thread that feeds the GPU waits for its turn"},
	{DELAY_BY_LOCK, ANY, STARTS_PROCESSES, "Starting processes[ {at}]",
		"The {units} wait until new processes have started"},
	{DELAY_BY_LOCK, RESOURCE_LOCK, 0, "Lock held by {who}[ {at}]",
		"The thread that feeds the GPU waits for the lock[; {detail}]"},
	{DELAY_BY_LOCK, RESOURCE_FILE_LOCK, HAS_PID, "File lock held by {who}[ {at}]",
		"A thread waits in flock() or fcntl() until that process releases the lock[; {detail}]"},
	{DELAY_BY_LOCK, RESOURCE_DATABASE_LOCK, HAS_PID,
		"Waiting for a lock of {detail}'s database[ {at}]",
		"{detail} finds it locked by another connection, sleeps and tries again; the only other process seen to use {detail} is {who}"},
	{DELAY_BY_LOCK, RESOURCE_DATABASE_LOCK, 0,
		"Waiting for a lock of {detail}'s database[ {at}]",
		"{detail} finds it locked by another connection, sleeps and tries again; whose that is is not recorded"},
	{DELAY_BY_LOCK, RESOURCE_PIPE_FULL, 0, "Pipe or socket to {who} is full[ {at}]",
		"A thread waits in write() until that process reads from it[; {detail}]"},
	{DELAY_BY_LOCK, RESOURCE_FILE_LOCK, 0, "Waiting for a file lock[ {at}]",
		"Another process or thread holds the lock"},
	{DELAY_BY_LOCK, ANY, 0, "Waiting for another thread[ ({thread})][ {at}]",
		"The thread that feeds the GPU waits for another thread to finish its work"},
	{DELAY_BY_ASLEEP, RESOURCE_POLL, 0, "Sleeping[ {at}] while polling the GPU",
		"The thread waits for the GPU by no call: it looks whether that is done and sleeps for longer each time. When it is, the last sleep continues, by half on average"},
	{DELAY_BY_ASLEEP, ANY, 0, "Sleeping[ {at}]",
		"The thread sleeps for a time that it chooses itself; nothing that is recorded wakes it"},

	/* The machine. */
	{DELAY_BY_CPU, ANY, IS_OF_TRACER, "Cost of tracing (ingero uses the CPU)",
		"Threads of the job are ready to run, but the tracer uses their CPU"},
	{DELAY_BY_CPU, RESOURCE_CPU_OWN, 0, "CPU contention from the job's own {who}[ {at}]",
		"More threads of the job are ready to run than it has CPUs[; {detail}]"},
	{DELAY_BY_CPU, RESOURCE_CPU_PROGRAM, IS_OWN, "CPU contention from {who}",
		"More processes of this program are ready to run than there are CPUs[; {detail}]"},
	{DELAY_BY_CPU, RESOURCE_CPU_PROGRAM, 0, "CPU contention from {who}[{others}]",
		"Threads of the job are ready to run, but other programs use the CPUs[; {who} in {detail}]"},
	{DELAY_BY_CPU, RESOURCE_CPU_QUOTA, 0, "CPU limit of {who}[ ({detail})]",
		"The control group has used up its CPU quota: the kernel stops all its threads until the next period"},
	{DELAY_BY_CPU, RESOURCE_CPU_MASK, 0,
		"Too few CPUs allowed[ ({detail})][, shared with {who}]",
		"Threads of the job, or its workers, take turns on the CPUs that they may use, while others may be free"},
	{DELAY_BY_CPU, ANY, 0, "CPU contention",
		"Threads of the job are ready to run but get no CPU; what uses it is not recorded"},
	{DELAY_BY_DISK, RESOURCE_DISK_READ, IS_OWN, "Reading from disk[ {at}]",
		"The {units} wait for the job's own reads[; {detail}]"},
	{DELAY_BY_DISK, RESOURCE_DISK_WRITE, IS_OWN, "Writing to disk[ {at}]",
		"The {units} wait for the job's own writes[; {detail}]"},
	{DELAY_BY_DISK, RESOURCE_DISK_READ, 0, "Disk busy with reads[ by {who}]",
		"The job's requests queue behind them[; {detail}]"},
	{DELAY_BY_DISK, RESOURCE_DISK_WRITE, 0, "Disk busy with writes[ by {who}]",
		"The job's requests queue behind them[; {detail}]"},
	{DELAY_BY_DISK, RESOURCE_MEMORY_LIMIT, 0,
		"Reading files again for lack of memory[ ({detail})][ {at}]",
		"The control group is at its memory limit: what it has read of files is dropped, and read again when it is needed"},
	{DELAY_BY_DISK, ANY, 0, "Waiting for the disk[ {at}]",
		"The {units} wait for a disk or a file system"},
	{DELAY_BY_MEMORY, RESOURCE_MEMORY_LIMIT, 0, "Memory limit of the container[ ({detail})]",
		"The control group is at its limit: the kernel frees memory while the job waits"},
	{DELAY_BY_MEMORY, ANY, 0, "Host memory is short",
		"The kernel frees memory or reads it back from swap while the job waits[; {detail}]"},
	{DELAY_BY_NETWORK, RESOURCE_DELAYED_ACK, 0,
		"Delayed ACK: small packets to {who} wait[ {at}]",
		"A second small packet waits until the first is acknowledged (Nagle), which takes 40 ms[; {detail}]"},
	{DELAY_BY_PROCESS, RESOURCE_DELAYED_ACK, 0,
		"Delayed ACK: small packets to {who} wait[ {wait}]",
		"A second small packet waits until the first is acknowledged (Nagle), which takes 40 ms[; {detail}]"},
	{DELAY_BY_NETWORK, RESOURCE_TIMER, 0, "Event loop asleep[ {at}]",
		"The waits end by a timer of the event loop (asyncio.sleep(), a timeout) or by a remote peer, not by a process on this machine"},
	{DELAY_BY_NETWORK, RESOURCE_TIMEOUT, 0, "Waiting for replies that do not come[ {at}]",
		"The waits end by their own time limit, not by an answer[; {detail}]"},
	{DELAY_BY_NETWORK, ANY, MANY_WAITS,
		"One request after another[ to {who}][ ({answers})][ {at}]",
		"The thread waits for each answer before it sends the next request"},
	{DELAY_BY_NETWORK, RESOURCE_PROCESS, 0, "Waiting for {who}[ {at}]",
		"The job waits for an answer from a process on this machine[; {detail}]"},
	{DELAY_BY_NETWORK, RESOURCE_ADDRESS, 0, "Waiting for {who} over the network[ {at}]",
		"The job waits for its answer[; {detail}]"},
	{DELAY_BY_NETWORK, ANY, 0, "Waiting for the network[ {at}]",
		"The job waits in calls that send or receive"},
	{DELAY_BY_STOPPED, ANY, 0, "Process stopped[ by {who}]",
		"It was stopped and resumed: SIGSTOP, a debugger or a frozen container"},

	/* What others do for the job. */
	{DELAY_BY_LOADER, RESOURCE_STOPPER, 0, "Data loader worker stopped by {who}[: {stopped}]",
		"The worker is stopped (SIGSTOP, a debugger), so its batches do not arrive"},
	{DELAY_BY_LOADER, ANY, IS_STOPPED, "Data loader worker stopped[: {worker}]",
		"The worker is stopped (SIGSTOP, a debugger), so its batches do not arrive"},
	{DELAY_BY_LOADER, RESOURCE_LOCK, 0, "Data loader workers compete for a lock[ {at}]",
		"One worker holds the lock while it works, and the others wait for it"},
	{DELAY_BY_LOADER, RESOURCE_NONE, STARTS_PROCESSES, "Starting data loader workers[ {at}]",
		"The {units} wait until new workers have started and made their first batch"},
	{DELAY_BY_LOADER, RESOURCE_CPU_PROGRAM, 0,
		"Data loader slowed by CPU contention from {who}[{others}]",
		"The loader's workers are ready to run, but other programs use the CPUs[; {who} in {detail}]"},
	{DELAY_BY_LOADER, RESOURCE_CPU_OWN, 0, "Data loader short of CPUs",
		"The loader's workers and the job's own threads compete for the CPUs[; {detail}]"},
	{DELAY_BY_LOADER, RESOURCE_CPU_QUOTA, 0,
		"Data loader slowed by the CPU limit of {who}[ ({detail})]",
		"The control group has used up its CPU quota: the kernel stops the workers until the next period"},
	{DELAY_BY_LOADER, RESOURCE_CPU_MASK, 0, "Data loader with too few CPUs[ ({detail})]",
		"The workers take turns on the CPUs that they may use"},
	{DELAY_BY_LOADER, RESOURCE_MEMORY_LIMIT, 0,
		"Data loader slowed by the container's memory limit[ ({detail})]",
		"The control group is at its limit: the kernel frees memory while the workers wait"},
	{DELAY_BY_LOADER, RESOURCE_DISK_READ, 0, "Data loader waits for the disk[ {at}]",
		"Batches arrive only as fast as the disk reads[; {detail}]"},
	{DELAY_BY_LOADER, RESOURCE_DISK_WRITE, 0,
		"Data loader waits for the disk, busy with writes[ by {who}]",
		"The workers' reads queue behind them[; {detail}]"},
	{DELAY_BY_LOADER, RESOURCE_ADDRESS, 0, "Data loader waits for {who}[ {at}]",
		"Batches arrive only as fast as the network and the server allow[; {detail}]"},
	{DELAY_BY_LOADER, ANY, BY_DISK, "Data loader waits for the disk[ {at}]",
		"Batches arrive only as fast as the disk reads"},
	{DELAY_BY_LOADER, ANY, BY_NETWORK, "Data loader waits for the network[ {at}]",
		"Batches arrive only as fast as the network and the server allow"},
	{DELAY_BY_LOADER, ANY, BY_HOST, "Slow data loader[ {at}]",
		"The workers take longer to make a batch than the GPU takes to use it"},
	{DELAY_BY_LOADER, ANY, 0, "Data loader[ {at}]", "The GPU waits for the next batch"},
	{DELAY_BY_PROCESS, RESOURCE_LOCK, 0, "{who} compete for a lock[ {at}]",
		"One of them holds the lock while it works, and the others wait for it; the {units} wait for their results[ {wait}]"},
	{DELAY_BY_PROCESS, RESOURCE_PROCESS, STARTS_PROCESSES, "Repeatedly starting {who}[ {wait}]",
		"The {units} wait for new processes, one after another[; {detail}]"},
	{DELAY_BY_PROCESS, ANY, STARTS_PROCESSES, "Starting processes[ {wait}]",
		"The {units} wait until new processes have started"},
	{DELAY_BY_PROCESS, RESOURCE_FILE_LOCK, 0, "File lock held by {who}[ {wait}]",
		"The {units} wait in flock() or fcntl() until that process releases the lock[; {detail}]"},
	{DELAY_BY_PROCESS, RESOURCE_PIPE_FULL, 0, "Pipe or socket to {who} is full[ {wait}]",
		"The {units} wait in write() until that process reads from it[; {detail}]"},
	{DELAY_BY_PROCESS, RESOURCE_STOPPER, 0, "Waiting for {stopped}, stopped by {who}[, {wait}]",
		"It is stopped and resumed: SIGSTOP, a debugger or a frozen container"},
	{DELAY_BY_PROCESS, ANY, IS_STOPPED, "Waiting for {who}, which is stopped[ {wait}]",
		"It is stopped (SIGSTOP, a debugger)"},
	{DELAY_BY_PROCESS, RESOURCE_PROCESS, MANY_WAITS,
		"One request after another to {who}[ ({answers})][ {wait}]",
		"The thread waits for each answer before it sends the next request[; {detail}]"},
	{DELAY_BY_PROCESS, ANY, 0, "Waiting for {who}[ {wait}]",
		"The {units} wait for that process[; {detail}]"},

	{DELAY_BY_UNKNOWN, ANY, 0, "Cause unknown", "Unknown[: {reason}]"},
	{DELAY_BY_UNKNOWN, ANY, 0, NULL, NULL},
};
/* clang-format on */

const struct delay_sentence *delay_sentence_find(
	enum delay_kind kind, enum resource resource, unsigned facts)
{
	const struct delay_sentence *s = delay_sentences, *last = s;

	for (; s->head; last = s++)
		if (s->kind == kind && (s->resource == ANY || s->resource == resource) &&
			(facts & s->needs) == s->needs)
			return s;
	return last;
}

static const char *value_of(const struct delay_values *v, const char *name, size_t len)
{
#define X(field)                                                                                   \
	if (len == strlen(#field) && !strncmp(name, #field, len))                                  \
		return v->field;
	DELAY_VALUES(X)
#undef X
	return "";
}

/* Up to the end of @text, or to the bracket that closes it; returns what follows. */
static const char *fill(
	const char *text, const struct delay_values *v, struct buf *b, bool *ret_missing)
{
	while (*text && *text != ']') {
		if (*text == '[') {
			_cleanup_buf_ struct buf part = BUF_INIT(b->max);
			bool is_missing = false;

			text = fill(text + 1, v, &part, &is_missing);
			if (!is_missing)
				buf_puts(b, buf_str(&part));
		} else if (*text == '{') {
			size_t len = strcspn(text + 1, "}");
			const char *value = value_of(v, text + 1, len);

			*ret_missing = *ret_missing || !value[0];
			buf_puts(b, value);
			text += len + 2;
		} else {
			buf_putc(b, *text++);
		}
	}
	return *text ? text + 1 : text;
}

void delay_sentence_fill(const char *text, const struct delay_values *v, char *out, size_t size)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 12);
	bool is_missing = false;

	fill(text, v, &b, &is_missing);
	snprintf(out, size, "%s", buf_str(&b));
}
