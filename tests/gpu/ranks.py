#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ranks.py - several ranks of real NCCL on one GPU, with faults put in while they train: recorded by `ingero trace`, told by
`ingero fleet-push`, judged by `ingero-cluster fleet` while they run and by `ingero explain` afterwards.

  sudo python3 ranks.py --out FOLDER [--seed 1] [--only a,b] [--budget-s 300]    beside it: ingero, ingero-cluster, ranks_*.py
  python3 ranks.py --score FOLDER... [--ingero PATH]                             the table; explains what was not explained yet

Each run leaves NAME.json (truth, what the service said and when) and NAME.db.xz, of several nodes NAME-N.db.xz. NCCL takes
two ranks on one GPU for hosts of their own by NCCL_HOSTID; MPS lets their kernels run side by side."""
import argparse
import fcntl
import json
import lzma
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import ranks_scenarios as scenarios
import ranks_score
from ranks_job_board import FAULT_AT, FAULT_TO, GATE, NEVER, RELEASE, STEPS, STOP_AT, Board

HERE = pathlib.Path(__file__).resolve().parent
START_LIMIT_S, END_LIMIT_S = 30, 20
EPISODE_KEYS = ["id", "problem", "node", "rank", "ranks", "stage", "pid", "confidence", "provisional", "lag_ns", "late_steps",
                "seen_steps", "period_steps", "share", "cause", "fix", "since_ns", "until_ns", "text", "unpriced_model"]
NETWORK = "10.88.0"


class Failed(Exception):
    pass


def wait_until(what, limit_s, pause_s=0.02):
    end = time.monotonic() + limit_s
    while True:
        found = what()
        if found:
            return found
        if time.monotonic() > end:
            return None
        time.sleep(pause_s)


def alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def quiet(*argv):
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError as e:
        return subprocess.CompletedProcess(argv, 127, "", str(e))


def loopback_up():
    """`ip link set lo up`, which is not everywhere."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 0x41))    # SIOCSIFFLAGS: up, running


class Zygote:
    """Forks ranks: PyTorch is imported once."""

    def __init__(self, bench, ranks):
        env = dict(os.environ, RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", LD_PRELOAD=str(HERE / "ranks_preload.so"),
                   NCCL_IB_DISABLE="1", NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1", TORCH_NCCL_ENABLE_MONITORING="0",
                   CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=str(max(100 // ranks, 10)), OMP_NUM_THREADS="1")
        self.p = subprocess.Popen([sys.executable, str(HERE / "ranks_job.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=open(bench.work / "ranks.err", "ab"), env=env, text=True)
        bench.children.append(self.p)

    def ready(self):
        if not json.loads(self.p.stdout.readline() or "{}").get("imported"):
            raise Failed("PyTorch could not be imported")
        return self

    def fork(self, spec):
        self.p.stdin.write(json.dumps(spec) + "\n")
        self.p.stdin.flush()
        return json.loads(self.p.stdout.readline())["pids"]


class Nodes:
    """Network namespaces as nodes: a veth each on one bridge. Without them, ranks meet on loopback."""

    def __init__(self, count):
        self.paths = []
        loopback_up()
        if quiet("ip", "link", "add", "ranks0", "type", "bridge").returncode:
            return
        quiet("ip", "addr", "add", f"{NETWORK}.254/24", "dev", "ranks0")
        quiet("ip", "link", "set", "ranks0", "up")
        for n in range(count):
            made = [quiet("ip", "netns", "add", f"rank{n}"),
                    quiet("ip", "link", "add", f"rk{n}", "type", "veth", "peer", "name", "eth0", "netns", f"rank{n}"),
                    quiet("ip", "link", "set", f"rk{n}", "master", "ranks0", "up"),
                    quiet("ip", "-n", f"rank{n}", "addr", "add", f"{NETWORK}.{n + 1}/24", "dev", "eth0"),
                    quiet("ip", "-n", f"rank{n}", "link", "set", "eth0", "up"),
                    quiet("ip", "-n", f"rank{n}", "link", "set", "lo", "up")]
            if any(m.returncode for m in made):
                print("no nodes:", [m.stderr.strip() for m in made if m.returncode], flush=True)
                self.paths = []
                return
            self.paths.append(f"/run/netns/rank{n}")

    def remove(self):
        for n in range(len(self.paths)):
            quiet("ip", "netns", "del", f"rank{n}")
        quiet("ip", "link", "del", "ranks0")


class Service:
    """One `ingero-cluster fleet`, asked all the time: what it said is kept with the moment at which it changed."""

    def __init__(self, bench):
        self.p = bench.spawn([bench.kit / "ingero-cluster", "fleet", "--grpc-addr", "", "--http-addr", "127.0.0.1:0",
                              "--api-addr", "127.0.0.1:0", "--no-token"], "fleet.txt", stdout=subprocess.PIPE)
        for line in self.p.stdout:
            line = line.decode()
            if line.startswith("OTLP over HTTP:"):
                self.port = int(line.rsplit(":", 1)[1])
            if line.startswith("Page and API:"):
                self.api = int(line.rstrip("/\n").rsplit(":", 1)[1])
            if line.startswith("Metrics:"):
                break
        self.said, self.seen_ns, self.over = [], 0, threading.Event()
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def ask(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.api}{path}", timeout=3) as r:
            return json.load(r)

    def listen(self):
        last = None
        while not self.over.wait(0.1):
            try:
                found = self.ask("/api/v1/episodes")["episodes"]
                if not self.seen_ns and self.ask("/api/v1/blame")["examined"]["collectives"]:
                    self.seen_ns = time.time_ns()
            except (OSError, ValueError):
                continue
            now = [{k: e.get(k) for k in EPISODE_KEYS} for e in found]
            key = [(e["id"], e["text"], e["provisional"], e["until_ns"]) for e in now]
            if key != last:
                self.said.append({"at_ns": time.time_ns(), "episodes": now})
                last = key

    def end(self):
        """What it knows at the end, for those who want to look."""
        self.over.set()
        self.thread.join()
        answers = {}
        for name in ("blame", "jobs", "ranks", "hangs", "mismatches", "nodes"):
            try:
                answers[name] = self.ask(f"/api/v1/{name}")
            except (OSError, ValueError) as e:
                answers[name] = str(e)
        self.p.send_signal(signal.SIGTERM)
        self.p.wait(15)
        return answers


class Tracer:
    """`ingero trace`, and a fleet-push that follows it."""

    def __init__(self, bench, service, node, pids, db, shift_ns):
        self.bench, self.db = bench, db
        env = dict(os.environ)
        if shift_ns:
            env.update(LD_PRELOAD=str(HERE / "ranks_preload.so"), RANKS_SHIFT_NS=str(shift_ns))
        self.begun_ns = time.time_ns()
        self.trace = bench.spawn([bench.kit / "ingero", "trace", "--db", db, "--node", node, "--duration", "120s",
                                  "--pid", ",".join(map(str, pids))], f"{db.stem}.trace.txt", env=env)
        self.push_argv = [bench.kit / "ingero", "fleet-push", "--endpoint", f"http://127.0.0.1:{service.port}", "--cluster-id",
                          "ranks", "--node-id", node, "--db", db, "--push-interval", "1s", "--timeout", "1s", "--baseline", ""]
        self.push_env = env
        self.text = bench.work / f"{db.stem}.trace.txt"

    def is_ready(self):
        if self.trace.poll() is not None:
            raise Failed("ingero trace: " + self.text.read_text(errors="replace")[-300:])
        return "Recording to" in self.text.read_text(errors="replace")

    def follow(self):
        self.push = self.bench.spawn(self.push_argv, f"{self.db.stem}.push.txt", env=self.push_env)

    def stop(self):
        self.trace.send_signal(signal.SIGINT)
        self.push.send_signal(signal.SIGTERM)

    def wait(self):
        for p in (self.trace, self.push):
            try:
                p.wait(20)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()


class Outside:
    """Faults that no line of the job has: begun and ended by the runner."""

    def __init__(self, bench, kind, pid, cpus, amount):
        self.bench, self.kind, self.pid, self.cpus, self.amount = bench, kind, pid, cpus, amount
        self.over, self.thread, self.group, self.hogs = threading.Event(), None, None, []

    def begin(self):
        if self.kind == "stopped":
            self.thread = threading.Thread(target=self.stop_now_and_then, daemon=True)
            self.thread.start()
        elif self.kind == "quota":
            self.group = pathlib.Path(f"/sys/fs/cgroup/ranks-{os.getpid()}-{self.pid}")
            pathlib.Path("/sys/fs/cgroup/cgroup.subtree_control").write_text("+cpu")
            self.group.mkdir()
            (self.group / "cpu.max").write_text("40000 100000")
            (self.group / "cgroup.procs").write_text(str(self.pid))
        elif self.kind == "hog":
            code = f"open('/proc/self/comm','w').write('nightly-build')\nimport os\nos.sched_setaffinity(0,{set(self.cpus)!r})\n" \
                   f"p=os.getppid()\nn=0\nwhile os.getppid()==p:\n  for k in range(1000000): n+=k"
            self.hogs = [self.bench.spawn([sys.executable, "-S", "-c", code], "hog.txt") for _ in range(6 * len(self.cpus))]

    def stop_now_and_then(self):
        while not self.over.is_set():
            os.kill(self.pid, signal.SIGSTOP)
            self.over.wait(self.amount)
            os.kill(self.pid, signal.SIGCONT)
            self.over.wait(1.6)

    def end(self):
        self.over.set()
        if self.thread:
            self.thread.join()
        for h in self.hogs:
            h.kill()
            h.wait()
        if self.group:
            (self.group / "cpu.max").write_text("max 100000")
            for pid in (self.group / "cgroup.procs").read_text().split():
                pathlib.Path("/sys/fs/cgroup/cgroup.procs").write_text(pid)
            wait_until(lambda: not quiet("rmdir", str(self.group)).returncode, 2)


class Run:
    """One job, traced and judged from its beginning to its end."""

    def __init__(self, bench, scenario, seed):
        self.bench, self.s, self.seed = bench, scenario, seed
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=scenario.name + ".", dir=bench.work))
        self.jobs = []

    def start_job(self, spec, index):
        folder = self.folder / f"job{index}"
        folder.mkdir()
        board = folder / "board"
        board.write_bytes(bytes(4096))
        as_nodes = self.s.tracers == "nodes" and self.bench.nodes.paths
        master = f"{NETWORK}.1" if as_nodes else "127.0.0.1"
        self.bench.port += 1
        each = max(len(self.bench.cpus) // sum(j["ranks"] for j in (spec, self.s.beside or {"ranks": 0})), 1)
        first = index * spec["ranks"] * each
        cpus = [[self.bench.cpus[(first + r * each + k) % len(self.bench.cpus)] for k in range(each)] for r in range(spec["ranks"])]
        spec.update(name=f"{self.s.name}-{index}", folder=str(folder), board=str(board), master=f"{master}:{self.bench.port}",
                    namespaces=self.bench.nodes.paths[:spec["ranks"]] if as_nodes else [], cpus=cpus,
                    checkpoint=str(self.bench.work / "checkpoint.pt"),
                    environment={"NCCL_SOCKET_IFNAME": "eth0" if as_nodes else "lo", "GLOO_SOCKET_IFNAME": "lo"})
        words = Board(str(board))
        for word, value in ((STOP_AT, NEVER), (FAULT_AT, NEVER), (FAULT_TO, NEVER)):
            words.set(word, value)
        for r in range(spec["ranks"]):
            words.set(STEPS + r, -3)
        pids = self.bench.zygotes[spec["ranks"]].fork(spec)
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
            self.bench.restart_mps()
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
            data = t.db.read_bytes()
            stem = name + t.db.stem[len(self.s.name):]
            self.bench.later(lambda data=data, stem=stem: (self.bench.out / f"{stem}.db.xz").write_bytes(lzma.compress(data, preset=1)))
            result.setdefault("bytes", []).append(len(data))
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
        self.children, self.port, self.jobs = [], 29510, []
        cpus = sorted(os.sched_getaffinity(0))
        self.cpus = cpus[:-3] if len(cpus) > 8 else cpus
        self.more = json.loads(args.more)
        self.background = cpus[-2:]

    def restart_mps(self):
        """After a client was killed, the next ones find no device for a while."""
        if self.more.get("backend", "nccl") == "nccl":
            subprocess.run(["nvidia-cuda-mps-control"], input="quit -t 1\n", text=True, capture_output=True, check=False, timeout=20)
            time.sleep(1)
            quiet("nvidia-cuda-mps-control", "-d")

    def spawn(self, argv, name, stdout=None, env=None):
        out = open(self.work / name, "ab")
        p = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=stdout or out, stderr=out, env=env)
        self.children.append(p)
        return p

    def later(self, what):
        """On the last CPUs, while other runs go on."""
        def work():
            os.sched_setaffinity(threading.get_native_id(), self.background)
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
            what()
        t = threading.Thread(target=work)
        t.start()
        self.jobs.append(t)

    def begin(self, names):
        if self.more.get("backend", "nccl") == "nccl":
            quiet("nvidia-smi", "-pm", "1")
            print(quiet("nvidia-cuda-mps-control", "-d").stderr, flush=True)
        self.nodes = Nodes(scenarios.DEFAULTS["ranks"]) if any(scenarios.BY_NAME[n].tracers == "nodes" for n in names) else Nodes(0)
        sizes = {(scenarios.BY_NAME[n].job | self.more).get("ranks", 4) for n in names}
        sizes |= {scenarios.BY_NAME[n].beside["ranks"] for n in names if scenarios.BY_NAME[n].beside}
        self.zygotes = {n: Zygote(self, n) for n in sorted(sizes)}
        for z in self.zygotes.values():
            z.ready()

    def end(self):
        for t in self.jobs:
            t.join()
        for p in self.children:
            if p.poll() is None:
                p.kill()
        self.nodes.remove()
        shutil.copy(self.work / "ranks.err", self.out / "ranks.err")
        shutil.rmtree(self.work, ignore_errors=True)

    def play(self, names, seed, budget_s):
        begun = time.monotonic()
        for name in names:
            if time.monotonic() - begun > budget_s:
                print(f"no time for {name}", flush=True)
                continue
            run = Run(self, scenarios.BY_NAME[name], seed)
            at = time.monotonic()
            try:
                result = run.play()
                run.keep(result)
                print(f"{at - begun:.0f} s: {ranks_score.line(result)} ({time.monotonic() - at:.1f} s, "
                      f"{sum(result['bytes']) / 1e6:.1f} MB)", flush=True)
            except (Failed, OSError, subprocess.TimeoutExpired) as e:
                print(f"{at - begun:.0f} s: {name} FAILED: {e}", flush=True)
                run.cut_off()
                self.restart_mps()


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--out")
    a.add_argument("--kit", default=str(HERE))
    a.add_argument("--ingero", default=str(HERE / "ingero"))
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--only", default=",".join(scenarios.DEVELOP))
    a.add_argument("--budget-s", type=float, default=300)
    a.add_argument("--more", default="{}", help="fields of every job, as JSON: to try this without a GPU")
    a.add_argument("--score", nargs="+")
    args = a.parse_args()
    if args.score:
        return ranks_score.main(args.score, args.ingero)
    names = args.only.split(",")
    bench = Bench(args)
    try:
        bench.begin(names)
        bench.play(names, args.seed, args.budget_s)
    finally:
        bench.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
