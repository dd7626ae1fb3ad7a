"""Servers for the benchmarks of the hub, each a process of its own as uvicorn starts it; and clients with one kept connection."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import uvicorn

from cloister.hub.serving import settle


@dataclass(frozen=True)
class Place:
    """Where a server listens, where questions go, the token that they are asked with, and the server's process."""

    port: int
    path: str
    token: str
    process: int = 0

    def worked(self) -> float:
        """Seconds of processor time that the server has taken until now; 0 where the system does not tell."""
        try:
            told = Path(f"/proc/{self.process}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return 0.0
        return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


class Client:
    """One kept connection."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=60)
        self._headers = {"Authorization": f"Bearer {place.token}"}

    def post(self, body: Mapping[str, Any] | bytes, path: str = "") -> int:
        """One request and its answer: the status. Bytes are a file in CSV."""
        sent, kind = (body, "text/csv") if isinstance(body, bytes) else (json.dumps(body), "application/json")
        self._connection.request("POST", path or self._place.path, sent, {**self._headers, "Content-Type": kind})
        answer = self._connection.getresponse()
        answer.read()
        return answer.status

    def hang_up(self) -> None:
        """End the connection, and with it the wait for an answer."""
        if (socket_ := self._connection.sock) is not None:
            with suppress(OSError):
                socket_.shutdown(socket.SHUT_RDWR)


@contextmanager
def serving(file: str, *how: str) -> Iterator[Place]:
    """A server in a process of its own: the benchmark itself, called with these words, ends in `run`."""
    process = subprocess.Popen([sys.executable, file, *how], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield Place(**json.loads(process.stdout.readline()))
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:  # threads that wait for silent sites; `cloister hub` does not wait for them
            process.kill()
            process.wait()


def run(app: Any, path: str, token: str) -> None:
    """Serve until the end, after saying where; with the garbage collector set as `cloister hub` sets it, for whichever server."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)  # who is told where may come at once
    told = {"port": listener.getsockname()[1], "path": path, "token": token, "process": os.getpid()}
    print(json.dumps(told), flush=True)
    settle()
    how: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False, "proxy_headers": False}
    uvicorn.Server(uvicorn.Config(app, timeout_keep_alive=300, **how)).run(sockets=[listener])


def run_hub(folder: Path, rows: str, declaration: Mapping[str, Any]) -> None:
    """Serve a hub with one data set, an analyst with a token, and nothing else to do."""
    from cloister.hub.app import make_app
    from cloister.hub.hub import Hub
    from cloister.hub.services import all_services
    from cloister.hub.settings import Settings

    with Hub(Settings(data=folder, workers=0), all_services()) as hub:
        token = furnished(hub, rows, declaration)
        run(make_app(hub), "/api/v1/questions", token)


def furnished(hub: Any, rows: str, declaration: Mapping[str, Any]) -> str:
    """The data set "people" of these rows (CSV), open to an analyst, and "closed", which is not; the analyst's token."""
    from cloister.hub.generation import bump
    from cloister.hub.ids import digest, new_id, new_secret
    from cloister.hub.platform.accounts import add_person
    from cloister.hub.platform.catalogue.sources import table_store_of
    from cloister.hub.records.access import Grant
    from cloister.hub.records.accounts import ApiToken
    from cloister.hub.records.catalogue import DataSet, DataSetVersion, Population
    from cloister.privacy import PureDP

    store = table_store_of(hub)
    stored = store.add(store.receive([rows.encode()], "csv"), about="benchmark")
    hub.ledger.open("people", PureDP(10**9), who="olga@example.org")
    number, token, now = new_id(), "clo_" + new_secret(), hub.now()
    with hub.database.begin() as db:
        owner = add_person(hub, db, email="olga@example.org", name="Olga", roles=["owner"]).id
        ana = add_person(hub, db, email="ana@example.org", name="Ana", roles=["analyst"]).id
        db.add(Population(name="people", title="People", owner=owner, created=now))
        db.flush()
        for name, each in (("people", number), ("closed", new_id())):
            named = {"id": each, "name": name, "title": name, "owner": owner, "population": "people"}
            told = {"declaration": dict(declaration), "metadata_": {}, "window": {}}
            db.add(DataSet(**named, **told, version=1, state="open", created=now, changed=now))
            db.flush()
            where = {"file": stored.file, "digest": stored.digest, "length": stored.length}
            made = {"created": now, "created_by": owner}
            version = DataSetVersion(id=new_id(), data_set=each, number=1, kind="stored", **where, **made)
            version.key = store.bound(stored, version.about).wrapped_key
            db.add(version)
        rules = {"actions": ["question.ask", "question.explain"]}
        given = {"kind": "data-set", "object": number, "role": "reader", "granted_by": owner, "created": now}
        db.add(Grant(id=new_id(), **given, attributes={"people": [ana]}, rules=rules))
        lasts = {"created": now, "expires": now + timedelta(days=1), "second_factor": False}
        db.add(ApiToken(id=new_id(), person=ana, name="benchmark", digest=digest(token), scopes=["question.ask"], **lasts))
        bump(db)
    return token
