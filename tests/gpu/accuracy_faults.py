# SPDX-License-Identifier: Apache-2.0
"""accuracy_faults.py - faults that come from outside of the job: other processes, containers, the GPU's
clocks. Each has start() (before the job is started), prepare() (before the job touches the GPU), on() and
off(); off() may be called at any time and more than once. What a fault started ends with its parent or is
ended by number.

  accuracy_faults.py hogs N CPUS NAME      N busy processes once a line comes, until standard input ends
  accuracy_faults.py slicer PID            stops PID half of the time once a line comes, until standard input ends
  accuracy_faults.py server                answers "seconds" lines after so many seconds; prints its port
"""
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import time

CGROUPS = pathlib.Path("/sys/fs/cgroup")


class Unavailable(Exception):
    """This machine cannot do it: the scenario is skipped, and says why."""


def smi(*args):
    try:
        r = subprocess.run(["nvidia-smi", *args], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise Unavailable(f"nvidia-smi {' '.join(args)}: {e}") from e
    if r.returncode:
        raise Unavailable(f"nvidia-smi {' '.join(args)}: {(r.stdout + r.stderr).strip()[:200]}")
    return r.stdout.strip()


def keep_driver_loaded(reset):
    """Without it the driver starts anew for each job, which takes seconds and forgets locked clocks."""
    try:
        if smi("--query-gpu=persistence_mode", "--format=csv,noheader", "-i", "0") != "Enabled":
            smi("-pm", "1")
            reset["persistence"] = ["-pm", "0"]
    except Unavailable as e:
        print(e, flush=True)


def tasks(pid):
    """All threads of a process and of its children."""
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        yield int(task.name)
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue  # it ended meanwhile
        for child in children:
            yield from tasks(int(child))


def for_all_tasks(pid, action):
    for tid in tasks(pid):
        try:
            action(tid)
        except OSError:
            pass  # it ended meanwhile


class Cgroup:
    """A container, as far as the kernel is concerned."""

    count = 0

    def __init__(self, controllers):
        Cgroup.count += 1
        known = CGROUPS / "cgroup.controllers"
        if not known.exists() or set(controllers) - set(known.read_text().split()):
            raise Unavailable(f"no cgroup v2 with {' and '.join(controllers)}")
        self.path = CGROUPS / f"ingero-bench-{os.getpid()}-{Cgroup.count}"
        try:
            (CGROUPS / "cgroup.subtree_control").write_text(" ".join("+" + c for c in controllers))
            self.path.mkdir()
        except OSError as e:
            raise Unavailable(f"cgroup: {e}") from e

    def set(self, name, value):
        try:
            (self.path / name).write_text(str(value))
        except OSError as e:
            raise Unavailable(f"{name}: {e}") from e

    def get(self, name):
        try:
            return (self.path / name).read_text().strip()
        except OSError as e:
            raise Unavailable(f"{name}: {e}") from e

    def remove(self):
        if not self.path.exists():
            return
        for pid in self.get("cgroup.procs").split():
            try:
                (CGROUPS / "cgroup.procs").write_text(pid)
            except OSError:
                pass
        for _ in range(20):
            try:
                self.path.rmdir()
                return
            except OSError:
                time.sleep(0.05)


class Outside:
    def __init__(self, bench):
        self.bench = bench

    def start(self, spec):
        """May add to the job's specification."""

    def prepare(self, pid):
        """@pid: the job, which has not touched the GPU yet."""

    def on(self, pid):
        pass

    def off(self):
        pass


class Hogs(Outside):
    count, name, container = 48, "nightly-build", False

    def cpus(self):
        return self.bench.job_cpus

    def prepare(self, pid):
        self.group = Cgroup(["cpu"]) if self.container else None
        self.helper = self.bench.spawn([sys.executable, "-S", __file__, "hogs", str(self.count),
                                        ",".join(map(str, self.cpus())), self.name])
        if self.group:
            self.group.set("cpu.weight", 10000)
            self.group.set("cgroup.procs", self.helper.pid)

    def on(self, pid):
        self.helper.send("g")

    def off(self):
        if getattr(self, "helper", None):
            self.helper.end()
            self.helper = None
            if self.group:
                time.sleep(0.05)
                self.group.remove()


class NeighbourHogs(Hogs):
    """In another container."""
    name, container = "neighbour-app", True


class HogsElsewhere(Hogs):
    """Fewer than the CPUs, and on none of the job's."""
    name = "nightly-build"

    def cpus(self):
        return self.bench.job_cpus[-4:]

    count = 4

    def prepare(self, pid):
        super().prepare(pid)
        mine = set(self.bench.job_cpus[:-4])
        for_all_tasks(pid, lambda tid: os.sched_setaffinity(tid, mine))


class OneCore(Outside):
    def on(self, pid):
        for_all_tasks(pid, lambda tid: os.sched_setaffinity(tid, {self.bench.job_cpus[1]}))


class Stopped(Outside):
    """As by a batch system whose jobs take turns."""

    def on(self, pid):
        self.pid = pid
        self.helper = self.bench.spawn([sys.executable, "-S", __file__, "slicer", str(pid)])

    def off(self):
        if getattr(self, "helper", None):
            self.helper.end()
            self.helper = None
            os.kill(self.pid, signal.SIGCONT)


class Container(Outside):
    controller = ""

    def prepare(self, pid):
        self.group = Cgroup([self.controller])
        self.group.set("cgroup.procs", pid)

    def off(self):
        if getattr(self, "group", None):
            self.bench.at_job_end(self.group.remove)
            self.lift()
            self.group = None


class Quota(Container):
    controller = "cpu"

    def on(self, pid):
        self.group.set("cpu.max", "60000 100000")

    def lift(self):
        self.group.set("cpu.max", "max 100000")


class MemoryLimit(Container):
    controller = "memory"

    def on(self, pid):
        self.group.set("memory.high", int(self.group.get("memory.current")))

    def lift(self):
        self.group.set("memory.high", "max")


class Clocks(Outside):
    def on(self, pid):
        self.bench.reset["clocks"] = ["-rgc"]
        smi("-lgc", "345,345")

    def off(self):
        if self.bench.reset.pop("clocks", None):
            smi("-rgc")


class Power(Outside):
    def prepare(self, pid):
        fields = "power.default_limit,power.min_limit"
        usual, least = smi(f"--query-gpu={fields}", "--format=csv,noheader,nounits", "-i", "0").split(",")
        self.usual, self.least = float(usual), float(least)

    def on(self, pid):
        self.bench.reset["power"] = ["-pl", f"{self.usual:.0f}"]
        smi("-pl", f"{max(self.least, 200):.0f}")

    def off(self):
        args = self.bench.reset.pop("power", None)
        if args:
            smi(*args)


class Neighbour(Outside):
    """Another process on the GPU."""
    is_active = True

    def start(self, spec):
        self.other = self.bench.spawn_job({"neighbour": True, "device": self.bench.device})
        self.bench.to_background(self.other.pid)

    def prepare(self, pid):
        self.other.expect("imported", 60)
        self.bench.to_foreground(self.other.pid)
        self.other.send("g")
        self.other.expect("ready", 60)

    def on(self, pid):
        if self.is_active:
            self.other.send("f")

    def off(self):
        if getattr(self, "other", None):
            self.other.end()
            self.other = None


class IdleNeighbour(Neighbour):
    is_active = False


class Server(Outside):
    def start(self, spec):
        self.helper = self.bench.spawn([sys.executable, "-S", __file__, "server"])
        spec["server"] = ["127.0.0.1", self.helper.expect("port", 10)["port"]]

    def off(self):
        if getattr(self, "helper", None):
            self.helper.end()
            self.helper = None


def run_hogs(count, cpus, name):
    open("/proc/self/comm", "w").write(name)
    if not os.read(0, 1):
        return
    parent = os.getpid()
    children = []
    for i in range(count):
        pid = os.fork()
        if not pid:
            os.sched_setaffinity(0, cpus)
            n = 0
            while os.getppid() == parent:
                for k in range(1_000_000):
                    n += k
            os._exit(0)
        children.append(pid)
    while os.read(0, 1):
        pass
    for pid in children:
        os.kill(pid, signal.SIGKILL)


def run_slicer(pid):
    open("/proc/self/comm", "w").write("time-slicer")
    while not select.select([0], [], [], 0)[0]:
        for what in (signal.SIGSTOP, signal.SIGCONT):
            os.kill(pid, what)
            time.sleep(0.08)


def run_server():
    open("/proc/self/comm", "w").write("feature-store")
    s = socket.create_server(("127.0.0.1", 0))
    print(f'{{"port": {s.getsockname()[1]}}}', flush=True)
    c, _ = s.accept()
    for line in c.makefile():
        time.sleep(float(line))
        c.sendall(b"ok")


if __name__ == "__main__":
    if sys.argv[1] == "hogs":
        run_hogs(int(sys.argv[2]), {int(c) for c in sys.argv[3].split(",")}, sys.argv[4])
    elif sys.argv[1] == "slicer":
        run_slicer(int(sys.argv[2]))
    else:
        run_server()
