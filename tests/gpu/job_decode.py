# SPDX-License-Identifier: Apache-2.0
"""job_decode.py - a language model token by token, each a CUDA graph; then stop sequences are looked for in
all of the text after every token."""
import re
import torch
from job_clock import Clock

STOPS = [re.compile(p) for p in (r"\n\n+User:", r"(\w+ing\s){4}", r"\bthat\b.*\bStop\b", r"(\w+)\s\1\s\1\s\1",
                                 r"\{.*\}", r"```[a-z]*\n", r"[A-Z]{3,}:", r"(the|of|and)\s+END")]


class Streamer:
    def __init__(self, lanes):
        self.text = ["the words of one that came before us, " * 80] * lanes

    def put(self, tokens):
        self.text = [(text + f" w{t}")[-3000:] for text, t in zip(self.text, tokens)]

    def stopped(self):
        return sum(bool(stop.search(text)) for text in self.text for stop in STOPS)  # FAULT decode


@torch.no_grad()
def main():
    clock = Clock()
    width, lanes = clock.size(2048, 64), 8
    layers = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(24)]).to(clock.device)
    state, graph = torch.randn(lanes, width, device=clock.device), None
    if clock.device == "cuda":
        with torch.cuda.stream(torch.cuda.Stream()):
            layers(state)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            token = layers(state).argmax(-1)
    streamer = Streamer(lanes)
    clock.begin()
    while not clock.over():
        if graph:
            graph.replay()
        else:
            token = layers(state).argmax(-1)
        streamer.put(token.tolist())
        if clock.late():
            streamer.stopped()
        clock.tick()
    clock.end()


main()
