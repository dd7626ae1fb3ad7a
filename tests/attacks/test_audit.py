"""The audit is sound (it never claims more than there is) and has power (it finds most of what there is), for every kind of
output."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.attacks import AuditResult, audit
from cloister.attacks.broken.draws import floating_laplace, laplace, uniform
from cloister.errors import InvalidParameter
from cloister.noise import DiscreteLaplace, Random
from cloister.privacy.guarantee import ZCDP, ApproxDP, PureDP

RUNS = 200_000


def response(data: int, n: int, random: Random) -> np.ndarray:
    """The truth with probability 3/4: ε = ln 3."""
    return np.where(random.below(4, n) < 3, data, 1 - data)


def geometric(data: int, n: int, random: Random) -> np.ndarray:
    """Two-sided geometric noise with α = 1/2: ε = ln 2 for a change of 1."""
    heads = [np.frexp(uniform(n, random))[1] for _ in range(2)]
    return data + heads[0] - heads[1]


def normal(data: float, n: int, random: Random) -> np.ndarray:
    """Gaussian noise with σ = 1 on a grid of 10⁻⁶."""
    draws = np.sqrt(-2 * np.log(uniform(n, random))) * np.cos(2 * np.pi * uniform(n, random))
    return np.asarray(np.round((data + draws) * 1e6).astype(np.int64))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("mechanism", "truth"), [(response, math.log(3)), (geometric, math.log(2))])
def test_the_bound_is_below_the_truth_and_close_to_it(mechanism: Callable[..., Any], truth: float, seed: int) -> None:
    found = audit(mechanism, 0, 1, runs=RUNS, random=Random.deterministic(seed))
    assert 0.93 * truth < found.epsilon <= truth
    assert found.contradicts(PureDP(Fraction(9, 10) * Fraction(truth)))
    assert not found.contradicts(PureDP(Fraction(truth) + Fraction(1, 10**9)))


@pytest.mark.statistical
def test_choosing_the_event_does_not_spoil_the_confidence() -> None:
    """With nothing to find, a bound above 0 is a failure; at confidence 0.8 at most a fifth may fail, whatever was chosen."""
    trials = 400
    failures = sum(
        audit(geometric, 0, 0, runs=2000, confidence="0.8", random=Random.deterministic(seed)).epsilon > 0
        for seed in range(trials)
    )
    # P[Bin(400, 0.2) > 120] is below 1e-6
    assert failures <= 120


@pytest.mark.statistical
def test_the_bounds_fail_as_rarely_as_stated_when_there_is_something_to_find() -> None:
    trials = 400
    found = [audit(response, 0, 1, runs=2000, confidence="0.8", random=Random.deterministic(seed)) for seed in range(trials)]
    assert sum(each.epsilon > math.log(3) for each in found) <= 120
    assert np.median([each.epsilon for each in found]) > 0.8 * math.log(3)


def test_delta_of_a_gaussian_at_an_epsilon() -> None:
    """δ(ε) = Φ(1/2 − ε) − e^ε Φ(−1/2 − ε) for σ = Δ = 1 (Balle & Wang 2018)."""
    truth = phi(-0.5) - math.e * phi(-1.5)
    found = audit(normal, 0.0, 1.0, runs=1_000_000, epsilon=1, random=Random.deterministic(1))
    assert 0.85 * truth < found.delta <= truth
    assert found.epsilon == 1
    assert found.contradicts(ApproxDP(1, "0.1"))
    assert not found.contradicts(ApproxDP(1, "0.13"))


def test_epsilon_of_a_gaussian_at_a_delta() -> None:
    found = audit(normal, 0.0, 1.0, runs=1_000_000, delta="0.01", random=Random.deterministic(1))
    allowed = phi(0.5 - found.epsilon) - math.exp(found.epsilon) * phi(-0.5 - found.epsilon)
    assert 0.01 <= allowed < 0.02
    assert found.delta == Fraction(1, 100)


def test_rho_of_a_gaussian() -> None:
    found = audit(normal, 0.0, 3.0, runs=1_000_000, against=ZCDP("4.5"), random=Random.deterministic(1))
    assert 0.55 * 4.5 < found.rho <= 4.5
    assert found.contradicts(ZCDP("2.4"))
    assert not found.contradicts(ZCDP("4.5"))
    assert found.contradicts(ZCDP("0.5", "0.001"))
    assert not found.contradicts(ZCDP("4.5", "0.001"))


def phi(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


def bits(rows: Any) -> Callable[[Any, int, Random], np.ndarray]:
    return lambda data, n, random: rows(data, random.below(2, 3 * n).reshape(n, 3))


def with_parity(data: int, coins: np.ndarray) -> np.ndarray:
    coins[:, 2] = (coins[:, 0] + coins[:, 1] + data) % 2
    return coins


def scaled_noise(data: int, n: int, random: Random) -> np.ndarray:
    return np.asarray(normal(0, n, random)[:, None] + data * (random.below(9, 3 * n).reshape(n, 3) + 1))


def one_missing(data: int, n: int, random: Random) -> np.ndarray:
    return np.where(np.arange(3) == data, np.nan, random.below(9, 3 * n).reshape(n, 3))


def refusing(data: int, n: int, random: Random) -> list[int | None]:
    return [None if coin < 1 + data else 5 for coin in random.below(4, n).tolist()]


def of_many_lengths(data: int, n: int, random: Random) -> list[tuple[int, ...]]:
    return [(1,) * (1 + data * coin) for coin in random.below(2, n).tolist()]


ONE_SIGHT = {
    "the value": (geometric, "value"),
    "a single value": (lambda data, n, random: np.where(random.below(50, n) == 0, 7 + data, 3), "value"),
    "the low bits of floats": (lambda data, n, random: data + floating_laplace(1.0, n, random), "lowest bit"),
    "the low bits of integers": (lambda data, n, random: data + 2 * random.below(1 << 40, n), "lowest bit"),
    "equal coordinates": (scaled_noise, "coordinate"),
    "a missing coordinate": (one_missing, "number|missing"),
    "a parity of the whole row": (bits(with_parity), "row"),
    "a difference of two coordinates": (lambda data, n, random: random.below(1 << 40, n)[:, None] + [0, data], "coordinate"),
    "small shifts that add up": (lambda data, n, random: laplace(1.0, (n, 12), random) + data / 4, "sum|likelihood|projection"),
    "texts": (lambda data, n, random: np.array(["no", "yes"])[response(data, n, random)], "output is 'yes'|output is 'no'"),
    "refusals": (refusing, "number|value"),
    "rows of many lengths": (of_many_lengths, r"output is \(1,"),
    "truth values": (lambda data, n, random: response(data, n, random) == 1, "value"),
    "integers of any size": (lambda data, n, random: [10**30 * (data + 1)] * n, "coordinate 1"),
}


@pytest.mark.parametrize("name", ONE_SIGHT)
def test_every_kind_of_output_and_of_leak_is_seen(name: str) -> None:
    mechanism, where = ONE_SIGHT[name]
    found = audit(mechanism, 0, 1, runs=40_000, random=Random.deterministic(1))
    assert found.epsilon > 0.4
    assert re.search(where, found.event), found


def test_a_feature_of_ones_own_finds_what_no_other_shows() -> None:
    def mechanism(data: int, n: int, random: Random) -> np.ndarray:
        return np.asarray(7 * random.below(1 << 40, n) + 3 * data)

    plain = audit(mechanism, 0, 1, runs=40_000, random=Random.deterministic(1))
    own = {"the value modulo 7": lambda values: values % 7}
    found = audit(mechanism, 0, 1, runs=40_000, features=own, random=Random.deterministic(1))
    assert plain.epsilon < 0.1
    assert found.epsilon > 6
    assert "modulo 7" in found.event


def test_the_order_of_the_worlds_does_not_matter() -> None:
    here = audit(response, 0, 1, runs=RUNS, random=Random.deterministic(1))
    there = audit(response, 1, 0, runs=RUNS, random=Random.deterministic(2))
    assert here.epsilon == pytest.approx(there.epsilon, rel=0.05)


def test_noise_and_release_objects_are_run() -> None:
    class Additive:
        def sample(self, n: int, *, random: Random) -> np.ndarray:
            return geometric(0, n, random)

    class Selecting:
        def sample(self, n: int, value: int, *, random: Random) -> np.ndarray:
            return response(value, n, random)

    class Releasing:
        def release(self, value: int, *, random: Random) -> int:
            return int(response(value, 1, random)[0])

    for mechanism, truth in ((Additive(), math.log(2)), (Selecting(), math.log(3)), (Releasing(), math.log(3))):
        found = audit(mechanism, 0, 1, runs=20_000, random=Random.deterministic(1))
        assert 0.8 * truth < found.epsilon <= truth
    rows = audit(Additive(), (0, 0), (1, 1), runs=100_000, random=Random.deterministic(1))
    assert 0.9 * math.log(4) < rows.epsilon <= math.log(4)


def test_the_secure_source_is_used_when_none_is_given() -> None:
    seen: list[bool] = []

    def mechanism(data: int, n: int, random: Random) -> np.ndarray:
        seen.append(random.marked)
        return response(data, n, random)

    audit(mechanism, 0, 1, runs=400)
    assert set(seen) == {False}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"runs": 10}, "runs=10"),
        ({"runs": 1e6}, "runs="),
        ({"confidence": "0.2"}, "confidence"),
        ({"confidence": 1}, "confidence"),
        ({"delta": "0.1", "epsilon": 1}, "More than one"),
        ({"epsilon": 1, "against": PureDP(1)}, "More than one"),
        ({"epsilon": -1}, "epsilon"),
    ],
)
def test_impossible_questions_are_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        audit(response, 0, 1, **arguments)


def test_what_can_not_be_run_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="type int"):
        audit(3, 0, 1)
    with pytest.raises(InvalidParameter, match="returned"):
        audit(lambda data, n, random: np.zeros(n + 1), 0, 1)
    with pytest.raises(InvalidParameter, match="different lengths"):
        audit(lambda data, n, random: np.zeros((n, data)), 1, 2)


def test_a_result_answers_other_questions_by_the_same_event() -> None:
    found = AuditResult(event="a 1", likelier="left", likely=0.5, unlikely=0.1, confidence=Fraction(99, 100), runs=1000)
    assert found.epsilon == pytest.approx(math.log(5))
    assert found.epsilon_at("0.2") == pytest.approx(math.log(3))
    assert found.epsilon_at("0.5") == 0
    assert found.delta_at(1) == pytest.approx(0.5 - 0.1 * math.e)
    assert found.delta_at(1000) == 0
    grid = 1 + np.geomspace(1e-4, 1e4, 4001)
    best = max(math.log(0.5**a * 0.1 ** (1 - a) + 0.5**a * 0.9 ** (1 - a)) / (a - 1) / a for a in grid if a < 300)
    assert found.rho == pytest.approx(best, rel=2e-3)
    assert found.rho <= best
    assert "left in at least 50%" in repr(found)


def seldom_refused(rate: float, n: int, random: Random) -> list[Any]:
    """0, or seldom a text: ε is the logarithm of the rates' ratio."""
    return ["refused" if hit else 0 for hit in random.uniform(n) < rate / 100_000]


def seldom_wide(rate: float, n: int, random: Random) -> list[Any]:
    """A number that a double holds beside others, or seldom nothing."""
    return [None if hit else 2**60 + 1 for hit in random.uniform(n) < rate / 100_000]


@pytest.mark.parametrize("mechanism", [seldom_refused, seldom_wide])
def test_one_output_says_nothing_of_what_others_are_taken_for(mechanism: Any) -> None:
    """Were a batch of runs read as texts because one of them is, its 0 would be another output than that of the next batch."""
    for seed in range(3):
        found = audit(mechanism, 3.0, 0.1, runs=100_000, random=Random.deterministic(seed))
        assert found.epsilon < math.log(30)


def twice(data: int, n: int, random: Random) -> list[int]:
    """Even for one world and odd for the other, far beyond 64 bits."""
    return [2 * int(each) + data for each in DiscreteLaplace(scale=2**70).sample(n, random=random)]


@pytest.mark.parametrize(
    "mechanism",
    [
        twice,
        lambda data, n, _: [2**63 + data] * n,
        lambda data, n, _: np.full(n, 2**63 + data, dtype=np.uint64),
        lambda data, n, _: [2**53 + data, 0.5][:1] * (n - 1) + [0.5],
        lambda data, n, _: [b"x" + b"\0" * data] * n,
        lambda data, n, _: ["x" + "\0" * data] * n,
        lambda data, n, _: [Fraction(10**20 + data, 3)] * n,
        lambda data, n, _: [Decimal(1) + data * Decimal("1e-20")] * n,
        lambda data, n, _: [np.longdouble(1) + data * np.longdouble(2) ** -60] * n,
        lambda data, n, _: [{"a": data}] * n,
        lambda data, n, _: [[2**70 + data, 1]] * n,
        lambda data, n, _: [[np.int64(2**60 + data), 0.5]] * n,
    ],
)
def test_what_a_double_or_a_text_of_numpy_merges_is_told_apart(mechanism: Any) -> None:
    assert audit(mechanism, 0, 1, runs=8_000, random=Random.deterministic(1)).epsilon > 5


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda data, n, _: [frozenset([0, 8]) if data else frozenset([8, 0])] * n,
        lambda data, n, _: [{"a": 1, "b": 2} if data else {"b": 2, "a": 1}] * n,
        lambda data, n, _: [None] * n,
        lambda data, n, _: [[1, 2], [1.0, 2.0]][data : data + 1] * n,
    ],
)
def test_equal_outputs_are_one_whatever_order_they_hold_things_in(mechanism: Any) -> None:
    assert audit(mechanism, 0, 1, runs=8_000, random=Random.deterministic(1)).epsilon == 0


def test_rows_of_nothing_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="What the mechanism returned"):
        audit(lambda data, n, _: np.zeros((n, 0)), 0, 1, runs=8_000)
