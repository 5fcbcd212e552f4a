# SPDX-License-Identifier: Apache-2.0
"""stack_workload.py - a PyTorch training loop that also writes down, from inside, every Python stack
it can have: a few steps run under sys.settrace, and a thread samples sys._current_frames().

  stack_workload.py SECONDS OUT.json
"""
import json
import os
import sys
import threading
import time

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        y = self.norm(x)
        y = torch.relu(self.up(y))
        return x + self.down(y)


class Größe(nn.Module):
    """A name that is not ASCII."""

    def __init__(self, width, depth):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def load_batch(width):
    x = torch.randn(64, width).pin_memory()
    y = torch.randint(0, 10, (64,))
    return x.to("cuda", non_blocking=True), y.to("cuda")


def größter_fehler(losses):
    return max(losses, key=lambda v: float(v))


def train_step(model, optimizer, width):
    x, y = load_batch(width)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
    größter_fehler([loss.detach(), loss.detach() * 2])
    torch.cuda.synchronize()


def train(model, optimizer, width, until):
    steps = 0
    while time.monotonic() < until:
        train_step(model, optimizer, width)
        steps += 1
    return steps


def stack_of(frame):
    frames = []
    while frame is not None:
        frames.append((frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return tuple(frames)


class Witness:
    """All stacks of the calling thread at every line of a few steps."""

    def __init__(self):
        self.seen = set()

    def on_line(self, frame, event, arg):
        self.seen.add(stack_of(frame))
        return self.on_line

    def watch(self, steps, model, optimizer, width):
        sys.settrace(self.on_line)
        train_few(model, optimizer, width, steps)
        sys.settrace(None)


def train_few(model, optimizer, width, steps):
    for _ in range(steps):
        train_step(model, optimizer, width)


class Sampler(threading.Thread):
    """What the main thread is doing, now and then, as the interpreter sees it."""

    def __init__(self, ident):
        super().__init__(daemon=True)
        self.ident_of = ident
        self.seen = {}

    def run(self):
        while True:
            time.sleep(0.001)
            frame = sys._current_frames().get(self.ident_of)
            if frame is not None:
                stack = stack_of(frame)
                self.seen[stack] = self.seen.get(stack, 0) + 1


def main():
    width = 256
    torch.manual_seed(1)
    model = Größe(width, 4).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    train_few(model, optimizer, width, 5)
    print("ready", flush=True)
    steps = train(model, optimizer, width, time.monotonic() + float(sys.argv[1]))
    sampler = Sampler(threading.main_thread().ident)
    sampler.start()
    train(model, optimizer, width, time.monotonic() + 2)
    witness = Witness()
    witness.watch(3, model, optimizer, width)
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        json.dump({"pid": os.getpid(), "steps": steps, "witnessed": sorted(witness.seen),
                   "sampled": [[list(s), n] for s, n in sampler.seen.items()]}, f)
    print("done", flush=True)


if __name__ == "__main__":
    main()
