#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""launches.py - with the default budget on a real GPU: how true launch counts are, and what the first seconds cost.

  sudo python3 launches.py [--ingero ./ingero] [--runs 2] [--cycles 24]

One process trains throughout, launch-bound, and writes down when each step ended. The truth is the number of kernels of a
step, which torch.profiler counts in another process, times the steps that were traced (each waits once for the device,
which is always counted): steady, and in bursts of two seconds. Then the agent comes for some seconds and goes, again and
again: steps with it are compared with those just before and after, by the seconds since it came.
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
BINS = ((0, 2), (2, 4), (4, 8), (8, 12))

JOB = r'''
import sys, time, torch
torch.manual_seed(1)
net = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(96, 96), torch.nn.LayerNorm(96), torch.nn.GELU()) for _ in range(40)]).cuda()
opt = torch.optim.Adam(net.parameters(), lr=1e-4, foreach=False)
x = torch.randn(16, 96, device="cuda")
def step():
    opt.zero_grad(set_to_none=True)
    loss = net(x).square().mean()
    loss.backward()
    opt.step()
    torch.cuda.synchronize()
for _ in range(20):
    step()
if sys.argv[1] == "profile":
    from torch.profiler import profile, ProfilerActivity
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as p:
        for _ in range(10):
            step()
    print(sum(1 for e in p.events() if e.device_type == torch.autograd.DeviceType.CUDA and "Mem" not in e.name) / 10, flush=True)
    sys.exit()
out = open(sys.argv[2], "wb", buffering=0)
begun = time.time()
while True:
    if sys.argv[1] == "bursts" and (time.time() - begun) % 4 > 2:
        time.sleep(2)
    step()
    out.write(b"%d\n" % time.time_ns())
'''


class Job:
    def __init__(self, folder, mode):
        self.path = folder / f"{mode}.steps"
        self.path.write_text("")
        self.p = subprocess.Popen([sys.executable, "-c", JOB, mode, str(self.path)])
        while len(self.ends()) < 50:
            time.sleep(0.2)

    def ends(self):
        return [int(w) for w in self.path.read_text().split("\n")[:-1]]

    def stop(self):
        self.p.kill()
        self.p.wait()


def view_of(text):
    found = None
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and "ops" in row:
            found = row
    return found


LAUNCHES = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx", "cudaLaunchCooperativeKernel")


def count(args, folder, mode, per_step, number):
    job = Job(folder, mode)
    db = folder / f"{mode}{number}.db"
    run = subprocess.run([args.ingero, "trace", "--json", "--pid", str(job.p.pid), "--duration", "20s", "--db", str(db)],
                         capture_output=True, text=True)
    view = view_of(run.stdout)
    job.stop()
    steps = sum(o["count"] for o in view["ops"] if o["op"] == "cudaDeviceSync" and not o.get("nested"))  # one a step, always counted
    truth = steps * per_step
    seen = sum(o["count"] for o in view["ops"] if o["op"] in LAUNCHES and not o.get("nested"))
    error = view["launches_error"] / max(view["launches"], 1)
    line = {"mode": mode, "steps": steps, "truth": truth, "seen": seen, "off_pct": 100 * (seen / truth - 1), "error_pct": 100 * error,
            "watched": view["launches_watched"], "windows": view["launches_windows"], "overhead": view["overhead"],
            "pairs": view["overhead_pairs"]}
    print(json.dumps(line), flush=True)
    return line


def cost(args, folder):
    """Milliseconds a step with the agent, by the time since it came, as a ratio to the steps around."""
    job, ratios, rng = Job(folder, "steady"), {b: [] for b in BINS}, random.Random(3)
    marks = []
    for number in range(args.cycles):
        db = folder / f"c{number}.db"
        time.sleep(5)
        p = subprocess.Popen([args.ingero, "trace", "--pid", str(job.p.pid), "--db", str(db)], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
        for line in p.stdout:
            if "Recording to" in line:
                break
        came = time.time_ns()
        time.sleep(BINS[-1][1])
        went = time.time_ns()
        p.send_signal(signal.SIGINT)
        rest = p.communicate()[0]
        marks.append((came, went, time.time_ns(), rest))
    time.sleep(5)
    ends = job.ends()
    job.stop()
    lengths = [(ends[i], (ends[i] - ends[i - 1]) / 1e6) for i in range(1, len(ends))]

    def mean(a, b):
        some = sorted(d for t, d in lengths if a < t < b)
        cut = len(some) // 50
        some = some[cut:len(some) - cut] if cut else some
        return statistics.fmean(some) if some else None

    for came, went, gone, _ in marks:
        off = [m for m in (mean(came - 4.5e9, came - 1.5e9), mean(gone + 0.5e9, gone + 3.5e9)) if m]
        for a, b in BINS:
            on = mean(came + a * 1e9, came + b * 1e9)
            if on and off:
                ratios[(a, b)].append(100 * (on / statistics.fmean(off) - 1))
    for b, values in ratios.items():
        means = sorted(statistics.fmean(rng.choices(values, k=len(values))) for _ in range(2000))
        print(json.dumps({"seconds": b, "cycles": len(values), "mean_pct": statistics.fmean(values), "low": means[50], "high": means[1949],
                          "median_pct": statistics.median(values)}), flush=True)
    said = [m.group(0) for _, _, _, text in marks for m in re.finditer(r"Overhead: [^(]*", text)]
    print(said[-6:], flush=True)
    print("ms a step without:", statistics.median(d for _, d in lengths))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--ingero", default=str(HERE / "ingero"))
    p.add_argument("--runs", type=int, default=2)
    p.add_argument("--cycles", type=int, default=24)
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        per_step = float(subprocess.run([sys.executable, "-c", JOB, "profile"], capture_output=True, text=True, check=True).stdout.split()[-1])
        print("kernels a step:", per_step, flush=True)
        for number in range(args.runs):
            for mode in ("steady", "bursts"):
                count(args, folder, mode, per_step, number)
        if args.cycles:
            cost(args, folder)


main()
