"""nginx as docs/deploy/nginx.conf sets it up, in front of some ports: a plain process of the test's, never a service."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from scripts import engines
from tests.hub.faults.processes import ROOT, Process, free_port

EXAMPLE = ROOT / "docs" / "deploy" / "nginx.conf"


def rendered(folder: Path, port: int, hubs: Sequence[int], without: str = "") -> str:
    """The example with its places filled in, less a line."""
    servers = "\n".join(f"        server 127.0.0.1:{each} max_fails=0;" for each in hubs)
    given = {"folder": str(folder), "servers": servers, "listen": f"127.0.0.1:{port}"}
    text = EXAMPLE.read_text()
    text = text[text.index("worker_processes") :]
    for name, value in given.items():
        text = text.replace(f"{{{{ {name} }}}}", value)
    assert without in text
    return text.replace(without, "") if without else text


def start(folder: Path, hubs: Sequence[int], *, without: str = "") -> tuple[Process, str]:
    """A running nginx, and its address."""
    program = engines.nginx()
    assert program is not None
    folder.mkdir()
    port = free_port()
    (folder / "nginx.conf").write_text(rendered(folder, port, hubs, without))
    words = [
        str(program),
        "-p",
        str(folder),
        "-c",
        str(folder / "nginx.conf"),
        "-e",
        str(folder / "error.log"),
        "-g",
        "daemon off;" if os.geteuid() else "daemon off; user root;",  # else its workers may not enter the folder
    ]
    process = Process("nginx", words, folder / "nginx.log")
    while not _listens(port):
        assert process.alive, (folder / "error.log").read_text()
        time.sleep(0.02)
    return process, f"http://127.0.0.1:{port}"


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
