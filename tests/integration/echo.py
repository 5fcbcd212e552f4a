# SPDX-License-Identifier: Apache-2.0
"""echo.py - `ingero-cluster echo` (or `all`) as tests run it: on ports of its own, plain on loopback unless told
otherwise, with a token; asked over /api/v2."""
import http.client
import json
import os
import pathlib
import re
import signal
import ssl
import sys
from fleet import CLUSTER
from rig import BUILD, scratch, start, wait_until

TOKEN = "0123456789abcdef" * 4


def need_duckdb():
    """Ends the test, loudly, where there is no libduckdb.so."""
    places = [os.environ.get("INGERO_DUCKDB_LIB", ""), BUILD / "duckdb/libduckdb.so"]
    if not any(p and os.path.exists(p) for p in places):
        print("no libduckdb.so: get it with `make duckdb`")
        sys.exit(77)


def token_file(name="token", *tokens):
    path = pathlib.Path(scratch(name))
    path.write_text("".join(f"{t}\n" for t in tokens or [TOKEN]))
    path.chmod(0o600)
    return str(path)


class Echo:
    """With tls=True it makes its own certificate, whose file is .ca. @folder: of the store; None: a new one.
    @under: a program that runs it, with its arguments."""
    count = 0

    def __init__(self, *args, command="echo", token=TOKEN, folder=None, tls=False, env=None, tokens=None, under=()):
        Echo.count += 1
        self.token, self.tls = token, tls
        self.home = pathlib.Path(scratch(f"echo-home{Echo.count}"))
        self.home.mkdir()
        self.folder = folder or scratch(f"echo-store{Echo.count}")
        self.out, self.log = scratch(f"echo{Echo.count}.out"), scratch(f"echo{Echo.count}.log")
        if tokens is None:
            tokens = [] if token is None else ["--token-file", token_file(f"echo-token{Echo.count}", token)]
        addresses = [f"--{name}-addr=127.0.0.1:0" for name in ("grpc", "http", "api")]
        self.env = dict(os.environ, HOME=str(self.home), STATE_DIRECTORY=str(self.home / ".ingero"), **(env or {}))
        self.command = [*under, CLUSTER, command, *addresses, "--db-path", self.folder, *tokens,
                        *([] if tls else ["--insecure-no-tls"]), *args]
        self.start()

    def launch(self):
        """Returns before it serves."""
        with open(self.out, "w") as out, open(self.log, "a") as log:
            self.process = start(self.command, stdout=out, stderr=log, env=self.env)

    def start(self):
        self.launch()
        said = wait_until(lambda: ("Token:" in self.said() and self.said()) or self.process.poll() is not None)
        assert self.process.poll() is None and said, self.logged()
        self.grpc = int(re.search(r"OTLP over gRPC: 127.0.0.1:(\d+)", said)[1])
        self.http = int(re.search(r"OTLP over HTTP: https?://127.0.0.1:(\d+)", said)[1])
        self.api = int(re.search(r"API: https?://127.0.0.1:(\d+)/api/v2", said)[1])
        self.ca = str(self.home / ".ingero/tls/cert.pem")
        self.url = f"{'https' if self.tls else 'http'}://127.0.0.1:{self.api}"

    def said(self):
        return pathlib.Path(self.out).read_text()

    def logged(self):
        return pathlib.Path(self.log).read_text()

    def connect(self, port):
        if not self.tls:
            return http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        return http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=ssl.create_default_context(cafile=self.ca))

    def request(self, port, method, path, body=None, token=None, fields=None):
        """(status, fields in lower case, body). token="": none is sent."""
        c = self.connect(port)
        head = dict(fields or {})
        token = self.token if token is None else token
        if token:
            head["Authorization"] = f"Bearer {token}"
        if body is not None:
            head.setdefault("Content-Type", "application/json")
        c.request(method, path, body, head)
        r = c.getresponse()
        text = r.read()
        c.close()
        return r.status, {k.lower(): v for k, v in r.getheaders()}, text

    def push(self, request, path="/v1/metrics", **kw):
        """An OTLP request as JSON: as of request()."""
        return self.request(self.http, "POST", path, json.dumps(request), **kw)

    def is_ready(self):
        return self.request(self.api, "GET", "/readyz")[0] == 200

    def ask(self, method, path, body=None, **kw):
        """(status, the envelope) of /api/v2."""
        status, _, text = self.request(self.api, method, path, None if body is None else json.dumps(body), **kw)
        return status, json.loads(text)

    def sql(self, query, **kw):
        """The rows."""
        status, envelope = self.ask("POST", "/api/v2/sql", {"sql": query}, **kw)
        assert status == 200 and envelope["ok"], (query, status, envelope)
        return [tuple(row) for row in envelope["data"]["rows"]]

    def tool(self, name, token=None, **arguments):
        status, envelope = self.ask("POST", f"/api/v2/tools/{name}", arguments, token=token)
        assert status == 200 and envelope["ok"], (name, status, envelope)
        return envelope["data"]

    def metrics(self):
        status, _, body = self.request(self.api, "GET", "/metrics")
        assert status == 200, body
        return {k: float(v) for k, v in (line.rsplit(" ", 1) for line in body.decode().splitlines() if not line.startswith("#"))}

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self, by=signal.SIGTERM):
        self.process.send_signal(by)
        return self.process.wait(timeout=40)
