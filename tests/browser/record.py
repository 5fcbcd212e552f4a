#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/browser/record.py [SECONDS] - records tests/browser/recording.sql.gz anew: four ranks of which
one comes late, a Python training loop whose CPU is taken by another program, CUDA graphs, two GPUs of
which one is throttled. Real programs, real eBPF, the stand-in GPU. Wants root, a build and a quiet
machine; run it when the schema changes."""
import gzip
import math
import os
import pathlib
import sqlite3
import sys
import threading
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "tests" / "integration"))
from rig import SIM, Trace, Workload, scratch, start  # noqa: E402

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 40
MOST = 900  # kB of the result
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
    print(trace.output()[-3000:])
    return trace.db


# Rows that only make the file larger: ordinary calls are in the aggregates.
TRIM = """
CREATE TEMP TABLE usual AS SELECT source, op, sum(sum_dur) / sum(count) AS ns FROM event_aggregates_5s GROUP BY 1, 2;
CREATE TEMP TABLE slow AS SELECT e.seq, e.tid, e.timestamp AS a, e.timestamp + e.duration AS b FROM events e
 JOIN usual u USING (source, op) WHERE e.source = 1 AND e.duration > 1.5 * u.ns AND e.duration > 3000000;
CREATE TEMP TABLE kept AS SELECT seq FROM slow UNION SELECT seq FROM events WHERE source = 8
 UNION SELECT seq FROM events WHERE source = 1 AND op IN (4, 5) AND seq % 2 = 0
 UNION SELECT e.seq FROM slow s JOIN events e ON e.source = 3 AND e.tid = s.tid AND e.timestamp < s.b
  AND e.timestamp + e.duration > s.a;
"""


def main():
    if os.environ.get("KEEP"):
        db = record()
        os.system(f"cp {db} {os.environ['KEEP']}")
    print(sqlite3.connect(os.environ["KEEP"]).execute("select source, op, count(*) from events group by 1,2").fetchall())


if __name__ == "__main__":
    main()
