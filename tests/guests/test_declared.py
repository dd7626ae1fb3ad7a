"""Way "declared": admitted by two people after an audit that broke nothing and could have, held to its shape."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import cloister as cl
from cloister.cli.main import cli
from cloister.errors import AccessDenied, InvalidParameter
from cloister.guests import Admission, admit, audit_declared
from cloister.guests.declared import DeclaredAudit, HostNoise
from cloister.noise import Random
from cloister.privacy import PureDP

SUM = """
from fractions import Fraction
def total(rows, spend):
    return [sum(rows["age"]) + noise("laplace", 100 / Fraction(spend["epsilon"]))]
"""
SLOW = SUM.replace("    return", "    _ = [0 for a in rows['age'] for b in rows['age'] for c in rows['age']]\n    return")
COLUMNS = {"age": cl.Integer(0, 100)}


def declared(code: str = SUM, **how: Any) -> cl.Guest:
    """A sum with noise."""
    about: dict[str, Any] = {"inputs": ["age"], "output": cl.Vector([(-10_000, 60_000)], names=["sum"]), "way": "declared"}
    about |= {"author": "Pia", "mechanism": "Laplace", "proof": "One person moves the sum by at most 100.", "seconds": 0.2}
    return cl.Guest(code=code, entry="total", **{**about, **how})


@pytest.fixture(scope="module")
def people() -> cl.PrivateTable:
    return cl.PrivateTable({"age": [30, 50] * 200}, COLUMNS)


def audited(guest: cl.Guest, people: cl.PrivateTable) -> DeclaredAudit:
    """Cheap, and still able to catch a twin."""
    return audit_declared(guest, people, PureDP(1), runs=600, random=Random.deterministic(5))


def test_two_people_admit_it_after_an_audit_and_results_say_so(people: cl.PrivateTable) -> None:
    guest = declared()
    found = audited(guest, people)
    assert (found.kept, found.telling) == (True, True)
    assert "caught" in str(found)
    admission = admit(guest, by=["Ana", "Ben"], audited=found)
    with cl.Session({"people": people}, budget=PureDP(2), random=Random.deterministic(2)) as session:
        for wanting in (
            "",
            guest.digest,
            replace(admission, digest="x"),
            replace(admission, by=("Ana",)),
            replace(admission, by=("Ana", " ana")),
            replace(admission, audited=None),
            replace(admission, audited="an audit"),  # a word is no audit
            replace(admission, audited=replace(found, digest="x")),
            replace(admission, audited=replace(found, found=found.twin)),  # it broke the guarantee
            replace(admission, audited=replace(found, twin=found.found)),  # it could tell nothing
        ):
            with pytest.raises(AccessDenied):
                guest.run(session, "people", 1, admitted=wanting)
        wider = cl.PrivateTable({"age": [30]}, {"age": cl.Integer(0, 1000)})
        with (
            cl.Session({"people": wider}, budget=PureDP(2)) as other,
            pytest.raises(AccessDenied, match="declares something else"),
        ):
            guest.run(other, "people", 1, admitted=admission)
        with pytest.raises(AccessDenied, match="another version"):
            declared(SUM + "\n").run(session, "people", 1, admitted=admission)
        assert str(session.spent) == "ε = 0"
        assert guest.rehearse(session, "people")[0].done
        result = guest.run(session, "people", 1, admitted=admission)
        assert str(session.spent) == "ε = 1"
    assert abs(result.values["sum"] - 16_000) < 3000
    assert result.values["sum"] != 16_000
    assert "declared by Pia, admitted by Ana and Ben; audited to at least ε = " in str(result)


@pytest.mark.parametrize(
    ("code", "kept", "telling"),
    [
        (SUM.replace("100 /", "5 /"), False, True),  # a sensitivity that is too small
        (SUM.replace('noise("laplace", 100 / Fraction(spend["epsilon"]))', "0"), False, True),  # none at all
        ("def total(rows, spend):\n    return [len(rows['age']) * 0]\n", True, False),  # nothing to be told apart
    ],
)
def test_what_an_audit_breaks_or_cannot_see_is_not_admitted(
    people: cl.PrivateTable, code: str, kept: bool, telling: bool
) -> None:
    guest = declared(code)
    found = audited(guest, people)
    assert (found.kept, found.telling) == (kept, telling)
    with pytest.raises(AccessDenied, match="broke the declared" if not kept else "tenth of the noise"):
        admit(guest, by=["Ana", "Ben"], audited=found)


def test_an_audit_tries_a_person_with_all_the_rows_that_the_table_lets_one_have() -> None:
    table = cl.PrivateTable({"who": [1, 2], "age": [30, 50]}, COLUMNS, unit="who", max_rows=10)
    for reach, found in ((100, (False, True)), (1000, (True, True))):  # noise for one row, and for ten
        audit = audited(declared(SUM.replace("100 /", f"{reach} /")), table)
        assert (audit.kept, audit.telling) == found


def test_one_name_twice_is_one_person_and_an_old_audit_is_none(people: cl.PrivateTable) -> None:
    with pytest.raises(AccessDenied, match="two people"):
        admit(declared(), by=["Ana", "Ana ", ""])
    for other in ("Ana  Bo", "ANA BO", "Ana\u200b Bo", "Ａna Bo"):
        with pytest.raises(AccessDenied, match="two people"):
            admit(declared(), by=["Ana Bo", other])
    with pytest.raises(AccessDenied, match="as it is now"):
        admit(declared(), by=["Ana", "Ben"])
    native = cl.Guest(code="def f(rows): ...", entry="f", inputs=["age"], output=cl.Vector([(0, 1)]), packages=["numpy"])
    assert admit(native, by=["Ana"]) == Admission(digest=native.digest, by=("Ana",))
    with pytest.raises(AccessDenied, match="nobody is named"):
        admit(native, by=[" ", "\u200b"])
    with pytest.raises(InvalidParameter, match="list of names"):
        admit(native, by="Ana")  # not three people by one letter each


@pytest.mark.parametrize(
    "body",
    ["1 / 0", "[rows['age']]", "'x' * 10**6", "[1] * 10**6", "ask('SELECT COUNT(*) FROM people', 1)", "noise('laplace', 0)"],
)
def test_whatever_it_does_it_is_held_to_its_shape(people: cl.PrivateTable, body: str) -> None:
    guest = declared(f"def total(rows, spend):\n    return {body}\n")
    with cl.Session({"people": people}, budget=PureDP(1)) as session:
        method = guest.method(people)
        outcome = session.run(method, "people", 1)
    assert outcome.values == {"sum": 25_000}
    assert "it may have returned nothing: every number is the middle" in str(guest.result(method, outcome, ""))


def test_the_host_draws_noise_of_the_laws_asked_for_and_answers_nothing_else() -> None:
    noise = HostNoise(Random.deterministic(1), draws=10_000)
    for law, variance in (("laplace", 2 * 50**2), ("gaussian", 50**2)):
        drawn = [json.loads(noise(json.dumps({"noise": law, "scale": "50"})))["noise"] for _ in range(2000)]
        assert abs(np.std(drawn) / variance**0.5 - 1) < 0.2  # 8 standard deviations of a standard deviation
    twin = HostNoise(Random.deterministic(1), weaker=10)
    assert np.std([json.loads(twin('{"noise": "laplace", "scale": "50"}'))["noise"] for _ in range(1000)]) < 12
    strange = ["[", "[1]", "5", '{"noise": []}', '{"noise": "uniform", "scale": "1"}']
    strange += [json.dumps({"noise": "laplace", "scale": each}) for each in ("-1", "0", "1e999", "", None, [1])]
    assert all("refused" in noise(each) for each in strange)
    few = HostNoise(Random.deterministic(1), draws=1)
    assert ["refused" in few('{"noise": "laplace", "scale": "1"}') for _ in range(2)] == [False, True]


def test_the_command_line_shows_a_review_and_takes_two_names(tmp_path: Path) -> None:
    """On the sample census, without a noise that would do: the review says so, and nobody can admit it."""
    code, proof = tmp_path / "total.py", tmp_path / "proof.md"
    code.write_text(SUM.replace("100 /", "9 /"))
    proof.write_text("One person moves the sum by at most 90.")
    about = [str(code), "census", "--way", "declared", "--inputs", "age", "--output=-10000:4000000", "--author", "Pia"]
    about += ["--mechanism", "Laplace", "--proof", str(proof), "--seconds", "1"]
    told = CliRunner().invoke(cli, ["guest", "review", *about, "--runs", "600"])
    assert told.exit_code == 1, told.output
    assert all(each in told.output for each in ("9 / Fraction", "at most 90", "BROKEN", "caught"))
    alone = CliRunner().invoke(cli, ["guest", "run", *about])
    assert isinstance(alone.exception, AccessDenied | SystemExit)


def test_what_would_run_out_of_time_on_as_many_rows_is_refused_before_its_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The audit's crowd is small: it says nothing of how long many rows take."""
    code, proof, book = tmp_path / "total.py", tmp_path / "proof.md", tmp_path / "budget.db"
    code.write_text(SLOW)
    proof.write_text("One person moves the sum by at most 100.")
    about = [str(code), "census", "--way", "declared", "--inputs", "age", "--output=-10000:4000000", "--author", "Pia"]
    about += ["--mechanism", "Laplace", "--proof", str(proof), "--seconds", "0.1", "--by", "Ana", "--by", "Ben"]
    always = partial(audit_declared, runs=600, random=Random.deterministic(5))
    monkeypatch.setattr("cloister.guests.audit_declared", always)
    refused = CliRunner().invoke(cli, ["guest", "run", *about, "--ledger", str(book)]).exception
    assert isinstance(refused, InvalidParameter), refused
    assert "on made-up rows it ran out of time" in str(refused)
    assert "--seconds 0.2" in str(refused)
    with cl.Ledger(book) as ledger:
        assert [str(ledger.spent(name)) for name in ledger.populations()] == ["ε = 0"]


def test_a_mechanism_without_author_or_proof_or_with_packages_is_refused() -> None:
    for how in ({"proof": " "}, {"author": ""}, {"packages": ["numpy"]}, {"output": None}, {"inputs": []}):
        with pytest.raises(InvalidParameter):
            declared(**how)
    assert declared().digest != declared(proof="Another one.").digest
    assert Fraction(declared().describe()["seconds"]) > 0
