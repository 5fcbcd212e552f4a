#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""train.py - a training loop in Python on the stand-in GPU, so that Python frames are real.

Calls libcudart.so.12 through ctypes. The library is found in $SIM_DIR, else in build/sim of the
tree this file lies in, else by the dynamic linker. Only the standard library is used.
"""
import argparse
import ctypes
import gc
import json
import os
import signal
import sys
import time

KERNEL_MAGIC = 0x4C454E52454B4D53
HOST_TO_DEVICE = 1
stopped = False


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


class Kernel(ctypes.Structure):
    _fields_ = [("magic", ctypes.c_uint64), ("dur_ns", ctypes.c_uint64)]


def library_open():
    here = os.path.dirname(os.path.abspath(__file__))
    name = "libcudart.so.12"
    folders = [os.environ.get("SIM_DIR"), os.path.join(here, "..", "build", "sim")]
    for folder in folders:
        if folder and os.path.exists(os.path.join(folder, name)):
            return ctypes.CDLL(os.path.join(folder, name))
    return ctypes.CDLL(name)


def library_declare(rt):
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    rt.cudaMalloc.argtypes = [ctypes.POINTER(pointer), size]
    rt.cudaFree.argtypes = [pointer]
    rt.cudaMemcpy.argtypes = [pointer, pointer, size, ctypes.c_int]
    rt.cudaLaunchKernel.argtypes = [pointer, Dim3, Dim3, pointer, size, pointer]
    rt.cudaStreamSynchronize.argtypes = [pointer]
    rt.cudaGetErrorString.restype = ctypes.c_char_p


class Trainer:
    def __init__(self, options, rt):
        self.options = options
        self.rt = rt
        library_declare(self.rt)
        self.kernel = Kernel(KERNEL_MAGIC, options.kernel_us * 1000)
        self.host = ctypes.create_string_buffer(options.batch_bytes)
        self.heap = [[i] for i in range(options.gc_objects)] if options.gc_every else None
        self.steps = 0
        self.device = ctypes.c_void_p()
        self.check(self.rt.cudaMalloc(ctypes.byref(self.device), options.batch_bytes))

    def check(self, error):
        if error:
            text = self.rt.cudaGetErrorString(error).decode()
            raise RuntimeError("CUDA error %d: %s" % (error, text))

    def launch(self):
        self.check(self.rt.cudaLaunchKernel(
            ctypes.addressof(self.kernel), Dim3(128, 1, 1), Dim3(256, 1, 1), None, 0, None))

    def load_batch(self):
        self.check(self.rt.cudaMemcpy(
            self.device, ctypes.addressof(self.host), self.options.batch_bytes, HOST_TO_DEVICE))

    def forward(self):
        for _ in range(self.options.launches // 2):
            self.launch()

    def backward(self):
        for _ in range(self.options.launches - self.options.launches // 2):
            self.launch()

    def augment(self):
        end = time.thread_time_ns() + self.options.cpu_us * 1000
        while time.thread_time_ns() < end:
            pass

    def collect_garbage(self):
        self.steps += 1
        if self.options.gc_every and self.steps % self.options.gc_every == 0:
            gc.collect()

    def train_step(self):
        self.collect_garbage()
        if self.options.cpu_us:
            self.augment()
        self.load_batch()
        self.forward()
        self.backward()
        self.check(self.rt.cudaStreamSynchronize(None))

    def close(self):
        self.check(self.rt.cudaFree(self.device))


def gate_wait(path):
    if not path:
        return
    with open(path + ".ready", "w"):
        pass
    while not os.path.exists(path) and not stopped:
        time.sleep(0.005)


def stop(_signal, _frame):
    global stopped
    stopped = True


def train(options, rt):
    end = time.monotonic() + options.duration if options.duration else None
    trainer = Trainer(options, rt)
    steps_us = []
    while not stopped and len(steps_us) < (options.steps or 1000000):
        start = time.monotonic()
        if end is not None and start >= end:
            break
        trainer.train_step()
        steps_us.append((time.monotonic() - start) * 1e6)
    trainer.close()
    return sorted(steps_us)


def percentile(ordered, percent):
    return round(ordered[min(len(ordered) * percent // 100, len(ordered) - 1)], 1) if ordered else 0


def main():
    parser = argparse.ArgumentParser(description="a training loop on the stand-in GPU")
    parser.add_argument("--steps", type=int, default=0, help="100, or until --duration")
    parser.add_argument("--launches", type=int, default=40, help="kernels a step")
    parser.add_argument("--kernel-us", type=int, default=200, help="duration of a kernel")
    parser.add_argument("--batch-bytes", type=int, default=1 << 20, help="bytes of a batch")
    parser.add_argument("--cpu-us", type=int, default=0, help="of Python in every step")
    parser.add_argument("--duration", type=float, default=0, help="stop after seconds")
    parser.add_argument("--gc-every", type=int, default=0, help="collect garbage every N steps")
    parser.add_argument("--gc-objects", type=int, default=1000000, help="objects it goes through")
    parser.add_argument("--wait-start", help="create FILE.ready, wait for FILE")
    options = parser.parse_args()
    if not options.steps and not options.duration:
        options.steps = 100
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    rt = library_open()
    gate_wait(options.wait_start)
    start = time.monotonic()
    steps_us = train(options, rt)
    print(json.dumps({
        "steps": len(steps_us),
        "seconds": round(time.monotonic() - start, 6),
        "step_p50_us": percentile(steps_us, 50),
        "step_p99_us": percentile(steps_us, 99),
    }))
    return 0


if __name__ == "__main__":
    sys.exit(main())
