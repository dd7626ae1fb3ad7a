"""A Spark Connect server behind nginx, by TLS, as the documentation has it."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from scripts import engines, spark
from tests.certificates import certificate

ROOT = Path(__file__).parents[1]


@contextmanager
def behind_nginx(server: spark.Server, folder: Path, name: str) -> Iterator[tuple[int, Path]]:
    """The port of nginx, and who vouches for its certificate."""
    if engines.nginx() is None:
        pytest.skip("nginx is not here")
    _, authority = certificate(folder, name)
    port = spark.free_port()
    text = (ROOT / "docs" / "deploy" / "nginx-spark.conf").read_text(encoding="utf-8")
    for word, put in (("folder", folder), ("address", f"127.0.0.1:{port}"), ("server", f"127.0.0.1:{server.port}")):
        text = text.replace(f"{{{{ {word} }}}}", str(put))
    (folder / "nginx.conf").write_text("daemon off;\nmaster_process off;\n" + text)
    command = [str(engines.nginx()), "-p", str(folder), "-c", str(folder / "nginx.conf")]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.05)
        yield port, authority
    finally:
        running.terminate()
        running.wait(20)
