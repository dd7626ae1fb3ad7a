"""RAPPOR: exact guarantees of one report, of many and of a life; memory; decoding; bad input."""

from __future__ import annotations

import builtins
import json
import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from cloister.attacks import audit, audit_channel
from cloister.errors import InvalidParameter, MissingDependency
from cloister.local import RAPPOR, Sketch
from cloister.local.frequency.packed import unpacked
from cloister.local.frequency.rappor import Client
from cloister.noise import Random
from tests.tiers import by_day_and_night

WORD = 1 << 64


def one_bit(rappor: RAPPOR, reports: int) -> list[list[Fraction]]:
    """The exact law of k reports of one bit, for a Bloom bit of 1 and of 0: every sequence written out."""
    flip, low, high = (Fraction(heads, WORD) for heads in (rappor._flip, rappor._low, rappor._high))
    rows = []
    for bloom in (1, 0):
        chances = {1: 1 - flip, 0: flip} if bloom else {1: flip, 0: 1 - flip}
        row = []
        for seen in product((0, 1), repeat=reports):
            total = Fraction(0)
            for permanent, chance in chances.items():
                one = high if permanent else low
                total += chance * math.prod(one if bit else 1 - one for bit in seen)
            row.append(total)
        rows.append(row)
    return rows


@pytest.mark.parametrize("reports", [1, 2, 5])
@pytest.mark.parametrize(("f", "p", "q"), [("1/2", "1/2", "3/4"), ("1/4", "0", "1"), ("0.9", "0.1", "0.3")])
def test_the_promise_of_some_reports_is_exact(f: str, p: str, q: str, reports: int) -> None:
    """All reports of one bit, enumerated: two texts differ in h bits one way and h the other."""
    rappor = RAPPOR(f=f, p=p, q=q, hashes=3)
    set_, clear = one_bit(rappor, reports)
    ratios = [a / b for a, b in zip(set_, clear, strict=True) if b]
    exact = 3 * (math.log(max(ratios)) - math.log(min(ratios)))
    claimed = float(rappor.after(reports).epsilon)
    assert claimed == pytest.approx(exact, rel=1e-12)
    assert claimed <= float(rappor.lifetime.epsilon)


def test_one_reports_channel_keeps_the_formula_of_the_paper() -> None:
    """Two texts of one hash each, in two bits: the channel of a report is listed and audited."""
    rappor = RAPPOR(f="1/2", p="1/2", q="3/4", hashes=1)
    set_, clear = one_bit(rappor, 1)
    rows = [[a * b for a in first for b in second] for first, second in ((set_, clear), (clear, set_))]
    found = audit_channel(rows)
    high, low = rappor.probabilities
    assert found.epsilon == pytest.approx(math.log(high * (1 - low) / (low * (1 - high))), rel=1e-9)
    assert not found.contradicts(rappor.guarantee)


def test_a_lifetime_is_the_permanent_bits() -> None:
    rappor = RAPPOR(f="1/2", hashes=2)
    assert float(rappor.lifetime.epsilon) == pytest.approx(4 * math.log(3))
    assert rappor.after(10_000).epsilon <= rappor.lifetime.epsilon
    days = [float(rappor.after(k).epsilon) for k in (1, 2, 3, 10, 100)]
    assert days == sorted(days)
    assert all(epsilon <= k * days[0] for k, epsilon in zip((1, 2, 3, 10, 100), days, strict=True))


@pytest.mark.parametrize(("once", "forever"), [("0.1", "1"), ("1", "4"), ("2", "2"), ("4", "30")])
def test_what_is_asked_for_is_promised_and_little_is_wasted(once: str, forever: str) -> None:
    rappor = RAPPOR.for_epsilon(once, forever, hashes=2)
    for found, wanted in ((rappor.guarantee, once), (rappor.lifetime, forever)):
        assert Fraction(wanted) * Fraction(999_999, 10**6) < found.epsilon <= Fraction(wanted)


def test_reports_of_one_client_audited_by_sampling_keep_the_promise() -> None:
    """Five reports of one person, two texts: at least half of `after(5)` is found, never more (wrong with probability 1e-9)."""
    rappor = RAPPOR(f="1/2", p="1/4", q="3/4", bits=8, hashes=1, cohorts=1, name="audit")
    left, right = "a.org", next(text for text in ("b.org", "c.org") if rappor.bloom(text, 0) != rappor.bloom("a.org", 0))
    places = [rappor.bloom(text, 0)[0] for text in (left, right)]

    def five(text: str, n: int, random: Random) -> Any:
        bare = np.tile(np.array([rappor._row(text, 0)], dtype=np.uint64), (n, 1))
        permanent = rappor._permanent(bare, random)
        days = [unpacked(rappor._fresh(permanent, random), 8)[:, places] for _ in range(5)]
        return np.sum(days, axis=0, dtype=np.int64)

    found = audit(five, left, right, runs=200_000, random=Random.deterministic(1))
    assert not found.contradicts(rappor.after(5))
    assert found.epsilon > float(rappor.after(5).epsilon) / 2


def test_a_client_throws_the_permanent_coins_of_a_text_once() -> None:
    """Reports of bare permanent bits (p = 0, q = 1) are the same each day, also after a restart; another text has its own."""
    rappor = RAPPOR(f="1/2", p=0, q=1, bits=64, cohorts=8)
    client = rappor.client(random=Random.deterministic(1))
    first = client.report("a.org").tolist()
    assert all(client.report("a.org").tolist() == first for _ in range(20))
    again = Client.from_json(rappor, client.to_json())
    assert again.report("a.org").tolist() == first
    assert again.report("b.org").tolist() != first
    assert (client.texts, again.texts) == (1, 2)
    assert first[0] == client.cohort


def test_fresh_coins_differ_from_day_to_day() -> None:
    client = RAPPOR(bits=64).client(random=Random.deterministic(1))
    days = {tuple(client.report("a.org").tolist()) for _ in range(20)}
    assert len(days) == 20  # two of them are alike with probability below 2⁻⁵⁰


def test_a_crowd_and_clients_report_alike() -> None:
    """Bits of 4,000 first reports either way, within 5.5 deviations of what theory says (false alarm 4e-8 each)."""
    rappor = RAPPOR(bits=16, hashes=2, cohorts=2)
    random = Random.deterministic(3)
    crowd = rappor.randomize(["a.org"] * 4_000, random=random)
    singles = np.stack([rappor.client(random=random).report("a.org", random=random) for _ in range(4_000)])
    high, low = rappor.probabilities
    for reports in (crowd, singles):
        counts = rappor.aggregate(reports).counts
        for cohort in range(2):
            n = counts[cohort, 0]
            wanted = np.full(16, low)
            wanted[rappor.bloom("a.org", cohort)] = high
            assert (abs(counts[cohort, 1:] - n * wanted) < 5.5 * math.sqrt(n / 4)).all()


def candidates(n: int) -> list[str]:
    return [f"site{place}.example" for place in range(n)]


@by_day_and_night("surveys", 25, 60)
def test_decoding_is_unbiased_and_its_margins_cover(surveys: int) -> None:
    """Of 16,600 people, 20 candidates: at night 1,200 cells, where mean squared error over theory has deviation 0.04 and coverage
    0.0063; by day 500. Both are held to 5.5 deviations (false alarm 4e-8)."""
    rappor = RAPPOR.for_epsilon(2, 6, bits=64, cohorts=32)
    names, truth = candidates(20), np.array([8000, 5000, 2000, *[100] * 16, 0])
    texts, random = [name for name, count in zip(names, truth, strict=True) for _ in range(count)], Random.deterministic(5)
    scaled, covered = [], []
    for _ in range(surveys):
        found = rappor.decode(rappor.aggregate(rappor.randomize(texts, random=random)), names)
        scaled.append((found.counts - truth) / np.sqrt(found.variances))
        covered.append(abs(found.counts - truth) <= found.margin(0.95))
    assert abs(np.mean(scaled, axis=0)).max() < 5.5 / math.sqrt(surveys)
    assert abs(np.mean(np.square(scaled)) - 1) < 5.5 * math.sqrt(2 / (20 * surveys))
    assert abs(np.mean(covered) - 0.95) < 5.5 * math.sqrt(0.95 * 0.05 / (20 * surveys))


def test_the_other_ways_of_decoding_find_the_common_ones() -> None:
    rappor = RAPPOR.for_epsilon(2, 6, bits=64, cohorts=32)
    names, truth = candidates(300), np.array([9000, 6000, 3000])
    texts = [name for name, count in zip(names, truth, strict=False) for _ in range(count)]
    sketch = rappor.aggregate(rappor.randomize(texts, random=Random.deterministic(6)))
    lasso = rappor.decode(sketch, names, method="lasso")
    assert np.flatnonzero(lasso.counts > 1_500).tolist() == [0, 1, 2]
    assert (abs(lasso.counts[:3] - truth) < lasso.margin("0.999999")[:3]).all()
    positive = rappor.decode(sketch, names, method="nonnegative")
    assert positive.counts.min() >= 0
    assert np.argsort(-positive.counts)[:3].tolist() == [0, 1, 2]
    many = rappor.decode(sketch, candidates(3_000), method="lasso")  # more candidates than the 2,048 bits of all cohorts
    assert np.argsort(-many.counts)[:3].tolist() == [0, 1, 2]


def test_too_many_candidates_for_least_squares_are_refused() -> None:
    rappor = RAPPOR(bits=8, cohorts=2)
    sketch = rappor.aggregate(rappor.randomize(["a"] * 100, random=Random.deterministic(1)))
    with pytest.raises(InvalidParameter, match="tell apart"):
        rappor.decode(sketch, candidates(17))
    with pytest.raises(InvalidParameter, match="fit in memory"):
        RAPPOR(bits=1 << 12, cohorts=1 << 12).decode(RAPPOR(bits=1 << 12, cohorts=1 << 12).aggregate([]), candidates(10))


@pytest.mark.parametrize(("package", "method"), [("scipy.optimize", "nonnegative"), ("sklearn.linear_model", "lasso")])
def test_an_extra_that_is_missing_is_named(package: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rappor = RAPPOR(bits=16, cohorts=2)
    sketch = rappor.aggregate(rappor.randomize(["a"] * 50, random=Random.deterministic(1)))
    plain = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name == package:
            raise ImportError(name)
        return plain(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependency, match="not installed"):
        rappor.decode(sketch, ["a", "b"], method=method)


def test_sketches_add_up_and_travel() -> None:
    rappor = RAPPOR(bits=70, cohorts=4)
    reports = rappor.randomize(["a", "b"] * 100, random=Random.deterministic(1))
    whole = rappor.aggregate(reports)
    assert rappor.aggregate(reports[:70]) + Sketch.from_json(rappor.aggregate(reports[70:]).to_json()) == whole
    assert rappor.aggregate([]) + whole == whole
    assert whole.counts[:, 0].sum() == whole.n == 200
    nobody = rappor.decode(rappor.aggregate([]), ["a", "b"])
    assert (nobody.n, nobody.counts.tolist()) == (0, [0, 0])
    assert RAPPOR(bits=70, cohorts=4, name="another").key != rappor.key


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"f": 0}, "0 < f < 1"),
        ({"f": 1}, "0 < f < 1"),
        ({"p": "3/4", "q": "1/2"}, "p < q"),
        ({"q": "1.5"}, "q ≤ 1"),
        ({"bits": 0}, "bits is invalid"),
        ({"hashes": 9}, "hashes is invalid"),
        ({"cohorts": True}, "cohorts is invalid"),
        ({"f": "nan"}, "not a finite number"),
    ],
)
def test_a_bad_rappor_is_refused_with_its_own_message(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        RAPPOR(**wrong)


def test_bad_values_reports_and_files_are_refused() -> None:
    rappor = RAPPOR(bits=60, cohorts=4)
    client = rappor.client()
    for value in (3, None, b"a", ["a"]):
        with pytest.raises(InvalidParameter, match="for texts"):
            client.report(value)  # type: ignore[arg-type]
    assert client.texts == 0
    with pytest.raises(InvalidParameter, match="no more than all"):
        RAPPOR.for_epsilon(3, 2)
    with pytest.raises(InvalidParameter, match="hashes is invalid"):
        RAPPOR.for_epsilon(1, 2, hashes=0)
    for reports in ([[4, 0]], [[0, 1 << 61]], [[0, 0, 0]], [1], [[0.5, 0.5]], [["a", "b"]]):
        with pytest.raises(InvalidParameter, match="The reports are invalid"):
            rappor.aggregate(reports)
    sketch = rappor.aggregate(rappor.randomize(["a"] * 10))
    for wrong in ([], ["a", "a"]):
        with pytest.raises(InvalidParameter, match="The candidates are invalid"):
            rappor.decode(sketch, wrong)
    with pytest.raises(InvalidParameter, match="method is invalid"):
        rappor.decode(sketch, ["a"], method="guess")
    with pytest.raises(InvalidParameter, match="another RAPPOR"):
        RAPPOR(bits=60, cohorts=5).decode(sketch, ["a"])
    with pytest.raises(InvalidParameter, match="two halves"):
        client.report("\ud83d\ude00")
    client.report("a")
    kept = json.loads(client.to_json())
    for change in ({"cohort": 4}, {"version": 2}, {"key": "other"}, {"permanent": {"a": ["0x1", "0x2"]}}, {"permanent": 3}):
        with pytest.raises(InvalidParameter, match="file is invalid"):
            Client.from_json(rappor, json.dumps(kept | change))
    for text in ("", "[]", "{}"):
        with pytest.raises(InvalidParameter, match="file is invalid"):
            Client.from_json(rappor, text)


@pytest.mark.parametrize("texts", ["example.org", b"example.org", None, [["example.org"]], [None], 3])
def test_what_is_no_list_of_texts_is_refused(texts: Any) -> None:
    """One text was taken for as many people, or candidates, as it has letters."""
    rappor = RAPPOR(bits=16, cohorts=2)
    with pytest.raises(InvalidParameter, match="RAPPOR is for texts, in a list"):
        rappor.randomize(texts)
    with pytest.raises(InvalidParameter, match="RAPPOR is for texts, in a list"):
        rappor.decode(rappor.aggregate(rappor.randomize(["example.org"])), texts)


def test_the_lasso_leaves_out_what_the_bits_cannot_tell_apart() -> None:
    """Two people fall into one cohort or two, whose bits cannot hold a hundred candidates: some look alike to them."""
    rappor, texts = RAPPOR.for_epsilon("8", "16", bits=16, cohorts=4), [f"t{place}" for place in range(100)]
    random = Random.deterministic(34)
    for _ in range(50):
        told = rappor.decode(rappor.aggregate(rappor.randomize([texts[0]] * 2, random=random)), texts, method="lasso")
        assert (np.abs(told.counts[2:]) <= told.margin("0.999")[2:]).mean() > 0.9
