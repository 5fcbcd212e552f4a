# SPDX-License-Identifier: Apache-2.0
"""fork_use.py - CUDA in forked children. Usage: fork_use.py LIBRARY MODE CHILDREN CALLS GATE.

MODE after: the parent uses CUDA, then forks CHILDREN that each make CALLS calls, as a program does that
forks its workers too late. before: it forks first. refused: no child; the parent itself makes CALLS calls
with a wrong argument. Prints {pid: {error: calls}} of whoever made calls after the gate, which is that of
gate.h, as JSON."""
import collections
import ctypes
import json
import os
import sys
import time

library, mode, children, calls, gate = sys.argv[1:6]
rt = ctypes.CDLL(library)
rt.cudaMalloc.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t]
rt.cudaFree.argtypes = [ctypes.c_void_p]


def allocate():
    return rt.cudaMalloc(ctypes.byref(ctypes.c_void_p()), 4096)


def made(call):
    return dict(collections.Counter(call() for _ in range(int(calls))))


def child():
    """The reading end of what a child made."""
    out, into = os.pipe()
    if os.fork():
        os.close(into)
        return out
    os.write(into, json.dumps({os.getpid(): made(allocate)}).encode())
    os._exit(0)


open(gate + ".ready", "w").close()
while not os.path.exists(gate):
    time.sleep(0.01)
found = {}
if mode == "after":
    assert allocate() == 0
if mode == "refused":
    assert allocate() == 0
    found[os.getpid()] = made(lambda: rt.cudaFree(1))
else:
    for reader in [child() for _ in range(int(children))]:
        with os.fdopen(reader, "rb") as f:
            found.update(json.loads(f.read()))
        os.wait()
if mode == "before":
    assert allocate() == 0
print(json.dumps(found))
