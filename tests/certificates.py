"""Certificates that sign themselves, for servers of the tests."""

from __future__ import annotations

import subprocess
from pathlib import Path


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """server.key and server.crt for a host of that name, in a folder."""
    folder.mkdir(exist_ok=True)
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={name} -addext subjectAltName=DNS:{name}"
    subprocess.run([*command.split(), "-keyout", "server.key", "-out", "server.crt"], cwd=folder, check=True, capture_output=True)
    (folder / "server.key").chmod(0o600)
    return folder / "server.key", folder / "server.crt"
