"""A level for each question: sums are right whoever chose what, the cap holds on both sides, and the levels are compared."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.errors import BudgetExceeded
from cloister.local.survey import Choice, Number, Results, Scale, Survey, Tally, Word, YesNo, collect, respond
from cloister.noise import Random
from tests.tiers import by_day_and_night

SIGMAS = 6.0
"""Beyond so many standard deviations an estimate lies once in 5·10⁸ times."""
LEVELS = {"careful": "0.5", "middle": 1, "open": 4}


def survey(*questions: Any, cap: Any = 6) -> Survey:
    asked = questions or (YesNo("copied", "Have you copied?"), Choice("why", "Why?", ["time", "grade", "other"]))
    return Survey("exam", "Exams", asked, levels=LEVELS, cap=cap)


def test_a_report_says_a_level_for_each_question_and_is_counted_at_it() -> None:
    made = survey()
    report = respond(made, {"copied": True}, {"why": "open", "copied": "careful"})
    assert list(report.levels.items()) == [("copied", "careful"), ("why", "open")], "in the order of the survey"
    tally = collect(made, [report.to_json(), respond(made, {}, "middle")]).tally
    assert tally.n == 2
    assert tally.people("copied") == {"careful": 1, "middle": 1, "open": 0}
    assert tally.people("why") == {"careful": 0, "middle": 1, "open": 1}
    again = Tally.from_json(made, tally.to_json())
    assert [again.people(each) for each in ("copied", "why")] == [tally.people(each) for each in ("copied", "why")]


def test_sums_are_right_where_everybody_mixes_levels_and_the_mix_goes_with_the_answers() -> None:
    """Of 1,500 people those who copied are careful about that question and open about the other; the others the other way round.
    Every sum, of every question, is within 6 of its deviations; the groups' own shares are far apart, and that is noticed."""
    made, random = survey(cap=8), Random.deterministic(1)
    reports = []
    for person in range(1500):
        copied = person % 3 == 0
        levels = {"copied": "careful", "why": "open"} if copied else {"copied": "open", "why": ("middle", "open")[person % 2]}
        reports.append(respond(made, {"copied": copied, "why": "time" if copied else "grade"}, levels, random=random))
    results = collect(made, reports)
    for name, true in (("copied", {"no": 1000, "yes": 500, "no answer": 0}), ("why", {"time": 500, "grade": 1000, "other": 0})):
        estimate = results[name].combined.estimate
        assert estimate.n == 1500
        for label, count, variance in zip(estimate.values, estimate.counts, estimate.variances, strict=True):
            assert abs(count - true.get(label, 0)) < SIGMAS * variance**0.5, (name, label)
    told = results.to_dict()["questions"]
    assert told[0]["people"] == {"careful": 500, "middle": 0, "open": 1000}
    assert set(told[1]["levels"]) == {"middle", "open"}
    assert told[0]["alike"]["p_value"] < 1e-6


def test_nobody_gives_more_than_the_cap_on_either_side() -> None:
    """4.5 of 6 is allowed, 8 is not: the respondent's side refuses; a report that comes all the same counts for nothing."""
    made = survey()
    assert respond(made, {}, {"copied": "open", "why": "careful"}).levels["copied"] == "open"
    with pytest.raises(BudgetExceeded, match="ε = 8 in all was refused"):
        respond(made, {}, "open")
    bold = Survey("exam", "Exams", made.questions, levels=LEVELS, cap=8)
    forged = respond(bold, {}, "open").to_dict() | {"version": made.version}
    tally = Tally(made)
    assert tally.add([forged, json.dumps(forged)]).to_dict() == {"accepted": 0, "refused": {"over the cap": 2}}
    assert tally.n == 0


def test_the_cap_is_held_exactly() -> None:
    """Ten tenths are one, and three thirds; no double decides."""
    tenths = Survey("t", "T", [YesNo(f"q{n}", f"{n}?") for n in range(10)], levels={"a": "0.1"}, cap=1)
    assert tenths.spent("a") == 1
    thirds = Survey("t", "T", [YesNo(f"q{n}", f"{n}?") for n in range(3)], levels={"a": "1/3", "b": "0.3333333333334"}, cap=1)
    assert thirds.spent("a") == Fraction(1)
    respond(tenths, {}, "a")
    respond(thirds, {}, "a")
    with pytest.raises(BudgetExceeded):
        respond(thirds, {}, {"q0": "a", "q1": "a", "q2": "b"})


def test_a_report_of_the_format_before_is_named_as_such() -> None:
    made = survey()
    old = {"survey": made.id, "version": made.version, "level": "open", "token": "00" * 16, "values": {"copied": 1, "why": 1}}
    assert Tally(made).add([old]).refused == {"of another format": 1}


def test_the_values_are_read_by_the_channel_of_their_own_level() -> None:
    """A report that says another level than it was made at is garbage wherever the channels' reports differ in form."""
    asked = survey(Choice("pet", "Which?", [f"option {n}" for n in range(40)]), cap=6)
    report = respond(asked, {"pet": "option 3"}, "open").to_dict()
    assert Tally(asked).add([report]).accepted == 1
    other = respond(asked, {"pet": "option 3"}, "careful").to_dict()
    assert type(other["values"]["pet"]) is not type(report["values"]["pet"]) or other["values"]["pet"] != report["values"]["pet"]
    swapped = report | {"levels": {"pet": "careful"}, "token": "ab" * 16}
    assert Tally(asked).add([swapped]).refused == {"impossible values": 1}


@pytest.mark.parametrize("want", ["mean", "spread"])
@by_day_and_night("surveys", 20, 60)
def test_levels_that_answer_numbers_alike_seldom_seem_to_differ(surveys: int, want: str) -> None:
    """A lot decides who is careful: of p-values below 1/20 each with a probability of 1/20 at most, 9 of 20, or 15 of 60, come
    together with one below 2e-7."""
    made = Survey("n", "N", [Number("hours", "How many?", low=0, high=40, want=want)], levels={"careful": 1, "open": 4}, cap=4)
    low = 0
    for seed in range(surveys):
        low += _alike(made, seed, lambda _, turn: turn) < 0.05
    assert low < {20: 9, 60: 15}[surveys]


@pytest.mark.parametrize("want", ["mean", "spread"])
def test_levels_that_answer_numbers_differently_are_noticed(want: str) -> None:
    """Long hours go with the open level: the means differ by some 24 of 40. A p-value for few reports too says so."""
    made = Survey("n", "N", [Number("hours", "How many?", low=0, high=40, want=want)], levels={"careful": 1, "open": 4}, cap=4)
    assert _alike(made, 1, lambda hours, _: hours > 20) < 1e-3


def _alike(made: Survey, seed: int, is_open: Any) -> float:
    """The p-value where 800 people have 8 or 32 hours, and half of them, whichever, the open level."""
    generator, random = np.random.default_rng(seed), Random.deterministic(seed)
    question, tally = made.questions[0], Tally(made)
    hours = np.where(generator.random(800) < 0.5, 8.0, 32.0)
    open_ = np.array([bool(is_open(hour, turn < 0.5)) for hour, turn in zip(hours, generator.random(800), strict=True)])
    for level in made.levels:
        channel = made.channel(question, level)
        some = hours[open_ == (level.name == "open")].tolist()
        cells = channel.mechanism.randomize(some, random=random)  # type: ignore[attr-defined]
        given = channel.answered.randomize([1] * len(some), random=random)  # type: ignore[attr-defined]
        tally._counts["hours", level.name] = channel.count(np.stack([cells, given], axis=1).tolist())
    found = Results(made, tally)["hours"].alike
    assert found is not None
    return found.p_value


def test_what_is_compared_is_named() -> None:
    made, random = (
        survey(Scale("often", "How often?", ["never", "once", "often"]), Word("w", "W?", length=4)),
        Random.deterministic(1),
    )
    reports = [
        respond(made, {"often": ("never", "often")[turn % 2], "w": "a"}, ("careful", "middle")[turn % 2], random=random)
        for turn in range(900)
    ]
    results = collect(made, reports)
    assert results["often"].alike is not None
    assert results["often"].alike.value in ("never", "often")
    assert "levels answer differently: " in results.text()
    assert results["w"].alike is None
