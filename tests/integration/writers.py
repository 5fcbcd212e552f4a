# SPDX-License-Identifier: Apache-2.0
"""writers.py - threads that send known points to echo, and send what was not acknowledged again, byte for byte, as
exporters do. Who counts asks for a writer's first `acknowledged` requests."""
import http.client
import json
import threading
import time

from echo import TOKEN

HEAD = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
POINTS = 20  # of a request


def request_of(writer, number, points=POINTS, cluster="crash"):
    """@points points, each with an id of its own."""
    data = [{"timeUnixNano": str(1_700_000_000_000_000_000 + number * 1000 + i), "asInt": str(number),
             "attributes": [{"key": "event_id", "value": {"stringValue": f"{writer}-{number}-{i}"}},
                            {"key": "text", "value": {"stringValue": "x" * 200}}]} for i in range(points)]
    resource = [{"key": "node_id", "value": {"stringValue": f"node{writer}"}},
                {"key": "cluster_id", "value": {"stringValue": cluster}}]
    return json.dumps({"resourceMetrics": [{"resource": {"attributes": resource}, "scopeMetrics": [{"metrics": [
        {"name": "m", "gauge": {"dataPoints": data}}]}]}]}).encode()


class Writer(threading.Thread):
    """Sends requests one after the other; one without an answer is sent again when told to go on."""

    def __init__(self, name, points=POINTS, cluster="crash", every_s=0):
        """@every_s: a request each so many seconds; 0: as fast as they are answered."""
        super().__init__(daemon=True)
        self.label, self.points, self.cluster, self.every_s = name, points, cluster, every_s
        self.answered = []  # when each was acknowledged, by this machine's clock
        self.refused = self.port = 0
        self.going, self.idle, self.ends = threading.Event(), threading.Event(), False
        self.fault = None  # an answer that no server should give

    @property
    def acknowledged(self):
        return len(self.answered)

    def request(self, number):
        return request_of(self.label, number, self.points, self.cluster)

    def run(self):
        while not self.ends:
            self.idle.set()
            self.going.wait()
            self.idle.clear()
            c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
            try:
                due = time.monotonic()
                while self.going.is_set() and not self.ends and not self.fault:
                    self.send(c)
                    due += self.every_s
                    time.sleep(max(due - time.monotonic(), 0))
            except (OSError, http.client.HTTPException):
                pass
            self.going.clear()
            c.close()

    def send(self, c):
        c.request("POST", "/v1/metrics", self.request(self.acknowledged), HEAD)
        r = c.getresponse()
        text = r.read()
        if r.status == 200 and b"rejected" not in text:
            self.answered.append(time.time())
        elif r.status in (429, 503) and (r.getheader("Retry-After") or b"out of memory" in text):  # the latter: nobody knows when
            self.refused += 1
            time.sleep(0.02)
        else:
            self.fault = (r.status, text)


def started(writers):
    for w in writers:
        w.start()
    return writers


def go_on(writers, echo):
    for w in writers:
        w.port = echo.http
        w.going.set()


def hold(writers):
    """They wait; none of their requests is under way."""
    for w in writers:
        w.going.clear()
    for w in writers:
        w.idle.wait(30)
        assert not w.fault, w.fault


def end(writers):
    for w in writers:
        w.ends = True
        w.going.set()
    for w in writers:
        w.join(30)
