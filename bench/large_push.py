#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/large_push.py [fleet|echo|all] - how long small pushes wait while a large one is taken.

Small ones go one after the other over one connection; meanwhile another one sends 8 MiB of JSON in gzip, three times.
Printed: how many small ones were answered meanwhile, the median and the longest of their times, and how long the large
one took. Run it with `chrt -f 1` on a busy machine: a small push waits for the CPU as well."""
import gzip
import http.client
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD", SOURCE / "build")).resolve()
NODES = 3900
POINTS = 18


def request(nodes, time_ns):
    point = {"timeUnixNano": str(time_ns), "asDouble": 0.9}
    return json.dumps({"resourceMetrics": [
        {"resource": {"attributes": [{"key": k, "value": {"stringValue": v}} for k, v in
                                     (("ingero.cluster.id", "bench"), ("ingero.node.id", name))]},
         "scopeMetrics": [{"scope": {"name": "bench"},
                           "metrics": [{"name": f"bench.signal.number.{i}", "gauge": {"dataPoints": [point]}}
                                       for i in range(POINTS)]}]} for name in nodes]}).encode()


def push(connection, body, packed=False):
    headers = {"content-type": "application/json"}
    if packed:
        headers["content-encoding"] = "gzip"
    connection.request("POST", "/v1/metrics", body, headers)
    reply = connection.getresponse()
    text = reply.read()
    assert reply.status == 200, (reply.status, text)


def small_ones(port, stop, took):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    while not stop.is_set():
        body = request(["small"], time.time_ns())
        begin = time.monotonic()
        push(connection, body)
        took.append((begin, time.monotonic() - begin))


def start(what, folder):
    """The service and its port for HTTP."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    flags = {"fleet": ["--grpc-addr", "", "--api-addr", "127.0.0.1:0"],
             "echo": ["--otlp-addr", "", "--mcp-addr", "127.0.0.1:0", "--db-path", folder],
             "all": ["--grpc-addr", "", "--api-addr", "127.0.0.1:0", "--db-path", folder]}[what]
    flags += ["--http-addr", f"127.0.0.1:{port}"] + ([] if what == "fleet" else ["--insecure-no-tls", "--no-token"])
    service = subprocess.Popen([str(BUILD / "ingero-cluster"), what, *flags], stdout=subprocess.DEVNULL)
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return service, port
        except OSError:
            assert service.poll() is None, "it has ended"
            time.sleep(0.05)
    raise SystemExit("the service does not listen")


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else "echo"
    with tempfile.TemporaryDirectory() as folder:
        service, port = start(what, folder)
        stop, took = threading.Event(), []
        thread = threading.Thread(target=small_ones, args=(port, stop, took))
        try:
            thread.start()
            time.sleep(0.5)
            for i in range(3):
                body = request([f"n{k}" for k in range(NODES)], time.time_ns() + i)
                packed = gzip.compress(body)
                connection = http.client.HTTPConnection("127.0.0.1", port)
                begin = time.monotonic()
                push(connection, packed, True)
                end = time.monotonic()
                time.sleep(0.3)
                beside = [t for at, t in took if at < end and at + t > begin]
                print(f"{what}: {len(body) >> 20} MiB in {end - begin:.2f} s; {len(beside)} small ones meanwhile, "
                      f"median {1e3 * statistics.median(beside):.1f} ms, longest {1e3 * max(beside):.1f} ms", flush=True)
        finally:
            stop.set()
            thread.join()
            service.terminate()
            service.wait()


if __name__ == "__main__":
    main()
