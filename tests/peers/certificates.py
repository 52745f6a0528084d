"""Certificates of an authority of the test's own."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import base64
import hashlib
import subprocess
from pathlib import Path


def openssl(*words: object) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def make_authority(folder: Path, name: str = "ca") -> Path:
    """A certificate authority of one's own; its certificate's path."""
    subject = ("-subj", f"/CN=joulemark test {name}")
    key, certificate = folder / f"{name}.key", folder / f"{name}.crt"
    openssl(
        *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject),
        *("-keyout", key, "-out", certificate),
    )
    return certificate


def public_key_digest(certificate: Path) -> str:
    """As libcurl and HPKP write it: sha256// and the digest of its public key in BASE64."""
    key = ("openssl", "x509", "-in", certificate, "-noout", "-pubkey")
    der = ("openssl", "pkey", "-pubin", "-outform", "der")
    pem = subprocess.run(key, check=True, capture_output=True).stdout
    public = subprocess.run(der, check=True, capture_output=True, input=pem).stdout
    return "sha256//" + base64.b64encode(hashlib.sha256(public).digest()).decode()


def make_certificate(folder: Path, name: str, common_name: str) -> tuple[Path, Path]:
    """Signed by folder/ca; key and certificate."""
    key, request, certificate = (folder / f"{name}.{end}" for end in ("key", "csr", "crt"))
    extensions = folder / f"{name}.ext"
    extensions.write_text(f"subjectAltName=DNS:{common_name}\n")
    subject = ("-subj", f"/CN={common_name}")
    openssl("req", "-newkey", "rsa:2048", "-nodes", *subject, "-keyout", key, "-out", request)
    openssl(
        *("x509", "-req", "-days", "2", "-in", request, "-out", certificate),
        *("-CA", folder / "ca.crt", "-CAkey", folder / "ca.key", "-CAcreateserial"),
        *("-extfile", extensions),
    )
    return key, certificate
