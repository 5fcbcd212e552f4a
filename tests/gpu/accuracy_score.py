# SPDX-License-Identifier: Apache-2.0
"""accuracy_score.py - was the answer right? Reads what one run of accuracy.py left in its folder, and makes
the table of many runs. No process is started here.

A run counts only if its fault happened: by the job's own step log, steps became slower by a fifth or more
(or memory grew). The first incident is the worst one, then the one that cost most time."""
import ast
import collections
import json
import pathlib
import re
import statistics

import accuracy_scenarios as scenarios

HERE = pathlib.Path(__file__).resolve().parent
SLOWER = 1.2
LEAKED_BYTES = 2 << 30
SEVERITIES = ["INFO", "LOW", "MEDIUM", "HIGH", "CRITICAL"]
BUDGETS = {"top1": 0.9, "line": 0.9, "place": 0.9, "unknown": 0.15}


def read_json(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


class Marks(ast.NodeVisitor):
    """Where the FAULT marks are: {mark: {(file, line)}} and {mark: {(file, function)}}."""

    def __init__(self):
        self.lines, self.functions = collections.defaultdict(set), collections.defaultdict(set)
        for path in sorted([*HERE.glob("train_*.py"), *HERE.glob("job_*.py")]):
            text = path.read_text(encoding="utf-8")
            self.file, self.names = path.name, []
            self.at = {n: line.split("# FAULT ")[1].strip()
                       for n, line in enumerate(text.splitlines(), 1) if "# FAULT " in line}
            self.visit(ast.parse(text))

    def visit_ClassDef(self, node):
        self.names.append(node.name)
        self.generic_visit(node)
        self.names.pop()

    def visit_FunctionDef(self, node):
        self.names.append(node.name)
        for line, mark in self.at.items():
            if node.lineno <= line <= node.end_lineno:
                self.lines[mark].add((self.file, line))
                self.functions[mark].add((self.file, ".".join(self.names)))
        self.generic_visit(node)
        self.names.pop()

    visit_AsyncFunctionDef = visit_FunctionDef


def places(value):
    """(file, function, line) of every place that a piece of an answer names."""
    if isinstance(value, dict):
        if value.get("py_file"):
            yield pathlib.PurePath(value["py_file"]).name, value.get("py_func", ""), value.get("py_line", 0)
        for key, part in value.items():
            if key != "stacks":
                yield from places(part)
    elif isinstance(value, list):
        for part in value:
            yield from places(part)
    elif isinstance(value, str):
        for file, line in re.findall(r"([\w-]+\.py):(\d+)", value):
            yield file, "", int(line)


def is_function(said, known):
    return said == known or ("." not in said and said == known.split(".")[-1])


def judge_place(marks, mark, answer):
    """"line", "function" or "" (not named)."""
    found = list(places(answer))
    if any((file, line) in marks.lines[mark] for file, _, line in found):
        return "line"
    if any(file == f and func and is_function(func, name) for file, func, _ in found
           for f, name in marks.functions[mark]):
        return "function"
    return ""


def mean_step_s(starts_ns, begin_ns, end_ns):
    inside = [t for t in starts_ns if begin_ns <= t <= end_ns]
    if len(inside) < 3:
        return max(end_ns - begin_ns, 1) / 1e9 / max(len(inside), 0.5)
    return (inside[-1] - inside[0]) / 1e9 / (len(inside) - 1)


def effect(s, log, meta):
    """What the fault did to the steps, by the job's own log: {} if there is no log."""
    if not log:
        return {}
    fault, end = meta["fault_ns"], meta["end_ns"]
    if not fault:
        return {"step_ms": mean_step_s(log["steps_ns"], meta["begin_ns"], end) * 1e3}
    begin = min(log["steps_ns"], default=fault) if s.from_start else meta["begin_ns"]
    before = mean_step_s(log["steps_ns"], begin, fault)
    after = mean_step_s(log["steps_ns"], fault + 300_000_000, end)
    return {"step_ms": before * 1e3, "slow_step_ms": after * 1e3, "slower": after / before,
            "leaked": log.get("memory_at_end", 0) - log.get("memory_at_fault", 0)}


def happened(s, e):
    if s.is_healthy or s.effect == "nothing":
        return True
    if s.effect == "memory":
        return e.get("leaked", 0) >= LEAKED_BYTES
    return e.get("slower", 0) >= SLOWER


def incidents_of(document):
    if isinstance(document, dict):
        document = document.get("incidents") or []
    rank = {name: i for i, name in enumerate(SEVERITIES)}
    return sorted(document or [], key=lambda i: (-rank.get(i.get("severity"), 0), -(i.get("excess_ns") or 0)))


def is_loud(incident):
    return incident.get("severity") in SEVERITIES[2:]


def text_of(incident):
    """What names the cause; the explanation also lists what else it might have been."""
    causes = json.dumps(incident.get("causes", ""), ensure_ascii=False)
    return "\n".join([str(incident.get(k, "")) for k in ("summary", "root_cause")] + [causes])


def is_accepted(s, incident):
    return any(incident.get("problem") in ids.split() and re.search(text, text_of(incident), re.I)
               for ids, text in s.accept)


def accounts_of(value):
    """Every account in a document, wherever it stands."""
    if isinstance(value, dict):
        if isinstance(value.get("entries"), list) and "pid" in value:
            yield value
        for part in value.values():
            yield from accounts_of(part)
    elif isinstance(value, list):
        for part in value:
            yield from accounts_of(part)


def number(value):
    return value if isinstance(value, (int, float)) else 0


def growth(account, entry):
    """From ordinary to slow steps; where none is slow, what a step has of it."""
    if account.get("slow_steps"):
        return number(entry.get("slow_ns")) - number(entry.get("ordinary_ns"))
    return max(number(entry.get(k)) for k in ("mean_ns", "slow_ns", "ordinary_ns"))


def top_entry(account):
    """The largest entry of the line and owner that grew most, all their entries together."""
    sums = collections.Counter()
    for e in account["entries"]:
        sums[e.get("line"), e.get("owner")] += growth(account, e)
    if not sums:
        return {}
    top = sums.most_common(1)[0][0]
    return max((e for e in account["entries"] if (e.get("line"), e.get("owner")) == top),
               key=lambda e: growth(account, e))


def line_sums(account, kind):
    """{line: ns} of "ordinary_ns", "slow_ns" or "total_ns", as object, or as a list of lines."""
    sums = account.get(kind)
    if isinstance(sums, dict):
        return {k: number(v) for k, v in sums.items()}
    return {row.get("line") or row.get("id"): number(row.get(kind))
            for row in account.get("lines", []) if isinstance(row, dict)}


def unknown_share(account):
    """Of what slow steps lost; where none is slow, of all."""
    slow, ordinary = line_sums(account, "slow_ns"), line_sums(account, "ordinary_ns")
    lost = sum(max(0, slow[k] - ordinary.get(k, 0)) for k in slow)
    if account.get("slow_steps") and sum(ordinary.values()) and lost > 0:
        return max(0, slow.get("unknown", 0) - ordinary.get("unknown", 0)) / lost
    total = line_sums(account, "total_ns")
    return total.get("unknown", 0) / sum(total.values()) if sum(total.values()) else None


def judge_account(s, documents, pid, result):
    accounts = [a for d in documents if d for a in accounts_of(d)]
    mine = next((a for a in accounts if a.get("pid") == pid), None)
    result["accounts"] = len(accounts)
    if not mine:
        return None
    top = top_entry(mine)
    result.update(found_by=mine.get("found_by"), steps=mine.get("steps"), slow_steps=mine.get("slow_steps"),
                  unknown=unknown_share(mine), top_line=top.get("line"), top_owner=top.get("owner"))
    result["line"] = (top.get("line") in s.lines.split() and
                      (not s.owners or top.get("owner") in s.owners.split()))
    return top


def judge(folder, marks=None):
    """The result line of one run, from the files in its folder."""
    meta, log = read_json(folder / "meta.json"), read_json(folder / "steps.json")
    s = scenarios.BY_NAME[meta["name"]]
    result = {"name": s.name, "round": meta["round"], "seed": meta["seed"], "healthy": s.is_healthy,
              "what": s.what, "start": s.start, "gpu": meta.get("gpu", ""), "torch": meta.get("torch", "")}
    if meta.get("problem"):
        return {**result, "rejected": meta["problem"]}
    result.update(effect(s, log, meta))
    document, steps = read_json(folder / "explain.json"), read_json(folder / "account.json")
    trace = (folder / "trace.txt").read_text(encoding="utf-8", errors="replace")
    result["overhead"] = next(iter(re.findall(r"^.*verhead.*$", trace, re.M)), "").strip()
    if document is None or not log:
        return {**result, "rejected": "no answer" if log else "no step log"}
    if not happened(s, result):
        return {**result, "rejected": "no effect"}
    found = incidents_of(document)
    first = found[0] if found else {}
    result.update(said=first.get("problem", "nothing"), severity=first.get("severity", ""),
                  summary=first.get("summary", ""), cause=first.get("root_cause", ""))
    top = judge_account(s, [document, steps], meta["pid"], result)
    loud = [i for i in found if is_loud(i)]
    if s.is_healthy:
        result.update(top1=not loud, false_alarms=[f"{i['severity']} {i['problem']}" for i in loud])
        result.pop("line", None)
        return result
    accepted = {p for ids, _ in s.accept for p in ids.split()}
    result.update(top1=bool(first) and is_loud(first) and is_accepted(s, first),
                  false_alarms=[f"{i['severity']} {i['problem']}" for i in loud if i["problem"] not in accepted])
    result.setdefault("line", False)
    if not s.lines:
        result.pop("line")
    if s.culprit:
        result["culprit"] = bool(re.search(s.culprit, json.dumps([first, top], ensure_ascii=False), re.I))
    if s.mark:
        result["place"] = judge_place(marks or Marks(), s.mark, [first, top])
    return result


def share(runs, key):
    values = [bool(r[key]) for r in runs if key in r]
    return f"{sum(values)} of {len(values)}" if values else "-"


def ratio(runs, key):
    values = [bool(r[key]) for r in runs if key in r]
    return sum(values) / len(values) if values else None


def median_text(values, form):
    return form.format(statistics.median(values)) if values else "-"


def unknowns(runs):
    """Of runs that lost time. One without an account knows nothing."""
    return [1.0 if r.get("unknown") is None else r["unknown"]
            for r in runs if not r["healthy"] and r.get("slower", 0) >= SLOWER]


def said_text(runs):
    return ", ".join(f"{k} {n}" if n > 1 else k for k, n in
                     collections.Counter(r["said"] for r in runs).most_common())


def scenario_row(name, runs):
    counted = [r for r in runs if "rejected" not in r]
    step = " → ".join(median_text([r[k] for r in counted if k in r], "{:.0f}") for k in ("step_ms", "slow_step_ms"))
    alarms = collections.Counter(a for r in counted for a in r["false_alarms"])
    cells = [name, runs[0]["what"], len(counted), len(runs) - len(counted) or "", step, share(counted, "top1"),
             share(counted, "line"), share(counted, "culprit"), share(counted, "place"),
             median_text(unknowns(counted), "{:.0%}"), said_text(counted),
             ", ".join(f"{k} ({n})" if n > 1 else k for k, n in alarms.items())]
    return "| " + " | ".join(map(str, cells)) + " |"


def budget_lines(counted):
    faulty = [r for r in counted if not r["healthy"]]
    healthy = [r for r in counted if r["healthy"]]
    alarms = sum(len(r["false_alarms"]) for r in healthy)
    unknown = statistics.median(unknowns(faulty)) if unknowns(faulty) else None
    rows = [("fault named first", share(faulty, "top1"), "at least 90 %", ratio(faulty, "top1"), BUDGETS["top1"]),
            ("line of the step account", share(faulty, "line"), "at least 90 %", ratio(faulty, "line"),
             BUDGETS["line"]),
            ("user's own function or line", share(faulty, "place"), "at least 90 %", ratio(faulty, "place"),
             BUDGETS["place"])]
    out = ["| figure | measured | budget | |", "|-|-|-|-|"]
    for what, said, limit, value, least in rows:
        met = "" if value is None else "met" if value >= least else "**missed**"
        out.append(f"| {what} | {said} | {limit} | {met} |")
    met = "" if unknown is None else "met" if unknown <= BUDGETS["unknown"] else "**missed**"
    out.append("| lost time that is not known, median | "
               f"{median_text(unknowns(faulty), '{:.0%}')} | at most 15 % | {met} |")
    out.append(f"| alarms of MEDIUM or above with nothing wrong | {alarms} in {len(healthy)} runs | none | "
               f"{'met' if not alarms else '**missed**'} |")
    return out


def is_right(result):
    """Named first, or without an alarm where nothing is wrong."""
    return not result["false_alarms"] if result["healthy"] else bool(result.get("top1"))


def first_line(counted):
    """Of recordings explained again: how many were right when they were made, round by round."""
    rounds = collections.defaultdict(list)
    for r in counted:
        if "first" in r:
            rounds[r["round"]].append(r["first"])
    if not rounds:
        seeds = ", ".join(str(s) for s in sorted({r["seed"] for r in counted}))
        return [f"Verdicts as they were given on the spot, with seeds that had not been played before ({seeds}).", ""]
    said = ", ".join(f"{sum(v)} of {len(v)} in round {k}" for k, v in sorted(rounds.items()))
    return ["These are recordings of that machine, explained by the build that this page comes with. When they were"
            f" made, with the builds of that day, {said} were right, and the engine was mended by what the others"
            " showed: the table says that it tells these faults apart, not how it does on faults it has never seen.",
            ""]


def rounds_line(counted):
    """The engine is mended between rounds: what the later ones say counts for the build of today."""
    rounds = collections.defaultdict(list)
    for r in counted:
        rounds[r["round"]].append(r)
    if len(rounds) < 2:
        return []
    said = []
    for number, runs in sorted(rounds.items()):
        faulty, healthy = ([r for r in runs if r["healthy"] == h] for h in (False, True))
        said.append(f"{number}: {share(faulty, 'top1')}, {sum(len(r['false_alarms']) for r in healthy)} in "
                    f"{len(healthy)}")
    return ["Round by round, each with the build of its day: faults named first, and alarms in runs without a fault: "
            + "; ".join(said) + ".", ""]


def again_line(again):
    """Of the same recordings, explained by a later build."""
    counted = [r for r in again if "rejected" not in r]
    faulty, healthy = ([r for r in counted if r["healthy"] == h] for h in (False, True))
    if not counted:
        return []
    return [f"The same recordings, explained by the build of this page: named first {share(faulty, 'top1')}, account"
            f" line {share(faulty, 'line')}, user's line {share(faulty, 'place')},"
            f" {sum(len(r['false_alarms']) for r in healthy)} alarms in {len(healthy)} runs without a fault. The"
            " engine was mended by what they showed, so that says only that it tells these runs apart.", ""]


def report(results, again=()):
    """Markdown of many runs: a section of docs/accuracy-rounds.md."""
    counted = [r for r in results if "rejected" not in r]
    machine = next((r for r in results if r.get("gpu")), {})
    rounds = sorted({(r["round"], r["seed"]) for r in results})
    out = ["## On a real GPU", "",
           f"PyTorch {machine.get('torch', '?')} on {machine.get('gpu', '?')}: a small transformer with DataLoader,"
           f" AdamW and bf16, about 4.5 s as usual and 5.5 s with the fault, `ingero trace` with its defaults, then"
           f" `ingero explain`. {len(rounds)} rounds with models of different sizes, {len(results)} runs, of which"
           f" {len(results) - len(counted)} are not counted: the fault did nothing (steps less than 20 % slower), or"
           " the machine could not do it. From round 12 on there are programs of other kinds, too (tests/gpu/job_*.py): "
           "decoding, pipes, tools, asyncio. Written by `tests/gpu/accuracy.py --report`.", "",
           *first_line(counted), *budget_lines(counted), "", *rounds_line(counted), *again_line(again)]
    head = ("| fault | what | runs | not counted | step, ms | named first | account line | culprit | user's line |"
            " not known | said | other alarms |")
    groups = collections.defaultdict(list)
    for r in results:
        groups[r["name"]].append(r)
    for title, healthy in (("Faults", False), ("Nothing to blame", True)):
        out += [f"### {title}", "", head, "|" + "-|" * 12]
        out += [scenario_row(name, runs) for name, runs in groups.items() if runs[0]["healthy"] == healthy]
        out.append("")
    rejected = [f"- {r['name']}, round {r['round']}: {r['rejected'].strip().splitlines()[-1]}" +
                (f" ({r['slower']:.2f} times the step)" if "slower" in r else "") for r in results if "rejected" in r]
    if rejected:
        out += ["Not counted:", "", *rejected, ""]
    return "\n".join(out)


def put_into_page(page, section):
    """docs/accuracy-rounds.md with @section instead of the one that is there."""
    begin = page.index("## On a real GPU")
    return f"{page[:begin]}{section}\n{page[page.index(chr(10) + '## ', begin) + 1:]}"
