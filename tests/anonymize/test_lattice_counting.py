"""What the lattice search rests on: sizes without a table, cones of nodes, guesses of floors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cloister.anonymize.models.base import PrivacyModel
from cloister.anonymize.models.diversity import LDiversity
from cloister.anonymize.models.k import KAnonymity
from cloister.anonymize.searches import counting, sizing
from cloister.anonymize.searches.cones import Cones
from cloister.anonymize.searches.counting import Counter
from cloister.anonymize.searches.judging import Judge
from cloister.anonymize.searches.sizing import Sizer
from cloister.anonymize.searches.tagging import guesses
from tests.anonymize.problems import every_node, random_problem, recoded_at


def sizes_of(problem: object, levels: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Labels and size of each class, from the rows."""
    recoded = recoded_at(problem, levels)  # type: ignore[arg-type]
    rows = zip(*(column.codes.tolist() for column in recoded.columns.values()), strict=True)
    found: dict[tuple[int, ...], int] = {}
    for row in rows:
        found[row] = found.get(row, 0) + 1
    return sorted((*labels, size) for labels, size in found.items())


@pytest.mark.parametrize("models", [[KAnonymity(3)], [KAnonymity(3), LDiversity(2)]])
def test_sizes_are_those_of_the_rows(models: list[PrivacyModel], monkeypatch: pytest.MonkeyPatch) -> None:
    """From every table that may be at hand: the smallest limit makes one for each node on the way."""
    problem = random_problem(11, models, rows=120, limit=200)
    monkeypatch.setattr(counting, "_SMALL", 0)
    monkeypatch.setattr(counting, "_BITS", ((0.1, 1), (0.0, 1)))
    sizer = Sizer(Counter(problem, spread=False))
    for levels in itertools.product(range(3), range(2), range(4)):
        sized = sizer.at(levels)
        wanted = sizes_of(problem, levels)
        assert sized.exact
        columns = [sized.codes(column).tolist() for column in range(3)]
        assert sorted(zip(*columns, sized.sizes.tolist(), strict=True)) == wanted
        some = np.array([0, len(wanted) - 1])
        assert sized.codes(1, some).tolist() == [columns[1][0], columns[1][-1]]
        sizes = [row[-1] for row in wanted]
        assert sized.squares == sum(size**2 for size in sizes)
        assert sized.lost(4) == sum(size for size in sizes if size < 4)


def test_groups_of_columns_are_raised_together_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(5):
        problem = random_problem(20 + seed, [KAnonymity(3)], rows=150)
        monkeypatch.setattr(counting, "_SMALL", 0)
        monkeypatch.setattr(sizing, "_GROUP", 2 + seed % 2)
        together = Sizer(Counter(problem))
        monkeypatch.setattr(sizing, "_LOOKED_UP", -1_000)
        apart = Sizer(Counter(problem))
        for levels in itertools.product(range(3), range(2), range(4)):
            monkeypatch.setattr(sizing, "_LOOKED_UP", 1_000)
            one = together.at(levels)
            monkeypatch.setattr(sizing, "_LOOKED_UP", -1_000)
            other = apart.at(levels)
            assert one.sizes.tolist() == other.sizes.tolist()
            for column in range(3):
                assert one.codes(column).tolist() == other.codes(column).tolist()
        assert together._counter.raised
        assert not apart._counter.raised
    with monkeypatch.context() as patch:
        patch.setattr(counting, "_HUGE", 0)
        huge = Sizer(Counter(problem))
    for levels in itertools.product(range(3), range(2), range(4)):
        assert huge.at(levels).sizes.tolist() == apart.at(levels).sizes.tolist()


def test_mixed_numbers_never_make_a_class_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(12, [KAnonymity(3)], rows=200)
    exact = Sizer(Counter(problem))
    wanted = {levels: exact.at(levels).lost(3) for levels in every_node(random_problem(12, [KAnonymity(1)], rows=200))}
    assert len(wanted) == 24
    monkeypatch.setattr(sizing, "_NEAR", 0)
    mixed = Sizer(Counter(problem))
    assert not any(mixed.at(levels).exact for levels in wanted)
    assert {levels: mixed.at(levels).lost(3) for levels in wanted} == wanted  # 16 bits hold so few classes apart
    assert all(mixed.at(levels, exact=True).exact for levels in wanted)
    monkeypatch.setattr(sizing, "_MIXED_BITS", 3)
    shared = {levels: mixed.at(levels).lost(3) for levels in wanted}
    assert all(shared[levels] <= lost for levels, lost in wanted.items())
    assert shared != wanted


def test_a_verdict_does_not_depend_on_how_it_was_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(13, [KAnonymity(4), LDiversity(2)], rows=90, limit=9)
    wanted = every_node(problem)
    for near, bits, each in ((1 << 17, 16, 64), (0, 16, 64), (0, 2, 64), (0, 2, 0)):
        monkeypatch.setattr(sizing, "_NEAR", near)
        monkeypatch.setattr(sizing, "_MIXED_BITS", bits)
        monkeypatch.setattr(sizing, "_EACH", each)
        monkeypatch.setattr(sizing, "_SURE", each)
        judge = Judge(problem)
        for levels in itertools.product(range(3), range(2), range(4)):
            judged = judge.judge(levels)
            assert judged.allowed == (levels in wanted)
            if judged.allowed:
                assert (judged.score, judged.suppressed) == pytest.approx(wanted[levels])


def test_cones_are_those_of_an_array() -> None:
    heights = (3, 1, 4, 2, 5)
    draw = np.random.default_rng(4)
    order = draw.permutation(120)
    cones, plain, known = Cones(heights, order), Cones(heights), np.ones(heights, dtype=bool)
    for step in range(12):
        levels = tuple(int(draw.integers(0, height)) for height in heights)
        if step % 3 == 0:
            below = tuple(slice(0, level + 1) for level in levels)
            known[below] = False
        elif step % 3 == 1:
            known[tuple(slice(level, None) for level in levels)] = False
        else:
            known[levels] = False
        for each in (cones, plain):
            (each.remove_below, each.remove_above, each.remove)[step % 3](levels)
            assert (each.marks() == known).all()
            assert each.count == np.count_nonzero(known)
        left = [place for place in order.tolist() if known.ravel()[place]]
        assert cones.next() == (left[0] if left else None)
        assert [plain.has(place) for place in range(120)] == known.ravel().tolist()
    cones.keep(np.zeros(heights, dtype=bool))
    assert cones.next() is None
    for remove in ("remove_below", "remove_above"):
        whole = Cones((2, 2))
        getattr(whole, remove)((1, 1) if remove == "remove_below" else (0, 0))
        assert whole.count == 0


def test_guesses_find_a_product_again() -> None:
    """Floors that are a product of one factor for each step are found from a few; what is not known lies between."""
    heights = (3, 4, 2)
    factor = [np.array([1.0, 2.0, 8.0]), np.array([1.0, 1.5, 4.5, 9.0]), np.array([1.0, 5.0])]
    floors = 10.0 * np.einsum("i,j,k->ijk", *factor)
    known = [(levels, float(floors[levels])) for levels in itertools.product(range(3), range(3), range(2))]
    found = guesses(heights, known, 400.0)
    assert found is not None
    assert found.aim == pytest.approx(np.log(400))
    assert np.allclose(found.guess[:, :3], np.log(floors[:, :3]), atol=1e-3)
    assert (found.guess[:, 3] > found.guess[:, 2]).all()
    assert guesses(heights, known[:3], 400.0) is None
    assert guesses(heights, [(levels, 1.0) for levels, _ in known], 400.0) is None
    assert guesses(heights, known, np.inf) is None
    below = guesses(heights, [(levels, floor - 20) for levels, floor in known], 400.0)
    assert below is not None
    assert below.aim == 400.0
