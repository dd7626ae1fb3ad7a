"""The examples of docs/deploy say what this version understands."""

from __future__ import annotations

import configparser
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from cloister.hub.checking import weaknesses
from cloister.hub.settings import load
from scripts import engines
from tests.hub.faults import proxy
from tests.hub.faults.processes import ROOT, free_port

DEPLOY = ROOT / "docs" / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))


def test_the_settings_are_in_order(tmp_path: Path) -> None:
    settings = load(tmp_path, file=DEPLOY / "hub.toml")
    assert {weak.name for weak in weaknesses(settings)} == {"master_key_file"}  # which is not on this machine
    assert settings.secure


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_a_command_that_there_is(unit: Path) -> None:
    read = configparser.ConfigParser(strict=False, interpolation=None)
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read(unit)
    words = read["Service"]["ExecStart"].replace("%i", "8765").split()
    assert words[0] == "/opt/cloister/bin/cloister"
    help_text = subprocess.run(
        [sys.executable, "-m", "cloister", words[1], "--help"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    assert all(word in help_text for word in words if word.startswith("--"))
    assert int(read["Service"]["TimeoutStopSec"]) > 20


def test_there_are_units() -> None:
    assert {path.name for path in UNITS} == {"cloister-hub@.service", "cloister-worker.service"}


@pytest.mark.skipif(engines.nginx() is None, reason="nginx is not here")
def test_nginx_understands_the_example(tmp_path: Path) -> None:
    (tmp_path / "nginx.conf").write_text(proxy.rendered(tmp_path, 8080, [8765, 8766]))
    words = [str(engines.nginx()), "-t", "-p", str(tmp_path), "-c", "nginx.conf", "-e", "stderr"]
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert "[warn]" not in said.stderr


@pytest.mark.skipif(engines.nginx() is None, reason="nginx is not here")
def test_hubs_that_are_back_are_asked_at_once(tmp_path: Path) -> None:
    """Where all were away, the first that is back answers the very next request."""
    ports = [free_port(), free_port()]
    nginx, address = proxy.start(tmp_path / "nginx", ports)
    try:
        assert [httpx.get(address).status_code for _ in range(4)] == [502] * 4
        back = ThreadingHTTPServer(("127.0.0.1", ports[1]), Back)
        threading.Thread(target=back.serve_forever, daemon=True).start()
        try:
            assert [httpx.get(address).text for _ in range(4)] == ["back"] * 4
        finally:
            back.shutdown()
            back.server_close()
    finally:
        nginx.end()


class Back(BaseHTTPRequestHandler):
    """A hub that has begun again."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"back")

    def log_message(self, *_: object) -> None:
        pass
