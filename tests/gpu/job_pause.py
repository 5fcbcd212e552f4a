# SPDX-License-Identifier: Apache-2.0
"""job_pause.py - nothing wrong: between epochs the job waits on purpose, so that others get the GPU."""
import time
import torch
from job_clock import Clock


def main():
    clock = Clock()
    h, batch = clock.size((4096, 2048), (64, 16))
    net = torch.nn.Sequential(*[m for _ in range(5) for m in (torch.nn.Linear(h, h), torch.nn.ReLU())]).to(clock.device)
    opt = torch.optim.Adam(net.parameters(), lr=1e-5)
    x = torch.randn(batch, h, device=clock.device)
    clock.begin()
    while not clock.over():
        end = time.monotonic() + 1.3
        while time.monotonic() < end:
            loss = net(x).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            loss.item()
            clock.tick()
        time.sleep(1.5)
    clock.end()


main()
