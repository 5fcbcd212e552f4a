# SPDX-License-Identifier: Apache-2.0
"""portable.py - makes a program that was linked here start on C libraries from OLDEST on.

A program asks for each function of glibc by name and version. Functions that moved from libpthread or libdl into
libc got a second version then (pthread_create: GLIBC_2.17, and GLIBC_2.34), and the linker takes the newest; glibc
keeps the old ones for ever. So the requirement is rewritten to the newest version that is not above OLDEST, in the
table of versions that is in the file. A function that has none that old is refused: polyfill.c must define it."""
import re
import struct
import subprocess
from archive import Refusal

OLDEST = (2, 31)
NAME = re.compile(r"GLIBC_(\d+(?:\.\d+)*)$")


def parse(version):
    found = NAME.match(version)
    return tuple(int(n) for n in found[1].split(".")) if found else None


def elf_hash(name):
    h = 0
    for byte in name.encode():
        h = (h << 4) + byte
        high = h & 0xF0000000
        h = (h ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return h


def offered(readelf, libraries):
    """Versions of every function that this machine's glibc has, name by name."""
    out = subprocess.run([readelf, "--dyn-syms", "-W", *map(str, libraries)], check=True, capture_output=True, text=True)
    found = {}
    for name, version in re.findall(r" (?:FUNC|OBJECT|IFUNC|TLS) +\S+ +\S+ +\d+ (\w+)@@?(GLIBC_[\w.]+)", out.stdout):
        if parse(version):
            found.setdefault(name, set()).add(version)
    return found


class Elf:
    """The parts of a 64-bit little-endian ELF file that say which versions it wants."""

    def __init__(self, data):
        self.data = bytearray(data)
        at, = struct.unpack_from("<Q", data, 40)
        size, count = struct.unpack_from("<HH", data, 58)
        rows = [struct.unpack_from("<IIQQQQIIQQ", data, at + i * size) for i in range(count)]
        by_type = {row[1]: row for row in rows}
        self.symbols, self.versions, self.needs = (by_type[t] for t in (11, 0x6FFFFFFF, 0x6FFFFFFE))
        self.strings = rows[self.symbols[6]][4]

    def text(self, offset):
        return bytes(self.data[self.strings + offset:self.data.index(0, self.strings + offset)]).decode()

    def wanted(self):
        """(offset, index, version) of each requirement of every library."""
        at = self.needs[4]
        while True:
            _, count, _, aux, after = struct.unpack_from("<HHIII", self.data, at)
            here = at + aux
            for _ in range(count):
                _, _, index, name, step = struct.unpack_from("<IHHII", self.data, here)
                yield here, index, self.text(name), name
                here += step
            if not after:
                return
            at += after

    def undefined(self):
        """(name, where its version's index stands, the index) of the functions that libraries must have."""
        for i in range(self.symbols[5] // 24):
            name, _, _, section, _, _ = struct.unpack_from("<IBBHQQ", self.data, self.symbols[4] + i * 24)
            where = self.versions[4] + i * 2
            index, = struct.unpack_from("<H", self.data, where)
            if section == 0 and index > 1:
                yield self.text(name), where, index


def choose(functions, name, version):
    """The version to ask for instead of @version."""
    if not parse(version) or parse(version) <= OLDEST:
        return version
    old = [v for v in functions.get(name, ()) if parse(v) <= OLDEST]
    if not old:
        raise Refusal(f"{name} came with {version}: packaging/portable/polyfill.c must define it")
    return max(old, key=parse)


def lower(data, functions):
    """@data with all requirements at OLDEST or below; sizes and places of everything stay."""
    elf = Elf(data)
    wanted = {index: (at, version, name) for at, index, version, name in elf.wanted()}
    chosen = {where: choose(functions, name, wanted[index][1]) for name, where, index in elf.undefined()}
    index_of = {version: index for index, (_, version, _) in wanted.items() if not parse(version) or parse(version) <= OLDEST}
    spare = [index for index, (_, version, _) in wanted.items() if parse(version) and parse(version) > OLDEST]
    for version in sorted(set(chosen.values()) - set(index_of)):
        if not spare:
            raise Refusal(f"no room for {version} in the table of versions")
        index = spare.pop()
        at, old, name = wanted[index]
        if len(version) > len(old):
            raise Refusal(f"no room for {version} in place of {old}")
        elf.data[elf.strings + name:elf.strings + name + len(old)] = version.encode().ljust(len(old), b"\0")
        struct.pack_into("<I", elf.data, at, elf_hash(version))
        index_of[version] = index
    for where, version in chosen.items():
        struct.pack_into("<H", elf.data, where, index_of[version])
    some = next(v for v in index_of if parse(v))  # what nobody asks for any more asks for something twice
    for index in spare:
        at, kept = wanted[index][0], wanted[index_of[some]][0]
        hash_and_name = struct.unpack_from("<I", elf.data, kept)[0], struct.unpack_from("<I", elf.data, kept + 8)[0]
        struct.pack_into("<I", elf.data, at, hash_and_name[0])
        struct.pack_into("<I", elf.data, at + 8, hash_and_name[1])
    return bytes(elf.data)


def newest(data):
    """The newest glibc that a program asks for."""
    return max((parse(version) for _, _, version, _ in Elf(data).wanted() if parse(version)), default=(0,))
