#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries the agent on a real GPU with PyTorch: what it counts against an independent count, what it
loses, and what it costs, against the published method in the same run. Prints Markdown.

  check_gpu.py [--rounds N] [--out FILE]      beside it: ingero, published_agent, workload.py
"""
import argparse
import json
import os
import pathlib
import platform
import re
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
INGERO = str(HERE / "ingero")
WORK = pathlib.Path(tempfile.mkdtemp(prefix="ingero-gpu-", dir="/var/tmp"))
out_lines, failures = [], []


def say(line=""):
    print(line, flush=True)
    out_lines.append(line)


def check(name, ok, detail=""):
    if not ok:
        failures.append(name)
        say(f"- **FAILED**: {name}: {detail}")


class Workload:
    def __init__(self):
        self.p = subprocess.Popen([sys.executable, str(HERE / "workload.py")], text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.hello = json.loads(self.p.stdout.readline())
        self.pid = self.hello["pid"]

    def ask(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()
        answer = json.loads(self.p.stdout.readline())
        if "error" in answer:
            failures.append(line)
            say(f"- **FAILED**: `{line}`: {answer['error']}")
        return answer

    def library(self, stem):
        for line in open(f"/proc/{self.pid}/maps"):
            path = line.split(None, 5)[-1].strip()
            if re.match(stem + r"\.so", os.path.basename(path)):
                return path
        return None

    def end(self):
        self.p.stdin.close()
        self.p.wait()


class Ingero:
    count = 0

    def __init__(self, pid, *args):
        Ingero.count += 1
        self.db = str(WORK / f"{Ingero.count}.db")
        self.out = WORK / f"{Ingero.count}.out"
        self.p = subprocess.Popen([INGERO, "trace", "--pid", str(pid), "--db", self.db, *args],
                                  stdout=open(self.out, "w"), stderr=subprocess.STDOUT)
        end = time.monotonic() + 30
        while "Recording to" not in self.out.read_text():
            if self.p.poll() is not None or time.monotonic() > end:
                raise RuntimeError(self.out.read_text())
            time.sleep(0.02)

    def stop(self):
        self.p.send_signal(signal.SIGTERM)
        self.p.wait(30)

    def sql(self, query, *args):
        with sqlite3.connect(f"file:{self.db}?mode=ro", uri=True) as c:
            return c.execute(query, args).fetchall()

    def lost(self):
        return self.sql("SELECT coalesce(sum(hits), 0), coalesce(sum(lost), 0) FROM accounting")[0]


class Published:
    def __init__(self, work):
        self.p = subprocess.Popen([str(HERE / "published_agent"), str(work.pid), work.library("libcudart"),
                                   work.library("libcuda")], stdout=subprocess.PIPE, text=True)
        self.what = self.p.stdout.readline().strip()
        self.result = ""

    def stop(self):
        self.p.send_signal(signal.SIGTERM)
        self.result = self.p.stdout.readline().strip()
        self.p.wait(120)


def machine(work):
    smi = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], text=True,
                         capture_output=True).stdout.strip()
    say(f"**Machine**: {work.hello['gpu']}, driver {smi}, {os.cpu_count()} CPUs, Linux {platform.release()},"
        f" {platform.machine()}; Python {platform.python_version()}, PyTorch {work.hello['torch']}."
        f" Measured on {time.strftime('%Y-%m-%d')}, nothing else running.")
    say()


# What torch.profiler (CUPTI) calls it, beside our operations. CUPTI also hears runtime calls of private
# static copies of the runtime (cuBLAS has one); to us those are the driver calls they make, so launches
# and fills are compared over both layers.
GROUPS = (
    ("launches, both layers", ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx"),
     ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx")),
    ("  of these, libcudart's cudaLaunchKernel", ("cudaLaunchKernel",), ("cudaLaunchKernel",)),
    ("fills, both layers", ("cudaMemsetAsync", "cuMemsetD8Async"), ("cudaMemsetAsync", "cuMemsetD8Async")),
    ("cudaMemcpyAsync", ("cudaMemcpyAsync",), ("cudaMemcpyAsync",)),
    ("cudaStreamSynchronize", ("cudaStreamSynchronize",), ("cudaStreamSync",)),
    ("cudaMalloc", ("cudaMalloc",), ("cudaMalloc",)),
)


def coverage(work):
    say("### What is counted, against torch.profiler")
    say()
    say("The same training steps seen by both at once (`--record-all --overhead-budget 0`; calls that begin "
        "in the profiled window). Driver calls made inside runtime calls are not counted again. cuBLAS has a "
        "private copy of the runtime: its launches are runtime calls to the profiler and driver calls to us.")
    say()
    say("| training | calls | torch.profiler | ingero |")
    say("|-|-|-|-|")
    for mode, steps in (("launch", 50), ("gpu", 20)):
        work.ask(f"steps {mode} 5")
        agent = Ingero(work.pid, "--record-all", "--overhead-budget", "0", "--ringbuf-size", "64m")
        time.sleep(1)
        seen = work.ask(f"count {mode} {steps}")
        time.sleep(0.5)
        agent.stop()
        rows = dict(agent.sql("SELECT o.name, count(*) FROM events e JOIN ops o ON o.source_id = e.source AND"
                              " o.op_id = e.op WHERE e.source IN (1, 4) AND NOT e.flags & 1 AND timestamp"
                              " BETWEEN ? AND ? GROUP BY 1", seen["from"], seen["to"]))
        for name, theirs, ours in GROUPS:
            t = sum(seen["calls"].get(n, 0) for n in theirs)
            o = sum(rows.get(n, 0) for n in ours)
            if t or o:
                say(f"| {mode}-bound, {steps} steps | {name} | {t:,} | {o:,} |")
                check(f"{mode}: {name.strip()}", abs(t - o) <= t // 1000, f"{t} against {o}")
        hits, lost = agent.lost()
        say(f"| {mode}-bound | all events of this trace | | {hits:,} hits, {lost:,} lost |")
    say()


def features(work):
    say("### Graphs, loader workers, NCCL")
    say()
    agent = Ingero(work.pid, "--overhead-budget", "0")
    graph = work.ask("graph 101")
    loader = work.ask("loader 23")
    nccl = work.ask("nccl 37")
    time.sleep(1.5)
    agent.stop()
    ops = dict(agent.sql("SELECT o.name, sum(a.count) FROM event_aggregates_5s a JOIN ops o ON o.source_id ="
                         " a.source AND o.op_id = a.op WHERE NOT a.nested GROUP BY 1"))
    launches = ops.get("graphLaunch", 0)
    say(f"- CUDA graph: {graph.get('replays')} replays, {launches} graphLaunch, "
        f"{ops.get('graphBeginCapture', 0)} capture(s), {ops.get('graphInstantiate', 0)} instantiation(s)")
    check("graph launches", launches == graph.get("replays"), launches)
    forks = agent.sql("SELECT count(*) FROM events WHERE source = 3 AND op = 7")[0][0]
    say(f"- DataLoader: {loader.get('batches')} batches by 2 workers; {forks} forks followed")
    check("loader workers followed", forks >= 2, forks)
    rows = agent.sql("SELECT op, rank, nranks, bytes, count(*), min(seq), max(seq), count(wait_ns), min(comm) <> 0"
                     " FROM collectives GROUP BY 1, 2, 3, 4")
    say(f"- NCCL {nccl.get('nccl')}: {nccl.get('collectives')} all-reduces of {nccl.get('bytes')} bytes; recorded"
        " (op, rank, size, bytes, how many, first and last sequence number, with a wait, hash known):"
        f" {rows}")
    check("all-reduces", any(r[0] == "AllReduce" and r[1] == 0 and r[2] == 1 and r[3] == 4036 and
                             r[4] == nccl.get("collectives") for r in rows), rows)
    gpu = agent.sql("SELECT name, max(util_gpu_pct), max(power_mw), max(mem_used_bytes), count(*) FROM gpu_samples")
    say(f"- GPU state by NVML (name, utilisation %, mW, bytes used, samples): {gpu}")
    check("GPU samples", gpu and gpu[0][4] > 0, gpu)
    hits, lost = agent.lost()
    say(f"- {hits:,} hits, {lost:,} lost")
    say()



SYNCHRONIZES = """
import torch
x = torch.ones(512, 512, device="cuda")
for _ in range(101):
    x @ x
    torch.cuda.synchronize()
"""


def command():
    """A script that the agent runs: its first calls are there, and nothing is said to be missing."""
    say("### A command that it runs, from the first call on")
    say()
    for _ in range(3):
        db = str(WORK / "command.db")
        for name in WORK.glob("command.db*"):
            name.unlink()
        r = subprocess.run([INGERO, "trace", "--overhead-budget", "0", "--db", db, "--", sys.executable, "-c", SYNCHRONIZES],
                           capture_output=True, text=True)
        check("command: ran", r.returncode == 0, r.stderr[-2000:])
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as c:
            calls = dict(c.execute("SELECT o.name, sum(a.count) FROM event_aggregates_5s a JOIN ops o ON o.source_id ="
                                   " a.source AND o.op_id = a.op WHERE a.source = 1 GROUP BY 1").fetchall())
            gaps = c.execute("SELECT comm, max(duration) FROM call_gaps GROUP BY 1").fetchall()
        say(f"- `torch.cuda.synchronize()` 101 times: {calls.get('cudaDeviceSync', 0)} recorded,"
            f" {calls.get('cudaMalloc', 0)} cudaMalloc; gaps: {gaps}")
        check("command: every synchronize", calls.get("cudaDeviceSync") == 101, calls)
        check("command: no gap", not gaps, gaps)
    say()


def overhead(work, rounds, kinds):
    say("### What it costs")
    say()
    say(f"Medians of {rounds} rounds in which all kinds take turns, one process throughout. *published*: "
        "pairs of perf events on both layers, stacks, a wake-up for each record (`bench/published.bpf.c`).")
    say()
    titles = {"default": "ingero, default (1 % budget)", "nostack": "the same without stacks",
              "all": "ingero, no budget",
              "published": "published method"}
    say("| training | off | " + " | ".join(titles[k] for k in kinds) + " |")
    say("|-|-" + "|-" * len(kinds) + "|")
    for mode, steps in (("launch", 200), ("gpu", 30)):
        times = {k: [] for k in ("off", *kinds)}
        work.ask(f"steps {mode} {steps}")
        for _ in range(rounds):
            for kind in times:
                agent = None
                if kind == "default":
                    agent = Ingero(work.pid)
                elif kind == "nostack":
                    agent = Ingero(work.pid, "--stack=false")
                elif kind == "all":
                    agent = Ingero(work.pid, "--overhead-budget", "0")
                elif kind == "published":
                    agent = Published(work)
                if agent and mode == "launch" and kind in ("default", "nostack"):
                    work.ask(f"steps {mode} {2 * steps}")  # the governor sees a load and settles
                times[kind].append(work.ask(f"steps {mode} {steps}")["step_ms"])
                if agent:
                    agent.stop()
        off = statistics.median(times["off"])
        cells = [f"{off:.2f} ms a step"]
        for kind in kinds:
            t = statistics.median(times[kind])
            pairs = sorted((a / b - 1) * 100 for a, b in zip(times[kind], times["off"]))
            cells.append(f"{t:.2f} ms, **{(t / off - 1) * 100:+.1f} %** (rounds {pairs[0]:+.1f} to {pairs[-1]:+.1f})")
        say(f"| {mode}-bound | " + " | ".join(cells) + " |")
    say()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out")
    parser.add_argument("--kinds", default="default,nostack,all,published", help="what is compared with off")
    parser.add_argument("--only-cost", action="store_true", help="leave coverage out")
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("check_gpu needs root")
    work = Workload()
    say("## On a real GPU")
    say()
    machine(work)
    if not args.only_cost:
        coverage(work)
        features(work)
        command()
    overhead(work, args.rounds, args.kinds.split(","))
    work.end()
    say(f"{'all checks passed' if not failures else 'FAILED: ' + ', '.join(failures)}")
    if args.out:
        pathlib.Path(args.out).write_text("\n".join(out_lines) + "\n")
    sys.exit(1 if failures else 0)


main()
