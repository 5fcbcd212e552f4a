# SPDX-License-Identifier: Apache-2.0
"""clickhouse_bridge.py PACKAGES FOLDER PORT USER=PASSWORD… - ClickHouse's HTTP interface on 127.0.0.1 before its engine as a
Python library (chdb), which is how a ClickHouse of today can be had: as much of it as the store uses. One statement at a
time. Who has a password may do everything but write with a name that has "reader" in it."""
import base64
import http.server
import os
import re
import sys
import threading
import urllib.parse

sys.path.insert(0, sys.argv[1])
import chdb  # noqa: E402

FOLDER, USERS = sys.argv[2], dict(pair.split("=", 1) for pair in sys.argv[4:])
OWN = {"wait_end_of_query", "default_format", "query", "query_id", "database", "user", "password"}
engine = chdb.connect(FOLDER)
engine.query("SET database_atomic_wait_for_drop_and_detach_synchronously = 1")
lock = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.reply(200, b"Ok.\n")

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) == length:
            status, said = self.answer(dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query)), body)
            self.reply(status, said)

    def answer(self, given, body):
        basic = base64.b64decode((self.headers["Authorization"] or "").removeprefix("Basic ")).decode().partition(":")
        user, password = given.get("user", basic[0]), given.get("password", basic[2])
        if USERS.get(user) != password:
            return 403, f"Code: 516. DB::Exception: {user}: Authentication failed".encode()
        text = given.get("query") or body.decode(errors="replace")
        if re.match(r"\s*\(*\s*(SELECT|WITH)\b", re.sub(r"--.*|/\*.*?\*/", "", text), re.I):
            settings = {k: v for k, v in given.items() if k not in OWN} | ({"readonly": "1"} if "reader" in user else {})
            text = text.rstrip().rstrip(";") + "\n" + ("SETTINGS " * bool(settings)) + ", ".join(
                f"{k} = {v if v.isdigit() else repr(v)}" for k, v in settings.items())
        elif "reader" in user:
            return 500, b"Code: 164. DB::Exception: cannot execute in readonly mode"
        with lock:
            try:
                engine.query(f"USE {given.get('database', 'default')}")
                return 200, engine.query(self.rows(text, body), given.get("default_format", "TSV")).bytes()
            except Exception as e:
                return 500, str(e).encode()

    @staticmethod
    def rows(text, body):
        """An insert of rows in the body: from a file, which the library can read."""
        insert = re.fullmatch(r"(INSERT INTO .*\)) FORMAT (\w+)\s*", text, re.S)
        if not insert:
            return text
        path = os.path.join(FOLDER, "rows")
        with open(path, "wb") as f:
            f.write(body)
        return f"{insert[1]} SELECT * FROM file('{path}', {insert[2]})"


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[3])), Handler).serve_forever()
