"""What a table is for decides what is measured: by public facts, at most so much, and all of the spend together."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest

import cloister as cl
from cloister.session.workloads.marginals import cells
from cloister.synth.measuring import measure
from cloister.synth.states import states_of
from cloister.synth.workload import MOST_CELLS, About, Fixed, about_of, asked_for, by_cells, parts_for
from tests.synth.conftest import COLUMNS

SIZES = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
NAMES = list(COLUMNS)


@pytest.mark.parametrize("about", [(), ((0, 1, 2),), ((13,),), ((0, 3), (4, 5, 6, 7)), (tuple(range(14)),)])
@pytest.mark.parametrize("method", ["pairs", "triples", "independent"])
def test_the_parts_are_all_of_the_spend(method: Fixed, about: About) -> None:
    parts = parts_for(SIZES, method, about)
    assert sum(parts.values()) == 1
    assert min(parts.values()) > 0
    assert {(place,) for place in range(14)} <= set(parts)
    assert all(cells(SIZES, kept) <= MOST_CELLS for kept in parts)
    assert sum(len(kept) == 3 for kept in parts) <= 100


def test_a_histogram_is_the_table_of_all_columns_beside_single_ones() -> None:
    assert {kept: str(part) for kept, part in parts_for((2, 3, 4), "histogram").items()} == {
        (0,): "1/20", (1,): "1/20", (2,): "1/20", (0, 1, 2): "17/20"
    }  # fmt: skip
    assert parts_for((200_000,), "histogram") == {(0,): Fraction(1)}
    assert len(parts_for((1000, 100), "histogram")) == 3
    with pytest.raises(cl.UnsupportedQuery, match="have 100,100 cells, and at most 100,000"):
        parts_for((1001, 100), "histogram")


def test_what_is_asked_takes_half_where_it_is_much_and_eight_times_a_part_where_it_is_little() -> None:
    little, much = parts_for(SIZES, "pairs", ((3, 4, 5),)), parts_for(SIZES, "pairs", ((13,), (8,)))
    assert (3, 4, 5) in little
    before, mine = by_cells(SIZES, list(little)), asked_for(SIZES, ((3, 4, 5),))
    times = {kept in mine: part / before[kept] for kept, part in little.items()}
    assert all(part == times[kept in mine] * before[kept] for kept, part in little.items())
    assert times[True] == 8 * times[False]
    asked = asked_for(SIZES, ((13,), (8,)))
    assert sum(much[kept] for kept in asked) >= Fraction(1, 2)


def test_of_few_columns_no_table_has_more_than_twice_the_noise_of_equal_parts() -> None:
    few = (9, 16, 7, 15, 6, 5, 2, 42)
    parts = parts_for(few, "pairs")
    pairs = {kept: part for kept, part in parts.items() if len(kept) == 2}
    even = sum(pairs.values()) / len(pairs)
    assert min(pairs.values()) >= even / 2
    by_size = sorted(pairs, key=lambda kept: cells(few, kept))
    assert pairs[by_size[-1]] > even > pairs[by_size[0]]


@pytest.mark.parametrize(("columns", "more", "equal"), [(14, 0, True), (9, 0, True), (8, 0, False), (8, 60, True)])
def test_pairs_of_many_columns_or_cells_have_equal_parts(columns: int, more: int, equal: bool) -> None:
    parts = parts_for(tuple(range(2 + more, columns + 2 + more)), "pairs")
    assert (len({part for kept, part in parts.items() if len(kept) == 2}) == 1) == equal
    assert sum(part for kept, part in parts.items() if len(kept) == 1) == Fraction(5, 100)


def test_a_single_column_is_asked_for_with_all_others() -> None:
    asked = set(asked_for((2, 3, 4, 5), ((1,),)))
    assert asked == {(0, 1), (1, 2), (1, 3), (0, 1, 2), (0, 1, 3), (1, 2, 3)}


def test_of_too_many_triples_those_of_the_fewest_cells_are_measured() -> None:
    triples = [kept for kept in parts_for(SIZES, "triples") if len(kept) == 3]
    assert len(triples) == 100
    left = [cells(SIZES, kept) for kept in combinations(range(14), 3) if kept not in triples]
    assert max(cells(SIZES, kept) for kept in triples) <= min(left)


def test_a_question_in_sql_asks_for_the_columns_that_it_reads(people: cl.PrivateTable) -> None:
    with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
        text = "SELECT sex, AVG(pay) AS pay FROM people WHERE age > 20 GROUP BY sex"
        assert about_of(session, "people", NAMES, [text, "ward"]) == ((0, 1, 2), (3,))
        assert about_of(session, "people", NAMES, text) == ((0, 1, 2),)
        asked = ["SELECT AVG(age) AS a FROM people"]
        model = cl.synth.fit(session, "people", spend=1, columns=["age", "sex", "ward"], about=asked)
    assert model.cost == cl.PureDP(1)


def test_text_needs_a_session_that_reads_sql() -> None:
    held = {"age": [20, 30] * 50, "sex": ["F", "M"] * 50}
    columns = {"age": cl.Integer(18, 40), "sex": cl.Category(["F", "M"])}
    with pytest.raises(cl.InvalidParameter, match="reads no SQL"):
        cl.synth.fit_frame(held, columns, epsilon=1, about=["SELECT sex FROM frame GROUP BY sex"])
    assert cl.synth.fit_frame(held, columns, epsilon=1, about=["sex"]).method == "pairs"


def test_what_is_asked_for_is_measured_more_sharply(people: cl.PrivateTable) -> None:
    states = states_of(COLUMNS, None, table="people")
    found = []
    for about in ((), ((2, 3, 6),)):
        with cl.Session({"people": people}, budget=cl.PureDP(2)) as session:
            found.append(measure(session, "people", states, "pairs", 1, about=about, purpose="")[0])
            assert session.spent == cl.PureDP(1)
    plain, asked = (each.tables for each in found)
    for kept in [(2, 3), (2, 6), (3, 6)]:
        assert asked[kept].variance < plain[kept].variance / 6
    assert asked[(0,)].variance < 6 * plain[(0,)].variance
    assert set(asked) - set(plain) == {(2, 3, 6)}


@pytest.mark.parametrize("method", ["independent", "pairs", "triples"])
def test_tables_of_a_light_column_take_a_third_and_all_of_them_the_whole_spend(method: Fixed) -> None:
    parts, even = (parts_for((5, 6, 7, 8), method, (), light) for light in ((3,), ()))
    assert sum(parts.values()) == 1
    times = {(3 in kept, part / even[kept]) for kept, part in parts.items()}
    [(_, heavy), (_, light)] = sorted(times)
    assert light * 3 == heavy
