# SPDX-License-Identifier: Apache-2.0
"""ranks_score.py - was the answer right? Reads what ranks.py left, asks `ingero explain` about the recordings, makes the table.

Right: the first that is told names the rank (or link, or that load moves) and, within the run, the cause by its line or by
words. Half: the rank without the cause. Others blamed: what is told about anybody else. In a healthy run anything that is
told of a rank is an alarm; of `explain`, anything of MEDIUM or above."""
import collections
import json
import lzma
import math
import pathlib
import re
import statistics
import subprocess
import tempfile

import ranks_scenarios as scenarios

SEVERE = ("MEDIUM", "HIGH", "CRITICAL")
NO_EFFECT = 1.1    # a fault that changes less is not counted
RANK_PROBLEMS = {"straggler", "slow_node"}


def is_healthy(result):
    return result["truth"]["fault"] == "none" or result["truth"]["rank"] == -1


def first_late_ns(result):
    """When the others first had to wait, about."""
    truth, ranks = result["truth"], result["ranks"][0]
    if truth["fault"] in ("stopped", "loader"):
        return truth["fault_ns"] + int(truth["amount"] * 1e9)
    for r in ranks:
        if r["rank"] == truth["rank"] and r.get("fault_over_ns"):
            return max(r["fault_over_ns"], truth["ready_ns"])
    return max(truth["fault_ns"], truth["ready_ns"])


def fits(result, episode):
    truth, spec, problem = result["truth"], result["spec"], episode["problem"]
    if truth["fault"] == "moving":
        return problem == "uneven_load"
    if truth["fault"] == "link":
        return problem in scenarios.PROBLEMS["link"]
    if problem == "slow_stage":    # a stage of one rank is that rank
        return spec["kind"] == "pipeline" and not spec["stages"] and episode["stage"] == truth["rank"]
    if problem == "slow_node" and episode["rank"] is None:
        return truth["tracers"] == "nodes" and episode["node"] == f"node{truth['rank']}"
    return problem in RANK_PROBLEMS | scenarios.PROBLEMS.get(truth["fault"], set()) and episode["rank"] == truth["rank"]


def effect(result):
    """How much longer steps took with the fault than before it; None: there was no before, or nothing to compare."""
    truth, starts = result["truth"], result["ranks"][0][0]["steps"]
    if is_healthy(result) or truth["begin_s"] < 2 or truth["fault"] in ("hang", "mismatch"):
        return None
    long = [(b - a, a) for a, b in zip(starts[5:], starts[6:])]
    before = [d for d, at in long if at < truth["fault_ns"]]
    after = [d for d, at in long if truth["fault_ns"] + 3e8 < at < truth["stop_ns"]]
    return statistics.mean(after) / statistics.median(before) if before and after else None


def judge_service(result):
    """What the service said while the job ran; after its end nothing counts."""
    truth = result["truth"]
    v = {"shown_s": None, "told_s": None, "cause_s": None, "others": [], "shown_others": [], "first": None, "seen_s": None}
    since, too_early = first_late_ns(result), set()    # what is told before the fault is not about it
    if result["seen_ns"]:
        v["seen_s"] = (result["seen_ns"] - truth["ready_ns"]) / 1e9
    for state in result["said"]:
        if state["at_ns"] > truth["stop_ns"] + 5e8:
            break
        if state["at_ns"] < truth["fault_ns"]:
            too_early.update(e["id"] for e in state["episodes"])
        for e in state["episodes"]:
            after = (state["at_ns"] - since) / 1e9
            if not is_healthy(result) and fits(result, e) and (truth["begin_s"] < 1 or e["id"] not in too_early):
                v["shown_s"] = after if v["shown_s"] is None else v["shown_s"]
                if not e["provisional"] and v["told_s"] is None:
                    v["told_s"] = after
                if v["cause_s"] is None and re.search(truth["words"], e["text"] + (e["cause"] or "")):
                    v["cause_s"] = after
            else:
                key = "shown_others" if e["provisional"] else "others"
                who = (e["problem"], e["rank"], e["node"])
                if who not in [o[0] for o in v[key]]:
                    v[key].append((who, e["text"]))
            if v["first"] is None and not e["provisional"]:
                v["first"] = e["text"]
    return v


def verdict_of(result, v):
    """right, half, wrong, silent; of healthy ones quiet or alarm."""
    if is_healthy(result):
        return "alarm" if v["others"] else "quiet"
    if v["told_s"] is None and v["shown_s"] is None:
        return "wrong" if v["others"] else "silent"
    if v["others"]:
        return "wrong"
    return "right" if v["cause_s"] is not None else "half"


def line(result):
    v = judge_service(result)
    t = result["truth"]
    steps = [len(r["steps"]) for r in result["ranks"][0]]
    seconds = {k: v[k] and round(v[k], 2) for k in ("seen_s", "shown_s", "told_s", "cause_s")}
    failed = "" if t["ended"] else " KILLED" + "".join(r.get("error", "")[-150:] for r in result["ranks"][0])
    return f"{result['name']} rank {t['rank']} {steps[:1]} steps, x{effect(result) or 0:.2f}: {verdict_of(result, v)} {seconds} others {len(v['others'])}" \
           f"{failed}: {(v['first'] or 'nothing')[:160]}"


TOLD = ("severity", "problem", "summary", "root_cause", "explanation", "pid", "rank", "node", "place", "where", "causes", "fixes")


def explain(path, recordings, ingero):
    """What explain says of the run of @path: its incidents, the first first; kept beside it."""
    kept = path.with_suffix(".explain")
    if kept.exists():
        return json.loads(kept.read_text(encoding="utf-8"))
    if not recordings:
        return None
    with tempfile.TemporaryDirectory(dir="/var/tmp") as into:
        db = recordings[0]
        if len(recordings) > 1:
            db = pathlib.Path(into) / "merged.db"
            r = subprocess.run([ingero, "merge", *recordings, "-o", db], capture_output=True, text=True, check=False)
            if r.returncode:
                print("merge:", r.stderr.strip()[-200:])
        r = subprocess.run([ingero, "explain", "--json", "--db", db], capture_output=True, text=True, check=False)
    try:
        found = [{k: i.get(k) for k in TOLD} for i in json.loads(r.stdout)]
    except ValueError:
        print("explain:", r.stderr.strip()[-200:])
        return None
    kept.write_text(json.dumps(found), encoding="utf-8")
    return found


def unpack(path, into):
    """The run's recordings, of several nodes several."""
    plain = []
    for f in sorted(path.parent.glob(f"{path.stem}.db.xz")) or sorted(path.parent.glob(f"{path.stem}-*.db.xz")):
        plain.append(pathlib.Path(into) / f.name[:-3])
        plain[-1].write_bytes(lzma.decompress(f.read_bytes()))
    return plain


def replayed(path, result, program):
    """What the service of this build says of the recordings: bench/ranks_replay sends them as agents would."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as into:
        files = unpack(path, into)
        shifts = result["truth"]["shifts_ns"] or [0] * len(files)
        pids = [r["pid"] for r in sorted(result["ranks"][0], key=lambda r: r["rank"])]
        nodes = [f"nodeA={files[0]}"] if len(files) == 1 else \
            [f"node{i}={f}@{-shift},{pid}" for i, (f, shift, pid) in enumerate(zip(files, shifts, pids))]
        r = subprocess.run([program, "--causes", *nodes], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in r.stdout.splitlines()]


def explained(path, ingero):
    if path.with_suffix(".explain").exists():
        return explain(path, [], ingero)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as into:
        return explain(path, unpack(path, into), ingero)


def judge_explain(result, incidents):
    truth = result["truth"]
    severe = [i for i in incidents if i["severity"] in SEVERE]
    pids = {p["pid"]: p["rank"] for p in result["ranks"][0]}
    others = [p["pid"] for job in result["ranks"][1:] for p in job]
    v = {"first": severe[0]["summary"] if severe else None, "victims": [], "verdict": None}
    if is_healthy(result):
        v["verdict"] = "alarm" if severe and truth["rank"] != -1 else "quiet"
        return v
    for i in severe:
        if i["pid"] in others or (i["pid"] in pids and pids[i["pid"]] != truth["rank"] and truth["fault"] not in ("moving", "link")):
            v["victims"].append(i["summary"])
    if not severe:
        v["verdict"] = "silent"
        return v
    whole = json.dumps({k: v for k, v in severe[0].items() if k != "where" and v}) + str((severe[0]["where"] or {}).get("py_func"))
    named = truth["fault"] in ("moving", "link") or re.search(rf"\brank {truth['rank']}\b", whole) or \
        pids.get(severe[0]["pid"]) == truth["rank"]
    cause = re.search(truth["words"], whole)
    v["verdict"] = "right" if named and cause else "half" if named or cause else "wrong"
    return v


def interval(k, n):
    """95 %, Wilson."""
    if not n:
        return "-"
    p, z = k / n, 1.96
    middle, half = (p + z * z / 2 / n) / (1 + z * z / n), z * math.sqrt(p * (1 - p) / n + z * z / 4 / n / n) / (1 + z * z / n)
    return f"{100 * (middle - half):.0f} to {100 * (middle + half):.0f} %"


def seconds(value):
    return "-" if value is None else f"{value:.1f}"


def main(folders, ingero, replay=None):
    rows, counts, by_fault = [], collections.Counter(), collections.defaultdict(collections.Counter)
    shown, seen, none, victims = [], [], [], collections.Counter()
    for folder in map(pathlib.Path, folders):
        for path in sorted(folder.glob("*.json")):
            result = json.loads(path.read_text(encoding="utf-8"))
            if replay:
                result["said"] = replayed(path, result, replay)
                result["seen_ns"] = next((s["at_ns"] for s in result["said"] if s["settled"]), None)
            v = judge_service(result)
            said = explained(path, ingero)
            e = judge_explain(result, said) if said is not None else {"verdict": "-", "first": None, "victims": []}
            verdict, t, ratio = verdict_of(result, v), result["truth"], effect(result)
            if ratio is not None and ratio < NO_EFFECT:
                none.append(f"{path.stem} ({t['fault']}): {ratio:.2f} times the step")
                continue
            kind = "healthy" if is_healthy(result) else "faulty"
            counts[kind] += 1
            counts[kind, "service", verdict] += 1
            counts[kind, "explain", e["verdict"]] += 1
            by_fault[t["fault"]][verdict] += 1
            victims["service"] += len(v["others"]) if kind == "faulty" else 0
            victims["explain"] += len(e["victims"])
            if v["shown_s"] is not None:
                shown.append(v["shown_s"])
            if t["attach"] == "late" and v["seen_s"] is not None:
                seen.append(v["seen_s"])
            rows.append((path.stem, t, v, verdict, e))
    print("| run | fault, rank | attached | service | shown after, s | line or cause after, s | others told | explain | victims in explain |")
    print("|-|-|-|-|-|-|-|-|-|")
    for name, t, v, verdict, e in rows:
        print(f"| {name} | {t['fault']}, {t['rank']} | {t['attach']}, {t['tracers']} | {verdict} | {seconds(v['shown_s'])} | "
              f"{seconds(v['cause_s'])} | {len(v['others'])} | {e['verdict']} | {len(e['victims'])} |")
    print()
    for who in ("service", "explain"):
        right, n = counts["faulty", who, "right"], counts["faulty"]
        print(f"{who}: " + ", ".join(f"{counts['faulty', who, k]} {k}" for k in ("right", "half", "wrong", "silent")) +
              f" of {n} ({interval(right, n)} right), {victims[who]} victims; alarms in {counts['healthy', who, 'alarm']} of "
              f"{counts['healthy']} healthy ({interval(counts['healthy', who, 'alarm'], counts['healthy'])})")
    for what, values in (("shown after", sorted(shown)), ("late attach until seen", sorted(seen))):
        if values:
            print(f"{what}: half within {values[len(values) // 2]:.1f} s, 95 % within {values[int(len(values) * 0.95) - (len(values) > 19)]:.1f} s, "
                  f"longest {values[-1]:.1f} s")
    if none:
        print("not counted, without effect:", "; ".join(none))
    for fault, c in sorted(by_fault.items()):
        print(f"{fault}: {dict(c)}")
    print()
    for name, t, v, verdict, e in rows:
        if verdict not in ("right", "quiet") or v["others"]:
            print(f"- {name} ({t['fault']}, rank {t['rank']}): {verdict}: {v['first'] or 'nothing'}")
        if e["verdict"] not in ("right", "quiet", "-") or e["victims"]:
            print(f"- {name} ({t['fault']}, rank {t['rank']}): explain {e['verdict']}: {e['first'] or 'nothing'}" +
                  "".join(f"; victim: {x}" for x in e["victims"][:2]))
    return 0
