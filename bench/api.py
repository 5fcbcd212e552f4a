#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""api.py - how long the API takes while a process makes 100,000 launches a second: `ingero trace` records
it, `ingero dashboard` serves the same file over HTTPS, and one client asks everything that the page asks,
round after round, over a connection that it keeps. Prints the 50th and 99th percentile of each endpoint
and of all, SQL in its own process included, and what the trace has lost.

  api.py INGERO SIM-CALLS [RATE [SECONDS]]"""
import http.client
import json
import os
import pathlib
import signal
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import time

BUDGET_MS = 50
WARMUP_S = 8  # a bucket of aggregates has been written
LIGHT = ["overview", "ops", "series", "chains?since=5m", "snapshots", "gpus", "graph-metrics", "losses", "overhead", "processes",
         "nodes", "sessions", "capabilities", "time"]
HEAVY = ["incidents", "collectives", "stacks", "flame", "graph-events"]
SQL = json.dumps({"sql": "SELECT op, sum(count), max(max_dur) FROM event_aggregates_5s GROUP BY op"})


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(p * len(values)))]


def wait_for(condition, what):
    end = time.monotonic() + 30
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"api.py: {what} did not come")
        time.sleep(0.02)


def main():
    ingero, calls = sys.argv[1:3]
    rate = sys.argv[3] if len(sys.argv) > 3 else "100000"
    seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 15
    if os.geteuid() != 0:
        print("skipped: loading BPF programs needs root")
        sys.exit(77)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ingero-bench-", dir="/var/tmp"))
    env = dict(os.environ, HOME=str(folder))
    env.pop("SUDO_USER", None)
    db, gate, children = folder / "rec.db", folder / "go", []

    def start(args, log):
        children.append(subprocess.Popen([str(a) for a in args], stdout=open(folder / log, "w"), stderr=subprocess.STDOUT, env=env))
        return children[-1]

    try:
        work = start([calls, "--rate", rate, "--duration", int(seconds + WARMUP_S + 3), "--wait-start", gate], "calls")
        wait_for(lambda: os.path.exists(str(gate) + ".ready"), "the workload")
        trace = start([ingero, "trace", "--pid", work.pid, "--db", db, "--overhead-budget", "0"], "trace")
        wait_for(lambda: "Recording to" in (folder / "trace").read_text(), "the trace")
        server = start([ingero, "dashboard", "--db", db, "--addr", "127.0.0.1:0"], "dashboard")
        wait_for(lambda: "Token:" in (folder / "dashboard").read_text(), "the dashboard")
        gate.touch()
        time.sleep(WARMUP_S)
        took = measure((folder / "dashboard").read_text(), folder / ".ingero/tls/cert.pem", seconds)
        work.wait(60)
        trace.send_signal(signal.SIGTERM)
        trace.wait(30)
        server.send_signal(signal.SIGTERM)
        report(took, db, rate)
    finally:
        for p in children:
            if p.poll() is None:
                p.kill()
                p.wait()
        subprocess.run(["rm", "-rf", str(folder)], check=False)


def measure(announcement, cert, seconds):
    host, port = announcement.split("https://")[1].split("/")[0].split(":")
    c = http.client.HTTPSConnection(host, int(port), context=ssl.create_default_context(cafile=str(cert)), timeout=60)
    took, end = {}, time.monotonic() + seconds

    def ask(name, method, path, body=None):
        began = time.monotonic()
        c.request(method, path, body=body)
        r = c.getresponse()
        data = r.read()
        took.setdefault(name, []).append((time.monotonic() - began) * 1000)
        if r.status != 200:
            sys.exit(f"api.py: {path}: {r.status} {data[:200]}")

    while time.monotonic() < end:
        for name in LIGHT + HEAVY:
            ask(name.split("?")[0], "GET", "/api/v1/" + name)
        ask("query", "POST", "/api/v1/query", SQL)
        time.sleep(0.05)
    return took


def report(took, db, rate):
    print(f"API while tracing {rate} calls/s, ms over HTTPS on one connection:")
    print(f"  {'endpoint':<16} {'n':>5} {'p50':>8} {'p99':>8} {'max':>8}")
    for name, ms in took.items():
        print(f"  {name:<16} {len(ms):>5} {percentile(ms, .5):>8.2f} {percentile(ms, .99):>8.2f} {max(ms):>8.2f}")
    every = [v for ms in took.values() for v in ms]
    p99 = percentile(every, .99)
    c = sqlite3.connect(f"file:{db}?mode=ro", uri=True)
    hits, stored, aggregated, lost = c.execute("SELECT sum(hits), sum(stored), sum(aggregated), sum(lost) FROM accounting").fetchone()
    reasons = c.execute("SELECT reason, sum(count) FROM losses WHERE count > 0 GROUP BY 1").fetchall()
    c.close()
    print(f"all: p50 {percentile(every, .5):.2f} ms, p99 {p99:.2f} ms of {len(every)} (budget {BUDGET_MS} ms: {p99 / BUDGET_MS:.2f})")
    print(f"the trace: {hits:,} hits, {stored:,} stored, {aggregated:,} aggregated, {lost:,} lost {dict(reasons) if lost else ''}")


main()
