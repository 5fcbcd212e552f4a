# SPDX-License-Identifier: Apache-2.0
"""metrics.py - what the tests of metrics share: a strict reader of Prometheus's text format, a trace
that is scraped, and the workload of known calls."""
import json
import os
import re
import sys
import time
import urllib.request
import rig

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\S+)$")
ONE = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')


class Scrape:
    """.samples: (name, frozenset of labels) -> float; .types: family -> type; .faults: what is wrong."""

    def __init__(self, body):
        self.samples, self.types, self.helps, self.faults = {}, {}, {}, []
        self.text = body.decode()  # strict: it must be UTF-8
        family = None
        for line in self.text.split("\n")[:-1]:
            if line.startswith("# HELP "):
                family = line.split(" ")[2]
                if family in self.helps:
                    self.faults.append(f"HELP of {family} twice")
                self.helps[family] = line.split(" ", 3)[3]
            elif line.startswith("# TYPE "):
                if line.split(" ")[2] != family or family in self.types:
                    self.faults.append(f"TYPE out of order: {line}")
                self.types[family] = line.split(" ")[3]
            else:
                self.sample(family, line)
        if not self.text.endswith("\n"):
            self.faults.append("no newline at the end")

    def sample(self, family, line):
        found = SAMPLE.match(line)
        if not found:
            self.faults.append(f"not a sample: {line!r}")
            return
        name, labels, value = found.groups()
        suffixes = ("_bucket", "_sum", "_count") if self.types.get(family) == "histogram" else ("",)
        if name not in [family + s for s in suffixes]:
            self.faults.append(f"{name} under {family}")
        pairs = {k: v.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\") if "\\\\" not in v
                 else re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), v)
                 for k, v in ONE.findall(labels or "")}
        key = (name, frozenset(pairs.items()))
        if key in self.samples:
            self.faults.append(f"twice: {line}")
        self.samples[key] = float(value)

    def get(self, name, **labels):
        return self.samples.get((name, frozenset(labels.items())))

    def all(self, name):
        """labels as dict -> value, as a list of pairs."""
        return [(dict(labels), v) for (n, labels), v in self.samples.items() if n == name]

    def sums(self, name, *by):
        out = {}
        for labels, value in self.all(name):
            key = tuple(labels[b] for b in by)
            out[key[0] if len(key) == 1 else key] = out.get(key[0] if len(key) == 1 else key, 0) + value
        return out


def fetch(address, **headers):
    request = urllib.request.Request(f"http://{address}/metrics", headers=headers)
    with urllib.request.urlopen(request, timeout=10) as reply:
        return reply.headers, reply.read()


def address_of(trace):
    """Where the trace listens, by its own words."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        found = re.search(r"Metrics: http://(\S+)/metrics", trace.output())
        if found:
            return found[1]
        time.sleep(0.01)
    raise RuntimeError("no address: " + trace.output())


def until(what, seconds=15):
    """The first true value of what(), else the last."""
    end = time.monotonic() + seconds
    while True:
        value = what()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.1)


class Copies:
    """tests/programs/copies.py, held back until go()."""

    def __init__(self):
        self.gate = rig.scratch("copies")
        self.tally = rig.scratch("copies-tally")
        self.process = rig.start([sys.executable, rig.SOURCE / "tests/programs/copies.py", rig.SIM, self.gate],
                                 env=dict(os.environ, SIM_TALLY=self.tally + ".%p"))
        self.pid = self.process.pid
        rig.wait_for(self.gate + ".ready")

    def go(self):
        open(self.gate, "w").close()
        rig.wait_for(self.gate + ".done", 30)
        return json.loads(self.process.stdout.readline())

    def end(self):
        open(self.gate + ".end", "w").close()
        self.process.wait(10)
