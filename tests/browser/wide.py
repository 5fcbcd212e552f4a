# SPDX-License-Identifier: Apache-2.0
"""wide.py - a recording made wide: 64 ranks, 8 GPUs, and some hours between its first and its last event."""
import sqlite3

RANKS, GPUS, LATE, HOURS = 64, 8, 2, 3
KEPT = 220  # collectives of each rank


def copy_rows(c, table, where, values):
    """Inserts each row of @table once more for each dict of @values, with these columns changed."""
    columns = [d[1] for d in c.execute(f"PRAGMA table_info({table})")]  # without the generated ones
    rows = c.execute(f"SELECT {', '.join(columns)} FROM {table} WHERE {where}").fetchall()
    for change in values:
        new = [[change[k](v) if k in change else v for k, v in zip(columns, row)] for row in rows]
        c.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})", new)


def fill(db):
    c = sqlite3.connect(db)
    first = c.execute("SELECT max(seq) FROM collectives").fetchone()[0] - KEPT
    c.execute("DELETE FROM collectives WHERE seq < ?", (first,))
    pid = dict(c.execute("SELECT DISTINCT rank, pid FROM collectives"))[1]
    new = range(4, RANKS)
    copy_rows(c, "collectives", "rank = 1", [{"rank": lambda _, r=r: r, "pid": lambda _, r=r: 50000 + r, "tid": lambda _, r=r: 50000 + r, "device": lambda _, r=r: r % GPUS} for r in new])
    c.execute("UPDATE collectives SET nranks = ?", (RANKS,))
    copy_rows(c, "processes", f"pid = {pid}", [{"rank": lambda _, r=r: r, "pid": lambda _, r=r: 50000 + r, "world_size": lambda _: RANKS} for r in new])
    copy_rows(c, "gpu_samples", "gpu = 0", [{"gpu": lambda _, g=g: g, "util_gpu_pct": lambda v, g=g: max(v - 9 * g, 0)} for g in range(2, GPUS)])
    shift = HOURS * 3600 * 10**9
    last = c.execute("SELECT max(seq) FROM events").fetchone()[0]
    copy_rows(c, "events", "source = 1 AND seq % 5 = 0", [{"seq": lambda v: v + last, "timestamp": lambda v: v + shift}])
    copy_rows(c, "gpu_samples", "gpu < 8", [{"timestamp": lambda v: v + shift}])
    c.commit()
    c.close()
    return db
