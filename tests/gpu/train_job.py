# SPDX-License-Identifier: Apache-2.0
"""train_job.py - a training job for accuracy.py: a small transformer, DataLoader, AdamW, bf16 autocast.

  train_job.py SPEC.json

Says "imported", "ready" (after its warm-up) and "done" as lines of JSON; obeys single letters on its standard
input: g begin, f fault on, s stop. At the end it writes its step log: the start of every step by the clock.
With "neighbour" in the specification it is another user of the GPU instead, which computes between f and s."""
import json
import os
import random
import select
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

import train_data
import train_faults

WARM_STEPS = 10


def say(**what):
    print(json.dumps(what), flush=True)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q @ k.transpose(-2, -1)) * (w // self.heads) ** -0.5
        return self.out((scores.softmax(-1).to(v.dtype) @ v).transpose(1, 2).reshape(b, t, w))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, width, layers, heads, vocabulary):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), tokens[:, 1:].flatten())


class Job:
    def __init__(self, spec):
        self.spec = spec
        self.folder, self.device = spec["folder"], spec["device"]
        self.on_gpu = self.device != "cpu"
        self.random = random.Random(spec["seed"])
        self.fault = train_faults.FAULTS[spec["fault"]]()
        self.is_faulty = False
        self.repeat_batch = 1
        self.batches, self.earlier = None, []
        self.losses, self.log, self.events = [], [], {}
        self.step_s = 0.02
        self.lengths = [spec["seq"] * k // 8 for k in range(1, 9)] if spec["varied"] else [spec["seq"]]

    def build(self):
        """What needs no GPU."""
        s = self.spec
        torch.manual_seed(s["seed"])
        self.model = Transformer(s["width"], s["layers"], 8, s["vocabulary"])
        shard = train_data.Shard(s["shard"]) if s["shard"] else None
        self.data = train_data.Tokens(s["seq"], s["vocabulary"], s["loader_fault"], shard)

    def start(self):
        self.model.to(self.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.set_loader_cost(slow=False, factor=0)
        self.start_loader(self.spec["workers"])
        for step in range(max(WARM_STEPS, len(self.lengths) + 2)):
            if step == WARM_STEPS - 4:
                self.finish_gpu()
                start = time.monotonic()
            if self.spec["varied"]:
                self.length = self.lengths[step % len(self.lengths)]
            train_step(self, step, warm=True)
            if step == WARM_STEPS - 1:
                self.finish_gpu()
                self.step_s = (time.monotonic() - start) / 4
        self.set_loader_cost(slow=False)
        self.fault.prepare(self)
        self.finish_gpu()

    def finish_gpu(self):
        if self.on_gpu:
            torch.cuda.synchronize()

    def set_loader_cost(self, slow, factor=None):
        """A batch takes a worker so many steps to decode, and so many more while the loader is slow."""
        decode = self.spec["decode_steps"] if factor is None else factor
        per_sample = self.step_s / self.spec["batch"]
        train_data.set_cost(decode * per_sample, self.spec["slow_steps"] * per_sample, slow)

    def start_loader(self, workers):
        """An earlier one keeps its idle workers: ending them takes time that is nobody's fault."""
        self.earlier.append(self.batches)
        self.batches = iter(train_data.make_loader(self.data, self.spec["batch"], workers, self.on_gpu))

    def is_told_to_stop(self):
        ready, _, _ = select.select([0], [], [], 0)
        if not ready:
            return False
        letters = os.read(0, 16)
        if b"f" in letters and not self.is_faulty:
            self.is_faulty = True
            self.events["fault_ns"] = time.time_ns()
            self.events["memory_at_fault"] = self.memory()
            self.fault.begin(self)
        return not letters or b"s" in letters

    def memory(self):
        return torch.cuda.memory_allocated() if self.on_gpu else 0

    def write_log(self):
        self.events.update(end_ns=time.time_ns(), memory_at_end=self.memory(), pid=os.getpid())
        with open(self.spec["log"], "w", encoding="utf-8") as f:
            json.dump({"steps_ns": self.log, "step_s": self.step_s, **self.events}, f)


def evaluate(job):
    job.model.eval()
    with torch.no_grad(), torch.autocast(job.device, dtype=torch.bfloat16):
        losses = [job.model(next(job.batches).to(job.device, non_blocking=True)) for _ in range(12)]
    job.losses.append(torch.stack(losses).mean().item())
    job.model.train()


def next_batch(job, warm):
    tokens = next(job.batches)
    if job.spec["varied"]:
        if not warm:
            job.length = job.random.choice(job.lengths)
        tokens = tokens[:, :job.length]
    if job.repeat_batch > 1:
        tokens = tokens.repeat(job.repeat_batch, 1)
        tokens = tokens.pin_memory() if job.on_gpu else tokens
    return tokens.to(job.device, non_blocking=True)


def train_step(job, step, warm=False):
    tokens = next_batch(job, warm)
    with torch.autocast(job.device, dtype=torch.bfloat16):
        loss = job.model(tokens)
    accumulate = job.spec["accumulate"]
    (loss / accumulate).backward()
    if job.is_faulty:
        job.fault.after_backward(job)
    if step % accumulate == accumulate - 1:
        job.optimizer.step()
        job.optimizer.zero_grad(set_to_none=True)
    every = job.spec["sync_every"]
    if every and step % every == every - 1:
        job.losses.append(loss.item())


def train(job):
    step = 0
    while not job.is_told_to_stop():
        job.log.append(time.time_ns())
        if job.is_faulty:
            job.fault.step(job, step)
        train_step(job, step)
        step += 1
        if job.spec["evaluate_every"] and step % job.spec["evaluate_every"] == 0:
            evaluate(job)


def serve(job):
    """Answers requests that come at random times; idle most of the time."""
    tokens = torch.randint(0, job.spec["vocabulary"], (1, job.spec["seq"])).to(job.device)
    job.model.eval()
    while not job.is_told_to_stop():
        time.sleep(min(job.random.expovariate(12), 0.4))
        job.log.append(time.time_ns())
        with torch.no_grad(), torch.autocast(job.device, dtype=torch.bfloat16):
            job.losses.append(job.model(tokens).item())


def neighbour(spec):
    """Another user of the GPU: idle until told."""
    open("/proc/self/comm", "w").write("other-job")
    os.read(0, 1)
    n = 12288 if spec["device"] != "cpu" else 64
    a = torch.randn(n, n, device=spec["device"], dtype=torch.bfloat16)
    b = a @ a
    if spec["device"] != "cpu":
        torch.cuda.synchronize()
    say(ready=os.getpid())
    letter = os.read(0, 1)
    while letter == b"f" and not select.select([0], [], [], 0)[0]:
        for _ in range(4):
            torch.matmul(a, a, out=b)
        b[0, 0].item()
    os._exit(0)


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        spec = json.load(f)
    if spec.get("neighbour"):
        say(imported=os.getpid())
        neighbour(spec)
    job = Job(spec)
    job.build()
    say(imported=os.getpid())
    if spec["wait"]:
        os.read(0, 1)
    job.start()
    say(ready=os.getpid(), step_ms=round(job.step_s * 1e3, 2), torch=torch.__version__,
        gpu=torch.cuda.get_device_name() if job.on_gpu else "none")
    if spec["serve"]:
        serve(job)
    else:
        train(job)
    job.write_log()
    say(done=os.getpid())
    os._exit(0)  # loader workers are ended with the process group


if __name__ == "__main__":
    main()
