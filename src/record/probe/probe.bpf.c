// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* probe.bpf.c - the kernel half as one object: every probe folder's program file, one after the
 * other, so that all share one ring, one set of books and one table of targets. */
#include "record/probe/call/call.bpf.c"
#include "record/probe/sched/sched.bpf.c"
#include "record/probe/block/block.bpf.c"
#include "record/probe/process/process.bpf.c"
#include "record/probe/memory/memory.bpf.c"
#include "record/probe/socket/socket.bpf.c"
#include "record/probe/sample/sample.bpf.c"
#include "record/probe/mark/mark.bpf.c"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
