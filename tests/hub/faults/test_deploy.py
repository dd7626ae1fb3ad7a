"""The examples of docs/deploy say what this version understands."""

from __future__ import annotations

import configparser
import json
import re
import subprocess
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
import yaml

from cloister.hub.checking import weaknesses
from cloister.hub.settings import load
from scripts import engines
from tests.cli.test_hub import cloister
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
    help_text = cloister(words[1], "--help").stdout
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
        assert [httpx.get(address, timeout=120).status_code for _ in range(4)] == [502] * 4
        back = ThreadingHTTPServer(("127.0.0.1", ports[1]), Back)
        threading.Thread(target=back.serve_forever, daemon=True).start()
        try:
            assert [httpx.get(address, timeout=120).text for _ in range(4)] == ["back"] * 4
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


def test_the_containers_are_as_the_page_says(tmp_path: Path) -> None:
    """Nothing runs as root that need not, nothing is of an unnamed version, and only the proxy is reached from outside."""
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    files = services["services"]
    assert set(files) == {"db", "hub", "proxy"}
    assert [name for name, spec in files.items() if "ports" in spec] == ["proxy"]
    assert files["db"]["networks"] == ["inside"]
    assert services["networks"]["inside"] == {"internal": True}
    for spec in files.values():
        assert "privileged" not in spec
        assert ":" in spec.get("image", ":")
        assert not spec.get("image", "").endswith(":latest")
        for volume in spec["volumes"]:
            source = volume.split(":")[0]
            assert not source.startswith(".") or source == "./certificates" or (DEPLOY / source).is_file(), source
            assert source.startswith(".") or source in services["volumes"]
        assert set(spec.get("secrets", [])) <= set(services["secrets"])
    lines = (DEPLOY / "Containerfile").read_text(encoding="utf-8").splitlines()
    words = {line.split()[0]: line for line in lines if line and line[0].isupper()}
    assert words["USER"] == "USER 10001:10001"
    assert not {"ADD"} & set(words)
    assert all(re.fullmatch(r"FROM python:[0-9.]+-slim( AS build)?", line) for line in lines if line.startswith("FROM"))
    command = json.loads(words["CMD"].removeprefix("CMD ")) if words["CMD"].startswith("CMD [") else []
    help_text = cloister(command[0], "--help").stdout
    assert all(word in help_text for word in command if word.startswith("--"))
    settings = load(tmp_path, file=DEPLOY / "container.toml")
    assert settings.secure
    assert settings.proxies == services["networks"]["outside"]["ipam"]["config"][0]["subnet"]
    found = {weak.name: weak.why for weak in weaknesses(settings)}
    assert set(found) == {"database", "ledger"}, found  # no TLS between the two on a network of their own
    assert set(found.values()) == {"its certificate is not checked"}


def test_the_image_has_what_the_menu_offers() -> None:
    """Each extra is in it, but for those that its first lines name and those of programs other than a hub."""
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    listed = re.search(r"/source\[([a-z,]+)\]", text)
    assert listed is not None
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"])
    assert extras - set(listed[1].split(",")) == {"spark", "mining", "onnx", "docs", "dev", "all"}
    assert "`spark`" in text
    used = subprocess.run(
        ["grep", "-rlE", "cloister[.]mining|onnx_", str(ROOT / "src" / "cloister" / "hub"), "--include=*.py"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert used.stdout == ""


@pytest.mark.skipif(engines.container_linter() is None, reason="dockerfilelint is not here")
def test_the_container_file_passes_its_linter() -> None:
    said = subprocess.run(
        [str(engines.container_linter()), str(DEPLOY / "Containerfile")], capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stdout
    assert "Issues: None" in said.stdout


@pytest.mark.skipif(engines.nginx() is None, reason="nginx is not here")
def test_nginx_understands_the_containers_proxy(tmp_path: Path) -> None:
    text = (
        (DEPLOY / "container-nginx.conf")
        .read_text(encoding="utf-8")
        .replace("/tmp/", f"{tmp_path}/")
        .replace("http://hub:", "http://127.0.0.1:")
    )
    subject = [
        "-subj",
        "/CN=hub.example.org",
        "-keyout",
        str(tmp_path / "hub.example.org.key"),
        "-out",
        str(tmp_path / "hub.example.org.pem"),
    ]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject], check=True, capture_output=True
    )
    (tmp_path / "nginx.conf").write_text(text.replace("/etc/ssl/hub", str(tmp_path)))
    words = [str(engines.nginx()), "-t", "-p", str(tmp_path), "-c", "nginx.conf", "-e", "stderr"]
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
