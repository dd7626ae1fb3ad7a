"""Sample and aggregate: whatever the code does, one person moves one block, and only noisy numbers leave."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.errors import (
    BudgetExceeded,
    CloisterError,
    EngineError,
    InvalidParameter,
    MissingBound,
    UnknownColumn,
    UnknownTable,
)
from cloister.guests.blocks import Blocks, Failed, blocks_of, utilities_of
from cloister.guests.code import written_down
from cloister.guests.trial import run_tests, run_trial
from cloister.noise import Random
from cloister.privacy import ApproxDP, Guarantee, PureDP

LARGE = PureDP(10**9)


def guest_of(body: str, **how: Any) -> cl.Guest:
    """A guest of one function of `rows`."""
    about: dict[str, Any] = {"inputs": ["age"], "output": cl.Vector([(0, 100)]), "blocks": 10, "seconds": 0.02}
    return cl.Guest(code=f"def f(rows):\n    {body}\n", entry="f", **{**about, **how})


def run(guest: cl.Guest, table: cl.PrivateTable, spend: Guarantee = LARGE) -> Any:
    """A run with a budget that it uses up."""
    with cl.Session({"people": table}, budget=spend, random=Random.deterministic(3)) as session:
        return guest.run(session, "people", spend)


def ages(values: list[Any], **how: Any) -> cl.PrivateTable:
    """A table of ages."""
    return cl.PrivateTable({"age": values}, {"age": cl.Integer(0, 100)}, **how)


class Chosen(Random):
    """Puts person k into block k modulo the number of blocks, so that two tables can be compared."""

    def __init__(self) -> None:
        self._true = Random.deterministic(0)

    def below(self, bound: int, n: int) -> Any:
        return np.arange(n) % bound


def held(table: cl.PrivateTable, inputs: tuple[str, ...], blocks: int, random: Any) -> list[Mapping[str, list[Any]]]:
    """What each block is given."""
    with cl.Session({"people": table}, budget=PureDP(1)) as session:
        rows = session.prepared("people").rows(list(inputs), unit=True)
    return list(blocks_of(rows, table, inputs, blocks, random))


def test_values_come_as_they_are_declared(people: cl.PrivateTable) -> None:
    [found] = held(people, ("age", "plan 🌙", "note", "day"), 1, Chosen())
    assert set(found["age"]) == {20, 40, None, 60, 100, 0}
    assert set(found["plan 🌙"]) == {"a", "b", None}
    assert set(found["day"]) == {"2024-01-01", "2024-12-31", "2024-06-01", None}
    assert {"'", '"', "\\", "", None} <= set(found["note"])
    assert {len(each) for each in found.values()} == {600}


def test_the_order_of_a_block_follows_from_its_rows_alone() -> None:
    """Whoever else is in the table, and however the engine gave its rows: a guest must not tell by their order."""
    values = [int(each) for each in Random.deterministic(5).below(101, 300)]
    [one] = held(ages(values), ("age",), 1, Chosen())
    [other] = held(ages(values[::-1]), ("age",), 1, Chosen())
    assert one == other


def test_a_person_is_in_one_block_and_moves_no_other() -> None:
    rows = {"who": [f"p{k % 40:02}" for k in range(120)], "age": [k % 101 for k in range(120)]}
    columns = {"age": cl.Integer(0, 100)}
    table = cl.PrivateTable(rows, columns, unit="who", max_rows=3)
    kept = [place for place in range(120) if rows["who"][place] != "p39"]
    without = cl.PrivateTable({name: [each[k] for k in kept] for name, each in rows.items()}, columns, unit="who", max_rows=3)
    one, other = (held(each, ("age",), 8, Seeded()) for each in (table, without))
    assert sum(len(each["age"]) for each in one) == 120
    differing = [place for place in range(8) if one[place] != other[place]]
    assert len(differing) == 1
    assert all(each["who"] == sorted(each["who"]) for each in one)


class Seeded(Chosen):
    """A draw for each person by place, the same whether somebody comes after or not."""

    def below(self, bound: int, n: int) -> Any:
        return np.asarray(Random.deterministic(7).below(bound, 1000))[:n]


def test_blocks_are_drawn_and_not_counted_off() -> None:
    """By turns, whoever comes first would move everybody behind; by draws the sizes vary as a binomial's do."""
    sizes = [len(each["age"]) for each in held(ages([1] * 4000), ("age",), 10, Random.deterministic(2))]
    assert sum(sizes) == 4000
    assert len(set(sizes)) > 4
    assert max(abs(each - 400) for each in sizes) < 150  # 7.9 standard deviations of 19


def test_without_noise_it_is_the_mean_of_the_blocks() -> None:
    found = run(guest_of("return [sum(rows['age']) / len(rows['age'])]"), ages([10, 30, 50] * 100))
    assert abs(found.values["0"] - 30) < 4
    assert found.cost == LARGE
    assert found.margins["0"] < 1e-3


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("return 1 / 0", 50.0),
        ("return 'seven'", 50.0),
        ("return [1, 2]", 50.0),
        ("return [None]", 50.0),
        ("return [True]", 50.0),
        ("return [float('nan')]", 50.0),
        ("return [float('inf')]", 100.0),
        ("return [-float('inf')]", 0.0),
        ("return [10**400]", 100.0),
        ("return {'a': 1}", 50.0),
        ("while True: pass", 50.0),
        ("raise ValueError(rows)", 50.0),
    ],
)
def test_a_block_that_fails_counts_as_the_middle_and_one_outside_as_the_bound(body: str, value: float) -> None:
    assert abs(run(guest_of(body, seconds=0.005), ages([10, 30] * 50)).values["0"] - value) < 0.01


@pytest.mark.parametrize("told", ["rows['age'][0]", "[rows['age'][0]]", "float(rows['age'][0])"])
def test_one_number_may_stand_alone(told: str) -> None:
    """As `guest try` has it: a run that took only lists gave 50 here, and said nothing."""
    found = run(guest_of(f"return {told}"), ages([10] * 100))
    assert abs(found.values["0"] - 10) < 0.01
    assert found.failed == Failed(count=pytest.approx(0, abs=0.01), margin=pytest.approx(0, abs=0.01), blocks=10)


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_how_many_blocks_gave_no_value_is_told_with_a_margin(statistic: str) -> None:
    guest = guest_of("return [7] if len(rows['age']) % 2 else 'none'", statistic=statistic, blocks=20)
    values = [1] * 301
    with cl.Session({"people": ages(values)}, budget=LARGE, random=Random.deterministic(3)) as session:
        found = guest.run(session, "people", LARGE)
    odd = sum(len(each["age"]) % 2 for each in held(ages(values), ("age",), 20, Random.deterministic(3)))
    assert found.failed.count == pytest.approx(20 - odd, abs=0.01)
    assert f"about {20 - odd} ± 0 of 20 blocks gave no value" in str(found)
    assert 0 < odd < 20


@pytest.mark.parametrize("output", [cl.Vector([(0, 1)]), cl.Vector([(0, 1), (-5, 5), (2, 3)])])
@pytest.mark.parametrize("spend", [PureDP(1), ApproxDP(1, "1e-6"), cl.ZCDP("0.1")])
def test_the_count_of_failed_blocks_moves_what_is_noised_by_no_more_than_is_charged(output: cl.Vector, spend: Guarantee) -> None:
    """Of any two answers of one block, values at the ends and in the middle, and none at all: the vector of d + 1 numbers."""
    method = method_of(guest_of("return 0", output=output))
    share = method.allowance(spend).rest("mean")
    (l1, l2_squared), weight = method._counting(share)
    ends = [
        [low for low, _ in output.bounds],
        [high for _, high in output.bounds],
        [(low + high) / 2 for low, high in output.bounds],
    ]
    told: list[Any] = [*ends, "nothing"]
    added = [[*output.codes(each).tolist(), weight * (output.read(each) is None)] for each in told]
    apart = [np.abs(np.array(one, dtype=object) - np.array(other, dtype=object)) for one in added for other in added]
    if share.currency == "epsilon":
        assert max(each.sum() for each in apart) == l1
    else:
        assert max((each**2).sum() for each in apart) == l2_squared
    assert max(each[-1] for each in apart) == weight > 0


def test_the_noise_of_that_count_follows_its_margin() -> None:
    """Beside quantiles, too, where it has an eighth of the spend (false alarm below 1e-6: 4,000 draws, 95 % ± 2 %)."""
    for statistic, scale in (("mean", 2), ("median", 8)):
        method = method_of(guest_of("return [50]", statistic=statistic, blocks=1000))
        random, codes = Random.deterministic(8), np.full((1000, 1), 32768, dtype=np.int64)
        drawn = np.array([method.noised(codes, 500, PureDP(1), random)[1] for _ in range(4000)])
        _, failed = method.told({"values": {"0": 50.0}, "failed": 500.0}, PureDP(1))
        assert failed is not None
        assert failed.margin == pytest.approx(scale * math.log(20), abs=1)
        assert abs((np.abs(drawn - 500) <= failed.margin).mean() - 0.95) < 0.02
        assert abs(drawn.mean() - 500) < 6 * 2**0.5 * scale / 4000**0.5 + 0.01


def test_a_release_of_before_says_nothing_of_failed_blocks() -> None:
    assert method_of(guest_of("return [1]")).told({"0": 3.5}, PureDP(1)) == ({"0": 3.5}, None)


@pytest.mark.parametrize("told", ["5", "[1]", "null", '{"value": 5}', '{"value": [1]}', '{"value": "[1"}', "[" * 100_000, ""])
def test_whatever_a_guest_makes_of_its_interpreter_no_error_comes_of_one_block(told: str) -> None:
    """An error out here would say that the block with a certain person was among them."""
    body = f"import json; json.dumps = (lambda *_: {told!r}) if 77 in rows['age'] else json.dumps; return [20]"
    found = run(guest_of(body, blocks=5), ages([20] * 300 + [77]))
    assert abs(found.values["0"] - (20 * 4 + 50) / 5) < 0.01


@pytest.mark.parametrize("values", [[], [7]])
def test_empty_tables_and_one_row(values: list[int]) -> None:
    found = run(guest_of("return [sum(rows['age'])]"), ages(values))
    assert abs(found.values["0"] - sum(values) / 10) < 0.01


def test_the_sum_moves_by_one_range_at_most_whatever_one_block_says() -> None:
    output = cl.Vector([(0, 1), (-5, 5)])
    codes = [output.codes(each) for each in ([0, -5], [1, 5], [9, -9], None, [0.5, 0], "x", [float("nan"), 3])]
    apart = [np.abs(one - other) for one in codes for other in codes]
    assert max(int(each.max()) for each in apart) == output.steps
    assert max(int(each.sum()) for each in apart) == 2 * output.steps


@pytest.mark.parametrize(
    "told", [[[1, 2]], [1, 2], {"a": [1, 2]}, {"a": [1], "b": [2]}, {"a": [1, 2], "b": 5}, [[1], [2]], None, "x", {}]
)
def test_what_is_no_such_table_is_the_middle(told: Any) -> None:
    output = cl.Table(rows=["x", "y"], columns={"a": (0, 100), "b": (-1, 1)})
    assert output.codes(told).tolist() == [output.steps // 2] * 4
    assert run(guest_of("return [[10, 1], [20, -1]]", output=output), ages([1] * 50)).values["y: a"] == pytest.approx(
        20, abs=1e-3
    )


@pytest.mark.parametrize("how", [{"rows": []}, {"rows": ["x", "x"]}, {"rows": "x"}, {"columns": {}}, {"columns": {"a": (1, 0)}}])
def test_a_table_that_cannot_be_is_refused(how: dict[str, Any]) -> None:
    with pytest.raises(CloisterError):
        cl.Table(**{"rows": ["x"], "columns": {"a": (0, 1)}, **how})


def test_noise_follows_the_declared_law() -> None:
    """Of what leaves, 4,096 numbers with an ε of one each: their deviation is that of ε over ranges and blocks, and the margin
    holds 95 % of them (false alarm below 1e-6: five standard deviations of each)."""
    count = 4096
    method = method_of(guest_of("return 0", blocks=10, output=cl.Vector([(0, 100)] * count)))
    codes = np.full((10, count), 32_768, dtype=np.int64)
    noise = method.noised(codes, 0, PureDP(count), Random.deterministic(4))[0] * 10 - 327_680
    assert abs(noise.std() / (2**0.5 * method.output.steps) - 1) < 0.09
    within = method.margins(PureDP(count))["0"] * 10 * method.output.steps / 100
    assert abs((np.abs(noise) <= within).mean() - 0.95) < 0.0175


def test_no_margin_passes_what_can_be() -> None:
    """A number leaves within its range, and of ten blocks none or ten gave no value at most."""
    method = method_of(guest_of("return 0", blocks=10, output=cl.Vector([(0, 100), (-1, 1)], names=["one", "two"])))
    assert method.margins(PureDP("0.01")) == {"one": 100, "two": 2}
    kept, failed = method.told({"values": {"one": 5.0, "two": 0.0}, "failed": 7.5}, PureDP("0.01"))
    assert (dict(kept), failed) == ({"one": 5.0, "two": 0.0}, Failed(count=7.5, margin=7.5, blocks=10))


def method_of(guest: cl.Guest) -> Blocks:
    """As the door is handed it."""
    return guest.method(ages([1]))


def test_more_numbers_and_less_budget_mean_more_noise() -> None:
    one, two = (method_of(guest_of("return 0", output=cl.Vector([(0, 100)] * n))) for n in (1, 2))
    assert two.margins(PureDP(20))["0"] == pytest.approx(2 * one.margins(PureDP(20))["0"], rel=1e-3)
    assert one.margins(PureDP(10))["0"] == pytest.approx(2 * one.margins(PureDP(20))["0"], rel=1e-3)
    with_delta = ApproxDP(20, "1e-6")
    assert [each.margins(with_delta) for each in (one, two)] == [each.margins(PureDP(20)) for each in (one, two)], (
        "Laplace's less"
    )
    many = (method_of(guest_of("return 0", output=cl.Vector([(0, 100)] * n))) for n in (100, 200))
    gaussian = [each.margins(with_delta)["0"] for each in many]
    assert gaussian[1] == pytest.approx(2**0.5 * gaussian[0], rel=1e-3)
    assert one.margins(cl.ZCDP("0.1"))["0"] > 0


def test_the_median_withstands_blocks_that_lie() -> None:
    body = "return [90 if len(rows['age']) % 5 == 0 else 20]"
    values = [int(each) for each in Random.deterministic(9).below(101, 500)]
    guest = guest_of(body, statistic="median", blocks=40)
    assert abs(run(guest, ages(values), PureDP(2)).values["0"] - 20) < 10
    assert abs(run(guest, ages(values), ApproxDP(3, "1e-6")).values["0"] - 20) < 10
    assert run(guest, ages(values), PureDP(2)).margins == {}


@pytest.mark.parametrize(("statistic", "level"), [("q10", 10), ("median", 50), ("q90", 90)])
def test_a_quantile_of_the_blocks(statistic: str, level: int) -> None:
    guest = guest_of("return [sum(rows['age']) % 101]", statistic=statistic, blocks=200, seconds=0.005)
    values = [int(each) for each in Random.deterministic(9).below(101, 2000)]
    assert run(guest, ages(values), PureDP(4)).values["0"] == pytest.approx(level, abs=12)


@pytest.mark.parametrize("quantile", [Fraction(1, 2), Fraction(9, 10), Fraction(1, 100), Fraction(37, 100)])
def test_one_block_moves_no_utility_by_more_than_is_charged(quantile: Fraction) -> None:
    """And some by as much: with half of it, a quantile would tell twice what it costs."""
    reached = 0
    for turn in range(200):
        random = Random.deterministic(turn)
        blocks = np.asarray(random.below(1025, 5 + turn % 9), dtype=np.int64)
        other = blocks.copy()
        other[0] = int(random.below(1025, 1)[0])
        moved = np.abs(utilities_of(blocks, quantile) - utilities_of(other, quantile)).max()
        assert moved <= quantile.denominator
        reached = max(reached, int(moved))
    assert reached == quantile.denominator


def test_each_run_is_charged_whole_and_refused_beyond_the_budget() -> None:
    guest = guest_of("return [1]")
    with cl.Session({"people": ages([1] * 50)}, budget=PureDP(1)) as session:
        plan, margins = guest.explain(session, "people", "0.6")
        assert (str(plan.cost), set(margins)) == ("ε = 0.6", {"0"})
        assert str(session.spent) == "ε = 0"
        guest.run(session, "people", "0.6")
        with pytest.raises(BudgetExceeded):
            guest.run(session, "people", "0.6")
        assert str(session.spent) == "ε = 0.6"


def test_what_a_session_may_not_see_its_guests_do_not_see() -> None:
    columns = {"age": cl.Integer(0, 100), "sex": cl.Category(["F", "M"])}
    table = cl.PrivateTable({"age": [10, 90] * 200, "sex": ["F", "M"] * 200}, columns)
    guest = guest_of("return [max(rows['age'])]")
    with cl.Session({"people": table}, budget=LARGE) as session:
        ana = session.on_behalf("ana", rows={"people": "sex = 'F'"}, columns={"people": ["age"]})
        assert abs(guest.run(ana, "people", PureDP(10**8)).values["0"] - 10) < 0.01
        with pytest.raises(UnknownColumn):
            guest_of("return [1]", inputs=["sex"]).run(ana, "people", 1)


@pytest.mark.parametrize(
    "body", ["raise ValueError(str(rows))", "print(rows); return rows['note']", "return [1, rows['note'][0]]"]
)
def test_nothing_of_a_row_is_in_what_leaves(body: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Neither in the result nor in what the ledger keeps of it, the stored release and every file of it."""
    table = cl.PrivateTable({"note": ["canary"] * 50}, {"note": cl.Text()})
    with cl.Session({"people": table}, budget=LARGE, ledger=str(tmp_path / "budget.db")) as session:
        found = guest_of(body, inputs=["note"]).run(session, "people", 10)
        [charge] = session.ledger.charges("people")
        lines = list(session.ledger.lines())
    kept = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert b"people" in kept
    assert lines
    assert not [each for each in (repr(found), str(found), repr(charge), repr(lines), *capfd.readouterr()) if "canary" in each]
    assert b"canary" not in kept
    assert set(found.values) == {"0"}


@pytest.mark.parametrize(
    ("output", "value", "says"),
    [
        (cl.Vector([(0, 1)]), [0.5], ""),
        (cl.Vector([(0, 1)]), [7], ""),  # it is clamped
        (cl.Vector([(0, 1)]), 42.0, ""),
        (cl.Vector([(0, 1)] * 2), 42.0, "returned 42.0, and not a list of 2 numbers"),
        (cl.Vector([(0, 1)]), "42", 'returned "42", and not 1 number'),
        (cl.Vector([(0, 1)]), True, "not 1 number"),
        (cl.Vector([(0, 1)]), float("nan"), "not 1 number"),
        (cl.Vector([(0, 1)]), [1, 2, 3], "not 1 number"),
        (cl.Table(rows=["a"], columns={"x": (0, 1)}), 1, ""),
        (cl.Vector([(0, 1), (0, 1)]), [1, None], "not a list of 2 numbers"),
        (cl.Vector([(0, 1)]), [True], "not 1 number"),
        (cl.Vector([(0, 1)]), [float("nan")], "not 1 number"),
        (cl.Vector([(0, 1)]), ["x" * 1000], "…"),
        (cl.Table(rows=["a", "b"], columns={"x": (0, 1)}), [[1], [2]], ""),
        (cl.Table(rows=["a", "b"], columns={"x": (0, 1)}), {"x": [1, 2]}, ""),
        (cl.Table(rows=["a", "b"], columns={"x": (0, 1)}), {"x": [1]}, "2 rows of 1 numbers"),
        (cl.Table(rows=["a", "b"], columns={"x": (0, 1)}), [1, 2], "2 rows of 1 numbers"),
        (cl.Table(rows=["a", "b"], columns={"x": (0, 1)}), [[1], ["y"]], "not a list"),
    ],
)
def test_an_author_is_told_of_another_shape_than_is_declared(output: cl.Vector, value: Any, says: str) -> None:
    """And what he is told is what the run does: it reads a value where nothing is said, and none where something is."""
    found = output.why_not(value)
    assert says in found
    assert bool(found) == bool(says) == (output.read(value) is None)
    assert len(found) < 150


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import cloister as cl\nB = 3\n@cl.guest(inputs=['age'], blocks=B)\ndef f(rows):\n    return [1]\n", "written out"),
        (
            "import cloister as cl\n@cl.guest(inputs=['age'], output=cl.Nothing())\ndef f(rows):\n    return [1]\n",
            "Vector or a Table",
        ),
    ],
)
def test_what_a_file_declares_is_literal(text: str, says: str) -> None:
    with pytest.raises(InvalidParameter, match=says):
        written_down(text)


def test_a_file_with_a_decorator_is_read_and_not_run() -> None:
    text = """
import os
import cloister as cl
from cloister.guests import ask

raise SystemExit("never run here")

def helper(x):
    return x

@cl.guest(inputs=["age"],
          output=cl.Table(rows=["a"], columns={"x": (0, 1)}), blocks=9, uses=[helper])
def first(rows):
    return [[helper(1)]]

def last():
    return 0
"""
    code, entry, declared = written_down(text)
    assert (entry, declared["blocks"], declared["inputs"]) == ("first", 9, ["age"])
    assert "cloister" not in code
    assert "import os" in code
    assert len(code.splitlines()) == len(text.splitlines())  # a line that fails has its number
    assert declared["output"].names == ("a: x",)
    assert written_down("def f(") == ("def f(", "", {})


@pytest.mark.parametrize("sign", ["\f", "\u2028", "\x85", "\r\n", "\r"])
def test_lines_are_those_of_python(sign: str) -> None:
    """A decorator that stayed behind is unknown in the sandbox, so that every block failed."""
    text = f"import cloister as cl, math\nA = 1  # {sign}\n@cl.guest(inputs=['age'])\ndef f(rows):\n    return '''a{sign}b'''\n"
    code, entry, declared = written_down(text)
    scope: dict[str, Any] = {}
    exec(code, scope)
    assert (entry, declared, scope["math"].floor(1.5)) == ("f", {"inputs": ["age"]}, 1)
    assert scope["f"]([]) == "a" + sign.replace("\r\n", "\n").replace("\r", "\n") + "b"


def test_tests_may_begin_as_files_do() -> None:
    guest = cl.Guest(code="def f(rows):\n    return [1]\n", entry="f", inputs=["age"], output=cl.Vector([(0, 1)]))
    tests = "def test_one() -> Y:\n    assert f({}) == [1]\n"
    tried = run_tests(guest, f'"""Of f."""\nfrom __future__ import annotations\n\n{tests}')
    assert (tried.passed, tried.failed) == (1, ())


@pytest.mark.parametrize(
    ("how", "error", "says"),
    [
        ({"output": None}, InvalidParameter, "output="),
        ({"inputs": []}, InvalidParameter, "at least one column"),
        ({"inputs": "age"}, InvalidParameter, "list of columns"),
        ({"inputs": 5}, InvalidParameter, "list of columns"),
        ({"inputs": ["age", "age"]}, InvalidParameter, "none twice"),
        ({"blocks": 2}, InvalidParameter, "from 5"),
        ({"blocks": 10**6}, InvalidParameter, "to 10000"),
        ({"blocks": True}, InvalidParameter, "whole number"),
        ({"seconds": 0}, InvalidParameter, "seconds"),
        ({"seconds": float("nan")}, InvalidParameter, "seconds"),
        ({"memory": 10**6}, InvalidParameter, "memory"),
        ({"way": "free"}, InvalidParameter, "'blocks' or 'ask'"),
        ({"output": [(0, 120)]}, InvalidParameter, "output= is invalid"),
        ({"author": 5}, InvalidParameter, "author= is invalid"),
        ({"mechanism": ["Laplace"]}, InvalidParameter, "mechanism= is invalid"),
        ({"statistic": "mode"}, InvalidParameter, '"mean", "median" or "q90"'),
        ({"inputs": ["pay"]}, UnknownColumn, "pay"),
    ],
)
def test_what_cannot_be_is_refused_in_its_own_words(how: dict[str, Any], error: type[CloisterError], says: str) -> None:
    with pytest.raises(error, match=says):
        run(guest_of("return [1]", **how), ages([1]))


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("def f(rows:\n  return", "line 1"),
        ("x = 1", "no function of that name"),
        ("def g(rows): pass", "'g'"),
        ("def f(r): pass\0", "NUL"),
    ],
)
def test_code_that_cannot_run_is_refused_with_its_line(code: str, says: str) -> None:
    with pytest.raises(InvalidParameter, match=says):
        cl.Guest(code=code, entry="f", inputs=["age"], output=cl.Vector([(0, 1)]))


@pytest.mark.parametrize(
    "bounds",
    [
        [(1, 0)],
        [(0, float("inf"))],
        [(0,)],
        [("a", "b")],
        [(0, 0)],
        [(False, True)],
        [(-1.7e308, 1.7e308)],
        [(2**53, 2**53 + 1)],
        [(0, 10**400)],
    ],
)
def test_ranges_that_are_none_are_refused(bounds: Any) -> None:
    with pytest.raises(InvalidParameter):
        cl.Vector(bounds)


def test_other_refusals() -> None:
    with pytest.raises(MissingBound):
        cl.Vector([])
    with pytest.raises(InvalidParameter, match="no name twice"):
        cl.Vector([(0, 1), (0, 1)], names=["a", "a"])
    guest = guest_of("return [1]", blocks=None)
    with pytest.raises(InvalidParameter, match="size="):
        run(guest, ages([1]))
    assert guest.method(ages([1], size=50_000)).blocks == 76
    unit = cl.PrivateTable({"unit": [1]}, {"unit": cl.Integer(0, 1)})
    with pytest.raises(InvalidParameter, match="'unit' is invalid"):
        run(guest_of("return [1]", inputs=["unit"]), unit)
    with cl.Session({"towns": cl.PublicTable({"age": [1]})}, budget=PureDP(1)) as session, pytest.raises(UnknownTable):
        guest_of("return [1]").run(session, "towns", 1)


def test_a_guest_that_the_sandbox_cannot_run_is_charged_once_rows_were_read_and_not_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CLOISTER_GUESTS", "/proc/nowhere")
    with cl.Session({"people": ages([1] * 9)}, budget=PureDP(1)) as session:
        with pytest.raises((EngineError, OSError)) as refused:
            guest_of("return [1]").run(session, "people", 1)
        assert "rows" not in str(refused.value)
        assert str(session.spent) == "ε = 0"
        monkeypatch.setattr(Blocks, "open", lambda *_, **__: Gone())
        with pytest.raises(EngineError, match="withheld"):
            guest_of("return [1]").run(session, "people", 1)
        assert str(session.spent) == "ε = 1"


class Gone(AbstractContextManager[Any]):
    """A sandbox that is there before the charge, and not after it."""

    def __exit__(self, *_: Any) -> None: ...

    def run(self, _: Any) -> Any:
        raise EngineError("The sandbox was not opened", why="its image is gone", instead="cloister guest build")


def test_at_home_it_is_tried_on_made_up_rows_for_free() -> None:
    guest = guest_of("print(len(rows['age'])); return [rows['age'][0] / (rows['age'][1] - rows['age'][1])]")
    with cl.Session({"people": ages([77] * 500, size=500)}, budget=PureDP(1)) as session:
        found = guest.rehearse(session, "people")
        assert str(session.spent) == "ε = 0"
    assert len(found) == 10
    assert not found[0].done
    assert "line 2" in found[0].why
    assert "ZeroDivisionError" in found[0].why
    assert found[0].printed.strip().isdigit()


def test_a_rehearsal_has_blocks_as_large_as_those_of_a_run() -> None:
    """By the declared number of rows: 20,000 in each of these; by as many as somebody says; else it says that nobody did."""
    guest = guest_of("return [1] if len(rows['age']) < 10_000 else 'too many'", blocks=5, seconds=1)
    with cl.Session({"people": ages([77], size=100_000)}, budget=PureDP(1)) as session:
        found = guest.rehearse(session, "people", most=1)
    assert [guest.why_not(each) for each in found] == ['it returned "too many", and not 1 number']
    with cl.Session({"people": ages([77])}, budget=PureDP(1)) as session:
        assert [guest.why_not(each) for each in guest.rehearse(session, "people")] == [""] * 5
        assert guest.why_not(guest.rehearse(session, "people", rows=60_000, most=1)[0])
    assert "nobody said" in str(guest.rehearsed(ages([77])))
    assert str(guest.rehearsed(ages([77], size=100_000))) == "at about 20000 rows a block, as in a run"


def test_a_trial_has_them_too_however_few_of_them_it_runs() -> None:
    guest = guest_of("return [1] if len(rows['age']) < 150 else 'too many'", blocks=50)
    tried = run_trial(guest, "people", ages([77], size=5000), most=5)  # 100 rows a block
    assert (tried.done, tried.runs, tried.told()["rows"], tried.told()["real"]) == (5, 5, 100, 100)
