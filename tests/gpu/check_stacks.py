# SPDX-License-Identifier: Apache-2.0
"""check_stacks.py - are the stacks of a real PyTorch training script right?

Runs stack_workload.py under `ingero trace`, then compares the Python frames of every recorded call of
its main thread with the stacks that the script has written down from inside. A stack is right if its
functions, files and lines, from the innermost frame outwards up to train_step(), are one of those.
Budget: 95 % of the main thread's calls reach the interpreter's main and carry the right Python line.

  sudo python3 check_stacks.py [--seconds N] [--out FILE]
"""
import argparse
import collections
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
OUTERMOST = ("_start", "__libc_start_main", "clone", "clone3", "__clone", "__clone3", "thread_start")
WARM_S = 3  # tables of libtorch come on the first demand


def python_part(frames):
    """Up to the step: what is outside it differs between the traced run and the witnessed one."""
    part = []
    for f in frames:
        if "pfn" in f:
            part.append((f["pfn"], f.get("pf", ""), f.get("pl", 0)))
            if f["pfn"] == "train_step":
                return tuple(part), True
    return tuple(part), False


def witnessed(stacks):
    known = set()
    for stack in stacks:
        part = []
        for frame in stack:
            part.append(tuple(frame))
            if frame[0] == "train_step":
                known.add(tuple(part))
                break
    return known


def record(seconds, folder, extra):
    db = str(folder / "stacks.db")
    out = str(folder / "inside.json")
    work = subprocess.Popen([sys.executable, str(HERE / "stack_workload.py"), str(seconds), out],
                            stdout=subprocess.PIPE, text=True)
    trace = subprocess.Popen([str(HERE / "ingero"), "trace", "--db", db, "--duration", "120s", *extra],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert work.stdout.readline().strip() == "ready", "the workload did not start"
    time.sleep(seconds)
    trace.send_signal(signal.SIGINT)
    text = trace.communicate(timeout=60)[0]
    rss = None
    work.wait(timeout=120)
    with open(out, encoding="utf-8") as f:
        inside = json.load(f)
    return db, inside, text, rss


def judge(db, inside):
    con = sqlite3.connect(f"file:{db}?mode=ro", uri=True)
    stacks = {h: (json.loads(frames), stop) for h, frames, stop in
              con.execute("SELECT hash, frames, stop FROM stack_traces WHERE frames != ''")}
    pid = inside["pid"]
    first = con.execute("SELECT min(timestamp) FROM events WHERE pid = ? AND source IN (1, 4)",
                        (pid,)).fetchone()[0]
    rows = con.execute("SELECT tid, stack_hash, count(*) FROM events WHERE pid = ? AND source IN (1,4,8,9)"
                       " AND timestamp > ? GROUP BY tid, stack_hash",
                       (pid, first + WARM_S * 10**9)).fetchall()
    known = witnessed(inside["witnessed"]) | witnessed(s for s, _ in inside["sampled"])
    n = collections.Counter()
    wrong = collections.Counter()
    stops = collections.Counter()
    for tid, stack_hash, count in rows:
        who = "main" if tid == pid else "other"
        n[who] += count
        if stack_hash not in stacks:
            n[who + "_without"] += count
            continue
        frames, stop = stacks[stack_hash]
        symbols = [f.get("s", "") for f in frames]
        # The C library's thread start has no name in a stripped one: the walk's word counts there.
        is_complete = not stop and (who == "other" or any(s in OUTERMOST for s in symbols[-3:]))
        if is_complete:
            n[who + "_complete"] += count
        else:
            stops[(who, stop, symbols[-1] if symbols else "")] += count
        if who == "other":
            continue
        part, in_step = python_part(frames)
        if not in_step:
            n["main_outside_step"] += count
            n["main_outside_step_complete"] += count if is_complete else 0
            continue
        n["main_in_step"] += count
        if part in known:
            n["main_right_line"] += count
            n["main_right"] += count if is_complete else 0
        else:
            wrong[part[:4]] += count
    return n, wrong, stops, len(stacks)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=int, default=15)
    p.add_argument("--out")
    p.add_argument("rest", nargs="*", help="more flags for ingero trace, after --")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        db, inside, text, _ = record(a.seconds, folder, a.rest)
        n, wrong, stops, distinct = judge(db, inside)
        folded = subprocess.run([str(HERE / "ingero"), "export", "--format", "folded", "--db", db],
                                capture_output=True, text=True).stdout
        size = os.path.getsize(db)
    lines = [x for x in text.splitlines() if "Stacks:" in x or "Python" in x or "Lost" in x or "Overhead" in x]
    result = {"counts": dict(n), "distinct": distinct, "trace": lines, "db_bytes": size,
              "wrong": [[list(k), v] for k, v in wrong.most_common(8)],
              "stops": [[list(k), v] for k, v in stops.most_common(12)],
              "share_right": n["main_right"] / max(1, n["main_in_step"]),
              "share_other_complete": n["other_complete"] / max(1, n["other"]),
              "folded_lines": len(folded.splitlines()), "folded_example": folded.splitlines()[:2]}
    print(json.dumps(result, indent=1, ensure_ascii=False))
    if a.out:
        pathlib.Path(a.out).write_text(json.dumps(result, indent=1, ensure_ascii=False))
    ok = result["share_right"] >= 0.95 and n["main_in_step"] > 100
    print("ok" if ok else "NOT MET: 95 % of the main thread's stacks right and complete")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
