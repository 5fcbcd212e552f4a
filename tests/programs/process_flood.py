# SPDX-License-Identifier: Apache-2.0
"""process_flood.py LIBRARY COUNT - so many processes at once that make ten calls each through a stand-in driver. Prints their
numbers; they live until its standard input ends."""
import ctypes
import json
import os
import sys

launch = ctypes.CDLL(sys.argv[1]).cuLaunchKernel
ready, go = os.pipe(), os.pipe()
pids = []
for _ in range(int(sys.argv[2])):
    pid = os.fork()
    if not pid:
        os.close(go[1])
        for _ in range(10):
            launch(1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)
        os.write(ready[1], b".")
        os.read(go[0], 1)
        os._exit(0)
    pids.append(pid)
for _ in pids:
    os.read(ready[0], 1)
print(json.dumps(pids), flush=True)
sys.stdin.read()
os.close(go[1])
for pid in pids:
    os.waitpid(pid, 0)
