#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/browser/record.py [SECONDS|FILE] - records tests/browser/recording.sql.xz anew: four ranks of which
one comes late, a Python training loop whose CPU is taken by another program, CUDA graphs, two GPUs of
which one is throttled. Real programs, real eBPF, the stand-in GPU. Wants root, a build and a quiet
machine; run it when the schema changes."""
import lzma
import math
import os
import pathlib
import shutil
import sqlite3
import sys
import threading
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "tests" / "integration"))
from rig import SIM, Trace, Workload, scratch, start  # noqa: E402

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 40
MOST = 300 << 10  # bytes of the result
GIB = 1 << 30


def nvml_write(path, second, fault):
    """Two busy GPUs; the second gets hot, and its clocks are lowered, while @fault."""
    lines = ["gpus 2"]
    for gpu in (0, 1):
        hot = fault and gpu == 1
        wave = math.sin(second / 3 + gpu)
        lines += [f"gpu{gpu}.uuid GPU-51d00000-0000-0000-0000-00000000000{gpu}",
                  f"gpu{gpu}.util_gpu {int((62 if hot else 91) + 5 * wave)}", f"gpu{gpu}.util_mem {int(38 + 6 * wave)}",
                  f"gpu{gpu}.sm_clock {1155 if hot else 1980}", f"gpu{gpu}.power {int((430 if hot else 612) * 1000 + 21000 * wave)}",
                  f"gpu{gpu}.temperature {int((86 if hot else 63 + gpu * 2) + 2 * wave)}", f"gpu{gpu}.throttle {32 if hot else 0}",
                  f"gpu{gpu}.mem_used {int((61 + gpu * 7 + second / 30) * GIB)}",
                  f"gpu{gpu}.pcie_rx {int(900000 + 200000 * wave)}", f"gpu{gpu}.pcie_tx {int(120000 + 30000 * wave)}",
                  f"gpu{gpu}.processes {3 + gpu}"]
    with open(path + ".new", "w") as f:
        f.write("".join(line + "\n" for line in lines))
    os.chmod(path + ".new", 0o644)
    os.rename(path + ".new", path)


def record():
    folder = scratch("nvml")
    os.mkdir(folder)
    for p in (folder, os.path.dirname(folder)):
        os.chmod(p, 0o711)
    state = os.path.join(folder, "state")
    nvml_write(state, 0, False)
    os.environ.update(SIM_NVML_STATE=state, INGERO_NVML_LIB=str(SIM / "libnvidia-ml.so.1"))
    ident = scratch("id")
    world = {"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4"}
    onset, end = SECONDS * 0.45, SECONDS * 0.85
    works = [Workload("sim-nccl", "--steps", SECONDS * 55, "--kernel-us", 9000, "--id-file", ident,
                      "--delay-rank", 2, "--delay-us", 11000, "--delay-from", SECONDS * 38, tally=False,
                      env=dict(world, RANK=str(r), LOCAL_RANK=str(r))) for r in range(4)]
    train = Workload("train.py", "--steps", 1000000, "--duration", SECONDS, "--launches", 200, "--kernel-us", 30, tally=False)
    os.sched_setaffinity(train.pid, {1})
    graphs = Workload("sim-train", "--steps", 1000000, "--duration", SECONDS, "--launches", 8, "--kernel-us", 3000,
                      "--graphs", "--recapture-every", 40, tally=False)
    works += [train, graphs]
    trace = Trace("--node", "gpu-node-01", "--stack", budget="0.02")
    began = time.monotonic()
    stopped = threading.Event()

    def gpu():
        while not stopped.wait(0.5):
            t = time.monotonic() - began
            nvml_write(state, t, onset < t < end)

    threading.Thread(target=gpu, daemon=True).start()
    for w in works:
        w.go()
    time.sleep(onset)
    hog = start([SIM / "sim-cpu-hog", "--threads", 3, "--cpus", 1, "--duration", int(end - onset)])
    for w in works:
        w.process.wait(2 * SECONDS + 30)
    stopped.set()
    hog.wait(30)
    trace.stop()
    return trace.db


# Rows that only make the file larger go: ordinary calls are in the aggregates too.
TRIM = """
CREATE TEMP TABLE python AS SELECT pid FROM processes WHERE comm LIKE 'python%';
DELETE FROM events WHERE source = 4 AND (flags & 1 OR seq % 20);
DELETE FROM events WHERE source = 3 AND op = 1 AND (tid NOT IN (SELECT pid FROM python)
 OR (duration < 1500000 AND wait_ns < 300000));
DELETE FROM events WHERE source = 1 AND ((op IN (3, 4) AND seq % 6) OR (pid NOT IN (SELECT pid FROM python) AND seq % 20));
DELETE FROM events WHERE source = 8 AND op = 4 AND seq % 4;
DELETE FROM events WHERE source = 9 AND seq % 10;
DELETE FROM collectives WHERE seq < (SELECT max(seq) / 2 FROM collectives);
DELETE FROM event_aggregates WHERE source = 3 AND pid NOT IN (SELECT pid FROM processes);
DELETE FROM event_aggregates_5s WHERE source = 3 AND pid NOT IN (SELECT pid FROM processes);
"""


def main():
    given = sys.argv[1] if len(sys.argv) > 1 and not sys.argv[1].isdigit() else None
    db = scratch("trimmed.db")
    shutil.copy(given or record(), db)
    c = sqlite3.connect(db)
    c.executescript(TRIM)
    text = "\n".join(line for line in c.iterdump() if "sqlite_sequence" not in line)
    for path, name in ((f"{SOURCE}/", "/srv/job/"), (scratch(""), "/var/tmp/"), (sys.base_prefix + "/", "/usr/")):
        text = text.replace(path, name)
    data = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
    if len(data) > MOST:
        sys.exit(f"{len(data)} bytes, more than {MOST}: is the machine busy? not taken")
    (pathlib.Path(__file__).parent / "recording.sql.xz").write_bytes(data)
    print(f"{len(data)} bytes")


if __name__ == "__main__":
    main()
