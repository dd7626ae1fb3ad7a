"""Every model against its definition, written down naively; and classes that meet a model meet it together."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.anonymize.classes import Classes
from cloister.anonymize.encoded import Encoded, EncodedColumn
from cloister.anonymize.hierarchies.hierarchy import Hierarchy
from cloister.anonymize.hierarchies.ladder import Ladder
from cloister.anonymize.models.alpha import AlphaKAnonymity, largest_shares
from cloister.anonymize.models.base import PrivacyModel, satisfied_by
from cloister.anonymize.models.closeness import TCloseness
from cloister.anonymize.models.disclosure import DeltaDisclosure
from cloister.anonymize.models.diversity import LDiversity, effective_values, recursive_ratios
from cloister.anonymize.models.k import KAnonymity
from cloister.anonymize.models.likeness import BetaLikeness
from cloister.anonymize.models.presence import DeltaPresence, KMap
from cloister.errors import InvalidParameter

LEVELS = [[v % 3 for v in range(6)], ["*"] * 6]
"""A hierarchy over six values."""


def column_of(codes: list[int], values: list[object] | None = None, kind: str = "integer") -> EncodedColumn:
    named = values if values is not None else list(range(max(codes, default=-1) + 1))
    return EncodedColumn(name="s", codes=np.array(codes, dtype=np.int32), values=list(named), kind=kind)


def classes_of(groups: list[int], codes: list[int], **more: object) -> Classes:
    column = column_of(codes, **more)  # type: ignore[arg-type]
    return Classes.of(np.array(groups, dtype=np.int64), max(groups) + 1, sensitive={"s": column})


@st.composite
def tables(draw: st.DrawFn, values: int = 6) -> tuple[list[int], list[int]]:
    rows = draw(st.integers(1, 30))
    groups = draw(st.lists(st.integers(0, 4), min_size=rows, max_size=rows))
    codes = draw(st.lists(st.integers(0, values - 1), min_size=rows, max_size=rows))
    return groups, codes


class Naive:
    """The definitions, on lists, with exact fractions where they are rational."""

    def __init__(self, groups: list[int], codes: list[int]) -> None:
        self.values = sorted(set(codes))
        self.p = {v: Fraction(codes.count(v), len(codes)) for v in self.values}
        self.classes = []
        for group in sorted(set(groups)):
            inside = [c for g, c in zip(groups, codes, strict=True) if g == group]
            self.classes.append({v: Fraction(inside.count(v), len(inside)) for v in self.values})
        self.counts = [
            sorted((codes_in.count(v) for v in set(codes_in)), reverse=True)
            for codes_in in ([c for g, c in zip(groups, codes, strict=True) if g == group] for group in sorted(set(groups)))
        ]

    def equal(self) -> list[Fraction]:
        return [sum((abs(q[v] - self.p[v]) for v in self.values), Fraction(0)) / 2 for q in self.classes]

    def ordered(self) -> list[Fraction]:
        found = []
        for q in self.classes:
            running, total = Fraction(0), Fraction(0)
            for v in self.values:
                running += q[v] - self.p[v]
                total += abs(running)
            found.append(total / (len(self.values) - 1) if len(self.values) > 1 else Fraction(0))
        return found

    def hierarchical(self) -> list[Fraction]:
        """The extra of each node, as Li et al. define it: what cannot be matched under it moves up."""
        found = []
        for q in self.classes:
            extra = {v: self.p[v] - q[v] for v in self.values}
            cost = Fraction(0)
            nodes = {m: [v for v in self.values if v % 3 == m] for m in range(3)}
            tops = {}
            for m, leaves in nodes.items():
                plus = sum((extra[v] for v in leaves if extra[v] > 0), Fraction(0))
                minus = -sum((extra[v] for v in leaves if extra[v] < 0), Fraction(0))
                cost += Fraction(1, 2) * min(plus, minus)
                tops[m] = plus - minus
            cost += sum((x for x in tops.values() if x > 0), Fraction(0))
            found.append(cost)
        return found

    def kl(self) -> list[float]:
        return [sum(float(q[v]) * math.log(q[v] / self.p[v]) for v in self.values if q[v]) for q in self.classes]

    def beta(self) -> list[Fraction]:
        return [max((q[v] - self.p[v]) / self.p[v] for v in self.values) for q in self.classes]

    def delta(self) -> list[float]:
        return [max(abs(math.log(q[v] / self.p[v])) if q[v] else math.inf for v in self.values) for q in self.classes]


@settings(max_examples=100, deadline=None)
@given(tables(), st.fractions(0, 1, max_denominator=12))
def test_distances_are_those_of_the_definition(table: tuple[list[int], list[int]], bound: Fraction) -> None:
    groups, codes = table
    classes, naive = classes_of(groups, codes, values=list(range(6))), Naive(groups, codes)
    for model, expected in (
        (TCloseness(bound, "equal"), naive.equal()),
        (TCloseness(bound, "total variation"), naive.equal()),
        (TCloseness(bound, "ordered"), naive.ordered()),
        (TCloseness(bound, hierarchy=Ladder.of("s", list(range(6)), LEVELS)), naive.hierarchical()),
    ):
        assert model.satisfied(classes, "s").tolist() == [each <= bound for each in expected], model
        assert model.distances(classes, "s") == pytest.approx([float(each) for each in expected])
    assert TCloseness(2, "kl").distances(classes, "s") == pytest.approx(naive.kl(), abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(tables(), st.integers(1, 4), st.fractions("1/4", 4, max_denominator=6))
def test_diversities_are_those_of_the_definition(table: tuple[list[int], list[int]], least: int, c: Fraction) -> None:
    groups, codes = table
    classes, naive = classes_of(groups, codes), Naive(groups, codes)
    distinct = [len(counts) for counts in naive.counts]
    assert LDiversity(least).satisfied(classes, "s").tolist() == [d >= least for d in distinct]
    recursive = [
        d >= least and counts[0] < c * sum(counts[least - 1 :]) for d, counts in zip(distinct, naive.counts, strict=True)
    ]
    assert LDiversity(least, kind="recursive", c=c).satisfied(classes, "s").tolist() == recursive
    entropies = [-sum(n / sum(counts) * math.log(n / sum(counts)) for n in counts) for counts in naive.counts]
    assert np.log(effective_values(classes.spread("s"))) == pytest.approx(entropies, abs=1e-12)
    met = LDiversity(least, kind="entropy").satisfied(classes, "s").tolist()
    assert met == [entropy >= math.log(least) - 1e-9 for entropy in entropies]


@settings(max_examples=100, deadline=None)
@given(tables(), st.fractions("1/6", 3, max_denominator=6))
def test_ratios_are_those_of_the_definition(table: tuple[list[int], list[int]], bound: Fraction) -> None:
    groups, codes = table
    classes, naive = classes_of(groups, codes), Naive(groups, codes)
    assert BetaLikeness(bound).satisfied(classes, "s").tolist() == [beta <= bound for beta in naive.beta()]
    strict = [
        all((q[v] - naive.p[v]) / naive.p[v] <= min(float(bound), -math.log(naive.p[v])) + 1e-15 for v in naive.values)
        for q in naive.classes
    ]
    assert BetaLikeness(bound, enhanced=True).satisfied(classes, "s").tolist() == strict
    assert DeltaDisclosure(bound).satisfied(classes, "s").tolist() == [delta < bound for delta in naive.delta()]
    shares = [max(q.values()) for q in naive.classes]
    assert largest_shares(classes.spread("s")).floats == pytest.approx([float(each) for each in shares])
    if bound <= 1:
        assert AlphaKAnonymity(bound, 2).satisfied(classes, "s").tolist() == [
            share <= bound and sum(counts) >= 2 for share, counts in zip(shares, naive.counts, strict=True)
        ]


MONOTONE: list[PrivacyModel] = [
    KAnonymity(3),
    AlphaKAnonymity("0.6", 2),
    LDiversity(2),
    LDiversity(2.2, kind="entropy"),
    LDiversity(3, kind="recursive", c=2),
    LDiversity(2, kind="recursive", c="1.5"),
    TCloseness("0.3", "equal"),
    TCloseness("0.2", "ordered"),
    TCloseness("0.3", hierarchy=Ladder.of("s", list(range(6)), LEVELS)),
    TCloseness("0.4", "kl"),
    BetaLikeness(1),
    BetaLikeness(2, enhanced=True),
    DeltaDisclosure("1.5"),
    DeltaPresence("0.2", "0.7"),
    KMap(3),
]


@settings(max_examples=150, deadline=None)
@given(tables(), st.lists(st.booleans(), min_size=30, max_size=30), st.integers(0, 4), st.integers(0, 4))
def test_two_classes_that_meet_a_model_meet_it_together(
    table: tuple[list[int], list[int]], marks: list[bool], one: int, other: int
) -> None:
    groups, codes = table
    research = np.array(marks[: len(groups)])
    column = column_of(codes, list(range(6)))
    # empty classes are left out, so the numbers are made dense first
    dense = np.unique(groups, return_inverse=True)[1]
    count = int(dense.max()) + 1
    one, other = one % count, other % count
    before = Classes.of(dense, count, sensitive={"s": column}, research=research)
    joined = np.where(dense == other, one, dense)
    after = Classes.of(joined, count, sensitive={"s": column}, research=research)
    for model in MONOTONE:
        name = "s" if model.of_sensitive else None
        met = model.satisfied(before, name)
        row = int(np.flatnonzero(joined == one)[0])
        together = bool(model.satisfied(after, name)[after.of_row[row]])
        if met[one] and met[other]:
            assert together, model
        if model.absorbing and (met[one] or met[other]):
            assert together, model


@settings(max_examples=40, deadline=None)
@given(tables(), st.integers(1, 4))
def test_rows_that_stand_for_several_count_as_several(table: tuple[list[int], list[int]], times: int) -> None:
    groups, codes = np.array(table[0]), np.array(table[1], dtype=np.int32)
    weights = np.arange(len(codes)) % times + 1
    values = list(range(6))
    tally = np.bincount(codes, weights=weights, minlength=6).astype(np.int64)
    short = EncodedColumn(name="s", codes=codes, values=values, kind="integer", tally=tally)
    long = EncodedColumn(name="s", codes=np.repeat(codes, weights), values=values, kind="integer")
    weighted = Classes.of(groups, 5, sensitive={"s": short}, weights=weights)
    repeated = Classes.of(np.repeat(groups, weights), 5, sensitive={"s": long})
    for model in MONOTONE:
        if model.of_sensitive:
            assert model.satisfied(weighted, "s").tolist() == model.satisfied(repeated, "s").tolist(), model
            assert model.attained(weighted, "s") == model.attained(repeated, "s")


@settings(max_examples=100, deadline=None)
@given(tables())
def test_what_is_attained_says_whether_it_holds(table: tuple[list[int], list[int]]) -> None:
    classes = classes_of(*table, values=list(range(6)))
    for model in MONOTONE:
        if model.of_sensitive:
            assert model.attained(classes, "s").holds == bool(model.satisfied(classes, "s").all())


def test_a_bound_that_is_reached_exactly_is_met() -> None:
    codes = [0] * 7 + [1] * 3 + [0] * 3 + [1] * 7
    classes = classes_of([0] * 10 + [1] * 10, codes, kind="text", values=["a", "b"])
    assert TCloseness("0.2").satisfied(classes, "s").all()
    assert TCloseness(0.2).attained(classes, "s").holds
    assert not TCloseness("0.19999999999").satisfied(classes, "s").any()
    thirds = classes_of([0] * 3, [0, 1, 2])
    assert LDiversity(3, kind="entropy").satisfied(thirds, "s").all()


def test_large_counts_do_not_overflow() -> None:
    """Two classes of 5 billion rows, each row of ours standing for many."""
    weights = np.array([4_000_000_000, 1_000_000_000, 1_000_000_000, 4_000_000_000], dtype=np.int64)
    codes = np.array([0, 1, 0, 1], dtype=np.int32)
    column = EncodedColumn(
        name="s", codes=codes, values=[1, 2], kind="integer", tally=np.array([5_000_000_000, 5_000_000_000], dtype=np.int64)
    )
    classes = Classes.of(np.array([0, 0, 1, 1]), 2, sensitive={"s": column}, weights=weights)
    for distance in ("equal", "ordered"):
        assert TCloseness("0.3", distance).distances(classes, "s") == pytest.approx([0.3, 0.3])
    assert recursive_ratios(classes.spread("s"), 2).floats == pytest.approx([4.0, 4.0])
    assert BetaLikeness("0.6").attained(classes, "s").reached == "β = 0.6"


def test_suppressed_rows_count_in_the_whole_table_only() -> None:
    column = column_of([0, 1, 1, 1], ["flu", "gout"], "text")
    classes = Classes.of(np.array([0, 0, 1, 1]), 2, sensitive={"s": column}, suppressed=np.array([False, False, True, True]))
    assert TCloseness("0.25", "equal").attained(classes, "s").reached == "t = 0.25"


def test_a_table_with_nothing_left_meets_every_model() -> None:
    column = column_of([0, 1], list(range(6)))
    gone = np.array([True, True])
    classes = Classes.of(np.array([0, 0]), 1, sensitive={"s": column}, suppressed=gone, research=gone)
    for model in MONOTONE:
        name = "s" if model.of_sensitive else None
        assert model.satisfied(classes, name).shape == (0,)
        assert model.attained(classes, name).holds


def test_the_default_distance_is_ordered_for_numbers_and_dates_and_equal_for_the_rest() -> None:
    kinds = {"integer": "ordered", "real": "ordered", "date": "ordered", "text": "equal", "boolean": "equal"}
    for kind, distance in kinds.items():
        assert TCloseness("0.2").distance_for(column_of([0, 1], kind=kind)) == distance
    assert TCloseness("0.2", hierarchy=Hierarchy.flat()).distance_for(column_of([0, 1])) == "hierarchical"


def test_a_hierarchy_is_fitted_to_the_column_it_meets() -> None:
    """The diseases of the paper's table: gastric ulcer, gastritis and stomach cancer are near one another."""
    diseases = Hierarchy.of({"ulcer": ["stomach"], "gastritis": ["stomach"], "flu": ["lung"], "bronchitis": ["lung"]})
    values = ["bronchitis", "flu", "gastritis", "ulcer"]
    similar = classes_of([0, 0, 1, 1], [2, 3, 0, 1], values=values, kind="text")
    mixed = classes_of([0, 0, 1, 1], [2, 0, 3, 1], values=values, kind="text")
    model = TCloseness("0.3", hierarchy=diseases)
    assert model.distances(similar, "s").tolist() == [0.5, 0.5]
    assert model.distances(mixed, "s").tolist() == [0.25, 0.25]
    assert (
        TCloseness("0.3", "equal").distances(similar, "s").tolist() == TCloseness("0.3", "equal").distances(mixed, "s").tolist()
    )
    with pytest.raises(InvalidParameter, match="other values"):
        TCloseness("0.3", hierarchy=Ladder.of("s", [1, 2], [["*", "*"]])).satisfied(similar, "s")


@pytest.mark.parametrize(
    "make",
    [
        lambda: LDiversity(0),
        lambda: LDiversity(True),
        lambda: LDiversity(2.5),
        lambda: LDiversity(2, kind="entropie"),
        lambda: LDiversity(2, kind="recursive"),
        lambda: LDiversity(2, c=3),
        lambda: LDiversity(2, kind="recursive", c=0),
        lambda: LDiversity(float("nan"), kind="entropy"),
        lambda: TCloseness(-0.1),
        lambda: TCloseness(1.5),
        lambda: TCloseness(float("nan")),
        lambda: TCloseness(0.2, "earth mover"),
        lambda: TCloseness(0.2, "hierarchical"),
        lambda: TCloseness(0.2, "equal", hierarchy=Hierarchy.flat()),
        lambda: BetaLikeness(-1),
        lambda: DeltaDisclosure(0),
        lambda: AlphaKAnonymity(0, 2),
        lambda: AlphaKAnonymity("1.1", 2),
        lambda: AlphaKAnonymity("0.5", 0),
        lambda: DeltaPresence("0.6", "0.5"),
        lambda: DeltaPresence(0, 2),
        lambda: KMap(0),
    ],
)
def test_parameters_that_no_table_can_meet_are_refused(make: object) -> None:
    with pytest.raises(InvalidParameter, match="Instead"):
        make()  # type: ignore[operator]


def test_presence_needs_to_know_who_is_published() -> None:
    with pytest.raises(InvalidParameter, match="research"):
        DeltaPresence(0, "0.5").satisfied(classes_of([0], [0]), None)


def refused(model: PrivacyModel, counts: list[int], limit: int | None = None) -> str:
    codes = np.repeat(np.arange(len(counts)), counts).astype(np.int32)
    column = EncodedColumn(name="disease", codes=codes, values=[f"v{n}" for n in range(len(counts))], kind="text")
    with pytest.raises(InvalidParameter) as caught:
        model.check(Encoded(rows=len(codes), columns={"disease": column}), ["disease"], limit)
    return str(caught.value)


def test_a_model_that_cannot_be_met_says_what_is_in_the_way_and_what_would_do() -> None:
    message = refused(LDiversity(3), [5, 5])
    assert "'disease' has 2 different values" in message
    assert "Instead: LDiversity(2)" in message
    assert "one value" in refused(LDiversity(2), [5])
    assert 'LDiversity(2, kind="entropy")' in refused(LDiversity(3, kind="entropy"), [5, 5])
    assert 'LDiversity(1.64, kind="entropy")' in refused(LDiversity(2, kind="entropy"), [8, 2], 0)
    assert "c=5" in refused(LDiversity(2, kind="recursive", c=2), [8, 2], 0)
    assert 'AlphaKAnonymity("0.8", 2)' in refused(AlphaKAnonymity("0.5", 2), [8, 2], 0)
    assert "10 rows" in refused(AlphaKAnonymity("0.9", 11), [8, 2], 0)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=3).filter(any), st.integers(0, 12))
def test_a_refusal_is_right_no_choice_of_rows_would_do(counts: list[int], limit: int) -> None:
    """All ways to leave out at most `limit` rows are tried, for the rest as one class: what several classes meet, one meets."""
    import itertools

    model_list: list[PrivacyModel] = [
        LDiversity(2),
        LDiversity(2.5, kind="entropy"),
        LDiversity(2, kind="recursive", c=2),
        AlphaKAnonymity("0.5", 1),
    ]
    codes = np.repeat(np.arange(len(counts)), counts).astype(np.int32)
    values = [f"v{n}" for n in range(len(counts))]
    table = Encoded(rows=len(codes), columns={"s": EncodedColumn(name="s", codes=codes, values=values, kind="text")})
    options = [
        kept
        for kept in itertools.product(*(range(each + 1) for each in counts))
        if any(kept) and sum(counts) - sum(kept) <= limit
    ]
    for model in model_list:
        possible = False
        for kept in options:
            some = np.repeat(np.arange(len(kept)), kept).astype(np.int32)
            column = EncodedColumn(name="s", codes=some, values=values, kind="text")
            classes = Classes.of(np.zeros(len(some), dtype=np.int64), 1, sensitive={"s": column})
            possible |= bool(model.satisfied(classes, "s").all())
        try:
            model.check(table, ["s"], limit)
            refused_it = False
        except InvalidParameter:
            refused_it = True
        if refused_it:
            assert not possible, (model, counts, limit)
        elif limit == 0:
            assert possible, (model, counts)


def test_every_sensitive_column_is_asked() -> None:
    first, second = column_of([0, 1, 0, 1]), column_of([0, 0, 1, 0])
    classes = Classes.of(np.array([0, 0, 1, 1]), 2, sensitive={"first": first, "second": second})
    assert satisfied_by([LDiversity(2)], classes).tolist() == [False, True]
    assert satisfied_by([LDiversity(2, column="first")], classes).tolist() == [True, True]


def test_an_entropy_that_is_too_low_by_a_hair_is_too_low() -> None:
    """ln 2 less 2·10⁻¹²: beyond what floating point tells apart. One half and four eighths have ln 4 exactly."""
    values = [0] * 500_001 + [1] * 499_999 + [0] * 8 + [1] * 2 + [2] * 2 + [3] * 2 + [4] * 2 + [0] * 3 + [1] * 3
    column = EncodedColumn(name="s", codes=np.array(values, dtype=np.int32), values=list(range(5)), kind="integer")
    classes = Classes.of(np.repeat([0, 1, 2], [1_000_000, 16, 6]), 3, sensitive={"s": column})
    assert LDiversity(2, kind="entropy").satisfied(classes, "s").tolist() == [False, True, True]
    assert LDiversity(4, kind="entropy").satisfied(classes, "s").tolist() == [False, True, False]
