"""What a secure sum takes: processor time and bytes of each site, and of all parties together, in one process.

Every site and the hub are objects that take bytes and give bytes, so that each party's processor time is counted apart; no wire
and no disk are in it. The sum is compared with the plain one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from _report import report

from cloister.crypto import SigningKey
from cloister.noise import DiscreteLaplace, Random
from cloister.noise.shares import NoiseShares
from cloister.together import HubRound, MemoryJournal, Roster, Round, SignedRoster, SiteRound, run_round

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
MILLION = 10**5 if QUICK else 10**6


def main() -> None:
    """Measure, print for people, print for programs."""
    report("a site of 10 with 1,326 moments, milliseconds", *worst(10, 1326, 3, 0, 1000), most=True)
    seconds, bytes_each, _ = summed(20, MILLION, 6, 0)
    detail = (
        f"{MILLION:,} numbers: {seconds:.2f} s of processor time and {bytes_each / MILLION:.2f} bytes a number at the busiest"
    )
    report("a site of 20 with a million numbers, seconds", seconds * 10**6 / MILLION, 1.5, detail, most=True)
    report("a site of 20 with a million numbers, bytes a number", bytes_each / MILLION, 12, detail, most=True)
    _, _, whole = summed(100, 10**4, 10, 5)
    report("100 sites with 10,000 numbers, 5 drop-outs, seconds in all", whole, 30, "processor time of hub and sites", most=True)
    noise_in_shares()


def worst(sites: int, numbers: int, missing: int, dropped: int, unit: int) -> tuple[float, float, str]:
    """The busiest site's processor time in some unit, its limit, and what it sent."""
    seconds, bytes_each, _ = summed(sites, numbers, missing, dropped)
    return seconds * unit, 100, f"{bytes_each / 1000:.1f} kB sent, with the keys of {sites} sites"


def summed(sites: int, numbers: int, missing: int, dropped: int) -> tuple[float, int, float]:
    """Processor time and bytes of the busiest site, and processor time of all; some drop out before they send numbers."""
    names, hub_key = [f"site {place}" for place in range(sites)], SigningKey.generate()
    keys = {name: SigningKey.generate() for name in names}
    roster = Roster(sites={name: key.public for name, key in keys.items()}, hub=hub_key.public, missing=missing)
    round_ = Round(signed=SignedRoster.by(keys, roster), plan=b"a benchmark", numbers=numbers)
    held = {name: np.arange(numbers) * (place + 1) - numbers for place, name in enumerate(names)}
    parts = {
        name: SiteRound(name, keys[name], round_, partial(held.__getitem__, name), journal=MemoryJournal()) for name in names
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
    assert (total == sum(held[name] for name in names if name not in gone)).all()
    return max(seconds.values()), max(sent.values()), whole


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
    for sites, honest in ((5, 3), (10, 4), (10, 7)):
        limit = sites / honest
        shares = NoiseShares(law=law, parties=sites, honest=honest)
        total = sum(shares.share.sample(40_000, random=random) for _ in range(sites))
        found = float(np.var(np.asarray(total, dtype=np.float64))) / law.variance
        detail = f"variance over one central noise: {sites}/{honest} = {limit:.3f}, against {sites} for noise at each site"
        report(f"noise of {sites} sites, {honest} of them honest and present", found / limit, 1.05, detail, most=True)


if __name__ == "__main__":
    main()
