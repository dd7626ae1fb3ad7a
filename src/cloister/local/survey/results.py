"""What a survey found: for each question, estimates with margins, by level and of all people, and how far they can be trusted."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cloister.local.protocols.levels import Homogeneity
from cloister.local.survey.alike import alike_of
from cloister.local.survey.anomalies import Anomaly
from cloister.local.survey.composed import Survey
from cloister.local.survey.findings import Finding, add_findings
from cloister.local.survey.poisoning import Lift
from cloister.local.survey.question import Question
from cloister.local.survey.tally import Tally
from cloister.noise.mechanism import check_confidence
from cloister.notebook import offline
from cloister.printable import finite, json_of, margin_text, shown
from cloister.privacy.rational import Exact

_MOST_BARS, _MOST_LINES = 30, 20


@dataclass(frozen=True, kw_only=True)
class QuestionResult:
    """The results of one question.

    >>> from cloister.local.survey import Survey, Tally, YesNo
    >>> survey = Survey("exam", "Exams", [YesNo("copied", "Have you copied?")], levels={"careful": 1})
    >>> result = Results(survey, Tally(survey)).questions[0]
    >>> result.question.name, result.combined.estimate.n, result.alike
    ('copied', 0, None)
    """

    question: Question
    by_level: Mapping[str, Finding]
    combined: Finding
    alike: Homogeneity | None
    """Whether those who chose one level for this question answer like those who chose another; None with one level, and for
    words."""
    anomalies: Mapping[str, list[Anomaly]]
    sway: float
    """How far a made-up report, at whichever level of the survey, moves the combined estimate at most, in people; of a
    number, its sum."""
    lift: Lift
    """What one made-up report adds at most to the sum of a mean and to the number of those who answered, together."""

    def shift(self, liars: float) -> float | None:
        """The most by which a share of liars among all respondents moves an estimated share (of a question for a number, the
        mean): they choose the level with the largest effect, of all that the survey has. None where nobody answered.

        For an estimated share: the sway of one report times the share of liars. For a mean: `mean_shift`.
        """
        n = self.combined.estimate.n
        if not n:
            return None
        return self.mean_shift(liars) if self.combined.total is not None else self.sway * liars

    def mean_shift(self, liars: float) -> float | None:
        """The same of the mean, of a scale or a number: infinite where so many could make it seem that nobody answered, so that
        the mean could be anything; None where there is no mean. It follows from the mean that was found (`sway_of_ratio`),
        and is larger than liars × sway where few gave an answer: a made-up report moves how many did, too.
        """
        mean = self.combined.mean()
        return None if mean is None else mean.sway(self.lift, liars * self.combined.estimate.n)

    def to_dict(self, confidence: Exact = 0.95) -> dict[str, Any]:
        """Plain JSON: rows for a table or a chart."""
        return {
            "question": self.question.name,
            "text": self.question.text,
            "kind": self.question.kind,
            "n": self.combined.estimate.n,
            "people": {name: finding.estimate.n for name, finding in self.by_level.items()},
            "combined": _told(self.combined, confidence),
            "levels": {name: _told(finding, confidence) for name, finding in self.by_level.items() if finding.estimate.n},
            "alike": None if self.alike is None else {"p_value": self.alike.p_value, "answer": self.alike.value},
            "anomalies": {
                name: [each.to_dict() for each in tests] for name, tests in self.anomalies.items() if any(t.alarm for t in tests)
            },
            "sway": self.sway,
            "one_percent_liars": finite(self.shift(0.01)),
            "one_percent_liars_mean": finite(self.mean_shift(0.01)),
        }


@dataclass(frozen=True)
class Results:
    """All results of a tally.

    >>> from cloister.local.survey import Survey, YesNo, respond
    >>> survey = Survey("exam", "Exams", [YesNo("copied", "Have you copied?", no_answer=False)], levels={"careful": 3})
    >>> results = collect(survey, [respond(survey, {"copied": True}, "careful") for _ in range(500)])
    >>> yes = results["copied"].to_dict()["combined"]["answers"][1]
    >>> yes["answer"], 0.8 < yes["share"] < 1.2
    ('yes', True)
    """

    survey: Survey
    tally: Tally

    @cached_property
    def questions(self) -> list[QuestionResult]:
        """One for each question, in the survey's order."""
        return [self[question.name] for question in self.survey.questions]

    def __getitem__(self, name: str) -> QuestionResult:
        """One question's: worked out when it is first asked for."""
        if name not in self._ready:
            self._ready[name] = self._of(self.survey.question(name))
        return self._ready[name]

    @cached_property
    def _ready(self) -> dict[str, QuestionResult]:
        return {}

    @property
    def alarms(self) -> list[tuple[str, str, Anomaly]]:
        """Questions and levels whose reports honest people would hardly have sent."""
        return _alarms(self.questions)

    def at_level(self, name: str, level: str) -> Finding:
        """What the reports to one question at one level say by themselves: worked out when it is first asked for. (Of a free word
        that takes seconds; so whoever shows progress asks for one after the other, and then for the question.)

        >>> from cloister.local.survey import Survey, Tally, YesNo
        >>> survey = Survey("exam", "Exams", [YesNo("copied", "Have you copied?")], levels={"careful": 1})
        >>> Results(survey, Tally(survey)).at_level("copied", "careful").estimate.n
        0
        """
        if (name, level) not in self._found:
            channel = self.survey.channel(self.survey.question(name), self.survey.level(level))
            self._found[name, level] = channel.finding(self.tally.counts(name, level))
        return self._found[name, level]

    @cached_property
    def _found(self) -> dict[tuple[str, str], Finding]:
        return {}

    def to_dict(self, confidence: Exact = 0.95, *, questions: Collection[str] | None = None) -> dict[str, Any]:
        """Plain JSON; of some questions alone, where these are given by name."""
        told = [self[each.name] for each in self.survey.questions if questions is None or each.name in questions]
        return {
            "survey": self.survey.id,
            "version": self.survey.version,
            "title": self.survey.title,
            "n": self.tally.n,
            "refused": dict(self.tally.refused),
            "confidence": float(check_confidence(confidence)),
            "questions": [each.to_dict(confidence) for each in told],
            "alarms": [{"question": name, "level": level} | test.to_dict() for name, level, test in _alarms(told)],
        }

    def to_json(self, confidence: Exact = 0.95) -> str:
        """The same as text."""
        return json_of(self.to_dict(confidence))

    def chart(self, name: str, *, confidence: Exact = 0.95) -> Any:
        """The shares of a question's answers with their error bars, as an Altair chart: in their order; of a long list the
        commonest.

        >>> from cloister.local.survey import Survey, YesNo, respond
        >>> survey = Survey("exam", "Exams", [YesNo("copied", "Have you copied?")], levels={"careful": 1})
        >>> type(collect(survey, [respond(survey, {}, "careful")]).chart("copied")).__name__
        'LayerChart'
        """
        import altair as alt

        result = self[name]
        rows, part = _shown(result.combined.rows(confidence), _MOST_BARS)
        values = [
            {
                "answer": shown(row["answer"]),
                "share": row["share"],
                "low": row["share"] - row["share_margin"],
                "high": row["share"] + row["share_margin"],
            }
            for row in rows
        ]
        base = alt.Chart(alt.Data(values=values)).encode(
            y=alt.Y("answer:N", sort=[each["answer"] for each in values], title=None)
        )
        bars = base.mark_bar(color="#3f6c8f", height={"band": 0.6}).encode(
            x=alt.X("share:Q", title="share", axis=alt.Axis(format="%"))
        )
        errors = base.mark_rule(color="#c9714f", strokeWidth=2).encode(x="low:Q", x2="high:Q")
        return offline(alt.layer(bars, errors).properties(width=360, title=alt.Title(shown(result.question.text), subtitle=part)))

    def text(self, confidence: Exact = 0.95) -> str:
        """A table for a terminal."""
        lines = [
            f"{shown(self.survey.title)}: {self.tally.n} reports"
            + "".join(f", {count} {why}" for why, count in self.tally.refused.items())
        ]
        for result in self.questions:
            lines.append(f"\n{shown(result.question.text, lines=True)}")
            mean = result.combined.mean()
            if mean is not None and mean.told(confidence):
                lines.append(f"  mean {mean.value:.4g} ± {margin_text(mean.margin(confidence))}")
            elif mean is not None:
                lines.append(f"  mean: anything from {mean.ends[0]:.4g} to {mean.ends[1]:.4g}; the noise hides how many answered")
            rows, part = _shown(result.combined.rows(confidence), _MOST_LINES)
            lines.extend(
                f"  {shown(row['answer']):<24} {100 * row['share']:6.1f} % ± {100 * row['share_margin']:.1f}" for row in rows
            )
            lines.extend(f"  ({each})" for each in part)
            if result.alike is not None and result.alike.p_value < 0.01:
                lines.append(f"  levels answer differently: {result.alike.value} (p = {result.alike.p_value:.2g})")
        lines.extend(f"\nodd reports: {name}, level {level}: {test.test}" for name, level, test in self.alarms)
        return "\n".join(lines)

    def _of(self, question: Question) -> QuestionResult:
        levels = {level.name: level for level in self.survey.levels}
        counts = {name: self.tally.counts(question.name, name) for name in levels}
        channels = {name: self.survey.channel(question, level) for name, level in levels.items()}
        found = {name: self.at_level(question.name, name) for name in levels}
        with_people = [name for name in levels if counts[name].n]
        groups = [found[name] for name in with_people]
        if any(each.found for each in groups) and len(groups) > 1:
            words = list(dict.fromkeys(word for each in groups for word in each.estimate.values))
            groups = [channels[name].look_up(counts[name], words) for name in with_people]
        return QuestionResult(
            question=question,
            by_level=found,
            combined=add_findings(groups or list(found.values())),
            alike=alike_of(question, {levels[name].epsilon: found[name] for name in with_people}),
            anomalies={name: channels[name].anomalies(counts[name]) for name in with_people},
            # of all levels: a made-up report may be at one that nobody else chose
            sway=max(channel.sway for channel in channels.values()),
            lift=lambda sum_, answered: max(channel.lift(sum_, answered) for channel in channels.values()),
        )


def collect(survey: Survey, reports: Iterable[Any], *, invited: Collection[str] | None = None) -> Results:
    """Count reports and say what they found. Garbage is counted, never believed, and stops nothing; `Tally` is the same for
    reports that come in over time or on many servers.

    >>> from cloister.local.survey import Survey, YesNo
    >>> survey = Survey("exam", "Exams", [YesNo("copied", "Have you copied?")], levels={"careful": 1})
    >>> collect(survey, ["garbage", {"survey": "exam"}]).to_dict()["refused"]
    {'not JSON': 1, 'not a report': 1}
    """
    tally = Tally(survey, invited=invited)
    tally.add(reports)
    return Results(survey, tally)


def _alarms(questions: Iterable[QuestionResult]) -> list[tuple[str, str, Anomaly]]:
    return [
        (each.question.name, level, test)
        for each in questions
        for level, tests in each.anomalies.items()
        for test in tests
        if test.alarm
    ]


def _told(finding: Finding, confidence: Exact) -> dict[str, Any]:
    mean = finding.mean()
    told: dict[str, Any] = {"n": finding.estimate.n, "answers": finding.rows(confidence)}
    if mean is not None:
        low, high = mean.interval(confidence)
        told["mean"] = {"value": mean.value, "margin": mean.margin(confidence), "low": low, "high": high}
        told["mean"]["told"] = mean.told(confidence)
    return told


def _shown(rows: list[dict[str, Any]], most: int) -> tuple[list[dict[str, Any]], list[str]]:
    """All of a short list; of a long one the commonest, and a line that says so."""
    if len(rows) <= most:
        return rows, []
    return sorted(rows, key=lambda row: -row["share"])[:most], [f"the {most} commonest of {len(rows):,} answers"]
