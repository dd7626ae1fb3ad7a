"""Made-up attributes: the exact channel of records, what one attribute and the drawn one tell, errors, bad input."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from cloister.attacks import ChannelAudit, audit_channel
from cloister.errors import InvalidParameter
from cloister.local import FakeData, SeveralAttributes
from cloister.noise import Random
from cloister.privacy import PureDP
from tests.tiers import by_day_and_night

D, U = "direct", "unary"


def made(sizes: tuple[int, ...], forms: tuple[str, ...], epsilon: Any) -> FakeData:
    names = "abc"[: len(sizes)]
    domains = {name: range(size) for name, size in zip(names, sizes, strict=True)}
    return FakeData(domains, epsilon, forms=dict(zip(names, forms, strict=True)))


def apart(sizes: tuple[int, ...], channel: Any) -> ChannelAudit:
    """The channel between records that differ in one attribute."""
    records = list(product(*(range(size) for size in sizes)))
    differ = [sum(a != b for a, b in zip(*pair, strict=True)) for pair in combinations(records, 2)]
    pairs = [pair for pair, many in zip(combinations(range(len(records)), 2), differ, strict=True) if many == 1]
    return audit_channel(channel, pairs=pairs)


CASES = [((2, 2), (D, D)), ((2, 5), (D, D)), ((3, 3, 2), (D, D, D)), ((2, 3), (D, U)), ((2, 2, 2), (U, U, U)), ((3, 2), (U, U))]


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
@pytest.mark.parametrize(("sizes", "forms"), CASES)
def test_records_are_told_apart_by_epsilon_and_one_attribute_by_less(
    sizes: tuple[int, ...], forms: tuple[str, ...], epsilon: str
) -> None:
    fake = made(sizes, forms, epsilon)
    channel = fake.channel()
    whole, one = audit_channel(channel), apart(sizes, channel)
    assert all(sum(row) == 1 for row in channel)
    assert whole.epsilon <= float(epsilon)
    assert whole.epsilon == pytest.approx(float(epsilon), rel=1e-9)
    assert not one.contradicts(fake.single)
    assert one.epsilon == pytest.approx(float(fake.single.epsilon), rel=1e-9)
    published = math.log(1 + (math.exp(float(epsilon)) - 1) / len(sizes))
    assert one.epsilon > published - 1e-9
    assert (one.epsilon == pytest.approx(published, rel=1e-9)) is (len(set(sizes)) == 1 or set(forms) == {U})


@pytest.mark.parametrize("forms", [(D, D, D), (U, U, U)])
def test_the_published_epsilon_is_not_that_of_a_record(forms: tuple[str, ...]) -> None:
    """Calibrated as published, to ln(1 + k(e^ε − 1)) for ε = 1: kept for one attribute, broken for a record."""
    raised = math.log(1 + 3 * (math.e - 1))
    fake = made((2, 2, 2), forms, raised)
    assert float(fake.single.epsilon) == pytest.approx(1)
    found = audit_channel(fake.channel())
    assert found.epsilon == pytest.approx(raised)
    assert found.contradicts(PureDP(1))
    assert found.epsilon > 1.8


@pytest.mark.parametrize(("sizes", "forms"), CASES)
def test_which_attribute_was_drawn_is_told_by_no_more_than_is_said(sizes: tuple[int, ...], forms: tuple[str, ...]) -> None:
    """The law of a report given the record and the attribute, by enumeration: the worst ratio of two attributes of one record."""
    fake = made(sizes, forms, 1)
    laws = [part.oracle.channel() for part in fake._parts.values()]
    fakes = [part.fake() for part in fake._parts.values()]
    worst = Fraction(1)
    for record in product(*(range(size) for size in sizes)):
        fractions = [
            [law[place][seen] / made_up[seen] for seen in range(len(made_up))]
            for law, made_up, place in zip(laws, fakes, record, strict=True)
        ]
        for i, j in combinations(range(len(sizes)), 2):
            worst = max(
                [
                    worst,
                    *(a / b for a in fractions[i] for b in fractions[j]),
                    *(b / a for a in fractions[i] for b in fractions[j]),
                ]
            )
    assert math.log(worst) == pytest.approx(float(fake.drawn.epsilon))
    assert math.log(worst) <= float(fake.drawn.epsilon) + 1e-12
    if len(set(sizes)) == len(set(forms)) == 1:
        assert float(fake.drawn.epsilon) == pytest.approx(1)


@pytest.mark.statistical
@pytest.mark.parametrize("forms", [(D, D), (U, U), (D, U)])
def test_reports_have_the_probabilities_of_the_channel(forms: tuple[str, ...]) -> None:
    """2·10⁵ reports of one record, each count within 5.5 deviations (false alarm 4e-8 each)."""
    fake, n = made((2, 3), forms, 1), 200_000
    parts = fake.randomize({"a": [1] * n, "b": [2] * n}, random=Random.deterministic(3))
    flat = [np.asarray(part).reshape(n).astype(np.int64) for part in parts.values()]
    outputs = [size if form == D else 1 << size for size, form in zip((2, 3), forms, strict=True)]
    seen = np.bincount(flat[0] * outputs[1] + flat[1], minlength=outputs[0] * outputs[1])
    expected = n * np.array(fake.channel()[-1], dtype=float)
    assert (abs(seen - expected) < 5.5 * np.sqrt(expected)).all()


@pytest.mark.statistical
@by_day_and_night("runs", 300, 1_000)
@pytest.mark.parametrize("forms", [(D, D), (U, U), (D, U)])
def test_errors_are_what_the_formulas_say_and_margins_cover(forms: tuple[str, ...], runs: int) -> None:
    """So many surveys, 12 cells each: mean squares to 5.5 deviations of √(2/cells) (4e-8; 13 % by day, 7 % at night); coverage at
    least 95 % less 5.5 deviations, and somewhat more, as nobody holds half of the values."""
    n, sizes, cells = 400, (2, 10), 12 * runs
    fake, random = made(sizes, forms, 1), Random.deterministic(4)
    table = {"a": [0] * n, "b": np.arange(n) % 5}
    truth = {"a": np.array([n, 0]), "b": np.array([n / 5] * 5 + [0] * 5)}
    squares, covered, means = [], [], []
    for _ in range(runs):
        found = fake.estimate(fake.aggregate(fake.randomize(table, random=random)))
        for name, size in zip("ab", sizes, strict=True):
            errors = found[name].counts - truth[name]
            stated = np.array([fake.variance(name, n, share) for share in truth[name] / n])
            assert len(errors) == size
            squares.append(errors**2 / stated)
            covered.append(abs(errors) <= found[name].margin(0.95))
            means.append(errors / np.sqrt(stated))
    assert np.concatenate(squares).mean() == pytest.approx(1, abs=5.5 * (2 / cells) ** 0.5)
    assert 0.95 - 5.5 * (0.95 * 0.05 / cells) ** 0.5 < np.concatenate(covered).mean() < 0.99
    assert abs(np.concatenate(means[1::2]).reshape(runs, 10).mean(axis=0)).max() < 5.5 / math.sqrt(runs)


def test_it_is_dearer_than_sampling_everywhere_and_than_splitting_for_yes_or_no() -> None:
    """At the same ε for a record, for values that nobody holds."""
    for epsilon, many, size in ((0.5, 2, 50), (1.0, 4, 5), (3.0, 4, 50), (1.0, 3, 2), (5.0, 4, 2)):
        domains = {str(number): range(size) for number in range(many)}
        rare = FakeData(domains, epsilon).variance("0", 1)
        sampling, splitting = (SeveralAttributes(domains, epsilon, how=how).oracles["0"] for how in ("sampling", "splitting"))
        assert rare > many * (many * sampling.variance(1))
        assert (rare > 1.01 * splitting.variance(1)) is (size == 2)


def test_the_form_that_errs_less_is_taken() -> None:
    fake = FakeData({"a": range(2), "b": range(200)}, 1)
    assert fake.forms == {"a": D, "b": U}
    for name in "ab":
        for form in (D, U):
            other = FakeData({"a": range(2), "b": range(200)}, 1, forms={**fake.forms, name: form})
            size = len(other.oracles[name].domain)
            assert fake.variance(name, 1, 1 / size) <= other.variance(name, 1, 1 / size)
    assert fake.report_size == 201


def test_sketches_are_its_own_and_add_up() -> None:
    fake = FakeData({"a": range(2), "b": range(3)}, 1)
    reports = fake.randomize({"a": [0, 1, 1], "b": [2, 0, 1]}, random=Random.deterministic(1))
    sketches = fake.aggregate(reports)
    assert {name: (sketch + sketch).n for name, sketch in sketches.items()} == {"a": 6, "b": 6}
    plain = {name: fake.oracles[name].aggregate(reports[name]) for name in "ab"}
    with pytest.raises(InvalidParameter, match="sketches are invalid"):
        fake.estimate(plain)
    nobody = fake.estimate(fake.aggregate(fake.randomize({"a": [], "b": []})))
    assert nobody["b"].counts.tolist() == [0.0] * 3


def test_bad_input_is_refused_with_its_own_message() -> None:
    fake = FakeData({"a": range(2), "b": range(3)}, 1)
    reports = fake.randomize({"a": [0, 1], "b": [2, 0]}, random=Random.deterministic(1))
    with pytest.raises(InvalidParameter, match="two or more"):
        FakeData({"a": range(2)}, 1)
    for forms in ({"a": D}, {"a": D, "b": "hashing"}):
        with pytest.raises(InvalidParameter, match="for each attribute"):
            FakeData({"a": range(2), "b": range(3)}, 1, forms=forms)
    with pytest.raises(InvalidParameter, match="outside the domain"):
        fake.randomize({"a": [7], "b": [1]})
    with pytest.raises(InvalidParameter, match="differ in length"):
        fake.randomize({"a": [1], "b": [1, 2]})
    with pytest.raises(InvalidParameter, match="differ in number"):
        fake.aggregate({"a": reports["a"], "b": reports["b"][:1]})
    with pytest.raises(InvalidParameter, match="of other attributes"):
        fake.aggregate({"a": reports["a"]})
    with pytest.raises(InvalidParameter, match="could not come"):
        fake.aggregate({"a": np.array([9, 9]), "b": reports["b"]})
    with pytest.raises(InvalidParameter, match="not one of these"):
        fake.variance("c", 1)
    with pytest.raises(InvalidParameter, match="too many records"):
        FakeData({"a": range(50), "b": range(50)}, 1).channel()
