# SPDX-License-Identifier: Apache-2.0
"""portable.py - makes a program that was linked here start on C libraries from OLDEST on.

A program asks for each function of glibc by name and version. Functions that moved from libpthread or libdl into
libc got a second version then (pthread_create: GLIBC_2.17, and GLIBC_2.34), and the linker takes the newest; glibc
keeps the old ones for ever. So the requirement is rewritten to the newest version that is not above OLDEST, in the
table of versions that is in the file. A function that has none that old is refused: polyfill.c must define it."""
import re
import struct
import subprocess
import typing
from archive import Refusal

OLDEST = (2, 31)
NAME = re.compile(r"GLIBC_(\d+(?:\.\d+)*)$")
# The versions that each library of OLDEST defines, by ELF's number of the machine. The loader refuses a program that asks
# a library for any other, even if nothing uses it; and libc has got some since that only its parts had.
DEFINED = {
    62: {  # x86-64
        "libc.so.6": "2.2.5 2.2.6 2.3 2.3.2 2.3.3 2.3.4 2.4 2.5 2.6 2.7 2.8 2.9 2.10 2.11 2.12 2.13 2.14 2.15 2.16 2.17 2.18"
                     " 2.22 2.23 2.24 2.25 2.26 2.27 2.28 2.29 2.30",
        "libm.so.6": "2.2.5 2.4 2.15 2.18 2.23 2.24 2.25 2.26 2.27 2.28 2.29 2.31",
        "libpthread.so.0": "2.2.5 2.2.6 2.3.2 2.3.3 2.3.4 2.4 2.11 2.12 2.18 2.28 2.30 2.31",
        "libdl.so.2": "2.2.5 2.3.3 2.3.4",
        "ld-linux-x86-64.so.2": "2.2.5 2.3 2.4",
    },
    183: {  # arm64
        "libc.so.6": "2.17 2.18 2.22 2.23 2.24 2.25 2.26 2.27 2.28 2.29 2.30",
        "libm.so.6": "2.17 2.18 2.23 2.24 2.25 2.27 2.28 2.29 2.31",
        "libpthread.so.0": "2.17 2.18 2.28 2.30 2.31",
        "libdl.so.2": "2.17",
        "ld-linux-aarch64.so.1": "2.17",
    },
}


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


class Need(typing.NamedTuple):
    """A row of the table of versions."""
    at: int  # where it stands in the file
    index: int  # by which functions refer to it
    library: str
    version: str
    name: int  # where the version's text stands


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
        self.machine, = struct.unpack_from("<H", data, 18)

    def is_defined(self, library, version):
        """Whether @library of OLDEST has @version; those that are not glibc's are not judged."""
        return not parse(version) or version.removeprefix("GLIBC_") in DEFINED[self.machine].get(library, "").split()

    def text(self, offset):
        return bytes(self.data[self.strings + offset:self.data.index(0, self.strings + offset)]).decode()

    def wanted(self):
        """What each library must have, in the table's order."""
        at = self.needs[4]
        while True:
            _, count, library, aux, after = struct.unpack_from("<HHIII", self.data, at)
            here = at + aux
            for _ in range(count):
                _, _, index, name, step = struct.unpack_from("<IHHII", self.data, here)
                yield Need(here, index, self.text(library), self.text(name), name)
                here += step
            if not after:
                return
            at += after

    def ask(self, need, version, name):
        """@need is for @version from now on, whose text is at @name."""
        struct.pack_into("<I", self.data, need.at, elf_hash(version))
        struct.pack_into("<I", self.data, need.at + 8, name)

    def undefined(self):
        """(name, where its version's index stands, the index) of the functions that libraries must have."""
        for i in range(self.symbols[5] // 24):
            name, _, _, section, _, _ = struct.unpack_from("<IBBHQQ", self.data, self.symbols[4] + i * 24)
            where = self.versions[4] + i * 2
            index, = struct.unpack_from("<H", self.data, where)
            if section == 0 and index > 1:
                yield self.text(name), where, index


def choose(elf, functions, name, need):
    """The version of the function @name to ask for instead of @need's."""
    if elf.is_defined(need.library, need.version):
        return need.version
    old = [v for v in functions.get(name, ()) if elf.is_defined(need.library, v)]
    if not old:
        raise Refusal(f"{name} came with {need.version}: packaging/portable/polyfill.c must define it")
    return max(old, key=parse)


def lower(data, functions):
    """@data with all requirements at OLDEST or below; sizes and places of everything stay."""
    elf = Elf(data)
    needs = {need.index: need for need in elf.wanted()}
    chosen = {where: (needs[index].library, choose(elf, functions, name, needs[index])) for name, where, index in elf.undefined()}
    spare = [n for n in needs.values() if not elf.is_defined(n.library, n.version)]
    kept = {(n.library, n.version): n.index for n in needs.values() if n not in spare}
    names = {n.version: n.name for n in needs.values() if n not in spare}
    freed = {n.version: n.name for n in spare if n.version not in names}  # libraries may share a text
    for library, version in sorted(set(chosen.values()) - set(kept)):
        need = next((n for n in spare if n.library == library), None)
        if not need:
            raise Refusal(f"no room for {version} of {library} in the table of versions")
        if version not in names:
            old = next((v for v in freed if len(v) >= len(version)), None)
            if not old:
                raise Refusal(f"no room for the text {version}")
            names[version] = freed.pop(old)
            at = elf.strings + names[version]
            elf.data[at:at + len(old)] = version.encode().ljust(len(old), b"\0")
        elf.ask(need, version, names[version])
        kept[library, version] = need.index
        spare.remove(need)
    for where, need in chosen.items():
        struct.pack_into("<H", elf.data, where, kept[need])
    for need in spare:  # what nobody asks for any more asks the same library for something twice
        version = next((v for library, v in kept if library == need.library), None)
        if not version:
            raise Refusal(f"nothing else is asked of {need.library} than {need.version}")
        elf.ask(need, version, names[version])
    return bytes(elf.data)


def newest(data):
    """The newest glibc that a program asks for."""
    return max((parse(need.version) for need in Elf(data).wanted() if parse(need.version)), default=(0,))


def lacking(data):
    """What a program asks for that OLDEST does not have: (library, version) of each."""
    elf = Elf(data)
    return [(need.library, need.version) for need in elf.wanted() if not elf.is_defined(need.library, need.version)]
