"""Asked again and again: one report a wave, whatever the answer; what it adds up to; keeping it."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from cloister.attacks import audit
from cloister.errors import BudgetExceeded, InvalidParameter
from cloister.local import (
    DirectEncoding,
    FrequencyOracle,
    HadamardResponse,
    HistogramEncoding,
    LocalHashing,
    LocalMemory,
    SubsetSelection,
    UnaryEncoding,
)
from cloister.noise import Random

ORACLES = [
    DirectEncoding(range(5), 1),
    UnaryEncoding(range(70), 1),
    HistogramEncoding(range(5), 1),
    HistogramEncoding(range(3), "0.00001"),
    LocalHashing(range(20), 1),
    SubsetSelection(range(20), 1),
    HadamardResponse(range(20), 1),
]


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: f"{oracle.protocol}-{len(oracle.domain)}")
def test_a_repeated_question_gets_the_same_report_whatever_the_answer(oracle: FrequencyOracle) -> None:
    memory, random = LocalMemory(waves=2), Random.deterministic(1)
    first = memory.report("q", oracle, 0, random=random)
    assert oracle.valid(first).all()
    again = LocalMemory.from_json(memory.to_json())
    for asked in range(20):
        for kept in (memory, again):
            later = kept.report("q", oracle, asked % 3, random=random)
            assert later.dtype == first.dtype
            assert np.array_equal(later, first)
    assert memory.guarantee.epsilon == oracle.epsilon
    memory.report("q", oracle, 2, wave=1, random=random)
    assert memory.guarantee.epsilon == 2 * oracle.epsilon


def test_a_report_that_was_handed_out_can_be_changed_without_harm() -> None:
    memory, oracle = LocalMemory(), ORACLES[1]
    first = memory.report("q", oracle, 0)
    before = first.copy()
    first[:] = 0
    assert np.array_equal(memory.report("q", oracle, 0), before)


def test_a_long_history_audited_by_sampling_keeps_the_promise() -> None:
    """Ten days in two waves, two histories of answers that differ every day: at least half of 2ε = 2 is found, never more
    (wrong with probability 1e-9)."""
    oracle, histories = DirectEncoding(range(3), 1), {0: [0, 1] * 5, 1: [2, 0] * 5}

    def ten_days(which: int, n: int, random: Random) -> object:
        rows = np.empty((n, 2), dtype=np.int64)
        for row in range(n):
            memory = LocalMemory(waves=2)
            days = [
                memory.report("q", oracle, each, wave=day // 5, random=random)[0] for day, each in enumerate(histories[which])
            ]
            assert len(set(days[:5])) == len(set(days[5:])) == 1
            rows[row] = days[0], days[5]
        return rows

    found = audit(ten_days, 0, 1, runs=3_000, random=Random.deterministic(1))
    assert not found.contradicts(LocalMemory(waves=2).promised({"q": oracle}))
    assert found.epsilon > 1.0


def test_waves_and_questions_add_up() -> None:
    memory = LocalMemory(waves=3)
    first, second = DirectEncoding(range(3), "0.1"), UnaryEncoding(range(3), "0.2")
    assert memory.guarantee.epsilon == 0
    for wave in range(3):
        memory.report("a", first, 0, wave=wave)
    memory.report("b", second, 0)
    assert memory.guarantee.epsilon == Fraction(1, 2)
    assert memory.promised({"a": first, "b": second}).epsilon == Fraction(9, 10)
    with pytest.raises(BudgetExceeded, match="each costs ε again"):
        memory.report("a", first, 0, wave=3)


def test_a_question_keeps_its_oracle() -> None:
    memory = LocalMemory(waves=2)
    memory.report("q", DirectEncoding(range(3), 1), 0)
    for other in (DirectEncoding(range(3), 2), DirectEncoding(range(4), 1), UnaryEncoding(range(3), 1)):
        with pytest.raises(InvalidParameter, match="a second report would tell more"):
            memory.report("q", other, 0)
    with pytest.raises(InvalidParameter, match="outside the domain"):
        memory.report("new", DirectEncoding(range(3), 1), "secret")
    assert memory.guarantee.epsilon == 1


def test_what_is_kept_holds_no_answer() -> None:
    memory = LocalMemory()
    memory.report("colour", DirectEncoding(["crimson", "azure"], 1), "crimson")
    assert "crimson" not in memory.to_json()
    assert "azure" not in memory.to_json()


def test_bad_input_is_refused_with_its_own_message() -> None:
    for waves in (0, -1, True, "2", 10_001):
        with pytest.raises(InvalidParameter, match="waves is invalid"):
            LocalMemory(waves=waves)  # type: ignore[arg-type]
    memory, oracle = LocalMemory(waves=2), DirectEncoding(range(3), 1)
    for wave in (-1, True, "0"):
        with pytest.raises(InvalidParameter, match="wave is invalid"):
            memory.report("q", oracle, 0, wave=wave)  # type: ignore[arg-type]
    for question in (17, None, "", "\ud83d\ude00"):  # JSON would give another name back, and the draw would be a new one
        with pytest.raises(InvalidParameter, match="question is invalid"):
            memory.report(question, oracle, 0)  # type: ignore[arg-type]
    memory.report("q", oracle, 0)
    kept = json.loads(memory.to_json())
    broken = [
        {"version": 2},
        {"waves": 0},
        {"questions": 3},
        {"questions": {"q": kept["questions"]["q"] | {"reports": {"5": [1]}}}},
        {"questions": {"q": kept["questions"]["q"] | {"reports": {}}}},
        {"questions": {"q": kept["questions"]["q"] | {"type": "float64"}}},
    ]
    for text in [json.dumps(kept | change) for change in broken] + ["", "[]", "{}"]:
        with pytest.raises(InvalidParameter, match="The memory is invalid"):
            LocalMemory.from_json(text)
