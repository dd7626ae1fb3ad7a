"""Ridge regression over many owners' noisy moments, some of whom drop out of the secure sum."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from cloister.crypto import SigningKey
from cloister.noise import Random
from cloister.privacy import ZCDP
from cloister.together import HubRound, MemoryJournal, Roster, Round, SignedRoster, SiteRound, run_round
from cloister.together.noisy_moments import MomentNoise, NoisyMoments, moments_of
from tests.tiers import by_day_and_night

RHO, FEATURES = Fraction(1, 2), 11
LOW, HIGH, RADIUS = np.full(FEATURES, -3.0), np.full(FEATURES, 3.0), 5.0


@by_day_and_night("owners", 10, 100)
def test_ridge_over_owners_of_whom_some_drop_out(owners: int) -> None:
    """A tenth may collude and a twentieth drop out, and does. The noise is (N − d)/(N − t − d) of the variance of one, to a
    hundredth, and what is in the sum has it; the coefficients are those of the rows of all that stayed, within the noise."""
    collude, gone = owners // 10, max(1, owners // 20)
    keys, hub_key = (
        {f"owner {place}": SigningKey(place.to_bytes(32, "big")) for place in range(1, owners + 1)},
        SigningKey(b"h" * 32),
    )
    roster = Roster(sites={name: key.public for name, key in keys.items()}, hub=hub_key.public, missing=collude, dropouts=gone)
    noise = MomentNoise(features=FEATURES, rho=RHO, honest=roster.honest)
    random, drawn, slopes = Random.deterministic(1), np.random.default_rng(1), np.linspace(-1, 1, FEATURES - 1)
    rows = {}
    for name in keys:
        columns = drawn.normal(size=(20_000 // owners, FEATURES - 1))
        rows[name] = np.column_stack([columns, columns @ slopes / 4 + drawn.normal(size=len(columns)) / 4])
    round_ = Round(signed=SignedRoster.by(keys, roster), plan=b"moments", numbers=noise.numbers)
    left = list(keys)[gone:]

    def asked(name: str) -> Callable[[bytes], bytes | None]:
        site = SiteRound(
            name,
            keys[name],
            round_,
            lambda: moments_of(rows[name], LOW, HIGH, RADIUS) + noise.sample(random),
            journal=MemoryJournal(),
            random=random,
        )
        return lambda message: None if name not in left and hub.step not in ("begin", "all keys") else site.answer(message)

    hub = HubRound(hub_key, round_)
    total = run_round(hub, {name: asked(name) for name in keys})
    assert hub.survivors == left
    moments = NoisyMoments.of_steps(total, noise, low=LOW, high=HIGH, radius=RADIUS, owners=len(left), guarantee=ZCDP(RHO))
    central = MomentNoise(features=FEATURES, rho=RHO, honest=1).deviations(1)
    surplus = len(left) / (owners - collude - gone)
    assert np.square(np.divide(noise.deviations(len(left)), central)) == pytest.approx(surplus, rel=0.01)
    exact = sum(moments_of(rows[name], LOW, HIGH, RADIUS) for name in left)
    apart = noise.deviations(len(left))
    scales = np.concatenate(
        [[apart[0]], np.full(FEATURES, apart[1]), np.full(FEATURES, apart[2]), np.full(55, apart[2] / np.sqrt(2))]
    )
    assert np.mean(np.square((total - exact) / scales)) == pytest.approx(1, abs=0.9)  # of 78 numbers: 5.6 deviations
    coefficients, intercept = moments.ridge(FEATURES - 1)
    everybody = np.concatenate([rows[name] for name in left])
    expected = np.linalg.lstsq(everybody[:, :-1], everybody[:, -1], rcond=None)[0]
    assert np.abs(coefficients - expected).max() < 0.05
    assert abs(intercept - (everybody[:, -1].mean() - expected @ everybody[:, :-1].mean(axis=0))) < 0.05
