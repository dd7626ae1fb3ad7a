"""Attackers: each catches the table that was made to fail it, and lets pass the one that was made to stand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.anonymize.attackers import (
    Target,
    attack,
    attack_tables,
    background,
    homogeneity,
    intersection,
    learner,
    linkage,
    similarity,
    skewness,
    target_of,
)
from cloister.anonymize.encoded import encode
from cloister.anonymize.frames import read_frame
from cloister.anonymize.hierarchies.ladder import Ladder
from cloister.anonymize.recoding import Recoded, RecodedColumn
from cloister.errors import InvalidParameter
from cloister.noise import Random


def published(
    groups: Sequence[int], ill: Sequence[Any], ids: Sequence[int] | None = None, suppressed: Sequence[int] = ()
) -> Target:
    """People told apart by `id` in the raw table, and by their group in the published one."""
    ids = list(range(len(groups))) if ids is None else list(ids)
    table = encode(read_frame({"id": ids, "ill": list(ill)}), ["id", "ill"])
    return target_of(table, recoding(table, groups, suppressed))


def recoding(table: Any, groups: Sequence[int], suppressed: Sequence[int] = ()) -> Recoded:
    count = max(groups) + 1
    gone = np.zeros(table.rows, dtype=bool)
    gone[list(suppressed)] = True
    return Recoded(
        columns={
            "id": RecodedColumn(
                codes=np.array(groups, dtype=np.int32),
                labels=[f"group {g}" for g in range(count)],
                shares=np.zeros(count),
                widths=np.zeros(count),
            )
        },
        suppressed=gone,
        sensitive={"ill": table.columns["ill"]},
    )


def test_a_table_without_diversity_is_caught_by_homogeneity() -> None:
    broken = published([0, 0, 0, 1, 1, 1], ["flu", "flu", "flu", "flu", "gout", "cold"])
    sound = published([0, 0, 0, 1, 1, 1], ["flu", "cold", "gout", "flu", "gout", "cold"])
    assert homogeneity(broken, "ill").success == 0.5
    assert homogeneity(broken, "ill").succeeds
    assert homogeneity(sound, "ill").success == 0
    assert not homogeneity(sound, "ill").succeeds
    assert homogeneity(sound, "ill").before == 1


def test_a_table_of_two_values_a_class_is_caught_by_background_knowledge() -> None:
    broken = published([0, 0, 0, 1, 1, 1], ["flu", "flu", "gout", "flu", "gout", "cold"])
    assert homogeneity(broken, "ill").success == 0
    assert background(broken, "ill").success == 0.5
    assert background(broken, "ill", known=0).success == 0
    assert background(broken, "ill", known=2).success == background(broken, "ill", known=2).baseline == 1


def test_a_skewed_class_is_caught_by_skewness_and_not_by_homogeneity() -> None:
    rare = ["HIV", "HIV", "none", "none"] + ["none"] * 36
    broken = published([0] * 4 + [1] * 36, rare)
    even = published([0, 1] * 20, ["HIV"] * 2 + ["none"] * 38)
    assert homogeneity(published([0] * 4 + [1, 2] * 18, [*rare[:39], "HIV"]), "ill").success < 1
    found = skewness(broken, "ill")
    assert found.success == 2 / 40
    assert "5.0 % to 50.0 %" in found.sentence
    assert skewness(even, "ill").success == 0


def test_alike_values_are_caught_by_similarity() -> None:
    values = ["gastritis", "ulcer", "flu", "cold"]
    order = sorted(values)
    kinds = {"gastritis": "stomach", "ulcer": "stomach", "flu": "lung", "cold": "lung"}
    ladder = Ladder.of("ill", order, [[kinds[v] for v in order], ["*"] * 4])
    broken, sound = published([0, 0, 1, 1], values), published([0, 1, 0, 1], values)
    assert homogeneity(broken, "ill").success == 0
    assert similarity(broken, "ill") is None
    for target, share in ((broken, 1.0), (sound, 0.0)):
        found = similarity(Target(raw=target.raw, recoded=target.recoded, hierarchies={"ill": ladder}), "ill")
        assert found is not None
        assert found.success == share
    pay = similarity(published([0, 0, 1, 1], [30, 31, 30, 90]), "ill")
    assert pay is not None
    assert pay.success == 0.5


def test_linkage_counts_what_a_list_of_exactly_these_people_gives() -> None:
    target = published([0, 0, 0, 1, 2, 2], ["a"] * 6)
    found = linkage(target)
    assert found.success == 3 / 6
    assert "1 is certain" in found.sentence
    assert found.before == 1
    hidden = published([0, 0, 0, 1, 2, 2], ["a"] * 6, suppressed=[3])
    assert linkage(hidden).success == 2 / 6


def test_linkage_with_a_list_counts_who_fits() -> None:
    """Every person of the list against every class, by hand."""
    target = published([0, 0, 1, 1], ["a"] * 4, ids=[10, 20, 30, 40])
    public = {"id": [10, 10, 20, 30, 40, 40, 40, 99]}
    found = linkage(target, public)
    assert found.success == pytest.approx((2 / 3 + 2 / 4) / 4)
    assert found.before == pytest.approx((1 / 2 + 1 + 1 + 1 / 3) / 4)
    assert found.baseline == 1 / 8


def test_a_label_fits_all_values_that_were_published_under_it() -> None:
    """Local recoding: two labels share the value 20."""
    target = published([0, 0, 1, 1], ["a"] * 4, ids=[10, 20, 20, 30])
    found = linkage(target, {"id": [10, 20, 30, 30]})
    assert found.success == pytest.approx((2 / 2 + 2 / 3) / 4)


def test_two_releases_each_of_them_diverse_are_caught_by_intersection() -> None:
    """The table of Ganta, Kasiviswanathan and Smith in small: each class has three values, each pair of classes one."""
    ill = ["AIDS", "flu", "gout", "cold", "AIDS", "ulcer"]
    first = published([0, 0, 0, 1, 1, 1], ill)
    other = recoding(first.raw, [0, 1, 1, 0, 1, 0])
    assert homogeneity(first, "ill").success == 0
    expected = 0
    groups, second = [0, 0, 0, 1, 1, 1], [0, 1, 1, 0, 1, 0]
    for row in range(6):
        mine = {ill[r] for r in range(6) if groups[r] == groups[row]}
        expected += len(mine & {ill[r] for r in range(6) if second[r] == second[row]}) == 1
    found = intersection(first, other, "ill")
    assert found.success == expected / 6 > 0
    assert found.baseline == 0
    assert found.succeeds
    same = intersection(first, first.recoded, "ill")
    assert same.success == 0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2), st.booleans(), st.booleans()), min_size=2, max_size=16
    )
)
def test_intersection_is_that_of_sets(rows: list[tuple[int, int, int, bool, bool]]) -> None:
    ill = [f"v{row[2]}" for row in rows]
    first = published([row[0] for row in rows], ill, suppressed=[n for n, row in enumerate(rows) if row[3]])
    other = recoding(first.raw, [row[1] for row in rows], [n for n, row in enumerate(rows) if row[4]])
    told = 0
    for one in rows:
        sets = []
        for group, hidden in ((0, 3), (1, 4)):
            if not one[hidden]:
                sets.append({each[2] for each in rows if each[group] == one[group] and not each[hidden]})
        told += bool(sets) and len(set.intersection(*sets)) == 1
    assert intersection(first, other, "ill").success == pytest.approx(told / len(rows))


def test_a_second_release_of_other_rows_is_refused() -> None:
    first, second = published([0, 0], ["a", "b"]), published([0, 0, 0], ["a", "b", "b"])
    with pytest.raises(InvalidParameter, match="other rows"):
        intersection(first, second.recoded, "ill")


def test_a_learner_learns_what_the_table_teaches_and_is_measured_against_others() -> None:
    pytest.importorskip("sklearn")
    random = Random.deterministic(3)
    noise = random.below(10, 600)
    group = np.arange(600) % 6
    # what others teach as well: an even group has flu, nearly always
    ill = np.where(noise == 0, "gout", np.where(group % 2 == 0, "flu", "cold"))
    target = published(group.tolist(), ill.tolist())
    found = learner(target, "ill", random=Random.deterministic(1))
    assert 0.85 < found.success < 0.95
    assert found.baseline > 0.8
    assert not found.succeeds
    # what only these rows teach: an id for everybody, and values by chance
    lone = published(list(range(600)), [f"v{v}" for v in random.below(5, 600)])
    caught = learner(lone, "ill", random=Random.deterministic(1))
    assert caught.success == 1
    assert caught.baseline < 0.4
    assert caught.succeeds


def test_a_learner_is_the_same_with_the_same_random() -> None:
    pytest.importorskip("sklearn")
    target = published([n % 5 for n in range(100)], [str(n % 3) for n in range(100)])
    assert learner(target, "ill", random=Random.deterministic(4)) == learner(target, "ill", random=Random.deterministic(4))


def test_success_against_the_raw_table_is_never_less_where_nothing_is_learnt() -> None:
    ill = ["a", "b", "c", "a", "b", "b", "c", "a"]
    for groups in itertools.product(range(2), repeat=8):
        target = published(list(groups), ill, ids=[0, 0, 1, 1, 2, 2, 3, 3]) if len(set(groups)) > 1 else None
        # a grouping that is coarser than the raw table's classes
        if target is None or any(groups[2 * n] != groups[2 * n + 1] for n in range(4)):
            continue
        for found in attack(target, learning=False):
            assert found.success <= found.before or found.name == "skewness"


def test_two_frames_are_attacked_as_they_are() -> None:
    raw = {"age": [31, 36, 45, 48, 70], "ill": ["flu", "flu", "flu", "gout", "cold"]}
    released = {"age": ["30–39", "30–39", "40–49", "40–49"], "ill": ["flu", "flu", "flu", "gout"]}
    with pytest.raises(InvalidParameter, match="nothing says which"):
        attack_tables(raw, released, ["age"], ["ill"], learning=False)
    found = {each.name: each for each in attack_tables(raw, released, ["age"], ["ill"], kept=[0, 1, 2, 3], learning=False)}
    assert found["homogeneity"].success == 2 / 5
    assert found["linkage"].success == 2 / 5
    starred = {name: [*values, "*"] for name, values in released.items()}
    same = {each.name: each for each in attack_tables(raw, starred, ["age"], ["ill"], learning=False)}
    assert same["homogeneity"].success == 2 / 5


def test_a_pandas_frame_says_itself_which_rows_are_left() -> None:
    pandas = pytest.importorskip("pandas")
    raw = pandas.DataFrame({"age": [31, 36, 45, 48], "ill": ["flu", "flu", "gout", "flu"]}, index=["a", "b", "c", "d"])
    released = pandas.DataFrame({"age": ["x", "x"], "ill": ["flu", "flu"]}, index=["b", "d"])
    found = {each.name: each for each in attack_tables(raw, released, ["age"], ["ill"], learning=False)}
    assert found["homogeneity"].success == 2 / 4


def test_weights_count_as_rows() -> None:
    from cloister.anonymize.encoded import Encoded, EncodedColumn

    weights = np.array([3, 1, 2], dtype=np.int64)
    columns = {
        "id": EncodedColumn(
            name="id", codes=np.array([0, 1, 2], dtype=np.int32), values=[0, 1, 2], kind="integer", tally=weights
        ),
        "ill": EncodedColumn(
            name="ill", codes=np.array([0, 0, 1], dtype=np.int32), values=["a", "b"], kind="text", tally=np.array([4, 2])
        ),
    }
    table = Encoded(rows=3, columns=columns, weights=weights)
    short = recoding(table, [0, 0, 1])
    target = target_of(table, short, sensitive=["ill"])
    long = published([0, 0, 0, 0, 1, 1], ["a"] * 4 + ["b"] * 2, ids=[0, 0, 0, 1, 2, 2])
    for one, other in zip(attack(target, learning=False), attack(long, learning=False), strict=True):
        assert (one.name, one.success, one.before, one.baseline) == (other.name, other.success, other.before, other.baseline)


def test_nonsense_is_refused() -> None:
    target = published([0, 0], ["a", "b"])
    with pytest.raises(InvalidParameter):
        attack(target.raw)
    with pytest.raises(InvalidParameter):
        attack(target, known=-1)
    with pytest.raises(InvalidParameter, match="lacks"):
        target_of(target.raw, target.recoded, sensitive=["pay"])
    with pytest.raises(InvalidParameter, match="different rows"):
        target_of(published([0, 0, 0], ["a"] * 3).raw, target.recoded)
