# SPDX-License-Identifier: Apache-2.0
"""fuse_user.py LIBRARY FILE GATE CALLS [PADDING] - a user's program for 11-hostile-fuse: loads the stand-in driver LIBRARY,
lays FILE over the memory that holds its own arguments, which the padding makes long, and its environment ("-": it does
not), says GATE.ready, and makes CALLS launches when GATE is there, which fail for want of a device and are calls all the
same. Ends when GATE.end is there."""
import ctypes
import os
import sys
import time

library, file, gate, calls = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
launch = ctypes.CDLL(library).cuLaunchKernel
launch(1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)  # what it needs of the file is in memory now
if file != "-":
    page, fields = os.sysconf("SC_PAGESIZE"), open("/proc/self/stat").read().rpartition(")")[2].split()
    begin, end = int(fields[48 - 3]) + page - 1 & -page, int(fields[51 - 3]) & -page  # arg_start, env_end of proc(5)
    mmap = ctypes.CDLL(None, use_errno=True).mmap
    mmap.restype, mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    if end - begin < page or mmap(begin, end - begin, 1, 0x12, os.open(file, os.O_RDONLY), 0) != begin:  # PROT_READ, MAP_FIXED | MAP_PRIVATE
        sys.exit("cannot lay the file there: " + os.strerror(ctypes.get_errno()))
open(gate + ".ready", "w").close()
while not os.path.exists(gate):
    time.sleep(0.01)
for _ in range(calls - 1):
    launch(1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)
open(gate + ".made", "w").close()
while not os.path.exists(gate + ".end"):
    time.sleep(0.01)
