"""Every public protocol of local reports is audited: never more than is promised, close to it where the audit is exact."""

from __future__ import annotations

import inspect
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.attacks import AuditResult, ChannelAudit, audit_protocol
from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.privacy import PureDP

EXACT = 1 - 1e-9
"""The share of the promise that arithmetic finds where thresholds are rounded to 2⁻⁶⁴."""


def supported_by(heavy: Any, left: int, right: int) -> Any:
    """Of each report of a level, a hash function and a bucket: 1 where this is the bucket of `left`, −1 where of `right`."""
    from cloister.local.frequency.heavy import _places

    def of(reports: np.ndarray) -> np.ndarray:
        levels, cells = np.divmod(reports, heavy._cells)
        functions, buckets = np.divmod(cells, heavy._hashing.buckets)

        def hits(value: int) -> np.ndarray:
            places = np.broadcast_to(_places(heavy.blocks.cut([value]), levels), len(reports))
            return (heavy._hashing._lines.hashed(functions, places) == buckets).astype(np.int64)

        return hits(left) - hits(right)

    return of


def cases() -> dict[str, tuple[Any, float, dict[str, Any]]]:
    """Each protocol with the share of its promise that must be found, and the two values, if it can't name them."""
    import cloister.local as local

    heavy = local.HeavyHitters(epsilon=1, bits=16)
    few = ["a", "b", "c", "d"]
    wide = range(100)
    return {
        "CircularPiecewise": (local.CircularPiecewise(0, 24, 1), 0.7, {}),
        "CountMeanSketch": (local.CountMeanSketch(few, 1), 0.7, {}),
        "DirectEncoding": (local.DirectEncoding(few, 1), EXACT, {}),
        "Duchi": (local.Duchi(0, 1, 1, dimensions=2), EXACT, {}),
        "HadamardResponse": (local.HadamardResponse(few, 1), EXACT, {}),
        "HeavyHitters": (heavy, 0.7, {"left": 1, "right": 2, "features": {"whom it supports": supported_by(heavy, 1, 2)}}),
        "HistogramEncoding": (local.HistogramEncoding(few, 1), 0.6, {}),
        "Hybrid": (local.Hybrid(0, 1, 1, grid=8), EXACT, {}),
        "KeyValue": (local.KeyValue(few[:3], 0, 1, 1, padding=2), EXACT, {}),
        "LocalHashing": (local.LocalHashing(few, 1), EXACT, {}),
        "LocalLaplace": (local.LocalLaplace(0, 1, 1), 0.8, {}),
        "OptimalPiecewise": (local.OptimalPiecewise(0, 1, 1), 0.7, {}),
        "Piecewise": (local.Piecewise(0, 1, 1, dimensions=2), 0.5, {}),
        "RAPPOR": (local.RAPPOR(cohorts=1), 0.4, {"left": "a", "right": "b"}),
        "RandomizedResponse": (local.RandomizedResponse(epsilon=1), EXACT, {}),
        "SquareWave": (local.SquareWave(0, 1, 1, grid=16), EXACT, {}),
        "SubsetSelection": (local.SubsetSelection(few, 1), EXACT, {}),
        "UnaryEncoding": (local.UnaryEncoding(wide, 1), 0.6, {}),
    }


NAMES = sorted(cases())


def test_every_protocol_has_a_case() -> None:
    """Those that make one array of reports from one list of values; the others are made of these."""
    import cloister.local as local

    made = {name: getattr(local, name) for name in local.__all__}
    public = {
        name
        for name, thing in made.items()
        if inspect.isclass(thing) and hasattr(thing, "randomize") and name not in ("FrequencyOracle", "NumericMechanism")
    }
    assert public - {"FakeData", "Levels", "Marginals", "SeveralAttributes"} == set(NAMES)


@pytest.mark.statistical
@pytest.mark.parametrize("name", NAMES)
def test_no_protocol_tells_more_than_it_promises(name: str) -> None:
    """Confidence 1 − 10⁻⁹ where reports are sampled; `.contradicts` is arithmetic elsewhere."""
    protocol, reaches, values = cases()[name]
    found = audit_protocol(protocol, runs=40_000, random=Random.deterministic(1), **values)
    promised = float(protocol.guarantee.epsilon)
    assert not found.contradicts(protocol.guarantee), found
    assert reaches * promised <= found.epsilon <= promised, found
    assert isinstance(found, ChannelAudit) or reaches < EXACT


@pytest.mark.statistical
@pytest.mark.parametrize("how", ["unary", "direct"])
def test_keys_and_values_are_audited_by_their_reports_too(how: str) -> None:
    """What is sent, not what is written out: 40,000 reports of two sets, confidence 1 − 10⁻⁹."""
    from cloister.local import KeyValue

    protocol = KeyValue(["a", "b", "c", "d"], 0, 1, epsilon=1, padding=2, how=how)
    sets: list[dict[str, int]] = [{"a": 1, "b": 1}, {"a": 0, "b": 0}]
    found = audit_protocol(protocol, left=sets[0], right=sets[1], runs=40_000, random=Random.deterministic(1))
    assert isinstance(found, AuditResult)
    assert not found.contradicts(protocol.guarantee)
    assert found.epsilon > 0.3
    honest, raised = (
        KeyValue(["a", "b", "c"], epsilon=1, padding=1, how=how),
        KeyValue(["a", "b", "c"], epsilon=2, padding=1, how=how),
    )
    assert audit_protocol(raised).contradicts(honest.guarantee)


@pytest.mark.statistical
def test_made_up_attributes_are_audited_as_whole_records_and_the_published_accounting_is_caught() -> None:
    """By arithmetic, and by 40,000 reports of two records that differ in every attribute, confidence 1 − 10⁻⁹. Calibrated as
    published, to ln(1 + k(e^ε − 1)), the protocol keeps its promise for one attribute and breaks it for a record."""
    from cloister.local import FakeData

    class Records:
        """A record as one value, and the parts of a report as one row."""

        def __init__(self, epsilon: float) -> None:
            self.fake = FakeData({name: [0, 1] for name in "abcd"}, epsilon, forms=dict.fromkeys("abcd", "direct"))

        def randomize(self, records: list[tuple[int, ...]], *, random: Random) -> np.ndarray:
            table = {name: [record[place] for record in records] for place, name in enumerate("abcd")}
            parts = self.fake.randomize(table, random=random)
            return np.asarray(sum(part << place for place, part in enumerate(parts.values())))

    raised = math.log(1 + 4 * (math.e**1.5 - 1))
    for epsilon, broken in ((1.5, False), (raised, True)):
        records = Records(epsilon)
        whole = audit_protocol(records.fake)
        sampled = audit_protocol(records, left=(0,) * 4, right=(1,) * 4, runs=40_000, random=Random.deterministic(1))
        assert whole.epsilon == pytest.approx(epsilon)
        assert whole.contradicts(PureDP("1.5")) is broken
        assert sampled.contradicts(PureDP("1.5")) is broken
        assert 0.7 * epsilon < sampled.epsilon <= epsilon
    assert float(records.fake.single.epsilon) == pytest.approx(1.5)


def test_the_parts_of_a_split_question_add_up_to_its_promise() -> None:
    from cloister.local import SeveralAttributes

    several = SeveralAttributes({"a": [1, 2], "b": [1, 2, 3]}, epsilon=1, how="splitting")
    told = [audit_protocol(oracle).epsilon for oracle in several.oracles.values()]
    assert len(told) == 2
    assert sum(told) == pytest.approx(1, rel=1e-9)
    assert max(told) <= 0.5


class Coin:
    """A response that promises ε = 1 and tells the truth three times of four: ln 3."""

    guarantee = PureDP(1)

    def channel(self) -> list[list[Fraction]]:
        return [[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]]


class Liar:
    """What it writes out is a fair coin; what it sends is mostly the truth."""

    guarantee = PureDP(1)

    def channel(self) -> list[list[Fraction]]:
        return [[Fraction(1, 2)] * 2] * 2

    def randomize(self, values: list[int], *, random: Random) -> np.ndarray:
        return np.where(random.below(10, len(values)) > 0, values, 1 - np.asarray(values))


class HighBit:
    """A word of random bits, of which the highest is nearly the truth."""

    guarantee = PureDP(1)

    def randomize(self, values: list[int], *, random: Random) -> np.ndarray:
        told = np.where(random.below(10, len(values)) > 0, values, 1 - np.asarray(values)).astype(np.uint64)
        return ((random.words(len(values)) >> np.uint64(1)) | told << np.uint64(63))[:, None]


class Scattered:
    """Reports by name, in no order of people."""

    def randomize(self, values: list[int], *, random: Random) -> dict[str, list[int]]:
        return {"a": values}


def test_broken_protocols_are_caught() -> None:
    found = audit_protocol(Coin())
    assert found.epsilon == pytest.approx(math.log(3))
    assert found.contradicts(Coin.guarantee)
    assert not audit_protocol(Liar()).contradicts(Liar.guarantee)
    for broken in (Liar(), HighBit()):
        sampled = audit_protocol(broken, left=1, right=0, runs=20_000, random=Random.deterministic(1))
        assert isinstance(sampled, AuditResult)
        assert 0.85 * math.log(9) < sampled.epsilon <= math.log(9)
        assert sampled.contradicts(broken.guarantee)


def test_two_named_values_are_told_apart_by_reports() -> None:
    from cloister.local import Piecewise

    mechanism = Piecewise(0, 1, 2, grid=8)
    assert isinstance(audit_protocol(mechanism), ChannelAudit)
    near = audit_protocol(mechanism, left=0.5, right=0.5, runs=4_000, random=Random.deterministic(1))
    assert isinstance(near, AuditResult)
    assert near.epsilon < 0.5


def test_what_can_not_be_audited_is_refused() -> None:
    from cloister.local import RAPPOR, RandomizedResponse, SeveralAttributes

    with pytest.raises(InvalidParameter, match="neither"):
        audit_protocol(3)
    with pytest.raises(InvalidParameter, match="neither"):
        audit_protocol(Coin(), left=0, right=1)
    with pytest.raises(InvalidParameter, match="no values"):
        audit_protocol(RAPPOR())
    with pytest.raises(InvalidParameter, match="not an array"):
        audit_protocol(Scattered(), left=1, right=2)
    with pytest.raises(InvalidParameter, match="One value"):
        audit_protocol(RandomizedResponse(epsilon=1), left=True)
    with pytest.raises(InvalidParameter, match="no values"):
        audit_protocol(SeveralAttributes({"a": [1, 2], "b": [1, 2]}))
