# SPDX-License-Identifier: Apache-2.0
"""hooks.py - a receiver of alerts as tests run it: it keeps what it is sent, and fails when told to."""
import datetime
import http.server
import json
import threading


class Receiver:
    """An HTTP server; .requests holds (path, headers, body) of what it took; .answers are statuses to give
    first, 0 closes the connection."""

    def __init__(self, answers=(), retry_after=None):
        self.requests, self.times, self.answers, self.attempts = [], [], list(answers), 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.attempts += 1
                status = outer.answers.pop(0) if outer.answers else 200
                if status == 200:
                    outer.times.append(datetime.datetime.utcnow().isoformat())
                    outer.requests.append((self.path, dict(self.headers.items()), body))
                self.send_response(status)
                if status == 429 and retry_after:
                    self.send_header("Retry-After", retry_after)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *a):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def bodies(self):
        return [json.loads(b) for _, _, b in self.requests]
