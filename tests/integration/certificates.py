# SPDX-License-Identifier: Apache-2.0
"""certificates.py - authorities and certificates in the test's folder, made by openssl: NAME.pem and NAME.key."""
import subprocess
from rig import scratch


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True)


def authority(name):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", f"/CN={name}", "-keyout", scratch(f"{name}.key"), "-out", scratch(f"{name}.pem"))


def certificate(name, ca, usage, out=None):
    out = out or name
    with open(scratch("ext"), "w") as f:
        f.write(f"subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage={usage}\n")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
            "-keyout", scratch(f"{out}.key"), "-out", scratch("csr"))
    openssl("x509", "-req", "-in", scratch("csr"), "-days", "2", "-CA", scratch(f"{ca}.pem"),
            "-CAkey", scratch(f"{ca}.key"), "-CAcreateserial", "-extfile", scratch("ext"),
            "-out", scratch(f"{out}.pem"))
