# SPDX-License-Identifier: Apache-2.0
"""library_flood.py LIBRARY COPIES SECONDS FOLDER - maps so many copies of a stand-in driver, and launches through one of
them as fast as it can, which fails for want of a device and is a call all the same. Prints how often."""
import ctypes
import json
import shutil
import sys
import time

source, copies, seconds, folder = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
libraries = []
for i in range(copies):
    path = f"{folder}/libcuda.so.{i}"
    shutil.copyfile(source, path)
    libraries.append(ctypes.CDLL(path))
launch, calls, end = libraries[0].cuLaunchKernel, 0, time.monotonic() + seconds
while time.monotonic() < end:
    for _ in range(200):
        launch(1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)
    calls += 200
print(json.dumps({"calls": calls}), flush=True)
