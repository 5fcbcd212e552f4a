# SPDX-License-Identifier: Apache-2.0
"""deb.py - Debian packages: ingero, ingero-cluster, and ingero-duckdb if its library was fetched.

dpkg-deb packs a folder that holds nothing but what stands here, with modes that are set and not inherited."""
import hashlib
import os
import pathlib
import re
import subprocess
import tempfile
import textwrap
import time
from archive import ROOT, Item, Refusal, epoch, finish, gz, level, with_folders
from layout import DEBIAN, compressed
import portable
import sbom

HERE = pathlib.Path(__file__).resolve().parent
# GLIBCXX_3.4.N came with this gcc, which is libstdc++6's version.
CXX = {18: "4.8", 19: "4.8", 20: "4.9", 21: "5", 22: "6", 24: "7", 25: "8", 26: "9", 28: "10", 29: "11", 30: "12"}
UNNAMED = "ingero packagers <packages@ingero.example>"

PACKAGES = {
    "ingero": {
        "Depends": "passwd", "Suggests": "ingero-cluster", "Section": "admin",
        "Description": """explains why a GPU waited, by eBPF
 An agent that watches CUDA calls and the Linux kernel under them, without a
 change to the workload, and says why the GPU waited: for which process, which
 disk, which rank or which line of Python.
 .
 Recordings are SQLite files. The agent answers on the command line, as a web
 page, over HTTPS, to Prometheus and OpenTelemetry, and to assistants (MCP)."""},
    "ingero-cluster": {
        "Depends": "passwd", "Recommends": "ingero-duckdb", "Suggests": "ingero", "Section": "admin",
        "Description": """finds the rank that all others wait for
 The service that hears the ingero agents of all nodes of a cluster, matches
 their collectives, and names who is late, for what, why, and what it costs.
 .
 What nodes send is kept and can be asked by SQL if ingero-duckdb is there or
 ClickHouse is used; finding late ranks needs neither."""},
    "ingero-duckdb": {
        "Depends": "", "Section": "database",
        "Description": """DuckDB, in which ingero-cluster keeps its rows
 The library that `ingero-cluster echo` and `all` load, unchanged as DuckDB's
 authors publish it, where no other program finds it."""},
}


def changelog():
    """CHANGELOG.md as Debian writes it: one stanza a version."""
    text = (ROOT / "CHANGELOG.md").read_text()
    out = []
    for version, date, body in re.findall(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)\n(.*?)(?=^## |\Z)", text, re.M | re.S):
        when = time.strftime("%a, %d %b %Y 12:00:00 +0000", time.strptime(date, "%Y-%m-%d"))
        points = (" ".join(point.split()) for point in re.split(r"^- ", re.sub(r"^#.*", "", body, flags=re.M), flags=re.M)[1:])
        lines = "\n".join(textwrap.fill(point, 76, initial_indent="  * ", subsequent_indent="    ") for point in points)
        out.append((version, f"{lines}\n\n -- {maintainer()}  {when}\n"))
    if not out:
        raise Refusal("CHANGELOG.md has no version with a date")
    return out


def maintainer():
    """Whoever builds says so, as Debian's own tools are told; else a name in a domain that is nobody's (RFC 2606), so that
    the same commit gives the same bytes."""
    named, mail = os.environ.get("DEBFULLNAME"), os.environ.get("DEBEMAIL")
    said = os.environ.get("DEB_MAINTAINER") or (f"{named} <{mail}>" if named and mail else UNNAMED)
    if not re.fullmatch(r"[^<>\n]+ <[^<>@\s]+@[^<>@\s]+>", said):
        raise Refusal(f"the maintainer must be written \"Name <mail@domain>\", not \"{said}\": set DEB_MAINTAINER")
    return said


def stanza(name, version, number, text):
    return f"{name} ({version if number == 0 else text[0]}) unstable; urgency=medium\n\n{text[1]}"


def needs(data):
    """Depends, from what the program itself asks for."""
    parts = [f"libc6 (>= {'.'.join(map(str, portable.newest(data)))})"]
    cxx = [int(found[1]) for need in portable.Elf(data).wanted()
           if (found := re.fullmatch(r"GLIBCXX_3\.4\.(\d+)", need.version))]
    if cxx:
        if max(cxx) not in CXX:
            raise Refusal(f"which libstdc++6 has GLIBCXX_3.4.{max(cxx)} is not known: add it to packaging/deb.py")
        parts += ["libgcc-s1 (>= 3.0)", f"libstdc++6 (>= {CXX[max(cxx)]})"]
    return parts


def control(layout, name, version, items, program):
    about = PACKAGES[name]
    size = sum(-(-len(item.data) // 1024) if isinstance(item.data, bytes) else 1 for item in items)
    depends = needs(program) + [d for d in (about["Depends"],) if d]
    rows = [("Package", name), ("Version", version), ("Architecture", DEBIAN[layout.arch]),
            ("Maintainer", maintainer()), ("Installed-Size", str(size)), ("Depends", ", ".join(sorted(depends))),
            ("Recommends", about.get("Recommends")), ("Suggests", about.get("Suggests")),
            ("Section", about["Section"]), ("Priority", "optional"), ("Description", about["Description"])]
    return "".join(f"{key}: {value}\n" for key, value in rows if value)


def documents(name, version):
    """What Debian wants of every package: whose it is, what changed, what its checker is to overlook and why."""
    doc = f"usr/share/doc/{name}"
    entries = changelog()
    text = "\n".join(stanza(name, version, i, entry) for i, entry in enumerate(entries))
    yield Item(f"{doc}/changelog.gz", gz(text.encode()))
    source = HERE / "deb" / ("copyright.duckdb" if name == "ingero-duckdb" else "copyright")
    yield Item(f"{doc}/copyright", source.read_bytes())
    overlooked = HERE / "deb" / f"{name}.lintian-overrides"
    if overlooked.exists():
        yield Item(f"usr/share/lintian/overrides/{name}", overlooked.read_bytes())


def lay_out(folder, items):
    for item in with_folders(items):
        path = folder / item.path
        if item.data is None:
            path.mkdir()
        else:
            path.write_bytes(item.data)
        path.chmod(item.mode)


def at_debians(item):
    """Debian's and Ubuntu's zsh look for what packages bring in a folder of their own."""
    return item._replace(path=item.path.replace("share/zsh/site-functions/", "share/zsh/vendor-completions/"))


def pack(layout, name, version, items, program):
    """The bytes of one package."""
    items = [at_debians(item) for item in compressed(items)] + list(documents(name, version))
    sums = "".join(f"{hashlib.md5(item.data).hexdigest()}  {item.path}\n"
                   for item in sorted(items) if not item.path.startswith("etc/"))
    members = [Item("DEBIAN/control", control(layout, name, version, items, program).encode()),
               Item("DEBIAN/md5sums", sums.encode())]
    conffiles = "".join(f"/{item.path}\n" for item in sorted(items) if item.path.startswith("etc/"))
    if conffiles:
        members.append(Item("DEBIAN/conffiles", conffiles.encode()))
    for script in ("preinst", "postinst", "prerm", "postrm"):
        source = HERE / "deb" / f"{name}.{script}"
        if source.exists():
            members.append(Item(f"DEBIAN/{script}", source.read_bytes(), 0o755))
    with tempfile.TemporaryDirectory() as work:
        tree, out = pathlib.Path(work) / "tree", pathlib.Path(work) / "deb"
        tree.mkdir()
        tree.chmod(0o755)
        lay_out(tree, items + members)
        # One thread: the number of them shows in what xz writes.
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", f"-z{level()}", "--threads-max=1", "--build", tree, out],
                       check=True, stdout=subprocess.DEVNULL, env=os.environ | {"SOURCE_DATE_EPOCH": str(epoch()), "TZ": "UTC"})
        return out.read_bytes()


def duckdb_version():
    return re.search(r"^readonly VERSION=([0-9.]+)", (ROOT / "tools/duckdb").read_text(), re.M)[1]


def build(layout, out, version):
    """Writes all packages and their bills into @out; yields the files."""
    for name in ("ingero", "ingero-cluster"):
        items = list(layout.program(name))
        data = pack(layout, name, version, items, items[0].data)
        bill = sbom.bill(name, version, data, sbom.linked(layout.programs / f"{name}.map"))
        yield from finish(out, f"{name}_{version}_{DEBIAN[layout.arch]}.deb", data, bill)
    items = list(layout.duckdb())
    if items:
        number = f"{duckdb_version()}+{version}"
        data = pack(layout, "ingero-duckdb", number, items, items[0].data)
        rows = [sbom.foreign("duckdb", duckdb_version(), items[0].data, "MIT", "copied")]
        yield from finish(out, f"ingero-duckdb_{number}_{DEBIAN[layout.arch]}.deb", data,
                          sbom.bill("ingero-duckdb", number, data, rows))
    elif layout.with_duckdb:
        print("without ingero-duckdb: `make duckdb` fetches its library first")
