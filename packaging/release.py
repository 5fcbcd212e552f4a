# SPDX-License-Identifier: Apache-2.0
"""release.py - the sums of all files of a release, and a signature of the sums that anybody can check offline with
openssl: ECDSA on P-256, which every openssl of the last ten years verifies by the same command."""
import hashlib
import pathlib
import subprocess
import tempfile
from archive import Refusal, write


def sums(out, files):
    rows = sorted((file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in files)
    write(out / "SHA256SUMS", "".join(f"{digest}  {name}\n" for name, digest in rows).encode())


def openssl(*args):
    return subprocess.run(["openssl", *map(str, args)], capture_output=True, text=True, stdin=subprocess.DEVNULL)


def sign(out, key):
    """SHA256SUMS.sig and release.pub, by the caller's private key; what cannot be verified is not kept."""
    key = pathlib.Path(key)
    if not key.is_file():
        raise Refusal(f"there is no key {key}: openssl ecparam -name prime256v1 -genkey -noout -out {key.name}")
    with tempfile.TemporaryDirectory() as work:
        public, signature = pathlib.Path(work) / "pub", pathlib.Path(work) / "sig"
        for step in (("pkey", "-in", key, "-pubout", "-out", public),
                     ("dgst", "-sha256", "-sign", key, "-out", signature, out / "SHA256SUMS"),
                     ("dgst", "-sha256", "-verify", public, "-signature", signature, out / "SHA256SUMS")):
            done = openssl(*step)
            if done.returncode != 0:
                raise Refusal(f"{key} does not sign: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
        write(out / "SHA256SUMS.sig", signature.read_bytes())
        write(out / "release.pub", public.read_bytes())
