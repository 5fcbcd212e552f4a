# SPDX-License-Identifier: Apache-2.0
"""versions.py - the libraries of NVIDIA as users have them: which versions there are, fetched by pip into build/versions/,
and called under the tracer without a GPU. Every function of our tables that a library exports is called with zeros, a prime
number of times, fails, and must be counted exactly as often.

Used by tools/versions (fetches), tools/check-versions (all of them) and 13-versions (three of each)."""
import ctypes
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PATIENCE_S = 600

# Where a communicator keeps its rank, by the machine code of ncclCommUserRank(); the number of ranks is 4 bytes behind it
# and the device 8.
NCCL_RANK = {
    "2.13.4": 5296, "2.14.3": 6064, "2.15.5": 6064, "2.16.5": 6072, "2.17.1": 7608, "2.18.1": 9176, "2.18.3": 9176,
    "2.19.3": 9432, "2.20.5": 10456, "2.21.5": 13536, "2.22.3": 213584, "2.23.4": 246952, "2.24.3": 246952,
    "2.25.1": 492712, "2.26.2": 492728, "2.26.5": 492728, "2.27.3": 1066168, "2.27.7": 1066168, "2.28.3": 1066184,
    "2.28.9": 1066192, "2.29.2": 1066712, "2.29.7": 1181400, "2.30.3": 1181408, "2.30.7": 1181424, "2.31.2": 1181416,
    "2.32.3": 1181416,
}
# Where it keeps the number of collectives that it has launched: so far behind the rank. Older ones have no such counter.
NCCL_COUNTER = {
    "2.24.3": 272, "2.25.1": 272, "2.26.2": 272, "2.26.5": 272, "2.27.3": 272, "2.27.7": 272, "2.28.3": 296, "2.28.9": 296,
    "2.29.2": 296, "2.29.7": 296, "2.30.3": 296, "2.30.7": 296, "2.31.2": 304, "2.32.3": 312,
}
# The library of the other architecture, which is read but not run: wheels of arm64 begin with 2.20.5.
OTHER = {"x86_64": "aarch64", "aarch64": "x86_64"}.get(os.uname().machine)
OTHER_FEW = ("2.28.9",)
NO_ARM = ("2.13.4", "2.14.3", "2.15.5", "2.16.5", "2.17.1", "2.18.1", "2.18.3", "2.19.3", "2.21.5", "2.22.3")
PLATFORMS = ("manylinux1", "manylinux2010", "manylinux2014", "manylinux_2_17", "manylinux_2_18", "manylinux_2_27",
             "manylinux_2_28", "manylinux_2_31")
CUDART = ("11.7.99", "11.8.89", "12.0.146", "12.1.105", "12.2.140", "12.3.101", "12.4.127", "12.5.82", "12.6.77", "12.8.90",
          "12.9.79", "13.0.96", "13.1.80", "13.2.86", "13.3.29", "13.4.92")
CUPTI_API = {  # what cuptiGetVersion() says
    "11.7.101": 17, "11.8.87": 18, "12.0.146": 18, "12.1.105": 18, "12.2.142": 20, "12.3.101": 21, "12.4.127": 22,
    "12.5.82": 23, "12.6.80": 24, "12.8.90": 26, "12.9.79": 28, "13.0.85": 130001, "13.1.115": 130101, "13.2.86": 130201,
    "13.3.75": 130301, "13.4.92": 130401,
}
FEW = {"libnccl": ("2.14.3", "2.21.5", "2.32.3"), "libcudart": ("11.8.89", "12.4.127", "13.4.92"), "libcupti": ()}

# Functions that follow a communicator that is not there, in these versions; the others look at it first.
NOT_CALLED = {"ncclCommShrink": r"", "ncclCommSplit": r"2\.2[34]\."}
# What is called after each call, so that a group is not left open.
PAIRED = {"ncclGroupStart": "ncclGroupEnd"}

# What does work or waits, whatever it is called: names of the newest libraries that are ours to look at. A simulated group
# submits nothing.
WORK = {
    "libcudart": r"cuda(Launch|Memcpy|Memset|Malloc|Free|MemPrefetch|HostAlloc|HostRegister|\w*Synchronize|StreamWait|"
                 r"Stream(Begin|End)|Graph(Launch|Upload|Instantiate|ExecUpdate))\w*",
    "libnccl": r"nccl(All|Broadcast|Bcast|Reduce|Gather|Scatter|Send|Recv|Put|Signal|Wait|Group(?!Simulate)|Comm(Init|Split|Shrink|Grow|"
               r"Destroy|Abort|Finalize|Revoke|Suspend|Resume))\w*",
}


def package(library, version):
    major = int(version.split(".")[0]) if library != "libnccl" else None
    if library == "libnccl":
        minor = int(version.split(".")[1])
        return "nvidia-nccl-" + ("cu11" if minor < 16 else "cu12" if minor < 31 else "cu13")
    stem = {"libcudart": "nvidia-cuda-runtime", "libcupti": "nvidia-cuda-cupti"}[library]
    return stem + (f"-cu{major}" if major < 13 else "")


def rows(few=False):
    """(library, version) of all, or of the few that every check tries."""
    every = {"libnccl": NCCL_RANK, "libcudart": CUDART, "libcupti": CUPTI_API}
    return [(library, v) for library, versions in (FEW if few else every).items() for v in versions]


# ---- fetching ----

class NotFetched(Exception):
    pass


def others(few=False):
    """Versions of libnccl to be read of the other architecture."""
    return [v for v in (OTHER_FEW if few else NCCL_RANK) if OTHER and (OTHER != "aarch64" or v not in NO_ARM)]


def place(build, library, version, machine=None):
    return pathlib.Path(build) / "versions" / (f"{library}-{version}" + (f"-{machine}" if machine else ""))


def fetched(build, library, version, machine=None):
    """The library's file, or None."""
    return next(iter(sorted(place(build, library, version, machine).glob(library + ".so*"))), None)


def fetch(build, library, version, machine=None):
    """The library's file of that version, fetched by pip unless it is there; @machine: another than this one."""
    there = fetched(build, library, version, machine)
    if there:
        return there
    folder, spec = place(build, library, version, machine), f"{package(library, version)}=={version}"
    platforms = [a for p in PLATFORMS for a in ("--platform", f"{p}_{machine}")] if machine else []
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        try:
            out = subprocess.run([sys.executable, "-m", "pip", "download", "--no-cache-dir", "--no-deps",
                                  "--only-binary=:all:", "--retries", "1", "--timeout", "20", "-q", "-d", scratch,
                                  *platforms, spec], text=True, capture_output=True, timeout=PATIENCE_S)
        except (OSError, subprocess.TimeoutExpired) as e:
            raise NotFetched(f"{spec}: {e}") from None
        wheels = list(pathlib.Path(scratch).glob("*.whl"))
        if out.returncode or not wheels:
            said = [l for l in out.stderr.splitlines() if l.startswith("ERROR")] or out.stderr.splitlines() or ["no wheel"]
            raise NotFetched(f"{spec}: {said[-1][:200]}")
        with zipfile.ZipFile(wheels[0]) as wheel:
            member = next((m for m in wheel.namelist() if re.fullmatch(rf"{library}\.so[.0-9]*", m.split("/")[-1])), None)
            if not member:
                raise NotFetched(f"{spec}: its wheel has no {library}")
            part = pathlib.Path(scratch) / member.split("/")[-1]
            with wheel.open(member) as source, open(part, "wb") as copy:
                shutil.copyfileobj(source, copy)
        folder.mkdir(exist_ok=True)
        os.replace(part, folder / part.name)
    return fetched(build, library, version, machine)


# ---- our tables ----

def tables():
    """library -> {symbol: name of its op}; None: probed, but no event."""
    ids = (ROOT / "src/wire/ids.h").read_text()
    ops = {}
    for source, text in re.findall(r"#define WIRE_OPS_(\w+)\(X\)(.*?)\n\n", ids, re.S):
        ops[source] = dict(re.findall(r'X\(\d+, (\w+),\s*\\?\s*"(\w+)"', text))
    found = {}
    for library, path, sources in (("libcudart", "cuda_rt/cuda_rt.c", {"RT": "CUDA", "GRAPH": "GRAPH"}),
                                   ("libnccl", "nccl/nccl.c", {"NCCL": "NCCL"})):
        found[library] = {}
        text = (ROOT / "src/record/probe" / path).read_text()
        for symbols, kind, op, rest in re.findall(r'\{\{("[^}]*")\},\s*(\w+)\((\w+),([^)]*)\)', text):
            name = ops[sources[kind]][op] if "COOKIE_DEVICE" not in rest else None
            found[library].update(dict.fromkeys(re.findall(r'"(\w+)"', symbols), name))
    return found


# ---- a library's file ----

def exports(path):
    """Exported functions: name -> offset in the file."""
    with open(path, "rb") as f:
        def read(at, size):
            f.seek(at)
            return f.read(size)

        header = struct.unpack("<16sHHIQQQIHHHHHH", read(0, 64))
        segments = [struct.unpack("<IIQQQQQQ", read(header[5] + 56 * i, 56)) for i in range(header[10])]
        sections = [struct.unpack("<IIQQQQIIQQ", read(header[6] + 64 * i, 64)) for i in range(header[12])]
        dynamic = next(s for s in sections if s[1] == 11)
        names, symbols = read(*sections[dynamic[6]][4:6]), read(*dynamic[4:6])
    found = {}
    for name, info, _, section, value, _ in struct.iter_unpack("<IBBHQQ", symbols):
        if info & 15 == 2 and section:
            at = next((s[2] + value - s[3] for s in segments if s[0] == 1 and s[3] <= value < s[3] + s[5]), 0)
            found[names[name:names.index(b"\0", name)].decode()] = at
    return found


def unprobed(library, path, table):
    """Functions of @path that do work and are not in our tables; those of one stem are one."""
    names = {n for n in exports(path) if re.fullmatch(WORK[library], n)}
    return sorted({re.sub(r"_(ptsz|ptds|v[23])+$", "", n) for n in names - set(table)} - set(table))


def nccl_found(build, path):
    """What our own code finds in the library's, of either architecture: where a communicator keeps rank, number of ranks,
    device, its identity and the counter of collectives, and whether it begins with a magic word. 0: it does not say."""
    ours = ctypes.CDLL(str(pathlib.Path(build) / "tests/lib/libingero-tests.so"))
    elf, layout = ctypes.c_void_p(), (ctypes.c_uint32 * 7)()
    if ours.elfsym_open(str(path).encode(), ctypes.byref(elf), None):
        return None
    ours.nccl_layout_read(elf, layout)
    ours.elfsym_close(elf)
    return list(layout)[1:]


def nccl_wanted(version):
    """What nccl_found() must find of it."""
    known, rank = tuple(map(int, version.split("."))), NCCL_RANK[version]
    counter = rank + NCCL_COUNTER[version] if version in NCCL_COUNTER else 0
    return [rank, rank + 4, rank + 8, rank - 8 if known >= (2, 18, 0) else 0, counter, int(known >= (2, 21, 5))]


# ---- calls ----

CALLER = """
import ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
plan = json.loads(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for symbols, count in plan:
    functions = [getattr(library, s) for s in symbols]
    print(*symbols, flush=True)
    for _ in range(count):
        for f in functions:
            f(*[ctypes.c_long(0)] * 12)
print("done", flush=True)
"""
PRIMES = [p for p in range(2, 1000) if all(p % d for d in range(2, int(p ** 0.5) + 1))][2:]


class Calls:
    """A process that has a library loaded, and calls what of @table it exports when it is told to."""

    def __init__(self, start, version, path, table):
        at = exports(path)
        symbols = [s for s in table if s in at and not (s in NOT_CALLED and re.match(NOT_CALLED[s], version))]
        self.path, self.at, self.table = path, {s: at[s] for s in symbols}, table
        plan = [([s, PAIRED[s]] if s in PAIRED else [s], PRIMES[i]) for i, s in enumerate(symbols)
                if s not in PAIRED.values()]
        self.made = {}  # by op
        for names, count in plan:
            for s in names:
                if table[s]:
                    self.made[table[s]] = self.made.get(table[s], 0) + count
        self.process = start([sys.executable, "-c", CALLER, str(path), json.dumps(plan)], stdin=-1, stderr=-3)
        self.pid = self.process.pid
        assert self.process.stdout.readline() == "ready\n", f"{path} cannot be loaded"

    def unprobed(self):
        """Which of them have no probe yet: a probe is other code in memory than in the file."""
        with open(f"/proc/{self.pid}/maps") as f:
            row = next(l.split() for l in f if l.rstrip().endswith(self.path.name) and " r-xp " in l)
        begin, offset = int(row[0].split("-")[0], 16), int(row[2], 16)
        found = []
        with open(f"/proc/{self.pid}/mem", "rb") as memory, open(self.path, "rb") as file:
            for symbol, at in self.at.items():
                memory.seek(begin + at - offset)
                file.seek(at)
                if memory.read(20) == file.read(20):
                    found.append(symbol)
        return found

    def go(self):
        """None, or the function that ended the process."""
        out, _ = self.process.communicate("\n", timeout=120)
        return None if out.endswith("done\n") else out.splitlines()[-1]

    def counted(self, trace):
        """op -> calls that the tracer counted, but for those made inside others."""
        return dict(trace.sql(
            "SELECT o.name, sum(a.count) FROM event_aggregates_5s a JOIN ops o ON o.source_id = a.source AND o.op_id = a.op"
            " WHERE a.pid = ? AND NOT a.nested AND o.name IN (SELECT value FROM json_each(?)) GROUP BY 1",
            self.pid, json.dumps(sorted({v for v in self.table.values() if v}))))


# ---- PyTorch on the CPU ----

TORCH = ("2.1.2", "2.6.0", "2.15.0")  # C++'s old strings in the first two
TORCH_MARKS = {5: 61, 6: 61, 7: 62}   # optimizer, backward, loader: its last call finds no batch
TRAINING = """
import select
import sys
import time
import torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.AdamW(model.parameters())
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(61, 8)), batch_size=1)
print(torch.__version__, flush=True)
while not select.select([sys.stdin], [], [], 0.02)[0]:
    pass  # the tracer learns meanwhile how this Python keeps its frames
sys.stdin.readline()
for (x,) in data:
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
    time.sleep(0.01)
print("done", flush=True)
sys.stdin.readline()
"""


def fetch_torch(build, version):
    """A folder with PyTorch and all it needs to be imported: some 6 GB."""
    folder = place(build, "torch", version)
    if not (folder / "torch").exists():
        out = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", str(folder), f"torch=={version}",
                              "numpy<2"], text=True, capture_output=True, timeout=3 * PATIENCE_S)
        if out.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            raise NotFetched(f"torch {version}: {out.stderr.splitlines()[-1][:200]}")
    return folder


def try_torch(start, tracer, wait_until, folder, script):
    """A training on the CPU, met by the tracer when it is running: (its marks as TORCH_MARKS, whether the line that calls
    the optimizer is in their stacks)."""
    pathlib.Path(script).write_text(TRAINING)
    process = start([sys.executable, script], stdin=-1, env=dict(os.environ, PYTHONPATH=str(folder)))
    assert process.stdout.readline().strip(), process.stderr.read()
    trace = tracer("--pid", process.pid)
    wait_until(lambda: trace.sql("SELECT 1 FROM coverage WHERE pid = ? AND layer = 'marks' AND state = 'covered'",
                                 process.pid))
    wait_until(lambda: trace.sql("SELECT 1 FROM ledger l JOIN stack_traces s ON s.hash = l.stack_hash WHERE l.pid = ? AND"
                                 " s.frames LIKE '%\"pfn\"%' LIMIT 1", process.pid), seconds=60)
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n", process.stderr.read()
    wait_until(lambda: trace.sql("SELECT count(*) FROM ledger WHERE mark = 5")[0][0] >= TORCH_MARKS[5])
    process.communicate("\n", timeout=60)
    trace.stop()
    marks = dict(trace.sql("SELECT mark, count(*) FROM ledger WHERE pid = ? AND mark IN (5, 6, 7) GROUP BY 1", process.pid))
    line = TRAINING.splitlines().index("    optimizer.step()") + 1
    stacks = [f for f, in trace.sql("SELECT s.frames FROM ledger l JOIN stack_traces s ON s.hash = l.stack_hash"
                                    " WHERE l.pid = ?", process.pid)]
    return marks, any(f'"pl":{line}' in f.replace(" ", "") for f in stacks)
