#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""accuracy.py - how often the diagnosis is right on a real GPU: PyTorch training with faults put in while
`ingero trace` records, then `ingero explain`, scored (accuracy_score.py) against what each scenario states
(accuracy_scenarios.py).

  sudo python3 accuracy.py --ingero ./ingero --out FOLDER [--budget-s 390] [--round 1] [--seed 1] [--only a,b]
  python3 accuracy.py --report FOLDER... [--again FOLDER...] [--page docs/accuracy-rounds.md]    several rounds, as Markdown
  python3 accuracy.py --rescore FOLDER --ingero ./ingero --out OTHER    explains the kept recordings again

Needs root, an NVIDIA GPU and PyTorch; nothing else may run. --out gets results-N.jsonl (a line for each run),
report-N.md and runs-N-K.tar: each run's recording (.db.xz), answers, step log and what the agent printed.

The job of the next run imports PyTorch on the last two CPUs, at the lowest priority, while this run is
traced; it touches the GPU only after that. Answers are asked for there too.
"""
import argparse
import atexit
import concurrent.futures
import json
import lzma
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

import accuracy_faults
import accuracy_scenarios as scenarios
import accuracy_score

HERE = pathlib.Path(__file__).resolve().parent
REFERENCE_S = 1.2      # ordinary steps before a fault that is there from the start of the recording
RUN_ESTIMATE_S = 15
END_RESERVE_S = 15     # for the last answers and the archive
SHARD_BYTES = 512 << 20
ARCHIVE_BYTES = 14 << 20
START_LIMIT_S = 90


class Failed(Exception):
    pass


class Child:
    """A process with a group of its own, lines of JSON out, letters in."""

    def __init__(self, bench, argv, errors):
        self.p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(errors, "wb"),
                                  process_group=0, env=bench.environment)
        self.bench, self.errors, self.pid, self.rest = bench, errors, self.p.pid, b""
        bench.children.add(self)

    def expect(self, key, limit_s):
        """The next line that has @key."""
        end = time.monotonic() + limit_s
        while True:
            while b"\n" in self.rest:
                line, self.rest = self.rest.split(b"\n", 1)
                if line.startswith(b"{") and key in (said := json.loads(line)):
                    return said
            if not select.select([self.p.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise Failed(f"no {key!r} within {limit_s} s: {self.trouble()}")
            piece = os.read(self.p.stdout.fileno(), 65536)
            if not piece:
                raise Failed(f"ended before {key!r}: {self.trouble()}")
            self.rest += piece

    def trouble(self):
        return pathlib.Path(self.errors).read_text(errors="replace").strip()[-300:]

    def send(self, letter):
        try:
            self.p.stdin.write(letter.encode())
            self.p.stdin.flush()
        except OSError as e:
            raise Failed(f"cannot be told {letter!r}: {e}; {self.trouble()}") from e

    def end(self):
        """With everything that it started and that stayed in its group."""
        self.bench.children.discard(self)
        for f in (self.p.stdin, self.p.stdout):
            try:
                f.close()
            except OSError:
                pass
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except OSError:
            pass
        self.p.wait()


class Trace:
    def __init__(self, bench, folder):
        self.out = folder / "trace.txt"
        self.bench = bench
        self.p = subprocess.Popen([bench.ingero, "trace", "--db", str(folder / "run.db"), "--duration", "120s",
                                   *bench.trace_args], stdout=open(self.out, "wb"), stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL, process_group=0)
        self.pid = self.p.pid
        bench.children.add(self)
        end = time.monotonic() + 30
        while "Recording to" not in self.out.read_text(errors="replace"):
            if self.p.poll() is not None or time.monotonic() > end:
                raise Failed("ingero trace: " + self.out.read_text(errors="replace")[-300:])
            time.sleep(0.02)

    def ask_to_stop(self):
        self.p.send_signal(signal.SIGINT)

    def wait(self):
        try:
            self.p.wait(30)
        except subprocess.TimeoutExpired as e:
            raise Failed("ingero trace did not stop within 30 s") from e
        self.bench.children.discard(self)

    def end(self):
        self.bench.children.discard(self)
        if self.p.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
            self.p.wait()


class Bench:
    """Everything that must be undone at the end."""

    def __init__(self, args):
        self.ingero = str(pathlib.Path(args.ingero).resolve())
        self.device, self.ordinary_s, self.fault_s = args.device, args.ordinary_s, args.fault_s
        self.trace_args = args.trace_args.split()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ingero-accuracy-", dir=args.work))
        self.children, self.reset, self.job_end = set(), {}, []
        self.environment = {**os.environ, "OMP_NUM_THREADS": "8", "PYTHONUNBUFFERED": "1"}
        cpus = sorted(os.sched_getaffinity(0))
        self.spare_cpus, self.job_cpus = (cpus[-2:], cpus[:-2]) if len(cpus) >= 8 else (cpus, cpus)
        self.shard, self.made = self.folder / "shard", 0
        self.shard_ready = threading.Thread(target=self.make_shard)
        atexit.register(self.clean)

    def make_shard(self):
        """A file on the disk."""
        block = os.urandom(4 << 20)
        with open(self.shard, "wb") as f:
            for _ in range(SHARD_BYTES // len(block)):
                f.write(block)
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def to_background(self, pid):
        try:
            os.sched_setaffinity(pid, self.spare_cpus)
            os.setpriority(os.PRIO_PROCESS, pid, 19)
        except ProcessLookupError:
            pass  # it is done already

    def to_foreground(self, pid):
        def promote(tid):
            os.setpriority(os.PRIO_PROCESS, tid, 0)
            os.sched_setaffinity(tid, self.job_cpus)
        accuracy_faults.for_all_tasks(pid, promote)

    def spawn(self, argv, errors=None):
        self.made += 1
        return Child(self, argv, errors or self.folder / f"{self.made}.err")

    def spawn_job(self, spec, folder=None):
        self.made += 1
        path = (folder or self.folder) / ("spec.json" if folder else f"{self.made}.json")
        path.write_text(json.dumps(spec))
        program = HERE / spec.get("program", "train_job.py")
        return self.spawn([sys.executable, str(program), str(path)], path.with_suffix(".err"))

    def at_job_end(self, action):
        self.job_end.append(action)

    def job_ended(self):
        while self.job_end:
            self.job_end.pop()()

    def clean(self):
        for child in list(self.children):
            child.end()
        for args in self.reset.values():
            try:
                accuracy_faults.smi(*args)
            except accuracy_faults.Unavailable as e:
                print(f"could not undo: {e}", flush=True)
        self.reset.clear()
        self.job_ended()
        shutil.rmtree(self.folder, ignore_errors=True)


class Run:
    """One scenario, once."""

    def __init__(self, bench, s, args):
        self.bench, self.s = bench, s
        self.folder = bench.folder / f"{s.name}-{args.round}-{args.seed}"
        self.folder.mkdir()
        self.meta = {"name": s.name, "round": args.round, "seed": args.seed, "fault_ns": 0}
        self.outside = s.outside(bench) if s.outside else accuracy_faults.Outside(bench)
        self.spec = scenarios.specification(s, args.round, args.seed)
        if bench.device == "cpu":
            self.spec.update(width=64, layers=2, batch=8, seq=32, vocabulary=256)
        self.job = None

    def start_job(self):
        """Before the agent: imports, then waits. After it: starts at once."""
        self.spec.update(folder=str(self.folder), log=str(self.folder / "steps.json"), device=self.bench.device,
                         shard="")
        if self.spec["needs_shard"]:
            self.bench.shard_ready.join()
            self.spec.update(shard=str(self.bench.shard))
        self.outside.start(self.spec)
        self.job = self.bench.spawn_job(self.spec, self.folder)
        self.meta.update(pid=self.job.pid, spec=self.spec)
        if self.spec["wait"]:
            self.bench.to_background(self.job.pid)
        else:
            self.bench.to_foreground(self.job.pid)
            self.outside.prepare(self.job.pid)

    def job_ready(self):
        if self.spec["wait"]:
            self.job.expect("imported", START_LIMIT_S)
            self.bench.to_foreground(self.job.pid)
            self.outside.prepare(self.job.pid)
            self.job.send("g")
        ready = self.job.expect("ready", START_LIMIT_S)
        self.meta.update(gpu=ready["gpu"], torch=ready["torch"], step_ms=ready["step_ms"])

    def fault_on(self):
        if self.s.is_healthy and not self.s.fault and not self.s.outside:
            return
        self.meta["fault_ns"] = time.time_ns()
        self.outside.on(self.job.pid)
        self.job.send("f")

    def play(self, start_next):
        if self.meta.get("problem"):
            raise Failed(self.meta["problem"])
        if self.s.start == "after":
            trace = Trace(self.bench, self.folder)
            self.start_job()
            self.job_ready()
        else:
            if not self.job:
                self.start_job()
            self.job_ready()
            if self.s.from_start:
                time.sleep(REFERENCE_S)
                self.fault_on()
                time.sleep(0.3)
            trace = Trace(self.bench, self.folder)
        self.meta["begin_ns"] = time.time_ns()
        start_next()
        time.sleep(self.bench.ordinary_s)
        if not self.s.from_start:
            self.fault_on()
        time.sleep(self.bench.fault_s)
        self.meta["end_ns"] = time.time_ns()
        trace.ask_to_stop()
        time.sleep(0.2)
        self.outside.off()
        trace.wait()
        self.job.send("s")
        self.job.expect("done", 20)

    def finish(self):
        """Whatever happened: nothing of it is left. Faults are lifted before the job is ended."""
        for action in (self.outside.off, self.job.end if self.job else None, self.bench.job_ended):
            try:
                if action:
                    action()
            except (OSError, accuracy_faults.Unavailable) as e:
                self.meta.setdefault("clean_up", []).append(str(e))
        for name in ("checkpoint.pt", "metrics.log", "cache"):
            (self.folder / name).unlink(missing_ok=True)
        (self.folder / "meta.json").write_text(json.dumps(self.meta))


def answers(ingero, folder, prepare=None):
    """What the agent says about the recording."""
    db = str(folder / "run.db")
    for name, args in (("explain.json", ["--json"]), ("explain.txt", []), ("account.json", ["--steps", "--json"]),
                       ("account.txt", ["--steps"])):
        p = subprocess.Popen([ingero, "explain", "--db", db, *args], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT if name.endswith("txt") else subprocess.PIPE)
        if prepare:
            prepare(p.pid)
        try:
            out, _ = p.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            p.kill()
            out = p.communicate()[0]
        (folder / name).write_bytes(out)


def conclude(bench, run):
    """In the background: answers, verdict, compressed recording."""
    if not run.meta.get("problem"):
        answers(bench.ingero, run.folder, bench.to_background)
    result = accuracy_score.judge(run.folder)
    db = run.folder / "run.db"
    if db.exists():
        p = subprocess.Popen([sys.executable, __file__, "--compress", str(db)])
        bench.to_background(p.pid)
        p.wait()
        for leftover in run.folder.glob("run.db*"):
            if leftover.suffix != ".xz":
                leftover.unlink()
        for small in run.folder.glob("*.err"):
            if not small.stat().st_size:
                small.unlink()
    return result


def compress(path):
    with open(path, "rb") as f, lzma.open(path + ".xz", "wb", preset=1) as out:
        shutil.copyfileobj(f, out, 1 << 20)


def progress(result, seconds):
    if "rejected" in result:
        verdict = "NOT COUNTED: " + result["rejected"]
        if "slower" in result:
            verdict += f", steps {result['slower']:.2f} times as long"
    else:
        said = f"{result['severity']} {result['said']}".strip()
        marks = [f"{k}={result[k]}" for k in ("top_line", "top_owner", "line", "culprit", "place") if k in result]
        unknown = "" if result.get("unknown") is None else f" unknown={result['unknown']:.0%}"
        verdict = f"{'right' if result['top1'] else 'WRONG'}: {said} {' '.join(marks)}{unknown}"
        if "slower" in result:
            verdict += f" ({result['step_ms']:.0f} -> {result['slow_step_ms']:.0f} ms)"
        if result["false_alarms"] and not result["healthy"]:
            verdict += f" also {', '.join(result['false_alarms'])}"
    print(f"[{seconds:5.0f} s] {result['name']:16} {verdict}", flush=True)


def archive(bench, args):
    """Few files, none large."""
    part, tar, size = 0, None, ARCHIVE_BYTES
    for folder in sorted(p for p in bench.folder.iterdir() if p.is_dir()):
        bytes_here = sum(f.stat().st_size for f in folder.iterdir())
        if size + bytes_here > ARCHIVE_BYTES:
            if tar:
                tar.close()
            part, size = part + 1, 0
            tar = tarfile.open(args.out / f"runs-{args.round}-{part}.tar", "w")
        tar.add(folder, arcname=folder.name)
        size += bytes_here
    if tar:
        tar.close()


def play_all(bench, args, chosen):
    begin = time.monotonic()
    results = []
    path = args.out / f"results-{args.round}.jsonl"
    lock = threading.Lock()
    prepared = {}

    def concluded(run):
        try:
            result = conclude(bench, run)
        except Exception as e:  # one run's trouble is not the others'
            result = {"name": run.s.name, "round": args.round, "seed": args.seed, "healthy": run.s.is_healthy,
                      "what": run.s.what, "rejected": f"{type(e).__name__}: {e}"}
        with lock, open(path, "a", encoding="utf-8") as f:
            f.write(json.dumps(result, ensure_ascii=False) + "\n")
            results.append(result)
            progress(result, time.monotonic() - begin)

    def start_next(i):
        def start():
            if i + 1 < len(chosen) and chosen[i + 1].start == "before":
                prepared[i + 1] = Run(bench, chosen[i + 1], args)
                try:
                    prepared[i + 1].start_job()
                except (Failed, OSError) as e:
                    prepared[i + 1].meta["problem"] = str(e)
        return start

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for i, s in enumerate(chosen):
            if time.monotonic() - begin > args.budget_s - RUN_ESTIMATE_S - END_RESERVE_S:
                print(f"not played, no time left: {','.join(c.name for c in chosen[i:])}", flush=True)
                break
            run = prepared.pop(i, None) or Run(bench, s, args)
            try:
                run.play(start_next(i))
            except (Failed, accuracy_faults.Unavailable, OSError) as e:
                run.meta["problem"] = f"{type(e).__name__}: {e}"
                for child in [c for c in bench.children if isinstance(c, Trace)]:
                    child.end()
            finally:
                run.finish()
            pool.submit(concluded, run)
    for run in prepared.values():
        run.finish()
        shutil.rmtree(run.folder, ignore_errors=True)
    print(f"{len(results)} runs in {time.monotonic() - begin:.0f} s", flush=True)
    return results


def read_results(folders):
    out = []
    for folder in folders:
        for path in sorted(pathlib.Path(folder).glob("results-*.jsonl")):
            out += [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return out


def rescore(args):
    """The recordings of a folder, explained by this build; each with what was said when it was made."""
    results = []
    firsts = {(r["name"], r["round"], r["seed"]): r for path in pathlib.Path(args.rescore).glob("results-*.jsonl")
              for r in map(json.loads, path.read_text().splitlines())}
    with tempfile.TemporaryDirectory(prefix="ingero-rescore-") as work:
        for path in sorted(pathlib.Path(args.rescore).glob("runs-*.tar")):
            with tarfile.open(path) as tar:
                tar.extractall(work, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(work)
        for folder in sorted(pathlib.Path(work).iterdir()):
            if args.only and folder.name.rsplit("-", 2)[0] not in args.only.split(","):
                continue
            if (folder / "run.db.xz").exists():
                with lzma.open(folder / "run.db.xz") as f, open(folder / "run.db", "wb") as out:
                    shutil.copyfileobj(f, out, 1 << 20)
                answers(str(pathlib.Path(args.ingero).resolve()), folder)
            result = accuracy_score.judge(folder)
            first = firsts.get((result["name"], result["round"], result["seed"]))
            if first:
                result["first"] = accuracy_score.is_right(first)
            results.append(result)
            progress(results[-1], 0)
            if args.texts:
                print((folder / "explain.txt").read_text(errors="replace"))
    return results


def options():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--ingero", default=str(HERE / "ingero"))
    p.add_argument("--out", type=pathlib.Path, default=pathlib.Path("accuracy-out"))
    p.add_argument("--budget-s", type=float, default=560)
    p.add_argument("--only", help="names of scenarios, with commas")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--round", type=int, default=1)
    p.add_argument("--ordinary-s", type=float, default=4.5, help="seconds before the fault")
    p.add_argument("--fault-s", type=float, default=5.5, help="seconds with it")
    p.add_argument("--device", default="cuda", help="cpu: tries the bench itself where there is no GPU")
    p.add_argument("--work", default="/var/tmp", help="folder on a disk")
    p.add_argument("--trace-args", default="", help="more flags for ingero trace")
    p.add_argument("--list", action="store_true")
    p.add_argument("--report", nargs="+", metavar="FOLDER")
    p.add_argument("--again", nargs="+", metavar="FOLDER", default=[], help="with --report: what --rescore wrote")
    p.add_argument("--page", type=pathlib.Path, help="with --report: put it into this page")
    p.add_argument("--rescore", metavar="FOLDER")
    p.add_argument("--texts", action="store_true", help="with --rescore: print what explain says")
    p.add_argument("--compress", help=argparse.SUPPRESS)
    return p.parse_args()


def main():
    args = options()
    if args.compress:
        return compress(args.compress)
    if args.report:
        text = accuracy_score.report(read_results(args.report), read_results(args.again))
        if args.page:
            args.page.write_text(accuracy_score.put_into_page(args.page.read_text(), text))
        return print(text)
    if args.rescore:
        results = rescore(args)
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / "results-again.jsonl").write_text(
            "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in results), encoding="utf-8")
        return print(accuracy_score.report(results))
    chosen = scenarios.SCENARIOS
    if args.only:
        chosen = [scenarios.BY_NAME[name] for name in args.only.split(",")]
    if args.list:
        return print("\n".join(f"{s.name:16} {'healthy' if s.is_healthy else 'fault':8} {s.start:7} {s.what}"
                               for s in chosen))
    if os.geteuid() != 0:
        sys.exit("accuracy.py needs root")
    args.out.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    bench = Bench(args)
    try:
        bench.shard_ready.start()
        if bench.device != "cpu":
            accuracy_faults.keep_driver_loaded(bench.reset)
        try:
            results = play_all(bench, args, chosen)
        finally:
            archive(bench, args)
        text = accuracy_score.report(results)
        (args.out / f"report-{args.round}.md").write_text(text, encoding="utf-8")
        print(text)
    finally:
        bench.shard_ready.join()
        bench.clean()


if __name__ == "__main__":
    main()
