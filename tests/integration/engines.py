# SPDX-License-Identifier: Apache-2.0
"""engines.py - the store's engines for tests: a store is build/tests/store-fixture, which speaks lines of JSON;
two ClickHouse servers on ports of their own, with the users that docs/clickhouse.md describes; a proxy before
them that loses what a network can lose."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request

import rig

FIXTURE = rig.BUILD / "tests" / "store-fixture"
WRITER, READER = "password-of-the-writer", "password-of-the-reader"
ACCOUNTS = {"STORE_USER": "ingero_writer", "STORE_PASSWORD": WRITER, "STORE_READER": "ingero_reader",
            "STORE_READER_PASSWORD": READER}


class Store:
    """One open store; ask() gives the answer's object."""

    def __init__(self, args, env=None):
        self.process = rig.start([FIXTURE, *args], stdin=subprocess.PIPE, stderr=None,
                                 env={**os.environ, **(env or {})})
        self.opened = json.loads(self.process.stdout.readline())

    def ask(self, op, **what):
        self.process.stdin.write(json.dumps({"op": op, **what}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def take(self, position, rows, **what):
        return self.ask("take", position=position, rows=rows, **what)

    def rows(self, text, **what):
        answer = self.ask("select", text=text, **what)
        return answer["rows"] if answer["err"] == 0 else answer["text"]

    def count(self, table="events", **what):
        return self.rows(f"SELECT count(*) AS n FROM {{{table}}}", **what)[0][0]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)
        return self.process.returncode


class Duck:
    name = "duckdb"

    @staticmethod
    def missing():
        found = os.environ.get("INGERO_DUCKDB_LIB") or rig.BUILD / "duckdb" / "libduckdb.so"
        return None if os.path.exists(found) else \
            "libduckdb.so is missing: `make duckdb` fetches it"

    def __init__(self):
        os.environ.setdefault("INGERO_DUCKDB_LIB", str(rig.BUILD / "duckdb" / "libduckdb.so"))

    def open(self, store="store", retention_ns=0):
        return Store(["duckdb", rig.scratch("duck-" + store), retention_ns])


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def documented(begin):
    """The example of docs/clickhouse.md that begins with @begin."""
    text = (rig.SOURCE / "docs" / "clickhouse.md").read_text()
    return next(b for b in re.findall(r"```xml\n(.*?)```", text, re.S) if b.startswith(begin))


class ClickHouse:
    name = "clickhouse"
    program = shutil.which("clickhouse-server", path=f"{rig.BUILD}/clickhouse-server/usr/sbin:/usr/sbin:"
                           + os.environ.get("PATH", ""))

    @classmethod
    def missing(cls):
        return None if cls.program else \
            "clickhouse-server is missing: `tools/servers` fetches it"

    def __init__(self, tenants):
        """@tenants: names of databases that readers may see, as in ingero__NAME."""
        self.http = [free_port() for _ in range(2)]
        self.native = [free_port() for _ in range(2)]
        self.tenants = tenants
        self.processes = [self.start(i) for i in range(2)]
        for port in self.http:
            if not rig.wait_until(lambda p=port: self.is_up(p), 30):
                raise RuntimeError("ClickHouse does not start: " + self.said())

    def said(self):
        found = ""
        for i in range(2):
            path = rig.scratch(f"shard{i}/errors")
            if os.path.exists(path):
                with open(path) as f:
                    found += f.read()[-2000:]
        return found

    @staticmethod
    def is_up(port):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=1) as r:
                return r.read() == b"Ok.\n"
        except OSError:
            return False

    def users(self):
        text = documented("<profiles>")
        example = re.search(r"  <(ingero_reader__prod_2d1)>.*?</\1>\n", text, re.S).group(0)
        text = text.replace(example, "".join(example.replace("prod_2d1", t) for t in self.tenants))
        for name, password in (("WRITER_SHA256", WRITER), ("READER_SHA256", READER)):
            text = text.replace(name, hashlib.sha256(password.encode()).hexdigest())
        text = text.replace("10.0.0.1", "127.0.0.1").replace(
            "<profiles>", "<profiles><default><max_threads>2</max_threads></default>")
        return text.replace("</users>", """<default><password></password><networks><ip>127.0.0.1</ip></networks>
            <profile>default</profile><quota>default</quota></default></users>""")

    def start(self, i):
        folder = rig.scratch(f"shard{i}")
        os.makedirs(folder)
        servers = documented("<remote_servers>")
        for n, port in enumerate(self.native):
            servers = servers.replace(f"<host>store{n + 1}</host><port>9000</port>",
                                      f"<host>127.0.0.1</host><port>{port}</port>")
        with open(folder + "/users.xml", "w") as f:
            f.write(f"<yandex>{self.users()}<quotas><default/></quotas></yandex>")
        with open(folder + "/config.xml", "w") as f:
            f.write(f"""<yandex><logger><level>warning</level><log>{folder}/log</log><errorlog>{folder}/errors</errorlog></logger>
                <listen_host>127.0.0.1</listen_host><http_port>{self.http[i]}</http_port><tcp_port>{self.native[i]}</tcp_port>
                <path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><users_config>{folder}/users.xml</users_config>
                <default_profile>default</default_profile><default_database>default</default_database>
                <mark_cache_size>50000000</mark_cache_size><uncompressed_cache_size>0</uncompressed_cache_size>
                {servers}</yandex>""")
        return self.run(i)

    def run(self, i):
        folder = rig.scratch(f"shard{i}")
        return rig.start([self.program, f"--config-file={folder}/config.xml"], cwd=folder,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self, i):
        self.processes[i].kill()
        self.processes[i].wait()

    def revive(self, i):
        self.processes[i] = self.run(i)
        return rig.wait_until(lambda: self.is_up(self.http[i]), 30)

    def flags(self, store):
        """Of `ingero-cluster echo`."""
        files = []
        for name, password in (("", WRITER), ("reader-", READER)):
            path = pathlib.Path(rig.scratch(name + "password"))
            path.write_text(password + "\n")
            path.chmod(0o600)
            files += [f"--clickhouse-{name}password-file", str(path)]
        return ["--engine", "clickhouse", "--clickhouse-cluster", "ingero", "--clickhouse-database", store,
                "--clickhouse-user", "ingero_writer", "--clickhouse-reader", "ingero_reader", *files,
                *(f"--clickhouse=http://127.0.0.1:{p}" for p in self.http)]

    def open(self, store="ingero", retention_ns=0, ports=None, settle_ns=1):
        return Store(["clickhouse", "ingero", store.replace("-", "_"), retention_ns, settle_ns,
                      *(f"http://127.0.0.1:{p}" for p in ports or self.http)], ACCOUNTS)

    def direct(self, text, user="ingero_writer", shard=0):
        """What a server says itself: (status, text), with nothing of ours between."""
        q = urllib.parse.urlencode({"user": user, "password": WRITER if user == "ingero_writer" else READER})
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http[shard]}/?{q}", text.encode(), 20) as r:
                return r.status, r.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()


class ClickHouseToday(ClickHouse):
    """The engine of today as a library, behind clickhouse_bridge.py: one server, no cluster, no users of its own."""
    name = "clickhouse today"
    packages = rig.BUILD / "chdb"

    @classmethod
    def missing(cls):
        return None if (cls.packages / "chdb").exists() else \
            "a ClickHouse of today is missing: `tools/servers --today` fetches it (180 MB), as make check-full does"

    def __init__(self):
        self.http = [free_port()]
        self.processes = []
        self.processes = [self.run(0)]
        if not rig.wait_until(lambda: self.is_up(self.http[0]), 30):
            raise RuntimeError("ClickHouse does not start: " + pathlib.Path(rig.scratch("bridge.log")).read_text()[-2000:])

    def run(self, i):
        return rig.start([sys.executable, rig.SOURCE / "tests/integration/clickhouse_bridge.py", self.packages, rig.scratch("chdb"),
                          self.http[0], f"ingero_writer={WRITER}", f"ingero_reader={READER}"],
                         stdout=subprocess.DEVNULL, stderr=open(rig.scratch("bridge.log"), "a"))

    def open(self, store="ingero", retention_ns=0, ports=None, settle_ns=1):
        return Store(["clickhouse", "", store.replace("-", "_"), retention_ns, settle_ns,
                      *(f"http://127.0.0.1:{p}" for p in ports or self.http)], ACCOUNTS)


class Proxy:
    """Before one server; lose, once set, decides of each request's bytes what becomes of it: "answer" (it
    is lost), "half" (of the request arrives), "late" (kept until deliver(), its sender is hung up on)."""

    def __init__(self, port):
        self.port, self.lose, self.kept, self.lost = port, None, [], 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.pass_on, args=(client,), daemon=True).start()

    @staticmethod
    def read_request(client):
        data = b""
        while b"\r\n\r\n" not in data:
            more = client.recv(65536)
            if not more:
                return data
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        length = int(re.search(rb"content-length: *(\d+)", head, re.I).group(1))
        while len(body) < length:
            body += client.recv(65536)
        return head + b"\r\n\r\n" + body

    def send(self, request, close=False):
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            s.sendall(request)
            if close:
                s.shutdown(socket.SHUT_WR)
            s.settimeout(10)
            answer = b""
            while True:
                more = s.recv(65536)
                if not more:
                    return answer
                answer += more
                if b"\r\n0\r\n\r\n" in answer or re.search(rb"content-length: 0\r\n", answer, re.I):
                    return answer

    def pass_on(self, client):
        with client:
            request = self.read_request(client)
            is_insert = b"RowBinary" in request[:4096]
            what = self.lose if is_insert else None
            if what:
                self.lost += 1
            if what == "half":
                self.send(request[:len(request) - len(request) // 3], close=True)
            elif what == "late":
                self.kept.append(request)
            else:
                answer = self.send(request)
                if not what:
                    client.sendall(answer)

    def deliver(self):
        answers = [self.send(r) for r in self.kept]
        self.kept = []
        return answers
