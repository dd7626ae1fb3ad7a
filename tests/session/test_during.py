"""Tables of spans of days in a session: one source is one population, whatever its days are called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.noise import Random

ROWS = "who,day,cost\n" + "".join(f"p{n % 40},2026-{month:02}-15,{n % 9}\n" for month in (1, 2) for n in range(40))


def span(path: Path, month: int, **options: Any) -> cl.PrivateTable:
    days = (f"2026-{month:02}-01", f"2026-{month:02}-28")
    columns = {"cost": cl.Integer(0, 9), "day": cl.Date(*days)}
    return cl.PrivateTable(path, columns, unit="who", max_rows=1, during=("day", *days), **options)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "visits.csv"
    found.write_text(ROWS)
    return found


def test_two_spans_of_one_file_spend_one_budget(path: Path) -> None:
    """Spans may overlap, and nobody answers for it here; a hub does, and gives each a budget."""
    with cl.Session({"january": span(path, 1)}, budget=cl.PureDP(10), random=Random.deterministic(3)) as session:
        session.add("february", span(path, 2))
        for name in ("january", "february"):
            [n] = session.sql(f"SELECT COUNT(*) AS n FROM {name}", spend="2").to_pydict()["n"]
            assert n == pytest.approx(40, abs=10)
        assert session.spent_by == {"january": cl.PureDP(4)}
        with pytest.raises(cl.CloisterError, match="keeps what it has spent"):
            session.add("again", span(path, 2, population="others"), cl.PureDP(9))


def test_the_same_question_to_other_days_is_another_question(path: Path) -> None:
    tables = {"january": span(path, 1, population="patients"), "february": span(path, 2, population="patients")}
    with cl.Session(tables, budget=cl.PureDP(10), random=Random.deterministic(3)) as session:
        first, second = (session.explain(f"SELECT COUNT(*) AS n FROM {name}", spend="2") for name in tables)
        assert first.parts[0].shape.fingerprint != second.parts[0].shape.fingerprint
        both = session.sql("SELECT COUNT(*) AS n FROM january JOIN february ON january.who = february.who", spend="5")
        assert both.to_pydict()["n"][0] == pytest.approx(40, abs=10)


def test_a_method_that_reads_rows_reads_those_of_the_span(path: Path) -> None:
    with cl.Session({"february": span(path, 2)}, budget=cl.PureDP(10)) as session:
        rows = session.registry.snapshot.prepare("february").rows(["day", "cost"], unit=True)
        assert len(rows["cost"]) == 40
        low, high = (cl.Date("2026-02-01", "2026-02-28").low_code, cl.Date("2026-02-01", "2026-02-28").high_code)
        assert rows["day"].min() >= low
        assert rows["day"].max() <= high
