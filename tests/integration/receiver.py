# SPDX-License-Identifier: Apache-2.0
"""receiver.py - the receiver of OTLP as tests run it (tests/programs/receiver_fixture.c), and requests to it."""
import http.client
import json
import os
import pathlib
import signal
import struct
from rig import BUILD, scratch, start, wait_until

TOKEN = "0123456789abcdef-receiver"


class Pushed:
    """Whoever listens for OTLP over HTTP on the port .http."""

    def post(self, body, path="/v1/metrics", token=TOKEN, kind="application/json", **fields):
        """(status, fields in lower case, body)"""
        c = http.client.HTTPConnection("127.0.0.1", self.http, timeout=20)
        head = {"Content-Type": kind, **({"Authorization": f"Bearer {token}"} if token else {})}
        head.update({k.replace("_", "-"): v for k, v in fields.items()})
        try:
            c.request("POST", path, body, head)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has been refused before its end; the reply is there
        r = c.getresponse()
        text = r.read()
        c.close()
        return r.status, {k.lower(): v for k, v in r.getheaders()}, text


class Receiver(Pushed):
    count = 0

    def __init__(self, *args, token=TOKEN):
        Receiver.count += 1
        self.path = scratch(f"receiver{Receiver.count}")
        self.out = open(self.path, "w")
        self.process = start([BUILD / "tests/receiver-fixture", "127.0.0.1:0", "127.0.0.1:0", *args], stdout=self.out,
                             env=dict(os.environ, **({"RECEIVER_TOKEN": token} if token else {})))
        first = wait_until(lambda: self.lines()[:1])
        assert first, self.process.stderr.read() if self.process.poll() is not None else "no receiver"
        self.grpc, self.http = (int(first[0][k].rsplit(":", 1)[1]) for k in ("grpc", "http"))
        self.seen = 1

    def lines(self):
        return [json.loads(l) for l in pathlib.Path(self.path).read_text().splitlines(True) if l.endswith("\n")]

    def news(self):
        """What it was given since the last time."""
        rows = self.lines()[self.seen:]
        self.seen += len(rows)
        return rows

    def figures(self):
        before = sum(r["kind"] == "figures" for r in self.lines())
        self.process.send_signal(signal.SIGUSR1)
        rows = wait_until(lambda: [r for r in self.lines() if r["kind"] == "figures"][before:])
        return rows[0]

    def peak_bytes(self):
        """The most memory that it ever had."""
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024

    def stop(self):
        self.process.terminate()
        out = self.process.communicate(timeout=20)
        return self.process.returncode, out[1]


def health(node="n1", score=0.75, cluster="c1", time_ns=1700000000 * 10**9, boot=None):
    """One node's health as JSON."""
    attributes = [_text("ingero.cluster.id", cluster), _text("ingero.node.id", node)]
    if boot:
        attributes.append({"key": "ingero.agent.boot", "value": {"intValue": str(boot)}})
    point = {"asDouble": score, "timeUnixNano": str(time_ns), "attributes": [_text("ingero.node.state", "active")]}
    return json.dumps({"resourceMetrics": [{
        "resource": {"attributes": attributes},
        "scopeMetrics": [{"scope": {"name": "ingero.health"},
                          "metrics": [{"name": "ingero.node.health_score", "gauge": {"dataPoints": [point]}}]}]}]})


def _text(key, text):
    return {"key": key, "value": {"stringValue": text}}


def _field(number, data):
    if isinstance(data, str):
        data = data.encode()
    length, n = b"", len(data)
    while n > 127:
        length += bytes([n & 127 | 128])
        n >>= 7
    return bytes([number << 3 | 2]) + length + bytes([n]) + data


def _attribute(key, text):
    return _field(1, key) + _field(2, _field(1, text))


def health_protobuf(node="n1", score=0.75, cluster="c1"):
    """The same as protobuf, by the field numbers of OTLP."""
    resource = b"".join(_field(1, _attribute(k, v)) for k, v in (("ingero.cluster.id", cluster), ("ingero.node.id", node)))
    point = (_field(7, _attribute("ingero.node.state", "active")) + b"\x19" + struct.pack("<Q", 1700000000 * 10**9)
             + b"\x21" + struct.pack("<d", score))
    metric = _field(1, "ingero.node.health_score") + _field(5, _field(1, point))
    return _field(1, _field(1, resource) + _field(2, _field(2, metric)))
