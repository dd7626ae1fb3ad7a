"""Hub processes behind nginx, one killed under load: nobody notices. And what nginx sends a second time, and what not."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select

from cloister.hub.records.trail import AuditLine
from scripts import engines
from tests.hub.faults import proxy
from tests.hub.faults.clients import question
from tests.hub.faults.databases import Server, server
from tests.hub.faults.looking import look
from tests.hub.faults.prepared import prepare
from tests.hub.faults.processes import Hall, Process, free_port, hall

pytestmark = pytest.mark.skipif(engines.nginx() is None, reason="nginx is not here")
__all__ = ["server"]


class Upstream:
    """A port behind nginx. It reads a request and answers, or closes the connection over it as a killed process does."""

    def __init__(self, dies: bool) -> None:
        self.dies = dies
        self.got: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                data = b""
                while b"\r\n\r\n" not in data:
                    data += connection.recv(65536)
                self.got.append(data)
                if not self.dies:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")

    def close(self) -> None:
        self._socket.close()


@contextmanager
def behind(folder: Path, dies: bool) -> Iterator[tuple[str, list[Upstream]]]:
    """nginx before two ports."""
    ports = [Upstream(dies), Upstream(dies)]
    process, address = proxy.start(folder, [each.port for each in ports])
    try:
        yield address, ports
    finally:
        process.end()
        for each in ports:
            each.close()


@pytest.mark.parametrize(
    ("method", "headers", "times"), [("GET", {}, 2), ("POST", {"Idempotency-Key": "one"}, 2), ("POST", {}, 1), ("DELETE", {}, 2)]
)
def test_what_is_sent_again_when_a_hub_dies_over_it(tmp_path: Path, method: str, headers: dict[str, str], times: int) -> None:
    with behind(tmp_path / "nginx", dies=True) as (address, ports):
        answer = httpx.request(method, f"{address}/api/v1/questions", headers=headers, trust_env=False, timeout=120)
        assert answer.status_code == 502
        assert sum(len(each.got) for each in ports) == times


def test_what_the_hub_hears(tmp_path: Path) -> None:
    with behind(tmp_path / "nginx", dies=False) as (address, ports):
        headers = {"X-Forwarded-For": "192.0.2.1", "Idempotency-Key": "one"}
        assert httpx.post(f"{address}/api/v1/questions?a=b", headers=headers, trust_env=False, timeout=120).text == "ok"
        [heard] = [each.got[0].decode().lower() for each in ports if each.got]
    assert heard.startswith("post /api/v1/questions?a=b http/1.1")
    assert "x-forwarded-for: 127.0.0.1\r\n" in heard
    assert f"host: {address.removeprefix('http://')}\r\n" in heard
    assert "idempotency-key: one\r\n" in heard


@pytest.mark.postgres
def test_one_of_two_is_killed(tmp_path: Path, server: Server) -> None:
    kill_some(tmp_path, server, 1, hubs=2, keys=True)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.postgres
@pytest.mark.parametrize("keys", [True, False])
def test_one_after_another_is_killed(tmp_path: Path, server: Server, keys: bool) -> None:
    kill_some(tmp_path, server, 9, hubs=3, keys=keys)


def kill_some(tmp_path: Path, server: Server, times: int, *, hubs: int, keys: bool) -> None:
    """Ask without end through nginx, and kill hubs in their turn; all but the last come back."""
    place = prepare(tmp_path / "hub", people=12, pays_for=10_000, database=server.now.url)
    with hall(place, tmp_path) as processes:
        serving = begun(processes, hubs)
        front, address = proxy.start(tmp_path / "nginx", list(serving))
        stop = tmp_path / "stop"
        clients = processes.clients(address, questions=10**6, keys=keys, stop=str(stop))
        for attempt in range(times):
            port = list(serving)[attempt % hubs]
            clients.wait_for_more(20)
            serving[port].kill()
            clients.wait_for_more(20)
            if attempt < times - 1:
                serving[port] = processes.hub(port, proxies="127.0.0.1")
        stop.touch()
        received = clients.ended()
        front.end()
    ended = Counter(each["status"] for each in received)
    assert set(ended) == {201} if keys else set(ended) <= {201, 502}, ended
    look(place, received)
    with place.opened() as hub, hub.database.reading() as db:
        lines = db.scalars(select(AuditLine).where(AuditLine.action == "question.ask", AuditLine.outcome == "done"))
        asked = Counter(line.details["sql"] for line in lines)
    assert max(asked.values()) == 1, "a request was answered twice"
    assert set(asked) >= {question(each["number"]) for each in received if each["status"] == 201}


def begun(processes: Hall, number: int) -> dict[int, Process]:
    """So many hub processes, started at once."""
    ports = [free_port() for _ in range(number)]
    found: dict[int, Process] = {}

    def begin(port: int) -> None:
        found[port] = processes.hub(port, proxies="127.0.0.1")

    threads = [threading.Thread(target=begin, args=(port,)) for port in ports]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {port: found[port] for port in ports}
