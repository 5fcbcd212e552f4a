# SPDX-License-Identifier: Apache-2.0
"""train_faults.py - what train_job.py can do wrong, each as a user would have written it. A line that is to
be found carries the mark FAULT and the fault's name: the runner looks its number up.

prepare() is called before the first step, begin() when the fault is switched on, step() in every step from
then on, after_backward() likewise between the backward pass and the optimizer."""
import gc
import json
import mmap
import os
import random
import socket
import threading
import time

import torch


class Fault:
    def prepare(self, job):
        pass

    def begin(self, job):
        pass

    def step(self, job, step):
        pass

    def after_backward(self, job):
        pass


class Loader(Fault):
    """The data set is slow: train_data.py."""

    def begin(self, job):
        job.set_loader_cost(slow=True)


class FewWorkers(Fault):
    def begin(self, job):
        job.start_loader(workers=1)


class GilSpin(Fault):
    """A thread that computes in Python without a pause."""

    def begin(self, job):
        threading.Thread(target=self.count_up, daemon=True, name="statistics").start()

    def count_up(self):
        n = 0
        while True:
            n += 1  # FAULT gil_spin


class GilJson(Fault):
    """A thread that serialises now and then."""

    def prepare(self, job):
        self.rows = [{"step": i, "values": [i * 0.5] * 8, "name": f"layer.{i}"} for i in range(3000)]

    def begin(self, job):
        threading.Thread(target=self.report, daemon=True, name="reporter").start()

    def report(self):
        while True:
            end = time.monotonic() + 0.06
            while time.monotonic() < end:
                json.loads(json.dumps(self.rows))  # FAULT gil_json
            time.sleep(0.03)


class GilShort(Fault):
    """Threads that take the interpreter's lock very often, each time for less than a millisecond."""

    def begin(self, job):
        for i in range(6):
            threading.Thread(target=self.beat, daemon=True, name=f"heartbeat-{i}").start()

    def beat(self):
        while True:
            sum(range(8000))  # FAULT gil_short
            time.sleep(0)


class Unpinned(Fault):
    def prepare(self, job):
        self.table = torch.ones(64 << 20 if job.on_gpu else 4 << 20)

    def step(self, job, step):
        self.copy = self.table.to(job.device)  # FAULT unpinned


class ItemCostly(Fault):
    def after_backward(self, job):
        job.norms = []
        for p in job.model.parameters():
            job.norms.append(p.grad.norm().item())  # FAULT item_costly
            job.norms.append(p.grad.abs().max().item())  # FAULT item_costly


class Collect(Fault):
    def prepare(self, job):
        self.cache = [[i] for i in range(1_500_000)]

    def step(self, job, step):
        if step % 20 == 0:
            gc.collect()  # FAULT gc


class Checkpoint(Fault):
    def step(self, job, step):
        if step % 40 == 0:
            with open(os.path.join(job.folder, "checkpoint.pt"), "wb") as f:
                torch.save(job.model.state_dict(), f)  # FAULT checkpoint
                f.flush()
                os.fsync(f.fileno())  # FAULT checkpoint


class Churn(Fault):
    def step(self, job, step):
        sizes = [random.randrange(1 << 18, 1 << 24) for _ in range(12)]
        buffers = [torch.empty(n, device=job.device) for n in sizes]  # FAULT churn
        del buffers
        if job.on_gpu:
            torch.cuda.empty_cache()  # FAULT churn


class Leak(Fault):
    def prepare(self, job):
        self.history = []

    def step(self, job, step):
        if len(self.history) < 1400:
            self.history.append(torch.zeros(16 << 20 if job.on_gpu else 1 << 16, device=job.device))  # FAULT leak


class LogFsync(Fault):
    """Measures first what a flush costs here: as many as take about as long as a step."""

    def prepare(self, job):
        self.file = open(os.path.join(job.folder, "metrics.log"), "w", encoding="utf-8")
        start = time.monotonic()
        for i in range(5):
            self.write(i)
        self.times = min(max(round(max(0.012, job.step_s) / ((time.monotonic() - start) / 5)), 1), 100)

    def write(self, step):
        self.file.write(f"step {step} " + "x" * 400 + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())  # FAULT log_fsync

    def step(self, job, step):
        for _ in range(self.times):
            self.write(step)


class Recompile(Fault):
    """A kernel made for the shape of the step, and the shape is another one every time."""

    def step(self, job, step):
        if not job.on_gpu:
            return
        scale = 1 + time.time_ns() % 10**9 / 10**9
        code = f"template <typename T> T scale_{step}(T x) {{ return x * T({scale:.9f}) + T({step}); }}"
        kernel = torch.cuda.jiterator._create_jit_fn(code)
        job.scaled = kernel(torch.ones(1024 + step, device=job.device))  # FAULT recompile


class Dynamo(Fault):
    """torch.compile makes the function again for every shape. The backend compiles no kernels: a machine
    without a C compiler is slow enough."""

    def __init__(self):
        import torch._dynamo
        for limit in ("recompile_limit", "cache_size_limit", "accumulated_recompile_limit",
                      "accumulated_cache_size_limit"):
            if hasattr(torch._dynamo.config, limit):
                setattr(torch._dynamo.config, limit, 100000)

    def prepare(self, job):
        self.scale = torch.compile(normalise, backend="eager", dynamic=False)
        self.run(job, 16)

    def run(self, job, length):
        job.scaled = self.scale(torch.ones(8, length, device=job.device))  # FAULT dynamo

    def step(self, job, step):
        self.run(job, 32 + step)


def normalise(x):
    for _ in range(12):
        x = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5)
        x = torch.nn.functional.gelu(x) * 2 + 1
    return x


class Autotune(Fault):
    """cuDNN looks for the best algorithm again, because every batch has another length."""

    def prepare(self, job):
        torch.backends.cudnn.benchmark = True
        self.conv = torch.nn.Conv2d(64, 64, 3, padding=1).to(job.device)
        self.run(job, 64)

    def run(self, job, length):
        job.features = self.conv(torch.ones(8, 64, length, 96, device=job.device))  # FAULT autotune

    def step(self, job, step):
        self.run(job, 32 + step % 400)


class PythonWork(Fault):
    def step(self, job, step):
        self.count_words(max(0.02, job.step_s))

    def count_words(self, seconds):
        end = time.thread_time() + seconds
        words = {}
        while time.thread_time() < end:  # FAULT python_work
            for w in ("loss", "step", "rank", "token"):  # FAULT python_work
                words[w] = words.get(w, 0) + 1  # FAULT python_work


class MetricsLock(Fault):
    """A thread keeps the lock while it waits."""

    def prepare(self, job):
        self.lock, self.rows = threading.Lock(), []

    def begin(self, job):
        threading.Thread(target=self.send_rows, args=(max(0.03, job.step_s * 1.5),), daemon=True,
                         name="metrics").start()

    def send_rows(self, seconds):
        while True:
            with self.lock:
                time.sleep(seconds)  # FAULT metrics_lock
                self.rows.clear()
            time.sleep(0.002)

    def step(self, job, step):
        with self.lock:  # FAULT metrics_lock
            self.rows.append(step)


class Socket(Fault):
    """Asks a server in every step and waits for what it says."""

    def prepare(self, job):
        host, port = job.spec["server"]
        self.s = socket.create_connection((host, port), timeout=10)
        self.seconds = max(0.015, job.step_s)
        self.ask(0)

    def ask(self, seconds):
        self.s.sendall(f"{seconds:.4f}\n".encode())
        self.s.recv(64)  # FAULT socket

    def step(self, job, step):
        try:
            self.ask(self.seconds)
        except OSError:  # the server is gone: the run is over
            pass


class FreshMemory(Fault):
    """Memory that is new to the process in every step: each page costs a page fault."""

    def prepare(self, job):
        self.size = 96 << 20
        self.zeros = bytes(4 << 20)

    def step(self, job, step):
        memory = mmap.mmap(-1, self.size)
        if hasattr(memory, "madvise"):
            memory.madvise(mmap.MADV_NOHUGEPAGE)
        for at in range(0, self.size, len(self.zeros)):
            memory[at:at + len(self.zeros)] = self.zeros  # FAULT fresh_memory
        memory.close()


class HostHoard(Fault):
    """Keeps more host memory in every step; the container's limit is near."""

    def prepare(self, job):
        self.rows = []

    def step(self, job, step):
        if len(self.rows) < 4000:
            self.rows.append(bytearray(os.urandom(1 << 16) * 64))  # FAULT memory_limit


class LargerBatch(Fault):
    """No fault: more work from here on."""

    def begin(self, job):
        job.repeat_batch = 2


FAULTS = {"loader": Loader, "few_workers": FewWorkers, "gil_spin": GilSpin, "gil_json": GilJson, "gil_short": GilShort,
          "unpinned": Unpinned, "item_costly": ItemCostly, "gc": Collect, "checkpoint": Checkpoint,
          "churn": Churn, "leak": Leak, "log_fsync": LogFsync, "recompile": Recompile, "dynamo": Dynamo,
          "autotune": Autotune, "python_work": PythonWork, "metrics_lock": MetricsLock, "socket": Socket,
          "fresh_memory": FreshMemory, "memory_limit": HostHoard, "larger_batch": LargerBatch, "": Fault}
