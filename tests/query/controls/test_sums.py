"""The audit of sums decides exactly, without values, and proves its refusals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from cloister.noise import Random
from cloister.query.controls import Audit, sums
from tests.tiers import by_day_and_night

Mask = npt.NDArray[np.bool_]


def rank(rows: list[list[Fraction]]) -> int:
    """By elimination in fractions: slow, and plainly right."""
    rows, found = [list(row) for row in rows], 0
    for column in range(len(rows[0]) if rows else 0):
        place = next((i for i in range(found, len(rows)) if rows[i][column]), None)
        if place is None:
            continue
        rows[found], rows[place] = rows[place], rows[found]
        for i in range(found + 1, len(rows)):
            factor = rows[i][column] / rows[found][column]
            rows[i] = [x - factor * y for x, y in zip(rows[i], rows[found], strict=True)]
        found += 1
    return found


def tells(masks: list[Mask], units: npt.NDArray[np.int64]) -> bool:
    """Whether the row space holds a vector that is supported on one unit's records: then leaving them out lowers the rank."""
    matrix = np.array(masks).astype(int)
    whole = rank([[Fraction(int(value)) for value in row] for row in matrix])
    return any(rank([[Fraction(int(value)) for value in row[units != unit]] for row in matrix]) < whole for unit in set(units))


def drawn(random: Random, size: int, odds: int) -> Mask:
    return np.asarray(random.below(10, size) < odds)


@pytest.mark.parametrize("primes", [None, (3, 5, 7, 11, 2147483647)], ids=["usual primes", "tiny primes"])
@pytest.mark.parametrize("rows_each", [1, 2, 3])
def test_the_decision_is_that_of_exact_elimination(
    rows_each: int, primes: tuple[int, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With tiny primes much is detected that is not so, and some sets depend on others modulo p alone: both must be noticed."""
    if primes is not None:
        monkeypatch.setattr(sums, "PRIMES", primes)
    random = Random.deterministic(rows_each)
    refused = answered = 0
    for _ in range(60):
        size = 4 + random.below_one(6)
        units = (
            np.unique(np.sort(random.below(-(-size // rows_each), size)), return_inverse=True)[1]
            if rows_each > 1
            else np.arange(size)
        )
        audit, done = Audit(units), []
        for _ in range(10):
            mask = drawn(random, size, 3 + random.below_one(5))
            verdict = audit.examine(mask)
            assert bool(verdict) == (not tells([*done, mask], units))
            if verdict:
                audit.add(mask)
                done.append(mask)
                answered += 1
            else:
                refused += 1
                check_witness(verdict, [*done, mask], units)
    assert min(refused, answered) > 50


def check_witness(verdict: sums.Verdict, masks: list[Mask], units: npt.NDArray[np.int64]) -> None:
    """The combination of answers is the combination of records that it says, and these are of one person."""
    assert verdict.witness is not None
    total = [Fraction(0)] * len(units)
    for number, value in verdict.witness.answers:
        total = [old + value * int(inside) for old, inside in zip(total, masks[number], strict=True)]
    assert {record: value for record, value in enumerate(total) if value} == dict(verdict.witness.records)
    assert len({int(units[record]) for record, _ in verdict.witness.records}) == 1


def test_a_witness_with_coefficients_of_many_digits() -> None:
    """The first refusal among random sets of 60 persons combines nearly all answers, by fractions that no one digit holds."""
    random = Random.deterministic(5)
    audit, masks = Audit(np.arange(60)), []
    while True:
        masks.append(drawn(random, 60, 5))
        verdict = audit.examine(masks[-1])
        if not verdict:
            break
        audit.add(masks[-1])
    check_witness(verdict, masks, np.arange(60))
    assert verdict.witness is not None
    assert len(verdict.witness.answers) > 50
    assert max(value.denominator for _, value in verdict.witness.answers) > 2**40


def test_what_follows_from_answers_is_answered_again() -> None:
    audit = Audit(np.arange(6))
    left, right = np.arange(6) < 3, np.arange(6) >= 3
    assert audit.answer(left)
    assert audit.answer(right)
    assert audit.examine(np.ones(6, dtype=bool)).follows
    assert audit.answer(np.ones(6, dtype=bool))
    assert (audit.answered, audit.rank) == (3, 2)


def test_copies_are_independent() -> None:
    audit = Audit(np.arange(5))
    audit.add(np.array([True, True, True, False, False]))
    twin = audit.copy()
    twin.add(np.array([False, False, True, True, True]))
    assert (audit.rank, twin.rank) == (1, 2)


@by_day_and_night("answers", 300, 1_000)
def test_ten_thousand_records_and_many_answers_are_audited(answers: int) -> None:
    """The witness of what would disclose a record is found among all answers, the first and the last one included."""
    random = Random.deterministic(1)
    audit = Audit(np.arange(10_000))
    first = drawn(random, 10_000, 3)
    assert audit.answer(first)
    for _ in range(answers - 1):
        assert audit.answer(drawn(random, 10_000, 3))
    without_one = first.copy()
    without_one[np.flatnonzero(first)[0]] = False
    verdict = audit.examine(without_one)
    assert str(verdict.witness).startswith(f"1 × answer 0 − 1 × answer {answers} = 1 × record")
