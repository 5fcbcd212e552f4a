# SPDX-License-Identifier: Apache-2.0
"""layout.py - which file goes where: the one list behind `make install`, the packages, the tarball and the image.

A cross build makes programs only; manual pages and completions are the same on every machine and come from the
native build."""
import pathlib
import platform
import re
import subprocess
import tempfile
from archive import ROOT, Item, Refusal, gz

PROGRAMS = ("ingero", "ingero-cluster")
DEBIAN = {"aarch64": "arm64", "x86_64": "amd64"}
OCI = DEBIAN
# Services that belong to the cluster's package; all others to the agent's.
# What is in packaging/systemd, by the end of its name: its folder, its end there, its mode.
SYSTEMD = {".service": ("systemd/system", ".service", 0o644), ".sysusers": ("sysusers.d", ".conf", 0o644),
           ".tmpfiles": ("tmpfiles.d", ".conf", 0o644), ".generator": ("systemd/system-generators", "", 0o755)}
CLUSTER_UNITS = re.compile(r"ingero-cluster[.@-]")


def version():
    found = re.search(r"^  version: '([0-9][0-9a-z.]*)'", (ROOT / "meson.build").read_text(), re.M)
    if not found:
        raise Refusal("meson.build states no version")
    return found[1]


class Layout:
    def __init__(self, build, arch, prefix="/usr", sysconf="/etc", with_duckdb=True):
        self.native, self.arch, self.with_duckdb = pathlib.Path(build), arch, with_duckdb
        self.programs = self.native if arch == platform.machine() else self.native.parent / f"build-{arch}"
        self.prefix, self.sysconf = prefix.strip("/"), sysconf.strip("/")
        if arch not in DEBIAN:
            raise Refusal(f"there are no packages for '{arch}': {' or '.join(sorted(DEBIAN))}")

    def tool(self, name):
        return name if self.arch == platform.machine() else f"{self.arch}-linux-gnu-{name}"

    def stripped(self, path):
        """A program without what only debuggers read."""
        if not path.exists():
            raise Refusal(f"there is no {path}: `make` builds it, `make ARCH={self.arch} programs` for another machine")
        with tempfile.NamedTemporaryFile() as out:
            subprocess.run([self.tool("strip"), "-o", out.name, path], check=True)
            return pathlib.Path(out.name).read_bytes()

    def manual(self, program):
        """Its pages: ingero.1, ingero-trace.1, …; those of ingero-cluster begin with its name."""
        for page in sorted((self.native / "man").glob("*.1")):
            if page.name.startswith("ingero-cluster") == (program == "ingero-cluster"):
                yield Item(f"{self.prefix}/share/man/man1/{page.name}", page.read_bytes())

    def completion(self, program):
        share = f"{self.prefix}/share"
        for shell, path in (("bash", f"bash-completion/completions/{program}"), ("zsh", f"zsh/site-functions/_{program}"),
                            ("fish", f"fish/vendor_completions.d/{program}.fish")):
            text = subprocess.run([self.native / program, "completion", shell], check=True, capture_output=True)
            yield Item(f"{share}/{path}", text.stdout)

    def services(self, program):
        """Units, users and generators for systemd; programs are where this layout puts them."""
        for file in sorted((ROOT / "packaging/systemd").glob("*")):
            is_cluster = bool(CLUSTER_UNITS.match(file.name))
            if file.suffix not in SYSTEMD or is_cluster != (program == "ingero-cluster"):
                continue
            folder, suffix, mode = SYSTEMD[file.suffix]
            text = file.read_text().replace("/usr/bin/ingero", f"/{self.prefix}/bin/ingero")
            yield Item(f"{self.prefix}/lib/{folder}/{file.stem}{suffix}", text.encode(), mode)

    def program(self, name, path=None):
        """All that belongs to one of the two programs."""
        yield Item(f"{self.prefix}/bin/{name}", self.stripped(path or self.programs / name), 0o755)
        yield from self.manual(name)
        yield from self.completion(name)
        yield from self.services(name)
        if name == "ingero":
            yield Item(f"{self.sysconf}/ingero/ingero.yaml", (ROOT / "packaging/ingero.yaml").read_bytes())

    def duckdb(self):
        """The library in which `ingero-cluster echo` keeps its rows, if it was fetched (tools/duckdb)."""
        file = self.programs / "duckdb/libduckdb.so"
        if self.with_duckdb and file.exists():
            yield Item(f"{self.prefix}/lib/ingero/libduckdb.so", self.stripped(file))


def compressed(items):
    """As Debian wants its manual pages."""
    return [item._replace(path=item.path + ".gz", data=gz(item.data)) if "/man/man1/" in item.path else item
            for item in items]
