# SPDX-License-Identifier: Apache-2.0
"""prometheus.py - a real Prometheus and promtool as tests run them, and what rules and dashboards ask for."""
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from rig import BUILD, check, equal, scratch, start

TOOLS = BUILD / "prometheus/usr/bin"
SERVER, PROMTOOL = (shutil.which(n) or (str(TOOLS / n) if (TOOLS / n).exists() else None) for n in ("prometheus", "promtool"))
OWN = re.compile(r"(?<![\w:])(?:ingero|gpu|system)_\w+(?![\w:])")  # what stands between colons is recorded by a rule
LABELS = {"gpu_uuid"}  # in by (…) and on (…)
FIRING = 'count(ALERTS{alertname="%s",alertstate="firing"}) or vector(0)'


class Prometheus:
    def __init__(self, rules, *targets):
        config, where = scratch("prometheus.yml"), scratch("rules.yml")
        pathlib.Path(where).write_text(rules)
        pathlib.Path(config).write_text(
            "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"
            f"rule_files: ['{where}']\nscrape_configs:\n  - job_name: cluster\n"
            f"    static_configs: [{{targets: {list(targets)}}}]\n")
        self.port = 20000 + os.getpid() % 12000  # below those that connections get
        self.log = scratch("prometheus.log")
        out = open(self.log, "w")
        self.process = start([SERVER, f"--config.file={config}", f"--storage.tsdb.path={scratch('tsdb')}",
                              f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"],
                             stdout=out, stderr=out, cwd=scratch(""))

    def ask(self, path, **query):
        """.data of the answer; None where there is none, as while it starts (503). An expression that cannot be
        evaluated is a ValueError."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?" + urllib.parse.urlencode(query), timeout=5) as r:
                return json.load(r)["data"]
        except urllib.error.HTTPError as e:
            if e.code in (400, 422):
                raise ValueError(e.read().decode()) from e
            return None
        except OSError:
            return None

    def rows(self, expression):
        return (self.ask("query", query=expression) or {"result": []})["result"]

    def rules(self):
        return [r for g in (self.ask("rules") or {"groups": []})["groups"] for r in g["rules"]]


def panel_expressions(board):
    """(title, expression) of each of the dashboard's questions, its variables filled in."""
    for panel in board["panels"]:
        for t in panel["targets"]:
            expression = t["expr"].replace("$__rate_interval", "1m").replace("[1d:1m]", "[5m:1s]")  # a test is short
            yield panel["title"], re.sub(r"\$(cluster|instance)\b", ".*", expression)


def names_in(text):
    """Metrics, histograms by their name."""
    return {re.sub(r"_(bucket|sum)$", "", n) for n in OWN.findall(text)} - LABELS


def asked_by_board(board):
    variables = " ".join(v["query"]["query"] for v in board["templating"]["list"] if v["type"] == "query")
    return names_in(" ".join(e for _, e in panel_expressions(board)) + " " + variables)


def asked_by_rules(rules):
    """Without comments, names of what is recorded, and words for people."""
    left_out = ("#", "- record:", "summary:", "description:")
    return names_in("\n".join(line for line in rules.splitlines() if not line.lstrip().startswith(left_out)))


def check_rules(path):
    r = subprocess.run([PROMTOOL, "check", "rules", path], text=True, capture_output=True)
    check("promtool finds nothing wrong with the rules", r.returncode == 0, r.stdout + r.stderr)


def try_alerts(path, alerts):
    """alert: (series, when there is none yet, when there is one). Each on made series: how many fire a little before
    its time, and at it. A rule that is always or never true fails one of the two."""
    for alert, (series, before, at) in alerts.items():
        trial = scratch(f"{alert}.json")
        rows = [{"expr": FIRING % alert, "eval_time": t, "exp_samples": [{"labels": "{}", "value": v}]}
                for t, v in ((before, 0), (at, 1))]
        pathlib.Path(trial).write_text(json.dumps({  # JSON is YAML
            "rule_files": [str(path)], "evaluation_interval": "30s",
            "tests": [{"interval": "1m", "input_series": [{"series": k, "values": v} for k, v in series.items()],
                       "promql_expr_test": rows}]}))
        r = subprocess.run([PROMTOOL, "test", "rules", trial], text=True, capture_output=True)
        check(f"{alert}: fires in time, and not before", r.returncode == 0, r.stdout + r.stderr)


def expand(series, labels, domains):
    """@series ({name{label="value"}: values}) with every combination of what the labels of each metric can be, on two
    instances. @labels: metric → names of its labels; @domains: label → values; two made ones where there is no row."""
    made = {}
    for text, values in series.items():
        metric, given = re.fullmatch(r"(\w+)\{(.*)\}", text).groups()
        keys = ["instance", *labels[metric]]
        for row in itertools.product(*(domains.get(k, (f"{k}-1", f"{k}-2")) for k in keys)):
            made.setdefault(metric + "{" + ",".join(f'{k}="{v}"' for k, v in zip(keys, row)) + "}", values)
    return made


def try_labels(path, alerts, labels, domains):
    """[(alert, what promtool says)] of alerts that are in error, or do not fire, where series of all
    combinations of labels are there at once. Whichever two series a rule could take for one are among them."""
    faults = []
    for alert, (series, _, at) in alerts.items():
        trial = scratch(f"{alert}-labels.json")
        pathlib.Path(trial).write_text(json.dumps({
            "rule_files": [str(path)], "evaluation_interval": "30s",
            "tests": [{"interval": "1m", "input_series": [{"series": k, "values": v} for k, v in
                                                          expand(series, labels, domains).items()],
                       "promql_expr_test": [{"expr": f"({FIRING % alert}) > bool 0", "eval_time": at, "exp_samples": [{"labels": "{}", "value": 1}]}]}]}))
        r = subprocess.run([PROMTOOL, "test", "rules", trial], text=True, capture_output=True)
        if r.returncode:
            faults.append((alert, (r.stdout + r.stderr)[:2000]))
    return faults


def ask_all(prometheus, expressions):
    """(expressions without rows, [(title, fault)])"""
    empty, wrong = set(), []
    for title, expression in expressions:
        try:
            if not prometheus.rows(expression):
                empty.add(expression)
        except ValueError as e:
            wrong.append((title, str(e)))
    return empty, wrong


def check_layout(board):
    name, panels = board["title"], board["panels"]
    places = [(p["gridPos"]["x"], p["gridPos"]["y"], p["gridPos"]["w"], p["gridPos"]["h"]) for p in panels]
    cells = [(x + i, y + j) for x, y, w, h in places for i in range(w) for j in range(h)]
    check(f"{name}: no panel lies on another", len(cells) == len(set(cells)) and max(x for x, _ in cells) < 24, places)
    equal(f"{name}: panels have an id each", len({p["id"] for p in panels}), len(panels))
    known = {"$" + v["name"] for v in board["templating"]["list"]} | {"$__rate_interval"}
    used = set(re.findall(r"\$\w+", " ".join(t["expr"] for p in panels for t in p["targets"])))
    equal(f"{name}: no variable that nobody fills", used - known, set())
