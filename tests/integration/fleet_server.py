#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fleet_server.py - plays the cluster for agents that push: real sockets, scripted replies, and every
request written down before it is answered, so that a killed server has lost nothing that it acknowledged.

fleet_server.py PORT LOG SCRIPT: SCRIPT is JSON, read anew for each request: {"/v1/metrics": [{"status": 429,
"headers": {...}, "close": false}, …], …}. The n-th request of a path gets the n-th row, later ones the last."""
import http.server
import json
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, body):
        path = self.path.split("?")[0]
        with open(self.server.script) as f:
            rows = json.load(f).get(path) or [{}]
        n = self.server.counts.get(path, 0)
        self.server.counts[path] = n + 1
        row = rows[min(n, len(rows) - 1)]
        if row.get("close") == "before":
            self.close_connection = True
            return
        record = {"method": self.command, "path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()},
                  "body": body.hex()}
        with open(self.server.log, "a") as f:
            f.write(json.dumps(record) + "\n")
        if row.get("close") == "after":
            self.close_connection = True
            return
        text = json.dumps(row["body"]).encode() if "body" in row else b"{}"
        self.send_response(row.get("status", 200))
        for name, value in row.get("headers", {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))

    def do_GET(self):
        self.answer(b"")


class Server(http.server.ThreadingHTTPServer):
    allow_reuse_address = True
    daemon_threads = True


def main():
    port, log, script = sys.argv[1:4]
    server = Server(("127.0.0.1", int(port)), Handler)
    server.log, server.script, server.counts = log, script, {}
    print(server.server_address[1], flush=True)
    server.serve_forever()


# ---- what is in the bodies, read without our own code ----

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of a protobuf message; values are ints or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            value, at = int.from_bytes(data[at:at + 8], "little"), at + 8
        elif key & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            value, at = int.from_bytes(data[at:at + 4], "little"), at + 4
        yield key >> 3, value


def first(data, number, default=b""):
    return next((v for n, v in fields(data) if n == number), default)


def records(body):
    """(resource attributes, event name, body bytes, attributes) of the log records of a request."""
    for number, resource_logs in fields(body):
        who = attributes(first(resource_logs, 1), 1)
        for n, scope_logs in fields(resource_logs):
            if n == 2:
                for m, record in fields(scope_logs):
                    if m == 2:
                        yield (who, first(record, 12).decode(), first(first(record, 5), 7), attributes(record, 6))


def attributes(message, number):
    found = {}
    for n, pair in fields(message):
        if n == number:
            value = list(fields(first(pair, 2)))
            kind, v = value[0] if value else (1, b"")
            found[first(pair, 1).decode()] = v.decode() if kind == 1 else v
    return found


class Packed:
    """A batch of calls as push_calls.c describes it."""

    def __init__(self, data):
        assert data[:4] == b"ICL\x01", data[:8]
        self.data, self.at = data, 4
        self.batch, self.sent, self.lost = self.number(), self.signed(), self.number()
        self.calls, comms, lines, enter = [], [], [], 0
        for _ in range(self.number()):
            line = self.number()
            if line == len(lines):
                comm = self.number()
                if comm == len(comms):
                    hash_ = int.from_bytes(data[self.at:self.at + 8], "little")
                    self.at += 8
                    comms.append({"comm": hash_, "nranks": self.signed(), "rank": self.signed(),
                                  "world_rank": self.signed(), "pid": self.number(), "seq": 0})
                lines.append({"c": comms[comm], "op": self.number(), "datatype": self.number(),
                              "peer": self.signed(), "bytes": self.number(), "seq": 0})
            row = lines[line]
            counter = row["c"] if row["peer"] < 0 else row
            counter["seq"] = (counter["seq"] + self.signed()) % 2**64
            enter += self.signed()
            leave = enter + self.signed()
            wait = self.number() - 1
            self.calls.append({**row["c"], **{k: row[k] for k in ("op", "datatype", "peer", "bytes")},
                               "seq": counter["seq"], "enter": enter, "leave": leave, "wait": wait})
        assert self.at == len(data), (self.at, len(data))

    def number(self):
        value, self.at = varint(self.data, self.at)
        return value

    def signed(self):
        v = self.number()
        return v >> 1 ^ -(v & 1)


if __name__ == "__main__":
    main()
