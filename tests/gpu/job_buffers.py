# SPDX-License-Identifier: Apache-2.0
"""job_buffers.py - chunks of a table go to the GPU through one pinned buffer; then through a new one each time."""
import torch
from job_clock import Clock


def stage(chunk, pinned, is_new):
    if is_new:
        return chunk.clone().mul_(1.0)  # FAULT buffers
    return pinned.copy_(chunk)


def main():
    clock = Clock()
    rows, columns = clock.size(24576, 64), clock.size(1024, 16)
    table = torch.randn(2 * rows, columns)
    pinned = torch.empty(rows, columns, pin_memory=clock.device == "cuda")
    weight, at = torch.randn(columns, clock.size(6144, 8), device=clock.device), 0
    clock.begin()
    while not clock.over():
        at = (at + 977) % rows
        x = stage(table[at:at + rows], pinned, clock.late()).to(clock.device, non_blocking=True)
        (x @ weight).relu_().amax().item()
        clock.tick()
    clock.end()


main()
