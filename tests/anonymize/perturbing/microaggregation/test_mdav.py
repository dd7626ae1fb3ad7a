"""MDAV and its kin: the published losses, a plain twin that reads like the paper, and groups that are never too small."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.anonymize.perturbing import blocked_mdav, information_loss, mdav, vmdav
from cloister.anonymize.perturbing.microaggregation.replacing import means
from cloister.errors import InvalidParameter
from tests.anonymize.perturbing.sdcmicro import reference_file

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

PUBLISHED = {
    ("Census", 3): 5.692,
    ("Census", 4): 7.495,
    ("Census", 5): 9.088,
    ("Census", 10): 14.156,
    ("Tarragona", 3): 16.933,
    ("Tarragona", 4): 19.546,
    ("Tarragona", 5): 22.462,
    ("Tarragona", 10): 33.193,
    ("EIA", 3): 0.483,
    ("EIA", 4): 0.671,
    ("EIA", 5): 1.667,
    ("EIA", 10): 3.840,
}
"""Loss in per cent, as papers on microaggregation print it for MDAV."""


def by_the_paper(points: Floats, k: int) -> Integers:
    """MDAV-generic, one sentence a line."""
    groups = np.full(len(points), -1)
    group = 0

    def take(place: Floats) -> None:
        nonlocal group
        left = np.flatnonzero(groups < 0)
        groups[left[np.argsort(((points[left] - place) ** 2).sum(axis=1), kind="stable")[:k]]] = group
        group += 1

    while (groups < 0).sum() >= 3 * k:
        left = np.flatnonzero(groups < 0)
        far = points[left[((points[left] - points[left].mean(axis=0)) ** 2).sum(axis=1).argmax()]]
        opposite = points[left[((points[left] - far) ** 2).sum(axis=1).argmax()]]
        take(far)
        take(opposite)
    if (groups < 0).sum() >= 2 * k:
        left = np.flatnonzero(groups < 0)
        take(points[left[((points[left] - points[left].mean(axis=0)) ** 2).sum(axis=1).argmax()]])
    groups[groups < 0] = group
    return groups


def loss_of(points: Floats, groups: Integers) -> float:
    return information_loss(points, np.column_stack([means(column, groups) for column in points.T]))


def standardised(raw: Floats) -> Floats:
    return (raw - raw.mean(axis=0)) / raw.std(axis=0)


@pytest.mark.parametrize(("name", "k"), PUBLISHED)
def test_the_published_losses(name: str, k: int) -> None:
    points = standardised(reference_file(name))
    assert 100 * loss_of(points, mdav(points, k)) == pytest.approx(PUBLISHED[name, k], abs=0.0006)


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("records", [7, 20, 21, 22, 300])
def test_the_same_groups_as_the_plain_twin(k: int, records: int) -> None:
    points = np.random.default_rng(records).normal(size=(records, 3))
    ours, plain = mdav(points, k), by_the_paper(points, k)
    assert len(set(zip(ours.tolist(), plain.tolist(), strict=True))) == len(set(ours.tolist())) == len(set(plain.tolist()))


def test_running_sums_stay_right_over_many_rounds() -> None:
    points = np.random.default_rng(3).normal(size=(3000, 2)) * [1, 1e-3] + [0, 1e3]
    points = standardised(points)
    assert loss_of(points, mdav(points, 2)) == pytest.approx(loss_of(points, by_the_paper(points, 2)), rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    records=st.integers(1, 60),
    k=st.integers(1, 9),
    kinds=st.integers(1, 5),
    gamma=st.sampled_from([0.0, 0.2, 1.1, 5.0]),
)
def test_no_group_is_too_small_whatever_is_alike(records: int, k: int, kinds: int, gamma: float) -> None:
    """Few distinct points: ties everywhere."""
    k = min(k, records)
    points = (np.arange(records * 2).reshape(records, 2) * 7919 % kinds).astype(float)
    for groups in (mdav(points, k), vmdav(points, k, gamma=gamma), blocked_mdav(points, k, size=max(3 * k, 20))):
        sizes = np.bincount(groups)
        assert len(groups) == records
        assert sizes.min() >= k
    assert np.bincount(mdav(points, k)).max() < 2 * k


def test_variable_groups_lose_less_where_clusters_are_of_unequal_size() -> None:
    centres = np.repeat([[0.0, 0], [50, 0], [0, 50], [50, 50]], [4, 5, 4, 5], axis=0)
    points = centres + np.random.default_rng(1).normal(size=centres.shape)
    assert loss_of(points, vmdav(points, 3, gamma=1.1)) < loss_of(points, mdav(points, 3)) / 5


def test_blocks_lose_little_more_than_the_whole() -> None:
    points = np.random.default_rng(1).normal(size=(4000, 3))
    whole, blocks = loss_of(points, mdav(points, 5)), loss_of(points, blocked_mdav(points, 5, size=1000))
    assert whole < blocks < 1.2 * whole
    assert np.bincount(blocked_mdav(points[:-2], 5, size=1000)).max() == 8  # one group takes the three that are over


@pytest.mark.parametrize("group", [mdav, vmdav, blocked_mdav])
def test_empty_and_constant_tables(group: object) -> None:
    assert group(np.empty((0, 3)), 5).tolist() == []  # type: ignore[operator]
    assert np.bincount(group(np.zeros((11, 2)), 5)).min() >= 5  # type: ignore[operator]


@pytest.mark.parametrize("group", [mdav, vmdav, blocked_mdav])
@pytest.mark.parametrize(
    ("points", "k", "said"),
    [
        ([[1.0], [2.0]], 3, "2 records"),
        ([[1.0], [np.nan]], 1, "finite"),
        ([[1.0], [np.inf]], 1, "finite"),
        ([[1.0], [2.0]], 0, "whole number"),
        ([[1.0], [2.0]], True, "whole number"),
        ([[1.0], [2.0]], 1.5, "whole number"),
    ],
)
def test_refusals(group: object, points: object, k: object, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        group(points, k)  # type: ignore[operator]


def test_refusals_of_their_own() -> None:
    with pytest.raises(InvalidParameter, match="gamma"):
        vmdav([[1.0]] * 4, 2, gamma=-1)
    with pytest.raises(InvalidParameter, match="three groups"):
        blocked_mdav([[1.0]] * 4, 2, size=5)
