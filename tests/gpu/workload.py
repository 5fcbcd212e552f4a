# SPDX-License-Identifier: Apache-2.0
"""A PyTorch process that does on a GPU what it is told on its standard input, one command a line, and
answers each with one line of JSON. Commands: steps MODE N (times N training steps), count MODE N (the
same under torch.profiler, with the calls it saw), graph N (captures a CUDA graph, replays it N times),
loader N (N batches from DataLoader workers), nccl N (N all-reduces in a world of one), quit."""
import collections
import gc
import json
import os
import sys
import time

import torch


def model(mode):
    """launch: many small layers, the CPU is the limit; gpu: few large ones, the GPU is."""
    if mode == "launch":
        width, layers, batch = 256, 100, 64
    else:
        width, layers, batch = 8192, 8, 4096
    m = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(layers)]).cuda()
    if mode == "gpu":
        m = m.to(torch.bfloat16)
    x = torch.randn(batch, width, device="cuda", dtype=next(m.parameters()).dtype)
    return m, torch.optim.SGD(m.parameters(), lr=1e-6), x


class Trainer:
    def __init__(self):
        self.made = {}

    def steps(self, mode, n):
        if mode not in self.made:
            self.made[mode] = model(mode)
            self.run(mode, 10)
        torch.cuda.synchronize()
        t = time.perf_counter()
        self.run(mode, n)
        torch.cuda.synchronize()
        return {"step_ms": (time.perf_counter() - t) / n * 1e3}

    def run(self, mode, n):
        m, optimizer, x = self.made[mode]
        for i in range(n):
            loss = m(x).float().sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if i % 10 == 9:
                loss.item()

    def count(self, mode, n):
        self.steps(mode, 10)
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
            torch.cuda.synchronize()
            t0 = time.time_ns()
            self.run(mode, n)
            torch.cuda.synchronize()
            t1 = time.time_ns()
        calls = collections.Counter(e.name for e in p.events() if e.name.startswith("cu"))
        return {"from": t0, "to": t1, "calls": dict(calls)}


def graph(n):
    x = torch.randn(64, 256, device="cuda")
    w = torch.randn(256, 256, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            y = (x @ w).relu()
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = (x @ w).relu()
    for _ in range(n):
        g.replay()
    torch.cuda.synchronize()
    return {"replays": n}


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 100000

    def __getitem__(self, i):
        return torch.full((1024,), float(i))


def loader(n):
    batches = torch.utils.data.DataLoader(Numbers(), batch_size=32, num_workers=2, pin_memory=True)
    for i, batch in enumerate(batches):
        batch.cuda(non_blocking=True)
        if i + 1 == n:
            break
    torch.cuda.synchronize()
    return {"batches": n}


def nccl(n):
    import torch.distributed as dist
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK="0", WORLD_SIZE="1")
    dist.init_process_group("nccl", rank=0, world_size=1)
    t = torch.ones(1009, device="cuda")
    for _ in range(n):
        dist.all_reduce(t)
    torch.cuda.synchronize()
    dist.destroy_process_group()
    return {"collectives": n, "bytes": 1009 * 4, "nccl": ".".join(map(str, torch.cuda.nccl.version()))}


def main():
    gc.disable()
    cpus = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cpus])  # fewer migrations, steadier times
    trainer = Trainer()
    torch.zeros(1, device="cuda")
    print(json.dumps({"pid": os.getpid(), "torch": torch.__version__, "gpu": torch.cuda.get_device_name()}),
          flush=True)
    for line in sys.stdin:
        words = line.split()
        if not words or words[0] == "quit":
            break
        try:
            if words[0] in ("steps", "count"):
                answer = getattr(trainer, words[0])(words[1], int(words[2]))
            else:
                answer = {"graph": graph, "loader": loader, "nccl": nccl}[words[0]](int(words[1]))
        except Exception as e:  # the driver reports it and goes on
            answer = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(answer), flush=True)


main()
