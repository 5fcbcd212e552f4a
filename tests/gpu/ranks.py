#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ranks.py - several ranks of real NCCL on one GPU, with faults put in while they train: recorded by `ingero trace`, told by
`ingero fleet-push`, judged by `ingero-cluster fleet` while they run and by `ingero explain` afterwards.

  sudo python3 ranks.py --out FOLDER [--seed 1] [--only a,b] [--budget-s 300]    beside it: ingero, ingero-cluster, ranks_*.py
  python3 ranks.py --score FOLDER... [--ingero PATH]                             the table; explains what was not explained yet
  python3 ranks.py --score FOLDER... --replay build/bench/ranks_replay           likewise, with what the service would say now

Each run leaves NAME.json (truth, what the service said and when) and NAME.db.xz, of several nodes NAME-N.db.xz. NCCL takes
two ranks on one GPU for hosts of their own by NCCL_HOSTID; MPS lets their kernels run side by side."""
import argparse
import concurrent.futures
import json
import lzma
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import ranks_scenarios as scenarios
import ranks_score
from ranks_job_board import FAULT_AT, FAULT_TO, GATE, NEVER, RELEASE, STEPS, STOP_AT, Board
from ranks_machine import HERE, NETWORK, Failed, Nodes, Outside, Service, Tracer, Zygote, alive, quiet, wait_until

START_LIMIT_S, END_LIMIT_S = 30, 20


class Run:
    """One job, traced and judged from its beginning to its end."""

    def __init__(self, bench, scenario, seed, cpus):
        self.bench, self.s, self.seed, self.cpus = bench, scenario, seed, cpus
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=scenario.name + ".", dir=bench.work))
        self.jobs = []

    def start_job(self, spec, index):
        folder = self.folder / f"job{index}"
        folder.mkdir()
        board = folder / "board"
        board.write_bytes(bytes(4096))
        as_nodes = self.s.tracers == "nodes" and self.bench.nodes.paths
        master = f"{NETWORK}.1" if as_nodes else "127.0.0.1"
        all_ranks = spec["ranks"] + (self.s.beside["ranks"] if self.s.beside else 0)
        each = max(len(self.cpus) // all_ranks, 1)
        first = index * spec["ranks"] * each
        cpus = [[self.cpus[(first + r * each + k) % len(self.cpus)] for k in range(each)] for r in range(spec["ranks"])]
        spec.update(name=f"{self.s.name}-{index}", folder=str(folder), board=str(board), master=f"{master}:{self.bench.next_port()}",
                    namespaces=self.bench.nodes.paths[:spec["ranks"]] if as_nodes else [], cpus=cpus,
                    checkpoint=str(folder / "checkpoint.pt"),
                    monotonic_s=[1000 * r if self.s.tracers == "nodes" else 0 for r in range(spec["ranks"])],
                    environment={"NCCL_SOCKET_IFNAME": "eth0" if as_nodes else "lo", "GLOO_SOCKET_IFNAME": "lo",
                                 "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(100 // (all_ranks * self.bench.lanes))})
        words = Board(str(board))
        for word, value in ((STOP_AT, NEVER), (FAULT_AT, NEVER), (FAULT_TO, NEVER)):
            words.set(word, value)
        for r in range(spec["ranks"]):
            words.set(STEPS + r, -3)
        pids = self.bench.zygote.fork(spec)
        self.jobs.append({"spec": spec, "board": words, "pids": pids, "folder": folder})
        return pids

    def step_of(self, job, what=max):
        return what(job["board"].get(STEPS + r) for r in range(job["spec"]["ranks"]))

    def all_at(self, step, limit_s):
        for job in self.jobs:
            if not wait_until(lambda: self.step_of(job, min) >= step or self.has_ended(job), limit_s) or self.has_ended(job):
                raise Failed(f"ranks stand at {[job['board'].get(STEPS + r) for r in range(job['spec']['ranks'])]}: {self.errors(job)}")

    @staticmethod
    def has_ended(job):
        return any(not alive(p) for p in job["pids"])

    @staticmethod
    def errors(job):
        return [json.loads(f.read_text()).get("error", "")[-400:] for f in sorted(job["folder"].glob("rank-*.json"))]

    def trace(self, pids):
        """Tracers that are ready, each followed by a fleet-push."""
        name = self.s.name
        if self.s.tracers == "nodes":
            self.tracers = [Tracer(self.bench, self.service, f"node{r}", [p], self.folder / f"{name}-{r}.db", shift)
                            for r, (p, shift) in enumerate(zip(pids, self.shifts()))]
        else:
            self.tracers = [Tracer(self.bench, self.service, "nodeA", pids, self.folder / f"{name}.db", 0)]
        for t in self.tracers:
            if not wait_until(t.is_ready, 30):
                raise Failed("ingero trace is not ready")
            t.follow()
        self.ready_ns = time.time_ns()

    def shifts(self):
        """Clocks up to 15 ms apart."""
        return [int((hash((self.seed, r)) % 30001 - 15000) * 1000) if r else 0 for r in range(len(self.jobs[0]["pids"]))]

    def play(self):
        s, bench = self.s, self.bench
        self.service = Service(bench)
        spec = scenarios.specification(s, self.seed, **bench.more)
        pids = self.start_job(spec, 0)
        if s.beside:
            pids = pids + self.start_job({**scenarios.DEFAULTS, **s.beside, **bench.more, "seed": 7}, 1)
        job = self.jobs[0]
        self.all_at(-2, START_LIMIT_S)
        if s.attach == "early":
            self.trace(pids)
        for j in self.jobs:
            j["board"].set(GATE, 1)
        if s.begin_s == 0 and s.attach == "early":
            job["board"].set(FAULT_AT, 0)
        if s.begin_s == 0 and s.attach == "late":
            job["board"].set(FAULT_AT, 10)
        self.all_at(25 if s.attach == "late" else 3, START_LIMIT_S)
        if s.attach == "late":
            self.trace(pids)
        time.sleep(s.begin_s)
        outside = Outside(bench, s.outside, pids[spec["rank"]], spec["cpus"][spec["rank"]], spec["amount"]) if s.outside else None
        self.fault_ns = time.time_ns()
        if outside:
            outside.begin()
        elif job["board"].get(FAULT_AT) == NEVER:
            job["board"].set(FAULT_AT, self.step_of(job) + 2)
        try:
            time.sleep(s.fault_s)
        finally:
            if outside:
                outside.end()
        return self.end(spec)

    def end(self, spec):
        """Ranks end by themselves, so that MPS loses no client; those that cannot are killed."""
        stop_ns = time.time_ns()
        answers_at_stop = self.service.said[-1] if self.service.said else None
        for j in self.jobs:
            j["board"].set(RELEASE, 1)
            j["board"].set(STOP_AT, self.step_of(j) + (4 if spec["fault"] != "hang" else 12))
        limit = 2 if spec["fault"] == "mismatch" else END_LIMIT_S
        ended = wait_until(lambda: not any(alive(p) for j in self.jobs for p in j["pids"]), limit)
        for t in self.tracers:
            t.stop()
        if not ended:
            for p in (p for j in self.jobs for p in j["pids"] if alive(p)):
                os.kill(p, signal.SIGKILL)
            self.bench.after_a_kill()
        final = self.service.end()
        for t in self.tracers:
            t.wait()
        return self.report(spec, stop_ns, answers_at_stop, final, bool(ended))

    def report(self, spec, stop_ns, at_stop, final, ended):
        ranks = [[json.loads(f.read_text()) for f in sorted(j["folder"].glob("rank-*.json"))] for j in self.jobs]
        s = self.s
        truth = {"fault": s.fault, "rank": spec["rank"] if s.fault != "none" else None, "period": spec["period"],
                 "amount": spec["amount"], "words": scenarios.CAUSES.get(s.fault), "attach": s.attach, "tracers": s.tracers,
                 "begin_s": s.begin_s, "fault_ns": self.fault_ns, "stop_ns": stop_ns, "trace_ns": self.tracers[0].begun_ns,
                 "ready_ns": self.ready_ns, "ended": ended, "shifts_ns": self.shifts() if s.tracers == "nodes" else []}
        return {"name": s.name, "seed": self.seed, "truth": truth, "spec": spec, "ranks": ranks, "said": self.service.said,
                "at_stop": at_stop, "seen_ns": self.service.seen_ns, "final": final}

    def keep(self, result):
        name = f"{self.s.name}.{self.seed}"
        for t in self.tracers:
            kept = self.bench.work / f"{name}{t.db.stem[len(self.s.name):]}.db"
            t.db.rename(kept)
            result.setdefault("bytes", []).append(kept.stat().st_size)
        result["texts"] = {f.name: f.read_text(errors="replace")[-4000:] for f in self.bench.work.glob(f"{self.s.name}*.txt")}
        (self.bench.out / f"{name}.json").write_text(json.dumps(result), encoding="utf-8")

    def cut_off(self):
        for j in self.jobs:
            for p in j["pids"]:
                if alive(p):
                    os.kill(p, signal.SIGKILL)
        for t in getattr(self, "tracers", []):
            if t.trace.poll() is None:
                t.trace.kill()


class Bench:
    def __init__(self, args):
        self.kit, self.out = pathlib.Path(args.kit).resolve(), pathlib.Path(args.out).resolve()
        self.out.mkdir(parents=True, exist_ok=True)
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="ranks-", dir="/var/tmp"))
        self.children, self.port, self.lock, self.nodes = [], 29510, threading.Lock(), None
        self.more, self.lanes = json.loads(args.more), args.lanes
        cpus = sorted(os.sched_getaffinity(0))
        self.cpus = cpus[:-2] if len(cpus) > 8 else cpus    # the last are the tracers'

    def next_port(self):
        with self.lock:
            self.port += 1
            return self.port

    @property
    def has_gpu(self):
        return self.more.get("backend", "nccl") == "nccl"

    def after_a_kill(self):
        """After a client of MPS was killed, the next ones find no device for a while."""
        if self.has_gpu and self.lanes == 1:
            subprocess.run(["nvidia-cuda-mps-control"], input="quit -t 1\n", text=True, capture_output=True, check=False, timeout=20)
            time.sleep(1)
            quiet("nvidia-cuda-mps-control", "-d")
        else:
            time.sleep(6)

    def spawn(self, argv, name, stdout=None, env=None):
        out = open(self.work / name, "ab")
        p = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=stdout or out, stderr=out, env=env)
        self.children.append(p)
        return p

    def begin(self, names):
        if self.has_gpu:
            quiet("nvidia-smi", "-pm", "1")
            quiet("nvidia-cuda-mps-control", "-d")
        self.nodes = Nodes(scenarios.DEFAULTS["ranks"] if any(scenarios.BY_NAME[n].tracers == "nodes" for n in names) else 0)
        self.zygote = Zygote(self)

    def end(self):
        for p in self.children:
            if p.poll() is None:
                p.kill()
        if self.nodes:
            self.nodes.remove()
        shutil.copy(self.work / "ranks.err", self.out / "ranks.err")
        shutil.rmtree(self.work, ignore_errors=True)

    def finish(self):
        """Recordings are explained and packed when nothing runs any more, on all CPUs."""
        def pack(db):
            (self.out / f"{db.name}.xz").write_bytes(lzma.compress(db.read_bytes(), preset=2))

        def tell(path):
            ranks_score.explain(path, sorted(self.work.glob(f"{path.stem}*.db")), str(self.kit / "ingero"))
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            done = [pool.submit(tell, p) for p in self.out.glob("*.json") if not p.with_suffix(".explain").exists()]
            done += [pool.submit(pack, p) for p in self.work.glob("*.db")]
            for d in done:
                d.result()

    def play_one(self, name, seed, cpus, begun):
        run = Run(self, scenarios.BY_NAME[name], seed, cpus)
        at = time.monotonic()
        try:
            result = run.play()
            run.keep(result)
            print(f"{at - begun:.0f} s: {ranks_score.line(result)} ({time.monotonic() - at:.1f} s, "
                  f"{sum(result['bytes']) / 1e6:.1f} MB)", flush=True)
            return True
        except (Failed, OSError, ValueError, subprocess.TimeoutExpired) as e:
            print(f"{at - begun:.0f} s: {name} FAILED: {e}", flush=True)
            run.cut_off()
            self.after_a_kill()
            if run.s.tracers == "nodes":
                self.nodes.paths = []    # perhaps it was the namespaces
            return False

    def play(self, names, seed, budget_s):
        """Side by side on CPUs of their own, if there are several lanes."""
        begun, left = time.monotonic(), list(names)

        def lane(cpus):
            while True:
                with self.lock:
                    if not left or time.monotonic() - begun > budget_s:
                        return
                    name = left.pop(0)
                if not self.play_one(name, seed, cpus, begun) and time.monotonic() - begun < budget_s:
                    self.play_one(name, seed, cpus, begun)
        each = len(self.cpus) // self.lanes
        lanes = [threading.Thread(target=lane, args=(self.cpus[i * each:(i + 1) * each],)) for i in range(self.lanes)]
        for t in lanes:
            t.start()
        for t in lanes:
            t.join()
        if left:
            print("no time for", ",".join(left), flush=True)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--out")
    a.add_argument("--kit", default=str(HERE))
    a.add_argument("--ingero", default=str(HERE / "ingero"))
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--only", default=",".join(scenarios.DEVELOP), help="names, or develop, blind, alone")
    a.add_argument("--lanes", type=int, default=1, help="jobs side by side")
    a.add_argument("--budget-s", type=float, default=300)
    a.add_argument("--more", default="{}", help="fields of every job, as JSON: to try this without a GPU")
    a.add_argument("--score", nargs="+")
    a.add_argument("--replay", help="program that plays recordings to the service: bench/ranks_replay")
    args = a.parse_args()
    if args.score:
        return ranks_score.main(args.score, args.ingero, args.replay)
    sets = {"develop": scenarios.DEVELOP, "blind": scenarios.BLIND, "alone": scenarios.ALONE}
    names = [n for word in args.only.split(",") for n in sets.get(word, [word])]
    bench = Bench(args)
    try:
        bench.begin(names)
        bench.play(names, args.seed, args.budget_s)
        bench.finish()
    finally:
        bench.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
