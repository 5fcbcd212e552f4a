# SPDX-License-Identifier: Apache-2.0
"""ranks_machine.py - what ranks.py starts around the ranks: the process that forks them, networks as nodes, tracers, the
service, and faults that come from outside. Bench (ranks.py) spawns the processes and ends them."""
import fcntl
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
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

    def __init__(self, bench):
        env = dict(os.environ, RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", LD_PRELOAD=str(HERE / "ranks_preload.so"),
                   NCCL_IB_DISABLE="1", NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1", TORCH_NCCL_ENABLE_MONITORING="0",
                   OMP_NUM_THREADS="1")
        self.lock = threading.Lock()
        self.p = subprocess.Popen([sys.executable, str(HERE / "ranks_job.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=open(bench.work / "ranks.err", "ab"), env=env, text=True)
        bench.children.append(self.p)

        if not json.loads(self.p.stdout.readline() or "{}").get("imported"):
            raise Failed("PyTorch could not be imported")

    def fork(self, spec):
        with self.lock:
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
