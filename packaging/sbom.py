# SPDX-License-Identifier: Apache-2.0
"""sbom.py - the bill of materials of an archive, as CycloneDX 1.5: what other people's code is in it, with the
exact version of the Debian package it came from.

Linked statically: every archive of which the linker took a member, by the linker's map. Copied or needed at run
time: the files that the caller names. No time and no random number: the same archive has the same bill."""
import functools
import hashlib
import json
import pathlib
import platform
import re
import subprocess
import urllib.parse
import uuid
from archive import Refusal

MEMBER = re.compile(r"^(/\S+\.a)\(", re.M)


def archives(map_file):
    """The libraries of which something is in a program, by the list that its map begins with."""
    if not map_file.exists():
        raise Refusal(f"there is no {map_file}: build the programs again")
    head = map_file.read_text(errors="replace").split("\nDiscarded input sections")[0]
    head = head.split("\nMemory Configuration")[0]
    return {pathlib.Path(path).resolve() for path in MEMBER.findall(head)}


@functools.cache
def installed():
    """What dpkg knows of each package, by "name:arch" and by "name"."""
    form = "${Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}\n"
    rows = {}
    for line in subprocess.run(["dpkg-query", "-W", "-f", form], check=True, capture_output=True, text=True).stdout.splitlines():
        row = line.split("\t")
        rows[f"{row[0]}:{row[2]}"] = row
        rows.setdefault(row[0], row)
    return rows


OWNERS = {}  # by path: "name:arch", or None


def look_up(paths):
    """The Debian packages that files came with, all at once: dpkg reads its lists anew for every question."""
    names = {path: (str(path), *([str(path)[4:]] if str(path).startswith("/usr/lib") else ())) for path in paths if path not in OWNERS}
    if not names:
        return
    found = {}
    said = subprocess.run(["dpkg-query", "-S", *(name for group in names.values() for name in group)], capture_output=True, text=True)
    for line in said.stdout.splitlines():
        owner, _, name = line.partition(": ")
        found[name] = owner.split(",")[0]
    for path, group in names.items():
        OWNERS[path] = next((found[name] for name in group if name in found), None)


def native_name(path):
    """The same file of this machine's own architecture."""
    return pathlib.Path(re.sub(r"/(x86_64|aarch64)-linux-gnu/", f"/{platform.machine()}-linux-gnu/", str(path)))


def quoted(text):
    return urllib.parse.quote(text, safe="~")


def describe(paths, how):
    """One component for each file: the package, its source, and the sum of the file itself."""
    look_up([*paths, *map(native_name, paths)])
    return [component(path, how) for path in paths]


def component(path, how):
    # One that was unpacked beside the packages, as CONTRIBUTING says of libevent: the native one's version.
    package, guessed = OWNERS[path] or OWNERS[native_name(path)], not OWNERS[path]
    if not package:
        raise Refusal(f"{path} is of no Debian package: its version cannot be told")
    name, version, arch, source, source_version = installed()[package]
    row = {"type": "library", "name": source, "version": source_version,
           "purl": f"pkg:deb/debian/{quoted(name)}@{quoted(version)}?arch={arch}&distro=debian-12&upstream={quoted(source)}",
           "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}],
           "properties": [{"name": "ingero:file", "value": path.name}, {"name": "ingero:how", "value": how},
                          {"name": "ingero:package", "value": name}]}
    if guessed:
        row["properties"].append({"name": "ingero:version", "value": "of the same package for the building machine"})
    row["bom-ref"] = f"{name}/{path.name}/{how}"
    return row


def foreign(name, version, data, licence, how):
    """A component that is of no Debian package."""
    return {"type": "library", "name": name, "version": version, "bom-ref": f"{name}/{how}",
            "licenses": [{"license": {"id": licence}}],
            "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(data).hexdigest()}],
            "properties": [{"name": "ingero:how", "value": how}]}


def bill(name, version, data, components):
    """The document for the archive @data."""
    rows = sorted({row["bom-ref"]: row for row in components}.values(), key=lambda row: row["bom-ref"])
    digest = hashlib.sha256(data).hexdigest()
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, digest)}",
        "metadata": {"component": {"type": "application", "name": name, "version": version, "bom-ref": "archive",
                                   "licenses": [{"license": {"id": "Apache-2.0"}}],
                                   "hashes": [{"alg": "SHA-256", "content": digest}]}},
        "components": rows,
        "dependencies": [{"ref": "archive", "dependsOn": [row["bom-ref"] for row in rows]}],
    }
    return (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()


def linked(*map_files):
    """Components of all that is in the programs with these maps."""
    found = set().union(*(archives(file) for file in map_files))
    return describe(sorted(found), "linked statically")
