# SPDX-License-Identifier: Apache-2.0
"""fork_frames.py - CUDA calls from children of a Python process. Usage: fork_frames.py LIBRARY PYTHON
EXPECTED GATE, for CPython 3.9 and later; PYTHON is how the interpreter is started.

Each round makes functions that only its children run, so that the first time each is met is in a
child. A line is added to EXPECTED for each call: [role, size, pid, [[name, qualified name, file, line],
...]], innermost first, as Python itself has the frames. The gate is that of gate.h."""
import ctypes
import json
import multiprocessing
import os
import sys
import time

FIRST_SIZE = 600000
ROLES = ["parent", "fork", "short", "grandchild", "multiprocessing", "long", "long-short", "exec"]
library, python, expected_path, gate = sys.argv[1:5]
rt = ctypes.CDLL(library)
rt.cudaMalloc.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t]
role = "parent"


def note(size):
    frame, found = sys._getframe(1), []
    while frame:
        code = frame.f_code
        found.append((code.co_name, getattr(code, "co_qualname", code.co_name), code.co_filename,
                      frame.f_lineno))
        frame = frame.f_back
    line = json.dumps([role, size, os.getpid(), found]) + "\n"
    file = os.open(expected_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(file, line.encode())
    os.close(file)
    return size


def room():
    return ctypes.byref(ctypes.c_void_p())


def make(name, number, filler=7):
    """A function whose call is @filler + 2 lines behind its first; number makes it like no other."""
    text = "\n" * (number % 50) + "def %s_%d(size):\n" % (name, number)
    text += "    x = size + 1\n" * filler + "    rt.cudaMalloc(room(), note(size))\n"
    text += "    return x\n"
    space = dict(globals())
    exec(compile(text, "<%s %d>" % (name, number), "exec"), space)
    return space["%s_%d" % (name, number)]


def call(work):
    work(FIRST_SIZE + ROLES.index(role))


def in_child(name, what):
    """what() in a child, which ends with it."""
    global role
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    role = name
    what()
    os._exit(0)


def stay(work):
    call(work)
    time.sleep(0.15)  # longer than a look of the tracer's
    call(work)


def bear(work):
    def what():
        stay(work)
    in_child("grandchild", what)


def in_process(work):
    global role
    role = "multiprocessing"
    stay(work)


def replace():
    os.execv(python, [python, __file__, library, python, expected_path, "--child"])


def in_round(number):
    global role
    call(make("in_parent", number))
    work = make("in_fork", number)
    in_child("fork", lambda: stay(work))
    short = make("in_short", number)
    in_child("short", lambda: call(short))
    grand = make("in_grandchild", number)
    in_child("fork", lambda: bear(grand))
    process = multiprocessing.get_context("fork").Process(
        target=in_process, args=(make("in_process", number),))
    process.start()
    process.join()
    lengthy = make("in_long", number, 3000)
    in_child("long", lambda: stay(lengthy))
    lengthy_short = make("in_long_short", number, 3000)
    in_child("long-short", lambda: call(lengthy_short))
    if number % 4 == 0:
        in_child("fork", replace)


if gate == "--child":  # what exec made of a child
    role = "exec"
    begun = time.monotonic()
    while time.monotonic() < begun + 1:
        stay(make("in_exec", 1))
    sys.exit(0)
open(gate + ".ready", "w").close()
while not os.path.exists(gate):
    time.sleep(0.002)
begun, number = time.monotonic(), 0
while not os.path.exists(gate + ".end") and time.monotonic() < begun + 60:
    in_round(number)
    number += 1
