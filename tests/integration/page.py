# SPDX-License-Identifier: Apache-2.0
"""page.py - what the tests of pages share: a script of tests/browser in a real browser, and its checks as TAP."""
import json
import os
import shutil
import subprocess
import sys
from rig import BUILD, SOURCE, check

PEERS = BUILD / "peers"
NODE = PEERS / "node"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def need_browser():
    """Ends the test, as skipped, where no page can be opened."""
    if not NODE.exists() or not (PEERS / "node_modules" / "playwright-core").exists():
        print("the page was not opened: Node and playwright-core are missing; run tools/peers")
        sys.exit(77)
    if not CHROMIUM:
        print("the page was not opened: chromium is missing; run tools/deps check")
        sys.exit(77)


def browser_run(script, url, env=None, **more):
    """Runs @script of tests/browser on the page at @url; @more are its settings."""
    settings = {"url": url, "peers": str(PEERS), "chromium": CHROMIUM, "shots": "", "token": "", **more}
    return subprocess.run([NODE, SOURCE / "tests" / "browser" / script], text=True, capture_output=True, timeout=200,
                          env=dict(os.environ, PAGE_TEST=json.dumps(settings), **(env or {})))


def judge(script, r):
    points = 0
    for line in r.stdout.splitlines():
        state, _, rest = line.partition(" - ")
        name, _, detail = rest.partition("\t")
        if state in ("ok", "not ok"):
            check(name, state == "ok", detail.replace("\\n", "\n"))
            points += 1
    check(f"{script} ran to its end", points > 3 and not r.stderr.strip(), r.stderr[-3000:])
