// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* probe.bpf.c - the kernel half as one object: every probe folder's program file, one after the
 * other, so that all share one ring, one set of books and one table of targets. */
#include "agent/probe/call/call.bpf.c"
#include "agent/probe/sched/sched.bpf.c"
#include "agent/probe/block/block.bpf.c"
#include "agent/probe/process/process.bpf.c"
#include "agent/probe/memory/memory.bpf.c"
#include "agent/probe/socket/socket.bpf.c"
#include "agent/probe/sample/sample.bpf.c"
#include "agent/probe/mark/mark.bpf.c"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
