"""What a survey or `choose` plans with is the margin that comes out, and it covers: few people and small shares too.

Planned and realised half-widths follow from one law. A realised one is read off an estimated share where the planned one knows
the share, so single ones differ; their median lies within a quarter for 10 people (a tenth from 200 on), and the planned margin
holds the truth as often as it says but for 1e-9 (binomial law; 40 cases, so a false alarm has a probability below 1e-6).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from cloister.local import choose
from cloister.local.frequency.estimates import quantile_of
from cloister.local.survey import Choice, Number, Several, Survey, YesNo
from cloister.local.survey.channels import channel_of
from cloister.noise import Random
from tests.statistical.test_coverage_local import found

PETS = tuple(f"pet {place}" for place in range(3))
MANY = tuple(f"town {place}" for place in range(60))
QUESTIONS: dict[str, Any] = {
    "yes or no": YesNo("q", "Q?", no_answer=False),
    "yes, no or nothing": YesNo("q", "Q?"),
    "three": Choice("q", "Q?", PETS, no_answer=False),
    "sixty": Choice("q", "Q?", MANY, no_answer=False),
    "several": Several("q", "Q?", PETS, most=2),
}
RUNS = {10: 100, 200: 100, 3000: 60}


def realised(question: Any, epsilon: str, n: int, answer: Any, label: str, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Estimated shares of an answer and their margins, where everybody gives `answer`."""
    channel, random = channel_of(question, epsilon), Random.deterministic(7 * n + len(label))
    answers = [question.place(answer)] * n
    shares, margins = [], []
    for _ in range(runs):
        told = {row["answer"]: row for row in found(channel, answers, random).rows()}[label]
        shares.append(told["share"])
        margins.append(told["share_margin"])
    return np.array(shares), np.array(margins)


@pytest.mark.parametrize("epsilon", ["0.5", "3"])
@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("n", [10, pytest.param(200, marks=pytest.mark.slow), pytest.param(3000, marks=pytest.mark.slow)])
def test_a_rare_share_is_as_exact_as_planned(n: int, name: str, epsilon: str) -> None:
    question = QUESTIONS[name]
    survey = Survey("s", "S", [question], levels={"one": epsilon})
    [planned] = survey.expected(n)
    given, asked = (False, "yes") if isinstance(question, YesNo) else (question.options[0], question.options[-1])
    answer = {given} if isinstance(question, Several) else given
    shares, margins = realised(question, epsilon, n, answer, asked, RUNS[n])
    assert abs(float(np.median(margins)) / planned.rare - 1) < (0.25 if n == 10 else 0.1)
    inside = int((np.abs(shares) <= planned.rare + 1e-9).sum())
    assert binom.cdf(inside, len(shares), 0.95) > 1e-9


@pytest.mark.parametrize("epsilon", ["0.5", "3"])
@pytest.mark.parametrize("open_", [True, False], ids=["may be left out", "everybody answers"])
@pytest.mark.parametrize("n", [200, pytest.param(3000, marks=pytest.mark.slow)])
def test_a_mean_is_as_exact_as_planned(n: int, open_: bool, epsilon: str) -> None:
    """Whether there is a number at all is randomised too, and makes the mean of numbers near an end less exact."""
    question = Number("q", "Q?", low=0, high=40, no_answer=open_)
    [planned] = Survey("s", "S", [question], levels={"one": epsilon}).expected(n)
    channel, random = channel_of(question, epsilon), Random.deterministic(n)
    off, margins = [], []
    for truth in (0.0, 20.0, 40.0):
        for _ in range(RUNS[n] // 2):
            mean = found(channel, [truth] * n, random).mean()
            assert mean is not None
            off.append(abs(mean.value - truth))
            margins.append(mean.margin())
    middling = float(np.median(np.array(margins).reshape(3, -1), axis=1).max())
    # where a plan says that nothing is told, most means tell a little: an interval ends where no answer is
    assert middling == pytest.approx(planned.rare, rel=0.25)
    inside = int((np.array(off) <= planned.rare + 1e-9).sum())
    assert binom.cdf(inside, len(off), 0.95) > 1e-9


@pytest.mark.parametrize("people", [5, 10_000])
def test_a_protocol_is_chosen_by_the_margin_that_comes_out(people: int) -> None:
    for option in choose(5, epsilon=3, people=people).options:
        normal = quantile_of(0.95) * math.sqrt(option.oracle.variance(people)) / people
        assert option.margin == option.oracle.margin(people)
        assert normal < option.margin < (1.15 if people == 10_000 else 10) * normal
