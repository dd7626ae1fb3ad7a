"""What a secure sum takes: processor time and bytes of each site, and of all parties together, in one process.

Every site and the hub are objects that take bytes and give bytes, so that each party's processor time is counted apart; no wire
and no disk are in it. The sum is compared with the plain one.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from _report import report

from cloister.crypto import SigningKey
from cloister.crypto.masking import add_mask, encoded
from cloister.noise import DiscreteLaplace, Random
from cloister.noise.shares import NoiseShares
from cloister.privacy import ZCDP
from cloister.together import HubRound, MemoryJournal, Roster, Round, SignedRoster, SiteRound, run_round
from cloister.together.noisy_moments import MomentNoise, NoisyMoments, moments_of

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
MILLION = 10**5 if QUICK else 10**6


def main() -> None:
    """Measure, print for people, print for programs."""
    for sites, trial in ((10, 0.7), (100, 5.6)):
        masked(sites, trial)
    report("a site of 10 with 1,326 moments, milliseconds", *worst(10, 1326, 3, 0, 1000), most=True)
    million = summed(20, MILLION, 6, 0)
    seconds, bytes_each = million.busiest, million.sent
    detail = (
        f"{MILLION:,} numbers: {seconds:.2f} s of processor time and {bytes_each / MILLION:.2f} bytes a number at the busiest"
    )
    report("a site of 20 with a million numbers, seconds", seconds * 10**6 / MILLION, 1.5, detail, most=True)
    report("a site of 20 with a million numbers, bytes a number", bytes_each / MILLION, 12, detail, most=True)
    whole = summed(100, 10**4, 10, 5).whole
    report("100 sites with 10,000 numbers, 5 drop-outs, seconds in all", whole, 30, "processor time of hub and sites", most=True)
    ridge(100, 10, 5)
    noise_in_shares()


def masked(sites: int, trial: float) -> None:
    """The masks alone, of one owner's 1,326 moments: its own, and one with each other site, once their keys are agreed on."""
    keys, vector, taken = [Random().bytes(32) for _ in range(sites)], encoded(np.arange(1326), words=1), []
    for _ in range(20):
        begun = time.process_time()
        for place, key in enumerate(keys):
            add_mask(vector, key, subtract=bool(place % 2))
        taken.append(1000 * (time.process_time() - begun))
    detail = f"{vector.nbytes / 1000:.1f} kB; a trial took {trial} ms"
    report(f"the masks of 1,326 moments among {sites} owners, milliseconds", statistics.median(taken), trial, detail, most=True)


def worst(sites: int, numbers: int, missing: int, dropped: int, unit: int) -> tuple[float, float, str]:
    """The busiest site's processor time in some unit, the median of nine rounds after one; its limit, and what it sent."""
    rounds = [summed(sites, numbers, missing, dropped) for _ in range(10)][1:]
    sent = f"{rounds[0].sent / 1000:.1f} kB sent, with the keys of {sites} sites; median of {len(rounds)} rounds"
    return statistics.median(each.busiest for each in rounds) * unit, 100, sent


class Measured(NamedTuple):
    """Processor time of the busiest site, of the hub and of all; the bytes of the site that sent most; the sum."""

    busiest: float
    hub: float
    whole: float
    sent: int
    total: Any


def summed(sites: int, numbers: int, missing: int, dropped: int, held: Mapping[int, Any] | None = None) -> Measured:
    """A secure sum in one process; some drop out before they send numbers."""
    names, hub_key = [f"site {place}" for place in range(sites)], SigningKey.generate()
    keys = {name: SigningKey.generate() for name in names}
    roster = Roster(sites={name: key.public for name, key in keys.items()}, hub=hub_key.public, missing=missing)
    round_ = Round(signed=SignedRoster.by(keys, roster), plan=b"a benchmark", numbers=numbers)
    given = held or {place: np.arange(numbers) * (place + 1) - numbers for place in range(sites)}
    parts = {
        name: SiteRound(name, keys[name], round_, partial(given.__getitem__, place), journal=MemoryJournal())
        for place, name in enumerate(names)
    }
    hub, gone = HubRound(hub_key, round_), set(names[:dropped])
    seconds, sent = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0)

    def asked(name: str) -> Callable[[bytes], bytes | None]:
        def answer(message: bytes) -> bytes | None:
            if name in gone and hub.step not in ("begin", "all keys"):
                return None
            begun = time.process_time()
            found = parts[name].answer(message)
            seconds[name] += time.process_time() - begun
            sent[name] += len(found)
            return found

        return answer

    begun = time.process_time()
    total = run_round(hub, {name: asked(name) for name in names})
    whole = time.process_time() - begun
    assert (total == sum(given[place] for place in range(dropped, sites))).all()
    return Measured(max(seconds.values()), whole - sum(seconds.values()), whole, max(sent.values()), total)


def ridge(owners: int, collude: int, dropped: int) -> None:
    """A ridge regression of ten columns over the noisy moments of many owners, some of whom drop out: hub and the busiest owner
    one after another, as where each is a machine of its own; and the noise over that of N − t."""
    random, drawn = Random.deterministic(1), np.random.default_rng(1)
    low, high = np.full(11, -3.0), np.full(11, 3.0)
    noise = MomentNoise(features=11, rho=Fraction(1, 2), honest=owners - 2 * collude)
    held, rows, slopes = {}, [], np.linspace(-1, 1, 10)
    begun = time.process_time()
    for place in range(owners):
        columns = drawn.normal(size=(200, 10))
        rows.append(np.column_stack([columns, columns @ slopes / 4 + drawn.normal(size=200) / 4]))
        held[place] = moments_of(rows[-1], low, high, 5.0) + noise.sample(random)
    own = (time.process_time() - begun) / owners
    found = summed(owners, noise.numbers, collude, dropped, held)
    present = owners - dropped
    made = NoisyMoments.of_steps(
        found.total, noise, low=low, high=high, radius=5.0, owners=present, guarantee=ZCDP(Fraction(1, 2))
    )
    coefficients, _ = made.ridge(10)
    exact = np.linalg.lstsq(np.concatenate(rows[dropped:])[:, :10], np.concatenate(rows[dropped:])[:, 10], rcond=None)[0]
    surplus = (noise.deviations(present)[2] / MomentNoise(features=11, rho=Fraction(1, 2), honest=1).deviations(1)[2]) ** 2
    law = present / (owners - 2 * collude)
    detail = (
        f"{dropped} drop out; {found.whole:.1f} s of processor time of all parties together; coefficients within "
        f"{np.abs(coefficients - exact).max():.3f}; variance {surplus:.4f} of one noise, by the law {law:.4f}"
    )
    report(f"ridge over {owners} owners, hub and busiest owner, seconds", found.hub + found.busiest + own, 2, detail, most=True)


def noise_in_shares() -> None:
    """A million shares of noise at one of 20 sites, and how wide the noise of all of them is."""
    law = DiscreteLaplace(scale=1000)
    shares, random = NoiseShares(law=law, parties=20, honest=16), Random()
    begun = time.process_time()
    shares.share.sample(MILLION, random=random)
    seconds = (time.process_time() - begun) * 10**6 / MILLION
    report(
        "a million shares of Laplace noise, seconds",
        seconds,
        1.5,
        "scale 1,000, 20 sites of which 2 may collude and 2 drop out",
        most=True,
    )
    for sites, collude, dropouts in ((5, 1, 1), (5, 1, 0), (5, 0, 1), (10, 3, 3), (10, 2, 1)):
        variance_of_rounds(law, sites, collude, dropouts, random)


def variance_of_rounds(law: DiscreteLaplace, sites: int, collude: int, dropouts: int, random: Random) -> None:
    """The variance of sums that were opened, over that of one central noise: N/(N − t) within 5 %, t counting those who collude
    and those who may drop out; and what a whole noise at each site has in its place."""
    hub_key, keys = SigningKey.generate(), {f"site {place}": SigningKey.generate() for place in range(sites)}
    names = {name: key.public for name, key in keys.items()}
    roster = Roster(sites=names, hub=hub_key.public, missing=collude, dropouts=dropouts)
    share, numbers = roster.noise(law).share, 40_000
    round_ = Round(signed=SignedRoster.by(keys, roster), plan=b"a benchmark", numbers=numbers)
    parts = {
        name: SiteRound(name, key, round_, lambda: share.sample(numbers, random=random), journal=MemoryJournal())
        for name, key in keys.items()
    }
    total = run_round(HubRound(hub_key, round_), {name: part.answer for name, part in parts.items()})
    whole = sum(law.sample(numbers, random=random) for _ in range(sites))
    found, at_each = (float(np.var(np.asarray(each, dtype=np.float64))) / law.variance for each in (total, whole))
    limit = sites / (sites - collude - dropouts)
    detail = (
        f"{found:.3f} times the variance of one central noise, by its law {limit:.3f}; {at_each:.2f} for a noise at each site"
    )
    title = f"variance of {sites} sites, of which {collude} may collude and {dropouts} drop out, over N/(N − t)"
    report(title, max(found / limit, limit / found), 1.05, detail, most=True)


if __name__ == "__main__":
    main()
