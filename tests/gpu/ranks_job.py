# SPDX-License-Identifier: Apache-2.0
"""ranks_job.py - the ranks of one distributed job on one GPU, for ranks.py: real NCCL, each rank a host of its own
(NCCL_HOSTID), sockets between them.

  ranks_job.py      imports PyTorch, then forks the ranks of each job that a line of JSON on stdin describes

A process that was forked keeps the environment of its exec in /proc: its rank is written there too, as if torchrun
had started it. What a rank did (the start of each step by the clock, when its fault began) is in rank-N.json."""
import ctypes
import json
import os
import random
import signal
import sys
import time
import traceback

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

from ranks_job_board import FAULT_AT, FAULT_TO, GATE, RELEASE, STEPS, STOP_AT, Board


def busy(seconds):
    end = time.thread_time() + seconds
    n = 0
    while time.thread_time() < end:
        n = (n * 31 + 7) % 65521
    return n


# What faults do, each in a function that the answer must name.

def slow_augment(seconds):
    end = time.thread_time() + seconds
    n = 0
    while time.thread_time() < end:
        n = (n * 33 + 5) % 65521
    return n


def fetch_features(seconds):
    time.sleep(seconds)


def decode_sample(seconds):
    end = time.thread_time() + seconds
    n = 0
    while time.thread_time() < end:
        n = (n * 35 + 3) % 65521
    return n


def extra_products(job, count):
    for _ in range(count):
        torch.mm(job.extra, job.extra, out=job.extra_out)


def save_checkpoint(job, path):
    with open(path, "wb") as f:
        torch.save({"model": [p.detach().cpu() for p in job.parameters()], "state": job.ballast}, f)
        f.flush()
        os.fsync(f.fileno())


def wait_for_operator(board):
    while not board.get(RELEASE):
        time.sleep(0.05)


def reduce_other_size(job):
    dist.all_reduce(torch.zeros(4096, device=job.device))


def evaluate(job, batches):
    with torch.no_grad():
        for _ in range(batches):
            job.local_forward()
    torch.cuda.synchronize()


class Samples(IterableDataset):
    """Batches by a worker process: their cost is the loader's."""

    def __init__(self, rank, spec, board):
        self.rank, self.spec, self.board = rank, spec, board

    def __iter__(self):
        while True:
            slow = self.spec["fault"] == "loader" and self.rank == self.spec["rank"] and \
                self.board.get(FAULT_AT) <= max(self.board.get(STEPS + self.rank), 0)
            decode_sample(self.spec["amount"] if slow else self.spec["decode_s"])
            yield torch.randn(64, 256)


class Reduce(torch.autograd.Function):
    """Sum over the tensor group, in forward or in backward."""

    @staticmethod
    def forward(ctx, x, group, backward):
        ctx.group, ctx.backward_too = group, backward
        if not backward:
            x = x.clone()
            dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, grad):
        if ctx.backward_too:
            grad = grad.clone()
            dist.all_reduce(grad, group=ctx.group)
        return grad, None, None


class Block(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class TensorBlock(Block):
    """Half of a block's columns and rows each."""

    def __init__(self, width, inner, group, size):
        super().__init__(width, inner // size // 64 * 64)
        self.group = group

    def forward(self, x):
        y = Reduce.apply(self.norm(x), self.group, True)
        return x + Reduce.apply(self.down(torch.relu(self.up(y))), self.group, False)


class Job:
    """What all kinds have in common: data, faults, the optimizer."""

    def __init__(self, rank, spec, board):
        self.rank, self.spec, self.board, self.world = rank, spec, board, spec["ranks"]
        self.device = torch.device("cuda", 0) if spec["backend"] == "nccl" else torch.device("cpu")
        self.kind = torch.bfloat16 if spec["backend"] == "nccl" else torch.float32
        self.chance = random.Random(spec["seed"] * 100 + rank)
        self.width, self.inner = spec["width"], 4 * spec["width"]
        self.batch = spec["batch"]
        self.make()
        self.optimizer = torch.optim.AdamW(list(self.parameters()), lr=1e-5, fused=spec["backend"] == "nccl")
        n = 8192 if spec["backend"] == "nccl" else 64
        if spec["fault"] == "gpu" and rank == spec["rank"]:
            self.extra = torch.randn(n, n, device=self.device, dtype=self.kind)
            self.extra_out = torch.empty_like(self.extra)
        if spec["fault"] == "checkpoint":
            self.ballast = torch.zeros(spec["ballast_bytes"] // 4)

    def blocks(self, count):
        return nn.Sequential(*[Block(self.width, self.inner) for _ in range(count)]).to(self.device, self.kind)

    def parameters(self):
        return self.model.parameters()

    def rows(self):
        """Rows of this step's batch: sequences differ in length where load moves, or by chance in every job."""
        n = self.batch
        if self.spec["fault"] == "moving" and self.is_on:
            n = int(n * self.chance.lognormvariate(0, self.spec["amount"]))
        elif self.spec["uneven"]:
            n = int(n * self.chance.uniform(1 - self.spec["uneven"], 1 + self.spec["uneven"]))
        return max(n // 64, 1) * 64

    def input(self, rows=None):
        return torch.randn(rows or self.rows(), self.width, device=self.device, dtype=self.kind)

    def local_forward(self):
        self.model(self.input(self.batch))

    def train(self, step):
        loss = self.model(self.input()).float().square().mean()
        loss.backward()
        return loss

    def step(self, step):
        loss = self.train(step)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        if step % self.spec["sync_every"] == 0:
            self.loss = loss.item()


class Data(Job):
    def make(self):
        self.net = self.blocks(self.spec["layers"])
        self.model = nn.parallel.DistributedDataParallel(
            self.net, device_ids=[0] if self.device.type == "cuda" else None, bucket_cap_mb=self.spec["bucket_mb"])

    def local_forward(self):
        self.net(self.input(self.batch))

    def train(self, step):
        for _ in range(self.spec["accumulate"] - 1):
            with self.model.no_sync():
                super().train(step)
        return super().train(step)


class Sharded(Job):
    def make(self):
        from torch.distributed.fsdp import FullyShardedDataParallel
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy
        self.model = FullyShardedDataParallel(self.blocks(self.spec["layers"]), device_id=self.device,
                                              auto_wrap_policy=ModuleWrapPolicy({Block}))


class Tensor(Job):
    """Tensor groups of two or of all; data parallel across them."""

    def make(self):
        size = self.spec["tensor"] or self.world
        groups = [dist.new_group(list(range(g, g + size))) for g in range(0, self.world, size)]
        across = [dist.new_group(list(range(g, self.world, size))) for g in range(size)]
        self.group, self.replicas = groups[self.rank // size], across[self.rank % size]
        self.count = self.world // size
        self.chance = random.Random(self.spec["seed"] * 100 + self.rank // size)    # one batch for all of a group
        self.model = nn.Sequential(*[TensorBlock(self.width, self.inner, self.group, size)
                                     for _ in range(self.spec["layers"])]).to(self.device, self.kind)

    def train(self, step):
        torch.manual_seed(step + self.rank // (self.spec["tensor"] or self.world))
        loss = super().train(step)
        if self.count > 1:
            for p in self.parameters():
                dist.all_reduce(p.grad, group=self.replicas)
        return loss


class Pipeline(Job):
    """A stage a rank: 1F1B, Sends and Recvs that block, or that overlap the next micro-batch."""

    def make(self):
        self.stages = self.spec["stages"] or self.world
        self.stage, self.replica = self.rank // (self.world // self.stages), self.rank % (self.world // self.stages)
        each = self.world // self.stages
        self.before, self.after = self.rank - each, self.rank + each
        self.first, self.last = self.stage == 0, self.stage == self.stages - 1
        groups = [dist.new_group(list(range(s * each, (s + 1) * each))) for s in range(self.stages)]
        # A direction of a pair has a communicator, and so a stream, of its own: they cannot block each other.
        self.forth, self.back = ([dist.new_group([r, r + each]) for r in range(self.world - each)] for _ in range(2))
        self.group, self.each = groups[self.stage], each
        self.meet(each)
        self.model = self.blocks(self.spec["layers"] + (self.spec["last_extra"] if self.last else 0))

    def meet(self, each):
        """Communicators are made one after the other: one that is made beside a Recv that waits never gets ready."""
        token = torch.zeros(1, device=self.device)
        for r in range(self.world - each):
            for group, source, target in ((self.forth[r], r, r + each), (self.back[r], r + each, r)):
                if self.rank == source:
                    dist.send(token, target, group=group)
                elif self.rank == target:
                    dist.recv(token, source, group=group)
                token.cpu()

    def input(self, rows=None):
        return super().input(rows or self.batch // self.spec["microbatches"])

    def receive(self, source):
        x = torch.empty(self.batch // self.spec["microbatches"], self.width, device=self.device, dtype=self.kind)
        group = self.forth[source] if source == self.before else self.back[self.rank]
        return x, dist.irecv(x, source, group=group)

    def forward(self, x):
        x.requires_grad_()
        y = self.model(x)
        self.flight.append((x, y))
        if not self.last:
            self.sent.append(dist.isend(y.detach(), self.after, group=self.forth[self.rank]))

    def backward(self, grad):
        x, y = self.flight.pop(0)
        if self.last:
            y.float().square().mean().backward()
        else:
            y.backward(grad)
        if not self.first:
            self.sent.append(dist.isend(x.grad, self.before, group=self.back[self.before]))

    def next_forward(self):
        return (self.input(), None) if self.first else self.receive(self.before)

    def train(self, step):
        count = self.spec["microbatches"]
        ahead = min(self.stages - self.stage - 1, count)
        self.flight, self.sent = [], []
        order = ["f"] * ahead + ["f", "b"] * (count - ahead) + ["b"] * ahead
        posted = {"f": None, "b": None}
        for i, what in enumerate(order):
            x, work = posted[what] or (self.next_forward() if what == "f" else
                                       (None, None) if self.last else self.receive(self.after))
            posted[what] = None
            if self.spec["overlap"] and i + 1 < len(order):    # posted before it is needed, under this one's work
                nxt = order[i + 1]
                if nxt == "f" and not self.first:
                    posted["f"] = self.receive(self.before)
                elif nxt == "b" and not self.last:
                    posted["b"] = self.receive(self.after)
            if work:
                work.wait()
            if what == "f":
                self.forward(x)
            else:
                self.backward(x)
        for work in self.sent:
            work.wait()
        if self.each > 1:
            for p in self.parameters():
                dist.all_reduce(p.grad, group=self.group)
        norm = torch.stack([p.grad.float().square().sum() for p in self.parameters()]).sum()
        if self.spec["clip"]:
            dist.all_reduce(norm)
        return norm


class Experts(Job):
    def make(self):
        self.model = self.blocks(self.spec["layers"])
        self.batch -= self.batch % (64 * self.world)    # everybody gets as much

    def train(self, step):
        x = self.input().requires_grad_()
        for block in self.model:
            x = Exchange.apply(block(Exchange.apply(x)))
        loss = x.float().square().mean()
        loss.backward()
        flat = torch.cat([p.grad.flatten() for p in self.model[0].parameters()])
        dist.all_reduce(flat)
        return loss


class Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        dist.all_to_all_single(y, x.contiguous())
        return y

    backward = forward


KINDS = {"ddp": Data, "fsdp": Sharded, "tensor": Tensor, "pipeline": Pipeline, "experts": Experts}


class Fault:
    """Begins when the board says so; notes when it first did, and when it was first over."""

    def __init__(self, job, board, log):
        self.job, self.spec, self.board, self.log = job, job.spec, board, log
        self.times = 0

    def step(self, step):
        s = self.spec
        on = self.board.get(FAULT_AT) <= step < self.board.get(FAULT_TO)
        self.job.is_on = on
        if s["evaluate_every"] and step % s["evaluate_every"] == s["evaluate_every"] - 1 and \
                (s["evaluate_all"] or self.job.rank == 0):
            evaluate(self.job, s["evaluate_batches"])
        if not on or s["fault"] in ("none", "moving", "loader") or (step - self.board.get(FAULT_AT)) % s["period"] or \
                (s["rank"] != self.job.rank and s["rank"] != -1):
            return
        self.log.setdefault("fault_ns", []).append(time.time_ns())
        self.act(step, s)
        if self.times == 0:
            self.log["fault_over_ns"] = time.time_ns()
        self.times += 1

    def act(self, step, s):
        if s["fault"] == "host":
            slow_augment(s["amount"])
        elif s["fault"] == "sleep":
            fetch_features(s["amount"])
        elif s["fault"] == "gpu":
            extra_products(self.job, int(s["amount"]))
        elif s["fault"] == "checkpoint":
            save_checkpoint(self.job, s["checkpoint"])
        elif s["fault"] == "hang" and self.times == 0:
            wait_for_operator(self.board)
        elif s["fault"] == "mismatch" and self.times == 0:
            reduce_other_size(self.job)
        elif s["fault"] == "link" and self.times == 0:
            ctypes.CDLL(None).ranks_pace(ctypes.c_uint64(int(s["amount"])))


def write_environment(values):
    """Into the memory that /proc/PID/environ shows: as many digits as were there."""
    fields = open("/proc/self/stat").read().rsplit(")", 1)[1].split()
    begin, end = int(fields[47]), int(fields[48])
    text = b"\0" + ctypes.string_at(begin, end - begin)
    for name, value in values.items():
        at = text.index(f"\0{name}=".encode()) + len(name) + 1
        ctypes.memmove(begin + at, str(value).encode(), len(str(value)))
        os.environ[name] = str(value)


def loader_of(rank, spec, board):
    if not spec["decode_s"]:
        return None
    loader = iter(DataLoader(Samples(rank, spec, board), batch_size=None, num_workers=1, prefetch_factor=2))
    next(loader)
    return loader


def start_group(rank, spec):
    if spec["backend"] == "nccl":
        torch.cuda.set_device(0)
        torch.zeros(1, device="cuda")
    dist.init_process_group(spec["backend"], init_method=f"tcp://{spec['master']}", rank=rank, world_size=spec["ranks"])


def run_rank(rank, spec, log):
    board = Board(spec["board"])
    write_environment({"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": spec["ranks"]})
    os.environ.update(spec["environment"], NCCL_HOSTID=f"{spec['name']}-{rank}")
    if spec["cpus"]:
        os.sched_setaffinity(0, spec["cpus"][rank])
    if spec["namespaces"]:
        os.setns(os.open(spec["namespaces"][rank], os.O_RDONLY), 0x40000000)
    torch.manual_seed(spec["seed"])
    torch.set_num_threads(1)
    loader = loader_of(rank, spec, board)
    if spec["backend"] == "nccl":
        torch.cuda.set_device(0)
        torch.zeros(1, device="cuda")
    board.set(STEPS + rank, -2)
    while not board.get(GATE):
        time.sleep(0.01)
    start_group(rank, spec)
    job = KINDS[spec["kind"]](rank, spec, board)
    fault, step, starts = Fault(job, board, log), 0, log["steps"]
    while step < board.get(STOP_AT):
        board.set(STEPS + rank, step)
        starts.append(time.time_ns())
        if loader is not None:
            next(loader).to(job.device)
        busy(spec["host_s"] * job.chance.uniform(0.8, 1.2))
        fault.step(step)
        job.step(step)
        step += 1
    if job.device.type == "cuda":
        torch.cuda.synchronize()
    dist.barrier()
    dist.destroy_process_group()


def rank_main(rank, spec):
    log = {"rank": rank, "pid": os.getpid(), "steps": []}
    path = os.path.join(spec["folder"], f"rank-{rank}.json")
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        run_rank(rank, spec, log)
    except BaseException:
        log["error"] = traceback.format_exc()[-1500:]
    with open(path + ".part", "w", encoding="utf-8") as f:
        json.dump(log, f)
    os.rename(path + ".part", path)
    os._exit(1 if "error" in log else 0)


def set_monotonic(seconds):
    """The next child's monotonic clock is ahead by so much: each machine counts from its own boot."""
    try:
        os.unshare(0x80)    # CLONE_NEWTIME
        with open("/proc/self/timens_offsets", "w", encoding="ascii") as f:
            f.write(f"monotonic {seconds} 0\nboottime {seconds} 0\n")
    except (AttributeError, OSError) as e:
        print(f"no time namespace: {e}", file=sys.stderr)


def main():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)    # ranks that end are nobody's zombies
    print(json.dumps({"imported": torch.__version__}), flush=True)
    for line in sys.stdin:
        spec = json.loads(line)
        pids = []
        for rank in range(spec["ranks"]):
            set_monotonic(spec["monotonic_s"][rank])
            pid = os.fork()
            if not pid:
                rank_main(rank, spec)
            pids.append(pid)
        print(json.dumps({"pids": pids}), flush=True)


if __name__ == "__main__":
    main()
