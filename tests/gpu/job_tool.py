# SPDX-License-Identifier: Apache-2.0
"""job_tool.py - a convolutional net that asks nvidia-smi for the temperature now and then; then in every step."""
import subprocess
import torch
from job_clock import Clock


def temperature(tool):
    return subprocess.run(tool, capture_output=True, text=True, check=False).stdout  # FAULT tool


def main():
    clock, step = Clock(), 0
    tool = clock.size(["nvidia-smi", "--query-gpu=temperature.gpu", "--format=csv"], ["sleep", "0.05"])
    c, n = clock.size((96, 48), (4, 1))
    net = torch.nn.Sequential(torch.nn.Conv2d(3, c, 3), torch.nn.SiLU(), torch.nn.Conv2d(c, c, 3), torch.nn.SiLU(),
                              torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(c, 10))
    net = net.to(clock.device)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    x, y = torch.randn(n, 3, 96, 96, device=clock.device), torch.zeros(n, dtype=torch.long, device=clock.device)
    clock.begin()
    while not clock.over():
        loss = torch.nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        loss.item()
        step += 1
        if clock.late() or step % 200 == 0:
            temperature(tool)
        clock.tick()
    clock.end()


main()
