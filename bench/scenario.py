# SPDX-License-Identifier: Apache-2.0
"""scenario.py - plays a file of sim/scenarios for real and judges what explain says about it.

A scenario is a workload of the stand-in GPU, traced by eBPF, and a problem that is made on purpose:

  problem           id of the right verdict; "" = healthy: nothing of MEDIUM or above may be reported
  not               ids that must not be reported with MEDIUM or above
  also              ids that may be reported beside it, because they are true as well
  culprit           who must be named: a command, or "rank N"
  workload          program of build/sim (or train.py) with its arguments; {scratch} is a folder
  beside            further traced workloads, started like neighbours
  neighbours        programs that are not traced
  neighbours_after  seconds after the start
  neighbour_cgroup  cgroup they live in
  cpus              CPUs the workload is bound to
  noise             programs that run all the time and are no fault: an idle CUDA process, some reads
  files             name -> bytes of files to make in {scratch} first
  nvml              lines of the stand-in NVML's state
  gpu               [[seconds, {key: value}], ...]: the same, from that time on
  annotate          {"key": K, "every": S, "values": [...]}: labels sent by `ingero annotate`
  kill              [seconds, "KILL"]: the workload is sent this signal then
  env               of the workload
  seconds           most that the workload may run; linger: seconds the tracer stays afterwards
  attach_after      the tracer comes so many seconds after the workload's start
  fails             true: the workload may end with an error
  truth             {"share": S}: the part of the run's time that the fault takes. For a fault that
                    comes with neighbours it is measured by the workload's own step log

The verdict is the ids of the incidents, worst severity first, then most time lost. What processes of
this machine that are not of the scenario did to it is true too: such incidents are set aside, and
counted as disturbed.
"""
import json
import os
import pathlib
import resource
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SOURCE / "tests" / "integration"))
from rig import SIM, Trace, Workload, run, scratch, start  # noqa: E402

FOLDER = SOURCE / "sim" / "scenarios"
SEVERITIES = ["LOW", "MEDIUM", "HIGH", "CRITICAL"]
KEYS = {"problem", "not", "also", "culprit", "workload", "beside", "neighbours",
        "neighbours_after",
        "neighbour_cgroup", "cpus", "files", "nvml", "gpu", "annotate", "kill", "env", "seconds",
        "linger", "attach_after", "fails", "truth", "noise"}
NVML_BUSY = ["gpu0.util_gpu 90", "gpu0.throttle 0"]  # the first line of a key counts
FOREIGN_CPU = 0.08  # of all CPUs: a tenth of a core on a small machine disturbs
SECOND = 1_000_000_000


def names():
    return sorted(p.stem for p in FOLDER.glob("*.json"))


def load(name):
    s = json.loads((FOLDER / f"{name}.json").read_text())
    unknown = set(s) - KEYS
    if unknown:
        raise ValueError(f"{name}: unknown keys {', '.join(sorted(unknown))}")
    s["name"] = name
    return s


def _place(args, folder):
    return [str(a).replace("{scratch}", folder) for a in args]


def _make_files(s, folder):
    for name, size in s.get("files", {}).items():
        with open(os.path.join(folder, name), "wb") as f:
            left = size
            while left > 0:
                left -= f.write(os.urandom(min(left, 1 << 20)))
            os.fsync(f.fileno())


class Group:
    """A cgroup for neighbours; none for a scenario without."""

    def __init__(self, path):
        self.path = self.top = None
        if path:
            mounts = (line.split() for line in open("/proc/mounts"))
            self.top = pathlib.Path(next(m[1] for m in mounts if m[2] == "cgroup2"))
            self.path = self.top / path
            self.path.mkdir(parents=True, exist_ok=True)

    def enter(self):
        if self.path:
            (self.path / "cgroup.procs").write_text("0")

    def close(self):
        while self.path and self.path != self.top:
            try:
                self.path.rmdir()
            except OSError:
                return
            self.path = self.path.parent


class Nvml:
    """What the stand-in NVML answers; replaced by rename, as it wants it."""

    def __init__(self, s, folder):
        self.lines = s.get("nvml", [])
        self.path = os.path.join(folder, "nvml") if s.get("nvml") or s.get("gpu") else None
        self.put(s["gpu"][0][1] if s.get("gpu") else {})

    def put(self, state):
        if self.path:
            lines = [f"{key} {value}" for key, value in state.items()] + self.lines + NVML_BUSY
            with open(self.path + ".new", "w") as f:
                f.write("".join(line + "\n" for line in lines))
            os.chmod(self.path + ".new", 0o644)
            os.rename(self.path + ".new", self.path)

    def env(self):
        if not self.path:
            return {}
        return {"SIM_NVML_STATE": self.path, "INGERO_NVML_LIB": str(SIM / "libnvidia-ml.so.1")}


class Played:
    """A run: the recording, when the fault began, which processes were of the scenario."""

    def __init__(self, s):
        self.scenario, self.db, self.own = s, None, set()
        self.began = self.onset = self.ended = self.foreign_cpu = 0
        self.steps = []  # (start, duration) in wall ns


def _steps_read(path, offset):
    if not path or not os.path.exists(path):
        return []
    rows = (line.split() for line in open(path))
    return [(int(r[1]) + offset, int(r[2])) for r in rows if len(r) == 3 and r[0].isdigit()]


def _workload(s, args, folder, log):
    args = _place(args, folder)
    if log:
        args += ["--step-log", log]
    w = Workload(args[0], *args[1:], env=_env(s, folder), tally=False)
    if s.get("cpus"):
        os.sched_setaffinity(w.pid, set(s["cpus"]))
    return w


def _env(s, folder):
    return {k: str(v).replace("{scratch}", folder) for k, v in s.get("env", {}).items()}


def _wait(process, seconds):
    try:
        process.wait(max(seconds, 0.01))
    except subprocess.TimeoutExpired:
        pass


def _programs(rows, folder, group):
    return [start([SIM / n[0], *_place(n[1:], folder)], preexec_fn=group.enter,
                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for n in rows]


def _annotate(pid, key, value):
    run("annotate", "--pid", pid, "--label", f"{key}={value}")


def _schedule(s, works, nvml, others):
    """What happens beside the workload: (seconds after its start, is it the fault, what)."""
    after = s.get("neighbours_after", 0)
    acts = []
    if s.get("neighbours") or s.get("beside"):
        acts.append((after, True, others))
    for at, state in s.get("gpu", [])[1:]:
        acts.append((at, True, lambda state=state: nvml.put(state)))
    if s.get("kill"):
        at, name = s["kill"]
        acts.append((at, True, lambda: works[0].process.send_signal(getattr(signal, f"SIG{name}"))))
    labels = s.get("annotate", {"values": []})
    for n, value in enumerate(labels["values"]):
        acts.append((0.5 + n * labels["every"], False,
                     lambda value=value: _annotate(works[0].pid, labels["key"], value)))
    return sorted(acts, key=lambda act: act[0])


def _during(s, played, works, nvml, group, folder):
    """From the start of the workload to its end; returns the neighbours."""
    hogs = []

    def others():
        for w in works[1:]:
            w.go()
        hogs.extend(_programs(s.get("neighbours", []), folder, group))

    begin = time.monotonic() - (time.time_ns() - played.began) / SECOND
    for at, is_fault, act in _schedule(s, works, nvml, others):
        _wait(works[0].process, at - (time.monotonic() - begin))
        if is_fault and played.onset == played.began and at > 0:
            played.onset = time.time_ns()
        act()
    _wait(works[0].process, s["seconds"] - (time.monotonic() - begin))
    if works[0].process.poll() and not s.get("fails"):
        raise RuntimeError(f"{s['name']}: the workload failed: {works[0].process.stderr.read()}")
    played.ended = time.time_ns()
    time.sleep(s.get("linger", 0.3))
    return hogs


def _end(processes):
    for p in processes:
        if p.poll() is None:
            p.terminate()
    for p in processes:
        _wait(p, 5)
        if p.poll() is None:
            p.kill()
            p.wait()
        for pipe in (p.stdout, p.stderr):
            if pipe:
                pipe.close()


def play(s, number=[0]):
    """Runs @s; the recording is kept until the caller's process ends."""
    number[0] += 1
    folder = scratch(f"play{number[0]}")
    os.mkdir(folder)
    for path in (folder, os.path.dirname(folder)):
        os.chmod(path, 0o711)  # what reads NVML is another user
    _make_files(s, folder)
    machine = Machine()
    played, nvml, group = Played(s), Nvml(s, folder), Group(s.get("neighbour_cgroup"))
    log = os.path.join(folder, "steps") if s["workload"][0].startswith("sim-train") else None
    works = [_workload(s, s["workload"], folder, log)]
    works += [_workload(s, w, folder, None) for w in s.get("beside", [])]
    flags = [f for w in works for f in ("--pid", w.pid)] + (["--annotate"] if s.get("annotate") else [])
    os.environ.update(nvml.env())
    hogs = _programs(s.get("noise", []), folder, Group(None))
    try:
        if s.get("attach_after"):
            works[0].go()
            time.sleep(s["attach_after"])
        trace = Trace(*flags)
        played.began = played.onset = time.time_ns()
        works[0].go()
        hogs += _during(s, played, works, nvml, group, folder)
        trace.stop()
    finally:
        for name in nvml.env():
            os.environ.pop(name, None)
        _end([w.process for w in works] + hogs)
        group.close()
    played.db, played.foreign_cpu = trace.db, machine.foreign()
    played.own = {w.pid for w in works} | {h.pid for h in hogs} | _traced(trace.db)
    played.steps = _steps_read(log, time.time_ns() - time.monotonic_ns())
    for leftover in pathlib.Path(folder).iterdir():
        leftover.unlink()
    return played


def explain(db):
    r = run("explain", "--db", db, "--json")
    if r.returncode:
        raise RuntimeError(f"explain: {r.stderr}")
    return json.loads(r.stdout)


def ranked(incidents):
    return sorted(incidents, key=lambda i: (-SEVERITIES.index(i["severity"]), -i["excess_ns"]))


def verdict(incidents):
    """Ids, worst first, each once."""
    return list(dict.fromkeys(i["problem"] for i in ranked(incidents)))


def names_culprit(incident, culprit):
    if not culprit:
        return True
    if culprit.startswith("rank "):
        return incident.get("culprit_rank") == int(culprit[5:])
    return culprit in incident["summary"] + incident["root_cause"] or \
        any(c["culprit"] == culprit for c in incident["causes"])


def is_disturbed(incident, own, foreign_cpu):
    """Foreign processes of this machine are its largest known cause: true, but nobody injected it. Where
    nobody in particular is named, they are if they used the CPUs during the run."""
    known = [c for c in incident["causes"] if c["cause"] != "unexplained"]
    if not known:
        return False
    if not known[0]["culprit_pid"]:
        return known[0]["cause"].startswith("cpu_") and foreign_cpu > FOREIGN_CPU
    return known[0]["culprit_pid"] not in own


class Machine:
    """CPU time that others than this process's children used, as a share of all CPUs."""

    def __init__(self):
        self.busy, self.total, self.mine = self.read()

    @staticmethod
    def read():
        ticks = [int(t) for t in open("/proc/stat").readline().split()[1:9]]
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        mine = (used.ru_utime + used.ru_stime) * os.sysconf("SC_CLK_TCK")
        return sum(ticks) - ticks[3] - ticks[4], sum(ticks), mine

    def foreign(self):
        busy, total, mine = self.read()
        return max(0.0, (busy - self.busy - (mine - self.mine)) / max(1, total - self.total))


def _traced(db):
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as c:
        return {r[0] for r in c.execute("SELECT DISTINCT pid FROM events WHERE source IN (1, 4)")}


def true_share(played):
    """The part of the run's time that the fault took, or None. Measured where there are steps before
    it: what later steps lasted beyond the median of those."""
    stated = played.scenario.get("truth", {}).get("share")
    if stated is not None:
        return stated
    s = played.scenario
    if not (s.get("neighbours") or s.get("beside") or "--slow-from" in s["workload"]):
        return None  # what comes later and takes no time
    before = [d for t, d in played.steps if t + d < played.onset]
    after = [d for t, d in played.steps if t >= played.onset]
    if len(before) < 20 or len(after) < 20 or not s["problem"]:
        return None
    usual = statistics.median(before)
    return sum(max(0, d - usual) for d in after) / (played.ended - played.began)


class Judged:
    def __init__(self, played, incidents, expected):
        s = played.scenario
        own = played.own
        aside = [i for i in incidents if i["problem"] not in expected and is_disturbed(i, own, played.foreign_cpu)]
        kept = [i for i in incidents if i not in aside]
        loud = [i for i in kept if i["severity"] != "LOW"]
        self.name, self.expected, self.incidents = s["name"], expected, incidents
        self.ids = verdict(kept)
        self.disturbed = verdict([i for i in aside if i["severity"] != "LOW"])
        self.loud = verdict(loud)
        self.false = [p for p in self.loud if p not in expected and p not in s.get("also", [])]
        self.false_high = [p for p in self.false
                           if any(i["problem"] == p and i["severity"] in ("HIGH", "CRITICAL")
                                  for i in loud)]
        self.forbidden = [p for p in self.loud if p in s.get("not", [])]
        self.top1 = self.ids[0] in expected if self.ids and expected else not expected and not loud
        self.top2 = all(p in self.ids[:2] for p in expected) if expected else not loud
        right = [i for i in kept if i["problem"] in expected]
        self.culprit = not expected or any(names_culprit(i, s.get("culprit", "")) for i in right)
        wall = max(1, played.ended - played.began)
        self.share = sum(i["excess_ns"] * i["explained"] for i in right) / wall if right else 0.0
        self.true_share = true_share(played)
        self.lasted = wall / SECOND

    def passes(self):
        return self.top1 and self.culprit and not self.false and not self.forbidden

    def words(self):
        """Each incident on a line, for whoever looks into a failure."""
        lines = [f"{i['severity']} {i['problem']}: {i['summary']}" for i in ranked(self.incidents)]
        lines += [f"set aside as this machine's own: {', '.join(self.disturbed)}"] * bool(self.disturbed)
        if not self.culprit:
            lines.append("the culprit is not named")
        return "\n".join(lines) or "nothing was reported"


def without_rows(played, incidents):
    """Those whose SQL finds nothing in the recording."""
    with sqlite3.connect(f"file:{played.db}?mode=ro", uri=True) as c:
        return [i for i in incidents if not i["evidence_sql"] or not c.execute(i["evidence_sql"]).fetchone()]


def judge(played, expected=None):
    if expected is None:
        expected = [played.scenario["problem"]] if played.scenario["problem"] else []
    return Judged(played, explain(played.db), expected)


def _cut(db, until):
    """Removes what was not known at @until. The 5 s bucket it falls into stays."""
    with sqlite3.connect(db) as c:
        tables = [r[0] for r in c.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for t in tables:
            columns = {r[1] for r in c.execute(f"PRAGMA table_info({t})")}
            if t == "events":
                # A call is known when it has ended; disk and socket rows carry their end.
                c.execute("DELETE FROM events WHERE timestamp +"
                          " (CASE WHEN source IN (3, 5, 7) THEN 0 ELSE duration END) > ?", (until,))
            elif "timestamp" in columns:
                c.execute(f"DELETE FROM {t} WHERE timestamp > ?", (until,))
            elif "bucket" in columns:
                c.execute(f"DELETE FROM {t} WHERE bucket > ?", (until,))


def seconds_to_diagnosis(played, problem, step_s=1.0):
    """Seconds from the fault's begin to the earliest cut of the recording from which on every longer
    one, in steps of @step_s, names @problem aloud and its culprit; None if even the whole does not."""
    copy, culprit = played.db + ".cut", played.scenario.get("culprit", "")
    shutil.copy(played.db, copy)
    at, known = played.ended, None
    while at > played.onset:
        if not any(i["problem"] == problem and i["severity"] != "LOW" and names_culprit(i, culprit)
                   for i in explain(copy)):
            break
        known = (at - played.onset) / SECOND
        at -= int(step_s * SECOND)
        _cut(copy, at)
    for name in (copy, copy + "-wal", copy + "-shm"):
        pathlib.Path(name).unlink(missing_ok=True)
    return known
