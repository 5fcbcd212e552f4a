# SPDX-License-Identifier: Apache-2.0
"""scenario.py - plays a file of sim/scenarios for real and judges what explain says about it.

A scenario is a workload of the stand-in GPU, traced by eBPF, and a problem that is made on purpose:

  problem           id of the right verdict; "" = healthy: nothing of MEDIUM or above may be reported
  not               ids that must not be reported with MEDIUM or above
  also              ids that may be reported beside it, because they are true as well
  culprit           who must be named: a command, "rank N", or "beside": its first workload, by pid, as
                    what disturbs the other; "nobody": no rank may be
  workload          program of build/sim (or train.py) with its arguments; {scratch} is a folder, {cpu0} and
                    {cpu1} are the first CPUs that may be used
  beside            further traced workloads, started like neighbours
  neighbours        programs that are not traced
  neighbours_after  seconds after the start
  neighbour_cgroup  cgroup they live in
  cpus              CPUs the workload is bound to: 0 is the first of those that this process may use
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
  effect            what the workload itself shows when the fault was there; all of:
                    extra_us  the median step lasts so much longer than its kernels
                    peak_us   three steps or more last so long
                    slower    steps since the fault's begin last so many times the median of those before
                    first_us  from the start to the first step
                    steps, errors  at least so many
                    stderr    it says this; exit: its status; stuck: it has not ended by itself
  told              true: the fault comes as an error code, label or counter that means the verdict; seeing it
                    says little about diagnosis, so that such faults are counted apart
  truth             {"share": S}: the part of the run's time that the fault takes. For a fault that
                    comes with neighbours it is measured by the workload's own step log

The verdict is the ids of the incidents, worst severity first, then most time lost. What processes of
this machine that are not of the scenario did to it is true too: such incidents are set aside, and
counted as disturbed. A run whose fault did not happen (fault_missing()) proves nothing and has no verdict.
"""
import contextlib
import functools
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
from rig import INGERO, SIM, Trace, Workload, run, scratch, start  # noqa: E402

FOLDER = SOURCE / "sim" / "scenarios"
SEVERITIES = ["LOW", "MEDIUM", "HIGH", "CRITICAL"]
KEYS = {"problem", "not", "also", "culprit", "workload", "beside", "neighbours",
        "neighbours_after",
        "neighbour_cgroup", "cpus", "files", "nvml", "gpu", "annotate", "kill", "env", "seconds",
        "linger", "attach_after", "fails", "effect", "told", "truth", "noise"}
EFFECTS = {"extra_us", "peak_us", "slower", "first_us", "steps", "errors", "stderr", "exit", "stuck"}
NVML_BUSY = ["gpu0.util_gpu 90", "gpu0.throttle 0"]  # the first line of a key counts
FOREIGN_CPU = 0.08  # of all CPUs: a tenth of a core on a small machine disturbs
SECOND = 1_000_000_000
BUCKETS = {"event_aggregates_5s": 5 * SECOND, "event_aggregates": 60 * SECOND}


def not_ready():
    """Why nothing can be played here; "" if it can."""
    if os.geteuid() != 0:
        return "tracing needs root: run it with sudo"
    absent = [p for p in (INGERO, str(SIM / "sim-train"), str(SIM / "libcudart.so.12")) if not os.path.exists(p)]
    return f"there is no {', '.join(absent)}: run `make` first, or name the build folder in $BUILD" if absent else ""


def names():
    return sorted(p.stem for p in FOLDER.glob("*.json"))


def load(name):
    s = json.loads((FOLDER / f"{name}.json").read_text())
    return checked(dict(s, name=name))


def checked(s):
    """@s, if it says what a scenario can say: a program among ids would never be started."""
    unknown = set(s) - KEYS - {"name"} | set(s.get("effect", {})) - EFFECTS
    if unknown:
        raise ValueError(f"{s['name']}: unknown keys {', '.join(sorted(unknown))}")
    for key in ("also", "not"):
        if not all(isinstance(i, str) for i in s.get(key, [])):
            raise ValueError(f"{s['name']}: {key} lists ids of problems")
    for key in ("beside", "neighbours", "noise"):
        if not all(isinstance(program, list) for program in s.get(key, [])):
            raise ValueError(f"{s['name']}: {key} lists programs with their arguments")
    return s


def _place(args, folder):
    cpus = sorted(os.sched_getaffinity(0))
    words = {"{scratch}": folder, "{cpu0}": str(cpus[0]), "{cpu1}": str(cpus[-1] if len(cpus) < 2 else cpus[1])}
    return [functools.reduce(lambda text, word: text.replace(*word), words.items(), str(a)) for a in args]


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
        self.beside = []  # pids
        self.missing = []  # what should have happened around the workload and did not
        self.results, self.stderr, self.status, self.is_stuck = [], "", None, False


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
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(w.pid, {allowed[min(i, len(allowed) - 1)] for i in s["cpus"]})
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


def _annotate(played, pid, key, value):
    r = run("annotate", "--pid", pid, "--label", f"{key}={value}")
    if r.returncode:
        played.missing.append(f"the label {key}={value}: {r.stderr.strip()}")


def _schedule(s, played, works, nvml, others):
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
                     lambda value=value: _annotate(played, works[0].pid, labels["key"], value)))
    return sorted(acts, key=lambda act: act[0])


def _during(s, played, works, nvml, group, folder):
    """From the start of the workload to its end; returns the neighbours."""
    hogs = []

    def others():
        for w in works[1:]:
            w.go()
        hogs.extend(_programs(s.get("neighbours", []), folder, group))

    begin = time.monotonic() - (time.time_ns() - played.began) / SECOND
    for at, is_fault, act in _schedule(s, played, works, nvml, others):
        _wait(works[0].process, at - (time.monotonic() - begin))
        if works[0].process.poll() is not None:
            played.missing.append(f"what was due after {at:g} s: the workload had ended")
            break
        if is_fault and played.onset == played.began and at > 0:
            played.onset = time.time_ns()
        act()
    _wait(works[0].process, s["seconds"] - (time.monotonic() - begin))
    if works[0].process.poll() and not s.get("fails"):
        raise RuntimeError(f"{s['name']}: the workload failed: {works[0].process.stderr.read()}")
    played.ended, played.is_stuck = time.time_ns(), works[0].process.poll() is None
    played.missing += [f"{h.args[0]}: it ended with {h.returncode}" for h in hogs if h.poll()]
    time.sleep(s.get("linger", 0.3))
    return hogs


def _end(processes):
    """Returns what each has written: [(stdout, stderr), ...]."""
    for p in processes:
        if p.poll() is None:
            p.terminate()
    return [_last_words(p) for p in processes]


def _last_words(p):
    for _ in range(2):
        try:
            out, err = p.communicate(timeout=5)
            return out or "", err or ""
        except subprocess.TimeoutExpired:
            p.kill()
    for pipe in (p.stdout, p.stderr):  # a child of its own still has them
        if pipe:
            pipe.close()
    return "", ""


def _results_read(out):
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def _heard(played, works, said):
    """What the workloads say about themselves, in @said."""
    (out, played.stderr), beside = said[0], said[1:len(works)]
    played.results, played.status = _results_read(out), works[0].process.returncode
    played.missing += [f"{w.process.args[0]} beside it: it made no step" for w, (text, _) in zip(works[1:], beside)
                       if not any(row["steps"] for row in _results_read(text))]


@contextlib.contextmanager
def before_others(wanted):
    """What is started meanwhile has real-time priority, if @wanted and allowed: only its like competes with it."""
    try:
        if wanted:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        pass
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def play(s, number=[0], first=False):
    """Runs @s; the recording is kept until the caller's process ends. @first: with real-time priority."""
    number[0] += 1
    folder = scratch(f"play{number[0]}")
    os.mkdir(folder)
    for path in (folder, os.path.dirname(folder)):
        os.chmod(path, 0o711)  # what reads NVML is another user
    _make_files(s, folder)
    machine = Machine()
    played, nvml, group = Played(s), Nvml(s, folder), Group(s.get("neighbour_cgroup"))
    log = os.path.join(folder, "steps") if s["workload"][0].startswith("sim-train") else None
    with before_others(first):
        works = [_workload(s, s["workload"], folder, log)]
        works += [_workload(s, w, folder, None) for w in s.get("beside", [])]
    played.beside = [w.pid for w in works[1:]]
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
        said = _end([w.process for w in works] + hogs)
        group.close()
    _heard(played, works, said)
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


def names_culprit(incident, played):
    culprit = played.scenario.get("culprit", "")
    if not culprit:
        return True
    if culprit == "nobody":
        return incident.get("culprit_rank", -1) in (None, -1)
    if culprit == "beside":
        return incident["pid"] not in played.beside and f"(pid {played.beside[0]})" in incident["summary"]
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
    """CPU time that others than this process's children used, as a share of the CPUs that it may use."""

    def __init__(self):
        self.busy, self.total, self.mine = self.read()

    @staticmethod
    def read():
        allowed = {f"cpu{n}" for n in os.sched_getaffinity(0)}
        rows = [row for row in map(str.split, open("/proc/stat")) if row[0] in allowed]
        ticks = [sum(int(row[i]) for row in rows) for i in range(1, 9)]
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


def _option(s, name, default):
    args = s["workload"]
    return float(args[args.index(name) + 1]) if name in args[:-1] else default


def _slower(played):
    s = played.scenario
    n = int(_option(s, "--slow-from", sum(t + d < played.onset for t, d in played.steps)))
    before, after = [d for _, d in played.steps[:n]], [d for _, d in played.steps[n:]]
    return statistics.mean(after) / statistics.median(before) if before and after else 0.0


def _extra_us(played):
    s = played.scenario
    kernels = _option(s, "--kernel-us", 200) * (_option(s, "--launches", 40) if "train" in s["workload"][0] else 1)
    if played.steps:
        return statistics.median(d for _, d in played.steps) / 1e3 - kernels
    return max((r["seconds"] * 1e6 / r["steps"] for r in played.results if r["steps"]), default=0.0) - kernels


def _peak_us(played):
    if len(played.steps) >= 3:
        return sorted(d for _, d in played.steps)[-3] / 1e3
    return max((r.get("sync_max_us", r.get("step_p99_us", 0)) for r in played.results), default=0.0)


def measured(played):
    """The figures that an effect may set a least value for."""
    return {"extra_us": _extra_us(played), "peak_us": _peak_us(played), "slower": _slower(played),
            "first_us": (played.steps[0][0] - played.began) / 1e3 if played.steps else 0.0,
            "steps": max((r["steps"] for r in played.results), default=0),
            "errors": max((r.get("errors", 0) for r in played.results), default=0)}


def fault_missing(played):
    """Why this run says nothing about the diagnosis: what the scenario is about did not happen. "" if it did."""
    wanted, got = played.scenario.get("effect", {}), measured(played)
    missing = list(played.missing)
    missing += [f"{key} is {got[key]:.6g}, not {wanted[key]:g} or more"
                for key in got if key in wanted and got[key] < wanted[key]]
    if wanted.get("stderr", "") not in played.stderr:
        missing.append(f"'{wanted['stderr']}' was not said")
    if wanted.get("exit", played.status) != played.status:
        missing.append(f"it ended with {played.status}, not {wanted['exit']}")
    if wanted.get("stuck") and not played.is_stuck:
        missing.append("it ended by itself")
    return "; ".join(missing)


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
        self.top1 = bool(loud) and self.loud[0] in expected if expected else not loud
        self.top2 = all(p in self.loud[:2] for p in expected) if expected else not loud
        self.low = bool(expected and not loud and self.ids and self.ids[0] in expected)  # named, but not aloud
        right = [i for i in kept if i["problem"] in expected]
        enough = all if s.get("culprit") == "nobody" else any
        self.culprit = not expected or enough(names_culprit(i, played) for i in right)
        wall = max(1, played.ended - played.began)
        self.share = sum(i["excess_ns"] * i["explained"] for i in right) / wall if right else 0.0
        self.true_share = true_share(played)
        self.lasted = wall / SECOND

    def passes(self):
        return (self.top1 or self.low) and self.culprit and not self.false and not self.forbidden

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


def _numbers(blob):
    """The LEB128 numbers of @blob."""
    value = shift = 0
    for byte in blob:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


def _leb128(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def sketch_part(blob, part):
    """A sketch (src/stat/sketch.h) with @part of its calls, and how many these are."""
    numbers, out, count, distance = _numbers(blob[1:]), blob[:1], 0, 0
    for step, calls in zip(numbers, numbers):
        distance += step
        kept = round(calls * part)
        if kept:
            out += _leb128(distance) + _leb128(kept)
            count, distance = count + kept, 0
    return out, count


def _cut_bucket(c, table, row, part):
    """Leaves @part of the calls of @row: those of a bucket are taken as spread evenly over its time."""
    rowkey, count, stored, sum_dur, sum_arg0, sketch = row[:5], *row[5:]
    where = "bucket = ? AND source = ? AND op = ? AND pid = ? AND nested = ?"
    sketch, kept = sketch_part(sketch, part) if sketch else (None, round(count * part))
    if not kept:
        c.execute(f"DELETE FROM {table} WHERE {where}", rowkey)
        return
    c.execute(f"UPDATE {table} SET count = ?, stored = ?, sum_dur = ?, sum_arg0 = ?, sketch = ? WHERE {where}",
              (kept, min(kept, round(stored * part)), sum_dur * kept // count, sum_arg0 * kept // count, sketch,
               *rowkey))


def _cut_buckets(c, table, began, ended, until):
    """Those after @until go; that in which it lies keeps what came before it, of the time that was traced."""
    width = BUCKETS[table]
    c.execute(f"DELETE FROM {table} WHERE bucket >= ?", (until,))
    rows = c.execute("SELECT bucket, source, op, pid, nested, count, stored, sum_dur, sum_arg0, sketch "
                     f"FROM {table} WHERE bucket + ? > ?", (width, until)).fetchall()
    for row in rows:
        begin, end = max(row[0], began), min(row[0] + width, ended)
        if end > until:
            _cut_bucket(c, table, row, max(0, until - begin) / (end - begin))


def cut(db, began, ended, until):
    """Removes what was not known at @until from a recording of @began to @ended. Rows carry their start, and are
    known when they have ended."""
    with contextlib.closing(sqlite3.connect(db)) as c, c:
        tables = [r[0] for r in c.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for t in tables:
            columns = {r[1] for r in c.execute(f"PRAGMA table_info({t})")}
            if t in BUCKETS:
                _cut_buckets(c, t, began, ended, until)
            elif "timestamp" in columns:
                end = "timestamp + duration" if "duration" in columns else "timestamp"
                c.execute(f"DELETE FROM {t} WHERE {end} > ?", (until,))
            elif t == "sessions":
                c.execute("UPDATE sessions SET stopped_at = ? WHERE stopped_at > ?", (until, until))


def seconds_to_diagnosis(played, problem, step_s=1.0):
    """Seconds from the fault's begin to the earliest cut of the recording from which on every longer
    one, in steps of @step_s, names @problem aloud and its culprit; None if even the whole does not."""
    copy = played.db + ".cut"
    shutil.copy(played.db, copy)
    at, known = played.ended, None
    while at > played.onset:
        if not any(i["problem"] == problem and i["severity"] != "LOW" and names_culprit(i, played)
                   for i in explain(copy)):
            break
        known = (at - played.onset) / SECOND
        until, at = at, at - int(step_s * SECOND)
        cut(copy, played.began, until, at)
    for name in (copy, copy + "-wal", copy + "-shm"):
        pathlib.Path(name).unlink(missing_ok=True)
    return known
