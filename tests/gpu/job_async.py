# SPDX-License-Identifier: Apache-2.0
"""job_async.py - an asyncio service around a model; each request is checked by another service, in a call that
blocks the loop; then that service takes its time."""
import asyncio
import http.server
import multiprocessing as mp
import time
import urllib.request
from job_clock import Clock


def service(conn, is_late):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if is_late.value:
                time.sleep(0.05)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    conn.send(server.server_port)
    server.serve_forever()


def authorise(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as reply:  # FAULT async
        return reply.status == 200


async def main():
    clock, is_late = Clock(), mp.Value("b", 0)
    ours, theirs = mp.Pipe()
    mp.Process(target=service, args=(theirs, is_late), daemon=True).start()
    port = ours.recv()
    import torch
    width = clock.size(3072, 64)
    net = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(16)]).to(clock.device)

    async def user():
        while not clock.over():
            is_late.value = clock.late()
            authorise(port)
            with torch.no_grad():
                y = net(torch.randn(32, width, device=clock.device)).sum()
            await asyncio.sleep(0)
            y.item()
            clock.tick()
            await asyncio.sleep(0.01)

    clock.begin()
    await asyncio.gather(*(user() for _ in range(5)))
    clock.end()


asyncio.run(main())
