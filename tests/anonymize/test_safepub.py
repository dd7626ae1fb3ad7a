"""SafePub: its δ by two routes, its promise audited on neighbouring tables, and the twins that break it."""

from __future__ import annotations

import math
from datetime import date
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cloister as cl
from cloister.anonymize.frames import read_frame
from cloister.anonymize.hierarchies.hierarchy import Hierarchy
from cloister.anonymize.safepub import SafePub, publish_safely
from cloister.anonymize.safepub.parameters import delta_of, largest_rate, least_k
from cloister.anonymize.safepub.safepub import choose_levels, nodes_of, scores
from cloister.attacks import audit
from cloister.errors import BudgetExceeded, InvalidParameter, MissingBound, UnknownColumn
from cloister.noise import Random

ONE = Fraction(1)
AGES = {"age": cl.Integer(0, 99)}


def excess(k: int, epsilon: float, rate: float, most: int) -> float:
    """δ by its definition: over all pairs of m − 1 and m people, the mass that e^ε times the other world does not cover."""
    worst = 0.0
    for m in range(1, most):
        chances = []
        for people in (m, m - 1):
            each = [math.comb(people, j) * rate**j * (1 - rate) ** (people - j) if j <= people else 0.0 for j in range(m + 1)]
            chances.append([sum(each[:k]), *each[k:]])
        for one, other in (chances, chances[::-1]):
            worst = max(worst, sum(max(p - math.exp(epsilon) * q, 0.0) for p, q in zip(one, other, strict=True)))
    return worst


@pytest.mark.parametrize(
    ("k", "epsilon", "share"), [(1, "1", 1), (5, "1", 1), (20, "0.5", 1), (12, "1.5", "0.5"), (30, "0.3", 1)]
)
def test_delta_is_that_of_the_definition(k: int, epsilon: str, share: Any) -> None:
    rate = largest_rate(Fraction(epsilon)) * Fraction(share)
    found = float(delta_of(k, Fraction(epsilon), rate))
    expected = excess(k, float(Fraction(epsilon)), float(rate), 260)
    assert found == pytest.approx(expected, rel=1e-9)
    assert found >= expected * (1 - 1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-6"), ("0.5", "1e-5"), ("2", "1e-9"), ("0.2", "1e-3")])
def test_k_is_the_least_that_is_enough(epsilon: str, delta: str) -> None:
    rate = largest_rate(Fraction(epsilon))
    k = least_k(Fraction(epsilon), Fraction(delta), rate)
    assert delta_of(k, Fraction(epsilon), rate) <= Fraction(delta) < delta_of(k - 1, Fraction(epsilon), rate)


def test_a_larger_rate_than_the_largest_is_refused() -> None:
    assert largest_rate(ONE) < Fraction(1 - math.exp(-1)) + Fraction(1, 10**12)
    with pytest.raises(InvalidParameter, match="one person less"):
        delta_of(10, ONE, largest_rate(ONE) + Fraction(1, 1000))
    with pytest.raises(InvalidParameter):
        least_k(ONE, Fraction(0), largest_rate(ONE))


@cache
def one_class_each(runs: int, delta: str, sampling: str | None = None) -> SafePub:
    return SafePub(1, delta, columns={"class": cl.Integer(0, runs - 1)}, levels={"class": 0}, sampling=sampling)


def counts(safe: SafePub, people: int, runs: int, random: Random) -> np.ndarray:
    """As many runs as there are classes, each of as many people: classes say nothing of one another."""
    released = safe.release([np.repeat(np.arange(runs, dtype=np.int64), people)], random)
    found = np.zeros(runs, dtype=np.int64)
    found[released.labels["class"]] = released.counts
    return found


def worst_size(safe: SafePub) -> int:
    """Where a class of m people tells most of the last one."""
    beta, factor = float(safe.sampling), math.exp(float(safe.epsilon))

    def over(m: int) -> float:
        total = 0.0
        for j in range(safe.k, m + 1):
            p = math.comb(m, j) * beta**j * (1 - beta) ** (m - j)
            total += max(p * (1 - factor * (m - j) / (m * (1 - beta))), 0.0)
        return total

    return max(range(safe.k, 4 * safe.k), key=over)


@pytest.mark.statistical
def test_an_audit_finds_what_is_promised_and_no_more() -> None:
    safe = one_class_each(25_000, "0.03")
    size = worst_size(safe)
    found = audit(
        lambda people, n, random: np.concatenate(
            [counts(safe, people, 25_000, random)[: min(25_000, n - start)] for start in range(0, n, 25_000)]
        ),
        size - 1,
        size,
        runs=200_000,
        epsilon=1,
        random=Random.deterministic(5),
    )
    assert not found.contradicts(safe.guarantee)
    assert found.contradicts(cl.ApproxDP(1, safe.reached / 2))


@pytest.mark.statistical
def test_a_class_that_is_shown_whole_is_caught() -> None:
    """The twin without a k: a count that only one more person can reach."""
    safe = one_class_each(25_000, "0.03")

    def broken(people: int, n: int, random: Random) -> np.ndarray:
        taken = np.zeros(n, dtype=np.int64)
        for _ in range(people):
            taken += random.below(1000, n) < int(1000 * safe.sampling)
        return taken

    found = audit(broken, 1, 2, runs=40_000, epsilon=1, random=Random.deterministic(6))
    assert found.contradicts(safe.guarantee)


def choosing_by_looking(people: list[int], n: int, random: Random) -> np.ndarray:
    """The broken twin: the finest level on which no row of *this* table is lost, then the same sample and the same k."""
    ladders = SafePub(1, "1e-6", columns=AGES, hierarchies={"age": Hierarchy.intervals(10, 50)}).ladders
    codes = np.array(people, dtype=np.int64)
    level = next(
        level
        for level in range(ladders["age"].height)
        if all(np.bincount(ladders["age"].codes[level][codes])[np.unique(ladders["age"].codes[level][codes])] >= 58)
    )
    safe = SafePub(1, "1e-6", columns=AGES, hierarchies={"age": Hierarchy.intervals(10, 50)}, levels={"age": level})
    return np.array([safe.release([codes], random).levels["age"] for _ in range(n)])


@pytest.mark.statistical
def test_a_level_that_is_chosen_by_looking_is_caught() -> None:
    right = [20] * 80 + [25] * 58
    left = right[:-1]
    found = audit(choosing_by_looking, left, right, runs=1_000, epsilon=1, random=Random.deterministic(7))
    assert found.contradicts(cl.ApproxDP(1, "1e-6"))
    assert found.delta > 0.8


@pytest.mark.statistical
def test_a_level_that_is_chosen_by_the_exponential_mechanism_is_not() -> None:
    safe = SafePub(1, "0.01", columns=AGES, hierarchies={"age": Hierarchy.intervals(10, 50)}, choosing="0.2")
    right = np.array([20] * 80 + [25] * 60, dtype=np.int64)
    found = audit(
        lambda codes, n, random: np.array(
            [choose_levels([codes], safe.ladders, epsilon=safe.choosing, threshold=50, random=random)[0] for _ in range(n)]
        ),
        right[:-1],
        right,
        runs=1_200,
        random=Random.deterministic(8),
    )
    assert not found.contradicts(cl.PureDP("0.2"))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=30),
    st.integers(0, 5),
    st.integers(0, 2),
    st.integers(0, 6),
)
def test_one_row_more_moves_a_score_by_two_thousand_at_most_and_never_down(
    rows: list[tuple[int, int]], age: int, sex: int, threshold: int
) -> None:
    safe = SafePub(
        1,
        "0.1",
        columns={"age": cl.Integer(0, 4), "sex": cl.Category(["F", "M"])},
        hierarchies={"age": Hierarchy.intervals(2)},
    )
    nodes = nodes_of(safe.ladders)

    def score(table: list[tuple[int, int]]) -> np.ndarray:
        codes = [np.array([row[0] for row in table], dtype=np.int64), np.array([row[1] for row in table], dtype=np.int64)]
        return scores(codes, safe.ladders, nodes, threshold) if table else np.zeros(len(nodes), dtype=np.int64)

    moved = score([*rows, (age, sex)]) - score(rows)
    assert (moved >= 0).all()
    assert (moved <= 2_000).all()


@pytest.mark.parametrize("columns", [2, 7, 8, 9, 10, 11])
def test_a_row_of_another_kind_moves_no_other_class(columns: int) -> None:
    """A mean of floats is added up in another order where there is one kind of rows and where there are two: its last bit, in
    thousandths, times all rows of a class."""
    names = [f"c{place}" for place in range(columns)]
    flat = {name: Hierarchy.flat() for name in names[1:]}
    for most in (9, 99, 100, 200, 500, 999, 1_000):
        declared = dict.fromkeys(names, cl.Integer(1, most))
        safe = SafePub(1, "1e-6", columns=declared, hierarchies={"c0": Hierarchy.intervals(2), **flat})
        nodes = nodes_of(safe.ladders)
        alone, both = (
            scores([np.array([3] * 100_000 + [4] * more, dtype=np.int64)] * columns, safe.ladders, nodes, 50) for more in (0, 1)
        )
        assert (both - alone >= 0).all()
        assert (both - alone <= 2_000).all()


def test_only_classes_of_k_are_released_and_nothing_of_the_order() -> None:
    safe = SafePub(1, "1e-3", columns=AGES, hierarchies={"age": Hierarchy.intervals(10, 50)}, levels={"age": 1})
    ages = [25] * 400 + [37] * 300 + [61] * safe.k + [80]
    released = safe.fit_transform({"age": ages, "name": ["x"] * len(ages)}, random=Random.deterministic(2))
    assert set(released) == {"age"}
    assert set(released["age"]) == {"20–29", "30–39"}
    assert released["age"] == sorted(released["age"])
    assert all(count >= safe.k for count in safe.released_.counts)
    turned = safe.fit_transform({"age": ages}, random=Random.deterministic(2))
    assert turned == released


def test_what_is_not_declared_counts_as_missing_and_numbers_are_clamped() -> None:
    safe = SafePub(
        2,
        "0.1",
        columns={"sex": cl.Category(["F", "M"]), "age": cl.Integer(20, 60)},
        levels={"sex": 0, "age": 0},
    )
    rows = {"sex": ["F"] * 50 + ["X"] * 50 + [None] * 50, "age": [60] * 50 + [99] * 100}
    released = safe.fit_transform(rows, random=Random.deterministic(3))
    assert set(zip(released["sex"], released["age"], strict=True)) == {("F", 60), (None, 60)}


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_every_kind_of_frame_comes_back(kind: str) -> None:
    import polars as pl

    rows: Any = pl.DataFrame({"age": [30] * 500})
    if kind == "pandas":
        pandas = pytest.importorskip("pandas")
        rows = pandas.DataFrame({"age": [30] * 500})
    elif kind == "arrow":
        from arro3.core import Table

        rows = Table.from_arrow(rows)
    safe = SafePub(1, "1e-3", columns=AGES, levels={"age": 0})
    released = safe.fit_transform(rows, random=Random.deterministic(4))
    assert type(released).__module__.split(".")[0] == type(rows).__module__.split(".")[0]
    assert 200 < len(pl.DataFrame(released)) < 400


def test_levels_that_are_chosen_are_paid_for() -> None:
    safe = SafePub(2, "1e-5", columns={"age": cl.Integer(0, 99)}, hierarchies={"age": Hierarchy.intervals(10, 50)})
    assert (safe.choosing, safe.rest, safe.guarantee) == (Fraction(2, 5), Fraction(8, 5), cl.ApproxDP(2, "1e-5"))
    assert safe.reached <= Fraction(1, 10**5)
    ages = [20 + n % 40 for n in range(20_000)]
    released = safe.fit_transform({"age": ages}, random=Random.deterministic(5))
    assert safe.released_.levels["age"] == 0
    assert len(released["age"]) > 10_000


def test_an_empty_table_releases_nothing() -> None:
    import polars as pl

    for levels in ({"age": 0}, None):
        safe = SafePub(1, "1e-3", columns=AGES, levels=levels)
        released = safe.fit_transform(pl.DataFrame({"age": pl.Series([], dtype=pl.Int64)}), random=Random.deterministic(6))
        assert released.height == 0


@pytest.mark.parametrize(
    "more",
    [
        {"delta": 0},
        {"epsilon": 0},
        {"columns": {}},
        {"levels": {"age": 9}},
        {"levels": {"age": True}},
        {"levels": {"town": 0}},
        {"hierarchies": {"town": Hierarchy.flat()}},
        {"hierarchies": {"age": Hierarchy.learnt()}},
        {"choosing": "1"},
        {"levels": {"age": 0}, "choosing": "0.1"},
        {"sampling": "0.9", "levels": {"age": 0}},
        {"sampling": 0, "levels": {"age": 0}},
        {"epsilon": 19, "levels": {"age": 0}},
        {"epsilon": 1_000, "levels": {"age": 0}},
        {"delta": "1e-400", "levels": {"age": 0}},
        {"sampling": "1e-400", "levels": {"age": 0}},
    ],
)
def test_what_would_break_the_promise_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        SafePub(**({"epsilon": 1, "delta": "1e-6", "columns": AGES} | more))


def test_columns_without_a_domain_are_refused() -> None:
    with pytest.raises(MissingBound, match="town"):
        SafePub(1, "1e-6", columns={"town": cl.Text()})
    with pytest.raises(MissingBound, match="pay"):
        SafePub(1, "1e-6", columns={"pay": cl.Integer(0, 10**9)})
    with pytest.raises(UnknownColumn):
        SafePub(1, "1e-6", columns=AGES).fit_transform({"sex": ["F"]})
    wide = {f"c{n}": cl.Integer(0, 99) for n in range(8)}
    with pytest.raises(InvalidParameter, match="combinations"):
        SafePub(1, "1e-6", columns=wide)


def test_a_session_charges_it_and_gives_what_the_mechanism_gives() -> None:
    ages, sexes = [20 + n % 3 for n in range(3_000)], ["F", "M", None] * 1_000
    columns = {"age": cl.Integer(0, 99), "sex": cl.Category(["F", "M"])}
    table = cl.PrivateTable({"age": ages, "sex": sexes}, columns)
    safe = SafePub(1, "1e-6", columns=columns, levels={"age": 0, "sex": 0})
    with cl.Session({"people": table}, budget=cl.ApproxDP("1.5", "1e-5"), random=Random.deterministic(1)) as session:
        found = publish_safely(session, "people", safe)
        assert session.spent == cl.ApproxDP(1, "1e-6")
        assert set(found.table["sex"].to_list()) == {"F", "M", None}
        assert found.table.columns == ["age", "sex"]
        assert found.marked
        with pytest.raises(BudgetExceeded):
            publish_safely(session, "people", safe)


def test_a_session_refuses_a_table_of_several_rows_a_person_and_other_declarations() -> None:
    columns = {"who": cl.Text(), "age": cl.Integer(0, 99)}
    table = cl.PrivateTable({"who": ["a", "a"], "age": [30, 31]}, columns, unit="who", max_rows=2)
    once = cl.PrivateTable({"who": ["a", "b"], "age": [30, 31]}, columns)
    safe = SafePub(1, "1e-6", columns=AGES, levels={"age": 0})
    with cl.Session({"visits": table, "people": once}, budget=cl.ApproxDP(5, "1e-5"), random=Random.deterministic(1)) as session:
        with pytest.raises(InvalidParameter, match="several rows"):
            publish_safely(session, "visits", safe)
        other = SafePub(1, "1e-6", columns={"age": cl.Integer(0, 50)}, levels={"age": 0})
        with pytest.raises(InvalidParameter, match=r"columns=\{'age': cl.Integer\(low=0, high=99, nullable=False\)\}"):
            publish_safely(session, "people", other)
        named = SafePub(1, "1e-6", columns={"who": cl.Category(["a", "b"])})  # no levels of a text: the session has to say more
        with pytest.raises(InvalidParameter, match=r"cl.PrivateTable\(…, columns=\{'who': cl.Category\(\['a', 'b'\]\)\}\)"):
            publish_safely(session, "people", named)
        assert session.spent == cl.ApproxDP(0, 0)


@pytest.mark.parametrize("people", [3, 4000])
def test_the_types_of_its_columns_are_those_declared_whatever_is_released(people: int) -> None:
    columns = {"age": cl.Integer(0, 1), "pay": cl.Real(0, 1, step=1), "sex": cl.Category(["F", "M"]), "smokes": cl.Boolean()}
    table = {"age": [0] * people, "pay": [1.0] * people, "sex": ["F"] * people, "smokes": [None] * people}
    method = SafePub(1, "1e-6", columns=columns, levels=dict.fromkeys(columns, 0))
    codes = [method._codes(read_frame(table), name) for name in columns]
    released = method.frame_of(method.release(codes, Random.deterministic(1)))
    assert (released.height > 0) == (people > 3)
    assert [str(each) for each in released.dtypes] == ["Int64", "Float64", "String", "Boolean"]


def test_values_of_no_declared_type_count_or_are_refused_without_being_shown() -> None:
    method = SafePub(1, "1e-6", columns=AGES, levels={"age": 0})
    assert set(method.fit_transform({"age": [10**30, 7] * 400}, random=Random.deterministic(1))["age"]) == {7, 99}
    with pytest.raises(InvalidParameter, match="'age' is invalid: polars") as refused:
        method.fit_transform({"age": [[10**9], [7]]})
    assert "1000" not in str(refused.value)


@pytest.mark.parametrize("people", [3, 4000])
def test_so_are_those_of_numbers_and_days_in_pandas(people: int) -> None:
    columns = {"age": cl.Integer(0, 1), "born": cl.Date("2020-01-01", "2020-01-03")}
    table = pd.DataFrame({"age": [0] * people, "born": [date(2020, 1, 1)] * people})
    method = SafePub(1, "1e-6", columns=columns, levels=dict.fromkeys(columns, 0))
    assert [each.kind for each in method.fit_transform(table, random=Random.deterministic(1)).dtypes] == ["i", "M"]
