# SPDX-License-Identifier: Apache-2.0
"""crash_image.py - what a disk may hold after a power cut, from the recorded system calls of the program that wrote it.

strace() is the program that records; Recording reads what it wrote. Lines are in the order in which calls began and
ended, so a line is an instant: a cut. Of a file, what was written before its last sync is there; of later writes
each is there, missing, torn at a sector, or only as length. Names are made and removed the same way, each until its
folder is synced: a synced file whose folder was not may have no name. That is less than ext4 promises."""
import os
import pathlib
import re
import shutil
import subprocess

SECTOR = 512
CALLS = ("openat,write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,?rename,?renameat,renameat2,?unlink,unlinkat,"
         "?rmdir,ftruncate,fallocate,?mkdir,mkdirat,?link,linkat,copy_file_range,sendfile")  # "?": not on every architecture
UNKNOWN = {"link", "linkat", "copy_file_range", "sendfile"}  # nobody uses them on a store: if so, say it
LINE = re.compile(r"(\d+) +(\d+\.\d+) (.*)")
CALL = re.compile(r"(\w+)\((.*)\) += (-?\d+)(?:<([^>]*)>)?(?: .*)?$")
DESCRIPTOR = re.compile(r"(\d+|AT_FDCWD)<([^>]*)>")
TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')


def strace(path):
    """The program under which another one runs as it would alone, whose calls go to @path."""
    return ["strace", "-D", "-f", "-y", "-ttt", "-xx", "-s", str(64 << 20), "-o", path, "-e", f"trace={CALLS}", "-e", "signal=none"]


def can_record():
    """There is strace, and it may trace."""
    return shutil.which("strace") and subprocess.run([*strace("/dev/null"), "true"], capture_output=True, check=False).returncode == 0


def plain(text):
    return bytes.fromhex(text.replace("\\x", ""))


class File:
    def __init__(self, data=b""):
        self.durable, self.pending = data, []

    def size(self):
        size = len(self.durable)
        for offset, data in self.pending:
            size = offset if data is None else max(size, offset + len(data))
        return size

    def sync(self):
        self.durable, self.pending = self.after(self.pending), []

    def after(self, changes):
        out = bytearray(self.durable)
        for offset, data in changes:  # data None: the file ends at the offset
            end = offset if data is None else offset + len(data)
            out.extend(bytes(max(end - len(out), 0)))
            if data is None:
                del out[offset:]
            else:
                out[offset:end] = data
        return bytes(out)

    def torn(self, draw):
        return self.after([c for change in self.pending for c in draw.change(*change)])


class Folder:
    def __init__(self):
        self.durable, self.now = {}, {}


class Draw:
    """What of the pending is on the disk: with @kept 1 all, with 0 nothing."""

    def __init__(self, chance):
        self.chance = chance
        self.kept = chance.choice((0, 0.2, 0.5, 0.8, 1))
        self.broken = chance.choice((0, 0.3))  # of what is kept

    def keeps(self):
        return self.chance.random() < self.kept

    def change(self, offset, data):
        if not self.keeps():
            return []
        if not data or self.chance.random() >= self.broken:
            return [(offset, data)]
        cut = self.chance.randrange(len(data) // SECTOR + 1) * SECTOR
        if self.chance.random() < 0.5:
            return [(offset, data[:cut])]
        return [(offset, data[:cut] + bytes(len(data) - cut))]


class Disk:
    """A folder as it was, in which calls are played."""

    def __init__(self, root, ignores_sync=False):
        self.root, self.ignores_sync = str(root), ignores_sync
        self.names = []  # pending: (folders, [(folder, name, node or None)]), in order
        self.position = {}  # by descriptor
        self.top = self.loaded(pathlib.Path(root))

    def loaded(self, path):
        if not path.is_dir():
            return File(path.read_bytes())
        folder = Folder()
        folder.durable = {p.name: self.loaded(p) for p in path.iterdir() if p.is_dir() or p.is_file()}
        folder.now = dict(folder.durable)
        return folder

    def find(self, path):
        """(its folder, its name, what it is now or None), or None if it is not ours."""
        path = os.path.normpath(path)
        if path == self.root:
            return None, None, self.top
        if not path.startswith(self.root + "/"):
            return None
        folder, names = self.top, path[len(self.root) + 1:].split("/")
        for name in names[:-1]:
            folder = folder.now.get(name)
            if not isinstance(folder, Folder):
                return None
        return folder, names[-1], folder.now.get(names[-1])

    def name(self, *changes):
        for folder, name, node in changes:
            if node is None:
                folder.now.pop(name, None)
            else:
                folder.now[name] = node
        self.names.append(changes)

    def sync(self, node):
        if self.ignores_sync:
            return
        if isinstance(node, File):
            node.sync()
            return
        waiting = []
        for changes in self.names:
            if any(folder is node for folder, _, _ in changes):
                self.settle(changes)
            else:
                waiting.append(changes)
        self.names = waiting

    @staticmethod
    def settle(changes):
        for folder, name, node in changes:
            if node is None:
                folder.durable.pop(name, None)
            else:
                folder.durable[name] = node

    def write_image(self, to, chance):
        """The disk is used up. Returns how many changes waited to be synced."""
        draw = Draw(chance)
        waiting = len(self.names)
        for changes in self.names:
            if draw.keeps():
                self.settle(changes)
        return waiting + self.put(self.top, pathlib.Path(to), draw)

    def put(self, node, path, draw):
        if isinstance(node, File):
            path.write_bytes(node.torn(draw))
            path.chmod(0o600)
            return len(node.pending)
        path.mkdir(mode=0o700)
        return sum(self.put(child, path / name, draw) for name, child in node.durable.items())

    # ---- calls ----

    def play(self, call, is_done=True):
        name, args, result, result_path = call
        if name in ("fsync", "fdatasync"):
            found = is_done and self.find(self.path_of(args))
            if found and found[2]:
                self.sync(found[2])
        elif name == "openat":
            self.open(args, result, result_path)
        elif name in ("write", "writev", "pwrite64", "pwritev", "pwritev2"):
            self.write(name, args)
        elif name in ("ftruncate", "fallocate"):
            self.resize(name, args)
        else:
            self.rename_or_remove(name, args)

    @staticmethod
    def path_of(args):
        return plain(DESCRIPTOR.match(args)[2]).decode(errors="replace")

    @staticmethod
    def paths(args):
        """Each name of the call, from the folder that stands before it."""
        out, folder = [], ""
        for part in re.split(r", ", args):
            descriptor, text = DESCRIPTOR.match(part), TEXT.match(part)
            if descriptor:
                folder = plain(descriptor[2]).decode(errors="replace")
            elif text:
                out.append(os.path.join(folder, plain(text[1]).decode(errors="replace")))
        return out

    def open(self, args, result, result_path):
        found = self.find(plain(result_path).decode(errors="replace")) if result_path else None
        if not found or not found[0]:
            return
        folder, name, node = found
        if not node and "O_CREAT" in args:
            node = File()
            self.name((folder, name, node))
        if isinstance(node, File):
            if "O_TRUNC" in args and node.size():
                node.pending.append((0, None))
            self.position[result] = None if "O_APPEND" in args else 0

    def write(self, name, args):
        found = self.find(self.path_of(args))
        if not found or not isinstance(found[2], File):
            return
        texts = TEXT.findall(args)
        assert not any(more for _, more in texts), "strace cut a write short"
        data = b"".join(plain(text) for text, _ in texts)
        if name.startswith("p"):
            offset = int(re.findall(r", (\d+)", args.rpartition('"')[2])[-1 if name != "pwritev2" else -2])
        else:
            descriptor = int(DESCRIPTOR.match(args)[1])
            offset = self.position.get(descriptor)
            offset = found[2].size() if offset is None else offset
            if self.position.get(descriptor) is not None:
                self.position[descriptor] = offset + len(data)
        found[2].pending.append((offset, data))

    def resize(self, name, args):
        found = self.find(self.path_of(args))
        if not found or not isinstance(found[2], File):
            return
        numbers = [int(n) for n in re.findall(r", (\d+)", args)]
        if name == "ftruncate" or sum(numbers[-2:]) > found[2].size():
            found[2].pending.append((numbers[-1] if name == "ftruncate" else sum(numbers[-2:]), None))

    def rename_or_remove(self, name, args):
        found = [f for f in map(self.find, self.paths(args)) if f and f[0]]
        if not found:
            return
        assert name not in UNKNOWN, f"{name} is not played"
        folder, leaf, node = found[0]
        if name.startswith("mkdir"):
            self.name((folder, leaf, Folder()))
        elif name.startswith("rename") and len(found) == 2 and node:
            self.name((folder, leaf, None), (found[1][0], found[1][1], node))
        elif node:
            self.name((folder, leaf, None))


class Recording:
    def __init__(self, path):
        """@path: what strace wrote."""
        self.times, self.calls = [], []  # of each line; (line of its begin, of its end, call)
        begun = {}
        with open(path, encoding="latin-1") as lines:
            for number, line in enumerate(lines):
                pid, when, rest = LINE.match(line).groups()
                self.times.append(float(when))
                if rest.endswith("<unfinished ...>"):
                    begun[pid] = number, rest[:-len("<unfinished ...>")].rstrip()
                    continue
                start = number
                if rest.startswith("<... "):
                    start, head = begun.pop(pid)
                    rest = head + rest[rest.index("resumed>") + len("resumed>"):]
                call = CALL.match(rest)
                if call and int(call[3]) >= 0:
                    self.calls.append((start, number, (call[1], call[2], int(call[3]), call[4])))

    def draw(self, chance):
        """An instant: any, or soon after a name has changed, of which there are few, and which matter."""
        named = [start for start, _, call in self.calls if call[0].startswith(("rename", "unlink", "mkdir"))]
        if named and chance.random() < 0.5:
            return min(chance.choice(named) + chance.randint(0, 8), len(self.times) - 1)
        return chance.randrange(1, len(self.times))

    def play(self, disk, cut):
        """The calls up to line @cut; of those that are under way then, a sync has not happened."""
        for start, end, call in self.calls:
            if end < cut:
                disk.play(call)
            elif start < cut:
                disk.play(call, is_done=False)
