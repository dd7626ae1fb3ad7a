"""Mondrian: whatever the table, each class meets each model by its published labels, and each label is true of its rows."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.anonymize.encoded import encode
from cloister.anonymize.frames import read_frame
from cloister.anonymize.hierarchies.hierarchy import Hierarchy
from cloister.anonymize.hierarchies.ladder import MISSING, STAR, Ladder
from cloister.anonymize.metrics import metric_of
from cloister.anonymize.models.base import PrivacyModel, attained_by
from cloister.anonymize.models.closeness import TCloseness
from cloister.anonymize.models.diversity import LDiversity
from cloister.anonymize.models.k import KAnonymity
from cloister.anonymize.problem import Problem
from cloister.anonymize.recoding import Recoded
from cloister.anonymize.searches import attempts
from cloister.anonymize.searches.axes import axes_of, axis_of
from cloister.anonymize.searches.mondrian import Mondrian, distinct_rows
from cloister.anonymize.searches.parts import Part, places_of
from cloister.anonymize.searches.regions import AGGREGATES
from cloister.errors import InvalidParameter
from cloister.noise import Random
from tests.tiers import by_day_and_night

Table = dict[str, list[Any]]

TOWNS = ["Bonn", "Trier", "Ulm", "Köln 🏰", "'; --", "{Bonn, Ulm}"]
LEVELS = [["Rhine", "Mosel", "Danube", "Rhine", "none", "none"], ["West", "West", "South", "West", "none", "none"], ["*"] * 6]


def problem_of(
    table: Table | pl.DataFrame,
    quasi: Sequence[str],
    models: Sequence[PrivacyModel] = (KAnonymity(2),),
    *,
    sensitive: Sequence[str] = (),
    ladders: dict[str, Ladder] | None = None,
    **more: Any,
) -> Problem:
    """A problem with nothing to suppress."""
    return Problem(
        table=encode(read_frame(table), [*quasi, *sensitive]),
        quasi=tuple(quasi),
        ladders=ladders or {},
        models=tuple(models),
        metric=metric_of("loss"),
        limit=0,
        sensitive=tuple(sensitive),
        **more,
    )


def labels(recoded: Recoded, name: str) -> list[Any]:
    """What is published of a column."""
    column = recoded.columns[name]
    return [column.labels[code] for code in column.codes.tolist()]


def people(rows: int, seed: int = 1) -> Table:
    """Made-up patients, some of whose values are missing."""
    random = Random.deterministic(seed)

    def drawn(bound: int) -> list[int]:
        return [int(each) for each in random.below(bound, rows)]

    born = [datetime.date(1950, 1, 1) + datetime.timedelta(days=each) for each in drawn(9000)]
    return {
        "age": [None if each >= 70 else 18 + each for each in drawn(75)],
        "town": [(TOWNS * 2)[min(each, other)] for each, other in zip(drawn(6), drawn(6), strict=True)],
        "born": born,
        "pay": [each / 8 for each in drawn(4000)],
        "smokes": [(True, False, None)[each] for each in drawn(3)],
        "ill": [["flu", "cold", "gout", "none"][each] for each in drawn(4)],
    }


QUASI = ["age", "town", "born", "pay", "smokes"]


def town_ladder(table: Table) -> Ladder:
    """The towns of a table along a hierarchy of three levels."""
    lines = {town: [level[place] for level in LEVELS] for place, town in enumerate(TOWNS)}
    column = encode(read_frame({"town": table["town"]}), ["town"]).columns["town"]
    return Hierarchy.of(lines).ladder(column)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    rows = draw(st.integers(4, 60))
    ages = st.one_of(st.none(), st.integers(-3, 6))
    return {
        "age": draw(st.lists(ages, min_size=rows, max_size=rows)),
        "town": draw(st.lists(st.sampled_from(TOWNS), min_size=rows, max_size=rows)),
        "pay": draw(st.lists(st.sampled_from([0.5, 1.25, float("nan"), -2.0, 1e300, -1e300]), min_size=rows, max_size=rows)),
        "ill": draw(st.lists(st.sampled_from("xyz"), min_size=rows, max_size=rows)),
    }


MODELS: list[Callable[[], list[PrivacyModel]]] = [
    lambda: [KAnonymity(2)],
    lambda: [KAnonymity(3), LDiversity(2)],
    lambda: [TCloseness("0.3")],
]


@settings(max_examples=60, deadline=None)
@given(tables(), st.sampled_from(range(3)), st.booleans(), st.booleans(), st.sampled_from(AGGREGATES))
def test_each_class_meets_each_model_by_its_labels(table: Table, which: int, relaxed: bool, along: bool, aggregate: str) -> None:
    models = MODELS[which]()
    ladders = {"town": town_ladder(table)} if along else {}
    problem = problem_of(table, ["age", "town", "pay"], models, sensitive=["ill"], ladders=ladders)
    search = Mondrian(relaxed=relaxed, aggregates=dict.fromkeys(["age", "town", "pay"], aggregate))
    if len(set(table["ill"])) < 2 and which == 1:
        with pytest.raises(InvalidParameter, match="not even the whole table"):
            search.find(problem)
        return
    recoded = search.find(problem)
    assert recoded.suppressed_rows == 0
    assert recoded.classes.rows == len(table["age"])
    assert all(each.holds for each in attained_by(models, recoded.classes))
    texts = list(zip(*(labels(recoded, name) for name in recoded.columns), strict=True))
    assert len(set(texts)) == recoded.classes.count


@settings(max_examples=30, deadline=None)
@given(tables(), st.booleans())
def test_each_label_is_true_of_its_rows(table: Table, relaxed: bool) -> None:
    ladder = town_ladder(table)
    recoded = Mondrian(relaxed=relaxed).find(problem_of(table, ["age", "town"], ladders={"town": ladder}))
    for value, label in zip(table["age"], labels(recoded, "age"), strict=True):
        assert covers(label, value)
    values = encode(read_frame(table), ["town"]).columns["town"].values
    for value, label in zip(table["town"], labels(recoded, "town"), strict=True):
        place = values.index(value)
        assert label in [names[codes[place]] for names, codes in zip(ladder.labels, ladder.codes, strict=True)]
    sets = Mondrian(relaxed=relaxed, categories="order").find(problem_of(table, ["age", "town"], ladders={"town": ladder}))
    for value, label in zip(table["town"], labels(sets, "town"), strict=True):
        assert label in (value, STAR) or value in label


def covers(label: str, value: int | None) -> bool:
    """Whether an interval has a value."""
    known, _, missing = label.partition(" or ")
    if value is None:
        return MISSING in (known, missing)
    low, _, high = known.partition("–")
    return int(low) <= value <= int(high or low)


@settings(max_examples=25, deadline=None)
@given(tables(), st.randoms(use_true_random=False))
def test_strict_classes_do_not_depend_on_the_order_of_rows(table: Table, shuffled: Any) -> None:
    order = list(range(len(table["age"])))
    shuffled.shuffle(order)
    mixed = {name: [values[place] for place in order] for name, values in table.items()}
    for models in (MODELS[0](), MODELS[2]()):
        first = Mondrian().find(problem_of(table, ["age", "town", "pay"], models, sensitive=["ill"]))
        second = Mondrian().find(problem_of(mixed, ["age", "town", "pay"], models, sensitive=["ill"]))
        for name in first.columns:
            assert [labels(first, name)[place] for place in order] == labels(second, name)


@settings(max_examples=25, deadline=None)
@given(tables())
def test_strict_classes_do_not_overlap(table: Table) -> None:
    problem = problem_of(table, ["age", "town", "pay"])
    axes = axes_of(problem.table, problem.quasi, {})
    of_row, count = Mondrian().classes(problem, axes)
    places = [axis.places() for axis in axes]
    boxes = [
        [(int(each[of_row == number].min()), int(each[of_row == number].max())) for each in places] for number in range(count)
    ]
    for number, one in enumerate(boxes):
        for other in boxes[:number]:
            assert any(a[1] < b[0] or b[1] < a[0] for a, b in zip(one, other, strict=True))


def test_relaxed_shares_out_the_median() -> None:
    table = {"age": [20, 30, 30, 30, 30, 40, 30, 30]}
    strict = Mondrian().find(problem_of(table, ["age"], [KAnonymity(3)]))
    relaxed = Mondrian(relaxed=True).find(problem_of(table, ["age"], [KAnonymity(3)]))
    assert strict.classes.count == 1
    assert set(labels(strict, "age")) == {"20–40"}
    assert relaxed.classes.count == 2
    assert sorted(relaxed.classes.sizes) == [4, 4]
    assert sorted(set(labels(relaxed, "age"))) == ["20–30", "30–40"]


def test_relaxed_keeps_children_that_are_too_small_under_their_parent() -> None:
    table = {"town": ["Bonn"] * 6 + ["Trier"] * 1 + ["Ulm"] * 6 + ["'; --"] * 1}
    ladders = {"town": town_ladder(table)}
    strict = Mondrian().find(problem_of(table, ["town"], ladders=ladders))
    relaxed = Mondrian(relaxed=True).find(problem_of(table, ["town"], ladders=ladders))
    assert set(labels(strict, "town")) == {STAR}
    found = dict(zip(table["town"], labels(relaxed, "town"), strict=True))
    assert found == {"Bonn": "West", "Trier": "West", "Ulm": STAR, "'; --": STAR}
    assert relaxed.classes.sizes.min() >= 2


def test_what_does_not_need_to_be_cut_keeps_its_values() -> None:
    table = {"age": [20, 20, 30, 30], "town": ["Ulm", "Ulm", "Bonn", "Bonn"], "born": [datetime.date(2000, 1, 1)] * 4}
    recoded = Mondrian().find(problem_of(table, list(table)))
    assert all(column.intact for column in recoded.columns.values())
    assert all(not column.widths.any() for column in recoded.columns.values())


@pytest.mark.parametrize("relaxed", [False, True])
def test_two_equal_rows_make_a_class(relaxed: bool) -> None:
    table = {name: [value for value in values for _ in range(2)] for name, values in people(50).items()}
    recoded = Mondrian(relaxed=relaxed).find(problem_of(table, QUASI))
    assert recoded.classes.sizes.min() == 2
    assert recoded.classes.count == len(set(zip(*(table[name] for name in QUASI), strict=True)))


def test_aggregates() -> None:
    table = {"age": [20, 21, 24, 50, None, 58], "town": ["Ulm", "Ulm", "Bonn", "Bonn", "Trier", "Bonn"]}
    table |= {"born": [datetime.date(2000, 1, day) for day in (1, 2, 6, 20, 20, 26)]}

    def of(aggregate: str) -> list[list[Any]]:
        search = Mondrian(aggregates=dict.fromkeys(table, aggregate))
        recoded = search.find(problem_of(table, list(table), [KAnonymity(3)]))
        return [list(dict.fromkeys(labels(recoded, name))) for name in table]

    assert of("range") == [
        ["20–24", "50–58 or (missing)"],
        ["{Bonn, Ulm}", "{Bonn, Trier}"],
        ["2000-01-01–2000-01-06", "2000-01-20–2000-01-26"],
    ]
    assert of("mean") == [["21.6667", "54"], ["Ulm", "Bonn"], ["2000-01-03", "2000-01-22"]]
    assert of("median")[0] == ["21", "50"]
    assert of("mode")[1] == ["Ulm", "Bonn"]
    assert of("set")[0] == ["{20, 21, 24}", "{50, 58, (missing)}"]
    recoded = Mondrian(aggregates={"age": "mode"}).find(problem_of({"age": [1, 2, 3]}, ["age"], [KAnonymity(3)]))
    assert not recoded.columns["age"].intact, "one value stands for three: the column is not what it was"


def test_models_are_part_of_the_test_of_a_cut() -> None:
    table = people(600)
    plain = Mondrian().find(problem_of(table, QUASI, [KAnonymity(5)], sensitive=["ill"]))
    models: list[PrivacyModel] = [KAnonymity(5), LDiversity(3), TCloseness("0.25")]
    strong = Mondrian().find(problem_of(table, QUASI, models, sensitive=["ill"]))
    assert not all(each.holds for each in attained_by(models, plain.classes))
    assert all(each.holds for each in attained_by(models, strong.classes))
    assert 1 < strong.classes.count < plain.classes.count


def test_weights_of_columns_draw_the_cuts() -> None:
    table = people(400)
    problem = problem_of(table, ["born", "pay"], [KAnonymity(10)])
    light = problem_of(table, ["born", "pay"], [KAnonymity(10)], weights={"born": 9.0})
    even, drawn = (Mondrian().find(each).columns["born"] for each in (problem, light))
    assert drawn.widths[drawn.codes].mean() < even.widths[even.codes].mean() / 2


def test_counted_rows_are_as_good_as_rows() -> None:
    table = people(300)
    problem = problem_of(table, ["age", "town", "smokes"], MODELS[1](), sensitive=["ill"])
    columns = [problem.table.columns[name].codes for name in ("age", "town", "smokes", "ill")]
    _, first, of_row, counts = np.unique(np.stack(columns), axis=1, return_index=True, return_inverse=True, return_counts=True)
    counted = problem.table.take(first)
    counted = type(counted)(
        rows=len(first),
        columns={
            name: type(column)(
                name=name, codes=column.codes, values=column.values, kind=column.kind, tally=problem.table.columns[name].counts
            )
            for name, column in counted.columns.items()
        },
        weights=counts.astype(np.int64),
    )
    weighed = Problem(
        table=counted, quasi=problem.quasi, ladders={}, models=problem.models, metric=problem.metric, limit=0, sensitive=("ill",)
    )
    plain, short = Mondrian().find(problem), Mondrian().find(weighed)
    assert sorted(plain.classes.sizes) == sorted(short.classes.sizes)
    assert short.classes.rows == 300
    for name in plain.columns:
        assert labels(plain, name) == [labels(short, name)[place] for place in of_row.ravel()]


@pytest.mark.parametrize("relaxed", [False, True])
def test_stopped_it_gives_the_classes_so_far(relaxed: bool) -> None:
    counts = []
    for patience in (0, 1, 3, 100):
        asked = iter(range(10**6))
        recoded = Mondrian(relaxed=relaxed).find(
            problem_of(people(500), QUASI, [KAnonymity(5)], stop=lambda asked=asked, patience=patience: next(asked) >= patience)
        )
        assert recoded.classes.rows == 500
        assert recoded.classes.sizes.min() >= 5
        counts.append(recoded.classes.count)
    assert counts[0] == 1
    assert counts == sorted(counts)
    assert counts[1] < counts[2] < counts[3]


def test_progress_ends_at_one() -> None:
    told: list[float] = []
    Mondrian().find(problem_of(people(100), QUASI, progress=lambda stage, done: told.append(done)))
    assert told[-1] == 1.0
    assert told == sorted(told)


NASTY: dict[str, Table] = {
    "no row": {"age": [], "town": []},
    "one row": {"age": [3], "town": ["Ulm"]},
    "nothing known": {"age": [None] * 6, "town": [None] * 6},
    "not a number": {"age": [float("nan"), 1.0, 2.0, float("nan")], "town": ["a", None, "a", None]},
    "constants": {"age": [1] * 9, "town": ["x"] * 9},
    "hostile": {
        '💣 "; DROP': ["=1+1", "<script>", "\x00", "\u202e", "{a, b}", "*", "", MISSING],
        "a–b": [1, 2, 3, 4, 5, 6, 7, 8],
    },
    "huge": {"age": [2**62, 2**62 + 1, -(2**62), 0], "pay": [1e308, -1e308, 5e-324, 0.0]},
    "near": {"age": [2**53, 2**53 + 1, 2**53 + 2, 2**53 + 3, -(2**60)]},
}


@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("search", [Mondrian(), Mondrian(relaxed=True), Mondrian(categories="order")])
def test_nasty_tables(name: str, search: Mondrian) -> None:
    table = NASTY[name]
    rows = len(next(iter(table.values())))
    recoded = search.find(problem_of(table, list(table), [KAnonymity(min(2, max(rows, 1)))]))
    assert recoded.classes.rows == rows
    assert rows == 0 or recoded.classes.sizes.min() >= min(2, rows)
    assert all(np.isfinite(column.widths).all() and (column.widths <= 1).all() for column in recoded.columns.values())


@by_day_and_night("rows", 200_000, 1_000_000)
def test_a_million_different_values(rows: int) -> None:
    table = pl.select(pl.int_range(rows, 0, -1).alias("id"), pl.format("c{}", pl.int_range(rows)).alias("code"))
    recoded = Mondrian().find(problem_of(table, ["id", "code"], [KAnonymity(100)]))
    assert recoded.classes.sizes.min() >= 100
    assert recoded.classes.count > rows // 250


def test_what_cannot_be_met_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="the whole table as one class"):
        Mondrian().find(problem_of({"age": [1, 2]}, ["age"], [KAnonymity(3)]))
    with pytest.raises(InvalidParameter, match="it is not one of"):
        Mondrian(aggregates={"age": "sum"})
    with pytest.raises(InvalidParameter, match="neither hierarchy nor order"):
        Mondrian(categories="trees")


def test_with_models_besides_k_the_better_of_two_orders_is_taken() -> None:
    """Some tables lose less by one, some by the other; cut is what is counted here once more, from what each class covers."""
    wins = [0, 0]
    for seed in range(12):
        problem = problem_of(people(400, seed), ["age", "pay"], [KAnonymity(3), TCloseness("0.2")], sensitive=["ill"])
        axes, search = axes_of(problem.table, problem.quasi, {}), Mondrian()
        distinct = distinct_rows(problem)
        rows = problem.table.rows if distinct.rows is None else len(distinct.rows)
        lost = [
            covered(axes, cut.of_row if distinct.of_row is None else cut.of_row[distinct.of_row])
            for cut in (search._cut_by(problem, axes, distinct, rows, widest, 2) for widest in (False, True))
        ]
        assert covered(axes, search.classes(problem, axes)[0]) == pytest.approx(min(lost))
        wins[0] += lost[0] < lost[1]
        wins[1] += lost[1] < lost[0]
    assert min(wins) > 0


def covered(axes: Sequence[Any], of_row: Any) -> float:
    """How much of each axis the rows cover, each in its class."""
    found = 0.0
    for number in range(int(of_row.max()) + 1):
        inside = of_row == number
        for axis in axes:
            places = axis.place[axis.column.codes[inside]]
            found += inside.sum() * float(axis.widths(places[:1] * 0 + places.min(), places[:1] * 0 + places.max())[0])
    return found


@pytest.mark.parametrize("sparse", [4, -1_000])
def test_children_are_the_pieces_that_rows_fall_into(sparse: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planned from the places that occur, or from the rows: the same pieces, in the same order."""
    monkeypatch.setattr(attempts, "_SPARSE", sparse)
    for seed in range(8):
        draw = np.random.default_rng(seed)
        values = [f"v{number:02}" for number in range(12)]
        groups = draw.integers(0, 5, 12)
        levels = [[f"g{group}" for group in groups], [f"h{group // 2}" for group in groups], ["*"] * 12]
        rows = int(draw.integers(5, 200))
        column = encode(read_frame({"town": [*values, *draw.choice(values, rows)]}), ["town"]).columns["town"]
        axis = axis_of(column, Ladder.of("town", values, levels))
        count = len(column.codes)
        inner = np.unique(draw.integers(1, count, int(draw.integers(1, 9))))
        weights = draw.integers(1, 5, count) if seed % 2 else None
        part = Part.of(np.arange(count), places_of([axis]), weights, np.array([0, *inner, count]), [axis])
        attempt = attempts.Attempt(part, np.arange(part.count), 0)
        attempt.low = np.minimum.reduceat(attempt.places, attempt.edges[:-1]).astype(np.int64)
        attempt.high = np.maximum.reduceat(attempt.places, attempt.edges[:-1]).astype(np.int64)
        some = attempt.only(attempt.high > attempt.low)
        piece, pieces = some.along(axis)
        number, weighed = some.numbers(piece, pieces)
        low, high, found, each = some.children(axis)
        assert each.tolist() == pieces.tolist()
        assert found.tolist() == weighed.tolist()
        assert low.tolist() == [int(some.places[number == one].min()) for one in range(len(weighed))]
        assert high.tolist() == [int(some.places[number == one].max()) for one in range(len(weighed))]
