#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""program_cost.py - what each of the agent's BPF programs costs a job, by the kernel's own clock. Prints Markdown.

  sudo python3 program_cost.py [--ingero ./ingero] [--modes launch] [--measure-s 20] [--trace-args "…"]

The kernel counts runs and nanoseconds of BPF programs while kernel.bpf_stats_enabled is 1. It does not see the trap
that leads to a program of a uprobe; what the clock says about that is in bench/ and overhead.py. Programs of
tracepoints run for every process, so their share of the job is an upper limit.
"""
import argparse
import ctypes
import os
import pathlib
import platform
import re
import struct
import sys
import tempfile
import time

from overhead import HERE, STEADY_AFTER_S, Agent, Workload

SYS_BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]
SYS_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}[platform.machine()]
PROG_GET_FD_BY_ID, OBJ_GET_INFO_BY_FD = 13, 15
INFO_BYTES, NAME_AT, RUN_TIME_AT, RUN_CNT_AT = 232, 64, 192, 200  # struct bpf_prog_info
STATS = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attributes):
    buffer = ctypes.create_string_buffer(attributes, 128)
    result = libc.syscall(SYS_BPF, command, buffer, 128)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command})")
    return result


def program(number):
    """(name, runs, nanoseconds) of the program with that number."""
    fd = bpf(PROG_GET_FD_BY_ID, struct.pack("<I", number))
    try:
        info = ctypes.create_string_buffer(INFO_BYTES)
        bpf(OBJ_GET_INFO_BY_FD, struct.pack("<IIQ", fd, INFO_BYTES, ctypes.addressof(info)))
    finally:
        os.close(fd)
    name = info.raw[NAME_AT:NAME_AT + 16].split(b"\0")[0].decode(errors="replace")
    ns, runs = struct.unpack_from("<QQ", info.raw, RUN_TIME_AT)
    return name, runs, ns


def programs(pid):
    """{number: (name, runs, ns)} of what @pid holds, itself or in its links."""
    found = set()
    for path in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            found |= set(map(int, re.findall(r"^prog_id:\s*(\d+)$", path.read_text(), re.M)))
        except OSError:
            pass
    return {number: program(number) for number in sorted(found)}


class Instructions:
    """Instructions and cycles of a process and its threads, where the machine counts them."""

    def __init__(self, pid):
        self.fds = []
        for config in (1, 0):
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                attr = struct.pack("<IIQQQQQ", 0, 112, config, 0, 0, 0, 0).ljust(112, b"\0")
                fd = libc.syscall(SYS_PERF_EVENT_OPEN, ctypes.create_string_buffer(attr, 112), int(task.name), -1, -1, 0)
                if fd >= 0:
                    self.fds.append((config, fd))

    def read(self):
        total = {1: 0, 0: 0}
        for config, fd in self.fds:
            total[config] += struct.unpack("<Q", os.read(fd, 8))[0]
        return total[1], total[0]


def measure(args, folder, mode):
    work = Workload(cpus=1)
    agent = None
    try:
        n = max(3, round(0.5 / (work.steps(mode, 20)[0] / 1e3)))
        agent = Agent(args.ingero, folder, f"programs-{mode}", args.trace_args.split() + ["--pid", str(work.pid)], "600s")
        end = time.monotonic() + STEADY_AFTER_S
        while time.monotonic() < end:
            work.steps(mode, n)
        counter = Instructions(work.pid)
        before, begin, done = programs(agent.p.pid), time.monotonic_ns(), 0
        counted = counter.read()
        while time.monotonic_ns() - begin < args.measure_s * 1e9:
            work.steps(mode, n)
            done += n
        took, after, counted_after = time.monotonic_ns() - begin, programs(agent.p.pid), counter.read()
    finally:
        said = agent.stop() if agent else ""
        work.end()
    rows = []
    for number, (name, runs, ns) in after.items():
        old = before.get(number, (name, 0, 0))
        if runs > old[1]:
            rows.append((name, runs - old[1], ns - old[2]))
    print(f"\n{mode}-bound, {done} steps of {took / done / 1e6:.2f} ms, {args.trace_args or 'defaults'}; {said}")
    instructions, cycles = (b - a for a, b in zip(counted, counted_after))
    print(f"{instructions / done:.0f} instructions and {cycles / done:.0f} cycles a step\n" if counter.fds else
          "this machine does not count instructions\n")
    print("| program | runs a second | ns a run | share of the time |\n|-|-|-|-|")
    for name, runs, ns in sorted(rows, key=lambda r: -r[2]):
        print(f"| {name} | {runs / took * 1e9:.0f} | {ns / runs:.0f} | {100 * ns / took:.3f} % |")
    print(f"| all | {sum(r[1] for r in rows) / took * 1e9:.0f} | | {100 * sum(r[2] for r in rows) / took:.3f} % |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--ingero", default=str(HERE / "ingero"))
    p.add_argument("--modes", default="launch")
    p.add_argument("--measure-s", type=float, default=20)
    p.add_argument("--trace-args", default="")
    args = p.parse_args()
    if os.geteuid() != 0:
        sys.exit("program_cost.py needs root")
    was = STATS.read_text()
    STATS.write_text("1")
    try:
        with tempfile.TemporaryDirectory(prefix="ingero-programs-", dir="/var/tmp") as folder:
            for mode in args.modes.split(","):
                measure(args, pathlib.Path(folder), mode)
    finally:
        STATS.write_text(was)


if __name__ == "__main__":
    main()
