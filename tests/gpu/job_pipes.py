# SPDX-License-Identifier: Apache-2.0
"""job_pipes.py - reinforcement learning: environments in processes of their own, started before anything uses
the GPU and asked over pipes; then one of them has far more to compute, and all wait for it."""
import multiprocessing as mp
import random
from job_clock import Clock


class Environment:
    def __init__(self, seed):
        self.rng, self.things = random.Random(seed), []
        self.grow(30)

    def grow(self, n):
        self.things += [(self.rng.random(), self.rng.random()) for _ in range(n)]

    def step(self, is_late):
        if is_late and len(self.things) < 300:
            self.grow(270)
        return [self.near(x, y) for x, y in self.things][:30]

    def near(self, x, y):
        return sum(abs(x - u) < 0.01 and abs(y - v) < 0.01 for u, v in self.things)  # FAULT pipes


def environment(conn, seed):
    env = Environment(seed)
    while (word := conn.recv()) != "end":
        conn.send(env.step(word == "late" and seed == 3))


def main():
    clock, pipes = Clock(), []
    for seed in range(6):
        ours, theirs = mp.Pipe()
        mp.Process(target=environment, args=(theirs, seed), daemon=True).start()
        pipes.append(ours)
    import torch
    policy = torch.nn.Sequential(torch.nn.Linear(30, clock.size(2048, 64)), torch.nn.Tanh(),
                                 torch.nn.Linear(clock.size(2048, 64), 1)).to(clock.device)
    opt = torch.optim.RMSprop(policy.parameters(), lr=1e-4)
    clock.begin()
    while not clock.over():
        word = "late" if clock.late() else "go"
        for p in pipes:
            p.send(word)
        seen = torch.tensor([p.recv() for p in pipes], dtype=torch.float32, device=clock.device)
        loss = policy(seen).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        loss.item()
        clock.tick()
    clock.end()


if __name__ == "__main__":
    main()
