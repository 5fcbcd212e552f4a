# SPDX-License-Identifier: Apache-2.0
"""copies.py SIM_DIR GATE - a process with a name nobody would choose that makes known calls on the
stand-in GPU once GATE exists, writes GATE.done and stays until GATE.end exists. The calls are its last
line: JSON of bytes and calls by direction, and of launches."""
import ctypes
import json
import os
import sys
import time

COMM = b'a"b\\c\nd\xff}'  # as Prometheus must see it: a\"b\\c\nd and U+FFFD
KINDS = ["h2h", "h2d", "d2h", "d2d", "default"]
LAUNCHES = 1009


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


def wait(path):
    while not os.path.exists(path):
        time.sleep(0.005)


def main():
    folder, gate = sys.argv[1:3]
    ctypes.CDLL("libc.so.6").prctl(15, COMM, 0, 0, 0)  # PR_SET_NAME
    rt = ctypes.CDLL(os.path.join(folder, "libcudart.so.12"))
    ctypes.CDLL(os.path.join(folder, "libnccl.so.2"))
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    rt.cudaMemcpy.argtypes = [pointer, pointer, size, ctypes.c_int]
    rt.cudaMemcpyAsync.argtypes = [pointer, pointer, size, ctypes.c_int, pointer]
    rt.cudaMemcpy2D.argtypes = [pointer, size, pointer, size, size, size, ctypes.c_int]
    rt.cudaMemcpyPeer.argtypes = [pointer, ctypes.c_int, pointer, ctypes.c_int, size]
    rt.cudaLaunchKernel.argtypes = [pointer, Dim3, Dim3, pointer, size, pointer]
    open(gate + ".ready", "w").close()
    wait(gate)
    device, other = pointer(), pointer()
    assert rt.cudaMalloc(ctypes.byref(device), size(1 << 20)) == 0
    assert rt.cudaMalloc(ctypes.byref(other), size(1 << 20)) == 0
    host, more = (ctypes.create_string_buffer(1 << 20) for _ in range(2))
    h, m = ctypes.addressof(host), ctypes.addressof(more)
    ends = [(m, h), (device, h), (h, device), (other, device), (device, h)]
    seen = {name: [0, 0] for name in [*KINDS, "unknown"]}

    def book(name, count):
        seen[name][0] += count
        seen[name][1] += 1

    for kind, (to, source) in enumerate(ends):
        for i in range(101 + 2 * kind):
            count = 1009 * (kind + 1) + i
            assert rt.cudaMemcpy(to, source, count, kind) == 0
            book(KINDS[kind], count)
        for i in range(53 + kind):
            assert rt.cudaMemcpyAsync(to, source, 4099 + kind, kind, None) == 0
            book(KINDS[kind], 4099 + kind)
        assert rt.cudaMemcpy2D(to, 128, source, 128, 97, 89, kind) == 0
        book(KINDS[kind], 97 * 89)
    assert rt.cudaMemcpyPeer(other, 0, device, 0, 7919) == 0
    book("d2d", 7919)
    assert rt.cudaMemcpy(device, h, 65537, 9) != 0  # no such kind: fails, moves nothing
    book("unknown", 0)
    one = Dim3(1, 1, 1)
    kernel = (ctypes.c_uint64 * 2)(0x4C454E52454B4D53, 1000)
    for _ in range(LAUNCHES):
        assert rt.cudaLaunchKernel(ctypes.addressof(kernel), one, one, None, 0, None) == 0
    assert rt.cudaDeviceSynchronize() == 0
    print(json.dumps({"copies": seen, "launches": LAUNCHES}), flush=True)
    open(gate + ".done", "w").close()
    wait(gate + ".end")


main()
