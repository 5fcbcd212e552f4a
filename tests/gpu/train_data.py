# SPDX-License-Identifier: Apache-2.0
"""train_data.py - the data set of train_job.py. Samples are made up; what it costs to get one, and what it
waits for, is decided by a page of memory that the loader's workers share with the job."""
import mmap
import os
import struct
import time

import torch

_page = mmap.mmap(-1, mmap.PAGESIZE)


def set_cost(decode_s, slow_s, slow):
    """Seconds a sample takes to decode, seconds more while @slow."""
    struct.pack_into("ddd", _page, 0, decode_s, slow_s, float(slow))


def cost():
    return struct.unpack_from("ddd", _page, 0)


def decode(seconds):
    end = time.thread_time() + seconds
    n = 0
    while time.thread_time() < end:  # FAULT few_workers
        n = (n * 31 + 7) % 65521  # FAULT few_workers
    return n


def augment(seconds):
    end = time.thread_time() + seconds
    n = 0
    while time.thread_time() < end:  # FAULT loader_compute
        n = (n * 33 + 5) % 65521  # FAULT loader_compute
    return n


def fetch_remote(seconds):
    time.sleep(seconds)  # FAULT loader_wait


class Shard:
    """A file that is read past the page cache."""

    def __init__(self, path):
        self.path = path
        self.fd = None

    def open(self):
        try:
            self.fd, self.is_direct = os.open(self.path, os.O_RDONLY | os.O_DIRECT), True
        except OSError:
            self.fd, self.is_direct = os.open(self.path, os.O_RDONLY), False
        self.size = os.fstat(self.fd).st_size
        self.buffer = mmap.mmap(-1, 1 << 20)
        self.at = os.getpid() * 7919 * 4096 % self.size

    def read(self, seconds):
        if self.fd is None:
            self.open()
        end, n = time.monotonic() + seconds, len(self.buffer)
        while time.monotonic() < end:
            self.at = (self.at + n) % (self.size - n)
            if not self.is_direct:
                os.posix_fadvise(self.fd, self.at, n, os.POSIX_FADV_DONTNEED)
            os.preadv(self.fd, [self.buffer], self.at)  # FAULT loader_disk


class Tokens(torch.utils.data.Dataset):
    def __init__(self, seq, vocabulary, fault, shard):
        self.seq, self.vocabulary, self.fault, self.shard = seq, vocabulary, fault, shard

    def __len__(self):
        return 1 << 30

    def __getitem__(self, i):
        decode_s, slow_s, slow = cost()
        decode(decode_s)
        if slow and self.fault == "compute":
            augment(slow_s)
        elif slow and self.fault == "wait":
            fetch_remote(slow_s)
        elif slow and self.fault == "disk":
            self.shard.read(slow_s)
        return torch.randint(0, self.vocabulary, (self.seq,))


def make_loader(data, batch, workers, pin):
    return torch.utils.data.DataLoader(data, batch_size=batch, num_workers=workers, pin_memory=pin)
