# SPDX-License-Identifier: Apache-2.0
"""collect.py - runs Python's garbage collector. Usage: collect.py LIBRARY EXPECTED GATE.

EXPECTED becomes {"collect_s": the thread's time on a CPU in gc.collect(), "run_s": in the loop beside
it, "rounds": …}. The gate is that of gate.h."""
import ctypes
import gc
import json
import os
import sys
import time

library, expected_path, gate = sys.argv[1:4]
rt = ctypes.CDLL(library)
rt.cudaMalloc.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t]
kept = [[i] for i in range(300000)]
gc.disable()
open(gate + ".ready", "w").close()
while not os.path.exists(gate):
    time.sleep(0.005)
rt.cudaMalloc(ctypes.byref(ctypes.c_void_p()), 4096)  # the process uses CUDA
spent, rounds, begun = 0, 0, time.thread_time()
while not os.path.exists(gate + ".end"):
    before = time.thread_time()
    gc.collect()
    spent += time.thread_time() - before
    rounds += 1
    sum(range(400000))
run = time.thread_time() - begun - spent
with open(expected_path, "w") as out:
    json.dump({"collect_s": spent, "run_s": run, "rounds": rounds}, out)
gc.freeze()  # nothing is left to collect at the end
os._exit(0)
