"""Models from the reports of a survey: unbiased joint counts, the people's model from their noise, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.local.survey import Choice, Number, Place, Scale, Survey, YesNo, respond
from cloister.local.survey.models import Answers, model_from_json
from cloister.noise import Random

QUESTIONS = [
    YesNo("copied", "Have you ever copied?"),
    Choice("year", "Which year?", ["first", "second", "third"], no_answer=False),
    Scale("stress", "How stressed?", ["calm", "so-so", "stressed"], no_answer=False),
    Number("hours", "Hours a week?", low=0, high=40, no_answer=False),
]
SURVEY = Survey("exam", "Exams", QUESTIONS, levels={"careful": 1, "open": 3}, cap=12)


def people(n: int, seed: int) -> list[dict[str, Any]]:
    """Third years copy eight times in ten, others twice; stress follows copying; hours follow stress; a tenth keep silent."""
    draw = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        year = int(draw.integers(0, 3))
        copied = draw.random() < (0.8 if year == 2 else 0.2)
        stress = int(np.clip(draw.integers(0, 2) + copied, 0, 2))
        hours = float(np.clip(10 + 8 * stress + draw.normal(0, 2), 0, 40))
        silent = draw.random() < 0.1
        found.append(
            {
                "copied": None if silent else bool(copied),
                "year": ["first", "second", "third"][year],
                "stress": ["calm", "so-so", "stressed"][stress],
                "hours": hours,
            }
        )
    return found


def reports_of(answers: list[dict[str, Any]], seed: int, levels: tuple[str, ...] = ("careful", "open")) -> list[Any]:
    random = Random.deterministic(seed)
    return [respond(SURVEY, each, levels[at % len(levels)], random=random) for at, each in enumerate(answers)]


@pytest.fixture(scope="module")
def answers() -> Answers:
    return Answers(SURVEY, reports_of(people(5000, 1), 1))


def test_the_products_of_two_reports_are_unbiased_joint_counts() -> None:
    """One person's pair of answers, reported 4,000 times: each cell within five deviations of 1 or 0."""
    same = [{"copied": True, "year": "third", "stress": "calm", "hours": 30.0}] * 4000
    read = Answers(SURVEY, reports_of(same, 2, ("open",)))
    one, other = read._vectors("copied"), read._vectors("year")
    products = one[:, :, None] * other[:, None, :]
    truth = np.zeros(products.shape[1:])
    truth[list(SURVEY.question("copied").labels).index("yes"), 2] = 1  # type: ignore[attr-defined]
    off = np.abs(products.mean(axis=0) - truth) / (products.std(axis=0) / math.sqrt(4000))
    assert off.max() < 5.5


def test_a_twin_that_takes_reports_for_answers_is_biased() -> None:
    """Counting what was reported, without the channel: what is wrong by far more than chance."""
    same = [{"copied": True, "year": "third", "stress": "calm", "hours": 30.0}] * 4000
    reports = reports_of(same, 2, ("careful",))
    said = np.mean([each.values["copied"] == 1 for each in reports])
    assert said < 0.9
    assert abs(Answers(SURVEY, reports)._vectors("copied").mean(axis=0).max() - 1) < 0.15


def test_naive_bayes_is_that_of_the_people(answers: Answers) -> None:
    model = answers.naive_bayes("copied", ["year", "stress"])
    assert model.classes == ("no", "yes")
    assert model.shares == pytest.approx([0.6, 0.4], abs=0.06)
    labels, table = model.tables["year"]
    assert table[labels.index("third"), 1] == pytest.approx(0.8 / 1.2, abs=0.15)
    assert table[labels.index("third"), 0] == pytest.approx(0.2 / 1.8, abs=0.15)
    assert 0 < model.margins["year"] < 0.1
    others = [each for each in people(2000, 9) if each["copied"] is not None]
    told = model.predict([{"year": each["year"], "stress": each["stress"]} for each in others])
    right = np.mean([each == ("yes" if person["copied"] else "no") for each, person in zip(told, others, strict=True)])
    assert right > 0.75  # a guess is 0.6
    assert model.predict([{}]) == ["no"]


def test_a_line_is_that_of_the_people(answers: Answers) -> None:
    line = answers.regression("hours", ["stress"])
    assert line.base == pytest.approx(17.0, abs=2.5)
    assert line.added["stress"]["stressed"] - line.added["stress"]["calm"] > 6
    assert 0 < line.margin < 2
    said = line.predict([{"stress": "stressed"}, {"stress": "calm"}, {}])
    assert 0 <= said[1] < said[2] < said[0] <= 40
    yes = answers.regression("copied", ["year"])
    assert (yes.low, yes.high) == (0.0, 1.0)
    assert yes.predict([{"year": "third"}])[0] > yes.predict([{"year": "first"}])[0] + 0.2
    assert answers.regression("stress", ["year"]).low == 1.0


def test_garbage_is_left_out_and_too_few_are_refused(answers: Answers) -> None:
    few = Answers(SURVEY, ["garbage", {"survey": "other"}, *reports_of(people(20, 3), 3)])
    assert few.n == 20
    with pytest.raises(InvalidParameter, match="too few"):
        few.naive_bayes("copied", ["year"])
    for target, features, what in (
        ("hours", ["year"], "target"),
        ("none", ["year"], "target"),
        ("copied", [], "features"),
        ("copied", ["hours"], "features"),
        ("copied", ["year", "year"], "features"),
        ("copied", ["copied"], "features"),
    ):
        with pytest.raises(InvalidParameter, match=what):
            answers.naive_bayes(target, features)
    with pytest.raises(InvalidParameter, match="year"):
        answers.naive_bayes("copied", ["year"]).predict([{"year": "fourth"}])
    with pytest.raises(InvalidParameter, match="year"):
        answers.regression("stress", ["year"]).predict([{"year": "fourth"}])
    for text in ("", "{", "[]", "3", '{"questions": {}}'):
        with pytest.raises(InvalidParameter, match="The model is invalid"):
            model_from_json(text)


@pytest.mark.parametrize(("n", "share", "epsilon"), [(30, 0.03, 8), (100, 0.01, 8), (40, 0.03, 4)])
def test_a_base_that_nobody_says_has_a_margin(n: int, share: float, epsilon: int) -> None:
    """150 surveys: a margin of 95 % misses 25 with a probability below 1e-6."""
    asked = [YesNo("a", "A?", no_answer=False), YesNo("b", "B?", no_answer=False)]
    survey = Survey("e", "E", asked, levels={"open": epsilon}, cap=2 * epsilon)
    draw, random, missed = np.random.default_rng(n), Random.deterministic(n), 0
    for _ in range(150):
        answers = zip(draw.random(n) < share, draw.random(n) < 0.5, strict=True)
        reports = [respond(survey, {"a": bool(a), "b": bool(b)}, "open", random=random) for a, b in answers]
        line = Answers(survey, reports).regression("a", ["b"])
        missed += abs(line.base - share) > line.margin
    assert missed < 25


@pytest.mark.parametrize(("share", "n", "epsilon"), [(0.02, 200, 10), (0.02, 200, 4), (0.3, 200, 10)])
def test_what_a_rare_answer_adds_has_a_margin(share: float, n: int, epsilon: int) -> None:
    """Nine in ten of those who give it say yes, one in ten of the others. In 60 surveys a margin of 95 % misses 16 with a
    probability below 1e-6."""
    survey = Survey(
        "e", "E", [YesNo("a", "A?", no_answer=False), YesNo("b", "B?", no_answer=False)], levels={"open": epsilon}, cap=99
    )
    draw, random, missed = np.random.default_rng(n), Random.deterministic(n), 0
    for _ in range(60):
        rare = draw.random(n) < share
        said = draw.random(n) < np.where(rare, 0.9, 0.1)
        reports = [respond(survey, {"a": bool(a), "b": bool(b)}, "open", random=random) for a, b in zip(said, rare, strict=True)]
        line = Answers(survey, reports).regression("a", ["b"])
        missed += abs(line.added["b"]["yes"] - 0.8 * (1 - share)) > line.margins["b"]["yes"]
        assert line.margins["b"]["yes"] <= abs(line.added["b"]["yes"]) + 1
    assert missed < 16


def test_a_question_adds_nothing_where_another_does_all() -> None:
    """Two questions asked at once: what each answer adds is about the mean person's, within its margin. In 40 surveys with 5
    answers each, margins of 95 % miss 32 of 200 with a probability below 1e-6."""
    asked = [
        YesNo("late", "Late?", no_answer=False),
        Choice("year", "Year?", ["1", "2", "3"], no_answer=False),
        YesNo("sport", "Sport?", no_answer=False),
    ]
    survey = Survey("e", "E", asked, levels={"open": 6}, cap=18)
    draw, random, missed, added = np.random.default_rng(3), Random.deterministic(3), 0, []
    shares, effects = [0.6, 0.3, 0.1], np.array([0.1, 0.4, 0.8])
    truth = [*(effects - shares @ effects), 0.0, 0.0]
    for _ in range(40):
        year, sport = draw.choice(3, size=600, p=shares), draw.random(600) < 0.8
        late = draw.random(600) < effects[year]
        rows = [{"late": bool(a), "year": str(b + 1), "sport": bool(c)} for a, b, c in zip(late, year, sport, strict=True)]
        line = Answers(survey, [respond(survey, row, "open", random=random) for row in rows]).regression(
            "late", ["year", "sport"]
        )
        found = [line.added["year"][each] for each in "123"] + [line.added["sport"][each] for each in ("yes", "no")]
        margins = [line.margins["year"][each] for each in "123"] + [line.margins["sport"][each] for each in ("yes", "no")]
        missed += int((np.abs(np.subtract(found, truth)) > margins).sum())
        added.append(found)
    assert np.allclose(np.mean(added, axis=0), truth, atol=0.1)
    assert missed < 32


def test_a_line_counts_as_the_question_does() -> None:
    """Bounds as exact as they were written, a scale of two steps from 1 as in its results; what has no order is no number."""
    questions = [
        Number("hours", "Hours?", low="1/3", high=10, no_answer=False),
        Scale("stress", "Stressed?", ["calm", "stressed"], no_answer=False),
        YesNo("copied", "Copied?", no_answer=False),
        Choice("year", "Year?", ["first", "second", "third"], no_answer=False),
        Place("home", "Where?", south=47, west=8, north=48, east=9, rows=2, columns=2, no_answer=False),
    ]
    survey, random = Survey("exam", "Exams", questions, levels={"open": 8}, cap=40), Random.deterministic(5)
    said = {"hours": 5.0, "stress": "stressed", "copied": True, "year": "third", "home": "1,1"}
    read = Answers(survey, [respond(survey, said, "open", random=random) for _ in range(200)])
    lines = {name: read.regression(name, ["year"]) for name in ("hours", "stress", "copied")}
    assert (lines["hours"].low, lines["hours"].high) == (1 / 3, 10.0)
    assert [(line.low, line.high) for name, line in lines.items() if name != "hours"] == [(1.0, 2.0), (0.0, 1.0)]
    assert abs(lines["stress"].base - 2) < 0.2
    for name in ("year", "home"):
        with pytest.raises(InvalidParameter, match="not a question that can be predicted: hours, stress, copied"):
            read.regression(name, ["copied"])
