#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The time line of a recording of many events, as the page asks for it: the first view, the time until it
shows every thread, and random zooms from all of it down to a microsecond, against their budgets.

    bench/timeline.py INGERO BENCH_EXPLAIN FILE [EVENTS [ZOOMS]]

FILE is made by bench_explain if it is not there. A zoom is timed twice: as a client sees it, and as CPU time
of the server, which a busy neighbour does not change."""
import json
import os
import random
import re
import subprocess
import sys
import time
import urllib.request

FIRST_S, ZOOM_MS = 1.0, 100.0
WIDTH = 1500


def cpu_s(pid):
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def quantile(values, q):
    values = sorted(values)
    return values[min(int(len(values) * q), len(values) - 1)]


class Server:
    def __init__(self, ingero, path):
        self.process = subprocess.Popen([ingero, "dashboard", "--db", path, "--addr", "127.0.0.1:0", "--no-tls", "--no-token"],
                                        stdout=subprocess.PIPE, text=True)
        self.address = re.search(r"http://[^/]+", self.process.stdout.readline())[0]

    def ask(self, query):
        began = time.monotonic()
        data = urllib.request.urlopen(f"{self.address}/api/v1/timeline?width={WIDTH}{query}").read()
        return time.monotonic() - began, len(data), json.loads(data)


def views(answer, count):
    """Random times of all lengths, each as likely as any other by its logarithm."""
    origin, end = int(answer["origin"]), answer["end"]
    draw = random.Random(1)
    for _ in range(count):
        span = max(int(end / 2 ** draw.uniform(0, 29)), 1000)
        begin = draw.randint(0, max(end - span, 1))
        yield f"&from={origin + begin}&to={origin + begin + span}"


def main():
    ingero, maker, path = sys.argv[1:4]
    events = int(sys.argv[4]) if len(sys.argv) > 4 else 10_000_000
    zooms = int(sys.argv[5]) if len(sys.argv) > 5 else 300
    if not os.path.exists(path):
        subprocess.run([maker, ingero, path, str(events), "1"], check=True, stdout=subprocess.DEVNULL)
    server = Server(ingero, path)
    try:
        began, cpu = time.monotonic(), cpu_s(server.process.pid)
        first, _, answer = server.ask("")
        while not answer["ready"]:
            time.sleep(0.2)
            answer = server.ask("")[2]
        ready, ready_cpu = time.monotonic() - began, cpu_s(server.process.pid) - cpu
        while not answer["steps_known"]:  # what follows is timed without it
            time.sleep(0.5)
            answer = server.ask("")[2]
        walls, cpus, most = [], [], 0
        for query in views(answer, zooms):
            cpu = cpu_s(server.process.pid)
            wall, size, _ = server.ask(query)
            walls.append(wall * 1000)
            cpus.append((cpu_s(server.process.pid) - cpu) * 1000)
            most = max(most, size)
        memory = int(re.search(r"VmHWM:\s+(\d+)", open(f"/proc/{server.process.pid}/status").read())[1]) // 1024
    finally:
        server.process.terminate()
        server.process.wait()
    print(f"timeline_first_s {first:.2f} (budget {FIRST_S:.0f})")
    print(f"timeline_ready_s {ready:.2f} ({ready_cpu:.2f} s of CPU)")
    print(f"timeline_zoom_p50_ms {quantile(walls, 0.5):.1f}")
    print(f"timeline_zoom_p99_ms {quantile(walls, 0.99):.1f} (budget {ZOOM_MS:.0f}; {zooms} zooms)")
    print(f"timeline_zoom_cpu_p99_ms {quantile(cpus, 0.99):.1f}")
    print(f"timeline_answer_kb {most // 1024} (the largest, before gzip)")
    print(f"timeline_mb {memory} (with the account of steps)")
    return first > FIRST_S or quantile(walls, 0.99) > ZOOM_MS


sys.exit(main())
