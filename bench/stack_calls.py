# SPDX-License-Identifier: Apache-2.0
"""stack_calls.py - cudaStreamSynchronize from a dozen Python functions deep, as often as asked for, for
bench_stack. Usage: stack_calls.py LIBRARY SECONDS --wait-start GATE. Prints what sim-calls prints."""
import ctypes
import json
import os
import sys
import time

DEPTH = 12
BURST = 20  # calls between two rests of 5 ms

rt = ctypes.CDLL(sys.argv[1])
seconds, gate = float(sys.argv[2]), sys.argv[4]


def burst():
    for _ in range(BURST):
        rt.cudaStreamSynchronize(None)


def deeper(levels):
    if levels:
        return deeper(levels - 1)
    return burst()


open(gate + ".ready", "w").close()
while not os.path.exists(gate):
    time.sleep(0.002)
calls, busy, begin = 0, 0.0, time.monotonic()
while time.monotonic() - begin < seconds:
    start = time.monotonic()
    deeper(DEPTH)
    busy += time.monotonic() - start
    calls += BURST
    time.sleep(0.005)
print(json.dumps({"calls": calls, "seconds": time.monotonic() - begin,
                  "ns_per_call": 1e9 * busy / calls}).replace(": ", ":"))
