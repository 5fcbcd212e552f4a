# SPDX-License-Identifier: Apache-2.0
"""job_file_lock.py - features come from a cache that other jobs use, too, under a lock on its file; then an
indexer holds the lock most of the time."""
import fcntl
import os
import subprocess
import sys
import torch
from job_clock import Clock

INDEXER = """import ctypes, fcntl, sys, time
ctypes.CDLL(None).prctl(15, b"indexer")
with open(sys.argv[1], "r+") as f:
    while True:
        fcntl.flock(f, fcntl.LOCK_EX); time.sleep(0.04); fcntl.flock(f, fcntl.LOCK_UN); time.sleep(0.01)"""


class Cache:
    def __init__(self, path, size):
        with open(path, "wb") as f:
            f.write(os.urandom(size))
        self.file = open(path, "r+b")

    def read(self):
        fcntl.flock(self.file, fcntl.LOCK_SH)  # FAULT file_lock
        try:
            self.file.seek(0)
            return torch.frombuffer(bytearray(self.file.read()), dtype=torch.uint8)
        finally:
            fcntl.flock(self.file, fcntl.LOCK_UN)


def main():
    clock, indexer = Clock(), None
    dim = clock.size(2048, 64)
    cache = Cache(clock.spec["folder"] + "/cache", dim * dim)
    net = torch.nn.Sequential(torch.nn.Linear(dim, 4 * dim), torch.nn.ReLU(), torch.nn.Linear(4 * dim, dim))
    net = net.to(clock.device)
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    clock.begin()
    while not clock.over():
        x = cache.read().view(dim, dim).to(clock.device).float() / 255
        loss = (net(x) - x).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        loss.item()
        if clock.late() and not indexer:
            indexer = subprocess.Popen([sys.executable, "-c", INDEXER, cache.file.name])
        clock.tick()
    clock.end()


main()
