"""Who takes part: signed by all, changed by those whom it concerns, and large enough to hide anybody."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.crypto import SigningKey
from cloister.noise import DiscreteGaussian, DiscreteLaplace, SummedNoise
from cloister.noise.shares import NoiseShares, rho_of_sum
from cloister.together import Roster, SignedRoster
from tests.noise.test_shares import chances
from tests.together.parties import HUB_KEY, keys_of, roster_of
from tests.together.wired import site_of


@pytest.mark.parametrize(
    ("count", "missing", "threshold", "quorum", "honest"),
    [
        (3, 0, 2, 3, 3),
        (3, 1, 3, 3, 2),
        (4, 1, 3, 3, 2),
        (5, 1, 4, 4, 3),
        (5, 3, 5, 5, 2),
        (10, 0, 6, 10, 10),
        (10, 3, 7, 7, 4),
        (10, 5, 8, 8, 3),
        (100, 33, 67, 67, 34),
    ],
)
def test_the_least_threshold_is_taken(count: int, missing: int, threshold: int, quorum: int, honest: int) -> None:
    if count > 26:
        sites = {f"site {place}": place.to_bytes(32, "big") for place in range(1, count + 1)}
        roster = Roster(sites=sites, hub=HUB_KEY.public, missing=missing)
    else:
        roster = roster_of(count, missing)
    assert (roster.threshold, roster.quorum, roster.honest) == (threshold, quorum, honest)
    with pytest.raises(cl.InvalidDeclaration, match="two different sets of survivors could both be signed"):
        Roster(sites=roster.sites, hub=roster.hub, missing=missing, threshold=threshold - 1)


@pytest.mark.parametrize(
    ("count", "missing", "dropouts", "quorum", "honest"),
    [(5, 1, 0, 5, 4), (5, 0, 1, 4, 4), (5, 1, 1, 4, 3), (5, 0, 2, 3, 3), (3, 1, 0, 3, 2), (10, 2, 1, 9, 7), (10, 0, 4, 6, 6)],
)
def test_those_who_drop_out_are_counted_apart(count: int, missing: int, dropouts: int, quorum: int, honest: int) -> None:
    """The quorum is N − d, and honest and present are N − t − d; it is in the text that all sign, and an older text has none."""
    roster = roster_of(count, missing, dropouts=dropouts)
    assert (roster.quorum, roster.honest) == (quorum, honest) == (count - dropouts, count - missing - dropouts)
    assert 2 * roster.quorum > count + missing
    assert Roster.from_plain(roster.plain()) == roster
    assert roster.digest != roster_of(count, missing).digest
    assert "dropouts" not in roster_of(count, missing).plain()
    share = roster.noise(DiscreteLaplace(scale=10))
    assert share.total(honest) == DiscreteLaplace(scale=10)
    assert share.total(count).variance == pytest.approx(share.law.variance * count / honest)


@pytest.mark.parametrize("dropouts", [3, -1, True, "1"])
def test_more_drop_outs_than_leave_a_threshold_are_refused(dropouts: Any) -> None:
    with pytest.raises(cl.InvalidDeclaration, match=r"of 5 sites 3 have to agree on who is left.\n  Instead: dropouts=2"):
        roster_of(5, 0, dropouts=dropouts)


@pytest.mark.parametrize("count", range(3, 9))
def test_no_two_sets_can_be_signed_and_no_two_seeds_opened(count: int) -> None:
    """Every way in which honest sites can be split between two sets, with all colluders on both sides."""
    for missing in range(count - 1):
        threshold = roster_of(count, missing).threshold
        for first in range(count - missing + 1):
            assert not (first + missing >= threshold and (count - missing - first) + missing >= threshold)


@pytest.mark.parametrize("count", range(3, 11))
def test_what_no_colluder_knows_promises_what_was_asked_for(count: int) -> None:
    """The hub leaves out as many honest sites as it may, and knows the noise of all colluders: what is unknown is quorum − t
    shares. Their ε is read off the exact law, their ρ is that of a sum of so many."""
    laplace, gauss = DiscreteLaplace(scale=10), DiscreteGaussian(scale=30)
    for missing in range(count - 1):
        for threshold in range(roster_of(count, missing).threshold, count + 1):
            roster = roster_of(count, missing, threshold=threshold)
            unknown = roster.quorum - missing
            assert unknown >= 2
            [(law, number)] = roster.noise(laplace).share.parts  # type: ignore[union-attr]
            found = chances(SummedNoise(parts=[(law, number * unknown)]))
            assert max(np.log(found[:60] / found[1:61])) < 0.1 + 1e-9
            share = roster.noise(gauss).share
            assert isinstance(share, DiscreteGaussian)
            assert rho_of_sum(share, unknown) <= gauss.guarantee.rho


def test_shares_for_all_who_are_not_missing_are_too_small() -> None:
    """BROKEN ON PURPOSE: shares for N − t sites, where the hub chooses which t of the honest ones drop out."""
    roster, law = roster_of(10, 3), DiscreteLaplace(scale=10)
    [(part, number)] = NoiseShares(law=law, parties=10, honest=7).share.parts  # type: ignore[union-attr]
    found = chances(SummedNoise(parts=[(part, number * roster.honest)]))
    assert max(np.log(found[:60] / found[1:61])) > 0.47
    share = NoiseShares(law=DiscreteGaussian(scale=30), parties=10, honest=7).share
    assert isinstance(share, DiscreteGaussian)
    assert rho_of_sum(share, roster.honest) > DiscreteGaussian(scale=30).guarantee.rho


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"count": 2}, "each would see the other's"),
        ({"count": 1}, "several that hide one another"),
        ({"missing": 2}, "at least two sites must be honest"),
        ({"missing": -1}, "at least two sites must be honest"),
        ({"missing": True}, "at least two sites must be honest"),
        ({"threshold": 4}, "threshold"),
        ({"threshold": "3"}, "threshold"),
        ({"epoch": 0}, "counts from 1"),
        ({"epoch": 2**31}, "counts from 1, below"),
        ({"epoch": 10**5000}, "counts from 1, below"),
    ],
)
def test_what_protects_nobody_is_refused(change: dict[str, Any], words: str) -> None:
    given = {"count": 3, **change}
    with pytest.raises(cl.InvalidDeclaration, match=words):
        roster_of(given.pop("count"), given.pop("missing", 0), **given)


@pytest.mark.parametrize(
    "sites",
    [
        {"a": b"1" * 32, "b": b"1" * 32, "c": b"3" * 32},
        {"a": HUB_KEY.public, "b": b"2" * 32, "c": b"3" * 32},
        {"a": b"1", "b": b"2" * 32, "c": b"3" * 32},
        {"a": "1" * 32, "b": b"2" * 32, "c": b"3" * 32},
        {"a\n": b"1" * 32, "b": b"2" * 32, "c": b"3" * 32},
        {"": b"1" * 32, "b": b"2" * 32, "c": b"3" * 32},
    ],
)
def test_each_party_has_a_name_and_a_key_of_its_own(sites: Mapping[str, Any]) -> None:
    with pytest.raises(cl.InvalidDeclaration):
        Roster(sites=sites, hub=HUB_KEY.public, missing=0)


def test_its_text_is_one_and_comes_back() -> None:
    roster = roster_of(4, 1)
    assert Roster.from_plain(roster.plain()) == roster
    assert Roster.from_plain(roster.plain()).digest == roster.digest
    assert roster.digest == "0e7bbb9f87ab59e33c7c5560338c3c31348e65ad888548e71f29496b1068a78f"
    assert len(set(roster.fingerprints().values())) == 4


def signed(roster: Roster, keys: Mapping[str, SigningKey], rotations: Mapping[str, SigningKey] | None = None) -> SignedRoster:
    """As its sites sign it, and old keys of some."""
    return SignedRoster(
        roster,
        {name: keys[name].sign(roster.text) for name in roster.sites if name in keys},
        {name: key.sign(roster.text) for name, key in (rotations or {}).items()},
    )


def after(old: Roster, **changes: Any) -> Roster:
    return Roster(**{"sites": old.sites, "hub": old.hub, "missing": old.missing, "epoch": old.epoch + 1, **changes})


def test_every_site_signs() -> None:
    roster, keys = roster_of(4, 1), keys_of(4)
    signed(roster, keys).check()
    for name in keys:
        with pytest.raises(cl.InvalidDeclaration, match=f"not signed by '{name}'"):
            signed(roster, {other: key for other, key in keys.items() if other != name}).check()
        with pytest.raises(cl.InvalidDeclaration, match=f"not signed by '{name}'"):
            signed(roster, {**keys, name: HUB_KEY}).check()


def test_a_key_is_rotated_by_the_old_one() -> None:
    keys, fresh = keys_of(4), SigningKey(b"new" + bytes(29))
    before = signed(roster_of(4, 1), keys)
    changed = after(before.roster, sites={**before.roster.sites, "b": fresh.public})
    signed(changed, {**keys, "b": fresh}, {"b": keys["b"]}).check_after(before)
    for rotations in ({}, {"b": fresh}, {"a": keys["a"]}, {"b": keys["a"]}):
        with pytest.raises(cl.InvalidDeclaration, match="old key did not sign"):
            signed(changed, {**keys, "b": fresh}, rotations).check_after(before)


def test_a_site_is_revoked_by_a_quorum_and_another_let_in() -> None:
    keys = keys_of(6)
    before = signed(roster_of(5, 1), keys)
    without = {name: key for name, key in before.roster.sites.items() if name != "c"}
    signed(after(before.roster, sites=without), keys).check_after(before)
    signed(after(before.roster, sites={**without, "f": keys["f"].public}), keys).check_after(before)
    few = dict(itertools.islice(without.items(), 3))
    with pytest.raises(cl.InvalidDeclaration, match="3 sites of the one before are left, and 4 are a quorum"):
        signed(after(before.roster, sites=few), keys).check_after(before)


@pytest.mark.parametrize("epoch", [1, 3])
def test_rosters_follow_one_another(epoch: int) -> None:
    before = signed(roster_of(4, 1), keys_of(4))
    with pytest.raises(cl.InvalidDeclaration, match="2 is the next"):
        signed(after(before.roster, epoch=epoch), keys_of(4)).check_after(before)


def test_a_site_that_was_away_takes_a_later_roster() -> None:
    """It was shut out for good: its hub has the newest alone, and there the site called it out of order."""
    keys, fresh = keys_of(6), SigningKey(b"new" + bytes(29))
    first = roster_of(5, 1)
    site = site_of("a", key=keys["a"])
    site.join(signed(first, keys))
    few = {name: key for name, key in first.sites.items() if name in "abc"}
    other = {**first.sites, "b": fresh.public}
    for sites, held, why in ((few, keys, "4 are a quorum"), (other, {**keys, "b": fresh}, "old key did not sign")):
        with pytest.raises(cl.InvalidDeclaration, match=why):
            site.join(signed(after(first, sites=sites, epoch=3), held))
    third = signed(after(first, sites={**first.sites, "f": keys["f"].public}, epoch=3), keys)
    site.join(third)
    with pytest.raises(cl.InvalidDeclaration, match="joined number 3 of this hub before"):
        site.join(signed(after(first), keys))
    assert site.joined() == [third]
