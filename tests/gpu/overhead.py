#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""overhead.py - what the agent costs a job on a real GPU, by many short pairs of measurements with and
without it, and what the agent says that it costs. Prints Markdown and writes every pair.

  sudo python3 overhead.py [--ingero ./ingero] [--sessions 30] [--blocks 2] [--block-s 0.5] [--out FILE]
  sudo python3 overhead.py --steady [--modes launch] [--block-s 1] [--budget-s 180]

One process (workload.py) trains throughout. Each session starts the agent, measures some blocks of steps,
stops it and measures as many without; every other session the other way round, so that what drifts cancels.
The error bar is from resampling whole sessions, because blocks of one session are not independent. These
sessions are the agent's first seconds: the first second's budget is spent at once, then launches are probed in windows.
At last the agent runs for --own-s beside the same job without a pause, as it does beside its users': what it says
then is what the pairs are held against, and the steps of that time against those before and after it.

--steady: what remains after that. Two processes train in turns on one CPU, one of them traced (--pid) by an
agent that runs all the time; half-way the other one is. A block is too short to hold the windows in which
launches are probed, so what counts is the mean of all pairs, without the tenth at either end.
"""
import argparse
import json
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
STEADY_AFTER_S = 14    # the first second's budget at once, then eight pairs of windows until the cost is known


class Workload:
    def __init__(self, cpus=4):
        self.p = subprocess.Popen([sys.executable, str(HERE / "workload.py"), str(cpus)], text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.hello = json.loads(self.p.stdout.readline())
        self.pid = self.hello["pid"]

    def cpu_ns(self):
        total = 0
        for path in pathlib.Path(f"/proc/{self.pid}/task").glob("*/schedstat"):
            try:
                total += int(path.read_text().split()[0])
            except OSError:
                pass
        return total

    def steps(self, mode, n):
        """Milliseconds a step: (by the clock, of CPU time)."""
        before = self.cpu_ns()
        self.p.stdin.write(f"steps {mode} {n}\n")
        self.p.stdin.flush()
        answer = json.loads(self.p.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["step_ms"], (self.cpu_ns() - before) / n / 1e6

    def end(self):
        self.p.stdin.close()
        try:
            self.p.wait(20)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()


class Agent:
    def __init__(self, ingero, folder, number, more, duration="120s"):
        self.out = folder / f"{number}.txt"
        self.db = folder / f"{number}.db"
        self.p = subprocess.Popen([ingero, "trace", "--db", str(self.db), "--duration", duration, *more],
                                  stdin=subprocess.DEVNULL, stdout=open(self.out, "w"), stderr=subprocess.STDOUT)
        end = time.monotonic() + 30
        while "Recording to" not in self.out.read_text():
            if self.p.poll() is not None or time.monotonic() > end:
                self.stop()
                raise RuntimeError(self.out.read_text()[-500:])
            time.sleep(0.01)

    def stop(self):
        """What it said about its own cost."""
        if self.p.poll() is None:
            self.p.send_signal(signal.SIGINT)
        try:
            self.p.wait(30)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()
        said = re.findall(r"^ *Overhead: .*$", self.out.read_text(errors="replace"), re.M)
        for path in self.db.parent.glob(self.db.name + "*"):
            path.unlink()
        return said[-1].strip() if said else ""


def session(args, work, folder, mode, n, number):
    """Blocks with the agent, blocks without, what it said."""
    on, off, said = [], [], ""
    for traced in (True, False) if number % 2 else (False, True):
        if not traced:
            off = [work.steps(mode, n) for _ in range(args.blocks)]
            continue
        agent = Agent(args.ingero, folder, f"{mode}-{number}", args.trace_args.split())
        try:
            end = time.monotonic() + args.settle_s
            while time.monotonic() < end:
                work.steps(mode, max(1, n // 5))
            on = [work.steps(mode, n) for _ in range(args.blocks)]
        finally:
            said = agent.stop()
    return {"mode": mode, "steps": n, "on": on, "off": off, "said": said}


def own_figure(args, work, folder, mode, n):
    """What an agent says that has run for a while, and steps before, beside and after it."""
    def measure(seconds):
        end, got = time.monotonic() + seconds, []
        while time.monotonic() < end:
            got.append(work.steps(mode, n))
        return got

    before = measure(args.own_s / 2)
    agent = Agent(args.ingero, folder, f"{mode}-own", args.trace_args.split())
    try:
        beside = measure(args.own_s)
    finally:
        said = agent.stop()
    return {"mode": mode, "steps": n, "own": True, "on": beside, "off": before + measure(args.own_s / 2), "said": said}


def steady(args, folder, mode):
    """Pairs of blocks of two processes, one of them traced, as sessions of ten; roles change half-way."""
    both, results = [Workload(cpus=1) for _ in range(2)], []
    try:
        for work in both:
            work.steps(mode, 10)
        n = max(3, round(args.block_s / (both[0].steps(mode, 20)[0] / 1e3)))
        for traced in (0, 1):
            agent = Agent(args.ingero, folder, f"steady-{mode}-{traced}", args.trace_args.split() +
                          ["--pid", str(both[traced].pid)], "600s")
            begin, number = time.monotonic(), 0
            try:
                while (passed := time.monotonic() - begin - STEADY_AFTER_S) < args.budget_s / 2:
                    number += 1
                    times = {w: both[w].steps(mode, n) for w in ((0, 1) if number % 2 else (1, 0))}
                    if passed < 0:
                        continue
                    if not results or len(results[-1]["on"]) == 10 or results[-1]["traced"] != traced:
                        results.append({"mode": mode, "steps": n, "traced": traced, "on": [], "off": [], "said": ""})
                    results[-1]["on"].append(times[traced])
                    results[-1]["off"].append(times[1 - traced])
            finally:
                said = agent.stop()
            results[-1]["said"] = said
            print(f"{mode}: traced process {traced}: {said}", flush=True)
    finally:
        for work in both:
            work.end()
    return both[0].hello, results


def percent(sessions, which):
    """Of the pairs, 0 by the clock, 1 of CPU time: the median, or of steady ones the trimmed mean."""
    pairs = sorted((a[which] / b[which] - 1) * 100 for s in sessions for a, b in zip(s["on"], s["off"]))
    if "traced" in sessions[0]:
        cut = len(pairs) // 10
        return statistics.mean(pairs[cut:len(pairs) - cut])
    return statistics.median(pairs)


def interval(sessions, which, rng):
    values = sorted(percent(rng.choices(sessions, k=len(sessions)), which) for _ in range(2000))
    return values[50], values[-51]


def said_percent(sessions):
    values = [float(m.group(1)) for s in sessions if (m := re.search(r"([0-9.]+)\s*%", s["said"]))]
    return f"{statistics.median(values):.2g} % (up to {max(values):.2g} %)" if values else "nothing"


def own_text(own):
    if not own:
        return "not asked"
    on, off = (statistics.median(b[0] for b in own[0][side]) for side in ("on", "off"))
    return f"{own[0]['said'].removeprefix('Overhead: ')}; its steps took {(on / off - 1) * 100:+.2f} %"


def row(mode, sessions, own):
    rng = random.Random(1)
    off = statistics.median(b[0] for s in sessions for b in s["off"])
    cells = [f"{mode}-bound", f"{off:.2f} ms", sum(len(s["on"]) for s in sessions)]
    for which in (0, 1):
        low, high = interval(sessions, which, rng)
        cells.append(f"**{percent(sessions, which):+.2f} %** ({low:+.2f} to {high:+.2f})")
    cells += [said_percent(sessions), own_text(own)]
    return "| " + " | ".join(map(str, cells)) + " |"


def steady_all(args, folder):
    results = []
    for mode in args.modes.split(","):
        hello, more = steady(args, folder, mode)
        results += more
    return hello, results


def measure(args, folder):
    work = Workload()
    try:
        return work.hello, measure_with(args, work, folder)
    finally:
        work.end()


def measure_with(args, work, folder):
    results = []
    for mode in args.modes.split(","):
        work.steps(mode, 10)
        n = max(3, round(args.block_s / (work.steps(mode, 20)[0] / 1e3)))
        begin, mine = time.monotonic(), []
        for number in range(args.sessions):
            if time.monotonic() - begin > args.budget_s / len(args.modes.split(",")):
                print(f"{mode}: no time for more than {number} sessions", flush=True)
                break
            mine.append(session(args, work, folder, mode, n, number))
            if number % 10 == 9:
                print(f"{mode}: {number + 1} sessions, {percent(mine, 0):+.2f} % by the clock", flush=True)
        results += mine + [own_figure(args, work, folder, mode, n)] * (args.own_s > 0)
    return results


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--ingero", default=str(HERE / "ingero"))
    p.add_argument("--modes", default="gpu,launch")
    p.add_argument("--sessions", type=int, default=30)
    p.add_argument("--blocks", type=int, default=2)
    p.add_argument("--block-s", type=float, default=0.5)
    p.add_argument("--settle-s", type=float, default=0.6)
    p.add_argument("--budget-s", type=float, default=260)
    p.add_argument("--own-s", type=float, default=24, help="how long the agent runs for its own figure")
    p.add_argument("--trace-args", default="")
    p.add_argument("--steady", action="store_true", help="an agent that runs all the time, two processes in turns")
    p.add_argument("--out", type=pathlib.Path, help="every session as a line of JSON")
    args = p.parse_args()
    if os.geteuid() != 0:
        sys.exit("overhead.py needs root")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    with tempfile.TemporaryDirectory(prefix="ingero-overhead-", dir="/var/tmp") as folder:
        hello, results = (steady_all if args.steady else measure)(args, pathlib.Path(folder))
    if args.out:
        args.out.write_text("".join(json.dumps(r) + "\n" for r in results))
    print(f"\n{hello['gpu']}, PyTorch {hello['torch']}; pairs, and 95 % of resampled sessions\n")
    print("| training | step without | pairs | by the clock | CPU time a step | the agent says | after a while |")
    print("|-|-|-|-|-|-|-|")
    for mode in dict.fromkeys(r["mode"] for r in results):
        mine = [r for r in results if r["mode"] == mode]
        print(row(mode, [r for r in mine if "own" not in r], [r for r in mine if "own" in r]))


if __name__ == "__main__":
    main()
