# SPDX-License-Identifier: Apache-2.0
"""rig.py - what integration tests share: TAP output, a workload on the stand-in GPU that waits until
the tracer is ready, the tracer itself, the tally of the stand-in libraries and the recorded database.

A test is a file NN-name that imports this, calls check(name, condition, detail) and ends with done().
"""
import atexit
import contextlib
import ctypes
import io
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD", SOURCE / "build")).resolve()
INGERO = str(BUILD / "ingero")
SIM = BUILD / "sim"
# Where a driver is installed, this may name its folder, which goes before what is written into our programs:
# the stand-in GPU would not stand in.
os.environ.pop("LD_LIBRARY_PATH", None)

READY_S = 60  # for a program to be ready: a moment, but for a machine on which thirty others want the CPU
PATIENCE = float(os.environ.get("PATIENCE", "1"))  # times as slow as a real machine: an emulated one

_points = []
_children = []
_scratch = pathlib.Path(tempfile.mkdtemp(prefix="ingero-test-", dir="/var/tmp"))
os.environ["STATE_DIRECTORY"] = str(_scratch / "state")  # root's ingero-cluster would use the machine's own


def scratch(name):
    return str(_scratch / name)


def check(name, ok, detail=""):
    """One TAP point. @detail is shown when it fails."""
    _points.append(bool(ok))
    print(f"{'ok' if ok else 'not ok'} {len(_points)} - {name}", flush=True)
    if not ok:
        for line in str(detail).splitlines()[:40]:
            print(f"# {line}", flush=True)
    return bool(ok)


def equal(name, got, wanted):
    return check(name, got == wanted, f"got    {got!r}\nwanted {wanted!r}")


def skip(name, why):
    _points.append(True)
    print(f"ok {len(_points)} - {name} # SKIP {why}", flush=True)


def _fail(kind, value, trace):
    """What ends a test before its time is a point that fails, with the reason."""
    check("the test runs to its end", False, "".join(traceback.format_exception(kind, value, trace)))
    sys.__excepthook__(kind, value, trace)


sys.excepthook = _fail


@atexit.register
def _clean():
    """Also after an exception: nothing of a test outlives it."""
    for p in _children:
        if p.poll() is None:
            p.kill()
            p.wait()
    shutil.rmtree(_scratch, ignore_errors=True)


def done():
    print(f"1..{len(_points)}")
    sys.exit(0 if _points and all(_points) else 1)


class Lines(io.TextIOWrapper):
    """What a program prints. Who waits for its next line, in the main thread, waits READY_S at most."""

    said_by = ""

    def readline(self, *args):
        if threading.current_thread() is not threading.main_thread():
            return super().readline(*args)
        before = signal.signal(signal.SIGALRM, self._late)
        signal.setitimer(signal.ITIMER_REAL, READY_S * PATIENCE)
        try:
            return super().readline(*args)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def _late(self, *_):
        raise TimeoutError(f"no further line within {READY_S * PATIENCE:g} s of: {self.said_by}")


def _lines(pipe, program):
    lines = Lines(pipe.detach(), encoding=pipe.encoding, errors=pipe.errors)
    lines.said_by = program
    return lines


def start(args, **kw):
    kw.setdefault("stdout", subprocess.PIPE)
    kw.setdefault("stderr", subprocess.PIPE)
    p = subprocess.Popen([str(a) for a in args], text=True, **kw)
    p.stdout, p.stderr = (pipe and _lines(pipe, " ".join(map(str, args))) for pipe in (p.stdout, p.stderr))
    _children.append(p)
    return p


def run(*args, timeout=60, **kw):
    """A finished `ingero` command: .returncode, .stdout, .stderr."""
    return subprocess.run([INGERO, *map(str, args)], text=True, capture_output=True,
                          timeout=timeout, **kw)


def put_first(pid):
    """All threads of @pid, and those that they start, go before whatever has no real-time priority: what the machine does
    beside the test takes no CPU from them. False where that is not allowed."""
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            os.sched_setscheduler(int(thread), os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        return False
    return True


def favour(pid):
    """All threads of @pid, and those that they start, get nearly all of a CPU that others want, too; those that are favoured
    share it as ever. For tests in which one disturbs the other, and nobody else shall."""
    with contextlib.suppress(PermissionError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            os.setpriority(os.PRIO_PROCESS, int(thread), -20)
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/autogroup", "w") as group:
            group.write("-20")  # times are shared out by session first, where the kernel does that


def wait_for(path, seconds=READY_S):
    end = time.monotonic() + seconds * PATIENCE
    while not os.path.exists(path):
        if time.monotonic() > end:
            raise TimeoutError(f"{path} did not appear")
        time.sleep(0.005)


def wait_until(what, seconds=20, pause=0.05):
    """Polls what() until it is true and returns that; what it is after @seconds otherwise. What is not
    written yet counts as not true."""
    end = time.monotonic() + seconds * PATIENCE
    while True:
        try:
            found = what()
        except sqlite3.Error:
            found = None
        if found or time.monotonic() > end:
            return found
        time.sleep(pause)


class Workload:
    """A program of the stand-in GPU, held back until go()."""

    count = 0

    def __init__(self, program, *args, env=None, tally=True, hold=True):
        Workload.count += 1
        self.gate = scratch(f"go{Workload.count}")
        self.tally_path = scratch(f"tally{Workload.count}")
        full = dict(os.environ, **(env or {}))
        if tally:
            full["SIM_TALLY"] = self.tally_path + ".%p"
        argv = [sys.executable] if program.endswith(".py") else []
        where = SOURCE / "sim" if program.endswith(".py") else SIM
        full.setdefault("SIM_DIR", str(SIM))
        gate = ["--wait-start", self.gate] if hold else []
        self.process = start([*argv, where / program, *args, *gate], env=full)
        self.pid = self.process.pid
        if hold:
            wait_for(self.gate + ".ready")

    def go(self):
        open(self.gate, "w").close()

    def wait(self, timeout=60):
        out, err = self.process.communicate(timeout=timeout * PATIENCE)
        assert self.process.returncode == 0, f"workload failed: {err}"
        return out

    def tally(self, of="cud*"):
        """symbol -> dict of its columns, over all processes and both libraries of CUDA; of="libnccl": NCCL's."""
        sums = {}
        for path in _scratch.glob(os.path.basename(self.tally_path) + ".*." + of):
            lines = path.read_text().splitlines()
            columns = lines[0].lstrip("# ").split()[1:]
            for line in lines[1:]:
                name, *values = line.split()
                row = sums.setdefault(name, dict.fromkeys(columns, 0))
                for column, value in zip(columns, map(int, values)):
                    row[column] += value
        return sums


class Trace:
    """`ingero trace` in the background, recording to a database of its own."""

    count = 0

    def __init__(self, *args, db=True, wait=True, budget="0", program=INGERO):
        """Tests that compare with tallies want every call: no budget unless they say so."""
        Trace.count += 1
        self.db = scratch(f"trace{Trace.count}.db")
        where = ["--db", self.db] if db else ["--record=false"]
        self.out_path = scratch(f"trace{Trace.count}.out")
        self.process = start([program, "trace", "--overhead-budget", budget, *where, *args],
                             stdout=open(self.out_path, "w"), stderr=subprocess.STDOUT)
        if wait:
            self.wait_ready()

    def wait_ready(self):
        """The header is printed once recording is on."""
        end = time.monotonic() + READY_S * PATIENCE
        while "Recording to" not in self.output():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("trace did not start: " + self.output())
            time.sleep(0.01)

    def output(self):
        return pathlib.Path(self.out_path).read_text(errors="replace")

    def stop(self, number=signal.SIGTERM, timeout=30):
        """Returns the seconds it took to end."""
        begin = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(timeout * PATIENCE)
        return time.monotonic() - begin

    def sql(self, query, *args):
        with contextlib.closing(sqlite3.connect(f"file:{self.db}?mode=ro", uri=True)) as c:
            return c.execute(query, args).fetchall()

    def books(self):
        """source -> (hits, stored, aggregated, lost) of the only session."""
        return {s: (h, st, ag, lo) for s, h, st, ag, lo in
                self.sql("SELECT source, hits, stored, aggregated, lost FROM accounting WHERE hits > 0")}

    def rows(self):
        """source -> rows that are stored: events, and ledgers, which are records of the host."""
        return dict(self.sql("SELECT source, sum(n) FROM (SELECT source, count(*) AS n FROM events GROUP BY 1 UNION"
                             " ALL SELECT 3, count(*) FROM ledger) GROUP BY 1"))

    def losses(self):
        return {(s, r): n for s, r, n in
                self.sql("SELECT source, reason, count FROM losses WHERE count > 0")}

    def counts(self):
        """op name -> (calls by aggregates, bytes)."""
        return {n: (c, b) for n, c, b in self.sql(
            "SELECT o.name, sum(a.count), sum(a.sum_arg0) FROM event_aggregates_5s a"
            " JOIN ops o ON o.source_id = a.source AND o.op_id = a.op GROUP BY 1")}


def become_cuda_process():
    """This process has the stand-in libraries from now on. The driver's first: the runtime would take a real one."""
    for library in ("libcuda.so.1", "libcudart.so.12"):
        ctypes.CDLL(str(SIM / library))


def books_balance(trace, name):
    """hits = stored + aggregated + lost for every source, and the rows that are there are `stored`."""
    rows = trace.rows()
    for source, (hits, stored, aggregated, lost) in sorted(trace.books().items()):
        equal(f"{name}: source {source}: hits = stored + aggregated + lost", hits,
              stored + aggregated + lost)
        equal(f"{name}: source {source}: stored rows are in the table", rows.get(source, 0), stored)


# The op that a symbol of the stand-in libraries is recorded as; symbols not here are not probed.
OPS = {
    "cudaStreamSynchronize": "cudaStreamSync", "cudaDeviceSynchronize": "cudaDeviceSync",
    "cudaEventSynchronize": "cudaEventSync", "cudaMallocHost": "cudaHostAlloc",
    "cuMemcpy2DUnaligned": "cuMemcpy2D", "cudaStreamBeginCapture": "graphBeginCapture",
    "cudaStreamEndCapture": "graphEndCapture", "cudaGraphInstantiate": "graphInstantiate",
    "cudaGraphInstantiateWithFlags": "graphInstantiate",
    "cudaGraphInstantiateWithParams": "graphInstantiate", "cudaGraphLaunch": "graphLaunch",
    "cudaGraphExecUpdate": "graphExecUpdate", "cudaGraphDestroy": "graphDestroy",
    "cudaGraphExecDestroy": "graphExecDestroy", "cudaMemset2D": "cudaMemset",
    "cudaMemset2DAsync": "cudaMemsetAsync", "cuMemsetD2D8": "cuMemsetD8",
    "cuMemsetD2D8Async": "cuMemsetD8Async", "cuMemsetD16": "cuMemsetD8", "cuMemsetD16Async": "cuMemsetD8Async",
    "cuMemsetD32": "cuMemsetD8", "cuMemsetD32Async": "cuMemsetD8Async", "cuMemsetD2D32Async": "cuMemsetD8Async",
    "cuMemcpyWithAttributesAsync": "cuMemcpyAsync", "cuMemcpy3DBatchAsync": "cuMemcpyBatchAsync",
    "cudaMemcpy3DBatchAsync": "cudaMemcpyBatchAsync", "cudaMemcpyToSymbol": "cudaMemcpy",
    "cudaMemcpyToSymbolAsync": "cudaMemcpyAsync", "cudaMalloc3D": "cudaMallocArray",
    "cudaFreeArray": "cudaFree", "cudaMemcpy2DToArray": "cudaMemcpy2D", "cudaMemcpy2DToArrayAsync": "cudaMemcpy2DAsync",
    "cudaMemcpy2DArrayToArray": "cudaMemcpy2D", "cudaMemcpyToArray": "cudaMemcpy",
    "cudaMemcpyToArrayAsync": "cudaMemcpyAsync", "cudaMemcpyArrayToArray": "cudaMemcpy", "cudaMemset3D": "cudaMemset",
    "cudaMemset3DAsync": "cudaMemsetAsync", "cudaMemcpy3DPeer": "cudaMemcpyPeer",
    "cudaMemcpy3DPeerAsync": "cudaMemcpyPeerAsync",
    "cudaThreadSynchronize": "cudaDeviceSync", "cuStreamWaitValue32": "cuStreamWaitValue",
    "cudaStreamBeginCaptureToGraph": "graphBeginCapture", "cudaGraphUpload": "graphUpload",
    "cudaGraphExecKernelNodeSetParams": "graphExecNodeSetParams", "cuStreamBeginCapture": "graphBeginCapture",
    "cuStreamBeginCaptureToGraph": "graphBeginCapture", "cuStreamEndCapture": "graphEndCapture",
    "cuGraphInstantiateWithFlags": "graphInstantiate", "cuGraphInstantiateWithParams": "graphInstantiate",
    "cuGraphLaunch": "graphLaunch", "cuGraphExecUpdate": "graphExecUpdate", "cuGraphDestroy": "graphDestroy",
    "cuGraphExecDestroy": "graphExecDestroy", "cuGraphUpload": "graphUpload",
    "cuGraphExecKernelNodeSetParams": "graphExecNodeSetParams",
}
UNPROBED = {
    "cudaStreamCreate", "cudaStreamDestroy", "cudaEventCreate", "cudaEventRecord",
    "cudaEventDestroy", "cudaSetDevice", "cudaGetDevice", "cudaGetDeviceCount",
    "cudaGetErrorString", "cudaGetLastError", "cuInit", "cuDriverGetVersion", "cuDeviceGetCount",
    "cuDeviceGetName", "cuDevicePrimaryCtxRetain", "cuStreamCreate", "cuStreamDestroy",
    "cuEventCreate", "cuEventRecord", "cuEventDestroy",
    "cuCtxGetCurrent", "cuCtxSetCurrent", "cudaEventQuery", "cudaStreamQuery", "cuEventQuery",
    "cuStreamQuery", "cuMemGetAddressRange", "cuMemAddressReserve", "cuMemAddressFree",
    "cuMemSetAccess", "cudaDeviceGetDefaultMemPool", "cuDeviceGetDefaultMemPool", "cudaMemGetInfo",
}


def op_of(symbol):
    name = symbol
    for suffix in ("_ptsz", "_ptds", "_v2"):
        name = name[:-len(suffix)] if name.endswith(suffix) else name
    return None if name in UNPROBED else OPS.get(name, name)


def tally_by_op(tally, column="calls"):
    sums = {}
    for symbol, row in tally.items():
        op = op_of(symbol)
        if op and row["calls"]:
            sums[op] = sums.get(op, 0) + row[column]
    return sums
