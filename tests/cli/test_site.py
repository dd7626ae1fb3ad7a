"""`cloister site`: what an owner makes, signs, decides and sees."""

from __future__ import annotations

import fcntl
import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import cloister as cl
from cloister.cli import cli, main
from cloister.cli.speaking import OnCommandLine
from cloister.crypto import is_signed
from cloister.noise import DiscreteLaplace
from cloister.tables import Aggregate, Aggregation, And, Column, Compare, In, IsNull, Like, Literal, Not, Or
from cloister.tables.engines.noised import Cells, Combination, Integers, NoisedRequest
from cloister.together import Asked, Journal, Roster, SiteAgent
from cloister.together.owner import AuditLog, OwnersPolicy, Rule, words_of
from tests.together.wired import coordinator_of, folder_of, key_of, roster_of

VISITS = """
[tables.visits]
source = "visits.csv"

[tables.visits.columns]
age = { kind = "integer", low = 17, high = 90 }
stay = { kind = "integer", low = 0, high = 30 }
"""
AGES = """
[tables.ages]
source = "people.csv"
columns.age = { kind = "integer", low = 17, high = 90 }
"""


def run(*words: str, **other: Any) -> Result:
    return CliRunner().invoke(cli, ["site", *words], **other)


def said(found: Result) -> str:
    assert found.exit_code == 0, f"{found.output}\n{found.exception!r}"
    return found.output


def request(where: Any = None) -> NoisedRequest:
    rows = Integers("rows", Combination((("rows", 1),)), DiscreteLaplace(scale=10))
    return NoisedRequest(
        table="people", aggregations=(Aggregation(None, where=where),), integers=(rows,), cells=Cells(), charge="7"
    )


def test_a_folder_is_made_once_and_its_key_stays(tmp_path: Path) -> None:
    first = said(run("init", str(tmp_path / "north"), "--name", "north"))
    assert said(run("init", str(tmp_path / "north"), "--name", "north")) == first
    assert "--name 'north'" in str(run("init", str(tmp_path / "north"), "--name", "south").exception)  # no roster has it so
    assert (tmp_path / "north" / "site.key").stat().st_mode & 0o777 == 0o600
    shown = json.loads(first.splitlines()[0])
    (tmp_path / "north" / "people.csv").write_text("age,sex\n39,F\n", encoding="utf-8")
    told = json.loads(said(run("show", "--data", str(tmp_path / "north"), "--json")))
    assert (told["name"], told["key"], told["budget"], told["spent"]) == ("north", shown["north"], "ρ = 0.5", "ρ = 0")
    assert said(run("plans", "--data", str(tmp_path / "north"))) == "no plan waits\n"


@pytest.mark.parametrize("line", ["site init --name a", "csp init --name a", "vault init --store sqlite://", "site show --data"])
def test_a_folder_without_a_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(cli, [*line.split(), ""])
    assert "The folder is invalid: it has no name" in str(refused.exception)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_named_before_the_command_is_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a plan of another site, in ./site, would be approved; and a name may have any letters."""
    monkeypatch.chdir(tmp_path)
    for folder, name in (("site", "south"), ("north", "𠮷野")):
        said(run("init", folder, "--name", name))
        Path(folder, "people.csv").write_text("age,sex\n39,F\n", encoding="utf-8")
    told = [json.loads(said(run(*words, "--json")))["name"] for words in (["--data", "north", "show"], ["show"])]
    assert told == ["𠮷野", "south"]


def test_a_key_is_rotated_by_the_old_one(tmp_path: Path) -> None:
    folder, file = folder_of(tmp_path, "a"), tmp_path / "roster.json"
    assert "cloister site rotate" in str(run("rotate", "--finish", "--data", str(folder)).exception)
    new = bytes.fromhex(json.loads(said(run("rotate", "--data", str(folder))).splitlines()[0])["a"])
    assert new != key_of("a").public
    roster = Roster.from_plain({**(old := roster_of("abc").plain()), "sites": [["a", new.hex()], *old["sites"][1:]]})
    for told in (roster, roster_of("abc")):  # while the hub has the old roster, that one is signed by the old key
        file.write_text(json.dumps(told.plain()), encoding="utf-8")
        signature = bytes.fromhex(json.loads(run("sign", str(file), "--data", str(folder), "--yes").stdout)["a"])
        assert is_signed(told.sites["a"], told.text, signature[:64])
        assert signature[64:] == (key_of("a").sign(told.text) if told is roster else b"")
    said(run("rotate", "--finish", "--data", str(folder)))
    assert json.loads(said(run("show", "--data", str(folder), "--json")))["key"] == new.hex()
    again = run("rotate", "--finish", "--data", str(folder))  # a script that was not sure that it had
    assert "the rotation is finished" in said(again)
    assert json.loads(again.stdout.splitlines()[0]) == {"a": new.hex()}
    assert [each.read_text() for each in folder.glob("site.key.*")] == [(b"a" * 32).hex()]


def test_a_roster_is_signed_after_its_fingerprints_were_compared(tmp_path: Path) -> None:
    folder, roster = folder_of(tmp_path, "a"), roster_of("abc")
    file = tmp_path / "roster.json"
    file.write_text(json.dumps(roster.plain()), encoding="utf-8-sig")  # with the mark that editors put before it
    given = ["sign", str(file), "--data", str(folder)]
    refused = run(*given, input="n\n")
    assert refused.exit_code != 0
    for digits in roster.fingerprints().values():
        assert digits in refused.output
    signature = json.loads(run(*given, "--yes").stdout)
    assert is_signed(key_of("a").public, roster.text, bytes.fromhex(signature["a"]))
    for text, error in (("{}", cl.InvalidParameter), (json.dumps(other().plain()), cl.InvalidDeclaration)):
        file.write_text(text, encoding="utf-8")
        assert isinstance(run(*given, "--yes").exception, error)


def test_a_ledger_that_was_put_back_alone_says_what_its_owner_types(tmp_path: Path) -> None:
    """In the words of a command line, which takes the site's folder as it takes a hub's."""
    folder = folder_of(tmp_path, "a")
    said(run("show", "--data", str(folder)))
    before = (folder / "ledger.db").read_bytes()
    with cl.Ledger(folder / "ledger.db") as ledger:
        ledger.reserve({"a": cl.ZCDP(1)}, who="the hub", what="a round")
    (folder / "ledger.db").write_bytes(before)
    frozen = run("show", "--data", str(folder)).exception
    assert isinstance(frozen, cl.CloisterError)
    line = "cloister ledger restore budget.db --who … --why …, or with larger losses"
    assert OnCommandLine(command=None).said(frozen.instead) == line
    asked = CliRunner().invoke(cli, ["ledger", "restore", str(folder), "--who", "a", "--why", "a disk"]).exception
    assert "a loss is missing for a: at least ρ = 1" in str(asked)


def other() -> Roster:
    """A roster in which a has another key."""
    return Roster(sites={**roster_of("abc").sites, "a": key_of("x").public}, hub=roster_of("abc").hub, missing=0)


def test_plans_wait_in_words_until_they_are_decided(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "a", otherwise="ask me")
    policy = OwnersPolicy([Rule(answer="ask me")], journal=Journal(folder))
    asked = Asked(table="a", cost=cl.PureDP("0.1"), request=request(), purpose="a study", who="ada")
    assert "its owner is asked" in str(policy(asked))
    [plan] = json.loads(said(run("plans", "--data", str(folder), "--json")))
    words = said(run("plans", "--data", str(folder)))
    assert f"{plan['plan']}  waiting\n  for 'ada', for the purpose 'a study'" in words
    assert "counts rows" in words
    said(run("deny", plan["plan"], "--data", str(folder)))
    assert "denied the plan" in str(policy(asked))
    said(run("approve", plan["plan"], "--data", str(folder)))
    charged = Asked(table="a", cost=cl.PureDP("0.1"), request=request(), purpose="a study", who="ada", round="r1")
    assert policy(asked) is policy(charged) is policy(charged) is None  # in advance, charged, and again after a stop
    again = Asked(table="a", cost=cl.PureDP("0.1"), request=request(), purpose="a study", who="ada", round="r2")
    assert "its owner is asked" in str(policy(again))
    assert "was answered before" in said(run("plans", "--data", str(folder)))
    assert isinstance(run("approve", "none", "--data", str(folder)).exception, cl.InvalidParameter)


def test_a_table_whose_file_is_away_keeps_nobody_from_what_was_spent(tmp_path: Path) -> None:
    """The owner sees it all the same, with the log, and then what is wrong; a program that wants JSON has the refusal alone."""
    folder = folder_of(tmp_path, "a")
    said(run("show", "--data", str(folder)))
    with cl.Ledger(folder / "ledger.db") as ledger:
        ledger.reserve({"a": cl.ZCDP(1)}, who="the hub", what="a round")
        ledger.note_not_private("a", who="the hub", what="exact components")
        AuditLog(folder / "audit-log.jsonl", ledger.derive("audit log", "a")).add("charged", {"about": "7"})
    (folder / "people.csv").unlink()
    found = run("show", "--data", str(folder))
    assert "a: budget ρ = 1000000000000, of which ρ = 1 is spent\nsomething left that is not differentially" in found.output
    assert "charged: about 7" in found.output
    assert "people.csv' is not there" in str(found.exception)
    for refused in (run("show", "--data", str(folder), "--json"), run("show", "--data", str(tmp_path))):
        assert (refused.exit_code, refused.output) == (1, "")


def test_what_no_decimal_is_shows_in_figures(tmp_path: Path) -> None:
    """Steps of a descent cost a site ratios of a hundred digits, which nobody reads; the ledger has them whole."""
    folder, odd = folder_of(tmp_path, "a"), cl.ZCDP(Fraction(7**90, 10**76 + 3))
    assert "at a cost of ρ = 1.14505 to each" in words_of(Asked(table="a", cost=odd, request=request()))
    said(run("show", "--data", str(folder)))
    with cl.Ledger(folder / "ledger.db") as ledger:
        ledger.reserve({"a": odd}, who="the hub", what="a round")
    assert "of which ρ = 1.14505 is spent" in said(run("show", "--data", str(folder)))
    assert len(json.loads(said(run("show", "--data", str(folder), "--json")))["spent"]) > 150


def test_no_more_than_some_plans_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloister.together.owner._MOST_PLANS", 2)
    policy = OwnersPolicy([], journal=Journal(tmp_path))
    found = [policy(Asked(table="a", cost=cl.PureDP(1), request=request(), purpose=str(place))) for place in range(3)]
    assert ["plans wait for its owner already" in str(each) for each in found] == [False, False, True]


def test_conditions_are_said_in_words() -> None:
    where = And(
        Or(Compare(">", Column("age"), Literal(40)), Not(Column("ill"))),
        In(Column("sex"), ["F", "M"]),
        Not(IsNull(Column("pay"))),
        Like(Column("town"), "S%\u202e"),
    )
    words = words_of(Asked(table="a", cost=cl.PureDP(1), request=request(where)))
    for part in ("age > 40", "not (ill)", "sex is one of 'F', 'M'", "not (pay is missing)", "town is like 'S%"):
        assert part in words
    assert "\u202e" not in words
    total = Aggregation(None, aggregates=(Aggregate("s", "sum", (("age", 17), ("pay", 0))),))
    sums = (Integers("s", Combination((("s", 1),)), DiscreteLaplace(scale=10)),)
    summed = NoisedRequest(table="people", aggregations=(total,), integers=sums, cells=Cells())
    assert "the sum of (age − 17) × pay" in words_of(Asked(table="a", cost=cl.PureDP(1), request=summed))


def test_an_entry_of_the_log_that_was_changed_shows(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "a")
    said(run("show", "--data", str(folder)))  # makes the ledger, whose key the log's follows from
    with cl.Ledger(folder / "ledger.db") as ledger:
        log = AuditLog(folder / "audit-log.jsonl", ledger.derive("audit log", "a"))
    for number in "123":
        log.add("charged", {"about": number})
    log.add("refused", {"why": "x"})
    log.add("refused", {"why": "x"})
    assert len(json.loads(said(run("show", "--data", str(folder), "--json")))["log"]) == 4
    text = log.path.read_text(encoding="utf-8")
    for broken, place in ((text.replace('"2"', '"4"'), 2), (text.split("\n", 1)[1], 1)):
        log.path.write_text(broken, encoding="utf-8")
        found = run("show", "--data", str(folder))
        assert found.exit_code == 1
        assert f"entry {place} of the log was changed" in found.output
    log.path.write_text(text + '{"at":', encoding="utf-8")  # a process was stopped while it wrote
    assert "charged: about 3" in said(run("show", "--data", str(folder)))


def test_two_processes_write_one_log(tmp_path: Path) -> None:
    """Each reads on where the other wrote; of a line that is gone both remember that it was there."""
    logs = [AuditLog(tmp_path / "log", bytes(32)) for _ in range(2)]
    for place in (0, 1, 1, 0, 1):
        logs[place].add("charged", {"about": str(place)})
    assert logs[0].broken() is None
    assert [each["about"] for each in logs[1].entries()] == [*"01101"]
    lines = logs[0].path.read_bytes().splitlines(keepends=True)
    logs[0].path.write_bytes(b"".join(lines[:-1]) + b"{")
    logs[1].add("charged", {"about": "2"})
    assert logs[1].broken() == 5


def test_a_site_that_is_called_otherwise_keeps_what_its_people_spent_and_its_log(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "a")
    said(run("show", "--data", str(folder)))
    with cl.Ledger(folder / "ledger.db") as ledger:
        ledger.settle(ledger.reserve({"a": cl.ZCDP("0.3")}, who="hub", what="7"), b"")
        AuditLog(folder / "audit-log.jsonl", ledger.derive("audit log", "a")).add("charged", {"about": "7"})
    config = folder / "site.toml"
    config.write_text(config.read_text(encoding="utf-8").replace('name = "a"', 'name = "b"'), encoding="utf-8")
    told = json.loads(said(run("show", "--data", str(folder), "--json")))
    assert (told["name"], told["population"], told["spent"], told["broken"]) == ("b", "a", "ρ = 0.3", None)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (('name = "a"', ""), "names no site"),
        (('otherwise = "always"', 'otherwise = "maybe"'), "it is one of always, ask me, never"),
        (('otherwise = "always"', "rules = [1]"), "rules of another form"),
        (('otherwise = "always"', "rules = 1"), "rules of another form"),
        (('otherwise = "always"', 'rules = [{table = ["people"], answer = "always"}]'), "none of its private ones"),
        (('otherwise = "always"', 'other = "always"'), "rules of another form"),
        (('otherwise = "always"', 'rules = [{who = ["ada", "bob"], answer = "never"}]'), 'who="…"'),
        (('otherwise = "always"', 'rules = [{who = 7, answer = "never"}]'), "one text that can be shown"),
        (('otherwise = "always"', f'rules = [{{purpose = "{"x" * 201}", answer = "never"}}]'), "of 1 to 200 characters"),
        (("[policy]", "time_limt = 3\n[policy]"), "'time_limt' is not one of the words of [site]"),
        (("people = { rho", "folk = { rho"), "has no budget"),
        (("source =", "public = true\nsource ="), "a private table"),
        (("[budgets]", f"{AGES}\n[budgets]\nages = {{ rho = 1 }}"), "have two budgets"),
        (("[site]", "[site"), "Expected"),
    ],
)
def test_a_file_that_says_nothing_is_refused(change: tuple[str, str], why: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "a")
    text = (folder / "site.toml").read_text(encoding="utf-8")
    assert change[0] in text
    (folder / "site.toml").write_text(text.replace(*change), encoding="utf-8")
    found = run("show", "--data", str(folder))
    assert isinstance(found.exception, cl.InvalidDeclaration)
    assert why in str(found.exception)


@pytest.mark.parametrize(("text", "why"), [(b'[site]\nname = "\xb1\xb1"', "it is not UTF-8 text"), (b"[site]\n[site]", "twice")])
def test_a_file_that_is_no_toml_is_mended_where_it_is(text: bytes, why: str, tmp_path: Path) -> None:
    """To make the folder again, which was advised, would change nothing."""
    folder = folder_of(tmp_path, "a")
    (folder / "site.toml").write_bytes(text)
    found = run("show", "--data", str(folder)).exception
    assert isinstance(found, cl.InvalidDeclaration)
    assert (why in found.why, found.instead) == (True, "the same, as TOML in UTF-8")


def test_a_site_has_public_tables_beside_its_own(tmp_path: Path) -> None:
    from cloister.cli.site import _opened

    folder = folder_of(tmp_path, "a")
    (folder / "sexes.csv").write_text("name,long\nF,woman\nM,man\n", encoding="utf-8")
    text = (folder / "site.toml").read_text(encoding="utf-8")
    more = "[tables.sexes]\nsource = 'sexes.csv'\npublic = true\n\n[tables.people]"
    (folder / "site.toml").write_text(text.replace("[tables.people]", more, 1), encoding="utf-8")
    with _opened(folder) as here:
        [(name, site)] = here.sites.items()
        assert (name, site.label, [*site.public_tables]) == ("people", "", ["sexes"])
        assert list(site.table.columns) == ["age", "sex"]


def test_an_owner_sees_how_the_rows_are_read(tmp_path: Path) -> None:
    """A name in Latin-1 is no text, and its line is left out: nobody else could tell the owner."""
    folder = folder_of(tmp_path, "a")
    text = (folder / "site.toml").read_text(encoding="utf-8")
    (folder / "site.toml").write_text(text.replace("[budgets]", f"{VISITS}\n[budgets]"), encoding="utf-8")
    (folder / "visits.csv").write_bytes("age,stay\n30,1\n31,M\xfcller\n32,n/a\n33,99\n".encode("latin-1"))
    assert said(run("rows", "--data", str(folder))).splitlines()[-4:] == [
        "visits: 3 rows",
        "  1 lines are left out: quotes, fields or UTF-8 are wrong",
        "  stay: 1 of 3 values count as missing, such as 'n/a' (1)",
        "  stay: 1 of 3 values are moved to a bound, such as '99' (1)",
    ]
    *_, told = map(json.loads, said(run("rows", "--data", str(folder), "--json")).splitlines())
    assert (told["table"], told["left_out"]["malformed"], told["misfits"]["stay"]["clamped"]) == ("visits", 1, [["99", 1]])


def test_a_folder_has_several_tables_of_the_same_people_or_of_others(tmp_path: Path) -> None:
    """A table that comes later finds the budget that its people have, and those who have none get one of their own."""
    folder = folder_of(tmp_path, "a")
    said(run("show", "--data", str(folder)))  # the people's ledger is there
    (folder / "visits.csv").write_text("age,stay\n40,3\n", encoding="utf-8")
    text = (folder / "site.toml").read_text(encoding="utf-8")
    more = f"{VISITS}\n{VISITS.replace('tables.visits', 'tables.staff')}".replace(
        "[tables.staff]\n", '[tables.staff]\npopulation = "staff"\n'
    )
    (folder / "site.toml").write_text(
        text.replace("[budgets]", f"{more}\n[budgets]\nstaff = {{ epsilon = 2 }}"), encoding="utf-8"
    )
    shown = said(run("show", "--data", str(folder)))
    assert "people, visits: budget ρ = 1000000000000" in shown
    assert "staff: budget ε = 2, of which" in shown
    tables = json.loads(said(run("show", "--data", str(folder), "--json")))["tables"]
    assert [each["population"] for each in tables.values()] == ["a", "a", "staff"]


def test_a_rule_may_be_about_one_table(tmp_path: Path) -> None:
    from cloister.cli.site import _opened

    folder = folder_of(tmp_path, "a", otherwise="never")
    text = (folder / "site.toml").read_text(encoding="utf-8") + AGES
    rule = '[[policy.rules]]\ntable = "{}"\nanswer = "always"\n'
    (folder / "site.toml").write_text(text.replace("[tables.people]", rule.format("ages") + "[tables.people]"), encoding="utf-8")
    with _opened(folder) as here:
        asked = {name: Asked(table="a", label=name, cost=cl.PureDP(1), request=request()) for name in ("people", "ages")}
        answers = {name: here.sites[name].policy(each) for name, each in asked.items()}  # type: ignore[misc]
    assert answers["ages"] is None
    assert "its owner allows nothing" in str(answers["people"])
    (folder / "site.toml").write_text(text.replace("[tables.people]", rule.format("agse") + "[tables.people]"), encoding="utf-8")
    assert "'agse', which is none of its private ones" in str(run("show", "--data", str(folder)).exception)


def test_a_site_without_a_key_is_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "a")
    (folder / "site.key").unlink()
    assert "site.key is missing" in str(run("show", "--data", str(folder)).exception)


@pytest.mark.parametrize(
    ("file", "is_folder", "words"),
    [
        ("audit-log.jsonl", True, "show"),
        ("site.lock", True, "reread"),
        ("plans", False, "plans"),
        ("rounds", False, "show"),
    ],
)
def test_what_is_in_the_place_of_a_file_or_a_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, file: str, is_folder: bool, words: str
) -> None:
    folder = folder_of(tmp_path, "a")
    (folder / file).mkdir() if is_folder else (folder / file).touch()
    monkeypatch.setattr(sys, "argv", ["cloister", "site", words, "--data", str(folder)])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr().err
    assert ended.value.code == 1, told
    assert told.startswith("EngineError: The command ended early: ")
    assert str(folder / file) in told


def test_a_folder_is_run_once_and_calls_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, limits = folder_of(tmp_path, "a"), list[Any]()
    monkeypatch.setattr("cloister.together.agent.no_core_dumps", lambda: limits.append("off"))
    with (folder / "site.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert "a process runs the one in a already" in str(run("--data", str(folder)).exception)
        assert "stop that process first" in str(run("rotate", "--finish", "--data", str(folder)).exception)
    assert "over TLS" in str(run("--data", str(folder), "--hub", "http://hub.example.org").exception)
    assert limits == ["off", "off"]


def test_an_owner_asks_for_a_new_reading_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked for before a start is had by the start; a proxy of the command takes the place of the file's."""
    monkeypatch.setattr("cloister.together.agent.no_core_dumps", lambda: None)
    folder, ways, stale = folder_of(tmp_path, "a"), list[str](), list[bool]()
    config = folder / "site.toml"
    config.write_text(config.read_text(encoding="utf-8").replace("hub =", 'proxy = "http://one.example.org:3128"\nhub ='))

    def called(self: SiteAgent, hub: str, *, proxy: str, **_: Any) -> None:
        ways.append(proxy)
        stale.append(self._stale())
        assert "the running site reads" in said(run("reread", "--data", str(folder)))
        stale.extend([self._stale(), self._stale()])

    monkeypatch.setattr(SiteAgent, "run", called)
    assert "no site runs here" in said(run("reread", "--data", str(folder)))
    said(run("--data", str(folder)))
    said(run("--data", str(folder), "--proxy", "http://two.example.org:3128"))
    assert ways == ["http://one.example.org:3128", "http://two.example.org:3128"]
    assert stale == [False, True, False] * 2


def test_a_running_site_follows_the_rules_of_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the next message on; what is wrong changes nothing, and the log says why."""
    monkeypatch.setattr("cloister.together.agent.no_core_dumps", lambda: None)
    folder, found = folder_of(tmp_path, "a"), list[tuple[bool, float]]()
    text = (folder / "site.toml").read_text(encoding="utf-8")

    def called(self: SiteAgent, *_: Any, **__: Any) -> None:
        never = text.replace('otherwise = "always"', 'otherwise = "never"').replace("[policy]", "time_limit = 7\n[policy]")
        for written in (text, never, "", never.replace('"never"', '"nevr"'), text):
            (folder / "site.toml").unlink(missing_ok=True)  # as an editor does that puts a new file in its place
            if written:
                (folder / "site.toml").write_text(written, encoding="utf-8")
            self.answer(b"garbage")
            found.append((self.site.policy.denies("study", "ada") is not None, self.site.time_limit))  # type: ignore[union-attr]

    monkeypatch.setattr(SiteAgent, "run", called)
    said(run("--data", str(folder)))
    assert found == [(False, 300), (True, 7), (True, 7), (True, 7), (False, 300)]
    log = [each for each in json.loads(said(run("show", "--data", str(folder), "--json")))["log"] if each["event"] != "refused"]
    assert [each["event"] for each in log] == ["read", "not read", "not read", "read"]
    assert "one of always, ask me, never" in log[2]["why"]
    assert [each.get("instead", "") for each in log[2:]] == ['"ask me"', ""]


@pytest.mark.parametrize(("public", "text", "why"), [("", "", "it has no columns"), ("public = true", "a,a\n1,2\n", "")])
def test_of_several_tables_the_one_whose_file_is_invalid_is_named(tmp_path: Path, public: str, text: str, why: str) -> None:
    folder = folder_of(tmp_path, "a")
    config = (folder / "site.toml").read_text(encoding="utf-8")
    more = VISITS if not public else VISITS.replace("[tables.visits.columns]", public).partition("age =")[0]
    (folder / "site.toml").write_text(config.replace("[budgets]", f"{more}\n[budgets]"), encoding="utf-8")
    (folder / "visits.csv").write_text(text, encoding="utf-8")
    for command in ("show", "rows"):
        found = str(run(command, "--data", str(folder)).exception)
        assert f"The table 'visits': The source is invalid: {why}" in found


def test_a_site_of_a_folder_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the command runs is the agent of that folder; here it is asked for one call, and its log says what happened."""
    coordinator = coordinator_of("abc", wait=0.01)
    done = SiteAgent.answer

    def once(self: SiteAgent, data: bytes) -> bytes:
        done(self, data)
        raise KeyboardInterrupt

    monkeypatch.setattr("cloister.together.agent.no_core_dumps", lambda: None)
    monkeypatch.setattr(SiteAgent, "answer", once)
    folder = folder_of(tmp_path, "a")
    with coordinator.serving() as hub:
        run("--data", str(folder), "--hub", hub)
    told = json.loads(said(run("show", "--data", str(folder), "--json")))
    assert told["rosters"] == [coordinator.signed.roster.digest]
    assert [each["event"] for each in told["log"]] == ["joined"]


@pytest.mark.parametrize("name", ["", " ", "..", "north\nsouth", "n" * 1000])
def test_a_site_has_a_name_that_a_roster_takes(tmp_path: Path, name: str) -> None:
    refused = run("init", str(tmp_path / "site"), "--name", name)
    assert refused.exit_code == 1
    assert "--name north" in str(refused.exception)
    assert not (tmp_path / "site").exists()
