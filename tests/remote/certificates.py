"""A throw-away authority with a server's and a client's certificate, made by the openssl program in well under a second.

    folder/ca.pem, server.pem, server.key, client.pem, client.key; other_ca.pem, which signed none of them
"""

import shutil
import subprocess
from pathlib import Path

NAMES = "subjectAltName=IP:127.0.0.1,IP:10.99.0.1,DNS:localhost"


def openssl(*arguments):
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)


def key(path):
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path)


def authority(folder, name):
    key(folder / f"{name}.key")
    openssl("req", "-x509", "-new", "-key", folder / f"{name}.key", "-subj", f"/CN=test {name}", "-days", "2", "-out",
            folder / f"{name}.pem")


def signed(folder, name, extension):
    key(folder / f"{name}.key")
    (folder / f"{name}.ext").write_text(extension + "\n")
    openssl("req", "-new", "-key", folder / f"{name}.key", "-subj", f"/CN={name}", "-out", folder / f"{name}.csr")
    openssl("x509", "-req", "-in", folder / f"{name}.csr", "-CA", folder / "ca.pem", "-CAkey", folder / "ca.key",
            "-CAcreateserial", "-days", "2", "-extfile", folder / f"{name}.ext", "-out", folder / f"{name}.pem")


def make(folder):
    """None where there is no openssl program."""
    if shutil.which("openssl") is None:
        return None
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    authority(folder, "ca")
    authority(folder, "other_ca")
    signed(folder, "server", NAMES)
    signed(folder, "client", "extendedKeyUsage=clientAuth")
    return folder
