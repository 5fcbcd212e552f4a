# SPDX-License-Identifier: Apache-2.0
"""page.py - what the tests of pages share: a script of tests/browser in a real browser, and its checks as TAP."""
import ctypes
import fcntl
import json
import lzma
import os
import pathlib
import re
import shutil
import socket
import sqlite3
import struct
import subprocess
import sys
import time
from rig import BUILD, INGERO, SOURCE, check, scratch, start

PEERS = BUILD / "peers"
NODE = PEERS / "node"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
CLONE_NEWNET, SIOCSIFFLAGS, IFF_UP = 0x40000000, 0x8914, 1


def leave_network():
    """Gives this process, and those that it starts from now on, a loopback of their own. When an address of the machine
    changes, as it does with every network namespace that another test makes, Chromium ends all requests with
    ERR_NETWORK_CHANGED."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def need_browser():
    """Ends the test, as skipped, where no page can be opened; else it goes on in a network of its own."""
    if not NODE.exists() or not (PEERS / "node_modules" / "playwright-core").exists():
        print("the page was not opened: Node and playwright-core are missing; run tools/peers")
        sys.exit(77)
    if not CHROMIUM:
        print("the page was not opened: chromium is missing; run tools/deps check")
        sys.exit(77)
    leave_network()


def browser_run(script, url, env=None, **more):
    """Runs @script of tests/browser on the page at @url; @more are its settings."""
    settings = {"url": url, "peers": str(PEERS), "chromium": CHROMIUM, "shots": "", "token": "", **more}
    return subprocess.run([NODE, SOURCE / "tests" / "browser" / script], text=True, capture_output=True, timeout=200,
                          env=dict(os.environ, PAGE_TEST=json.dumps(settings), **(env or {})))


def recording(name):
    """A copy of the tests' recording, under this name."""
    db = scratch(name)
    c = sqlite3.connect(db)
    c.executescript(lzma.open(SOURCE / "tests" / "browser" / "recording.sql.xz", "rt").read())
    c.commit()
    c.close()
    return db


class Dashboard:
    """`ingero dashboard` on a port of its own choice; with @home on the recording that is there, or will be."""

    def __init__(self, db, *args, token=None, home=None):
        self.out = db + ".said"
        env = dict(os.environ, HOME=home or os.path.dirname(scratch("x")))
        env.pop("INGERO_TOKEN", None)
        if token:
            env["INGERO_TOKEN"] = token
        self.process = start([INGERO, "dashboard", *([] if home else ["--db", db]), "--addr", "127.0.0.1:0", *args], env=env,
                             stdout=open(self.out, "w"), stderr=subprocess.STDOUT)
        end = time.monotonic() + 20
        while not (found := re.search(r"https?://[^\s/]+:\d+", self.said())):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("the dashboard did not start: " + self.said())
            time.sleep(0.02)
        self.url = found[0]

    def said(self):
        return pathlib.Path(self.out).read_text(errors="replace")

    def stop(self):
        self.process.terminate()
        self.process.wait(10)


def browse(script, db, *args, lock=False, **more):
    """Runs @script on a dashboard of @db; returns its lines and what it complained about."""
    with open(db + ".lock", "w") as held:
        if lock:  # what a tracer holds: the recording counts as live
            fcntl.flock(held, fcntl.LOCK_EX)
            held.write(f"{os.getpid()}\n")
            held.flush()
        dashboard = Dashboard(db, *args, token=more.get("token"))
        r = browser_run(script, dashboard.url, env={"PAGE_NAMES": scratch("names.json")}, **more)
        dashboard.stop()
    return script, r


def judge(script, r):
    points = 0
    for line in r.stdout.splitlines():
        state, _, rest = line.partition(" - ")
        name, _, detail = rest.partition("\t")
        if state in ("ok", "not ok"):
            check(name, state == "ok", detail.replace("\\n", "\n"))
            points += 1
    check(f"{script} ran to its end", points > 3 and not r.stderr.strip(), r.stderr[-3000:])
