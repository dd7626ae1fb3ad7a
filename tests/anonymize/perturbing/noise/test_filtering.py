"""The attack on additive noise: it undoes independent noise on correlated columns, and not correlated noise."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("polars")

from cloister.anonymize.perturbing import AdditiveNoise, remove_noise
from cloister.errors import InvalidParameter
from cloister.noise import Random

NAMES = [f"c{place}" for place in range(10)]


def factors(n: int = 2000) -> dict[str, np.ndarray]:
    """Ten columns that two hidden factors make."""
    generator = np.random.default_rng(1)
    values = generator.normal(size=(n, 2)) @ generator.normal(size=(2, 10)) * 10 + generator.normal(size=(n, 10)) * 0.1
    return dict(zip(NAMES, values.T, strict=True))


@pytest.mark.parametrize("method", ["bayes", "spectral"])
def test_independent_noise_comes_off_correlated_columns(method: str) -> None:
    """Two of ten directions carry data: √(2/10) of the noise is left, and no more."""
    table = factors()
    done = AdditiveNoise(columns=NAMES, scale=5).apply(table, random=Random.deterministic(1), shuffle=False)
    found = remove_noise(done.frame, NAMES, done.covariance, method=method)
    before, after = found.errors(np.column_stack(list(table.values())))
    assert before == pytest.approx(np.full(10, 5.0), rel=0.1)
    assert np.sqrt(np.mean(after**2)) == pytest.approx(5 * np.sqrt(0.2), rel=0.1)
    assert found.directions == 2


def test_correlated_noise_stays() -> None:
    """Noise in proportion to the data: only the shrinking of a single column is left to the attacker, 1/√(1 + ratio²)."""
    table = factors()
    done = AdditiveNoise(columns=NAMES, ratio=0.5, kind="correlated").apply(table, random=Random.deterministic(1), shuffle=False)
    before, after = remove_noise(done.frame, NAMES, done.covariance).errors(np.column_stack(list(table.values())))
    assert after / before == pytest.approx(np.full(10, 1 / np.sqrt(1.25)), rel=0.05)


def test_unrelated_columns_keep_their_noise() -> None:
    values = np.random.default_rng(1).normal(size=(4000, 10)) * 20
    table = dict(zip(NAMES, values.T, strict=True))
    done = AdditiveNoise(columns=NAMES, scale=5).apply(table, random=Random.deterministic(1), shuffle=False)
    before, after = remove_noise(done.frame, NAMES, done.covariance).errors(values)
    assert (after > 0.93 * before).all()


def test_noise_alone_has_no_direction() -> None:
    """Below Marchenko and Pastur's edge, where nothing but noise is."""
    table = dict(zip(NAMES, np.random.default_rng(3).normal(size=(1000, 10)).T, strict=True))
    assert remove_noise(table, NAMES, np.eye(10)).directions <= 1


@pytest.mark.parametrize(
    ("table", "covariance", "said"),
    [
        ({"a": [1.0, None]}, [[1.0]], "missing"),
        ({"a": [1.0, 2.0]}, [[1.0, 0], [0, 1]], "covariance="),
        ({"a": [1.0, 2.0]}, [[np.nan]], "covariance="),
        ({"a": [1.0]}, [[1.0]], "two rows"),
    ],
)
def test_refusals(table: object, covariance: object, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        remove_noise(table, "a", covariance)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="method="):
        remove_noise(table, "a", covariance, method="magic")  # type: ignore[arg-type]
