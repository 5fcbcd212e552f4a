# SPDX-License-Identifier: Apache-2.0
"""standin.py - nodes that are none: HTTP servers of a thread of this process that answer as `ingero
dashboard` does, or as badly as a test wants. Used by 52-fanout and bench/fanout.py."""
import asyncio
import json
import ssl
import subprocess
import threading
import time


class Node:
    """One server. @answers: path -> object, function of the request body, or None (404). @raw: a
    coroutine (reader, writer) that replaces HTTP altogether. @offset_ns: how far its clock is ahead."""

    def __init__(self, name=None, answers=None, raw=None, offset_ns=0, token=None, tls=None, head=()):
        self.name, self.answers, self.raw = name, answers or {}, raw
        self.offset_ns, self.token, self.tls, self.head = offset_ns, token, tls, list(head)
        self.requests = []  # (method, path, body, authorization)
        self.connections = 0
        self.address = None

    async def start(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=self.tls, backlog=1024)
        self.port = self.server.sockets[0].getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"

    async def serve(self, reader, writer):
        self.connections += 1
        try:
            if self.raw:
                await self.raw(self, reader, writer)
            else:
                while await self.exchange(reader, writer):
                    pass
        except (OSError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            writer.close()

    async def request(self, reader):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *fields = head.split("\r\n")
        method, path, _ = line.split(" ")
        fields = {k.lower(): v for k, v in (f.split(": ", 1) for f in fields if f)}
        body = await reader.readexactly(int(fields.get("content-length", 0)))
        self.requests.append((method, path, body, fields.get("authorization")))
        return path.split("?")[0], body, fields

    async def exchange(self, reader, writer):
        path, body, fields = await self.request(reader)
        answer = self.answers.get(path)
        status = 200
        if self.token and fields.get("authorization") != f"Bearer {self.token}":
            status, answer = 401, {"error": "a token is needed"}
        elif path == "/api/v1/time" and answer is None:
            answer = {"timestamp_ns": time.time_ns() + self.offset_ns}
        elif callable(answer):
            answer = answer(body)
        if answer is None:
            status, answer = 404, {"error": "not here"}
        if isinstance(answer, tuple):
            status, answer = answer
        head = list(self.head)
        if not any(h.lower().startswith("content-type") for h in head):
            head.append("Content-Type: application/json")
        if self.name:
            head.append(f"x-ingero-node: {self.name}")
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        writer.write((f"HTTP/1.1 {status} x\r\nContent-Length: {len(data)}\r\n" + "".join(h + "\r\n" for h in head)
                      + "\r\n").encode("latin-1") + data)
        await writer.drain()
        return True


class Fleet:
    """The thread in which nodes live."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda loop, context: None)  # strangers hang up, that is their trade
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def add(self, *nodes):
        async def begin():
            for n in nodes:
                await n.start()
        asyncio.run_coroutine_threadsafe(begin(), self.loop).result(30)
        return nodes[0] if len(nodes) == 1 else list(nodes)


class Authority:
    """A certificate authority in @folder, made by openssl."""

    def __init__(self, folder, name="test-ca"):
        self.folder, self.name = folder, name
        self.cert, self.key = f"{folder}/{name}.pem", f"{folder}/{name}.key"
        self._run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                  "-subj", f"/CN={name}", "-keyout", self.key, "-out", self.cert)

    def _run(self, *args):
        subprocess.run(["openssl", *args], check=True, capture_output=True)

    def issue(self, name, san="IP:127.0.0.1,DNS:localhost"):
        """(certificate, key) files of a new certificate."""
        base = f"{self.folder}/{self.name}-{name}"
        with open(base + ".ext", "w") as f:
            f.write(f"subjectAltName={san}\n")
        self._run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                  "-keyout", base + ".key", "-out", base + ".csr")
        self._run("x509", "-req", "-in", base + ".csr", "-CA", self.cert, "-CAkey", self.key, "-days", "2",
                  "-extfile", base + ".ext", "-out", base + ".pem")
        return base + ".pem", base + ".key"

    def context(self, name="server", clients=False, san="IP:127.0.0.1,DNS:localhost"):
        """What a server of TLS 1.3 needs; with @clients it wants certificates of this authority."""
        c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        c.minimum_version = ssl.TLSVersion.TLSv1_3
        c.load_cert_chain(*self.issue(name, san))
        if clients:
            c.load_verify_locations(self.cert)
            c.verify_mode = ssl.CERT_REQUIRED
        return c
