# SPDX-License-Identifier: Apache-2.0
"""stack_frames.py - CUDA calls from many kinds of Python functions. Usage: stack_frames.py LIBRARY
EXPECTED FOLDER GATE, for CPython 3.9 and later.

Each call is on one line with note(), which writes down the frames as Python itself has them; all of
it goes to EXPECTED as {size: [[[name, qualified name, file, line], ...], ...]}, innermost first. FOLDER
is where a module with a name outside ASCII lies. The gate is that of gate.h."""
import ctypes
import functools
import json
import os
import sys
import threading
import time

THREADS = 40
LEVELS = 150
library, expected_path, folder, gate = sys.argv[1:5]
rt = ctypes.CDLL(library)  # calls release the lock of the interpreter
held = ctypes.PyDLL(library)  # calls keep it
for one in (rt, held):
    one.cudaMalloc.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t]
    one.cudaFree.argtypes = [ctypes.c_void_p]
expected = {}


def note(size):
    frame, found = sys._getframe(1), []
    while frame:
        code = frame.f_code
        found.append((code.co_name, getattr(code, "co_qualname", code.co_name), code.co_filename,
                      frame.f_lineno))
        frame = frame.f_back
    expected.setdefault(size, set()).add(tuple(found))
    return size


def room():
    return ctypes.byref(ctypes.c_void_p())


def inner(size):
    rt.cudaMalloc(room(), note(size))


def middle(size):
    def nested(size):
        inner(size)
        return 1

    return nested(size) + 1


def outer(size):
    return middle(
        size
    )


class Trainer:
    def step(self, size):
        rt.cudaMalloc(room(), note(size))

    @staticmethod
    def fixed(size):
        rt.cudaMalloc(room(), note(size))

    @classmethod
    def of_class(cls, size):
        rt.cudaMalloc(room(), note(size))

    def __getattr__(self, name):
        rt.cudaMalloc(room(), note(500004))
        return 1


def generator(size):
    for k in range(2):
        rt.cudaMalloc(room(), note(size))
        yield k


def delegating(size):
    yield from generator(size)


def drain(size):
    for _ in delegating(size):
        pass


def by_sum(size):
    return sum(generator(size))


def key(value):
    rt.cudaMalloc(room(), note(500007))
    return -value


def by_sorted():
    return sorted([1], key=key)


def add(a, b):
    rt.cudaMalloc(room(), note(500008))
    return a + b


def by_reduce():
    return functools.reduce(add, [1, 2])


def comprehension(size):
    return [rt.cudaMalloc(room(), note(size)) for _ in range(2)]


def by_lambda(size):
    return list(map(lambda s: rt.cudaMalloc(room(), note(s)), [size]))


def recursive(levels, size):
    if levels:
        return recursive(levels - 1, size) + 1
    rt.cudaMalloc(room(), note(size))
    return 0


def with_lock_held(size):
    held.cudaMalloc(room(), note(size))


async def awaited(size):
    rt.cudaMalloc(room(), note(size))


async def awaiting(size):
    await awaited(size)


def drive(size):
    try:
        awaiting(size).send(None)
    except StopIteration:
        pass


def raising(size):
    try:
        raise ValueError
    except ValueError:
        rt.cudaMalloc(room(), note(size))


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)
    return wrapper


@decorated
def wrapped(size):
    rt.cudaMalloc(room(), note(size))


def größe(size):
    rt.cudaMalloc(room(), note(size))


def 漢字(size):
    größe(size)


def 𐍈(size):
    漢字(size)


exec(compile("def compiled(size):\n    inner(size)\n", "<made up>", "exec"))

MODULE = "def ruf(rt, room, note, size):\n    rt.cudaMalloc(room(), note(size))\n"
path = os.path.join(folder, "größe_漢字.py")
with open(path, "w", encoding="utf-8") as module:
    module.write(MODULE)
sys.path.insert(0, folder)
named = __import__("größe_漢字")

# A long line table: more than one record holds, and lines far behind the first.
exec(compile("def long_one(size):\n" + "    x = size + 1\n" * 3000 +
             "    rt.cudaMalloc(room(), note(size))\n" + "    x = size + 1\n" * 100, "<long>", "exec"))


def is_over():
    return os.path.exists(gate + ".end") or time.monotonic() > begun + 40


def make_worker(k):
    text = "\n" * k + ("def work_%02d(size):\n    rt.cudaMalloc(room(), note(size))\n\n"
                       "def worker_%02d():\n    while not is_over():\n"
                       "        work_%02d(%d)\n        time.sleep(0.05)\n" % (k, k, k, 500100 + k))
    space = dict(globals())
    exec(compile(text, "<worker %d>" % k, "exec"), space)
    return space["worker_%02d" % k]


def in_round():
    outer(500001)
    trainer = Trainer()
    trainer.step(500002)
    Trainer.fixed(500003)
    trainer.something
    drain(500005)
    by_sum(500006)
    by_sorted()
    by_reduce()
    comprehension(500009)
    by_lambda(500010)
    recursive(LEVELS, 500011)
    with_lock_held(500012)
    drive(500013)
    raising(500014)
    wrapped(500015)
    𐍈(500016)
    compiled(500017)
    named.ruf(rt, room, note, 500018)
    long_one(500019)
    Trainer.of_class(500020)


open(gate + ".ready", "w").close()
while not os.path.exists(gate):
    time.sleep(0.002)
begun = time.monotonic()
threads = [threading.Thread(target=make_worker(k)) for k in range(THREADS)]
for thread in threads:
    thread.start()
while not is_over():
    in_round()
    rt.cudaMalloc(room(), note(500000))
    time.sleep(0.004)
for thread in threads:
    thread.join()
with open(expected_path + ".new", "w") as file:
    json.dump({size: [list(s) for s in stacks] for size, stacks in expected.items()}, file)
os.rename(expected_path + ".new", expected_path)
