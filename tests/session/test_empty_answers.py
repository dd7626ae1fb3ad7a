"""What was charged can be opened: every statistic in an answer whose groups are all gone, in every format; and in one whose are
not."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import cloister as cl
from cloister.noise import Random
from cloister.session import Release
from cloister.session.releases.drawing import svg
from tests.tiers import by_day_and_night

ROWS = {
    "who": list(range(600)),
    "sex": ["F", "M", "M"] * 200,
    "town": ["Delft", "Leiden"] * 300,
    "age": [20 + n % 50 for n in range(600)],
    "pay": [float(n % 97) * 50 for n in range(600)],
    "ok": [n % 3 == 0 for n in range(600)],
    "born": ["1990-01-01", "2001-05-05"] * 300,
}
COLUMNS = {
    "sex": cl.Category(["F", "M"]),
    "town": cl.Text(),
    "age": cl.Integer(0, 100),
    "pay": cl.Real(0, 5000, step=1),
    "ok": cl.Boolean(),
    "born": cl.Date("1980-01-01", "2010-12-31"),
}
LISTED = ("MODE(sex)", "MODE(ok)")  # values of a list, which no chart can draw
STATISTICS = (
    *("COUNT(*)", "COUNT(age)", "COUNT(DISTINCT age)", "COUNT(DISTINCT who)", "SUM(age)", "SUM(pay)", "AVG(age)", "AVG(ok)"),
    *("MIN(age)", "MAX(pay)", "MEDIAN(age)", "QUANTILE_CONT(pay, 0.9)", "MEDIAN(born)", "MIN(born)", "MODE(age)", *LISTED),
    *("VARIANCE(age)", "STDDEV_POP(pay)", "CORR(age, pay)", "COVAR_SAMP(age, pay)", "REGR_SLOPE(age, pay)"),
    *("REGR_INTERCEPT(age, pay)", "REGR_R2(age, pay)", "REGR_COUNT(age, pay)", "COUNT(*) FILTER (WHERE age > 30)"),
    *("SUM(age) / COUNT(*)", "ROUND(AVG(age), 1)", "COUNT(*) * 2", "COALESCE(SUM(pay) / (COUNT(*) - COUNT(*)), 0)"),
)
OF_LEAVES = ("MIN", "MAX", "MEDIAN", "QUANTILE", "MODE")
FORMATS: dict[str, Callable[[Release], Any]] = {
    "str": str,
    "repr": repr,
    "html": lambda answer: answer._repr_html_(),
    "iter": list,
    "pydict": lambda answer: answer.to_pydict(),
    "pandas": lambda answer: answer.to_pandas(),
    "polars": lambda answer: answer.to_polars(),
    "arrow": lambda answer: answer.to_arrow(),
    "margins": lambda answer: (answer.margin().to_pydict(), answer.margin().to_pandas(), answer.margin().to_polars()),
    "margins in Arrow": lambda answer: answer.margin().to_arrow(),
    "joint margins": lambda answer: answer.margin(0.999, joint=True).to_pydict(),
    "drowned": lambda answer: answer.drowned().to_pydict(),
    "wire": lambda answer: repr(Release.from_json(answer.to_json())) == repr(answer) or pytest.fail("another answer came back"),
}
ENDS = {
    "sex": ("HAVING COUNT(*) > 100000", "HAVING FALSE", "LIMIT 0", "ORDER BY 1 LIMIT 5 OFFSET 10"),
    "town": ("HAVING COUNT(*) > 100000",),
}


@pytest.fixture(scope="module")
def session() -> Iterator[cl.Session]:
    table = cl.PrivateTable(ROWS, columns=COLUMNS, unit="who", max_rows=1)
    with cl.Session({"t": table}, budget=cl.ApproxDP(10_000, "0.1"), random=Random.deterministic(3)) as opened:
        yield opened


def asked(session: cl.Session, key: str, end: str) -> dict[str, Release]:
    """One answer for each statistic, all from one charge: columns of the same release."""
    wanted = [each for each in STATISTICS if key == "sex" or not each.startswith(OF_LEAVES)]  # refused of undeclared groups
    shown = ", ".join(f"{each} AS v{place}" for place, each in enumerate(wanted))
    answer = session.sql(f"SELECT {key}, {shown} FROM t GROUP BY {key} {end}", spend=20)
    return {each: answer.select({key: key, "v": f"v{place}"}) for place, each in enumerate(wanted)}


@pytest.mark.parametrize(("key", "end"), [(key, end) for key, ends in ENDS.items() for end in ends])
@by_day_and_night("part", 3, 1)
def test_an_answer_without_groups_opens_in_every_format(session: cl.Session, key: str, end: str, part: int) -> None:
    """All statistics where `HAVING` leaves no group; by day a third of them at each other end, in turn."""
    turn = ENDS[key].index(end)
    for statistic, answer in [*asked(session, key, end).items()][turn % part :: part if turn else 1]:
        assert answer.num_rows == len(answer) == 0, statistic
        for name, opened in FORMATS.items():
            try:
                opened(answer)
            except Exception as error:
                pytest.fail(f"{statistic} as {name}: {error!r}")
        assert answer.to_pydict() == {key: [], "v": []}
        assert answer.margin().to_pydict() == {key: [], "v": []}


def test_an_answer_with_groups_has_the_types_of_one_without(session: cl.Session) -> None:
    full, gone = asked(session, "sex", "HAVING COUNT(*) > 0"), asked(session, "sex", "HAVING FALSE")
    for statistic, answer in full.items():
        assert answer.num_rows == 2
        for name, opened in FORMATS.items():
            if name != "html" or statistic in ("MEDIAN(born)", *LISTED):  # which draws the chart
                opened(answer)
        assert answer.to_arrow().schema == gone[statistic].to_arrow().schema, statistic
        assert answer.to_polars().schema == gone[statistic].to_polars().schema, statistic


def test_grouping_sets_without_groups_open(session: cl.Session) -> None:
    for end in ("HAVING COUNT(*) > 100000", "ORDER BY n LIMIT 0"):
        answer = session.sql(f"SELECT sex, ok, COUNT(*) AS n, SUM(age) AS v FROM t GROUP BY ROLLUP (sex, ok) {end}", spend=1)
        for opened in FORMATS.values():
            opened(answer)
        assert "no group is left" in svg(answer.plot().to_dict())


def test_charts_are_drawn_of_numbers_and_dates(session: cl.Session) -> None:
    """Whether groups are left or not; what has no place on an axis is refused by name."""
    for end, words in (("HAVING COUNT(*) > 0", "error bars"), ("HAVING FALSE", "no group is left")):
        found = asked(session, "sex", end)
        for statistic, answer in found.items():
            if statistic in LISTED:
                with pytest.raises(cl.CloisterError, match="shows numbers and dates"):
                    answer.plot()
                continue
            assert words in str(answer.plot().to_dict()["title"]), statistic
        for statistic in ("COUNT(*)", "MEDIAN(born)", "MODE(age)"):
            assert svg(found[statistic].plot().to_dict()).startswith("<svg")


@pytest.mark.parametrize("ages", [[40] * 300, [], [40]], ids=["all alike", "no row", "one row"])
def test_a_margin_without_an_end_opens_in_every_format(ages: list[int]) -> None:
    """The slope of a line over values that are all alike, or of next to no rows: beside one whose margin is known."""
    rows = {
        "sex": ["F"] * len(ages) + ["M"] * 300,
        "age": [*ages, *range(20, 60), *range(20, 60)] + [30] * 220,
        "pay": [100 * (n % 50) for n in range(len(ages) + 300)],
    }
    table = cl.PrivateTable(rows, columns={name: COLUMNS[name] for name in rows})
    with cl.Session({"t": table}, budget=cl.PureDP(10_000), random=Random.deterministic(5)) as opened:
        answer = opened.sql("SELECT sex, REGR_SLOPE(pay, age) AS v, CORR(pay, age) AS r FROM t GROUP BY sex", spend=300)
    slopes, correlations = (answer.margin()[name].tolist() for name in ("v", "r"))
    assert math.isinf(slopes[0])
    assert math.isfinite(slopes[1])
    assert correlations[0] >= 1 > correlations[1] > 0
    for show in FORMATS.values():
        show(answer)
    assert "± inf" in str(answer)
    back = Release.from_json(json.dumps(json.loads(answer.to_json()), allow_nan=False))  # no word that is not JSON
    assert back.margin()["v"].tolist() == slopes
    assert svg(answer.select({"sex": "sex", "v": "v"}).plot().to_dict()).startswith("<svg")
