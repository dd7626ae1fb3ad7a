"""Makes the folder of a hub in which there is one of each thing that is kept, as the version that runs this keeps it:

    python tests/stored/making.py hub.tar.xz

Run by an older version, in its own working tree; what that made is kept here, and opened by `test_hub.py`. Beside the hub's own
files is `said.json`: what the hub said of them, and the tokens to ask it again.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from cloister.hub.platform.jobs import Workers
from cloister.hub.services.learning import fitting
from cloister.ledger import Ledger
from cloister.local.survey import Survey, respond
from cloister.noise import Random
from tests.hub.anonymizing.ordering import RELEASE
from tests.hub.anonymizing.rows import varied
from tests.hub.house import PEOPLE, READS, Clock, House, Visitor
from tests.hub.learning.conftest import MAY, ORDER

QUESTION = {"sql": "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY sex", "spend": "0.25"}
KILLED = {**ORDER, "features": ["age"], "spend": "0.125"}
ROWS = "age,pay\r\n30,10.5\r\n40,20\r\n50,30\r\n"


def main(archive: str) -> None:
    """Make it."""
    fitting.attacked = fitting.lost = lambda *_: None  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "hub"
        house = House(folder, Clock())
        try:
            said = filled(house)
        finally:
            house.close()
        killed(folder)
        for database in folder.glob("*.db"):
            with sqlite3.connect(database) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                connection.execute("VACUUM")
            connection.close()
        (folder / "said.json").write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
        with tarfile.open(archive, "w:xz") as made:
            made.add(folder, "hub", filter=nobodys)


def filled(house: House) -> dict[str, Any]:
    """An answer, a model, a table, a survey, a share, and a model that is still to be learnt: what was said of them."""
    owner, ana = house.person("owner", email="olga@example.org"), house.person("analyst", email="ana@example.org")
    people = house.sample_data_set("people", owner=owner)
    house.grant(people, ana, by=owner, actions=(*READS, *MAY), share={"epsilon": "0.75"})
    house.sample_data_set("crowd", owner=owner, rows=varied(60), declaration={**PEOPLE, "size": 60})

    def asked(who: Visitor, method: str, path: str, body: Any = None) -> Any:
        answer = house.client().request(method, f"/api/v1{path}", json=body, headers=who.bearer)
        assert answer.is_success, (path, answer.text)
        return answer.json() if answer.headers["content-type"].startswith("application/json") else answer.text

    def done(who: Visitor, path: str, body: Any) -> Any:
        job = asked(who, "POST", path, body)["job"]
        assert Workers(house.hub, 0).run_one()
        told = asked(who, "GET", f"/jobs/{job}")
        assert told["state"] == "done", told
        return told["result"]

    said: dict[str, Any] = {"tokens": {"olga": owner.token, "ana": ana.token}}
    said["answer"] = asked(ana, "POST", "/questions", QUESTION)
    model = done(ana, "/models", ORDER)["model"]
    said["model"] = asked(ana, "GET", f"/models/{model}")
    said["predictions"] = asked(ana, "POST", f"/models/{model}/predictions", {"csv": ROWS})["csv"]
    table = done(owner, "/anonymised", {**RELEASE, "table": "crowd", "name": "crowd_public"})["href"].rpartition("/")[2]
    said["table"] = asked(owner, "GET", f"/anonymised/{table}")
    said["rows"] = asked(owner, "GET", f"/anonymised/{table}/download")
    said["survey"] = surveyed(asked, ana)
    said["killed"] = asked(ana, "POST", "/models", KILLED)["job"]
    said["spent"] = str(house.hub.ledger.spent("people"))
    return said


def surveyed(asked: Any, ana: Visitor) -> dict[str, Any]:
    """An open survey with twelve reports."""
    levels = [{"name": "careful", "epsilon": "1"}, {"name": "open", "epsilon": "3"}]
    questions = [
        {"kind": "yes-no", "name": "copied", "text": "Have you ever copied in an exam?"},
        {"kind": "choice", "name": "why", "text": "Why?", "options": ["time", "grade"]},
    ]
    draft = {"title": "Exams", "purpose": "a study", "levels": levels, "cap": "8", "questions": questions}
    number: str = asked(ana, "POST", "/surveys", draft)["id"]
    asked(ana, "POST", f"/surveys/{number}/open")
    survey = Survey.from_dict(asked(ana, "GET", f"/surveys/{number}/form")["survey"])
    for seed in range(12):
        report = respond(survey, {"copied": seed % 3 == 0, "why": "time"}, "open", random=Random.deterministic(seed))
        asked(ana, "POST", f"/surveys/{number}/reports", json.loads(report.to_json()))
    return {"id": number, "results": asked(ana, "GET", f"/surveys/{number}/results")}


def killed(folder: Path) -> None:
    """The worker of the last job is killed (kill -9) when its cost was reserved, before it read a row."""
    reserve = Ledger.reserve

    def and_dies(*how: Any, **more: Any) -> Any:
        reserve(*how, **more)
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if not child:
        Ledger.reserve = and_dies  # type: ignore[method-assign]
        house = House(folder, Clock())
        Workers(house.hub, 0).run_one()
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Without the names of this machine, and without what is gone with the process."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return None if member.name.endswith(("-wal", "-shm", ".lock")) else member


if __name__ == "__main__":
    main(sys.argv[1])
