# SPDX-License-Identifier: Apache-2.0
"""fleet.py - `ingero-cluster fleet` as tests run it, and what agents push to it, written by hand: OTLP as JSON,
batches of calls in the packed form that src/push/push_calls.c describes."""
import base64
import http.client
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import time
from rig import BUILD, scratch, start, wait_until

CLUSTER = BUILD / "ingero-cluster"
ALL_REDUCE = 3  # src/wire/ids.h


def cluster(*args, timeout=60, **kw):
    """A finished `ingero-cluster` command."""
    return subprocess.run([CLUSTER, *map(str, args)], text=True, capture_output=True, timeout=timeout, **kw)


class Fleet:
    count = 0

    def __init__(self, *args, token=None, env=None):
        Fleet.count += 1
        self.token = token
        home = pathlib.Path(scratch(f"home{Fleet.count}"))
        home.mkdir()
        self.log, self.out = scratch(f"fleet{Fleet.count}.log"), scratch(f"fleet{Fleet.count}.out")
        addresses = [f"--{name}-addr=127.0.0.1:0" for name in ("grpc", "http", "api")]
        self.process = start([CLUSTER, "fleet", *addresses, *args], stdout=open(self.out, "w"), stderr=open(self.log, "w"),
                             env=dict(os.environ, HOME=str(home), **(env or {})))
        said = wait_until(lambda: "Token:" in self.said() and self.said())
        assert said, pathlib.Path(self.log).read_text()
        self.grpc = int(re.search(r"OTLP over gRPC: 127.0.0.1:(\d+)", said)[1])
        self.http = int(re.search(r"OTLP over HTTP: https?://127.0.0.1:(\d+)", said)[1])
        self.api = int(re.search(r"Page and API: https?://127.0.0.1:(\d+)", said)[1])
        self.url = f"http://127.0.0.1:{self.api}"

    def said(self):
        return pathlib.Path(self.out).read_text()

    def logged(self):
        return pathlib.Path(self.log).read_text()

    def request(self, port, method, path, body=None, token=None, fields=None):
        """(status, fields in lower case, body)"""
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        head = dict(fields or {})
        if token or self.token:
            head["Authorization"] = f"Bearer {token or self.token}"
        if body is not None:
            head["Content-Type"] = "application/json"
        c.request(method, path, body, head)
        r = c.getresponse()
        text = r.read()
        c.close()
        return r.status, {k.lower(): v for k, v in r.getheaders()}, text

    def get(self, path, **kw):
        return self.request(self.api, "GET", path, **kw)

    def ask(self, question, **params):
        query = "&".join(f"{k}={v}" for k, v in params.items())
        status, _, body = self.get(f"/api/v1/{question}" + (f"?{query}" if query else ""))
        assert status == 200, (question, status, body)
        return json.loads(body)

    def push(self, request, path="/v1/metrics"):
        return self.request(self.http, "POST", path, json.dumps(request))

    def metrics(self):
        """{series: value} of /metrics."""
        status, _, body = self.get("/metrics")
        assert status == 200, body
        return {k: float(v) for k, v in (line.rsplit(" ", 1) for line in body.decode().splitlines() if not line.startswith("#"))}

    def stop(self, by=signal.SIGTERM):
        self.process.send_signal(by)
        return self.process.wait(timeout=20)


def _attributes(values):
    kind = {str: "stringValue", bool: "boolValue", float: "doubleValue"}
    return [{"key": k, "value": {kind.get(type(v), "intValue"): v if type(v) is not int else str(v)}} for k, v in values.items()]


def who(node, cluster_id="train", **more):
    return {"attributes": _attributes({"ingero.cluster.id": cluster_id, "ingero.node.id": node, "ingero.agent.boot": 1, **more})}


def health(node, score, at_ns=None, cluster_id="train", model="NVIDIA H100 80GB HBM3", **more):
    at = str(at_ns or time.time_ns())
    state = _attributes({"ingero.node.state": "active"})

    def gauge(name, value, attributes):
        return {"name": name, "gauge": {"dataPoints": [{"asDouble": value, "timeUnixNano": at, "attributes": attributes}]}}

    parts = ["throughput_ratio", "compute_efficiency", "memory_headroom", "cpu_availability"]
    metrics = [gauge("ingero.node.health_score", score, state)] + [gauge(f"ingero.node.{p}", score, state) for p in parts]
    metrics.append(gauge("ingero.node.info", 1.0, _attributes({"ingero.gpu_model": model, "ingero.gpu_count": 8})))
    return {"resourceMetrics": [{"resource": who(node, cluster_id, **more),
                                 "scopeMetrics": [{"scope": {"name": "ingero.health"}, "metrics": metrics}]}]}


def _log(node, scope, record, cluster_id, **more):
    return {"resourceLogs": [{"resource": who(node, cluster_id, **more), "scopeLogs": [{"scope": {"name": scope},
            "logRecords": [{"timeUnixNano": str(time.time_ns()), "eventName": scope, **record}]}]}]}


def report(node, pid, rank, cause, fix, cluster_id="train"):
    values = {"process.pid": pid, "ingero.world_rank": rank, "ingero.doing": "blocked", "ingero.step_ns": 280_000_000,
              "ingero.ordinary_step_ns": 200_000_000, "ingero.account_line": "disk", "ingero.account_line_ns": 80_000_000,
              "ingero.cause": cause, "ingero.fix": fix, "ingero.confidence": 0.9}
    return _log(node, "ingero.report", {"attributes": _attributes(values)}, cluster_id)


def _number(v):
    out = bytearray()
    v &= (1 << 64) - 1
    while v > 127:
        out.append(v & 127 | 128)
        v >>= 7
    return bytes(out + bytes([v]))


def _signed(v):
    return _number(v << 1 if v >= 0 else (-v << 1) - 1)


def pack(batch, sent_ns, calls, waited=False):
    """@calls: (comm, nranks, rank, pid, seq, enter_ns, leave_ns, bytes) of collectives, as src/push/push_calls.c
    packs them; each communicator of a rank is a line of its own. @waited: the host waited for their ends."""
    out = bytearray(b"ICL\x01" + _number(batch) + _signed(sent_ns) + _number(0) + _number(len(calls)))
    lines, seqs, before = {}, {}, 0
    for comm, nranks, rank, pid, seq, enter, leave, size in calls:
        key = (comm, rank, pid, size)
        new = key not in lines
        line = lines.setdefault(key, len(lines))
        out += _number(line)
        if new:
            owner = (comm, rank, pid)
            fresh = owner not in seqs
            if fresh:
                seqs[owner] = [len(seqs), 0]
            out += _number(seqs[owner][0])
            if fresh:
                out += struct.pack("<Q", comm) + _signed(nranks) + _signed(rank) + _signed(rank) + _number(pid)
            out += _number(ALL_REDUCE) + _number(7) + _signed(-1) + _number(size)
        place = seqs[(comm, rank, pid)]
        out += _signed(seq - place[1]) + _signed(enter - before) + _signed(leave - enter) + _number(leave - enter + 1 if waited else 0)
        place[1], before = seq, enter
    return bytes(out)


def calls(node, batch, rows, cluster_id="train", waited=False):
    """A request with one batch of calls."""
    body = base64.b64encode(pack(batch, time.time_ns(), rows, waited)).decode()
    return _log(node, "ingero.collectives", {"body": {"bytesValue": body}}, cluster_id)
