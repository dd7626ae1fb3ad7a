"""`cloister demo`: a real hub on this machine, furnished with sample tables and five people, and a first answer from it; with
`--terminal` a first answer without a hub, and a prompt for more.
"""

from __future__ import annotations

import _thread
import contextlib
import csv
import io
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.hub import open_hub, settings_of
from cloister.crypto import SigningKey, make_key_file, new_key
from cloister.errors import CloisterError, EngineError, InvalidParameter
from cloister.noise import Random
from cloister.privacy import PureDP
from cloister.query import Session
from cloister.samples import tables

if TYPE_CHECKING:
    from cloister.hub.hub import Caller, Hub
    from cloister.session import Release


FIRST = "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM census GROUP BY sex"
SECOND = "SELECT ward, COUNT(*) AS visits FROM visits GROUP BY ward"
SPEND = "0.1"
_CLINICS = "Three clinics are processes of their own, each with its rows, key and budget. The hub sees sums with noise alone:"
PURPOSE = "first look"
_BUDGET = 3
_PUBLISHING = timedelta(days=90)
_PSQL = 5433
_ALGORITHM = "middle-age"
_CODE = """def middle(rows):
    ages = sorted(rows["age"])
    return [ages[len(ages) // 2]]
"""
CLINICS = "clinics"
QUESTION = "SELECT diabetes, COUNT(*) AS n, AVG(age) AS age FROM clinics GROUP BY diabetes"
_CLINIC_ROWS = {"north": 900, "south": 650, "west": 450}
_SECONDS = 60
_TABLE = f"""[tables.{CLINICS}]
source = "patients.csv"

[tables.{CLINICS}.columns]
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

PEOPLE = {
    "administrator": ("Alma", "alma@example.org", ("administrator",), "runs the hub, and sees no data"),
    "steward": (
        "Sam",
        "sam@example.org",
        ("steward",),
        "writes the institution's rules and sees the audit log, and sees no data",
    ),
    "owner": (
        "Otto",
        "otto@example.org",
        ("owner", "algorithm-provider"),
        "answers for the data sets and their budgets, and brings an algorithm",
    ),
    "analyst": ("Ana", "ana@example.org", ("analyst",), "may ask the data sets and learn from them, and runs a survey"),
    "respondent": ("Rosa", "rosa@example.org", (), "has no role: sees what everyone sees"),
}
"""Who is in the demonstration: name, address, roles, and what they are there for."""

_TABLES = {
    "visits": ("Hospital visits", "Several visits per patient; at most 5 of each count.", "patients"),
    "patients": ("Hospital patients", "One row each; joined by visits.patient = patients.patient.", "patients"),
    "census": ("Census", "One row a person.", "census"),
    "wards": ("Wards", "Public: building and beds of each ward.", ""),
    "towns": ("Towns", "Public: inhabitants and university of each town.", ""),
}
_REASONS = {
    "visits": {
        "age": "human ages in years",
        "sex": "the register's two answers",
        "ward": "the hospital's public list of wards",
        "admitted": "the year that the table is about",
        "stay": "stays beyond it are counted as the longest",
        "cost": "the published tariff's ceiling",
    },
    "patients": {
        "sex": "the register's two answers",
        "born": "people alive since the register began",
        "town": "the towns of the hospital's district",
    },
    "census": {
        "age": "the census asked adults, and counts the oldest as 90",
        "sex": "the questionnaire's two answers",
        "race": "the questionnaire's answers",
        "education": "the questionnaire's answers",
        "marital_status": "the questionnaire's answers",
        "work_class": "the questionnaire's answers",
        "hours": "the questionnaire's range of hours a week",
        "income": "the two groups that the census published",
        "pay": "the published scale of pay",
    },
}
"""Why each bound is what it is: public, as an owner would write it."""
_MAY = (
    "dataset.see",
    "dataset.describe",
    "question.ask",
    "question.explain",
    "question.rehearse",
    "learn.run",
    "synthesise.run",
    "compress.run",
    "release.see",
    "release.download",
    "release.share",
    "budget.see",
)


@dataclass(frozen=True, kw_only=True)
class _Shown:
    """What there is to show."""

    address: str
    links: dict[str, str]
    token: str
    answer: Release
    joint: Release | None
    """Of the three clinics."""
    kept: str
    survey: str
    psql: str


def run_hub(data: Path | None, *, port: int | None, once: bool, as_json: bool, sites: bool = True) -> None:
    """Furnish a hub, serve it, print the way in and the first answers; then go on until Ctrl-C."""
    with contextlib.ExitStack() as held:
        folder = data
        if folder is None:  # one that goes with the demonstration
            folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="cloister-demo-", ignore_cleanup_errors=True)))
        settings = settings_of(folder, port=port, title="cloister demo", log_level="warning")
        from cloister.hub.locks import serving_lock
        from cloister.hub.serving import private_files, serve
        from cloister.hub.settings import Settings

        held.enter_context(private_files())
        held.enter_context(serving_lock(settings))
        usual = Settings(data=Path())
        exactly = port is not None or settings.port != usual.port
        at = held.enter_context(_listening(settings.host, settings.port, exactly=exactly))
        with _listening(settings.host, settings.pg_port or _PSQL, exactly=settings.pg_port != usual.pg_port) as free:
            settings = replace(settings, port=at.getsockname()[1], pg_port=free.getsockname()[1])
        with open_hub(settings) as hub:
            people = _furnished(hub)
            failed: list[BaseException] = []
            clinics = held.enter_context(contextlib.ExitStack())

            def show() -> None:
                try:
                    if sites:
                        clinics.enter_context(_clinics(hub, people))
                    found = _first(hub, people, sites=sites)
                    click.echo(_as_json(found) if as_json else _as_text(found, once=once, kept=data is not None))
                    if not once:
                        return
                except BaseException as error:
                    failed.append(error)
                clinics.close()
                _thread.interrupt_main()  # the server ends as it does at Ctrl-C

            serve(hub, ready=lambda: threading.Thread(target=show, daemon=True).start(), at=[at])
            if failed:
                raise failed[0]


def _listening(host: str, port: int, *, exactly: bool) -> socket.socket:
    """A socket that listens, so that nobody can take its port before the hub serves. Where a usual port is taken it is another
    one; a port that was named is that one or none.
    """
    from cloister.hub.serving import bound

    what, instead = "The demonstration was not started", "cloister demo --port 0, for any port that is free"
    try:
        found = bound(host, port, what, instead)[0]
    except InvalidParameter:
        if exactly:
            raise
        found = bound(host, 0, what, instead)[0]
    found.listen()
    return found


def _furnished(hub: Hub) -> dict[str, Caller]:
    """The people of the demonstration, with their data sets and grants; what this folder has of them already stays."""
    from cloister.hub.decisions.callers import caller_for
    from cloister.hub.platform.accounts import add_person
    from cloister.hub.records.accounts import person_of_address

    callers: dict[str, Caller] = {}
    with hub.database.begin() as db:
        for key, (name, email, roles, _) in PEOPLE.items():
            person = person_of_address(db, email) or add_person(hub, db, email=email, name=name, roles=roles)
            caller = caller_for(hub, db, person.id)
            assert caller is not None
            callers[key] = caller
    _register(hub, callers["owner"], callers["analyst"])
    return callers


def _is_made(hub: Hub, name: str) -> bool:
    """Whether a data set of this name is there, or was: a demonstration that was ended while it was made goes on."""
    from cloister.hub.records.catalogue import DataSet

    with hub.database.reading() as db:
        return db.query(DataSet).filter(DataSet.name == name).first() is not None


def _register(hub: Hub, owner: Caller, analyst: Caller) -> None:
    from cloister.hub.platform.catalogue import register
    from cloister.hub.records.declarations import declaration_of
    from cloister.tables import PrivateTable

    missing = [name for name in _TABLES if not _is_made(hub, name)]
    found = tables() if missing else {}
    for name in missing:
        table, (title, about, population) = found[name], _TABLES[name]
        how: dict[str, Any] = {"public": True}
        if isinstance(table, PrivateTable):
            declaration = declaration_of(table) | {"reasons": _REASONS[name]}
            how = {"declaration": declaration, "population": population, "budget": PureDP(_BUDGET), "listed": True}
        register(hub, owner, name=name, title=title, about=about, source=[_as_csv(table.source)], kind="csv", **how)
    for name in _REASONS:
        _grant(hub, owner, analyst, name)
    until = (hub.now() + _PUBLISHING).date().isoformat()
    _grant(hub, owner, analyst, "census", "publisher", actions=["release.publish"], until=until)
    _bring(hub, owner, analyst)


def _bring(hub: Hub, owner: Caller, analyst: Caller) -> None:
    """An algorithm that runs near rows; its provider lets the analyst run it."""
    from cloister.hub.platform.access import register_algorithm
    from cloister.hub.platform.access.granting import grant_in, own_algorithm
    from cloister.hub.records.access import Algorithm

    settings = {"code": _CODE, "inputs": ["age"], "names": ["age"], "low": ["17"], "high": ["90"], "blocks": 50}
    about = "The middle age of each block of people; their noisy mean leaves."
    with hub.database.begin() as db:
        if db.query(Algorithm).filter(Algorithm.name == _ALGORITHM).first() is None:
            named = {"name": _ALGORITHM, "title": "The middle of ages", "about": about}
            register_algorithm(hub, db, owner, **named, service="guests", settings=settings)
            _, which = own_algorithm(hub, db, owner, _ALGORITHM)
            rules = {"actions": ["algorithm.run"], "only_with": ["census"]}
            grant_in(hub, db, owner, which, {"role": "runner", "members": {"people": [analyst.email]}, "rules": rules})
    near = ["algorithm.run", "release.see", "release.download"]
    _grant(hub, owner, analyst, "census", "runner", actions=near, algorithms=[_ALGORITHM])


@contextlib.contextmanager
def _clinics(hub: Hub, people: dict[str, Caller]) -> Iterator[None]:
    """Three sites that run; they are made where this folder has none yet. The hub serves already, so that they can call it."""
    folder = hub.settings.path("sites")
    if not _is_made(hub, CLINICS):
        shutil.rmtree(folder, ignore_errors=True)
        _join_clinics(hub, people["owner"], folder)
    _grant(hub, people["owner"], people["analyst"], CLINICS)
    with _running_clinics(hub, folder, hub.settings.origin):
        yield


def _grant(hub: Hub, owner: Caller, analyst: Caller, name: str, role: str = "analyst", **rules: Any) -> None:
    """Once: what was revoked since stays so."""
    from cloister.hub.platform.access import grant
    from cloister.hub.records.access import Grant
    from cloister.hub.records.catalogue import DataSet

    with hub.database.reading() as db:
        given = db.query(Grant).join(DataSet, DataSet.id == Grant.object)
        if given.filter(DataSet.name == name, Grant.role == role).first() is not None:
            return
    members = {"people": [analyst.email]}
    grant(hub, owner, data_set=name, role=role, members=members, rules=rules or {"actions": sorted(_MAY)})


def _as_csv(source: Any) -> bytes:
    columns = {name: list(values) for name, values in source.origin.items()}
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue().encode()


def _first(hub: Hub, people: dict[str, Caller], *, sites: bool) -> _Shown:
    """Links to sign in by, and the first answers: asked as any client would, through the API."""
    from cloister.client import connect
    from cloister.hub.platform.accounts import login_link, make_token
    from cloister.hub.web.home import STORY, Part

    analyst, address = people["analyst"], hub.settings.origin
    scopes = ("question.ask", "question.explain", "question.rehearse", "release.see", "dataset.see", "budget.see")
    with hub.database.begin() as db:
        _, token = make_token(hub, db, analyst, name="demonstration", scopes=scopes, days=1)
    with connect(address, token=token, purpose=PURPOSE) as session:
        answer = session.sql(FIRST, spend=SPEND)
        kept = session.address_of(answer)
        joint = session.sql(QUESTION, spend=SPEND) if sites else None
    links = {key: login_link(hub, caller.email) for key, caller in people.items()}
    number = demo_survey(hub, analyst)
    survey = f"{address}/s/{number}"
    hub.parts[STORY] = {caller.id: Part(chapter=key, survey=number) for key, caller in people.items()}
    psql = f'psql "host={hub.settings.host} port={hub.settings.pg_port} user={analyst.email} dbname=hub"'
    return _Shown(address=address, links=links, token=token, answer=answer, joint=joint, kept=kept, survey=survey, psql=psql)


def _as_json(found: _Shown) -> str:
    answer = found.answer
    return json.dumps(
        {
            "address": found.address,
            "links": found.links,
            "token": found.token,
            "sql": FIRST,
            "columns": answer.to_pydict(),
            "margin95": {name: answer.margin().columns[name].tolist() for name in answer.statistics()},
            "cost": {population: str(cost) for population, cost in answer.spent_by.items()},
            "release": found.kept,
            **({} if found.joint is None else {"sites": {"sql": QUESTION, "columns": found.joint.to_pydict()}}),
            "survey": found.survey,
            "psql": found.psql,
        }
    )


def _as_text(found: _Shown, *, once: bool, kept: bool) -> str:
    ask = f'cloister query "{SECOND}" --spend {SPEND} --hub {found.address}'
    lines = [
        "cloister: share what the data says, not the data.",
        "",
        "Sample tables, made by a generator (nobody's rows), are in a hub on this machine. Its analyst has asked:",
        "",
        FIRST,
        "",
        repr(found.answer),
        "",
        *([] if found.joint is None else [_CLINICS, "", QUESTION, "", repr(found.joint), ""]),
        f"The hub is at {found.address}",
        "Each of these links signs one person in, once. Their first pages tell a story of five minutes: begin as the analyst.",
    ]
    for key, link in found.links.items():
        lines += [f"  {key}: {PEOPLE[key][0]}, who {PEOPLE[key][3]}", f"    {link}"]
    lines += [
        "",
        "Anyone may answer the analyst's survey; answers are randomised in the browser:",
        f"  {found.survey}",
        "",
        "Ask as the analyst from a shell, or from Python with cloister.connect:",
        f"  export CLOISTER_TOKEN={found.token}",
        f"  {ask}",
        "",
        "Or from any client of PostgreSQL, with that token as the password:",
        f'  PGPASSWORD=$CLOISTER_TOKEN {found.psql} -c "SET cloister.spend = \'{SPEND}\'" -c "{SECOND}"',
        "",
        "Without a hub: cloister demo --terminal",
    ]
    if not once:
        lines.append("Ctrl-C ends it." + ("" if kept else " Everything goes with it; --data DIR keeps it."))
    return "\n".join(lines)


_TITLE = "Sleep and screens"
_PEOPLE = 4000
_QUESTIONS = (
    {"kind": "yes-no", "name": "bed", "text": "Do you look at a screen in bed?"},
    {"kind": "choice", "name": "which", "text": "Which screen most?", "options": ["phone", "computer", "television"]},
    {"kind": "number", "name": "hours", "text": "How many hours did you sleep last night?", "low": "0", "high": "12"},
)
_LEVELS = (
    {"name": "more private", "epsilon": "0.5"},
    {"name": "middle", "epsilon": "1"},
    {"name": "more useful", "epsilon": "2"},
)


def demo_survey(hub: Hub, researcher: Caller) -> str:
    """The id of an open survey of the researcher: the one that is there, or a new one with some answers."""
    from cloister.hub.services.surveys import drafts
    from cloister.hub.services.surveys.counting import answers_of

    with hub.database.begin() as db:
        row = next((row for row in drafts.surveys_of(db, researcher) if row.state == "open"), None)
        if row is not None and (row.title != _TITLE or answers_of(db, [row.id])):
            return row.id
        if row is None:
            row = drafts.make_survey(hub, db, researcher, title=_TITLE, purpose="a study of sleep")
            introduction = "Everything here is made up, and you may answer as you like."
            how: dict[str, Any] = {"introduction": introduction, "levels": _LEVELS, "hoped": _PEOPLE, "questions": _QUESTIONS}
            drafts.rewrite(hub, db, researcher, row.id, **how)
            row = drafts.open_survey(hub, db, researcher, row.id)
        number = row.id
    _answered(hub, number)
    return number


def _answered(hub: Hub, number: str) -> None:
    """People who are made up answer: most at one level for all questions, some at a level for each."""
    from cloister.hub.records.surveys import HeldSurvey
    from cloister.hub.services.surveys.composing import of_text
    from cloister.hub.services.surveys.counting import asked, receive_all
    from cloister.local.survey import respond

    with hub.database.reading() as db:
        survey = of_text(asked(db, number, HeldSurvey).body)
    drawn = Random.deterministic(7)

    def report(place: int) -> dict[str, Any]:
        in_bed = place % 3 != 0
        answers = {
            "bed": in_bed,
            "which": ("phone", "phone", "computer", "television")[place % 4],
            "hours": 6.5 if in_bed else 7.5,
        }
        turn = place // 12  # at each level people answer alike
        turns = (turn, turn + 1, turn) if place % 5 == 0 else (turn, turn, turn)
        levels = {name: _LEVELS[turn % len(_LEVELS)]["name"] for name, turn in zip(answers, turns, strict=True)}
        return respond(survey, answers, levels, random=drawn).to_dict()

    receive_all(hub, number, map(report, range(_PEOPLE)))


_WELCOME = """cloister: share what the data says, not the data.

Sample tables, made by a generator: nobody's rows.
  census    one row a person: age, sex, race, education, marital_status, work_class, hours, income, pay
  visits    a hospital's visits, several a patient, of which at most 5 count: age, sex, smoker, ward, admitted, stay, cost
  patients  one row a patient of that hospital: sex, born, town; joined by visits.patient = patients.patient
  wards     public: ward, building, beds
  towns     public: town, inhabitants, university
The persons of the census have a privacy budget of ε = 1, and so have the patients.
"""
_PROMPT = "Ask in SQL (an empty line or Ctrl-D ends); each answer spends ε = 0.1 of its table's budget."


def run_demo(*, interactive: bool, as_json: bool) -> None:
    """The first answer; then, on a terminal, whatever is asked."""
    with Session(tables(), budget=PureDP(1), who="demo") as session:
        answer = session.sql(FIRST, spend=SPEND, purpose="first look")
        if as_json:
            click.echo(
                json.dumps(
                    {"sql": FIRST, "columns": answer.to_pydict(), "cost": str(answer.cost), "remaining": str(session.remaining)}
                )
            )
            return
        click.echo(_WELCOME)
        click.echo(f"{FIRST}\n\n{answer!r}\n")
        click.echo(f"left of the budget: {session.remaining_by['census']}\n")
        if interactive:
            _ask(session)


def _ask(session: Session) -> None:
    click.echo(_PROMPT)
    while True:
        try:
            sql = input("cloister> ").strip()
        except (EOFError, KeyboardInterrupt):
            click.echo()
            return
        if not sql:
            return
        try:
            click.echo(f"\n{session.sql(sql, spend=SPEND)!r}\n")
        except CloisterError as refusal:
            click.echo(f"{type(refusal).__name__}: {refusal}\n")


def _join_clinics(hub: Hub, owner: Caller, folder: Path) -> None:
    """Make the three folders, and the data set of their roster, which the demonstration signs in every owner's place."""
    from cloister.hub.services.sites.joining import Joining, join, roster_of

    keys = {name: _made(folder / name, name, rows, turn) for turn, (name, rows) in enumerate(_CLINIC_ROWS.items())}
    roster = roster_of(hub, "\n".join(json.dumps({name: key.public.hex()}) for name, key in keys.items()), "0")
    asked = Joining(
        roster=json.dumps(roster.plain()),
        signatures="\n".join(json.dumps({name: key.sign(roster.text).hex()}) for name, key in keys.items()),
        table=_TABLE,
        overlap="none",
        title="Three clinics",
        about="Rows at three sites, each a process of its own; this hub sees nothing but their sums with noise.",
        population=CLINICS,
        reason="The clinics take patients of any age.",
        size=2000,
        listed=True,
    )
    join(hub, owner, asked, PureDP(_BUDGET))


@contextlib.contextmanager
def _running_clinics(hub: Hub, folder: Path, address: str) -> Iterator[None]:
    """The three processes, once all of them have called; they end with the demonstration."""
    command = [sys.executable, "-m", "cloister", "site", "--hub", address, "--data"]
    with contextlib.ExitStack() as ended:
        for name in _CLINIC_ROWS:
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
        [signed] = [joined_in(hub, version).signed for row, version in versions_at_sites(db) if row.name == CLINICS]
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
    told = _SITE.format(name=name, table=_TABLE, budgeted=CLINICS, budget=_BUDGET)
    (folder / "site.toml").write_text(told, encoding="utf-8")
    make_key_file(folder / "site.key", new_key().hex())
    return SigningKey(bytes.fromhex((folder / "site.key").read_text(encoding="ascii").strip()))
