#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/echo_reads.py [SECONDS] [WRITERS] - how long questions to `ingero-cluster echo` take while many write.

`ingero-cluster stress` sends as fast as it is taken; meanwhile two clients ask tools, each 0.1 s after the answer, and
one asks SQL over all rows, each 0.5 s. Printed: from the request to the last byte, median, p99 and longest; of SQL also, as the
service logs it, what went before the statement began (the copy of rows that are not sealed) and how long its process took."""
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
CLUSTER = pathlib.Path(os.environ.get("BUILD", SOURCE / "build")).resolve() / "ingero-cluster"
TOOLS = ("summary", "event_history", "find_stragglers", "anomalies", "find_outlier_nodes")


def ask(port, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    begin = time.monotonic()
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    assert reply.status == 200, (reply.status, text)
    return time.monotonic() - begin


def asking(port, until, pause, paths, took):
    for i in range(1 << 30):
        if time.monotonic() > until:
            return
        path, body = paths[i % len(paths)]
        took.append(ask(port, path, body))
        time.sleep(pause)


def main(seconds, writers):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        addresses = [f"--{name}-addr=127.0.0.1:0" for name in ("grpc", "http", "api")]
        log = open(f"{folder}/log", "w+")
        echo = subprocess.Popen([CLUSTER, "--debug", "echo", "--db-path", f"{folder}/store", "--insecure-no-tls", "--no-token", *addresses],
                                stdout=subprocess.PIPE, stderr=log, text=True)
        said = ""
        while "Token:" not in said:
            said += echo.stdout.readline()
        http_port, api = (int(re.search(p, said)[1]) for p in (r"HTTP: http://127.0.0.1:(\d+)", r"API: http://127.0.0.1:(\d+)"))
        stress = subprocess.Popen([CLUSTER, "stress", "--endpoint", f"http://127.0.0.1:{http_port}", "--events", "1000000000",
                                   "--nodes", str(writers), "--writers", str(writers), "--no-check", "--no-tls"],
                                  stdout=subprocess.DEVNULL)
        tools = [(f"/api/v2/tools/fleet.cluster.{name}", {}) for name in TOOLS]
        sql = [("/api/v2/sql", {"sql": "SELECT count(*), max(ts_ns) FROM events"})]
        took = {"tools": [], "SQL": []}
        until = time.monotonic() + seconds
        threads = [threading.Thread(target=asking, args=(api, until, *a)) for a in
                   ((0.1, tools, took["tools"]), (0.1, tools, took["tools"]), (0.5, sql, took["SQL"]))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        stress.kill()
        stress.wait()
        echo.terminate()
        echo.wait()
        log.seek(0)
        parts = [tuple(map(int, m)) for m in re.findall(r"SQL: (\d+) ms for a copy of (\d+) unsealed rows, (\d+) ms to answer from (\d+) files", log.read())]
    took["SQL, before it began"] = [p[0] / 1e3 for p in parts]
    took["SQL, then"] = [p[2] / 1e3 for p in parts]
    print(f"unsealed rows: median {sorted(p[1] for p in parts)[len(parts) // 2]:,}, most {max(p[1] for p in parts):,}; "
          f"files: most {max(p[3] for p in parts)}")
    for name, times in took.items():
        times.sort()
        print(f"{name}: {len(times)} answers, median {times[len(times) // 2] * 1e3:.0f} ms, p99 "
              f"{times[int(len(times) * 0.99)] * 1e3:.0f} ms, longest {times[-1] * 1e3:.0f} ms")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 25, int(sys.argv[2]) if len(sys.argv) > 2 else 64)
