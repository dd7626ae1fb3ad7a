"""`risk`: against small tables counted by hand, and populations whose unique people are known."""

from __future__ import annotations

import datetime
import hashlib
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

from cloister.anonymize.classes import Classes
from cloister.anonymize.risks import digest_of, risk, risk_of
from cloister.anonymize.risks.uniques import estimate_uniques, negative_binomial, pitman, zayatz
from cloister.errors import InvalidParameter, UnknownColumn
from cloister.noise import Random

EMPLOYEES = {
    "age": ["20–29", "20–29", "20–29", "30–39", "30–39", "30–39", "40–49", "40–49"],
    "zip": ["47*", "47*", "47*", "479*", "479*", "479*", "476*", "476*"],
    "pay": [3, 4, 5, 6, 11, 8, 7, 9],
    "ill": ["ulcer", "gastritis", "cancer", "gastritis", "flu", "bronchitis", "flu", "flu"],
}
"""Eight people in three classes."""


def test_the_numbers_of_a_small_table_are_those_counted_by_hand() -> None:
    found = risk(EMPLOYEES, quasi=["age", "zip"], sensitive=["ill"])
    assert (found.rows, found.classes, found.k, found.l) == (8, 3, 2, 1)
    assert (found.prosecutor, found.journalist, found.marketer) == (0.5, 0.5, 3 / 8)
    assert found.sample_uniques == 0
    assert found.records_at_risk(0.4) == 2
    assert found.records_at_risk(0.5) == 0
    # the class of two has flu only, which is 3 of 8 elsewhere
    assert found.t == pytest.approx(5 / 8)
    assert found.beta == pytest.approx(5 / 3)
    assert found.delta == pytest.approx(math.log(8 / 3))
    assert found.alpha == 1
    assert found.sensitive["ill"].told == 2
    assert found.sensitive["ill"].worst[0] == ("flu", 1.0, 3 / 8)
    assert risk(EMPLOYEES, quasi=["age"], sensitive=["pay"]).sensitive["pay"].distance == "ordered"


def test_numbers_of_several_columns_are_those_of_the_worst() -> None:
    found = risk(EMPLOYEES, quasi=["age"], sensitive=["ill", "pay"])
    assert found.l == min(each.l for each in found.sensitive.values()) == 1
    assert found.t == max(each.t for each in found.sensitive.values())


def test_rows_of_stars_say_nothing() -> None:
    starred = {name: [*values, "*"] if name in ("age", "zip") else [*values, values[0]] for name, values in EMPLOYEES.items()}
    found = risk(starred, quasi=["age", "zip"], sensitive=["ill"])
    assert (found.rows, found.suppressed, found.k) == (8, 1, 2)
    everything = risk({"age": ["*", "*"]}, quasi=["age"])
    assert (everything.k, everything.suppressed) == (2, 0)


def test_a_missing_value_is_a_value() -> None:
    assert risk({"age": [30, None, None]}, quasi=["age"]).counts == (1, 1)
    found = risk({"age": [30, 30], "ill": [None, "flu"]}, quasi=["age"], sensitive=["ill"])
    assert found.l == 2


@pytest.mark.parametrize("kind", ["dict", "pandas", "polars", "arrow"])
def test_every_kind_of_frame_gives_the_same(kind: str) -> None:
    table: object = EMPLOYEES
    if kind == "pandas":
        table = pytest.importorskip("pandas").DataFrame(EMPLOYEES)
    elif kind == "polars":
        table = pl.DataFrame(EMPLOYEES)
    elif kind == "arrow":
        from arro3.core import Table

        table = Table.from_arrow(pl.DataFrame(EMPLOYEES))
    assert risk(table, quasi=["age"], sensitive=["ill"]).to_dict() == risk(EMPLOYEES, ["age"], ["ill"]).to_dict()


def test_with_a_list_of_the_population_journalist_and_marketer_risk_are_exact() -> None:
    people = {"age": ["20–29"] * 6 + ["30–39"] * 4 + ["40–49"] * 2 + ["50–59"]}
    found = risk(EMPLOYEES, quasi=["age"], population=people)
    assert found.journalist == 1 / 2
    assert found.marketer == pytest.approx((3 / 6 + 3 / 4 + 2 / 2) / 8)
    assert found.population_uniques is not None
    assert found.population_uniques.counted
    assert found.population_uniques.people == 1
    assert "not a list of the whole population" not in found.to_html()


def test_a_list_that_lacks_people_of_the_table_is_said_to() -> None:
    found = risk(EMPLOYEES, quasi=["age"], population={"age": ["20–29"] * 6 + ["30–39"]})
    assert found.matched is not None
    assert found.matched.outside == 5
    assert found.journalist == 1 / 2
    with pytest.raises(InvalidParameter, match="anybody"):
        risk(EMPLOYEES, quasi=["age"], population={"age": [25, 26]})


def test_unknown_columns_and_roles_are_refused() -> None:
    with pytest.raises(UnknownColumn, match="town"):
        risk(EMPLOYEES, quasi=["town"])
    for quasi, sensitive in (([], []), ("age", []), (["age", "age"], []), (["age"], ["age"])):
        with pytest.raises(InvalidParameter):
            risk(EMPLOYEES, quasi=quasi, sensitive=sensitive)
    with pytest.raises(InvalidParameter, match="8 rows"):
        risk(EMPLOYEES, quasi=["age"], population=7)
    with pytest.raises(InvalidParameter):
        risk(EMPLOYEES, quasi=["age"]).records_at_risk(20)


def test_an_empty_table_has_no_risk() -> None:
    found = risk({"age": pl.Series([], dtype=pl.Int64), "ill": pl.Series([], dtype=pl.String)}, ["age"], ["ill"])
    assert (found.rows, found.k, found.l, found.prosecutor, found.marketer) == (0, 0, None, 0.0, 0.0)
    assert "All rows of the table are suppressed" in str(found)
    assert found.to_html()


def test_the_digest_is_that_of_the_saved_file(tmp_path: Path) -> None:
    frame = pl.DataFrame(EMPLOYEES)
    frame.write_csv(tmp_path / "table.csv")
    saved = hashlib.sha256((tmp_path / "table.csv").read_bytes()).hexdigest()
    assert risk(frame, quasi=["age"]).digest == saved
    assert risk(tmp_path / "table.csv", quasi=["age"]).digest == saved
    assert risk_of(Classes.of(np.array([0]), 1)).digest is None


def test_the_page_is_whole_without_a_script_and_escapes_what_stands_in_the_table() -> None:
    nasty = {"age<b>": ["<script>alert(1)</script>"] * 2, "ill&": ["<img src=x onerror=y>", "flu"]}
    page = risk(nasty, quasi=["age<b>"], sensitive=["ill&"]).to_html(of="<people>.csv")
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;people&gt;.csv" in page
    for word in ("prosecutor", "Journalist", "Signature", "Date", "differentially private", "SHA-256"):
        assert word.lower() in page.lower()
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    for drawing in page.split("<svg")[1:]:
        ElementTree.fromstring("<svg" + drawing.split("</svg>")[0] + "</svg>")


def population_of(classes: int, seed: int, shape: float) -> np.ndarray:
    """A population of people in classes whose sizes are skewed: class numbers, a person each."""
    random = Random.deterministic(seed)
    weights = (random.below(1 << 30, classes).astype(float) + 1) / (1 << 30)
    weights = weights**-shape
    people = np.maximum((weights / weights.mean() * 3).astype(int), 1)
    return np.repeat(np.arange(classes), people)


@pytest.mark.parametrize(("fraction", "shape"), [(0.02, 0.5), (0.05, 0.7), (0.2, 0.5), (0.4, 0.7)])
def test_estimated_uniques_are_of_the_size_of_the_true_ones(fraction: float, shape: float) -> None:
    """A sample of a population whose unique people were counted; the models err by tens of per cent, not by factors of ten."""
    people = population_of(20_000, 7, shape)
    true = int((np.bincount(people) == 1).sum())
    sample = people[Random.deterministic(8).permutation(len(people))[: int(fraction * len(people))]]
    sizes, counts = np.unique(np.unique(sample, return_counts=True)[1], return_counts=True)
    found = estimate_uniques(sizes, counts, len(people))
    assert true / 3 < found.people < true * 3, (found, true)


def test_where_all_kinds_are_equally_common_estimates_are_far_too_high() -> None:
    """What the page says of them: nobody can tell a sample of many small classes from one of unique people."""
    people = Random.deterministic(9).below(20_000, 100_000)
    true = int((np.bincount(people) == 1).sum())
    sizes, counts = np.unique(np.unique(people[:5_000], return_counts=True)[1], return_counts=True)
    found = estimate_uniques(sizes, counts, 100_000)
    assert found.people > 20 * true > 10_000


def test_nan_and_null_are_one_value_beside_a_population() -> None:
    rows = pl.DataFrame({"x": pl.Series([1.0, math.nan, None], strict=False)})
    everybody = pl.DataFrame({"x": pl.Series([1.0, 1.0, math.nan, None], strict=False)})
    found = risk(rows, ["x"], population=everybody)
    assert (found.k, found.classes, found.journalist, found.marketer) == (1, 2, 0.5, 0.5)


def test_pitmans_estimate_solves_its_likelihood_equations() -> None:
    """The same maximum by brute force over a grid."""
    sizes, counts = np.array([1, 2, 3, 10, 40]), np.array([80, 12, 6, 3, 2])
    u, n = int(counts.sum()), int((sizes * counts).sum())

    def likelihood(theta: float, alpha: float) -> float:
        first = sum(math.log(theta + i * alpha) for i in range(1, u))
        second = sum(math.log(theta + i) for i in range(1, n))
        third = sum(c * sum(math.log(i - alpha) for i in range(1, s)) for s, c in zip(sizes, counts, strict=True))
        return first - second + third

    grid = [(t, a) for t in np.linspace(1, 60, 60) for a in np.linspace(0.02, 0.98, 49)]
    theta, alpha = max(grid, key=lambda point: likelihood(*point))
    expected = math.gamma(theta + 1) / math.gamma(theta + alpha) * 10_000**alpha
    assert pitman(sizes, counts, 10_000) == pytest.approx(expected, rel=0.05)


def test_the_models_know_their_ends() -> None:
    ones, many = np.array([1]), np.array([50])
    assert pitman(ones, many, 5_000) == 5_000
    assert zayatz(ones, many, 5_000) == pytest.approx(5_000)
    assert negative_binomial(ones, many, 5_000) is None
    assert estimate_uniques(ones, many, 50).counted
    # a whole population of pairs has nobody alone, and a half of it says so roughly
    sizes, counts = np.array([1, 2]), np.array([500, 250])
    assert (negative_binomial(sizes, counts, 2_000) or 0) < 700


def test_the_digest_does_not_depend_on_the_kind_of_frame() -> None:
    from cloister.anonymize.frames import read_frame

    assert digest_of(read_frame(EMPLOYEES)) == digest_of(read_frame(pl.DataFrame(EMPLOYEES)))


@pytest.mark.parametrize("kind", [pl.UInt64, pl.Int64, pl.Int128])
def test_whole_numbers_of_two_types_are_compared_to_the_last_digit(kind: type[pl.DataType]) -> None:
    first = 2**53
    table = pl.DataFrame({"id": pl.Series([first, first + 1], dtype=pl.Int64)})
    everybody = pl.DataFrame({"id": pl.Series([first + n for n in range(4)], dtype=kind)})
    found = risk(table, quasi=["id"], population=everybody)
    assert (found.journalist, found.marketer) == (1.0, 1.0)


MIDNIGHT = datetime.datetime(2020, 1, 1)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ([True, False], [1, 1, 0, 0]),
        ([1.0, 0.0], [True, True, False, False]),
        ([MIDNIGHT.date()], [MIDNIGHT, MIDNIGHT, MIDNIGHT.replace(hour=1)]),
        ([MIDNIGHT.replace(tzinfo=datetime.UTC)], [MIDNIGHT, MIDNIGHT, None]),
        (pl.Series([MIDNIGHT]).cast(pl.Datetime("ns")), [MIDNIGHT, MIDNIGHT]),
        ([True], ["true", "true", "1"]),
        ([MIDNIGHT.date()], ["2020-01-01", "2020-01-01"]),
    ],
    ids=str,
)
def test_one_value_of_two_types_is_one(ours: Any, theirs: Any) -> None:
    """Truth values and 0 or 1, days and times, were compared as texts, and nobody looked like anybody."""
    assert risk(pl.DataFrame({"q": ours}), quasi=["q"], population=pl.DataFrame({"q": theirs})).journalist == 0.5


def test_a_whole_number_and_its_double_are_one() -> None:
    table = pl.DataFrame({"id": [1, 2]})
    found = risk(table, quasi=["id"], population=pl.DataFrame({"id": [1.0, 2.0, 2.0, 2.5, None]}))
    assert (found.journalist, found.marketer) == (1.0, 0.75)
