# SPDX-License-Identifier: Apache-2.0
"""bare.py - a bare Debian to try packages in, and the packages themselves, made from the build as it is."""
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
from rig import BUILD, SOURCE, scratch

ARCH = os.uname().machine
VERSION = re.search(r"^  version: '(.*)'", (SOURCE / "meson.build").read_text(), re.M)[1]
DEBIAN = {"aarch64": "arm64", "x86_64": "amd64"}[ARCH]


def leave(why):
    """The whole test is skipped, loudly."""
    print(why)
    sys.exit(77)


def pack(*args, out="release", **env):
    """packaging/pack, compressed little: a test looks at what is inside. The finished process."""
    env = os.environ | {"PACK_LEVEL": "0"} | env
    return subprocess.run([SOURCE / "packaging/pack", "--build", BUILD, "--out", scratch(out), *map(str, args)],
                          capture_output=True, text=True, env=env)


def packed(*args, out="release", **env):
    """The folder with what was packed; the test ends where nothing was."""
    done = pack(*args, out=out, **env)
    if done.returncode != 0:
        raise RuntimeError(f"packaging/pack {args}: {done.stdout}{done.stderr}")
    return pathlib.Path(scratch(out))


def loosen(deb):
    """Its content by gzip, which dpkg unpacks in a quarter of the CPU time that xz takes; 95-release looks at xz's."""
    script = """cd "$1" && ar x "$2" && for member in control data; do xz -dc $member.tar.xz | gzip -n1 >$member.tar.gz; done &&
                rm "$2" && ar rcS "$2" debian-binary control.tar.gz data.tar.gz"""
    work = scratch(f"loosen-{deb.name}")
    os.mkdir(work)
    subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script, "bash", work, deb], check=True)


def debs(version=VERSION):
    """The folder with the packages of @version: packed once for all tests of one build, whoever asks first."""
    said = (version, *(f"{file}{file.stat().st_mtime_ns}" for file in
                       (BUILD / "ingero", BUILD / "ingero-cluster", *sorted((SOURCE / "packaging").rglob("*.*")))))
    folder = BUILD / "test-packs" / f"{version}-{hashlib.sha256(''.join(said).encode()).hexdigest()[:16]}"
    folder.parent.mkdir(exist_ok=True)
    with open(folder.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            for old in folder.parent.glob(f"{version}-*"):  # of another build
                shutil.rmtree(old)
            made = packed("deb", "--version", version, "--without-duckdb", out=f"packed-{version}")
            part = folder.with_name(f"{folder.name}.part")
            shutil.copytree(made, part)
            for file in part.glob("*.deb"):
                loosen(file)
            part.rename(folder)
    return folder


def rootfs(suite=""):
    """Where tools/rootfs puts the root filesystem."""
    return BUILD / f"rootfs{'-' * bool(suite)}{suite}.tar"


class Bare:
    """A root filesystem of its own, unpacked from what tools/rootfs made of @suite (default: Debian 12)."""

    def __init__(self, suite=""):
        tar = rootfs(suite)
        if not tar.exists():
            leave(f"there is no {tar.name} in the build folder: tools/rootfs --build {BUILD.name} makes it, as root")
        self.root = pathlib.Path(scratch(suite or "bare"))
        self.root.mkdir()
        subprocess.run(["tar", "-C", self.root, "-xpf", tar, "--numeric-owner"], check=True)

    def run(self, *argv, timeout=100):
        """A command in there, with processes and mounts of its own: none outlives it."""
        inside = "mount -t proc proc proc && exec chroot . /usr/bin/env -i HOME=/root LANG=C.UTF-8 " \
                 "PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \"$@\""
        return subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private",
                               "sh", "-c", inside, "sh", *map(str, argv)], cwd=self.root, capture_output=True, text=True,
                              timeout=timeout, stdin=subprocess.DEVNULL)

    def tracer(self, program):
        """A program outside that is @program inside, with this machine's processes, /sys and the tests' files."""
        path = pathlib.Path(scratch(f"{self.root.name}-tracer"))
        mounts = " && ".join(f"mkdir -p .{at} && mount --{how} {at} .{at}"
                             for at, how in (("/proc", "rbind"), ("/sys", "rbind"), (scratch(""), "bind")))
        path.write_text(f"#!/bin/sh\ncd {self.root} && exec unshare --mount --propagation private "
                        f"sh -c '{mounts} && exec chroot . {program} \"$@\"' sh \"$@\"\n")
        path.chmod(0o755)
        return path

    def install(self, *files):
        """dpkg -i of packages that lie outside."""
        for file in files:
            (self.root / file.name).write_bytes(file.read_bytes())
        done = self.run("dpkg", "-i", *(f"/{file.name}" for file in files))
        for file in files:
            (self.root / file.name).unlink()
        return done

    def files(self):
        """Every path, but for those that programs rewrite: logs, caches, dpkg's own books."""
        own = ("var/lib/dpkg", "var/cache", "var/log", "proc", "run", "tmp")
        return {path for found, folders, names in os.walk(self.root) for path in
                (os.path.relpath(os.path.join(found, name), self.root) for name in folders + names)
                if not path.startswith(own)}
