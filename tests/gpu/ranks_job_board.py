# SPDX-License-Identifier: Apache-2.0
"""ranks_job_board.py - a page that ranks.py and all ranks of a job see: when to begin, when to stop, when the fault
begins and ends, how far each rank is."""
import mmap
import struct

STOP_AT, FAULT_AT, FAULT_TO, RELEASE, GATE, STEPS = range(6)   # 64-bit words; STEPS: the first rank's
NEVER = 1 << 60


class Board:
    def __init__(self, path):
        with open(path, "r+b") as f:
            self.page = mmap.mmap(f.fileno(), 4096)

    def get(self, word):
        return struct.unpack_from("q", self.page, 8 * word)[0]

    def set(self, word, value):
        struct.pack_into("q", self.page, 8 * word, value)
