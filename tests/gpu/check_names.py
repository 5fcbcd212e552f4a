#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries names on a real GPU with PyTorch: what share of launches has a kernel's name, how the names compare
with those of torch.profiler, whether NVTX ranges are counted exactly, what of NVTX PyTorch maps, and what
registering kernels costs at import. Prints one JSON object; 0: all that must hold holds.

  check_names.py [--out FILE]      as root; beside it: ingero, and libingero-nvtx.so for the opt-in
"""
import argparse
import json
import os
import pathlib
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
INGERO = str(HERE / "ingero")
WORK = pathlib.Path(tempfile.mkdtemp(prefix="ingero-names-", dir="/var/tmp"))
STEPS, RANGES, MARKS, SPANS = 23, 131, 17, 13
NVTX_FILES = ("libnvToolsExt", "libnvtx3interop", "libingero-nvtx", "libtorch_python")


# ---- the program that is traced ----

def child(compile_too):
    begin = time.perf_counter()
    import torch
    imported = time.perf_counter() - begin
    from torch.profiler import ProfilerActivity, profile
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.GELU(), torch.nn.Flatten(),
        torch.nn.Linear(16 * 32 * 32, 64), torch.nn.Dropout(0.1), torch.nn.Softmax(dim=1)).cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    x = torch.randn(32, 3, 32, 32, device="cuda")
    scale = torch.compile(lambda a: torch.nn.functional.silu(a) * 2 + a) if compile_too else lambda a: a * 2
    compiled = compile_too

    def step():
        loss = net(scale(x)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    try:
        step()
    except Exception as e:  # no compiler on the machine: the rest is worth trying
        compiled, scale = f"failed: {type(e).__name__}: {e}"[:300], lambda a: a * 2
        step()
    torch.cuda.synchronize()
    print(json.dumps({"pid": os.getpid(), "torch": torch.__version__, "cuda": torch.version.cuda,
                      "gpu": torch.cuda.get_device_name(0), "import_s": round(imported, 3),
                      "compiled": compiled}), flush=True)
    if sys.stdin.readline().strip() != "go":
        return
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()
    kernels = {}
    for e in p.events():
        if str(e.device_type).endswith("CUDA") and not e.name.startswith(("Memcpy", "Memset")):
            kernels[e.name] = kernels.get(e.name, 0) + 1
    nvtx = torch.cuda.nvtx
    for i in range(RANGES):
        nvtx.range_push(f"step {i % 3}")
        nvtx.range_push("forward")
        step()
        nvtx.range_pop()
        nvtx.range_pop()
    for _ in range(MARKS):
        nvtx.mark("checkpoint")
    for _ in range(SPANS):
        nvtx.range_end(nvtx.range_start("span"))
    torch.cuda.synchronize()
    print(json.dumps({"kernels": kernels}), flush=True)
    sys.stdin.readline()


class Child:
    def __init__(self, compile_too=False, env=None):
        self.p = subprocess.Popen([sys.executable, str(pathlib.Path(__file__).resolve()), "--child",
                                   "compile" if compile_too else "plain"], text=True, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=open(WORK / "child.err", "a"),
                                  env=dict(os.environ, **(env or {})))
        line = self.p.stdout.readline()
        if not line:
            raise RuntimeError((WORK / "child.err").read_text()[-600:])
        self.hello = json.loads(line)
        self.pid = self.hello["pid"]

    def go(self):
        self.p.stdin.write("go\n")
        self.p.stdin.flush()
        return json.loads(self.p.stdout.readline() or '{"kernels": {}}')

    def maps(self):
        found = {}
        for line in open(f"/proc/{self.pid}/maps"):
            parts = line.split(None, 5)
            if len(parts) == 6 and ".so" in parts[5]:
                found[os.path.basename(parts[5].strip())] = parts[5].strip()
        return found

    def end(self):
        try:
            self.p.communicate("\n", timeout=60)
        except (subprocess.TimeoutExpired, ValueError, BrokenPipeError):
            self.p.kill()
            self.p.wait()


# ---- the tracer ----

class Trace:
    count = 0

    def __init__(self, *args):
        Trace.count += 1
        self.db = str(WORK / f"{Trace.count}.db")
        self.out = WORK / f"{Trace.count}.out"
        self.p = subprocess.Popen([INGERO, "trace", "--db", self.db, *args], stdout=open(self.out, "w"),
                                  stderr=subprocess.STDOUT)
        end = time.monotonic() + 60
        while "Recording to" not in self.out.read_text():
            if self.p.poll() is not None or time.monotonic() > end:
                raise RuntimeError(self.out.read_text()[-800:])
            time.sleep(0.05)

    def stop(self):
        self.p.send_signal(signal.SIGTERM)
        self.p.wait(60)

    def sql(self, query, *args):
        with sqlite3.connect(f"file:{self.db}?mode=ro", uri=True) as c:
            return c.execute(query, args).fetchall()


# ---- what a library holds ----

def symbols(path, wanted):
    """Names of @wanted among the symbols of an ELF file, by table; a file without the table gives None."""
    data = pathlib.Path(path).read_bytes()
    found = {".dynsym": None, ".symtab": None}
    shoff, = struct.unpack_from("<Q", data, 40)
    size, count, _ = struct.unpack_from("<HHH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + i * size) for i in range(count)]
    for s in sections:
        if s[1] not in (2, 11):
            continue
        strings = data[sections[s[6]][4]:sections[s[6]][4] + sections[s[6]][5]]
        name = ".symtab" if s[1] == 2 else ".dynsym"
        found[name] = {"symbols": s[5] // 24,
                       "found": [w for w in wanted if strings.find(b"\0" + w.encode() + b"\0") >= 0]}
    return found


def libraries(maps):
    wanted = ("nvtxRangePushA", "nvtxRangePop", "nvtxMarkA", "nvtxRangeStartA", "nvtxRangeEnd",
              "nvtxDomainRangePushEx", "__cudaRegisterFunction", "__cudaGetKernel", "cudaLaunchKernel")
    rows = {}
    for name, path in maps.items():
        if re.match(r"lib(cudart|torch_cuda|torch_python|nvToolsExt|nvtx3interop|ingero-nvtx)", name):
            try:
                rows[name] = {"bytes": os.path.getsize(path), **symbols(path, wanted)}
            except (OSError, struct.error, MemoryError) as e:
                rows[name] = {"error": str(e)}
    return rows


# ---- verdicts ----

def plain(name):
    return re.sub(r"\s+", "", name)


def judge_kernels(trace, pid, profiled):
    rows = trace.sql("SELECT name, origin, sum(launches) FROM kernels WHERE pid = ? GROUP BY 1, 2 ORDER BY 3 DESC", pid)
    total = sum(n for *_, n in rows) or 1
    by_origin = {}
    for _, origin, n in rows:
        by_origin[origin] = by_origin.get(origin, 0) + n
    ours = {plain(name): n for name, origin, n in rows if origin != "unknown"}
    theirs = {plain(k): v for k, v in profiled.items()}
    seen = sum(v for k, v in theirs.items() if k in ours)
    # launches that are events: what share of them the names explain
    events = trace.sql("SELECT count(*), sum(EXISTS (SELECT 1 FROM kernels k WHERE k.pid = e.pid AND k.function ="
                       " e.arg0 AND k.origin <> 'unknown')) FROM events e WHERE pid = ? AND (source, op) IN"
                       " (VALUES (1, 3), (1, 13), (1, 14), (4, 1), (4, 7), (4, 19)) AND NOT flags & 1", pid)[0]
    return {"launches_counted": total, "kernels": len(rows),
            "share_with_a_name": round(1 - by_origin.get("unknown", 0) / total, 4),
            "launches_by_origin": by_origin, "event_rows": events[0], "event_rows_with_a_name": events[1],
            "profiler_kernels": len(theirs), "profiler_launches": sum(theirs.values()),
            "share_of_profiler_launches_whose_name_we_have": round(seen / (sum(theirs.values()) or 1), 4),
            "top": [[n[:110], o, c] for n, o, c in rows[:8]],
            "unknown": [[n[:80], c] for n, o, c in rows if o == "unknown"][:8],
            "missed_of_profiler": [k[:110] for k in theirs if k not in ours][:8]}


def judge_nvtx(trace, pid):
    rows = dict(((op, name), n) for op, name, n in trace.sql(
        "SELECT op, coalesce(n.name, ''), count(*) FROM events e LEFT JOIN names n ON n.hash = e.arg1"
        " WHERE e.source = 10 AND e.pid = ? GROUP BY 1, 2", pid))
    wanted = {(1, "forward"): RANGES, (2, "span"): SPANS, (3, "checkpoint"): MARKS}
    for k in range(3):
        wanted[(1, f"step {k}")] = len(range(k, RANGES, 3))
    return {"exact": {f"{op} {name}": rows.get((op, name), 0) == n for (op, name), n in wanted.items()},
            "got": {f"{op} {name}": n for (op, name), n in sorted(rows.items())[:20]},
            "lost": trace.sql("SELECT reason, count FROM losses WHERE source = 10")}


def scenario(label, result, begin):
    try:
        trace, work = begin()
        told = work.go()
        time.sleep(1.5)
        maps = work.maps()
        work.end()
        time.sleep(0.5)
        trace.stop()
        result[label] = {"process": work.hello, "kernels": judge_kernels(trace, work.pid, told["kernels"]),
                         "nvtx": judge_nvtx(trace, work.pid),
                         "nvtx_files": [n for n in maps if n.startswith(NVTX_FILES)],
                         "warnings": [l for l in trace.out.read_text().splitlines() if "name" in l.lower()][:5],
                         "lost": trace.sql("SELECT source, reason, count FROM losses")[:10]}
        return maps
    except Exception as e:
        result[label] = {"error": f"{type(e).__name__}: {e}"}
        return {}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--child")
    p.add_argument("--out")
    args = p.parse_args()
    if args.child:
        child(args.child == "compile")
        return 0
    result = {"machine": os.uname().machine, "kernel": os.uname().release}
    alone = Child()
    result["import_s_without_tracer"] = alone.hello["import_s"]
    maps = alone.maps()
    alone.end()
    result["libraries"] = libraries(maps)

    def after():  # the tracer is there first
        t = Trace()
        return t, Child(compile_too=True)

    def before():  # the process is there first
        c = Child()
        return Trace("--pid", str(c.pid)), c

    def injected():
        t = Trace()
        return t, Child(env={"NVTX_INJECTION64_PATH": str(HERE / "libingero-nvtx.so")})
    scenario("tracer_first", result, after)
    scenario("process_first", result, before)
    if (HERE / "libingero-nvtx.so").exists():
        scenario("nvtx_injected", result, injected)
    first = result.get("tracer_first", {})
    injected_nvtx = result.get("nvtx_injected", {}).get("nvtx", {}).get("exact", {"missing": False})
    result["holds"] = {
        "nine_in_ten_launches_have_a_name": first.get("kernels", {}).get("share_with_a_name", 0) >= 0.9,
        "names_are_the_profilers": first.get("kernels", {}).get(
            "share_of_profiler_launches_whose_name_we_have", 0) >= 0.9,
        "nvtx_is_exact": all(first.get("nvtx", {}).get("exact", {"missing": False}).values()),
        "nvtx_is_exact_with_the_library": all(injected_nvtx.values()),
    }
    text = json.dumps(result, indent=1)
    print(text)
    if args.out:
        pathlib.Path(args.out).write_text(text)
    return 0 if all(result["holds"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
