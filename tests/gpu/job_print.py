# SPDX-License-Identifier: Apache-2.0
"""job_print.py - sampling that prints every step to a collector of logs; then the collector reads slowly."""
import os
import subprocess
import sys
import torch
from job_clock import Clock

COLLECTOR = """import ctypes, os, sys, time
ctypes.CDLL(None).prctl(15, b"log-collector")
while os.read(0, 4096):
    if os.path.exists(sys.argv[1]): time.sleep(0.004)"""


def sample(net, x, log):
    with torch.no_grad():
        x = 0.98 * x + 0.02 * net(x)
        print("step", x.std().item(), "x" * 16000, file=log, flush=True)  # FAULT print
    return x


def main():
    clock = Clock()
    slow, c, n = clock.spec["folder"] + "/slow", clock.size(192, 4), clock.size(16, 1)
    widths = [4, *[c] * 7, 4]
    net = torch.nn.Sequential(*[torch.nn.Conv2d(a, b, 3, padding=1) for a, b in zip(widths, widths[1:])])
    net = net.to(clock.device)
    collector = subprocess.Popen([sys.executable, "-c", COLLECTOR, slow], stdin=subprocess.PIPE, text=True)
    x = torch.randn(n, 4, 64, 64, device=clock.device)
    clock.begin()
    while not clock.over():
        if clock.late() and not os.path.exists(slow):
            open(slow, "w").close()
        x = sample(net, x, collector.stdin)
        clock.tick()
    clock.end()


main()
