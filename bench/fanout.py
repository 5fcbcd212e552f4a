#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/fanout.py - one question to 4 and to 300 nodes over mutual TLS, and to 4
with a dead one beside them, against the budgets: 0.1 s, 1 s, and the timeout of the dead one.

The nodes are stand-ins in one other process of this machine, so they take their share of its CPUs. Each
figure is the best and the median of several runs of the program, from its start to its end; the CPU time
is the program's own, which a busy machine changes less."""
import argparse
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SOURCE / "tests/integration"))
BUILD = pathlib.Path(os.environ.get("BUILD", SOURCE / "build")).resolve()
INGERO = str(BUILD / "ingero")
SQL = "SELECT source, count(*) AS cnt, avg(duration)/1000 AS avg_us FROM events GROUP BY source"
ROWS = {"columns": ["source", "cnt", "avg_us"], "rows": [[4, 11009, 5.2], [3, 847, 18400.0]], "truncated": False}


def serve(count, folder):
    """The other process: prints addresses, then lives until its input ends."""
    from standin import Authority, Fleet, Node
    ca = Authority(folder)
    ca.issue("client")
    context, fleet = ca.context(clients=True), Fleet()
    nodes = [Node(f"node-{i}", {"/api/v1/query": ROWS}, tls=context) for i in range(count)]
    fleet.add(*nodes)
    print(",".join(n.address for n in nodes), flush=True)
    sys.stdin.read()


def measure(name, nodes, folder, budget, runs=7, want=0, timeout="30s"):
    flags = ["--ca-cert", f"{folder}/test-ca.pem", "--client-cert", f"{folder}/test-ca-client.pem", "--client-key",
             f"{folder}/test-ca-client.key", "--timeout", timeout]
    took, before = [], resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(runs):
        begin = time.monotonic()
        p = subprocess.run([INGERO, "query", "--json", *flags, "--nodes", nodes, SQL], capture_output=True, text=True)
        took.append(time.monotonic() - begin)
        assert p.returncode == want, p.stderr
    middle, after = statistics.median(took), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / runs
    print(f"{name}: best {min(took):.3f} s, median {middle:.3f} s; budget {budget:.2f} s: "
          f"{middle / budget:.2f} of it; CPU {cpu:.3f} s")
    return middle


def dead():
    """An address where a connection is accepted by nobody."""
    import socket
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen(0)
    for _ in range(4):  # fills the queue, so that later handshakes stay without an answer
        c = socket.socket()
        c.setblocking(False)
        c.connect_ex(s.getsockname())
        KEEP.append(c)
    KEEP.append(s)
    return f"127.0.0.1:{s.getsockname()[1]}"


KEEP = []


def stand_ins(count, folder):
    p = subprocess.Popen([sys.executable, __file__, "--serve", str(count), folder], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
    return p, p.stdout.readline().strip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--serve", nargs=2, metavar=("COUNT", "FOLDER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(int(args.serve[0]), args.serve[1])
        return
    for count, budget in ((4, 0.1), (300, 1.0)):
        with tempfile.TemporaryDirectory() as folder:
            p, nodes = stand_ins(count, folder)
            try:
                alone = measure(f"{count} nodes, mTLS", nodes, folder, budget)
                if count == 4:
                    with_dead = measure("4 nodes and a dead one, --timeout 1s", f"{dead()},{nodes}", folder, 1.0, runs=3,
                                        want=2, timeout="1s")
                    print(f"the dead one costs {with_dead - 1.0:.3f} s beyond its timeout; the others took {alone:.3f} s")
            finally:
                p.stdin.close()
                p.wait()


main()
