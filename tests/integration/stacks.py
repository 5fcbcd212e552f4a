# SPDX-License-Identifier: Apache-2.0
"""stacks.py - what the tests of call stacks share: programs compiled for the purpose, line numbers by
marker, and stacks as they were recorded.

A program of tests/programs follows gate.h: it is held back until go(), makes its calls in rounds, and
stops soon after end(). So a test waits until what it looks for has been recorded, not for a time."""
import functools
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import rig

PROGRAMS = rig.SOURCE / "tests" / "programs"
SIM_FLAGS = ["-I", str(rig.SOURCE / "sim"), "-I", str(PROGRAMS), "-L", str(rig.SIM),
             f"-Wl,-rpath,{rig.SIM}", "-l:libcudart.so.12", "-l:libcuda.so.1"]
# How release builds of programs and libraries are compiled: no frame pointers.
RELEASE = ["-O2", "-fomit-frame-pointer", "-fasynchronous-unwind-tables"]

PROMISED = [int(n) for n in re.findall(r"PYTHON_MINOR_(?:MIN|MAX) +(\d+)", (
    rig.SOURCE / "src/record/python/python.h").read_text())]


def compile_program(source, name, *flags, libraries=SIM_FLAGS):
    """tests/programs/@source as a file of the scratch folder; C or C++ by its name."""
    source = PROGRAMS / source
    compiler = os.environ.get("CXX", "g++") if source.suffix == ".cpp" else os.environ.get("CC", "cc")
    out = rig.scratch(name)
    os.makedirs(os.path.dirname(out), exist_ok=True)
    done = subprocess.run([compiler, *flags, str(source), "-o", out, *libraries, "-lpthread"],
                          text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return out


@functools.cache
def bare_runtime():
    """A libcudart that needs no C library, for interpreters with a C library of their own."""
    return compile_program("bare_runtime.c", "bare/libcudart.so.12", "-O2", "-shared", "-fPIC", "-nostdlib",
                           "-fno-omit-frame-pointer", "-Wl,-soname,libcudart.so.12", libraries=[])


def lines_of(source):
    """marker -> number of the line that carries it as a comment: /* @marker */ or # @marker."""
    found = {}
    for number, line in enumerate((PROGRAMS / source).read_text().splitlines(), 1):
        for marker in re.findall(r"(?:/\*|//|#) @(\w+)", line):
            assert marker not in found, f"{marker} is there twice"
            found[marker] = number
    return found


def sizes_of(source):
    """place -> size of its allocations, by the program's enum of SIZE_ names."""
    body = re.search(r"enum \{(.*?)\};", (PROGRAMS / source).read_text(), re.S)[1]
    names = re.findall(r"SIZE_(\w+)", body)
    first = int(re.search(r"= (\d+)", body)[1])
    return {name: first + k for k, name in enumerate(names)}


def ask_python(program):
    """(minor, real path of the interpreter) or None."""
    code = "import sys, ctypes; print(sys.version_info[1], sys.executable)"
    try:
        out = subprocess.run([program, "-c", code], text=True, capture_output=True, timeout=20)
        minor, path = out.stdout.split(maxsplit=1)
        return int(minor), os.path.realpath(path.strip())
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def interpreters():
    """label -> (minor, program), of every CPython of this machine whose frames are promised."""
    found, seen = {}, set()
    programs = [shutil.which("python3"), "/usr/bin/python3",
                *glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3.*")),
                *glob.glob(str(rig.BUILD / "pythons/3.*/python3.*"))]
    for program in programs:
        if not program or not re.search(r"python3(\.\d+)?$", program):
            continue
        answer = ask_python(program)
        if not answer or answer[1] in seen:
            continue
        seen.add(answer[1])
        minor, path = answer
        if not PROMISED[0] <= minor <= PROMISED[1]:
            rig.skip(f"Python 3.{minor} at {path}", "frames are promised for 3.{} to 3.{}".format(*PROMISED))
            continue
        # one that is started through its own loader is asked for by its own script
        fetched = program.startswith(str(rig.BUILD))
        label = f"3.{minor}"
        while label in found:
            label += "'"
        found[label] = (minor, program if fetched else path)
    return dict(sorted(found.items(), key=lambda item: item[1][0]))


class Program:
    """A program that follows gate.h."""

    count = 0

    def __init__(self, argv, env=None, **kw):
        Program.count += 1
        self.gate = rig.scratch(f"gate{Program.count}")
        self.process = rig.start([*argv, self.gate], env=dict(os.environ, **(env or {})), **kw)
        self.pid = self.process.pid
        rig.wait_for(self.gate + ".ready", 20)

    def go(self):
        open(self.gate, "w").close()

    def end(self, timeout=30):
        open(self.gate + ".end", "w").close()
        out, err = self.process.communicate(timeout=timeout)
        assert self.process.returncode == 0, f"{self.process.args} ended with " \
            f"{self.process.returncode}: {err}"
        return out


class Frame:
    """One frame of a recorded stack."""

    def __init__(self, row):
        self.symbol, self.file, self.line = row.get("s"), row.get("f"), row.get("l")
        self.py_file, self.py_func, self.py_line = row.get("pf"), row.get("pfn"), row.get("pl")
        self.ip = row.get("i")

    @property
    def is_python(self):
        return self.py_func is not None

    @property
    def python(self):
        return (self.py_func, self.py_file, self.py_line)

    def __repr__(self):
        if self.is_python:
            return f"[Python] {self.py_func} ({self.py_file}:{self.py_line})"
        return f"{self.symbol or self.ip} ({self.file}{f':{self.line}' if self.line else ''})"


class Call:
    """One recorded call with its stack; frames is None if there is none."""

    def __init__(self, row, stack):
        self.time, self.pid, self.tid, self.op, self.arg0, self.ret, self.hash = row
        self.frames, self.stop = stack

    @property
    def is_complete(self):
        return self.frames is not None and self.stop == ""

    @property
    def symbols(self):
        return [f.symbol for f in self.frames or [] if not f.is_python]

    @property
    def python(self):
        return tuple(f.python for f in self.frames or [] if f.is_python)

    def text(self):
        if self.frames is None:
            return f"{self.op}({self.arg0}): no stack, hash {self.hash}"
        lines = [f"{self.op}({self.arg0}) pid {self.pid}, {len(self.frames)} frames"]
        return "\n".join([*lines, *map(repr, self.frames), f"stop: {self.stop!r}"])


def calls(trace, where="1"):
    """Recorded calls of CUDA functions by time, oldest first."""
    rows = trace.sql(
        "SELECT e.timestamp, e.pid, e.tid, o.name, e.arg0, e.ret_code, e.stack_hash"
        " FROM events e JOIN ops o ON o.source_id = e.source AND o.op_id = e.op"
        f" WHERE e.source IN (1, 4) AND ({where}) ORDER BY e.timestamp")
    known = {hash: ([Frame(f) for f in json.loads(frames)], stop) for hash, frames, stop in
             trace.sql("SELECT hash, frames, stop FROM stack_traces")}
    return [Call(row, known.get(row[-1], (None, None))) for row in rows]


def last(found, name, size):
    """The latest allocation of @size: by then all tables have come."""
    some = [c for c in found if c.op == "cudaMalloc" and c.arg0 == size and c.frames]
    rig.check(f"{name}: there are calls (control)", len(some) > 3, f"{len(some)} calls")
    return some[-1] if some else Call((0, 0, 0, "", 0, 0, 0), ([], "nothing was recorded"))


def wait_until(trace, what, seconds=20):
    """Polls what() until it is true; False after @seconds, or when the tracer has ended."""
    found = rig.wait_until(lambda: trace.process.poll() is not None or what(), seconds, 0.1)
    return bool(found) and trace.process.poll() is None


def wait_complete(trace, wheres, seconds=20):
    """Until the latest call of each of @wheres has a complete stack, with names."""
    def are_there():
        for where in wheres:
            last = calls(trace, where)[-1:]
            if not last or not last[0].is_complete:
                return False
        return True
    return wait_until(trace, are_there, seconds)


def wait_span(trace, span_s, seconds=20, of=lambda call: True):
    """Until calls of @span_s are recorded, from the first on that is one @of. A busy tracer takes its time to get so far."""
    first = wait_until(trace, lambda: any(of(c) for c in calls(trace)), seconds) and first_time(calls(trace), of)

    def is_there():
        return trace.sql("SELECT max(timestamp) FROM events WHERE source = 1")[0][0] - first >= span_s * 1e9
    return bool(first) and wait_until(trace, is_there, seconds)


def first_time(found, of):
    """When the first of @found begins that is one @of; None: none is."""
    return next((c.time for c in found if of(c)), None)


FIRST_S = 10  # for a tracer to read what a stack needs: a tenth of it, but for busy machines


def begins_soon(name, found, of):
    """The first of @found that is one @of comes soon after the first of all; its time, or None."""
    begin = first_time(found, of)
    took_s = (begin - found[0].time) / 1e9 if begin else None
    print(f"# {name}: such calls from {took_s} s on")
    rig.check(f"{name}: within {FIRST_S} s of the first call", begin and took_s < FIRST_S * rig.PATIENCE, f"{took_s} s")
    return begin


def share_complete(name, found, wanted=0.95, after_s=1.0):
    """At least @wanted of the calls later than @after_s after the first that has a complete stack have one."""
    begin = begins_soon(f"{name}: complete stacks", found, lambda c: c.is_complete)
    late = [c for c in found if c.time >= begin + after_s * 1e9] if begin else []
    complete = sum(c.is_complete for c in late)
    print(f"# {name}: {complete} of {len(late)} calls after {after_s} s have a complete stack"
          f" ({100.0 * complete / max(len(late), 1):.2f} %)", flush=True)
    stops = {}
    for c in late:
        if not c.is_complete:
            stops[c.stop] = stops.get(c.stop, 0) + 1
    rig.check(f"{name}: at least {100 * wanted:g} % of the calls have a complete stack",
              late and complete >= wanted * len(late), stops or f"{len(found)} calls in all")


def outer_is_main(frames):
    """Whether @frames, those around main, are the C library's and _start."""
    between = frames[:-1]
    return bool(frames) and frames[-1].symbol == "_start" and len(between) <= 2 and all(
        (f.symbol or "__libc_start").startswith("__libc_start") for f in between)


def outer_is_thread(frames):
    """Whether @frames, those around a thread's function, are the C library's."""
    return 1 <= len(frames) <= 2 and all(
        f.symbol in (None, "start_thread", "thread_start", "clone", "__clone", "clone3", "__clone3")
        and f.file in ("libc.so.6", "libpthread.so.0", "pthread_create.c", "clone.S", "clone3.S")
        for f in frames)
