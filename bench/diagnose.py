#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""diagnose.py - how often explain is right: plays scenarios with random figures, random background
noise, two faults at once, and healthy controls, for a bounded time; prints a table and can write
docs/accuracy-rounds.md.

  bench/diagnose.py                       all kinds, what fits into six minutes
  bench/diagnose.py --long                all of them, until each row has ten runs: three hours
  bench/diagnose.py --long --results FILE --budget 1200    goes on with FILE's for 20 minutes: three hours in parts
  bench/diagnose.py --seed 7 --write      the same again; writes docs/accuracy-rounds.md
  bench/diagnose.py straggler pcie        these files as they are, with every incident
  bench/diagnose.py pcie+memory-leak      two of them on one workload
  bench/diagnose.py --keep FOLDER pcie    leaves the recording there
  bench/diagnose.py --healthy             healthy controls alone, each for a minute

Needs root and a build, or the folder of `make check-kit` on another machine. Everything runs one after the
other: the machine is part of the experiment. On one with many CPUs several can play side by side, each on CPUs
(taskset -c) and with --results of its own.
"""
import argparse
import collections
import copy
import datetime
import json
import os
import pathlib
import platform
import random
import shutil
import statistics
import sys
import time
import types

import scenario

PAGE = scenario.SOURCE / "docs" / "accuracy-rounds.md"
HEADING = "## On the stand-in GPU"  # what is above it, tests/gpu/accuracy.py wrote
WEAK = 0.9  # a row whose top-1 is below this is called weak
SHARE_WEAK = 0.15

# Figures that may differ by a third without turning the fault into something else.
VARIED = {"--kernel-us", "--launches", "--cpu-us", "--loader-us", "--delay-us", "--batch-bytes",
          "--checkpoint-bytes", "--leak-bytes"}
# Two at once on one workload: both belong into the first two.
PAIRS = [("cpu-contention", "memory-leak"), ("starvation", "memory-leak"), ("pcie", "cpu-contention"),
         ("cpu-contention", "starvation"), ("checkpoint", "memory-leak"), ("pcie", "memory-leak")]
PAIR_SLOWER = 1.08  # a step that the other fault has made longer already; less would not be worth a MEDIUM
PAIR_STEPS = 100  # likewise
PAIR_CPU_US = 4000  # what sleeps most of the time is put first by the scheduler: a hog has to meet work to take
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
    for key in ("env", "files"):
        s[key] = {**a.get(key, {}), **b.get(key, {})}
    for key in ("neighbours", "also", "beside", "nvml", "cpus"):
        if b.get(key):
            s[key] = a.get(key, []) or b[key]
    for key in ("neighbours_after", "neighbour_cgroup"):
        if key in b:
            s.setdefault(key, b[key])
    if any(n[0] == "sim-cpu-hog" for n in s.get("neighbours", [])):
        options["--cpu-us"] = [str(PAIR_CPU_US)]
    s["workload"] = [a["workload"][0]] + [t for k, v in options.items() for t in (k, *v)]
    s["seconds"] = max(a["seconds"], b["seconds"])
    s["effect"] = {**b.get("effect", {}), **a.get("effect", {})}
    if "slower" in s["effect"]:
        s["effect"]["slower"] = PAIR_SLOWER
    if "steps" in s["effect"]:
        s["effect"]["steps"] = PAIR_STEPS
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
        self.missing = ""  # why it is not scored

    def run(self, keep=None):
        """@keep: the folder in which the recording stays."""
        played = scenario.play(self.scenario)
        self.missing = scenario.fault_missing(played)
        self.judged = scenario.judge(played, self.expected)
        if len(self.expected) == 1 and self.judged.top2 and not self.missing:
            self.diagnosis_s = scenario.seconds_to_diagnosis(played, self.expected[0])
        self.steps, self.foreign_cpu = len(played.steps), played.foreign_cpu
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            shutil.copy(played.db, keep / f"{self.row().replace(' + ', '+')}.db")
        pathlib.Path(played.db).unlink(missing_ok=True)

    def row(self):
        return self.scenario["name"]

    def kept(self):
        """As a line of --results."""
        judged = {k: v for k, v in vars(self.judged).items() if k != "incidents"}
        return {"kind": self.kind, "scenario": {"name": self.row()}, "expected": self.expected, "noise": self.noise,
                "missing": self.missing, "diagnosis_s": self.diagnosis_s, "steps": self.steps,
                "foreign_cpu": self.foreign_cpu, "seed": self.seed, "machine": self.machine, "judged": judged}


def kind_of(s):
    if s["name"].endswith("-lookalike"):
        return "look-alike"
    return "healthy" if not s["problem"] else "told" if s.get("told") else "fault"


def one_round(rng, files):
    """Every scenario file once with other figures, the pairs, the healthy controls."""
    cases = []
    for s in files.values():
        t = copy.deepcopy(s)
        t["workload"] = vary(rng, t["workload"])
        noise = disturb(rng, t)
        cases.append(Case(kind_of(s), t, [t["problem"]] if t["problem"] else [], noise))
    for a, b in PAIRS:
        s = both(files[a], files[b]) if a in files and b in files else None
        if s:
            cases.append(Case("pair", s, [files[a]["problem"], files[b]["problem"]]))
    for kind, workload in HEALTHY.items():
        s = {"name": f"healthy: {kind}", "problem": "", "workload": vary(rng, workload), "env": {}, "seconds": 12}
        cases.append(Case("healthy", s, [], disturb(rng, s)))
    rng.shuffle(cases)
    return cases


def named(name):
    """The file @name as it is, or two of them, "a+b"; None if these do not fit."""
    parts = [scenario.load(n) for n in name.split("+")]
    if len(parts) == 1:
        s = parts[0]
        return Case(kind_of(s), s, [s["problem"]] if s["problem"] else [])
    s = both(*parts) if len(parts) == 2 else None
    return Case("pair", s, [p["problem"] for p in parts]) if s else None


def play_named(args):
    """True if one of them was not right."""
    bad = 0
    for name in args.names:
        begin = time.monotonic()
        case = named(name)
        case.run(args.keep)
        progress(case, time.monotonic() - begin)
        print(case.judged.words())
        bad += bool(case.missing) or not case.judged.passes() or not (is_hit(case.judged) or case.judged.low)
    return bad > 0


def healthy_round(rng):
    """Controls that last a minute: what is judged is how seldom a long run without a fault alarms."""
    cases = []
    for kind, workload in HEALTHY.items():
        s = {"name": f"healthy: {kind}", "problem": "", "workload": vary(rng, workload), "env": {}, "seconds": 70}
        for i, a in enumerate(s["workload"][:-1]):
            if a == "--duration":
                s["workload"][i + 1] = "60"
            elif a == "--steps" and s["workload"][0] == "sim-nccl":
                s["workload"][i + 1] = "15000"
        cases.append(Case("healthy", s, [], disturb(rng, s)))
    rng.shuffle(cases)
    return cases


def is_hit(judged):
    return judged.top2 if len(judged.expected) > 1 else judged.top1


def progress(case, took_s):
    j = case.judged
    said = ", ".join(j.loud) or "nothing"
    mark = "no fault" if case.missing else "WRONG" if j.false else "right" if is_hit(j) else \
        "LOW" if j.low else "in top 2" if j.top2 else "WRONG"
    print(f"{mark:<9} {j.name:<30} {case.noise:<22} said {said} ({took_s:.0f} s)", flush=True)
    if case.missing:
        print(f"    not scored: {case.missing}", flush=True)
    elif mark == "WRONG":
        print("    " + j.words().replace("\n", "\n    "), flush=True)


class Results:
    """What was played, in a file as well if there is one."""

    def __init__(self, path, seed):
        self.path, self.cases, self.tries = path, [], collections.Counter()
        self.where = {"seed": seed, "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, Linux "
                      f"{platform.release()}"}
        for line in path.read_text().splitlines() if path and path.exists() else []:
            row = json.loads(line)
            case = Case(row["kind"], row["scenario"], row["expected"], row["noise"])
            vars(case).update(row, judged=types.SimpleNamespace(**row["judged"]))
            self.cases.append(case)
            self.tries[case.row()] += 1

    def play(self, case):
        """A workload that does not start is a try, not the end."""
        start = time.monotonic()
        self.tries[case.row()] += 1
        try:
            case.run()
        except Exception as e:
            print(f"failed    {case.row()}: {e}", flush=True)
            return
        vars(case).update(self.where)
        progress(case, time.monotonic() - start)
        self.cases.append(case)
        if self.path:
            with self.path.open("a") as f:
                f.write(json.dumps(case.kept()) + "\n")

    def scored(self, row):
        return sum(c.row() == row and not c.missing for c in self.cases)


def play_for(rng, make_round, budget_s, results, is_wanted=lambda case: True):
    """What fits into @budget_s of what @is_wanted."""
    begin = time.monotonic()
    while time.monotonic() - begin < budget_s - 10:
        wanted = [c for c in make_round(rng) if is_wanted(c)]
        if not wanted:
            break
        for case in wanted:
            left = budget_s - (time.monotonic() - begin)
            if case.scenario["seconds"] + case.scenario.get("linger", 0) <= left:
                results.play(case)


def play_each(rng, make_round, runs, budget_s, results):
    """All of a round, again and again until each has @runs that are scored, or twice as many tries."""
    play_for(rng, make_round, budget_s, results,
             lambda c: results.scored(c.row()) < runs and results.tries[c.row()] < 2 * runs)


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
        groups.setdefault(c.row(), []).append(c)
    return dict(sorted(groups.items()))


def quiet_table(cases):
    """Look-alikes and healthy runs: what must not be said counts."""
    lines = ["| played | right verdict | runs | right | right, but LOW | false alarms (of them HIGH) | "
             "disturbed by others |", "|-|-|-|-|-|-|-|"]
    for name, group in rows_of(cases).items():
        js = [c.judged for c in group]
        lines.append("| {} | {} | {} | {} | {} | {} ({}) | {} |".format(
            name, ", ".join(js[0].expected) or "nothing", len(js), sum(is_hit(j) and not j.false for j in js),
            sum(j.low and not j.false for j in js), sum(len(j.false) for j in js),
            sum(len(j.false_high) for j in js), sum(bool(j.disturbed) for j in js)))
    return lines


def table(cases):
    lines = ["| injected | runs | top-1 | LOW only | top-2 | culprit named | false alarms (of them HIGH) | "
             "share error | seconds to diagnosis | disturbed by others |", "|-|-|-|-|-|-|-|-|-|-|"]
    for name, group in rows_of(cases).items():
        js = [c.judged for c in group]
        lines.append("| {} | {} | {} | {} | {} | {} | {} ({}) | {} | {} | {} |".format(
            name, len(js), sum(j.top1 for j in js), sum(j.low for j in js), sum(j.top2 for j in js),
            sum(j.culprit for j in js),
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
    rows = sorted({(c.expected or ["nothing"])[0] for c in single})
    lines = ["| right \\ said | " + " | ".join(columns) + " |", "|-" * (len(columns) + 1) + "|"]
    for r in rows:
        mine = [c for c in single if (c.expected or ["nothing"])[0] == r]
        counts = [sum(said[id(c)] == k for c in mine) for k in columns]
        lines.append(f"| {r} | " + " | ".join(str(n) if n else "" for n in counts) + " |")
    return lines


def weak(cases):
    lines = []
    for name, group in rows_of(cases).items():
        js, why = [c.judged for c in group], []
        if sum(is_hit(j) for j in js) < WEAK * len(js):
            said = sorted({"LOW only" if j.low else (j.loud or ["nothing"])[0] for j in js if not is_hit(j)})
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


def quiet_lines(cases):
    healthy = [c for c in cases if c.kind == "healthy"]
    looks = [c for c in cases if c.kind == "look-alike"]
    silent = [c for c in looks if not c.expected]
    other = [c for c in looks if c.expected]
    hours = sum(c.judged.lasted for c in healthy) / 3600
    high = sum(len(c.judged.false_high) for c in healthy)
    return [
        f"- healthy runs without an alarm: {share(sum(c.judged.top1 for c in healthy), len(healthy))}; "
        f"false HIGH: {high} in {hours * 60:.1f} minutes, {high / hours if hours else 0:.1f} an hour"
        + (f" (none seen: below {3 / hours:.0f} an hour with 95 % confidence)" if hours and not high else ""),
        f"- look-alikes of which nothing may be said, without an alarm: "
        f"{share(sum(c.judged.top1 for c in silent), len(silent))}",
        f"- look-alikes that are another fault, that one named first: "
        f"{share(sum(c.judged.top1 for c in other), len(other))}, LOW {sum(c.judged.low for c in other)}"]


def fault_line(what, cases):
    js = [c.judged for c in cases]
    return (f"- {what}: top-1 {share(sum(j.top1 for j in js), len(js))}, LOW only {sum(j.low for j in js)}, top-2 "
            f"{share(sum(j.top2 for j in js), len(js))}, culprit named {share(sum(j.culprit for j in js), len(js))}")


def summary(cases):
    by_kind = {k: [c for c in cases if c.kind == k] for k in ("fault", "told", "pair")}
    pairs = by_kind["pair"]
    errors = [e for e in map(share_error, cases) if e is not None]
    times = [c.diagnosis_s for c in by_kind["fault"] if c.diagnosis_s is not None]
    lines = quiet_lines(cases) + [
        fault_line("one fault", by_kind["fault"]),
        f"- two faults at once, both in the first two: {share(sum(c.judged.top2 for c in pairs), len(pairs))}",
        fault_line("faults that come as a code, label or counter that means the verdict, not counted above",
                   by_kind["told"])]
    if errors:
        lines.append(f"- share of the run's time that is explained, against the injected one: off by "
                     f"{statistics.median(errors):.2f} in the median, {max(errors):.2f} at most "
                     f"({len(errors)} runs)")
    if times:
        lines.append(f"- from the fault's begin to its diagnosis: {statistics.median(times):.1f} s in the "
                     f"median, {max(times):.1f} s at most ({len(times)} runs, in steps of 1 s)")
    return lines


def not_scored(cases):
    """Runs without the fault, and files that were not played."""
    lines = [f"- {c.row()}: {c.missing}" for c in cases if c.missing]
    never = [n for n in scenario.names() if n not in {c.row() for c in cases}]
    if never:
        lines.append(f"- not played, for want of time: {', '.join(never)}")
    return lines or ["None."]


def load(cases, args):
    """How quiet the machine was."""
    foreign = statistics.median(c.foreign_cpu for c in cases) if cases else 0
    return f"other processes used {foreign:.0%} of the CPUs in the median" + \
        (f" (the runs had nice {args.nice})" if args.nice else "")


ABOUT = (
    "Every run is real: programs on the stand-in GPU, traced by eBPF, explained by `ingero explain`. Faults are "
    "made on purpose (sim/scenarios has a file for each), with figures that differ by up to a third from run to "
    f"run and one of {len(NOISES)} backgrounds ({', '.join(NOISE_WORDS)}). A run whose fault did not happen, by "
    "the workload's own step log or what else its scenario states as the effect, is not scored. A verdict is the "
    "incidents' problem ids, worst severity first, then most time lost; top-1 and top-2 count MEDIUM or above, and "
    "what was named first but with LOW has a column of its own. A false alarm is one of MEDIUM or above that was "
    "neither injected nor follows from what was. What other processes of the machine did to a run is set aside and "
    "counted in the last column.")
COLUMNS = (
    "Share error: the part of the run's time that the incident accounts for, against what the workload's own step "
    "log shows (or what the scenario states). Seconds to diagnosis: the recording is cut shorter and shorter, rows "
    "by their end, buckets of counted calls in proportion; the earliest cut from which on the problem and its "
    "culprit are named aloud.")


def page(played, args, command):
    cases = [c for c in played if not c.missing]
    steps = sum(c.steps for c in cases if not c.expected)
    quiet = [c for c in cases if c.kind in ("healthy", "look-alike")]
    of_kind = {k: [c for c in cases if c.kind == k] for k in ("fault", "told", "pair")}
    return "\n".join([
        HEADING, "",
        f"Written by `{command}` on {datetime.date.today()}; {'; '.join(sorted({c.machine for c in played}))}. "
        f"Seed {', '.join(sorted({str(c.seed) for c in played}))}, {len(played)} runs, {len(cases)} scored, "
        f"{load(played, args)}. "
        "Do not edit: run it again.", "",
        ABOUT, "",
        f"Time is compressed: steps last 3 to 10 ms here where they last 100 ms to 1 s in a training job "
        f"({steps} steps of runs without a fault), so that a minute here holds the decisions of about an "
        "hour; the figures by the hour are by the clock, not by the step.", "",
        "### In short", "", *summary(cases), "",
        "### Look-alikes and healthy runs", "", *quiet_table(quiet), "",
        "### One fault", "", *table(of_kind["fault"]), "", COLUMNS, "",
        "### Two faults at once", "", *table(of_kind["pair"]), "",
        "### Faults that are told", "",
        "The fault is an error code, a label or a counter that means the verdict: these rows say that it arrives, "
        "not that anything was diagnosed.", "", *table(of_kind["told"]), "",
        "### First verdict", "", *confusion(cases), "",
        "### Weak rows", "", *weak(cases), "",
        "### Not scored", "", *not_scored(played), ""])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*", help="scenario files to play as they are; a+b: two at once")
    p.add_argument("--keep", type=pathlib.Path, help="with names: the folder in which recordings stay")
    p.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    p.add_argument("--budget", type=float, help="seconds of runs (360; --long: no limit)")
    p.add_argument("--long", action="store_true", help="all, with --runs of each")
    p.add_argument("--results", type=pathlib.Path, help="goes on with the runs of this file; adds to it")
    p.add_argument("--runs", type=int, default=10, help="with --long: scored runs a row (10)")
    p.add_argument("--healthy", action="store_true", help="healthy controls alone")
    p.add_argument("--nice", type=int, default=0, help="of everything; below 0 on a machine that others use")
    p.add_argument("--write", action="store_true", help="write docs/accuracy-rounds.md")
    args = p.parse_args()
    unknown = sorted({n for name in args.names for n in name.split("+")} - set(scenario.names()))
    if unknown:
        p.error(f"no scenario {', '.join(unknown)}; there are: {', '.join(scenario.names())}")
    unfit = [name for name in args.names if not named(name)]
    if unfit:
        p.error(f"{', '.join(unfit)}: these do not fit on one workload")
    if missing := scenario.not_ready():
        p.error(missing)
    os.nice(args.nice)
    if args.names:
        return play_named(args)
    files = {n: scenario.load(n) for n in scenario.names()}
    budget_s = args.budget or (float("inf") if args.long else 360)
    print(f"seed {args.seed}, {len(files)} scenario files, {f'{args.runs} runs of each, ' if args.long else ''}"
          f"{budget_s:.0f} s", flush=True)
    make_round = healthy_round if args.healthy else lambda rng: one_round(rng, files)
    rng, results = random.Random(args.seed), Results(args.results, args.seed)
    if args.long:
        play_each(rng, make_round, args.runs, budget_s, results)
    else:
        play_for(rng, make_round, budget_s, results)
    cases = results.cases
    if args.healthy:
        steps = sum(c.steps for c in cases)
        print(f"\n{steps} steps; {load(cases, args)}", *quiet_lines(cases), sep="\n")
        return not cases
    text = page(cases, args, "bench/diagnose.py --long" if args.long else "make bench-diagnose")
    print("\n" + text)
    if args.write:
        PAGE.write_text(PAGE.read_text().split(HEADING)[0] + text)
    return not cases


if __name__ == "__main__":
    sys.exit(main())
