"""Continual SQL: one charge for all steps, steps that add up, nothing computed twice, and what becomes of odd readings."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import date, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cloister as cl
from cloister.attacks import audit
from cloister.errors import CloisterError, InvalidParameter, LedgerError, UnsupportedQuery
from cloister.ledger import Ledger
from cloister.noise import DiscreteLaplace, Random
from cloister.privacy import PureDP
from cloister.session import Count, Question
from cloister.traces import watch as module
from cloister.traces.feed import Feed
from cloister.traces.moments import Steps, moments_of, seconds
from cloister.traces.running import RunningTable

KEY = bytes(range(32))
BY_REGION = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
CLOCK: dict[str, Any] = {"every": "1 hour", "since": "2026-01-01", "until": "2026-01-02"}
REGIONS = {"region": cl.Category(["N", "S"])}


def visits(columns: dict[str, Any] | None = None, **terms: Any) -> cl.PrivateTable:
    given = columns or {"person": [], "region": []}
    return cl.PrivateTable(given, columns={**REGIONS, **({"at": cl.Integer(0, 2**40)} if "at" in given else {})}, **terms)


def session(table: cl.PrivateTable, budget: Any = None, **how: Any) -> cl.Session:
    return cl.Session({"visits": table}, budget=budget or cl.ZCDP(10**9), random=Random.deterministic(1), **how)


def counted(step: Any) -> list[int]:
    return list(step.table.to_pydict()["n"])


@pytest.mark.parametrize("budget", [cl.ZCDP(10**9), cl.PureDP(10**9)])
def test_the_rows_of_the_table_are_counted_in_the_step_of_their_moment(budget: Any) -> None:
    start = int(seconds("2026-01-01"))
    rows = {"at": [start, start + 3599, start + 3600, start + 5 * 3600, start - 1], "region": ["N", "S", "S", "N", "N"]}
    with session(visits(rows), budget) as opened:
        watch = opened.watch(BY_REGION, at="at", spend=10**8, **CLOCK)
        assert "once for all steps" in str(watch)
        assert str(opened.spent).endswith("= 0")
        steps = list(watch.until("2026-01-01T06:30"))
        assert [counted(step) for step in steps] == [[1, 1], [0, 1], [0, 0], [0, 0], [0, 0], [1, 0]]
        assert steps[-1].so_far is not None
        assert steps[-1].so_far.to_pydict()["n"] == [2, 2]
        assert str(opened.spent).endswith("= 100000000")
        assert list(watch.until("2026-01-01T06:59:59")) == []


def test_steps_add_up_to_the_running_sums_whatever_the_noise() -> None:
    with session(visits()) as opened:
        watch = opened.watch(BY_REGION, at="t", spend="0.01", fed=True, **CLOCK)
        steps = list(watch.until("2026-01-02"))
        sums = np.cumsum([counted(step) for step in steps], axis=0)
        assert sums.tolist() == [step.so_far.to_pydict()["n"] for step in steps]  # type: ignore[union-attr]
        assert len({tuple(each) for each in sums.tolist()}) > 12


def test_odd_readings_have_their_step_or_none() -> None:
    """Out of order, early, late, at no moment, outside, repeated, of nobody, more than a person may send, a leap second."""
    steps = Steps.of(every="1 minute", since="2016-12-31T23:58", until="2017-01-01T00:02")
    feed = Feed(steps, at="t", columns=["n"], unit="who", most=2, key="id", secret=KEY)
    feed.add(
        [
            {"t": "2016-12-31T23:59:30Z", "n": 1, "who": "a", "id": 1},
            {"t": "2016-12-31T23:58:30", "n": 2, "who": "a", "id": 2},  # out of order
            {"t": "2017-01-01T00:01:30Z", "n": 3, "who": "b", "id": 3},  # a clock that runs ahead
            {"t": "2016-12-31T23:59:60Z", "n": 4, "who": "c", "id": 4},  # a leap second: of its own minute
            {"t": "2016-12-31T23:59:30Z", "n": 1, "who": "a", "id": 1},  # repeated
            {"t": "2016-12-31T23:59:40Z", "n": 5, "who": None, "id": 5},  # of nobody
            {"t": float("nan"), "n": 6, "who": "d", "id": 6},
            {"t": "noon", "n": 7, "who": "d", "id": 7},
            {"t": "2016-12-31T23:57:59Z", "n": 8, "who": "d", "id": 8},
            {"t": "2017-01-01T00:02:00Z", "n": 9, "who": "d", "id": 9},
            {"t": "2017-01-01T01:01:10+01:00", "n": 10, "who": "a", "id": 10},  # the third of a
        ],
        0,
    )
    assert [feed.take(number)["n"].tolist() for number in (1, 2, 3, 4)] == [[2], [1, 4], [], [3]]
    late = Feed(steps, at="t", columns=["n"], late="next")
    late.add({"t": np.array([steps.since, steps.until - 1]), "n": [1, 2]}, 2)
    late.add({"t": [steps.since], "n": [3]}, 4)
    assert [late.take(number)["n"].tolist() for number in (3, 4, 5)] == [[1], [2], []]
    assert np.isnan(moments_of(np.array(["NaT", "2026-01-01"], dtype="M8[s]"))).tolist() == [True, False]


def test_a_reading_is_the_same_in_whatever_it_comes() -> None:
    """A list, a frame of pandas, columns of numpy, a whole number that a gap made a float."""
    feed = Feed(Steps.of(every="1 minute", since=0, until=600), at="t", columns=["n"], unit="who", most=9, key="id", secret=KEY)
    row = {"t": 5, "n": 1, "who": "a", "id": 7, "day": datetime(2026, 1, 1), "none": None}
    feed.add([row], 0)
    feed.add(pd.DataFrame([row]), 0)
    feed.add({name: np.array([value]) if name in ("n", "id") else [value] for name, value in row.items()}, 0)
    feed.add([{**row, "id": 7.0, "n": 1.0, "day": np.datetime64("2026-01-01T00:00:00", "ns"), "none": float("nan")}], 0)
    assert feed.take(1)["n"].tolist() == [1]


@pytest.mark.parametrize("zone", ["", "Z", "+01:00", "-05:30"])
@pytest.mark.parametrize("clock", ["23:59:60", "23:59:60.5", "23:59:59.9", "00:00", "00:00:00.25"])
def test_a_text_is_the_same_moment_in_a_table_and_fed(clock: str, zone: str) -> None:
    text = f"2016-12-31T{clock}{zone}"
    assert math.floor(seconds(text)) == cl.Moment("2016-12-30", "2017-01-02").encode(text)


def test_no_row_decides_whether_a_row_of_another_person_counts() -> None:
    steps = Steps.of(every="1 minute", since=0, until=60)
    feed = Feed(steps, at="t", columns=["n"], unit="who", most=1, key="id", secret=KEY)
    rows = [
        {"t": 1, "n": 1, "who": "a", "id": 7},
        {"t": 1, "n": 2, "who": "b", "id": 7},
        {"t": 1, "n": 3, "who": "\ud800", "id": 8},
    ]
    feed.add([*rows, {"t": 1, "n": 4, "who": "\ud801", "id": 9}, {"t": 1, "n": 5, "who": 7, "id": 10}], 0)
    feed.add({"t": [1.0], "n": [6.5], "who": np.array([7.0]), "id": [11]}, 0)  # the same person, from a frame with gaps
    feed.add({"t": [1, 1, 1, 1], "n": [7, 8, 9, 10], "who": ["7", 1, True, [1]], "id": [12, 13, 14, 15]}, 0)
    assert feed.take(1)["n"].tolist() == [1, 2, 3, 4, 5, 8, 9, 10]  # 7, 7.0 and "7" are one person; 1 and True are two


def test_a_row_is_in_one_cell_where_steps_are_of_a_key() -> None:
    days = {"day": cl.Date("2026-01-01", "2026-01-03")}
    with session(cl.PrivateTable({"day": [date(2026, 1, 1), date(2026, 1, 2)]}, columns=days)) as opened:
        how: dict[str, Any] = {"every": "1 day", "since": "2026-01-01", "until": "2026-01-04", "spend": 10**8}
        watch = opened.watch("SELECT day, COUNT(*) AS n FROM visits GROUP BY day", at="day", **how)
        assert [counted(step) for step in watch.until("2026-01-04")] == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]


def test_bounds_are_those_of_the_opening() -> None:
    narrow, wide = (cl.PrivateTable({"x": []}, columns={"x": cl.Integer(0, most)}) for most in (10, 1000))
    how: dict[str, Any] = {"at": "t", "spend": 1, "fed": True, "name": "w", **CLOCK}
    with session(narrow) as opened:
        watch = opened.watch("SELECT SUM(x) AS s FROM visits", **how)
        watch.step()
        opened.replace("visits", wide)
        with pytest.raises(LedgerError, match="declared otherwise"):
            watch.step()
        with pytest.raises(LedgerError, match="version of the table"):
            opened.watch("SELECT SUM(x) AS s FROM visits", **how).open()


def test_a_person_is_within_the_cap_over_all_steps_and_processes(tmp_path: Path) -> None:
    table = visits(unit="person", max_rows=2)
    for hour in range(3):
        with Ledger(tmp_path / "b.db", key=KEY) as book, cl.Session({"visits": table}, cl.ZCDP(10**9), book) as opened:
            watch = opened.watch(BY_REGION, at="t", spend=10**8, fed=True, **CLOCK)
            watch.feed({"t": [f"2026-01-01T0{hour}:30"] * 2, "person": ["ann", f"other {hour}"], "region": ["N", "S"]})
            [step] = watch.until(f"2026-01-01T0{hour + 1}:00")
            assert (step.number, counted(step)) == (hour + 1, [1 if hour < 2 else 0, 1])
            assert len(book.charges("visits")) == hour + 2
            assert str(book.spent("visits")) == "ρ = 100000000"


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"every": "soon"}, InvalidParameter, "every='soon' is invalid: it is a number of seconds"),
        ({"until": "2026-01-01T00:30"}, InvalidParameter, "a whole number of steps"),
        ({"since": "noon"}, InvalidParameter, "it is not a moment of whole seconds"),
        ({"until": 2**39}, InvalidParameter, "in the years 1 to 9999"),
        ({"at": "region"}, InvalidParameter, "says no moment"),
        (
            {"sql": "SELECT COUNT(*) AS n, region FROM visits GROUP BY ROLLUP (region)"},
            UnsupportedQuery,
            "more than one grouping",
        ),
        ({"sql": "SELECT MEDIAN(at) AS m FROM visits", "fed": True}, UnsupportedQuery, "a median or another order of values"),
        ({"sql": "SELECT COUNT(DISTINCT at) AS m FROM visits", "fed": True}, UnsupportedQuery, "different persons or values"),
    ],
)
def test_what_cannot_be_watched_is_refused_before_any_charge(change: dict[str, Any], error: type[Exception], says: str) -> None:
    with session(visits({"at": [1], "region": ["N"]})) as opened:
        how = {"sql": BY_REGION, "at": "at", **CLOCK, "spend": 1, **change}
        with pytest.raises(error, match=says.replace("(", r"\(").replace("*", r"\*")):
            list(opened.watch(how.pop("sql"), **how))
        assert opened.ledger.charges("visits") == []


def test_what_is_no_sum_is_bought_at_each_step() -> None:
    start = int(seconds("2026-01-01"))
    rows = visits({"at": [start + 10, start + 20, start + 4000] * 50, "region": ["N", "S", "N"] * 50}, version="1")
    with session(rows, cl.PureDP(24)) as opened:
        watch = opened.watch("SELECT MEDIAN(at) AS m FROM visits", at="at", spend=24, **CLOCK)
        assert "for each step" in str(watch)
        found = list(watch.until("2026-01-01T02:00"))
        assert str(opened.spent) == "ε = 2"
        again = opened.watch("SELECT MEDIAN(at) AS m FROM visits", at="at", spend=24, **CLOCK)
        assert [step.table.to_pydict() for step in again.until("2026-01-01T02:00")] == [step.table.to_pydict() for step in found]
        assert str(opened.spent) == "ε = 2"


def test_a_watch_goes_on_only_as_it_was_declared() -> None:
    with session(visits({"at": [1], "region": ["N"], "who": ["a"]}, unit="who", max_rows=1)) as opened:
        next(opened.watch(BY_REGION, at="at", spend=1, name="w", **CLOCK).until("2026-01-01T01:00"))
        with pytest.raises(LedgerError, match="opened with another question, spend"):
            opened.watch(BY_REGION, at="at", spend=2, name="w", **CLOCK).open()
        begun = opened.watch(BY_REGION, at="at", spend=1, name="w", **CLOCK).open()
        opened.replace("visits", visits({"at": [1, 2], "region": ["N", "S"], "who": ["a", "a"]}, unit="who", max_rows=1))
        with pytest.raises(LedgerError, match="other rows than when"):
            begun.step()
        with pytest.raises(LedgerError, match="version of the table"):
            opened.watch(BY_REGION, at="at", spend=1, name="w", **CLOCK).open()


WORKER = """
import os, sys
import cloister as cl
from cloister.ledger import Ledger
table = cl.PrivateTable({"region": []}, columns={"region": cl.Category(["N", "S"])})
out = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
with Ledger(sys.argv[1], key=bytes(range(32))) as ledger, cl.Session({"visits": table}, cl.ZCDP(10), ledger) as session:
    watch = session.watch("SELECT region, COUNT(*) AS n FROM visits GROUP BY region", at="t", every="1 second", since=0,
                          until=100_000, spend=1, fed=True).open()
    os.write(1, b"ready")
    while True:
        watch.feed({"t": [watch.taken + 0.5], "region": ["N"]})
        step = watch.step()
        os.write(out, f"{step.number} {step.so_far.to_pydict()['n']}\\n".encode())
"""


def test_killed_at_any_moment_no_step_is_released_twice(tmp_path: Path) -> None:
    path, out = tmp_path / "budget.db", tmp_path / "left"
    for attempt in range(3):
        arguments = [sys.executable, "-c", WORKER, str(path), str(out)]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, start_new_session=True) as worker:
            assert worker.stdout is not None
            assert worker.stdout.read(5) == b"ready"
            time.sleep(0.1 + attempt * 0.13)
            worker.send_signal(signal.SIGKILL)
    numbers = [int(line.split()[0]) for line in out.read_text().splitlines()]
    assert all(one < other for one, other in pairwise(numbers))
    with Ledger(path, key=KEY) as ledger:
        assert ledger.verify() is True
        assert str(ledger.spent("visits")) == "ρ = 1"
        assert len(ledger.charges("visits")) - 1 - len(numbers) <= 3  # a step that was durable and had not left


def part(spend: Any, budget: Any) -> Any:
    with session(visits(), budget) as opened:
        return opened.stepping(Question(table="visits", statistics=(Count(),)), spend)


def test_sums_of_a_tree_that_an_earlier_version_kept_go_on() -> None:
    """It kept the running sum beside the nodes that it is the sum of."""
    table = RunningTable(part(1, cl.PureDP(1)), 8, cells=2)
    table.restore({"taken": 3, "sums": {"rows": [[[1, 0], [5, 2], 0, 0], [[2, 1], [4, 3], 0, 0], [6, 4]]}})
    found = table.take({"rows": np.zeros(2, dtype=np.int64)}, Random.deterministic(1))
    assert (found.so_far["rows"].values - found.step["rows"].values).tolist() == [6, 4]
    assert table.state()["sums"]["rows"][0] == [0, 0, [6, 2], 0]


@pytest.mark.statistical
@pytest.mark.parametrize("budget", [cl.ZCDP(1), cl.PureDP(1)])
def test_the_law_of_the_steps_is_the_one_that_margins_follow(budget: Any) -> None:
    """5,000 groups: the variance of a number is found within 2 %, and may be off by 12 % (six deviations)."""
    groups = 5_000
    table, random = RunningTable(part("0.01", budget), 12, cells=groups), Random.deterministic(3)
    nothing = {"rows": np.zeros(groups, dtype=np.int64)}
    for number in range(1, 13):
        found = table.take(nothing, random)
        for reading in (found.step["rows"], found.so_far["rows"]):
            values = reading.values.astype(float)
            said = sum(term.variance for term in reading.terms)
            assert 0.70 * said < values.var() < 1.12 * said, number
            assert abs(values.mean()) < 6 * np.sqrt(said / groups)


@pytest.mark.statistical
@pytest.mark.parametrize("broken", [False, True])
def test_neighbouring_streams_are_no_easier_to_tell_apart_than_promised(broken: bool) -> None:
    """One row more in the first of seven steps is in three nodes of the tree. The broken one has half of the noise."""
    claim = PureDP(1)
    made = part(1, cl.PureDP(1))

    if broken:
        made = replace(made, noises={"rows": DiscreteLaplace(scale="0.5", sensitivity=1)})

    def run(stream: tuple[int, ...], size: int, random: Random) -> Any:
        table = RunningTable(made, 7, cells=size)
        taken = [table.take({"rows": np.full(size, value)}, random).step["rows"].values.astype(float) for value in stream]
        return np.stack(taken, axis=1)

    features = {"the nodes": lambda rows: rows[:, 0] + (rows[:, 0] + rows[:, 1]) + rows.sum(axis=1)}
    found = audit(run, (0,) * 4, (1, 0, 0, 0), runs=20_000, against=claim, features=features, random=Random.deterministic(2))
    assert found.contradicts(claim) == broken


def test_errors_have_three_parts() -> None:
    with session(visits()) as opened:
        watch = opened.watch(BY_REGION, at="t", spend=1, fed=True, **CLOCK)
        for rows in ({"region": ["N"]}, [1, 2], {"t": [1], "region": []}, "rows"):
            with pytest.raises(CloisterError) as caught:
                watch.feed(rows)
            assert caught.value.why
            assert caught.value.instead


BOX = (4.28, 51.97, 4.42, 52.05)
SQUARE = [[4.28, 51.97], [4.35, 51.97], [4.35, 52.05], [4.28, 52.05], [4.28, 51.97]]
SHAPE = {"type": "Polygon", "coordinates": [SQUARE]}
WEST = {"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {"name": "West"}, "geometry": SHAPE}]}


def trips(**terms: Any) -> cl.PrivateTable:
    columns = {
        "home": cl.Place(BOX, longitude="lon", latitude="lat", nullable=True),
        "district": cl.Place(regions=WEST, longitude="lon", latitude="lat"),
        "at": cl.Moment("2026-01-01", "2026-01-31"),
        "v": cl.Real(0, 100),
    }
    given = {
        "who": ["a", "a", "b", "c"],
        "lon": [4.30, 4.40, 4.30, 0.0],
        "lat": [52.0, 52.0, 52.0, 0.0],
        "at": ["2026-01-01T08:10:00", "2026-01-01T09:59:59.9", "2026-01-02T08:00:00+02:00", "2016-12-31T23:59:60"],
        "v": [1.0, 2.0, 3.0, 4.0],
    }
    return cl.PrivateTable(given, columns, unit="who", max_rows=2, **terms)


COMPUTED = [
    (
        "SELECT hour(at) AS h, COUNT(*) AS n FROM visits GROUP BY h",
        lambda found: [found["n"][8], found["n"][9], sum(found["n"])],
        [1, 1, 2],
    ),
    ("SELECT region(district) AS r, COUNT(*) AS n FROM visits GROUP BY r", lambda found: found["n"], [1, 1]),
    ("SELECT grid(home, 30000) AS c, COUNT(*) AS n FROM visits GROUP BY c", lambda found: sum(each for each in found["n"]), 2),
    ("SELECT SUM(v * 2) AS s FROM visits", lambda found: round(found["s"][0]), 6),
    ("SELECT SUM(x) AS s FROM (SELECT v * 2 AS x, at FROM visits WHERE v > 1) AS q", lambda found: round(found["s"][0]), 4),
    ("SELECT w, COUNT(*) AS n FROM visits JOIN weights ON visits.v = weights.v GROUP BY w", lambda found: found["n"], [1, 1]),
]


@pytest.mark.parametrize(("sql", "read", "expected"), COMPUTED)
@pytest.mark.parametrize("fed", [False, True])
def test_what_is_computed_of_each_row_is_watched_under_one_charge(
    sql: str, read: Any, expected: Any, fed: bool, tmp_path: Path
) -> None:
    """The steps are of days, by a column of moments; fed rows hold the two numbers of a place, and each process goes on."""
    weights = cl.PublicTable({"v": [1.0, 2.0], "w": [7, 8]})
    clock: dict[str, Any] = {
        "every": "1 day",
        "since": "2026-01-01",
        "until": "2026-01-04",
        "spend": 10**8,
        "at": "at",
        "fed": fed,
    }
    held = trips(version="1", size=4)
    rows = {"who": ["a", "a", "a"], "lon": [4.30, 4.40, 4.3], "lat": [52.0] * 3, "v": [1.0, 2.0, 9.0]}
    rows["at"] = ["2026-01-01T08:10:00", "2026-01-01T09:59:59", "2026-01-01T10:00"]  # the third is one too many of a
    for number in (1, 2):
        with Ledger(tmp_path / "b.db", key=KEY) as book:
            table = trips(population="t") if fed else held
            with cl.Session({"visits": table, "weights": weights}, cl.ZCDP(10**9), book) as opened:
                watch = opened.watch(sql, **clock)
                if fed and number == 1:
                    watch.feed(rows)  # type: ignore[union-attr]
                step = watch.step()
                assert step.number == number
                assert str(opened.spent) == "ρ = 100000000"
                if number == 1:
                    assert read(step.table.to_pydict()) == expected


class Seen(RunningTable):
    """Keeps the exact integers that each step hands it."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.seen: list[Any] = []

    def take(self, exact: Any, random: Random) -> Any:
        self.seen.append(exact)
        return super().take(exact, random)


def test_a_person_more_moves_the_steps_by_no_more_than_what_their_noise_is_scaled_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a computed key and a computed column: two rows, the most, at the bound, in one hour or in two."""
    monkeypatch.setattr(module, "RunningTable", Seen)
    sql = "SELECT hour(at) AS h, SUM(v * 2) AS s FROM visits GROUP BY h"

    def seen(moments: list[str]) -> tuple[dict[str, Any], Any]:
        with session(trips()) as opened:
            watch: Any = opened.watch(sql, at="at", spend=10**8, fed=True, **CLOCK)
            watch.feed({"at": moments, "who": ["a"] * len(moments), "v": [100.0] * len(moments)})
            list(watch.until("2026-01-01T12:00"))
            steps = watch._running.seen
            return {name: np.array([each[name] for each in steps]).astype(float) for name in steps[0]}, watch._part

    nothing, part = seen([])
    assert {len(each) for each in nothing.values()} == {12}
    for moments in (["2026-01-01T08:10"] * 2, ["2026-01-01T08:10", "2026-01-01T09:10"]):
        found, _ = seen(moments)
        scaled = [((found[name] - nothing[name]) ** 2).sum() / noise.sensitivity_squared for name, noise in part.noises.items()]
        assert 0 < max(scaled) <= 1


def test_days_outside_those_of_the_table_are_no_rows_of_it() -> None:
    table = cl.PrivateTable(
        {"day": ["2026-01-01"], "v": [1]}, {"v": cl.Integer(0, 9)}, during=("day", "2026-01-01", "2026-01-02")
    )
    with session(table) as opened:
        how: dict[str, Any] = {"every": "1 day", "since": "2026-01-01", "until": "2026-01-04", "spend": 10**8, "fed": True}
        watch = opened.watch("SELECT COUNT(*) AS n FROM visits", at="day", **how)
        watch.feed({"day": ["2026-01-01", "2026-01-03"], "v": [1, 1]})  # type: ignore[union-attr]
        assert [counted(step) for step in watch.until("2026-01-04")] == [[1], [0], [0]]


def test_what_is_worked_out_of_each_person_first_is_refused_where_rows_are_fed() -> None:
    sql = "SELECT AVG(k) AS m FROM (SELECT who, COUNT(*) AS k FROM visits GROUP BY who) AS q"
    with session(trips()) as opened, pytest.raises(UnsupportedQuery, match="works out something of each person's rows"):
        opened.watch(sql, at="at", spend=1, fed=True, **CLOCK)


def test_readings_without_a_moment_are_at_none_and_sums_beyond_64_bits_stay_exact() -> None:
    table = cl.PrivateTable({"v": []}, columns={"v": cl.Integer(0, 2**60)})
    with cl.Session({"r": table}, budget=cl.ZCDP(10**4)) as session:
        how: dict[str, Any] = {"fed": True, "at": "at", "every": "1 minute", "since": 0, "until": 120}
        watch = session.watch("SELECT SUM(v) AS s FROM r", spend=cl.ZCDP(5000), **how)
        watch.feed([{"v": 7}])
        watch.feed([])
        watch.feed([{"at": 5, "v": 2**60} for _ in range(20)])
        step = next(iter(watch.until(60)))
    [told], [margin] = step.table.to_pydict()["s"], step.table.margin().to_pydict()["s"]
    assert abs(told - 20 * 2**60) <= 5 * margin < 2**60


@pytest.mark.parametrize("kind", ["string", "object"])
def test_readings_of_nobody_do_not_count_whatever_a_frame_calls_them(kind: str) -> None:
    frame = pd.DataFrame({"at": [5, 6, 7], "who": pd.array(["a", None, None], dtype=kind), "v": [1, 1, 1]})
    table = cl.PrivateTable({"who": [], "v": []}, columns={"v": cl.Integer(0, 1)}, unit="who", max_rows=5)
    how: dict[str, Any] = {"fed": True, "at": "at", "every": "1 minute", "since": 0, "until": 120}
    with cl.Session({"r": table}, budget=cl.PureDP(5000)) as session:
        watch = session.watch("SELECT COUNT(*) AS n FROM r", spend=5000, **how)
        watch.feed(frame)
        assert next(iter(watch.until(60))).table.to_pydict() == {"n": [1]}


def test_a_category_in_which_no_value_is_a_moment_says_none_where_rows_are_fed() -> None:
    """The watch was charged, and every step was empty."""
    days = ["Mon", "Tue"], ["2025-12-31", "2026-01-01"]
    tables = [cl.PrivateTable({"day": [], "region": []}, {"day": cl.Category(each), **REGIONS}) for each in days]
    with session(tables[0]) as opened:
        with pytest.raises(InvalidParameter, match="none of its values lies in a step"):
            opened.watch(BY_REGION, at="day", spend=1, fed=True, **CLOCK)
        assert not opened.ledger.charges("visits")
    with session(tables[1]) as opened:
        watch: Any = opened.watch(BY_REGION, at="day", spend=10**8, fed=True, **CLOCK)
        watch.feed({"day": ["2026-01-01", "2025-12-31"], "region": ["N", "S"]})
        assert counted(watch.step()) == [1, 0]
