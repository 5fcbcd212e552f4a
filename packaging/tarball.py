# SPDX-License-Identifier: Apache-2.0
"""tarball.py - both programs for distributions without our packages: one folder, usable where it is unpacked.

It needs glibc from 2.31 on (portable.py) and nothing else; docs/adr/0020-packages.md says why not static."""
import lzma
import pathlib
from archive import ROOT, Item, Refusal, finish, level, tar, with_folders
from layout import PROGRAMS
import portable
import sbom


def libraries(layout):
    folder = pathlib.Path(f"/lib/{layout.arch}-linux-gnu")
    files = [folder / name for name in ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2")]
    if not files[0].exists():
        raise Refusal(f"there is no {files[0]}: install libc6 for {layout.arch}")
    return files


def contents(layout):
    """The folder's files: as `make install` lays them below a prefix, which here is the folder."""
    functions = portable.offered(layout.tool("readelf"), libraries(layout))
    for name in PROGRAMS:
        for item in layout.program(name, layout.programs / "packaging/portable" / name):
            path = item.path.removeprefix("usr/")
            if path.startswith("bin/"):
                data = portable.lower(item.data, functions)
                if portable.lacking(data):
                    raise Refusal(f"{name} still asks for {portable.lacking(data)}")
                item = item._replace(data=data)
            yield item._replace(path=path)
    for name in ("LICENSE", "CHANGELOG.md"):
        yield Item(name, (ROOT / name).read_bytes())
    yield Item("copyright", (ROOT / "packaging/deb/copyright").read_bytes())
    yield Item("README.md", (ROOT / "docs/install.md").read_bytes())


def build(layout, out, version):
    stem = f"ingero-{version}-linux-{layout.arch}"
    data = lzma.compress(tar(with_folders(contents(layout)), stem + "/"), preset=level())
    maps = [layout.programs / f"packaging/portable/{name}.map" for name in PROGRAMS]
    yield from finish(out, stem + ".tar.xz", data, sbom.bill("ingero", version, data, sbom.linked(*maps)))
