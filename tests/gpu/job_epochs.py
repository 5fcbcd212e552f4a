# SPDX-License-Identifier: Apache-2.0
"""job_epochs.py - training over files; then the files become tiny, and the loader's workers start anew all the time."""
import torch
from torch.utils.data import DataLoader, Dataset
from job_clock import Clock

ROWS = 64


class Part(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return self.rows

    def __getitem__(self, i):
        return torch.full((256,), float(i % 97)), i % 10


def batches(clock):
    while not clock.over():
        part = Part(ROWS * (8 if clock.late() else 1 << 16))
        for batch in DataLoader(part, batch_size=ROWS, num_workers=2):  # FAULT epochs
            yield batch
            if clock.over() or (clock.late() and len(part) > ROWS * 8):
                break


def main():
    clock = Clock()
    width, depth = clock.size(4096, 32), clock.size(6, 1)
    layers = [torch.nn.Linear(256, width), torch.nn.ReLU()]
    for _ in range(depth):
        layers += [torch.nn.Linear(width, width), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(width, 10)).to(clock.device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    clock.begin()
    for x, y in batches(clock):
        loss = torch.nn.functional.cross_entropy(net(x.to(clock.device)), y.to(clock.device))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
        clock.tick()
    clock.end()


main()
