# SPDX-License-Identifier: Apache-2.0
"""job_graphs.py - scoring by CUDA graphs, one for each padded length; then nothing is padded any more."""
import random
import torch
from job_clock import Clock


class Scorer:
    def __init__(self, clock):
        width = clock.size(768, 16)
        layer = torch.nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, dropout=0.0)
        self.net = torch.nn.TransformerEncoder(layer, clock.size(8, 1)).to(clock.device).train()
        self.width, self.device, self.graphs = width, clock.device, {}

    def capture(self, length):
        x = torch.zeros(4, length, self.width, device=self.device)
        if self.device == "cpu":
            return x, None, self.net(x)
        self.net(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = self.net(x)  # FAULT graphs
        return x, graph, y

    def score(self, length):
        if length not in self.graphs:
            self.graphs[length] = self.capture(length)
        x, graph, y = self.graphs[length]
        x.normal_()
        if graph:
            graph.replay()
        return y.sum().item()


def main():
    clock, rng = Clock(), random.Random(5)
    scorer = Scorer(clock)
    with torch.no_grad():
        for length in range(64, 513, 64):
            scorer.score(length)
        clock.begin()
        while not clock.over():
            length = rng.randint(33, 512)
            scorer.score(length if clock.late() else (length + 63) // 64 * 64)
            clock.tick()
    clock.end()


main()
