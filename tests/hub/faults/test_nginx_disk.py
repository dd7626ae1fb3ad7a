"""nginx, as the examples set it up, writes nothing of a request or an answer to its disk; without one of their lines it does."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from cloister.hub.middleware import _BODY, _UNLIMITED
from scripts import engines
from tests.hub.faults import proxy
from tests.hub.faults.processes import ROOT, Process

DEPLOY = ROOT / "docs" / "deploy"
CANARY = b"canary-7f3a,"
MEBIBYTE = CANARY * (2**20 // len(CANARY))
ANSWER = 64  # MiB: more than sockets hold for a client that does not read
PATIENCE = 60.0
here = pytest.mark.skipif(engines.nginx() is None, reason="nginx is not here")


class Hub(ThreadingHTTPServer):
    """It hears of a request, waits until it may go on, takes it and answers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.heard, self.go_on = threading.Event(), threading.Event()


class Answering(BaseHTTPRequestHandler):
    server: Hub

    def do_POST(self) -> None:
        self.server.heard.set()
        assert self.server.go_on.wait(PATIENCE)
        sent = int(self.headers["Content-Length"])
        while sent:
            sent -= len(self.rfile.read(min(sent, 2**16)))
        self.send_response(200)
        self.send_header("Content-Length", str(len(MEBIBYTE) * ANSWER))
        self.end_headers()
        for _ in range(ANSWER):
            self.wfile.write(MEBIBYTE)

    def log_message(self, *_: object) -> None:
        pass


class Client(threading.Thread):
    """It sends so many MiB, reads a little of the answer, and the rest when it may."""

    def __init__(self, address: str, size: int) -> None:
        super().__init__(daemon=True)
        self.address, self.body, self.status, self.got = address, MEBIBYTE * size, 0, 0
        self.begun, self.read_on = threading.Event(), threading.Event()

    def run(self) -> None:
        with (
            httpx.Client(trust_env=False, timeout=PATIENCE) as client,
            client.stream("POST", self.address, content=self.body) as answer,
        ):
            self.status = answer.status_code
            for piece in answer.iter_raw(1024):
                self.got += len(piece)
                self.begun.set()
                assert self.read_on.wait(PATIENCE)


def on_disk(nginx: Process, folder: Path) -> bool:
    """Whether a canary stands in a file that a worker of nginx holds open: it has no name from the moment it is made."""
    found = []
    for worker in Path(f"/proc/{nginx.pid}/task/{nginx.pid}/children").read_text().split():
        for held in Path(f"/proc/{worker}/fd").iterdir():
            with suppress(OSError):
                if os.readlink(held).startswith(str(folder)):
                    found.append(CANARY in held.read_bytes())
    assert found, "it holds its log, at least"
    return any(found)


@contextmanager
def asked(folder: Path, path: str, size: int, without: str = "") -> Iterator[tuple[Hub, Client, Callable[[], bool]]]:
    """A request on its way through nginx, whose file may lack a line, to a hub that has heard of it."""
    hub = Hub()
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    nginx, address = proxy.start(folder, [hub.server_address[1]], without=without)
    client = Client(f"{address}{path}", size)
    client.start()
    try:
        assert hub.heard.wait(PATIENCE)
        yield hub, client, partial(on_disk, nginx, folder)
    finally:
        hub.go_on.set()
        client.read_on.set()
        client.join(PATIENCE)
        nginx.end()
        hub.shutdown()
        hub.server_close()


@here
@pytest.mark.parametrize(("path", "size"), [("/ask", 3), *((f"{prefix.rstrip('/')}/x", 8) for prefix in _UNLIMITED)])
def test_nothing_is_on_the_proxys_disk(tmp_path: Path, path: str, size: int) -> None:
    with asked(tmp_path / "nginx", path, size) as (hub, client, written):
        assert not written()
        hub.go_on.set()
        assert client.begun.wait(PATIENCE)
        assert not written()
        client.read_on.set()
        while client.is_alive():
            assert not written()
            client.join(0.05)
    assert (client.status, client.got) == (200, len(MEBIBYTE) * ANSWER)


@here
@pytest.mark.parametrize(
    ("without", "path", "size"),
    [("client_body_buffer_size 4m;", "/ask", 3), ("proxy_request_buffering off;", "/uploads/x", 8)],
)
def test_a_request_is_there_without_its_line(tmp_path: Path, without: str, path: str, size: int) -> None:
    with asked(tmp_path / "nginx", path, size, without) as (_, _, written):
        assert written()


@here
def test_an_answer_is_there_without_its_line(tmp_path: Path) -> None:
    with asked(tmp_path / "nginx", "/ask", 1, "proxy_max_temp_file_size 0;") as (hub, client, written):
        hub.go_on.set()
        assert client.begun.wait(PATIENCE)
        ends = time.monotonic() + PATIENCE
        while not written():
            assert time.monotonic() < ends
            time.sleep(0.05)


@pytest.mark.parametrize("name", ["nginx.conf", "container-nginx.conf"])
def test_what_a_hub_reads_as_it_comes_goes_through_as_it_comes(name: str) -> None:
    text = (DEPLOY / name).read_text(encoding="utf-8")
    [places] = re.findall(r"location ~ \^/\((.*)\) \{[^}]*proxy_request_buffering off;", text)
    assert {f"/{place}" for place in places.split("|")} == set(_UNLIMITED)
    [held] = re.findall(r"^    client_body_buffer_size (\d+)m;", text, re.MULTILINE)
    [most] = re.findall(r"^    client_max_body_size (\d+)m;", text, re.MULTILINE)
    assert int(held) * 2**20 == int(most) * 2**20 == _BODY
    assert "proxy_max_temp_file_size 0;" in text
