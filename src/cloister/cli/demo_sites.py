"""Three clinics for the demonstration: each a process with its own rows, key, budget and log, that calls its hub."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cloister.crypto import SigningKey, make_key_file, new_key
from cloister.errors import EngineError
from cloister.noise import Random
from cloister.privacy import PureDP

if TYPE_CHECKING:
    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

NAME = "clinics"
QUESTION = "SELECT diabetes, COUNT(*) AS n, AVG(age) AS age FROM clinics GROUP BY diabetes"
_BUDGET = 3
_ROWS = {"north": 900, "south": 650, "west": 450}
_SECONDS = 60
_TABLE = f"""[tables.{NAME}]
source = "patients.csv"

[tables.{NAME}.columns]
age = {{ kind = "integer", low = 0, high = 110 }}
diabetes = {{ kind = "boolean" }}
"""
_SITE = """[site]
name = "{name}"
hub = "http://127.0.0.1"

[policy]
otherwise = "always"

[[policy.rules]]
purpose = "marketing"
answer = "never"

{table}
[budgets]
{budgeted} = {{ epsilon = "{budget}" }}
"""


def join_clinics(hub: Hub, owner: Caller, folder: Path) -> None:
    """Make the three folders, and the data set of their roster, which the demonstration signs in every owner's place."""
    from cloister.hub.services.sites.joining import Joining, join, roster_of

    keys = {name: _made(folder / name, name, rows, turn) for turn, (name, rows) in enumerate(_ROWS.items())}
    roster = roster_of(hub, "\n".join(json.dumps({name: key.public.hex()}) for name, key in keys.items()), "0")
    asked = Joining(
        roster=json.dumps(roster.plain()),
        signatures="\n".join(json.dumps({name: key.sign(roster.text).hex()}) for name, key in keys.items()),
        table=_TABLE,
        overlap="none",
        title="Three clinics",
        about="Rows at three sites, each a process of its own; this hub sees nothing but their sums with noise.",
        population=NAME,
        reason="The clinics take patients of any age.",
        size=2000,
        listed=True,
    )
    join(hub, owner, asked, PureDP(_BUDGET))


@contextlib.contextmanager
def running_clinics(hub: Hub, folder: Path, address: str) -> Iterator[None]:
    """The three processes, once all of them have called; they end with the demonstration."""
    command = [sys.executable, "-m", "cloister", "site", "--hub", address, "--data"]
    with contextlib.ExitStack() as ended:
        for name in _ROWS:
            process = subprocess.Popen(  # noqa: S603  (this program)
                [*command, str(folder / name), "--with-parent"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            ended.callback(_end, process)
        _wait_for_calls(hub)
        yield


def _wait_for_calls(hub: Hub) -> None:
    from cloister.hub.platform.catalogue import coordinators_of, joined_in, versions_at_sites

    with hub.database.reading() as db:
        [signed] = [joined_in(hub, version).signed for row, version in versions_at_sites(db) if row.name == NAME]
    coordinator = coordinators_of(hub).of(signed)
    ends = time.monotonic() + _SECONDS
    while not all(each.seen for each in coordinator.presence.values()):
        if time.monotonic() > ends:
            raise EngineError(
                "The clinics did not start", why=f"they did not call for {_SECONDS} seconds", instead="cloister demo"
            )
        time.sleep(0.05)


def _end(process: subprocess.Popen[bytes]) -> None:
    with process:  # its standard input is closed
        process.terminate()


def _made(folder: Path, name: str, rows: int, turn: int) -> SigningKey:
    """A site's folder, as its owner would fill it: made-up patients, a key, and what is allowed."""
    folder.mkdir(parents=True, mode=0o700)
    random = Random.deterministic(turn)
    ages, draws = random.below(100, rows).tolist(), random.below(100, rows).tolist()
    lines = [f"{age},{str(draw < 3 + age // 4).lower()}" for age, draw in zip(ages, draws, strict=True)]
    (folder / "patients.csv").write_text("\n".join(["age,diabetes", *lines, ""]), encoding="utf-8")
    told = _SITE.format(name=name, table=_TABLE, budgeted=NAME, budget=_BUDGET)
    (folder / "site.toml").write_text(told, encoding="utf-8")
    make_key_file(folder / "site.key", new_key().hex())
    return SigningKey(bytes.fromhex((folder / "site.key").read_text(encoding="ascii").strip()))
