#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""diagnose.py - how often explain is right: plays scenarios with random figures, random background
noise, two faults at once, and healthy controls, for a bounded time; prints a table and can write
docs/accuracy.md.

  bench/diagnose.py                       all kinds, six minutes
  bench/diagnose.py --seed 7 --write      the same again; writes docs/accuracy.md
  bench/diagnose.py straggler pcie        these files as they are, with every incident
  bench/diagnose.py --healthy             healthy controls alone, each for a minute

Needs root and a build. Everything runs one after the other: the machine is part of the experiment.
"""
import argparse
import copy
import datetime
import os
import pathlib
import platform
import random
import statistics
import sys
import time

import scenario

PAGE = scenario.SOURCE / "docs" / "accuracy.md"
WEAK = 0.9  # a row whose top-1 is below this is called weak
SHARE_WEAK = 0.15

# Figures that may differ by a third without turning the fault into something else.
VARIED = {"--kernel-us", "--launches", "--cpu-us", "--loader-us", "--delay-us", "--batch-bytes",
          "--checkpoint-bytes", "--leak-bytes"}
# Two at once on one workload: both belong into the first two.
PAIRS = [("cpu-contention", "memory-leak"), ("starvation", "memory-leak"), ("pcie", "cpu-contention"),
         ("cpu-contention", "starvation"), ("checkpoint", "memory-leak"), ("pcie", "memory-leak")]
NOISES = [
    [],
    [["sim-train", "--steps", "1000000", "--loader-us", "500000", "--launches", "1"]],
    [["sim-train", "--steps", "1000000", "--loader-us", "9000", "--cpu-us", "300", "--launches", "1"]],
    [["sim-train", "--steps", "1000000", "--loader-us", "50000", "--launches", "1", "--data", "{scratch}/noise",
      "--cold"]],
]
NOISE_WORDS = ["quiet", "an idle CUDA process", "3 % of a CPU used", "20 MB/s of disk reads"]


def vary(rng, args):
    out = list(args)
    for i, a in enumerate(out[:-1]):
        if a in VARIED and float(out[i + 1]) >= 4:
            out[i + 1] = str(max(1, round(float(out[i + 1]) * rng.uniform(0.75, 1.33))))
    return out


def disturb(rng, s):
    """Adds one of the noises; says which."""
    n = rng.randrange(len(NOISES))
    s["noise"] = NOISES[n]
    if n == 3:
        s["files"] = {**s.get("files", {}), "noise": 32 << 20}
    return NOISE_WORDS[n]


def options_of(args):
    """["--a", "1", "--b"] as {"--a": ["1"], "--b": []}."""
    out = {}
    for a in args:
        if a.startswith("--"):
            key = a
            out[key] = []
        else:
            out[key].append(a)
    return out


def both(a, b):
    """One workload with the faults of two scenarios, or None if they do not fit together."""
    if a["workload"][0] != b["workload"][0] or set(a.get("env", {})) & set(b.get("env", {})):
        return None
    s = copy.deepcopy(a)
    options = {**options_of(b["workload"][1:]), **options_of(a["workload"][1:])}
    if "--duration" in options:
        options["--steps"] = ["1000000"]
    s["workload"] = [a["workload"][0]] + [t for k, v in options.items() for t in (k, *v)]
    for key in ("env", "files"):
        s[key] = {**a.get(key, {}), **b.get(key, {})}
    for key in ("neighbours", "also", "beside", "nvml", "cpus"):
        if b.get(key):
            s[key] = a.get(key, []) or b[key]
    for key in ("neighbours_after", "neighbour_cgroup"):
        if key in b:
            s.setdefault(key, b[key])
    s["seconds"] = max(a["seconds"], b["seconds"])
    s["name"], s["culprit"], s["truth"] = f"{a['problem']} + {b['problem']}", "", {}
    return s


HEALTHY = {
    "plain training": ["sim-train", "--steps", "1000000", "--duration", "6", "--launches", "8",
                       "--kernel-us", "400", "--cpu-us", "300"],
    "graphs": ["sim-train", "--steps", "1000000", "--duration", "6", "--launches", "20",
               "--kernel-us", "100", "--graphs"],
    "four ranks": ["sim-nccl", "--ranks", "4", "--steps", "1500", "--kernel-us", "2000"],
    "inference-like bursts": ["sim-train", "--steps", "1000000", "--duration", "6", "--launches", "12",
                              "--kernel-us", "150", "--copies", "1", "--batch-bytes", "4096",
                              "--burst", "20", "--pause-us", "30000"],
    "variable batch sizes": ["sim-train", "--steps", "1000000", "--duration", "6", "--launches", "8",
                             "--kernel-us", "400", "--vary-percent", "40"],
}


class Case:
    def __init__(self, kind, s, expected, noise=""):
        self.kind, self.scenario, self.expected, self.noise = kind, s, expected, noise
        self.judged = self.diagnosis_s = None

    def run(self):
        played = scenario.play(self.scenario)
        self.judged = scenario.judge(played, self.expected)
        if len(self.expected) == 1 and self.judged.top2:
            self.diagnosis_s = scenario.seconds_to_diagnosis(played, self.expected[0])
        self.steps, self.foreign_cpu = len(played.steps), played.foreign_cpu
        pathlib.Path(played.db).unlink(missing_ok=True)

    def row(self):
        return " + ".join(self.expected) or f"healthy ({self.kind})"


def one_round(rng, files):
    """Every scenario file once with other figures, the pairs, the healthy controls."""
    cases = []
    for s in files.values():
        t = copy.deepcopy(s)
        t["workload"] = vary(rng, t["workload"])
        noise = disturb(rng, t)
        kind = "look-alike" if s["name"].endswith("-lookalike") else "fault" if t["problem"] else \
            s["name"].removeprefix("healthy-")
        cases.append(Case(kind, t, [t["problem"]] if t["problem"] else [], noise))
    for a, b in PAIRS:
        s = both(files[a], files[b]) if a in files and b in files else None
        if s:
            cases.append(Case("pair", s, [files[a]["problem"], files[b]["problem"]]))
    for kind, workload in HEALTHY.items():
        s = {"name": kind, "problem": "", "workload": vary(rng, workload), "env": {}, "seconds": 12}
        cases.append(Case(kind, s, [], disturb(rng, s)))
    rng.shuffle(cases)
    return sorted(cases, key=lambda c: c.kind == "look-alike")  # what may not fit into the time


def healthy_round(rng):
    """Controls that last a minute: what is judged is how seldom a long run without a fault alarms."""
    cases = []
    for kind, workload in HEALTHY.items():
        s = {"name": kind, "problem": "", "workload": vary(rng, workload), "env": {}, "seconds": 70}
        for i, a in enumerate(s["workload"][:-1]):
            if a == "--duration":
                s["workload"][i + 1] = "60"
            elif a == "--steps" and s["workload"][0] == "sim-nccl":
                s["workload"][i + 1] = "15000"
        cases.append(Case(kind, s, [], disturb(rng, s)))
    rng.shuffle(cases)
    return cases


def progress(case, took_s):
    j = case.judged
    said = ", ".join(j.loud) or "nothing"
    hit = j.top2 if len(j.expected) > 1 else j.top1
    mark = "right" if hit and not j.false else "in top 2" if j.top2 and not j.false else "WRONG"
    print(f"{mark:<9} {j.name:<30} {case.noise:<22} said {said} ({took_s:.0f} s)", flush=True)
    if mark == "WRONG":
        print("    " + j.words().replace("\n", "\n    "), flush=True)


def play_all(rng, make_round, budget_s):
    done, begin = [], time.monotonic()
    while time.monotonic() - begin < budget_s:
        for case in make_round(rng):
            left = budget_s - (time.monotonic() - begin)
            if case.scenario["seconds"] + case.scenario.get("linger", 0) > left:
                continue
            start = time.monotonic()
            try:
                case.run()
            except Exception as e:  # a workload that does not start is a row, not the end
                print(f"failed    {case.scenario['name']}: {e}", flush=True)
                continue
            progress(case, time.monotonic() - start)
            done.append(case)
        if time.monotonic() - begin > budget_s - 10:
            break
    return done


def share(n, of):
    return f"{n} of {of}" if of else "-"


def median_text(values, fmt):
    values = [v for v in values if v is not None]
    return fmt.format(statistics.median(values)) if values else "-"


def share_error(case):
    j = case.judged
    return None if j.true_share is None or len(j.expected) != 1 else abs(j.share - j.true_share)


def rows_of(cases):
    groups = {}
    for c in cases:
        groups.setdefault(c.row() if c.kind != "look-alike" else "look-alikes", []).append(c)
    return dict(sorted(groups.items()))


def table(cases):
    lines = ["| injected | runs | top-1 | top-2 | top-1 aloud | culprit named | false alarms (of them HIGH) | "
             "share error | seconds to diagnosis | disturbed by others |", "|-|-|-|-|-|-|-|-|-|-|"]
    for name, group in rows_of(cases).items():
        js = [c.judged for c in group]
        lines.append("| {} | {} | {} | {} | {} | {} | {} ({}) | {} | {} | {} |".format(
            name, len(js), sum(j.top1 for j in js), sum(j.top2 for j in js),
            sum(bool(j.loud) and j.loud[0] in j.expected for j in js) if js[0].expected else "-",
            sum(j.culprit for j in js) if js[0].expected else "-",
            sum(len(j.false) for j in js), sum(len(j.false_high) for j in js),
            median_text([share_error(c) for c in group], "{:.2f}"),
            median_text([c.diagnosis_s for c in group], "{:.1f}"),
            sum(bool(j.disturbed) for j in js)))
    return lines


def confusion(cases):
    """Injected against the first verdict of MEDIUM or above; single faults and healthy runs."""
    single = [c for c in cases if len(c.expected) <= 1]
    said = {id(c): (c.judged.loud or ["nothing"])[0] for c in single}
    columns = sorted(set(said.values()))
    rows = sorted({(c.expected or ["healthy"])[0] for c in single})
    lines = ["| injected \\ said | " + " | ".join(columns) + " |", "|-" * (len(columns) + 1) + "|"]
    for r in rows:
        mine = [c for c in single if (c.expected or ["healthy"])[0] == r]
        counts = [sum(said[id(c)] == k for c in mine) for k in columns]
        lines.append(f"| {r} | " + " | ".join(str(n) if n else "" for n in counts) + " |")
    return lines


def weak(cases):
    lines = []
    for name, group in rows_of(cases).items():
        js, why = [c.judged for c in group], []
        if sum(j.top1 if len(j.expected) < 2 else j.top2 for j in js) < WEAK * len(js):
            said = sorted({(j.loud or ["nothing"])[0] for j in js
                           if not (j.top1 if len(j.expected) < 2 else j.top2)})
            why.append(f"said {', '.join(said)} instead")
        false = sorted({p for j in js for p in j.false})
        if false:
            why.append(f"false alarms: {', '.join(false)}")
        if js[0].expected and sum(j.culprit for j in js) < WEAK * len(js):
            why.append("culprit missed")
        errors = [e for e in map(share_error, group) if e is not None]
        if errors and statistics.median(errors) > SHARE_WEAK:
            why.append(f"explained share off by {statistics.median(errors):.2f}")
        if why:
            lines.append(f"- {name}: {'; '.join(why)}")
    return lines or ["None in this run."]


def summary(cases):
    faults = [c for c in cases if c.kind == "fault"]
    pairs = [c for c in cases if c.kind == "pair"]
    healthy = [c for c in cases if not c.expected and c.kind != "look-alike"]
    looks = [c for c in cases if c.kind == "look-alike"]
    hours = sum(c.judged.lasted for c in healthy) / 3600
    high = sum(len(c.judged.false_high) for c in healthy)
    errors = [e for e in map(share_error, cases) if e is not None]
    times = [c.diagnosis_s for c in faults if c.diagnosis_s is not None]
    lines = [
        f"- one fault: top-1 {share(sum(c.judged.top1 for c in faults), len(faults))}, top-2 "
        f"{share(sum(c.judged.top2 for c in faults), len(faults))}, culprit named "
        f"{share(sum(c.judged.culprit for c in faults), len(faults))}",
        f"- two faults at once, both in the first two: "
        f"{share(sum(c.judged.top2 for c in pairs), len(pairs))}",
        f"- look-alikes judged right: {share(sum(c.judged.top1 for c in looks), len(looks))}",
        f"- healthy controls without an alarm: {share(sum(c.judged.top1 for c in healthy), len(healthy))}; "
        f"false HIGH: {high} in {hours * 60:.1f} minutes, {high / hours if hours else 0:.1f} an hour"
        + (f" (none seen: below {3 / hours:.0f} an hour with 95 % confidence)" if hours and not high else ""),
    ]
    if errors:
        lines.append(f"- share of the run's time that is explained, against the injected one: off by "
                     f"{statistics.median(errors):.2f} in the median, {max(errors):.2f} at most "
                     f"({len(errors)} runs)")
    if times:
        lines.append(f"- from the fault's begin to its diagnosis: {statistics.median(times):.1f} s in the "
                     f"median, {max(times):.1f} s at most ({len(times)} runs, in steps of 1 s)")
    return lines


def load(cases, args):
    """How quiet the machine was."""
    foreign = statistics.median(c.foreign_cpu for c in cases) if cases else 0
    return f"other processes used {foreign:.0%} of the CPUs in the median" + \
        (f" (the runs had nice {args.nice})" if args.nice else "")


def page(cases, args, command):
    steps = sum(c.steps for c in cases if not c.expected)
    return "\n".join([
        "# How often the diagnosis is right", "",
        f"Written by `{command}` on {datetime.date.today()}; {platform.machine()}, {os.cpu_count()} CPUs, "
        f"Linux {platform.release()}. Seed {args.seed}, {len(cases)} runs, {load(cases, args)}. Do not edit: run "
        "it again.", "",
        "Every run is real: programs on the stand-in GPU, traced by eBPF, explained by `ingero explain`. "
        "Faults are made on purpose (sim/scenarios has a file for each), with figures that differ by up to a third from run to "
        f"run and one of {len(NOISES)} backgrounds ({', '.join(NOISE_WORDS)}). A verdict is the incidents' "
        "problem ids, worst severity first, then most time lost; a false alarm is one of MEDIUM or above "
        "that was neither injected nor follows from what was. What other processes of the machine did to a "
        "run is set aside and counted in the last column.", "",
        f"Time is compressed: steps last 3 to 10 ms here where they last 100 ms to 1 s in a training job "
        f"({steps} steps of runs without a fault), so that a minute here holds the decisions of about an "
        "hour; the figures by the hour are by the clock, not by the step.", "",
        "## In short", "", *summary(cases), "",
        "## By fault", "", *table(cases), "",
        "Top-1 aloud: with MEDIUM or above; what is LOW by its nature (a one-off cold start, a loss spike) has "
        "none there. Share error: the part of the run's time that the incident accounts for, against what the workload's "
        "own step log shows (or what the scenario states). Seconds to diagnosis: the recording is cut "
        "shorter and shorter; the earliest cut from which on the problem and its culprit are named.", "",
        "## First verdict", "", *confusion(cases), "",
        "## Weak rows", "", *weak(cases), ""])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*", help="scenario files to play as they are")
    p.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    p.add_argument("--budget", type=float, default=360, help="seconds of runs (360)")
    p.add_argument("--healthy", action="store_true", help="healthy controls alone")
    p.add_argument("--nice", type=int, default=0, help="of everything; below 0 on a machine that others use")
    p.add_argument("--write", action="store_true", help="write docs/accuracy.md")
    args = p.parse_args()
    os.nice(args.nice)
    if args.names:
        bad = 0
        for name in args.names:
            begin = time.monotonic()
            s = scenario.load(name)
            case = Case("fault", s, [s["problem"]] if s["problem"] else [])
            case.run()
            progress(case, time.monotonic() - begin)
            print(case.judged.words())
            bad += not case.judged.passes()
        return bad > 0
    files = {n: scenario.load(n) for n in scenario.names()}
    print(f"seed {args.seed}, {len(files)} scenario files, {args.budget:.0f} s", flush=True)
    make_round = healthy_round if args.healthy else lambda rng: one_round(rng, files)
    cases = play_all(random.Random(args.seed), make_round, args.budget)
    if args.healthy:
        steps = sum(c.steps for c in cases)
        print(f"\n{steps} steps; {load(cases, args)}", *summary(cases), sep="\n")
        return not cases
    text = page(cases, args, "make bench-diagnose")
    print("\n" + text)
    if args.write:
        PAGE.write_text(text)
    return not cases


if __name__ == "__main__":
    sys.exit(main())
