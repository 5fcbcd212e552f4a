/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c - the table of sentences and remedies. Only facts that the overlap has shown are stated;
 * remedies are commands that exist and can be undone. */
#include "diagnose/calls/rules.h"

#include <string.h>

#define FIX_PIN                                                                                    \
	"Keep them on different CPUs: `taskset -cp CPUS {culprit_pid}`, or a cpuset cgroup that "  \
	"reserves CPUs for pid {victim_pid}"
#define FIX_PRIORITY                                                                               \
	"Lower its priority: `renice 19 -p {culprit_pid}`, or start it with `nice -n 19`"
#define FIX_WEIGHT                                                                                 \
	"Give its cgroup a smaller share: `cpu.weight` well below 100, or a `cpu.max` quota"
#define FIX_THREADS                                                                                \
	"Start fewer threads than CPUs: OMP_NUM_THREADS, torch.set_num_threads(), DataLoader "     \
	"num_workers"
#define FIX_ISOLATE                                                                                \
	"Reserve CPUs for pid {victim_pid}: `taskset -cp CPUS {victim_pid}`, or a cpuset "         \
	"cgroup"
#define FIX_ELSEWHERE "Move background work elsewhere: `pidstat -u 1` lists what is running"
#define FIX_TRACER_PIN                                                                             \
	"Keep tracer and workload on different CPUs: `taskset -cp CPUS {culprit_pid}`, or start "  \
	"`ingero trace` under `taskset -c CPUS`"
#define FIX_TRACER_COST                                                                            \
	"Record at less cost: `ingero trace --stack=false`, or a smaller `--overhead-budget`"

#define FIX_KERNEL                                                                                 \
	"Keep the kernel's work off its CPUs: interrupts by /proc/irq/*/smp_affinity_list, "       \
	"workers by /sys/devices/virtual/workqueue/cpumask"

static const struct rule rules[] = {
	{CAUSE_PREEMPTED, BLAME_OTHER, "{culprit} used the CPU for {share} of {lost}",
		"CPU contention: {culprit} ran while the calling thread of {victim} was ready to "
		"run",
		{FIX_PIN, FIX_PRIORITY, FIX_WEIGHT}},
	{CAUSE_PREEMPTED, BLAME_OWN, "its own threads used the CPU for {share} of {lost}",
		"CPU contention: {victim} has more threads ready to run than CPUs to run them",
		{FIX_THREADS,
			"Widen its CPU set if it is limited: `taskset -cp {victim_pid}` shows it"}},
	{CAUSE_PREEMPTED, BLAME_TRACER, "{culprit} used the CPU for {share} of {lost}",
		"the cost of tracing: {culprit} ran while the calling thread of {victim} was ready "
		"to run; without tracing it would not have waited",
		{FIX_TRACER_PIN, FIX_TRACER_COST}},
	{CAUSE_PREEMPTED, BLAME_KERNEL, "the kernel's {culprit} used the CPU for {share} of {lost}",
		"CPU contention: the kernel thread {culprit} ran while the calling thread of "
		"{victim} was ready to run",
		{FIX_ISOLATE, FIX_KERNEL}},
	{CAUSE_PREEMPTED, BLAME_NOBODY, "preempted by many processes for {share} of {lost}",
		"CPU contention: many processes ran while the calling thread of {victim} was ready",
		{FIX_ISOLATE, FIX_ELSEWHERE}},
	{CAUSE_RUN_QUEUE, BLAME_OTHER, "waiting for a CPU used by {culprit} for {share} of {lost}",
		"CPU contention: {culprit} held the CPU when the calling thread of {victim} was "
		"woken",
		{FIX_PIN, FIX_PRIORITY, FIX_WEIGHT}},
	{CAUSE_RUN_QUEUE, BLAME_OWN,
		"waiting for a CPU used by its own threads for {share} of {lost}",
		"CPU contention: {victim} has more threads ready to run than CPUs to run them",
		{FIX_THREADS,
			"Widen its CPU set if it is limited: `taskset -cp {victim_pid}` shows it"}},
	{CAUSE_RUN_QUEUE, BLAME_TRACER, "waiting for a CPU used by {culprit} for {share} of {lost}",
		"the cost of tracing: {culprit} held the CPU when the calling thread of {victim} was "
		"woken; without tracing it would not have waited",
		{FIX_TRACER_PIN, FIX_TRACER_COST}},
	{CAUSE_RUN_QUEUE, BLAME_KERNEL,
		"waiting for a CPU used by the kernel's {culprit} for {share} of {lost}",
		"CPU contention: the kernel thread {culprit} held the CPU when the calling thread of "
		"{victim} was woken",
		{FIX_ISOLATE, FIX_KERNEL}},
	{CAUSE_RUN_QUEUE, BLAME_MANY,
		"waiting for a CPU behind many processes for {share} of {lost}",
		"CPU contention: many processes used the CPU while the calling thread of {victim} "
		"was ready to run",
		{FIX_ISOLATE, FIX_ELSEWHERE}},
	{CAUSE_RUN_QUEUE, BLAME_NOBODY, "waiting for a CPU for {share} of {lost}",
		"run-queue latency: the calling thread of {victim} was ready but ran late; no "
		"single process used its CPU",
		{"Check for CPU limits: a `cpu.max` quota (`nr_throttled` in "
		 "cpu.stat), "
		 "deep idle states, a busy hypervisor",
			FIX_ISOLATE}},
	{CAUSE_BLOCK_IO, BLAME_OTHER,
		"blocked on disk I/O for {share} of {lost} while {culprit} kept the disk busy",
		"disk contention: {victim} waited for its own requests while {culprit} had "
		"{traffic} of the traffic on that device in flight",
		{"Move the writes of {name} or the data set to another device",
			"Lower its I/O priority: `ionice -c 3 -p {culprit_pid}`, or a smaller `io.weight` "
			"for its cgroup",
			"Read ahead of the GPU: more DataLoader workers with prefetch_factor, or "
			"the data "
			"set in page cache or /dev/shm"}},
	{CAUSE_BLOCK_IO, BLAME_OWN, "blocked on its own disk requests for {share} of {lost}",
		"disk: {victim} waited for its own requests; no other process had as much in flight on that device",
		{"Read ahead of the GPU: more DataLoader workers with prefetch_factor, or the data "
		 "set "
		 "in page cache or /dev/shm",
			"Keep checkpoints off the training thread: write them asynchronously",
			"Use a faster device for the data set"}},
	{CAUSE_BLOCK_IO, BLAME_TRACER,
		"blocked on disk I/O for {share} of {lost} while {culprit} kept the disk busy",
		"the cost of tracing: {victim} waited for its own requests while {culprit} had "
		"{traffic} of the traffic on that device in flight",
		{"Record to another device: `ingero trace --db PATH`", FIX_TRACER_COST}},
	{CAUSE_BLOCK_IO, BLAME_KERNEL,
		"blocked on disk I/O for {share} of {lost} while the kernel's {culprit} kept the disk busy",
		"disk contention: {victim} waited for its own requests while the kernel's {culprit} had "
		"{traffic} of the traffic on that device in flight: it writes what programs have "
		"written before",
		{"Write back earlier and in smaller pieces: lower `vm.dirty_background_bytes` and "
		 "`vm.dirty_bytes`",
			"Move the data set to a separate device"}},
	{CAUSE_BLOCK_IO, BLAME_MANY, "blocked on disk I/O for {share} of {lost}",
		"disk contention: {victim} waited for its own requests while many others were in "
		"flight",
		{"Move the data set to a separate device",
			"Read ahead of the GPU: more DataLoader workers with prefetch_factor, or "
			"the data "
			"set in page cache or /dev/shm"}},
	{CAUSE_BLOCK_IO, BLAME_NOBODY,
		"blocked in the kernel, as on a disk or a network file system, for {share} of {lost}",
		"{victim} was in uninterruptible sleep without a disk request of its own: a network "
		"file system (NFS), a file system that writes in other names, or a lock of a driver",
		{"Find the place: `cat /proc/{victim_pid}/stack` while it happens, and `nfsiostat 1` for NFS",
			"Keep the data set on a local disk, in page cache or in /dev/shm",
			"Read ahead of the GPU: more DataLoader workers with prefetch_factor"}},
	{CAUSE_UNEXPLAINED, BLAME_NOBODY, "unexplained: no recorded delay covers most of it",
		"unexplained: no recorded delay covers most of the extra time of {victim}",
		{"Check the GPU while it happens: `nvidia-smi -q -d "
		 "PERFORMANCE,CLOCK,UTILIZATION` "
		 "(throttling, another process on it)",
			"Record the next run with `ingero trace --record-all`, to keep all calls and context switches"}},
};

const struct rule *rule_find(enum cause cause, enum blame blame)
{
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (rules[i].cause == cause && rules[i].blame == blame)
			return &rules[i];
	return blame == BLAME_MANY ? rule_find(cause, BLAME_NOBODY) : NULL;
}

void rule_text(struct buf *b, const char *text, const struct rule_words *w)
{
	const struct {
		const char *name, *value;
	} words[] = {{"{culprit}", w->culprit}, {"{name}", w->name},
		{"{culprit_pid}", w->culprit_pid}, {"{victim}", w->victim},
		{"{victim_pid}", w->victim_pid}, {"{share}", w->share}, {"{traffic}", w->traffic},
		{"{lost}", w->lost}};

	while (*text) {
		size_t plain = strcspn(text, "{"), i, len = 0;

		buf_append(b, text, plain);
		text += plain;
		for (i = 0; i < ARRAY_SIZE(words); i++) {
			len = strlen(words[i].name);
			if (!strncmp(text, words[i].name, len))
				break;
		}
		if (i < ARRAY_SIZE(words)) {
			buf_puts(b, words[i].value);
			text += len;
		} else if (*text) {
			buf_putc(b, *text++);
		}
	}
}
