# SPDX-License-Identifier: Apache-2.0
"""job_feed.py - frames come through a pipe from a program that is nobody's child; then that one takes its time."""
import os
import subprocess
import sys
import torch
from job_clock import Clock

FEEDER = """import ctypes, os, sys, time
ctypes.CDLL(None).prctl(15, b"frame-feeder")
frame = bytes(int(sys.argv[3]))
def deliver(fd):
    if os.path.exists(sys.argv[2]): time.sleep(0.03)
    for at in range(0, len(frame), 1 << 16): os.write(fd, frame[at:at + (1 << 16)])
fd = os.open(sys.argv[1], os.O_WRONLY)
while True: deliver(fd)"""


def read_frame(fifo, size):
    return fifo.read(size)  # FAULT feed


def main():
    clock = Clock()
    folder, size = clock.spec["folder"], clock.size(1 << 19, 1 << 12)
    path, slow = folder + "/frames", folder + "/slow"
    os.mkfifo(path)
    subprocess.run(["setsid", "-f", sys.executable, "-c", FEEDER, path, slow, str(size)], check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    weight = torch.randn(size // 256, clock.size(4096, 16), device=clock.device)
    with open(path, "rb") as fifo:
        os.unlink(path)
        clock.begin()
        while not clock.over():
            if clock.late() and not os.path.exists(slow):
                open(slow, "w").close()
            frame = torch.frombuffer(bytearray(read_frame(fifo, size)), dtype=torch.uint8)
            x = frame.to(clock.device).view(256, -1).float()
            (x @ weight).relu().sum().item()
            clock.tick()
    clock.end()


main()
