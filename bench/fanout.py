#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/fanout.py - one question to 4 and to 300 nodes over mutual TLS, and to 4 with a dead one beside
them, against the budgets: 0.1 s, 1 s, and the timeout of the dead one.

The nodes are our own server on ports of one other process (fanout_nodes.c), which takes its share of this
machine's CPUs. Each figure is the best and the median of several runs of the program, from its start to
its end; the CPU time is the program's own, which a busy machine changes less."""
import os
import pathlib
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SOURCE / "tests/integration"))
from standin import Authority  # noqa: E402

BUILD = pathlib.Path(os.environ.get("BUILD", SOURCE / "build")).resolve()
SQL = "SELECT source, count(*) AS cnt, avg(duration)/1000 AS avg_us FROM events GROUP BY source"


def measure(name, nodes, flags, budget, runs=9, want=0):
    took, before = [], resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(runs):
        begin = time.monotonic()
        p = subprocess.run([str(BUILD / "ingero"), "query", "--json", *flags, "--nodes", nodes, SQL], capture_output=True,
                           text=True)
        took.append(time.monotonic() - begin)
        assert p.returncode == want, p.stderr
    middle, after = statistics.median(took), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / runs
    print(f"{name}: best {min(took):.3f} s, median {middle:.3f} s; budget {budget:.2f} s: "
          f"{middle / budget:.2f} of it; CPU {cpu:.3f} s", flush=True)
    return middle


def dead():
    """An address where handshakes stay without an answer: a queue that is full. (address, its sockets)"""
    sockets = [socket.socket()]
    sockets[0].bind(("127.0.0.1", 0))
    sockets[0].listen(0)
    for _ in range(4):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(sockets[0].getsockname())
        sockets.append(s)
    return f"127.0.0.1:{sockets[0].getsockname()[1]}", sockets


def main():
    with tempfile.TemporaryDirectory() as folder:
        ca = Authority(folder)
        server, client = ca.issue("server"), ca.issue("client")
        flags = ["--ca-cert", ca.cert, "--client-cert", client[0], "--client-key", client[1]]
        for count, budget in ((4, 0.1), (300, 1.0)):
            p = subprocess.Popen([str(BUILD / "bench/fanout_nodes"), str(count), *server, ca.cert], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
            nodes = p.stdout.readline().strip()
            alone = measure(f"{count} nodes, mTLS", nodes, [*flags, "--timeout", "30s"], budget)
            if count == 4:
                address, sockets = dead()
                both = measure("4 nodes and a dead one, --timeout 1s", f"{address},{nodes}", [*flags, "--timeout", "1s"], 1.0,
                               runs=3, want=2)
                print(f"the dead one costs {both - 1:.3f} s beyond its timeout; without it {alone:.3f} s", flush=True)
                for s in sockets:
                    s.close()
            p.stdin.close()
            p.wait()


main()
