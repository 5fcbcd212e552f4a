# SPDX-License-Identifier: Apache-2.0
"""job_bursts.py - a server whose requests come in bursts, with nothing to do in between. Nothing is wrong."""
import queue
import random
import threading
import time
import torch
from job_clock import Clock


def main():
    clock, todo, rng = Clock(), queue.Queue(), random.Random(9)
    width = clock.size(3072, 16)
    net = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(16)]).to(clock.device)

    def ask():
        while not clock.over():
            for _ in range(rng.randint(5, 30)):
                todo.put(rng.choice((8, 16, 32)))
            time.sleep(rng.uniform(0.05, 0.5))
        todo.put(None)

    clock.begin()
    threading.Thread(target=ask).start()
    with torch.no_grad():
        while (rows := todo.get()) is not None:
            net(torch.randn(rows, width, device=clock.device)).sum().item()
            clock.tick()
    clock.end()


main()
