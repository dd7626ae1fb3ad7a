"""Who may work on a hub's folder at once: one hub in files, several on PostgreSQL, and nobody beside a change of the key."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cloister.hub.locks import HubRuns, exclusive_lock, serving_lock, shared_lock
from cloister.hub.settings import Settings
from tests.cli.test_hub import cloister
from tests.hub import forked
from tests.hub.house import Clock, House


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextlib.contextmanager
def running(data: Path, port: int, **settings: str) -> Iterator[forked.Forked]:
    """`cloister hub` on a folder, taking connections."""
    words = ["-m", "cloister", "hub", "--data", str(data), "--port", str(port)]
    env = {**os.environ, "CLOISTER_HUB_LOG_LEVEL": "warning", **settings}
    process = forked.python(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"cloister is at http://127.0.0.1:{port}\n"
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_hub_in_files_is_one_process_and_on_postgresql_it_is_several(tmp_path: Path) -> None:
    files = Settings(data=tmp_path)
    with serving_lock(files):
        with pytest.raises(HubRuns, match="another hub runs on the folder"), serving_lock(files):
            pass
        with shared_lock(files):
            pass
    with serving_lock(files):
        pass
    shared = Settings(data=tmp_path, database="postgresql://localhost/hub", ledger="postgresql://localhost/hub")
    with serving_lock(shared), serving_lock(shared):
        pass


def test_a_key_is_changed_alone(tmp_path: Path) -> None:
    files = Settings(data=tmp_path)
    shared = Settings(data=tmp_path, database="postgresql://localhost/hub", ledger="postgresql://localhost/hub")
    for held in (serving_lock(files), serving_lock(shared), shared_lock(files)):
        with held, pytest.raises(HubRuns, match="runs on this folder"), exclusive_lock(files, "The key was not changed"):
            pass
    with exclusive_lock(files, "The key was not changed"):
        for refused in (serving_lock(files), serving_lock(shared), shared_lock(files), exclusive_lock(files, "x")):
            with pytest.raises(HubRuns), refused:
                pass


def test_beside_a_hub_that_runs_a_second_one_and_a_change_of_the_key_are_refused_and_a_link_listens_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data, key, pg_port = tmp_path / "hub", tmp_path / "new.key", free_port()
    key.write_text(cloister("hub", "key").stdout)
    port = free_port()
    with running(data, port, CLOISTER_HUB_PG_PORT=str(pg_port)) as process:
        before = (data / "hub.db").read_bytes()
        said = cloister("hub", "rotate-key", str(key), "--data", str(data), code=1).stderr
        assert "The master key was not changed" in said
        assert "runs on this folder" in said
        assert (data / "hub.db").read_bytes() == before
        said = cloister("hub", "--data", str(data), "--port", str(free_port()), code=1).stderr
        assert "another hub runs on the folder" in said
        said = cloister("hub", "--data", str(tmp_path / "other"), "--port", str(port), code=1).stderr
        assert f"port {port} of 127.0.0.1 is taken" in said
        assert not (tmp_path / "other" / "hub.db").exists()
        assert "/link/" in cloister("hub", "--pg-port", str(pg_port), "link", "--data", str(data)).stdout
        assert "no PostgreSQL client" not in caplog.text
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    assert "keys are wrapped" in cloister("hub", "rotate-key", str(key), "--data", str(data)).stdout, "a killed hub holds nothing"


def test_only_a_hub_that_serves_listens_for_postgresql_clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listened: list[int] = []
    monkeypatch.setattr("cloister.hub.services.asking.pg.start", lambda hub: listened.append(hub.settings.pg_port))
    monkeypatch.setattr("cloister.hub.services.asking.pg.stop", lambda hub: None)
    cloister("hub", "--pg-port", "5433", "link", "--data", str(tmp_path / "hub"))
    assert listened == []
    House(tmp_path / "second", Clock(), pg_port=5434).close()
    assert listened == [5434]
