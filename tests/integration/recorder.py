# SPDX-License-Identifier: Apache-2.0
"""recorder.py - a recording that grows as if a tracer wrote it, with collectives that are known; and a link that can be
slow, broken or away."""
import os
import select
import shutil
import socket
import sqlite3
import threading
import time

from rig import Trace, Workload, scratch

CALL = ("INSERT INTO collectives (node, timestamp, pid, tid, comm, seq, op, rank, nranks, device, bytes, count, datatype, stream, duration, "
        "wait_ns, ret_code) VALUES (?,?,?,?,?,?,'AllReduce',?,?,0,4096,1024,7,0,1000,5000,0)")
SAMPLE = "INSERT INTO system_snapshots (node, timestamp, cpu_pct, mem_pct, mem_avail, swap_mb, load_avg) VALUES (?,?,20,20,1000,0,1)"


def template():
    """An empty recording, made by the tracer itself (root)."""
    path = scratch("template.db")
    if not os.path.exists(path):
        work = Workload("sim-calls", "--op", "launch", "--rate", 1, "--duration", 60, tally=False)
        trace = Trace("--pid", work.pid)
        trace.stop()
        work.process.kill()
        db = sqlite3.connect(trace.db)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        shutil.copy(trace.db, path)
    return path


class Recorder(threading.Thread):
    """Writes @rows_s collectives a second of ranks 0 … @ranks - 1 to @path until it is stopped. .written: how many."""

    def __init__(self, path, node, comm, ranks=3, rows_s=300):
        super().__init__(daemon=True)
        self.path, self.node, self.comm, self.ranks, self.rows_s = path, node, comm, ranks, rows_s
        self.written = self.seq = self.rolled = 0
        self.ends, self.wants_roll = threading.Event(), threading.Event()
        self.open()

    def open(self):
        if not os.path.exists(self.path):
            shutil.copy(template(), self.path)
        self.db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=20)
        self.db.execute("UPDATE sessions SET stopped_at = 0")

    def put(self, count):
        now = time.time_ns()
        self.db.execute("BEGIN IMMEDIATE")
        for _ in range(count):
            rank = self.written % self.ranks
            self.seq += rank == 0
            self.db.execute(CALL, (self.node, now + self.written % 1000, 100 + rank, 100 + rank, self.comm, self.seq, rank, self.ranks))
            self.written += 1
        self.db.execute(SAMPLE, (self.node, now))
        self.db.execute("COMMIT")

    def roll(self):
        """As the tracer does: the file gets another name, and a new one begins."""
        self.close()
        self.rolled += 1
        at = time.time_ns()
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(at // 10**9))
        os.rename(self.path, f"{self.path[:-3]}.{stamp}.{at % 10**9:09}Z-{self.rolled:08x}.db")
        self.open()

    def close(self):
        self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.db.close()

    def run(self):
        while not self.ends.wait(0.05):
            if self.wants_roll.is_set():
                self.wants_roll.clear()
                self.roll()
            self.put(max(self.rows_s // 20, 1))

    def stop(self):
        self.ends.set()
        if self.is_alive():
            self.join()


class Link(threading.Thread):
    """Connections to @host go to @to(), a port of this machine. .bytes_s: so many a second; 0: as fast as can be. .is_cut:
    nothing goes through, nothing is refused."""

    def __init__(self, to, host="127.0.0.1"):
        super().__init__(daemon=True)
        self.to, self.bytes_s, self.is_cut = to, 0, False
        self.listener = socket.create_server((host, 0))
        self.port = self.listener.getsockname()[1]
        self.ends = []
        self.start()

    def run(self):
        while True:
            try:
                a, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(a,), daemon=True).start()

    def carry(self, a):
        try:
            b = socket.create_connection(("127.0.0.1", self.to()), timeout=5)
        except OSError:
            a.close()
            return
        self.ends += [a, b]
        try:
            while True:
                for s in select.select([a, b], [], [], 0.5)[0]:
                    data = s.recv(4096)
                    if not data:
                        return
                    while self.is_cut:
                        time.sleep(0.02)
                    if self.bytes_s:
                        time.sleep(len(data) / self.bytes_s)
                    (b if s is a else a).sendall(data)
        except (OSError, ValueError):
            pass
        finally:
            a.close()
            b.close()

    def breaks(self):
        """All connections, in the middle of what they carry."""
        for s in self.ends:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.ends = []

    def close(self):
        self.listener.close()
        self.is_cut = False
        self.breaks()
