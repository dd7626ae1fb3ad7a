"""Models from the reports of a survey: how answers hang together, when nobody told any of them.

A report holds a randomised answer to each question. From one report of one question the channel gives a vector that is, on
average over its coins, 1 at the true answer and 0 elsewhere: e with E[e] = the truth. The coins of different questions are
independent, so of two questions E[eₓ·e_yᵀ] is 1 at the pair of true answers: added up over people, these products are unbiased
joint counts, and their own spread over people says how much of them is noise. Naive Bayes needs the joint counts of the class and
each feature, a least-squares line those of all pairs; a number's report is unbiased for the number, and may be what is foretold.

Guarantee: the reports' own. Each person was promised the sum of what their answers cost (`Promise`), and models are computed
from reports alone: post-processing, free however many models are made (Dwork & Roth 2014, proposition 2.1). People may choose
their own levels; a level is public in the report, and the products are unbiased at every pair of levels, whoever chose which.

The price of asking each question alone is noise: the variance of a joint cell is about the product of the variances of its two
answers, where a `LocalNaiveBayes`, which is planned before it is asked, randomises the pair at once.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.local.frequency.estimates import half_width
from cloister.local.frequency.oracle import Sketch
from cloister.local.learning.naive_bayes import drawn_in
from cloister.local.survey.amounts import AmountChannel
from cloister.local.survey.channel import Channel
from cloister.local.survey.composed import Survey
from cloister.local.survey.one_of import OneOfChannel
from cloister.local.survey.question import NO_ANSWER, OneOf
from cloister.local.survey.questions import Number, Scale, YesNo
from cloister.local.survey.reports import read_report
from cloister.printable import json_of

Floats: TypeAlias = npt.NDArray[np.float64]
_LEAST = 30
"""Fewer reports tell nothing of how answers hang together."""


@dataclass(frozen=True, kw_only=True)
class Chances:
    """Naive Bayes: how likely each class is, and each answer of each question within it."""

    target: str
    classes: tuple[str, ...]
    shares: Floats
    tables: Mapping[str, tuple[tuple[str, ...], Floats]]
    """By question: its answers, and for each of them (a row) its share within each class."""
    margins: Mapping[str, float]
    """By question: the half-width, at 95 %, of the share of all people who give an answer and a class, whichever these are: that
    of the least certain of them; noise and chance."""
    n: int

    def predict(self, answers: Sequence[Mapping[str, str]]) -> list[str]:
        """The most likely class of each; a question that is left out says nothing."""
        found = []
        for each in answers:
            score = np.log(self.shares)
            for name, (labels, table) in self.tables.items():
                if name in each:
                    score = score + np.log(table[_place(labels, each[name], name)])
            found.append(self.classes[int(score.argmax())])
        return found

    def to_json(self) -> str:
        """The model as a file, which `model_from_json` reads."""
        told = {name: {"answers": list(labels), "shares": table.tolist()} for name, (labels, table) in self.tables.items()}
        plain = {"classes": list(self.classes), "shares": self.shares.tolist(), "questions": told, "margins": dict(self.margins)}
        return json_of({"model": "naive Bayes", "target": self.target, "n": self.n, **plain})


@dataclass(frozen=True, kw_only=True)
class Line:
    """A least-squares line: a number, and what each answer adds to it."""

    target: str
    base: float
    added: Mapping[str, Mapping[str, float]]
    margins: Mapping[str, Mapping[str, float]]
    """The half-width, at 95 %, of what each answer adds: noise, chance, and what the ridge may have taken from it."""
    low: float
    high: float
    margin: float
    """The half-width, at 95 %, of the mean of the target: of noise and chance."""
    n: int

    def predict(self, answers: Sequence[Mapping[str, str]]) -> list[float]:
        """The number of each, within its bounds; a question that is left out adds nothing."""
        found = []
        for each in answers:
            parts = {name: list(self.added[name].items()) for name in each if name in self.added}
            value = self.base
            for name, listed in parts.items():
                value += listed[_place([label for label, _ in listed], each[name], name)][1]
            found.append(min(max(value, self.low), self.high))
        return found

    def to_json(self) -> str:
        """The model as a file, which `model_from_json` reads."""
        plain = {"base": self.base, "margin": self.margin, "low": self.low, "high": self.high}
        told = {name: {"added": dict(each), "margins": dict(self.margins[name])} for name, each in self.added.items()}
        return json_of({"model": "regression", "target": self.target, "n": self.n, **plain, "questions": told})


def model_from_json(text: str) -> Chances | Line:
    """A model that a file holds.

    >>> line = Line(target="hours", base=17.0, added={}, margins={}, low=0.0, high=40.0, margin=0.5, n=100)
    >>> model_from_json(line.to_json()) == line
    True
    """
    try:
        return _read(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidParameter("The model is invalid", why="it is not what to_json wrote", instead="model.to_json()") from None


def _read(told: dict[str, Any]) -> Chances | Line:
    questions = told["questions"]
    if told["model"] == "naive Bayes":
        tables = {name: (tuple(each["answers"]), np.array(each["shares"])) for name, each in questions.items()}
        how: dict[str, Any] = {"classes": tuple(told["classes"]), "shares": np.array(told["shares"]), "tables": tables}
        return Chances(target=told["target"], margins=told["margins"], n=told["n"], **how)
    parts: dict[str, Any] = {part: {name: each[part] for name, each in questions.items()} for part in ("added", "margins")}
    numbers = {name: told[name] for name in ("base", "margin", "low", "high")}
    return Line(target=told["target"], n=told["n"], **numbers, **parts)


class Answers:
    """The reports of a survey, as unbiased vectors of answers.

    >>> from cloister.local.survey import Choice, Survey, YesNo, respond
    >>> survey = Survey(
    ...     "exam", "Exams", [YesNo("copied", "Copied?", no_answer=False), Choice("year", "Year?", ["1", "2"], no_answer=False)],
    ...     levels={"open": 4},
    ... )
    >>> people = [{"copied": True, "year": "1"}, {"copied": False, "year": "2"}] * 200
    >>> model = Answers(survey, [respond(survey, each, "open") for each in people]).naive_bayes("copied", ["year"])
    >>> model.predict([{"year": "1"}, {"year": "2"}])
    ['yes', 'no']
    """

    def __init__(self, survey: Survey, reports: Iterable[Any]) -> None:
        self.survey = survey
        read = [each for each in (read_report(survey, said) for said in reports) if not isinstance(each, str)]
        self.n = len(read)
        self._read = read
        self._known: dict[str, Floats] = {}

    def naive_bayes(self, target: str, features: Sequence[str]) -> Chances:
        """What the answers say of the class; those who gave no answer to the target's question are left out."""
        check_roles(self.survey, target, features, n=self.n)
        labels = _labels(self.survey, target)
        kept = [place for place, label in enumerate(labels) if label != NO_ANSWER]
        said = self._vectors(target)[:, kept]
        totals = np.maximum(said.sum(axis=0), 1.0)
        shares = totals / totals.sum()
        tables, margins = {}, {}
        for name in features:
            given = self._vectors(name)
            joint = given.T @ said / totals.sum()
            spread = (given**2).T @ said**2 / self.n - (given.T @ said / self.n) ** 2  # of one person's product, at each cell
            each = np.maximum(spread, 0.0) * self.n / totals.sum() ** 2
            noise = float(each.mean())
            table = drawn_in(joint, noise, int(totals.sum()), shares)
            tables[name] = (_labels(self.survey, name), table / table.sum(axis=0))
            part = max(float(np.ptp(given)), 1.0) * max(float(np.ptp(said)), 1.0) / float(totals.sum())
            margins[name] = float(half_width(0.95, each.max(), part=part))
        classes = tuple(labels[place] for place in kept)
        return Chances(target=target, classes=classes, shares=shares, tables=tables, margins=margins, n=self.n)

    def regression(self, target: str, features: Sequence[str]) -> Line:
        """What each answer adds to a number: of a question for a number, of the steps of a scale (1, 2, …), of yes (1) or no (0).

        The normal equations are made of unbiased sums; noise may leave them indefinite, so what is below the noise of an entry
        is raised to it, and answers are drawn towards adding nothing by as much: the margin then holds all that they could add,
        which is the range of the number at most. A question's answers add nothing on average over
        people: what all of them had in common could as well be another question's.
        """
        check_roles(self.survey, target, features, n=self.n, number=True)
        value, counted, low, high = self._scores(target)
        blocks = [self._vectors(name) for name in features]
        stacked = np.concatenate([np.ones((self.n, 1)), *blocks], axis=1)
        weighted = stacked * counted[:, None]
        products = stacked.T @ weighted
        start = 1
        for block in blocks:
            stop = start + block.shape[1]
            products[start:stop, start:stop] = np.diag(block.T @ counted)
            start = stop
        spread = (stacked**2).T @ weighted**2 - (stacked.T @ weighted) ** 2 / self.n  # of the sum over people, at each entry
        noise = math.sqrt(max(float(spread.mean()), 0.0)) + 1e-9 * self.n
        middle = float(value.sum() / max(counted.sum(), 1.0))
        sums = stacked.T @ (value - middle * counted)
        values, vectors = np.linalg.eigh(products[1:, 1:])
        ridge = vectors @ np.diag(1 / np.maximum(values, noise)) @ vectors.T
        slopes = ridge @ sums[1:]
        raised = np.clip(1 - values / noise, 0.0, 1.0)
        drawn = np.abs(_about_mean(blocks, vectors.T).T) @ (raised * np.abs(_about_mean(blocks, vectors.T)).sum(axis=1))
        unknown = (high - low) * np.minimum(drawn, 1.0)
        each = _about_mean(blocks, slopes)
        gave = np.concatenate([block.sum(axis=0) - 2 * math.sqrt(self.n) * block.std(axis=0) for block in blocks])
        unseen = 3 * (high - low) / np.maximum(gave, 3.0)  # what three in a hundred have, a hundred may not show
        off = np.maximum(self._off(blocks, value, counted, middle, slopes, ridge), unseen)
        wide = np.minimum(off + unknown, np.abs(each) + high - low)  # nothing can add more than the number's range
        added, margins = self._by_answer(features, each), self._by_answer(features, wide)
        wrong = float(np.std(value - middle * counted)) * math.sqrt(self.n) / max(float(counted.sum()), 1.0)
        part = max(float(np.ptp(value - middle * counted)), high - low) / max(float(counted.sum()), 1.0)
        margin = float(half_width(0.95, np.asarray(wrong**2), part=part, slope=part))
        return Line(target=target, base=middle, added=added, margins=margins, low=low, high=high, margin=margin, n=self.n)

    def _by_answer(self, features: Sequence[str], numbers: Floats) -> dict[str, dict[str, float]]:
        """Numbers that come in the order of the answers of all questions."""
        listed = iter(numbers.tolist())
        return {name: {label: next(listed) for label in _labels(self.survey, name)} for name in features}

    def _off(
        self, blocks: Sequence[Floats], value: Floats, counted: Floats, middle: float, slopes: Floats, ridge: Floats
    ) -> Floats:
        """Half-widths of the slopes: from the spread over people of what each adds to the normal equations at the solution."""
        ends = np.cumsum([block.shape[1] for block in blocks])[:-1]
        parts = np.split(slopes, ends)
        told = [block @ part for block, part in zip(blocks, parts, strict=True)]
        left, whole = value - middle * counted, np.sum(told, axis=0)
        scores = [
            block * (left - counted * (whole - mine))[:, None] - block * part * counted[:, None]
            for block, part, mine in zip(blocks, parts, told, strict=True)
        ]
        moved = _about_mean(blocks, np.concatenate(scores, axis=1) @ ridge)
        moved -= np.repeat(np.stack(told, axis=1) / self.n, [block.shape[1] for block in blocks], axis=1)  # the mean's own spread
        return np.asarray(half_width(0.95, moved.var(axis=0) * self.n, part=np.ptp(moved, axis=0)))

    def _vectors(self, name: str) -> Floats:
        """Of each report of a question with listed answers, the unbiased vector."""
        if name not in self._known:
            question = self.survey.question(name)
            found, made = np.empty((self.n, len(_labels(self.survey, name)))), dict[tuple[str, tuple[int, ...]], Floats]()
            for place, (report, rows) in enumerate(self._read):
                level, row = report.levels[name], rows[name]
                key = (level, tuple(row))
                if key not in made:
                    channel = self.survey.channel(question, self.survey.level(level))
                    assert isinstance(channel, OneOfChannel)
                    made[key] = channel.finding(channel.count([row])).estimate.counts
                found[place] = made[key]
            self._known[name] = found
        return self._known[name]

    def _scores(self, name: str) -> tuple[Floats, Floats, float, float]:
        """Of each report of the target: the number (0 where none was given), whether one was, and its bounds."""
        question = self.survey.question(name)
        if isinstance(question, Number):
            value, counted, made = np.empty(self.n), np.empty(self.n), dict[tuple[str, tuple[int, ...]], tuple[float, float]]()
            for place, (report, rows) in enumerate(self._read):
                key = (report.levels[name], tuple(rows[name]))
                if key not in made:
                    channel: Channel = self.survey.channel(question, self.survey.level(key[0]))
                    assert isinstance(channel, AmountChannel)
                    made[key] = _amount(channel, rows[name])
                value[place], counted[place] = made[key]
            return value, counted, float(Fraction(question.low)), float(Fraction(question.high))
        vectors, labels = self._vectors(name), _labels(self.survey, name)
        steps = [label for label in labels if label != NO_ANSWER]
        score = {label: float(place) for place, label in enumerate(steps, start=1 if isinstance(question, Scale) else 0)}
        counted = vectors @ np.array([float(label in score) for label in labels])
        value = vectors @ np.array([score.get(label, 0.0) for label in labels])
        return value, counted, min(score.values()), max(score.values())


def _about_mean(blocks: Sequence[Floats], numbers: Floats) -> Floats:
    """Numbers of the answers of all questions (on the last axis), less the mean of their question over people."""
    ends = np.cumsum([block.shape[1] for block in blocks])[:-1]
    parts = zip(blocks, np.split(numbers, ends, axis=-1), strict=True)
    means = ((part, block.mean(axis=0)) for block, part in parts)
    return np.concatenate([part - (part @ share / share.sum())[..., None] for part, share in means], axis=-1)


def _amount(channel: AmountChannel, row: list[int]) -> tuple[float, float]:
    """The number, times whether there was one, and whether there was; both unbiased, and independent of one another."""
    counts = channel.count([row])
    mean = channel.mechanism.mean(Sketch(key=channel.mechanism.key, n=1, counts=counts.parts["sketch"])).value
    if channel.answered is None:
        return mean, 1.0
    told = channel.answered.estimate(Sketch(key=channel.answered.key, n=1, counts=counts.parts["answered"])).counts[1]
    return mean - channel.middle + channel.middle * float(told), float(told)


def _labels(survey: Survey, name: str) -> tuple[str, ...]:
    question = survey.question(name)
    assert isinstance(question, OneOf)
    return tuple(question.labels)


def _place(labels: Sequence[str], said: str, name: str) -> int:
    if said not in labels:
        raise InvalidParameter(
            f"The answer to {name!r} is invalid", why="it is not among those that there are", instead=f"{labels[0]!r}"
        )
    return labels.index(said)


def check_roles(survey: Survey, target: str, features: Sequence[str], *, n: int, number: bool = False) -> None:
    """Refuse a model of questions that are not there, of kinds that cannot serve, or that serve twice; and of `n` reports where
    these are too few. `number`: what is foretold is a number.

    >>> from cloister.local.survey import Choice, YesNo
    >>> exams = Survey("exam", "Exams", [YesNo("copied", "Copied?"), Choice("year", "Year?", ["1", "2"])], levels={"open": 1})
    >>> check_roles(exams, "copied", ["year"], n=200)
    """
    listed = [question.name for question in survey.questions if isinstance(question, OneOf)]
    numbers = [q.name for q in survey.questions if isinstance(q, YesNo | Scale) or (isinstance(q, Number) and q.want == "mean")]
    ends = numbers if number else listed
    if target not in ends:
        why = f"it is not a question that can be predicted: {', '.join(ends) or 'none'}"
        raise InvalidParameter(f"target={target!r} is invalid", why=why, instead=f'target="{(ends or ["copied"])[0]}"')
    others = [name for name in listed if name != target]
    if not features or len(set(features)) != len(features) or not set(features) <= set(others):
        why = f"features are different questions with listed answers, without the target: {', '.join(others) or 'none'}"
        raise InvalidParameter(f"features={list(features)!r} is invalid", why=why, instead=f"features={others[:2]!r}")
    if n < _LEAST:
        raise InvalidParameter(
            "There are too few reports", why=f"{n} of at least {_LEAST} came in", instead="train the model later"
        )
