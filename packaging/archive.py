# SPDX-License-Identifier: Apache-2.0
"""archive.py - files as packages hold them, and tars of them that are the same bytes wherever and whenever
they are made: sorted, owned by root, one time for all, no trace of who packed.

Nothing here reads the umask, the time of day, the time zone, the locale or the order of a folder."""
import functools
import gzip
import io
import os
import pathlib
import re
import subprocess
import tarfile
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Refusal(Exception):
    """What the user is told instead of a package, in one sentence."""


class Item(NamedTuple):
    """@path has no leading slash. @data is a file's bytes, a link's target (str), or None: a folder."""
    path: str
    data: bytes | str | None
    mode: int = 0o644
    owner: int = 0


@functools.cache  # it is asked for every file
def epoch():
    """The time that all files of a package bear: the last commit's, unless the caller says another."""
    said = os.environ.get("SOURCE_DATE_EPOCH", "")
    if said:
        if not said.isdigit():
            raise Refusal(f"SOURCE_DATE_EPOCH is '{said}', not a number of seconds")
        return int(said)
    done = subprocess.run(["git", "-c", "safe.directory=*", "-C", ROOT, "log", "-1", "--format=%ct"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise Refusal("this is no git tree: say the time that files are to bear in SOURCE_DATE_EPOCH")
    return int(done.stdout)


def with_folders(items):
    """The items and every folder they lie in, sorted, each once."""
    found = {item.path: item for item in items}
    for path in list(found):
        for parent in list(pathlib.PurePosixPath(path).parents)[:-1]:
            found.setdefault(str(parent), Item(str(parent), None, 0o755))
    return [found[path] for path in sorted(found)]


def tar(items, prefix=""):
    """The bytes of a tar of @items, in which all names begin with @prefix."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as file:
        for item in items:
            info = tarfile.TarInfo(prefix + item.path)
            info.mtime, info.mode, info.uid, info.gid = epoch(), item.mode, item.owner, item.owner
            if item.data is None:
                info.type = tarfile.DIRTYPE
            elif isinstance(item.data, str):
                info.type, info.linkname = tarfile.SYMTYPE, item.data
            else:
                info.size = len(item.data)
            file.addfile(info, io.BytesIO(item.data) if isinstance(item.data, bytes) else None)
    return out.getvalue()


def level():
    """How hard to compress: PACK_LEVEL 0 is for tests, which look at what is packed and not at its size."""
    said = os.environ.get("PACK_LEVEL", "6")
    if not re.fullmatch("[0-9]", said):
        raise Refusal(f"PACK_LEVEL is '{said}', not 0 to 9")
    return int(said)


def gz(data, hard=9):
    return gzip.compress(data, hard, mtime=0)


def write(path, data):
    """Whole or not at all, and readable by all whatever the umask."""
    part = path.with_name(path.name + ".part")
    part.write_bytes(data)
    part.chmod(0o644)
    part.replace(path)


def finish(out, name, data, bill):
    """Writes an archive and its bill of materials; yields both."""
    for file, content in ((out / name, data), (out / f"{name}.cdx.json", bill)):
        write(file, content)
        yield file
