"""The report of an anonymised table: what holds, what is left to risk, what was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.anonymize.hierarchies.ladder import Ladder
from cloister.anonymize.metrics import METRICS, metric_of
from cloister.anonymize.models.base import Attained, attained_by
from cloister.anonymize.paper import document
from cloister.anonymize.problem import Problem
from cloister.anonymize.recoding import Proof, Recoded, RecodedColumn
from cloister.anonymize.risks import Risk, risk_of
from cloister.anonymize.risks.added import Added
from cloister.anonymize.risks.words import NOT_PRIVATE, added_warnings, recognised, spelling_warnings

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was done to a table, and what it is worth.

    >>> from cloister.anonymize import Anonymizer, KAnonymity
    >>> anonymizer = Anonymizer(quasi=["age"], models=[KAnonymity(2)], suppression=0)
    >>> _ = anonymizer.fit_transform({"age": [30, 31, 60, 61]})
    >>> print(anonymizer.report_.models[0])
    2-anonymity: k = 2 (asked: k ≥ 2): holds
    """

    models: tuple[Attained, ...]
    """What was asked, and what the published table has, counted again from its labels."""
    levels: dict[str, int] | None
    """The level of each quasi-identifier, where all rows have the same."""
    score: float
    """What was lost, by the metric that was asked for."""
    metric: str
    classes: int
    """How many classes of rows that look alike."""
    suppressed: int
    """How many rows were suppressed, those with missing values included."""
    rows: int
    risk: Risk
    """Of the published table."""
    risk_before: Risk
    """Of the table as it was."""
    utility: dict[str, tuple[float, float]]
    """By metric: the score of the table as it was, and as it is published; smaller is better."""
    search: str
    proof: Proof | None
    hierarchies: dict[str, str]
    """In words, the hierarchy of each quasi-identifier."""
    kept: tuple[str, ...]
    """Columns that were published as they are; and, where that was asked for, the labels or the order of the rows."""
    dropped: tuple[str, ...]
    seconds: float

    @property
    def published(self) -> str:
        """How many rows leave, in words; those of a public list never do.

        >>> from cloister.anonymize import Anonymizer, KAnonymity, KMap
        >>> listed = {"age": [30, 30, 60, 60], "there": [True, False, True, False]}
        >>> anonymizer = Anonymizer(quasi=["age"], models=[KMap(2)], research="there", suppression=0)
        >>> _ = anonymizer.fit_transform(listed)
        >>> anonymizer.report_.published
        '2 published; with the public list there are 4'
        """
        leaving = self.risk.rows
        if leaving != self.rows - self.suppressed:
            return f"{leaving:,} published; with the public list there are {self.rows:,}"
        return f"{leaving:,} of {self.rows:,} published"

    def __str__(self) -> str:
        lines = [
            f"{self.classes:,} classes, rows: {self.published}; {NOT_PRIVATE}",
            "",
            *(f"  {'✓' if each.holds else '✗'} {each}" for each in self.models),
            *(f"  ! {each}" for each in (*spelling_warnings(self.risk), *added_warnings(self.risk))),
            "",
            f"  search {self.search}, {self.metric} = {self.score:.6g}" + (f"; {self.proof}" if self.proof else ""),
        ]
        for name, words in self.hierarchies.items():
            level = f"level {self.levels[name]}, " if self.levels is not None else ""
            lines.append(f"  {name}: {level}{words}")
        if self.kept:
            lines.append(f"  published as they are: {', '.join(self.kept)}")
        if self.dropped:
            lines.append(f"  dropped: {', '.join(self.dropped)}")
        lines += ["", "  risk, before → after"]
        before, after = self.risk_before, self.risk
        lines += [f"    {words}: {was:.4g} → {now:.4g}" for words, was, now in recognised(before, after)]
        lines += ["  lost, before → after"]
        lines += [f"    {name}: {was:.6g} → {now:.6g}" for name, (was, now) in self.utility.items()]
        return "\n".join(lines)

    def chart(self) -> alt.VConcatChart:
        """Risk and what was lost, before and after (altair)."""
        from cloister.anonymize.report_page import report_chart

        return report_chart(self)

    def to_html(self) -> str:
        """A page that stands alone: no script, nothing fetched."""
        from cloister.anonymize.report_page import body_of

        return document("An anonymised table", body_of(self))

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return {
            "not_private": NOT_PRIVATE,
            "models": [
                {"model": m.model, "column": m.column, "asked": m.asked, "reached": m.reached, "holds": m.holds}
                for m in self.models
            ],
            "levels": self.levels,
            "score": self.score,
            "metric": self.metric,
            "classes": self.classes,
            "suppressed": self.suppressed,
            "rows": self.rows,
            "risk": self.risk.to_dict(),
            "risk_before": self.risk_before.to_dict(),
            "utility": {name: {"before": before, "after": after} for name, (before, after) in self.utility.items()},
            "search": self.search,
            "proof": str(self.proof) if self.proof else None,
            "hierarchies": self.hierarchies,
            "kept": list(self.kept),
            "dropped": list(self.dropped),
            "seconds": round(self.seconds, 3),
        }


def report_on(
    problem: Problem,
    recoded: Recoded,
    *,
    search: str,
    incomplete: int,
    kept: Sequence[str],
    dropped: Sequence[str],
    hierarchies: Mapping[str, str],
    seconds: float,
    added: Sequence[Added] = (),
) -> Report:
    """The report of a recoding; everything in it is counted from the labels that are published."""
    before, listed = untouched(problem), problem.research is not None
    told = [each.only(recoded.published) if listed else each for each in (before, recoded)]
    measured = recoded.measured(problem.table)
    return Report(
        models=attained_by(problem.models, recoded.classes),
        levels=dict(recoded.levels) if recoded.levels is not None else None,
        score=problem.metric.score(problem, measured),
        metric=problem.metric.name,
        classes=recoded.leaving.classes.count,
        suppressed=recoded.suppressed_rows + incomplete,
        rows=problem.table.total + incomplete,
        risk=replace(risk_of(told[1].classes), added=tuple(added)),
        risk_before=risk_of(told[0].classes),
        utility={name: (metric_of(name).score(problem, before), metric_of(name).score(problem, measured)) for name in METRICS},
        search=search,
        proof=recoded.proof,
        hierarchies=dict(hierarchies),
        kept=tuple(kept),
        dropped=tuple(dropped),
        seconds=seconds,
    )


def untouched(problem: Problem) -> Recoded:
    """The table as it was, as a recoding that does nothing."""
    columns = {}
    for name in problem.quasi:
        column = problem.table.columns[name]
        ladder = problem.ladders.get(name) or Ladder.of(name, column.values, [])
        columns[name] = RecodedColumn.at(column, ladder, 0)
    return Recoded(
        columns=columns,
        suppressed=np.zeros(len(next(iter(columns.values())).codes), dtype=bool),
        sensitive=problem.sensitive_columns,
        levels=dict.fromkeys(problem.quasi, 0) if all(name in problem.ladders for name in problem.quasi) else None,
        research=problem.research,
        weights=problem.table.weights,
    )
