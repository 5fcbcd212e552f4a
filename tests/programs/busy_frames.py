# SPDX-License-Identifier: Apache-2.0
"""busy_frames.py - one thread computes, another sleeps. Usage: busy_frames.py LIBRARY EXPECTED GATE.

EXPECTED becomes {"busy": thread id, "idle": thread id, "first": line, "last": line, "cpu_s": the time
that the busy thread spent on a CPU between the gate's two moments}. The gate is that of gate.h."""
import ctypes
import json
import os
import sys
import threading
import time

library, expected_path, gate = sys.argv[1:4]
rt = ctypes.CDLL(library)
rt.cudaMalloc.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t]


def idle():
    while not os.path.exists(gate + ".end"):
        time.sleep(0.2)


def compute(rounds):
    total = 0
    for i in range(rounds):
        total += i * i % 7
        total ^= i
    return total


def busy():
    while not os.path.exists(gate + ".end"):
        compute(20000)


thread = threading.Thread(target=idle)
thread.start()
open(gate + ".ready", "w").close()
while not os.path.exists(gate):
    time.sleep(0.005)
rt.cudaMalloc(ctypes.byref(ctypes.c_void_p()), 4096)  # the process uses CUDA
begun = time.thread_time()
busy()
first = compute.__code__.co_firstlineno
with open(expected_path, "w") as out:
    json.dump({"busy": threading.get_native_id(), "idle": thread.native_id, "first": first,
               "last": first + 5, "cpu_s": time.thread_time() - begun}, out)
thread.join()
