# SPDX-License-Identifier: Apache-2.0
"""image.py - the OCI image with both programs, as an archive that podman, docker (from 25 on), skopeo and crane read.

One layer: the programs, glibc's loader and libraries, root certificates, an ordinary user. There is no shell and no
package manager in it. It starts as root, because what traces is nothing else; the cluster's service is started as the
ordinary user (docs/adr/0020-packages.md)."""
import hashlib
import json
import pathlib
import time
from archive import Item, Refusal, epoch, finish, gz, level, tar, with_folders
from layout import OCI, PROGRAMS
import deb
import sbom

USER = 65532
LOADER = {"aarch64": "lib/ld-linux-aarch64.so.1", "x86_64": "lib64/ld-linux-x86-64.so.2"}
# The first two are ours; the others are what NVIDIA's driver libraries, which its runtime mounts, ask for.
GLIBC = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1")
# What libduckdb.so asks for where somebody mounts it.
CXX = ("libstdc++.so.6", "libgcc_s.so.1")
ROOTS = pathlib.Path("/usr/share/ca-certificates/mozilla")


def library(layout, name):
    for folder in (f"/lib/{layout.arch}-linux-gnu", f"/usr/lib/{layout.arch}-linux-gnu", f"/usr/{layout.arch}-linux-gnu/lib"):
        file = pathlib.Path(folder) / name
        if file.exists():
            return file.resolve()
    raise Refusal(f"there is no {name} for {layout.arch} here: install libc6 and libstdc++6 of that architecture")


def certificates():
    """The roots of Debian's package; not those that the building machine trusts besides."""
    files = sorted(ROOTS.glob("*.crt"))
    if not files:
        raise Refusal(f"there are no root certificates in {ROOTS}: install ca-certificates")
    return b"".join(file.read_bytes() for file in files)


def copied(layout):
    """(where, file) of what is taken from the building system."""
    triplet = f"usr/lib/{layout.arch}-linux-gnu"
    loader = pathlib.PurePosixPath(LOADER[layout.arch])
    yield f"usr/{loader}", library(layout, loader.name)
    for name in GLIBC + CXX:
        yield f"{triplet}/{name}", library(layout, name)


def contents(layout):
    for name in PROGRAMS:
        yield Item(f"usr/bin/{name}", layout.stripped(layout.programs / name), 0o755)
    for where, file in copied(layout):
        yield Item(where, layout.stripped(file), 0o755)
    yield Item("lib", "usr/lib")
    yield Item("lib64", "usr/lib64" if layout.arch == "x86_64" else "usr/lib")
    yield Item("bin", "usr/bin")
    yield Item("etc/passwd", f"root:x:0:0::/root:/\ningero:x:{USER}:{USER}::/var/lib/ingero:/\n".encode())
    yield Item("etc/group", f"root:x:0:\ningero:x:{USER}:\n".encode())
    yield Item("etc/os-release", b'PRETTY_NAME="ingero image (Debian 12 libraries)"\nID=debian\nVERSION_ID="12"\n')
    yield Item("etc/ssl/certs/ca-certificates.crt", certificates())
    yield Item("usr/share/doc/ingero/copyright", pathlib.Path(__file__).with_name("deb").joinpath("copyright").read_bytes())
    for path, mode, owner in (("proc", 0o555, 0), ("sys", 0o555, 0), ("dev", 0o755, 0), ("run", 0o755, 0), ("root", 0o700, 0),
                              ("tmp", 0o1777, 0), ("var/tmp", 0o1777, 0), ("var/lib/ingero", 0o755, 0),
                              ("var/lib/ingero-cluster", 0o750, USER), ("etc/ingero", 0o755, 0), ("usr/lib/ingero", 0o755, 0)):
        yield Item(path, None, mode, owner)


def blob(blobs, data, media):
    digest = hashlib.sha256(data).hexdigest()
    blobs[digest] = data
    return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(data)}


def encode(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def settings(version):
    """As whom and with what the image starts."""
    return {"User": "0:0", "WorkingDir": "/var/lib/ingero", "StopSignal": "SIGTERM",
            "Env": ["PATH=/usr/bin", "HOME=/var/lib/ingero", "INGERO_DB=/var/lib/ingero/ingero.db"], "Entrypoint": ["/usr/bin/ingero"], "Cmd": ["help"],
            "Labels": {"org.opencontainers.image.title": "ingero", "org.opencontainers.image.version": version,
                       "org.opencontainers.image.licenses": "Apache-2.0"}}


def archive(layout, version, items, config):
    """The bytes of an OCI layout with one image of one layer."""
    layer = tar(with_folders(items))
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch()))
    blobs, oci = {}, "application/vnd.oci.image"
    layers = [blob(blobs, gz(layer, level()), f"{oci}.layer.v1.tar+gzip")]
    whole = {"created": when, "architecture": OCI[layout.arch], "os": "linux", "config": config,
             "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
             "history": [{"created": when, "created_by": "make image"}]}
    manifest = {"schemaVersion": 2, "mediaType": f"{oci}.manifest.v1+json", "layers": layers,
                "config": blob(blobs, encode(whole), f"{oci}.config.v1+json")}
    row = blob(blobs, encode(manifest), f"{oci}.manifest.v1+json")
    row |= {"platform": {"architecture": OCI[layout.arch], "os": "linux"},
            "annotations": {"org.opencontainers.image.ref.name": version}}
    index = {"schemaVersion": 2, "mediaType": f"{oci}.index.v1+json", "manifests": [row]}
    files = [Item("oci-layout", encode({"imageLayoutVersion": "1.0.0"})), Item("index.json", encode(index))]
    files += [Item(f"blobs/sha256/{digest}", data) for digest, data in blobs.items()]
    return tar(with_folders(files))


def build(layout, out, version):
    data = archive(layout, version, contents(layout), settings(version))
    rows = sbom.linked(*(layout.programs / f"{program}.map" for program in PROGRAMS))
    rows += sbom.describe([*(file for _, file in copied(layout)), sorted(ROOTS.glob("*.crt"))[0]], "copied")
    yield from finish(out, f"ingero-{version}-linux-{layout.arch}.oci.tar", data, sbom.bill("ingero", version, data, rows))
    # The library alone, in the root folder: a volume for those who keep rows in DuckDB (packaging/helm).
    for item in layout.duckdb():
        number = f"{deb.duckdb_version()}-{version}"
        data = archive(layout, number, [item._replace(path="libduckdb.so")], {})
        rows = [sbom.foreign("duckdb", deb.duckdb_version(), item.data, "MIT", "copied")]
        yield from finish(out, f"ingero-duckdb-{number}-linux-{layout.arch}.oci.tar", data,
                          sbom.bill("ingero-duckdb", number, data, rows))
